"""The bare recurrence h = a h + b on an NVIDIA card, forward, and forward and backward: the paper's log-space scan in PyTorch, and a
scan in Triton. One JSON line per case and pass, with the keys of `minrnn bench scan --json`.

The Triton kernel walks through time in tiles, with `tl.associative_scan` inside a tile and the state carried between tiles; where rows are
few (batch 1), that leaves most of the card idle, as it does for any kernel that does not cut time.
"""

import argparse
import json
import statistics
import sys
import time

import torch
import triton
import triton.language as tl
from common import commit

SHAPES = [(64, 4096, 128), (8, 8192, 1536), (1, 1_048_576, 64)]
BYTES = {"forward": 12, "forward+backward": 32}
LAUNCHES = 10


@triton.jit
def combine(a0, b0, a1, b1):
    return a0 * a1, b0 * a1 + b1


@triton.jit
def forward_kernel(a, b, h, seq_len, width, TILE: tl.constexpr, LANES: tl.constexpr):
    row, lanes = tl.program_id(1), tl.program_id(0) * LANES + tl.arange(0, LANES)
    live = lanes < width
    state = tl.zeros([LANES], tl.float32)
    last = tl.arange(0, TILE)[:, None] == TILE - 1
    for start in range(0, seq_len, TILE):
        t = start + tl.arange(0, TILE)
        at = (row * seq_len + t)[:, None] * width + lanes[None, :]
        mask = (t < seq_len)[:, None] & live[None, :]
        x = tl.load(a + at, mask, 1.0)
        y = tl.load(b + at, mask, 0.0)
        p, y = tl.associative_scan((x, y), 0, combine)
        y += p * state[None, :]
        tl.store(h + at, y, mask)
        state = tl.sum(tl.where(last, y, 0.0), 0)


@triton.jit
def backward_kernel(a, h, d_h, d_a, d_b, seq_len, width, TILE: tl.constexpr, LANES: tl.constexpr):
    row, lanes = tl.program_id(1), tl.program_id(0) * LANES + tl.arange(0, LANES)
    live = lanes < width
    state = tl.zeros([LANES], tl.float32)
    last = tl.arange(0, TILE)[:, None] == TILE - 1
    for start in range(0, seq_len, TILE):
        t = seq_len - 1 - start - tl.arange(0, TILE)
        at = (row * seq_len + t)[:, None] * width + lanes[None, :]
        mask = (t >= 0)[:, None] & live[None, :]
        # G_t = d_h_t + a_(t+1) G_(t+1)
        after = tl.load(a + at + width, mask & (t + 1 < seq_len)[:, None], 1.0)
        p, g = tl.associative_scan((after, tl.load(d_h + at, mask, 0.0)), 0, combine)
        g += p * state[None, :]
        before = tl.load(h + at - width, mask & (t > 0)[:, None], 0.0)
        tl.store(d_a + at, g * before, mask)
        tl.store(d_b + at, g, mask)
        state = tl.sum(tl.where(last, g, 0.0), 0)


def triton_passes(a, b, d_h):
    batch, seq_len, width = a.shape
    grid = (triton.cdiv(width, 32), batch)
    h, d_a, d_b = (torch.empty_like(a) for _ in range(3))

    def forward():
        forward_kernel[grid](a, b, h, seq_len, width, TILE=128, LANES=32, num_warps=8)
        return h

    def both():
        forward()
        backward_kernel[grid](a, h, d_h, d_a, d_b, seq_len, width, TILE=128, LANES=32, num_warps=8)
        return d_a, d_b

    return forward, both


def log_passes(a, b, d_h):
    log_a, log_b = a.log().requires_grad_(), b.log().requires_grad_()

    def forward():
        total = log_a.cumsum(dim=1)
        return (total + (log_b - total).logcumsumexp(dim=1)).exp()

    def both():
        return torch.autograd.grad(forward(), [log_a, log_b], d_h)

    return forward, both


def check(passes, exact):
    """Stops unless both passes agree with a loop in float64; `exact` where a and b themselves are the leaves."""
    a, b, d_h = (0.1 + 0.8 * torch.rand(2, 300, 40) for _ in range(3))
    leaves = [x.double().requires_grad_() for x in (a, b)]
    state, steps = torch.zeros(2, 40, dtype=torch.float64), []
    for t in range(a.shape[1]):
        state = leaves[0][:, t] * state + leaves[1][:, t]
        steps.append(state)
    expected = torch.stack(steps, 1)
    grads = torch.autograd.grad(expected, leaves, d_h.double())
    forward, both = passes(a, b, d_h)
    found = [forward(), *(both() if exact else [])]
    for value, wanted in zip(found, [expected, *grads]):
        if not (value.double() - wanted).abs().max() < 1e-3:
            sys.exit("a scan differs from the loop")


def milliseconds(work):
    torch.cuda.synchronize()
    start = time.perf_counter()
    for _ in range(LAUNCHES):
        work()
    torch.cuda.synchronize()
    return 1e3 * (time.perf_counter() - start) / LAUNCHES


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--iterations", type=int, default=10)
    args = parser.parse_args()
    torch.set_default_device("cuda")
    implementations = {"torch-log-scan": (log_passes, False), "triton-scan": (triton_passes, True)}
    for passes, exact in implementations.values():
        check(passes, exact)
    for shape in SHAPES:
        a, b, d_h = (0.1 + 0.8 * torch.rand(shape) for _ in range(3))
        target = torch.empty_like(a)
        copies = [milliseconds(lambda: target.copy_(a)) for _ in range(args.iterations + 2)][2:]
        for name, (passes, _) in implementations.items():
            forward, both = passes(a, b, d_h)
            for kind, work in (("forward", torch.no_grad()(forward)), ("forward+backward", both)):
                times = [milliseconds(work) for _ in range(args.iterations + 2)][2:]
                median = statistics.median(times)
                speed = lambda size, ms: round(size * a.numel() / ms / 1e6, 2)
                line = {
                    "bench": "scan",
                    "impl": name,
                    "pass": kind,
                    "batch_size": shape[0],
                    "seq_len": shape[1],
                    "d_hidden": shape[2],
                    "machine": torch.cuda.get_device_name(),
                    "commit": commit(),
                    "median_ms": round(median, 4),
                    "min_ms": round(min(times), 4),
                    "gb_per_s": speed(BYTES[kind], median),
                    "copy_gb_per_s": speed(8, statistics.median(copies)),
                    "version": f"torch {torch.__version__}, triton {triton.__version__}",
                }
                print(json.dumps(line), flush=True)


if __name__ == "__main__":
    main()
