"""Steps of the text model in node beside those of the C library, in turns, by the processor time they take.

    python3 web/tests/speed.py LIBRARY MODEL DIST [LEVEL …]     levels of MINRNN_SIMD, by default plain and avx2
"""

import ctypes
import os
import statistics
import subprocess
import sys
import time
from pathlib import Path

HERE = Path(__file__).parent
WARM_UP, STEPS, ROUNDS = 1500, 1500, 5

NODE = """
import { readFileSync } from "node:fs";
import { pathToFileURL } from "node:url";
const [module, model, warmUp, steps] = process.argv.slice(1);
const { load } = await import(pathToFileURL(module));
const session = (await load(readFileSync(model))).session();
const run = (n) => { for (let i = 0; i < n; i++) session.step(i % 60); };
run(Number(warmUp));
// What compiles the module in the background has time to end.
await new Promise((ready) => setTimeout(ready, 500));
const before = process.cpuUsage();
run(Number(steps));
const { user, system } = process.cpuUsage(before);
console.log((user + system) / Number(steps));
"""


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


def main(library, model, dist, *levels):
    levels = levels or ("plain", "avx2")
    node = ["node", "--input-type=module", "-e", NODE, str(Path(dist, "minrnn.js").resolve()), model, str(WARM_UP), str(STEPS)]
    own = [sys.executable, __file__, "native", library, model]
    times = {"node": []} | {level: [] for level in levels}
    for _ in range(ROUNDS):
        for name, found in times.items():
            command, environment = (node, os.environ) if name == "node" else (own, os.environ | {"MINRNN_SIMD": name})
            found.append(float(subprocess.run(command, env=environment, check=True, capture_output=True, text=True).stdout))
    module = statistics.median(times["node"])
    for name, found in times.items():
        middle = statistics.median(found)
        print(f"{name:8} {middle:7.1f} µs a token ({min(found):.1f} to {max(found):.1f}), {1e6 / middle:7.0f} tokens/s; module / this: {middle / module:.2f}")


if __name__ == "__main__":
    sys.path.insert(0, str(HERE))
    native(*sys.argv[2:]) if sys.argv[1] == "native" else main(*sys.argv[1:])
