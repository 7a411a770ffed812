#!/usr/bin/env python3
"""Predicts what the recurrences take on a GPU, from bytes, instructions and launches; beside what was measured, where it was.

    gpu_prediction.py [KERNELS [SCAN]]

KERNELS is the table of `.ci/cuda_kernels.py` (default: results/gpu/kernels.md), SCAN the lines of `minrnn bench scan --json`. The larger of two bounds
counts: memory at its full rate, and every scheduler issuing an instruction a cycle. Neither is ever quite reached.
"""

import json
import sys
from math import ceil

# Multiprocessors, their clock in GHz, memory in GB/s, and the architecture whose machine code is used. From NVIDIA's data sheets.
DEVICES = {"H100 SXM": (132, 1.755, 3350, "sm_90"), "RTX 4090": (128, 2.52, 1008, "sm_80")}
SCHEDULERS, LANES, STEPS = 4, 32, 8
# How the recurrences are cut: crates/minrnn/src/ops/gpu/recurrence/mod.rs.
ENOUGH, WANTED, CHUNK_TILES = 160, 512, 4
SLICES = {"forward": 16, "backward": 8}
# Time of an empty launch on a device, in µs.
LAUNCH = 2.5
# Numbers read and written for each step and channel, and those read by the pass over chunks.
TRAFFIC = {("linear", "forward"): (3, 2), ("linear", "backward"): (5, 2), ("min-gru", "forward"): (3, 2), ("min-gru", "backward"): (6, 3)}
CASES = [("linear", "f32"), ("min-gru", "f32"), ("min-gru", "bf16")]
SHAPES = [(64, 4096, 128), (8, 8192, 1536), (1, 1048576, 64)]


def per_step(path):
    """Name and architecture of each kernel to its registers and its instructions per step."""
    found = {}
    for line in open(path):
        cells = [cell.strip() for cell in line.strip().strip("|").split("|")]
        if len(cells) == 6 and cells[1].startswith("sm_"):
            found[cells[0].strip("`"), cells[1]] = int(cells[2]), int(cells[5])
    return found


def chunks(shape, direction, channels):
    batch, steps, width = shape
    tile = min(SLICES[direction], 1 << (ceil(steps / STEPS) - 1).bit_length()) * STEPS
    whole = batch * ceil(width / channels / LANES)
    wanted = 1 if whole >= ENOUGH else max(1, min(WANTED // whole, steps // (CHUNK_TILES * tile)))
    length = ceil(ceil(steps / wanted) / tile) * tile
    return ceil(steps / length)


def predict(kernels, device, cell, form, direction, shape):
    """Microseconds by memory, by instructions, and of launches."""
    multiprocessors, clock, bandwidth, architecture = DEVICES[device]
    size, channels = (2, 2) if form == "bf16" else (4, 1)
    elements = shape[0] * shape[1] * shape[2]
    cut = chunks(shape, direction, channels) > 1
    whole, again = TRAFFIC[cell, direction]
    memory = elements * size * (whole + again * cut) / bandwidth / 1e3
    instructions = kernels[f"{cell} {direction} {form}", architecture][1]
    if cut:
        instructions += kernels[f"{cell} {direction} over chunks {form}", architecture][1]
    arithmetic = elements * instructions / LANES / (multiprocessors * SCHEDULERS * clock * 1e3)
    return memory, arithmetic, LAUNCH * (3 if cut else 1)


def main():
    kernels = per_step(sys.argv[1] if len(sys.argv) > 1 else "results/gpu/kernels.md")
    measured = {}
    for line in open(sys.argv[2]) if len(sys.argv) > 2 else []:
        record = json.loads(line)
        measured[record["batch_size"], record["seq_len"], record["d_hidden"], record["pass"]] = 1e3 * record["median_ms"], record["machine"]
    head = ["recurrence", "B, T, E", "pass"]
    head += [f"{device}: memory, instructions → µs" for device in DEVICES] + (["measured µs"] if measured else [])
    print("| " + " | ".join(head) + " |\n|" + "---|" * len(head))
    for cell, form in CASES:
        for shape in SHAPES:
            both = {device: 0.0 for device in DEVICES}
            for direction in SLICES:
                cells = [f"{cell}, {form}", ", ".join(map(str, shape)), direction]
                for device in DEVICES:
                    memory, arithmetic, launches = predict(kernels, device, cell, form, direction, shape)
                    total = max(memory, arithmetic) + launches
                    both[device] += total
                    cells.append(f"{memory:.0f}, {arithmetic:.0f} → **{total:.0f}**")
                if measured:
                    found = measured.get((*shape, direction)) if (cell, form) == ("linear", "f32") else None
                    cells.append(f"{found[0]:.0f}" if found else "")
                print("| " + " | ".join(cells) + " |")
            found = measured.get((*shape, "forward+backward")) if (cell, form) == ("linear", "f32") else None
            if found:
                print(f"| {cell}, {form} | {', '.join(map(str, shape))} | both | " + " | ".join(f"**{us:.0f}**" for us in both.values()) + f" | {found[0]:.0f} |")


main()
