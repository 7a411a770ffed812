"""Steps of the text model in node and in headless Chromium beside those of the C library on one thread, in turns, by the processor time they take.

    python3 web/tests/speed.py LIBRARY MODEL DIST TOOLS [LEVEL …]     TOOLS has playwright-core; levels of MINRNN_SIMD, by default plain and avx2
"""

import ctypes
import os
import statistics
import subprocess
import sys
import time
from pathlib import Path

HERE = Path(__file__).parent
WARM_UP, STEPS, ROUNDS = 2000, 3000, 5

def native(library, model):
    from native import Library

    c = Library(library)
    opened = c.model(model)
    outputs = c.outputs(opened)
    session, found, token, size = c.session(opened), (ctypes.c_float * outputs)(), (ctypes.c_uint32 * 1)(), ctypes.c_size_t

    def run(steps):
        for step in range(steps):
            token[0] = step % 60
            c.check(c.c.minrnn_step_tokens(session, None, size(0), token, size(1), found, size(outputs)))

    run(WARM_UP)
    before = time.process_time()
    run(STEPS)
    print((time.process_time() - before) * 1e6 / STEPS)


def main(library, model, dist, tools, *levels):
    levels = levels or ("plain", "avx2")
    module = ["node", str(HERE / "speed.mjs")]
    given = [dist, model, str(WARM_UP), str(STEPS)]
    hosts = {"node": [*module, "node", *given], "chromium": [*module, "chromium", *given, tools]}
    own = [sys.executable, __file__, "native", library, model]
    times = {name: [] for name in (*hosts, *levels)}
    for _ in range(ROUNDS):
        for name, found in times.items():
            command, environment = (hosts[name], os.environ) if name in hosts else (own, os.environ | {"MINRNN_SIMD": name})
            found.append(float(subprocess.run(command, env=environment, check=True, capture_output=True, text=True).stdout))
    middle = {name: statistics.median(found) for name, found in times.items()}
    for name, found in times.items():
        shares = ", ".join(f"{host} {middle[name] / middle[host]:.2f}" for host in hosts)
        line = f"{name:8} {middle[name]:7.1f} µs a token ({min(found):.1f} to {max(found):.1f}), {1e6 / middle[name]:7.0f} tokens/s"
        print(line if name in hosts else f"{line}; of its speed: {shares}")


if __name__ == "__main__":
    sys.path.insert(0, str(HERE))
    native(*sys.argv[2:]) if sys.argv[1] == "native" else main(*sys.argv[1:])
