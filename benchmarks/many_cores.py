#!/usr/bin/env python3
"""Predicts what a training step takes on more threads than this machine has cores, from its tasks; nothing here is a measurement but those tasks.

    many_cores.py [MINRNN] [--threads 2,4,8,16,32,64] [--precision f32] [--gb-per-s 20,60,200] [--iterations 5]

For each number of threads N, `minrnn bench tasks --threads N` does one step of `bench lm` cut for N threads on a single core, one task after the
other, and says what each took. Then N workers take the tasks of each region in their order, each as soon as it is free; what lies between regions is
one thread's. A region costs waking and waiting beside: WAKE + WAKE_EACH · N. What tasks take from each other (memory, caches, clock) is not in the
schedule: the bound by memory, the least number of bytes that the step moves over what memory gives, stands beside it, and the larger of both counts.
For 1 and 2 threads `bench lm` is measured, too.
"""

import argparse
import heapq
import json
import os
import subprocess
import sys
from pathlib import Path

# Milliseconds that a region takes beside its tasks: 4 µs with two threads, 40 µs with 64.
WAKE, WAKE_EACH = 0.003, 0.0006


def run(arguments, cores):
    done = subprocess.run(arguments, capture_output=True, text=True, preexec_fn=lambda: os.sched_setaffinity(0, cores))
    if done.returncode != 0:
        sys.exit(f"{' '.join(arguments)} ended with {done.returncode}: {done.stderr.strip()}")
    return json.loads(done.stdout.splitlines()[0])


def schedule(tasks, threads):
    """When the last of the tasks ends."""
    free = [0.0] * min(threads, len(tasks))
    for task in tasks:
        heapq.heapreplace(free, free[0] + task)
    return max(free)


def predict(step, threads):
    """The step's milliseconds, the share of the threads' time that is work, milliseconds of one thread alone, number of tasks."""
    alone = step["after_ms"] + sum(before for before, _ in step["regions"])
    ends = [schedule(tasks, threads) for _, tasks in step["regions"]]
    work = sum(sum(tasks) for _, tasks in step["regions"])
    waking = len(ends) * (WAKE + WAKE_EACH * threads)
    return alone + sum(ends) + waking, work / (threads * sum(ends)), alone, sum(len(tasks) for _, tasks in step["regions"])


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("minrnn", nargs="?", default=str(Path(__file__).resolve().parents[1] / "target/release/minrnn"))
    parser.add_argument("--threads", default="2,4,8,16,32,64")
    parser.add_argument("--gb-per-s", default="20,60,200")
    parser.add_argument("--precision", default="f32")
    parser.add_argument("--iterations", default="5")
    parser.add_argument("--mixer", default="min-gru")
    options = parser.parse_args()
    case = ["--mixer", options.mixer, "--precision", options.precision, "--iterations", options.iterations, "--warmup", "1"]
    cores = os.sched_getaffinity(0)
    one = {min(cores)}
    bandwidths = [float(number) for number in options.gb_per_s.split(",")]

    measured = {}
    for threads in (1, 2):
        if threads <= len(cores):
            line = run([options.minrnn, "bench", "lm", "--json", "--threads", str(threads), *case], cores)
            measured[threads] = line["median_ms"]
    rows, base, least = [], None, None
    for threads in [int(number) for number in options.threads.split(",")]:
        step = run([options.minrnn, "bench", "tasks", "--threads", str(threads), *case], one)
        time, balance, alone, tasks = predict(step, threads)
        least = step["least_bytes"]
        base = base or time * threads
        bounds = [least / bandwidth / 1e6 for bandwidth in bandwidths]
        found = f"{measured[threads]:.0f}" if threads in measured else ""
        cells = [threads, len(step["regions"]), tasks, f"{100 * balance:.0f} %", f"{alone:.1f}", f"{time:.0f}", f"{100 * base / (time * threads):.0f} %", found]
        rows.append(cells + [f"{max(time, bound):.0f}" for bound in bounds])
    print(f"A prediction for `bench lm` with {options.mixer}, {options.precision}: tasks timed one after the other on one core of {step['machine']},")
    print(f"{step['simd']}, commit {step['commit']}; a step moves at least {least / 1e9:.1f} GB.", end="")
    print(f" One thread, measured: {measured[1]:.0f} ms." if 1 in measured else "")
    print()
    head = ["threads", "regions", "tasks", "balance", "one thread alone, ms", "step, ms", "of ideal", "measured, ms"]
    head += [f"at {bandwidth:g} GB/s, ms" for bandwidth in bandwidths]
    print("| " + " | ".join(head) + " |")
    print("|" + "--:|" * len(head))
    for row in rows:
        print("| " + " | ".join(map(str, row)) + " |")


if __name__ == "__main__":
    main()
