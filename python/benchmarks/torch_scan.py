"""Times the layers and operators of minrnn.torch beside minGRU-pytorch's, PyTorch's GRU and a Heinsen scan, and the cost of a session's step.

    python python/benchmarks/torch_scan.py [--rounds N] [--threads N] [--only NAME …] [--batch N]

Every contender takes its turn in each round; printed are median and minimum over the rounds, in milliseconds, and the ratio of medians to ours.
"""

import argparse
import os
import pathlib
import platform
import statistics
import subprocess
import sys
import time

ROOT = pathlib.Path(__file__).resolve().parents[2]


def machine():
    try:
        with open("/proc/cpuinfo") as file:
            return next(line.split(":")[1].strip() for line in file if line.startswith("model name"))
    except (OSError, StopIteration):
        return platform.processor()


def measured(contenders, rounds):
    """Median and minimum of each, in seconds, taking turns."""
    for run in contenders.values():
        run()
    times = {name: [] for name in contenders}
    for _ in range(rounds):
        for name, run in contenders.items():
            begin = time.perf_counter()
            run()
            times[name].append(time.perf_counter() - begin)
    return {name: (statistics.median(each), min(each)) for name, each in times.items()}


def shown(title, times):
    first = next(iter(times.values()))[0]
    print(f"\n{title}")
    for name, (median, least) in times.items():
        print(f"  {name:<28}{median * 1e3:>10.2f} ms median{least * 1e3:>10.2f} ms minimum{median / first:>8.2f} x ours", flush=True)


def trained(module, x, out=lambda answer: answer):
    def run():
        module.zero_grad(set_to_none=True)
        x.grad = None
        out(module(x)).sum().backward()

    return run


def layers(torch, batch, steps, dim, dim_inner, rounds, with_gru=True):
    from minGRU_pytorch.minGRU import minGRU
    from minrnn.torch import MinGRU

    x = torch.randn(batch, steps, dim, requires_grad=True)
    factor = dim_inner / dim
    contenders = {
        "minrnn.torch.MinGRU": trained(MinGRU(dim, factor, proj_out=False), x),
        "minGRU-pytorch": trained(minGRU(dim, factor, proj_out=False), x),
    }
    if with_gru:
        contenders["torch.nn.GRU"] = trained(torch.nn.GRU(dim, dim_inner, batch_first=True), x, lambda answer: answer[0])
    shown(f"layer {dim} -> {dim_inner}, T {steps}, batch {batch}, forward + backward", measured(contenders, rounds))


def scan(torch, rounds, backward):
    from minGRU_pytorch.minGRU import heinsen_associative_scan_log
    from minrnn.torch import linear_scan

    shape = (64, 4096, 128)
    a, b = torch.rand(shape) * 0.98 + 0.01, torch.rand(shape) + 0.01
    log_a, log_b = a.log(), b.log()

    def of(function, *inputs):
        def run():
            leaves = [tensor.detach().requires_grad_(backward) for tensor in inputs]
            h = function(*leaves)
            if backward:
                h.sum().backward()

        return run

    contenders = {"minrnn.torch.linear_scan": of(linear_scan, a, b), "Heinsen scan (logarithms given)": of(heinsen_associative_scan_log, log_a, log_b)}
    shown(f"linear scan {shape}, forward{' + backward' if backward else ''}", measured(contenders, rounds))


def language_model(torch, rounds):
    import copy

    from minGRU_pytorch.minLM import minLM
    from minrnn.torch import MinGRU

    theirs = minLM(num_tokens=256, dim=256, depth=4)
    ours = copy.deepcopy(theirs)
    for parts in ours.layers:
        layer = MinGRU(256, expansion_factor=1.5)
        layer.load_state_dict(parts[2].state_dict())
        parts[2] = layer
    tokens = torch.randint(0, 256, (8, 513))

    def of(model):
        def run():
            model.zero_grad(set_to_none=True)
            model(tokens, return_loss=True).backward()

        return run

    shown("minLM, dim 256, depth 4, T 512, batch 8, forward + backward", measured({"with MinGRU": of(ours), "minGRU-pytorch": of(theirs)}, rounds))


def session():
    import numpy as np

    import minrnn

    for name, step in (("shakespeare", 1), ("sensors", np.array([0.3]))):
        model = minrnn.load(ROOT / "models" / f"{name}.minrnn")
        sessions = {"step": model.session(threads=1), "step of what the model sees": model.session(threads=1, table=False)}
        for label, one in sessions.items():
            run = one.step
            best = []
            for _ in range(200):
                begin = time.perf_counter()
                for _ in range(50):
                    run(step)
                best.append((time.perf_counter() - begin) / 50)
            print(f"  {name}, {label}: {statistics.median(best) * 1e6:.2f} us median, {min(best) * 1e6:.2f} us minimum")


def importing():
    def imported(program):
        return min(
            float(subprocess.run([sys.executable, "-c", f"import time; t = time.perf_counter(); {program}; print(time.perf_counter() - t)"], capture_output=True, text=True, check=True).stdout)
            for _ in range(5)
        )

    print(f"\nimport: numpy {imported('import numpy') * 1e3:.0f} ms, minrnn after it {imported('import numpy; t = time.perf_counter(); import minrnn') * 1e3:.0f} ms")
    print("steps of a session:")


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=int, default=7)
    parser.add_argument("--threads", type=int, default=os.cpu_count())
    parser.add_argument("--batch", type=int, default=64, help="of the long layer, which needs about 20 GB of memory at 64 in minGRU-pytorch")
    parser.add_argument("--only", nargs="*", default=["session", "issue", "long", "scan", "model"])
    arguments = parser.parse_args()
    commit = subprocess.run(["git", "rev-parse", "--short", "HEAD"], cwd=ROOT, capture_output=True, text=True).stdout.strip()
    print(f"{machine()}, {os.cpu_count()} cores, load {os.getloadavg()[0]:.1f}; {arguments.threads} threads, {arguments.rounds} rounds, commit {commit}")
    if "session" in arguments.only:
        importing()
        session()
    if set(arguments.only) <= {"session"}:
        return
    import torch

    torch.manual_seed(0)
    torch.set_num_threads(arguments.threads)
    print(f"\ntorch {torch.__version__}")
    if "issue" in arguments.only:
        layers(torch, 64, 1000, 10, 100, arguments.rounds)
    if "scan" in arguments.only:
        for backward in (False, True):
            scan(torch, arguments.rounds, backward)
    if "model" in arguments.only:
        language_model(torch, arguments.rounds)
    if "long" in arguments.only:
        layers(torch, arguments.batch, 4096, 256, 512, max(3, arguments.rounds // 2), with_gru=False)


if __name__ == "__main__":
    main()
