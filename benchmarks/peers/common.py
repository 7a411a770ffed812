"""What all peers share: command line, timing, the JSON line, the count of operations, the oracle.

Letters: B batch, T time, d width of the layer's input, e recurrent width.
"""

import argparse
import itertools
import json
import os
import platform
import resource
import statistics
import subprocess
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import numpy as np

ROOT = Path(__file__).resolve().parents[2]
FIXTURE = ROOT / "crates/minrnn/tests/fixtures/block_min_gru.safetensors"
SLOW_MS = 60_000
COMMAND = [sys.executable, *sys.argv]
PROJECTIONS = {"min-gru": 2, "min-lstm": 3, "gru": 3, "lstm": 4}


@dataclass(frozen=True)
class Case:
    """One measurement."""

    impl: str
    mixer: str
    d_model: int
    d_hidden: int
    batch_size: int
    seq_len: int
    threads: int
    norm: str
    precision: str = "f32"
    device: str = "cpu"
    compiled: bool = False


Step = Callable[[], None]
Build = Callable[[Case], tuple[Step, dict]]


def run(
    bench: str,
    implementations: dict[str, tuple[str, ...]],
    build: Build,
    check: Callable[[], None],
    check_all: Callable[[], None] | None = None,
    **defaults,
) -> None:
    """The main function of every peer.

    `implementations` maps each name to the mixers it offers. `build(case)` returns a function doing one iteration of
    the work, its results complete when it returns, and further keys of the JSON line; one of them is `flop`.
    Each case runs in a process of its own, so that its peak memory is its own. `check` runs before every case, `check_all`, or
    else `check`, when no more than that is asked for.
    """
    args = parse(bench, implementations, defaults)
    cases = [
        Case(
            impl,
            mixer,
            args.d_model,
            args.d_hidden,
            args.batch_size,
            seq_len,
            args.threads,
            args.norm,
            args.precision,
            args.device,
            args.compile,
        )
        for impl, mixer, seq_len in itertools.product(args.impl, args.mixer, args.seq_len)
        if mixer in implementations[impl]
    ]
    if args.check:
        (check_all or check)()
        print(f"{Path(sys.argv[0]).name}: {', '.join(implementations)} agree with their references")
        return
    if not cases:
        sys.exit(f"no implementation of {args.mixer} among {args.impl}")
    if len(cases) > 1:
        for case in cases:
            chosen = ["--impl", case.impl, "--mixer", case.mixer, "--seq-len", str(case.seq_len)]
            subprocess.run([*COMMAND, *chosen], check=True)
        return
    if args.precision != "f32" and "torch_lm" not in sys.argv[0]:
        sys.exit(f"--precision {args.precision} is there for torch_lm.py only")
    if args.device != "cpu" and "torch" not in sys.argv[0]:
        sys.exit(f"--device {args.device} is there for the PyTorch peers only")
    limit_threads(args.threads)
    check()
    step, extra = build(cases[0])
    times = measure(step, args.warmup, args.iterations)
    print(json.dumps(line(bench, cases[0], times, extra)), flush=True)


def parse(bench: str, implementations: dict[str, tuple[str, ...]], defaults: dict) -> argparse.Namespace:
    def comma(convert: Callable) -> Callable:
        return lambda text: [convert(part) for part in text.split(",")]

    mixers = sorted({mixer for offered in implementations.values() for mixer in offered})
    description = f"Measures {bench}; one JSON line per case. Lists are comma-separated."
    parser = argparse.ArgumentParser(description=description)
    parser.add_argument("--impl", type=comma(str), default=list(implementations))
    parser.add_argument("--mixer", type=comma(str), default=mixers, help=",".join(mixers))
    parser.add_argument("--d-model", type=int)
    parser.add_argument("--d-hidden", type=int)
    parser.add_argument("--batch-size", type=int)
    parser.add_argument("--seq-len", type=comma(int))
    parser.add_argument("--norm", choices=("layer", "rms"), help="normalisation of the language model")
    parser.add_argument("--precision", choices=("f32", "bf16"), help="bf16: automatic mixed precision (torch_lm.py)")
    parser.add_argument("--device", choices=("cpu", "cuda"), help="cuda: an NVIDIA card (PyTorch)")
    parser.add_argument("--threads", type=int, default=len(os.sched_getaffinity(0)))
    parser.add_argument("--compile", action="store_true", help="torch.compile (the mixers of whole_layer.py)")
    parser.add_argument("--check", action="store_true", help="only compare all implementations with their references")
    parser.add_argument("--warmup", type=int, default=1)
    parser.add_argument("--iterations", type=int, default=5)
    parser.set_defaults(norm="layer", precision="f32", device="cpu", **defaults)
    args = parser.parse_args()
    for impl in args.impl:
        if impl not in implementations:
            parser.error(f"unknown --impl {impl}: expected some of {', '.join(implementations)}")
    return args


