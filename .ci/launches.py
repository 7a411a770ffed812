#!/usr/bin/env python3
"""Counts the kernels that a training step of a language model launches, from two logs of CubeCL (CUBECL_DEBUG_LOG,
CUBECL_DEBUG_OPTION=profile-full), the second of more steps than the first.

    launches.py SHORT LONG MOST

What both have alike (the choice of kernels for products) falls out; every step looks up its tokens once. Prints the kernels by how often each is launched; exit code 1 when a step launches more than MOST.
"""

import collections
import re
import sys


def kernels(path):
    found = collections.Counter()
    for line in open(path):
        launch = re.match(r"\| [0-9.]+(?:ns|µs|ms|s) +\| ([^ {<]*)", line)
        # What CubeCL measures of the device when it first meets it is no part of a step.
        if launch and "::throughput::" not in launch.group(1):
            found[launch.group(1).rstrip(":")] += 1
    return found


def main():
    if len(sys.argv) != 4:
        sys.exit(__doc__)
    more = kernels(sys.argv[2])
    more.subtract(kernels(sys.argv[1]))
    steps = sum(count for name, count in more.items() if name.endswith("embedding::forward::Forward"))
    if steps < 1:
        sys.exit(f"error: '{sys.argv[2]}' has no more steps than '{sys.argv[1]}'")
    for name, count in more.most_common():
        if count:
            print(f"{count / steps:8.1f}  {name}")
    total = sum(more.values()) / steps
    print(f"{total:8.1f}  launches a step, over {steps} steps")
    sys.exit(0 if total <= float(sys.argv[3]) else f"error: a step makes {total:.1f} launches, expected at most {sys.argv[3]}")


main()
