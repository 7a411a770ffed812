"""The command `minrnn` for the scripts beside this one, and where it runs."""

import os
import platform
import subprocess
import time
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent


def minrnn(*args):
    """What the command wrote, and the seconds it took; the release build, unless MINRNN names another."""
    binary = os.environ.get("MINRNN", ROOT / "target/release/minrnn")
    began = time.time()
    told = subprocess.run([str(binary), *map(str, args)], capture_output=True, text=True)
    if told.returncode != 0:
        raise SystemExit(told.stderr)
    return told.stdout, time.time() - began


def processor():
    try:
        return next(line.split(":")[1].strip() for line in open("/proc/cpuinfo") if line.startswith("model name"))
    except (OSError, StopIteration):
        return platform.processor() or platform.machine()


def commit():
    return subprocess.run(["git", "rev-parse", "--short", "HEAD"], cwd=ROOT, capture_output=True, text=True).stdout.strip()