def limit_threads(threads: int) -> None:
    """Leaves this process the first `threads` cores; thread pools made later take their size from that."""
    cores = sorted(os.sched_getaffinity(0))
    if threads < len(cores):
        os.sched_setaffinity(0, cores[:threads])


def measure(step: Step, warmup: int, iterations: int) -> list[float]:
    """Milliseconds of each iteration; of one only, where the last of the warm-up took longer than `SLOW_MS`."""

    def milliseconds() -> float:
        start = time.perf_counter()
        step()
        return 1e3 * (time.perf_counter() - start)

    warm = [milliseconds() for _ in range(warmup)]
    if warm and warm[-1] > SLOW_MS:
        iterations = 1
    return [milliseconds() for _ in range(iterations)]


def line(bench: str, case: Case, times: list[float], extra: dict) -> dict:
    """The JSON line; the same keys as `minrnn bench --json`."""
    median = statistics.median(times)
    flop = extra.pop("flop")
    return {
        "bench": bench,
        "impl": case.impl + ("+compile" if case.compiled else ""),
        "mixer": case.mixer,
        "d_model": case.d_model,
        "d_hidden": case.d_hidden,
        "batch_size": case.batch_size,
        "seq_len": case.seq_len,
        "precision": case.precision,
        "threads": case.threads,
        "machine": machine(),
        "commit": commit(),
        "median_ms": round(median, 4),
        "min_ms": round(min(times), 4),
        "tokens_per_s": round(case.batch_size * case.seq_len / median * 1e3, 1),
        "gflop_per_s": round(flop / median / 1e6, 3),
        "peak_mib": round(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024, 1),
        "iterations": len(times),
        **extra,
    }


def machine() -> str:
    """Processor and number of cores, as `minrnn bench` prints them."""
    model = platform.processor() or platform.machine()
    try:
        lines = Path("/proc/cpuinfo").read_text().splitlines()
        model = next(text.split(":", 1)[1].strip() for text in lines if text.startswith("model name"))
    except (OSError, StopIteration):
        pass
    return f"{model}, {os.cpu_count()} cores"


def commit() -> str:
    """The repository's short commit, with `-dirty` when files differ from it."""
    command = ["git", "-C", str(ROOT), "describe", "--always", "--dirty", "--exclude=*"]
    try:
        return subprocess.run(command, capture_output=True, text=True, check=True).stdout.strip()
    except (OSError, subprocess.CalledProcessError):
        return "unknown"


def layer_flop(case: Case) -> int:
    """Operations of the matrix products of one layer, forward and backward (three times the forward)."""
    inputs = case.d_model if case.mixer.startswith("min-") else case.d_model + case.d_hidden
    return 3 * 2 * case.batch_size * case.seq_len * PROJECTIONS[case.mixer] * case.d_hidden * inputs


def sigmoid(x: np.ndarray) -> np.ndarray:
    return 0.5 * (1 + np.tanh(0.5 * x))


def reference(mixer: str, preact: np.ndarray, h0: np.ndarray) -> np.ndarray:
    """h [B, T, e] of minGRU or minLSTM by the plain loop, from [B, T, 2e] (candidate, z) or 3e (candidate, f, i)."""
    value, *gates = np.split(preact.astype(np.float64), PROJECTIONS[mixer], axis=-1)
    take = sigmoid(gates[-1])
    if mixer == "min-lstm":
        take = take / (take + sigmoid(gates[0]))
    value = np.where(value >= 0, value + 0.5, sigmoid(value))
    h, steps = h0.astype(np.float64), []
    for t in range(preact.shape[1]):
        h = (1 - take[:, t]) * h + take[:, t] * value[:, t]
        steps.append(h)
    return np.stack(steps, axis=1)


def check_cell(impl: str, mixer: str, cell: Callable[[np.ndarray, np.ndarray], np.ndarray]) -> None:
    """Stops unless `cell(preact, h0)` agrees with the plain loop."""
    rng = np.random.default_rng(0)
    preact = 2 * rng.standard_normal((2, 33, PROJECTIONS[mixer] * 5)).astype(np.float32)
    h0 = rng.random((2, 5)).astype(np.float32)
    require_close(f"{impl} {mixer}", cell(preact, h0), reference(mixer, preact, h0))


def require_close(name: str, found: np.ndarray, expected: np.ndarray, tolerance: float = 1e-4) -> None:
    error = float(np.abs(found - expected).max())
    if not error < tolerance:
        sys.exit(f"{name} differs from the reference by {error:.1e}: expected below {tolerance:.0e}")
