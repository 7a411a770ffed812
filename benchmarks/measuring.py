"""Running a program that prints JSON lines, and merging the lines of several rounds; shared by `compare.py` and `mixer_table.py`."""

import importlib.util
import json
import re
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

from peers.packages import package

HERE = Path(__file__).resolve().parent


@dataclass(frozen=True)
class Peer:
    """A script, what it is to measure, and the framework it needs."""

    script: str
    impl: str
    mixer: str
    precision: str = "f32"

    @property
    def name(self) -> str:
        return f"{self.impl} {self.mixer}" + (f" {self.precision}" if self.precision != "f32" else "")

    @property
    def installed(self) -> bool:
        framework = "jax" if self.script.startswith("jax") else "torch"
        needs = (framework, package(self.impl), "numpy", "safetensors")
        return all(importlib.util.find_spec(module) for module in needs if module)

    def command(self, *flags: str) -> list[str]:
        chosen = ["--impl", self.impl, "--mixer", self.mixer, "--precision", self.precision]
        return [sys.executable, str(HERE / "peers" / self.script), *flags, *chosen]


def measure(command: list[str]) -> list[dict] | str:
    """The JSON lines a program prints, or why there are none."""
    done = subprocess.run(command, capture_output=True, text=True)
    if done.returncode != 0:
        reason = done.stderr.strip().splitlines()
        return f"failed ({done.returncode}): {reason[-1] if reason else 'no message'}"
    return [json.loads(text) for text in done.stdout.splitlines() if text.startswith("{")]


def merge(rounds: list[dict]) -> dict:
    """The run whose median is in the middle, with the least time and the highest peak of all rounds."""
    middle = sorted(rounds, key=lambda line: line["median_ms"])[(len(rounds) - 1) // 2]
    least, peak = min(line["min_ms"] for line in rounds), max(line["peak_mib"] for line in rounds)
    return middle | {"min_ms": least, "peak_mib": peak, "rounds": len(rounds)}


def record(lines: list[dict]) -> None:
    """Appends the lines to the record of their machine."""
    for line in lines:
        slug = re.sub(r"[^a-z0-9]+", "-", line["machine"].lower()).strip("-")
        path = HERE / "records" / f"{slug}.jsonl"
        path.parent.mkdir(exist_ok=True)
        with path.open("a") as file:
            file.write(json.dumps(line) + "\n")
