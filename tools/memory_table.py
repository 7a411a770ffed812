#!/usr/bin/env python3
"""Compares the memory that a training is estimated to need with the most that it has had: the table of docs/memory.md.

    cargo build --release --workspace
    python3 tools/memory_table.py target/release/minrnn

Each row is the real binary: `minrnn inspect --json` tells the estimate, `minrnn train` makes an evaluation and a few updates, is stopped
with SIGINT, writes its checkpoint and ends; what it had at the most is the maximum resident set size that the system reports of it
(getrusage). How many gaps the allocator leaves differs from run to run: a row that is further off than the tolerance is measured again,
and the middle of what was found is compared. Texts and tables are made here from a fixed seed. Needs Linux and 3 GB of memory; ends with 1
where a row is further off even so.
"""
import argparse
import json
import os
import random
import signal
import subprocess
import sys
import tempfile
import time
from pathlib import Path

UPDATES = 3
TOLERANCE = 0.15
# Number of measurements of a row whose first one is off by more than that.
AGAIN = 6
MIXERS = ["min-gru", "mamba", "attention", "m-lstm"]
WHOLE_BLOCKS = {"mamba", "m-lstm"}
# Settings that are the same in all rows of a task.
HIDDEN = {"max_seq_len", "conv", "copy_tokens", "initial_state"}


def cases():
    """Rows as (task, settings)."""
    for mixer in MIXERS:
        common = {"mixer": mixer, "max_seq_len": 4096, "ff": "none" if mixer in WHOLE_BLOCKS else "mlp"}
        text = {"conv": "false", "seq_len": 256}
        yield "text", common | text | {"d_model": 128, "n_layers": 4, "batch_size": 16}
        yield "text", common | text | {"d_model": 256, "n_layers": 6, "batch_size": 32}
        table = {"batch_size": 32, "d_model": 96}
        yield "classify", common | table | {"n_layers": 3}
        yield "classify", common | table | {"d_model": 256, "n_layers": 5}
        copying = {"copy_tokens": 16, "expansion": 2, "initial_state": "zero"}
        yield "copying", common | copying | {"copy_length": 256, "d_model": 64, "n_layers": 3, "batch_size": 32}
        yield "copying", common | copying | {"copy_length": 1024, "d_model": 128, "n_layers": 3, "batch_size": 32}
    text = {"mixer": "min-gru", "d_model": 256, "n_layers": 6, "batch_size": 16, "seq_len": 256, "conv": "false"}
    yield "text", text | {"checkpoint_blocks": "true"}
    yield "text", text | {"accumulation": 2}
    yield "text", text | {"conv": "true", "precision": "bf16"}
    yield "text", text | {"d_model": 512, "n_layers": 8, "batch_size": 1, "seq_len": 64}
    yield "text", text | {"d_model": 64, "n_layers": 2, "tokenizer": "bpe", "bpe_vocab_size": 8192}


def write_data(folder):
    """A text of words and a table of four classes of sequences."""
    rng = random.Random(1)
    word = lambda: "".join(rng.choice("abcdefghijklmnopqrstuvwxyz") for _ in range(rng.randint(2, 9)))
    words = [word() for _ in range(2000)]
    lines = (" ".join(rng.choice(words) for _ in range(8)) + ".\n" for _ in range(30000))
    (folder / "text.txt").write_text("".join(lines))
    rows = ["sequence,a,b,c,class\n"]
    for sequence in range(200):
        kind = rng.randint(0, 3)
        rows += [f"{sequence},{rng.gauss(kind, 1):.4f},{rng.gauss(0, 1):.4f},{rng.gauss(-kind, 1):.4f},c{kind}\n" for _ in range(200)]
    (folder / "table.csv").write_text("".join(rows))


def arguments(task, settings, folder):
    """The experiment with its data, for `minrnn train`, and the settings of a run that is stopped."""
    text, table = str(folder / "text.txt"), str(folder / "table.csv")
    command = {
        "text": ["text", "--data", text],
        "classify": ["classify", "--data", table, "--group", "sequence", "--target", "class"],
        "copying": ["selective-copying"],
    }[task]
    rare = 10**6
    run = {"eval_iterations": 1, "eval_every": rare, "checkpoint_every": rare, "max_iterations": rare}
    return command + [flag for key, value in (run | settings).items() for flag in ("--set", f"{key}={value}")]


def estimate(binary, run):
    """Bytes that the training of `run` is estimated to need."""
    found = subprocess.run([binary, "inspect", str(run), "--json"], check=True, capture_output=True, text=True)
    return json.loads(found.stdout)["memory_of_training"]["bytes"]


def measure(binary, task, settings, folder):
    """Estimate and measurement of one row, in bytes."""
    run = Path(tempfile.mkdtemp(dir=folder)) / "run"
    process = subprocess.Popen([binary, "train", *arguments(task, settings, folder), "--out", str(run)], stderr=subprocess.PIPE, text=True)
    log = run / "metrics.jsonl"
    while os.waitid(os.P_PID, process.pid, os.WEXITED | os.WNOHANG | os.WNOWAIT) is None:
        if log.exists() and log.read_text().count('"train"') >= UPDATES:
            process.send_signal(signal.SIGINT)
            break
        time.sleep(0.1)
    _, status, usage = os.wait4(process.pid, 0)
    process.returncode = os.waitstatus_to_exitcode(status)
    told = process.stderr.read()
    process.stderr.close()
    # A stopped training ends with 1, and says that it saved.
    if process.returncode != 0 and not (process.returncode == 1 and "everything is saved" in told):
        sys.exit(f"{task} {settings}: {told}")
    return estimate(binary, run), usage.ru_maxrss * 1024


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("binary", help="the minrnn command")
    binary = str(Path(parser.parse_args().binary).resolve())
    worst = 0.0
    print("| task | settings | estimated, MiB | measured, MiB | off by |\n|---|---|---|---|---|")
    with tempfile.TemporaryDirectory() as folder:
        write_data(Path(folder))
        for task, settings in cases():
            told, first = measure(binary, task, settings, Path(folder))
            all_found = [first]
            if abs(told / first - 1) > TOLERANCE:
                all_found += [measure(binary, task, settings, Path(folder))[1] for _ in range(AGAIN)]
            least, most = min(all_found), max(all_found)
            off = told / ((least + most) / 2) - 1
            worst = max(worst, abs(off))
            found = f"{least / 2**20:.0f}" if least == most else f"{least / 2**20:.0f} to {most / 2**20:.0f}"
            shown = ", ".join(f"{key}={value}" for key, value in settings.items() if key not in HIDDEN or value == "true")
            print(f"| {task} | {shown} | {told / 2**20:.0f} | {found} | {100 * off:+.0f} % |", flush=True)
    print(f"\nlargest difference {100 * worst:.0f} %", file=sys.stderr)
    sys.exit(worst > TOLERANCE)


if __name__ == "__main__":
    main()
