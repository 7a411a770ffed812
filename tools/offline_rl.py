#!/usr/bin/env python3
"""Policies learned from recorded episodes of MuJoCo, on data of our own: what the paper's Table 3 asks, without D4RL's files.

    python -m venv v && v/bin/pip install mujoco==3.17 gymnasium[mujoco]==1.4 stable-baselines3==2.9.2 torch
    cargo build --release
    PATH=v/bin:$PATH python/build.sh && v/bin/pip install target/wheels/minrnn-*.whl      # docs/python.md
    v/bin/python tools/offline_rl.py collect FOLDER HalfCheetah
    v/bin/python tools/offline_rl.py learn FOLDER HalfCheetah [--only min-gru] [--seeds 1]
    v/bin/python tools/offline_rl.py page

`collect` trains an agent by SAC until it is of medium strength; FOLDER then has what it did on the way there (replay) and episodes of what it had become
(medium). `learn` trains a policy on each by the command, and lets it act through the package for Python. What is finished is not made again; results
are kept in results/offline-rl/mujoco.json.
"""

import argparse
import json
import os
import time
from pathlib import Path

import numpy as np

from command import ROOT, commit, minrnn, processor

RESULTS = ROOT / "results/offline-rl/mujoco.json"
# Returns of a random policy and of an expert (Fu et al. 2020, arXiv:2004.07219, and their code's table of reference scores): scores of 0 and of 100.
REFERENCE = {"HalfCheetah": (-280.178953, 12135.0), "Hopper": (-20.272305, 3234.3), "Walker2d": (1.629008, 4592.3)}
# The return that the published policies aim for (Chen et al. 2021, arXiv:2106.01345, their code).
PUBLISHED_TARGET = {"HalfCheetah": 6000.0, "Hopper": 3600.0, "Walker2d": 5000.0}
# The agent is of medium strength once five episodes without noise have this score on average; it learns for at most so many steps.
MEDIUM, LONGEST, CHECKED_EVERY = 40.0, 1_000_000, 5_000
RECORDED, PLAYED, CONTEXT = 200, 20, 20
DATA = ("medium", "replay")
MIXERS = ("min-gru", "min-lstm", "mamba", "attention", "aaren")
# The published settings, except that the number of updates, and with it the warm-up, is a tenth.
SETTINGS = ["d_model=128", "n_layers=3", "lr=1e-3", "max_iterations=10000", "warmup=1000", "eval_every=1000", "checkpoint_every=1000", "return_scale=1000"]
# Published, too.
SETTINGS_OF = {
    ("Hopper", "medium"): ["d_model=256", "lr=1e-4"],
    ("Hopper", "replay"): ["d_model=256", "lr=1e-4"],
    ("Walker2d", "medium"): ["lr=1e-4"],
}


def score(environment, returns):
    random, expert = REFERENCE[environment]
    return 100 * (np.asarray(returns) - random) / (expert - random)


def play(environment, n, seed, act):
    """One episode in each of `n` places, side by side; `act(observations, rewards)` has the rewards of the step before, None at the first. Returns what was
    seen, done and earned at every step of each, and whether it ended before its time."""
    import gymnasium

    places = [gymnasium.make(f"{environment}-v5") for _ in range(n)]
    observations = np.stack([place.reset(seed=seed + at)[0] for at, place in enumerate(places)])
    episodes = [{"observations": [], "actions": [], "rewards": [], "terminal": False} for _ in places]
    going, rewards = list(range(n)), None
    while going:
        actions = act(observations, rewards)
        # An episode that is over keeps its last observation, with a reward of 0, since the policy acts in all of them.
        observations, rewards = observations.copy(), np.zeros(n)
        for at in list(going):
            episode = episodes[at]
            episode["observations"].append(observations[at].copy())
            episode["actions"].append(actions[at])
            observations[at], rewards[at], terminal, cut_off, _ = places[at].step(actions[at])
            episode["rewards"].append(rewards[at])
            if terminal or cut_off:
                episode["terminal"] = bool(terminal)
                going.remove(at)
    return episodes


def collect(folder, environment, seed):
    import gymnasium
    import torch
    from stable_baselines3 import SAC
    from stable_baselines3.common.callbacks import BaseCallback

    files = {data: folder / f"{environment}-{data}.trajectories" for data in DATA}
    if all(path.exists() for path in files.values()):
        return print(f"{folder}: the episodes of {environment} are there")
    if environment in kept()["environments"]:
        raise SystemExit(f"{RESULTS} has results of other episodes of {environment} than those to come; take what it has of them out first")
    torch.set_num_threads(1)
    agent = SAC("MlpPolicy", gymnasium.make(f"{environment}-v5"), policy_kwargs={"net_arch": [128, 128]}, buffer_size=LONGEST, seed=seed, device="cpu")
    curve, began = [], time.time()

    class UntilMedium(BaseCallback):
        def _on_step(self):
            if self.num_timesteps % CHECKED_EVERY:
                return True
            played = play(environment, 5, 1000 + seed, lambda seen, _: agent.predict(seen, deterministic=True)[0])
            found = float(score(environment, [sum(episode["rewards"]) for episode in played]).mean())
            curve.append([self.num_timesteps, round(found, 2)])
            print(f"{self.num_timesteps} steps, {time.time() - began:.0f} s: score {found:.1f}", flush=True)
            return found < MEDIUM

    agent.learn(LONGEST, callback=UntilMedium())
    agent.save(folder / f"{environment}-agent.zip")
    seconds, steps = time.time() - began, agent.num_timesteps
    buffer = agent.replay_buffer
    rows = {
        "observations": buffer.observations[:steps, 0],
        "actions": buffer.actions[:steps, 0],
        "rewards": buffer.rewards[:steps, 0],
        "terminals": (buffer.dones[:steps, 0] > 0) & (buffer.timeouts[:steps, 0] == 0),
        "timeouts": buffer.timeouts[:steps, 0] > 0,
    }
    facts = {"replay": write(files["replay"], environment, **rows)}
    episodes = [
        episode
        for batch in range(RECORDED // PLAYED)
        for episode in play(environment, PLAYED, 10_000 + 1000 * batch + seed, lambda seen, _: agent.predict(seen, deterministic=False)[0])
    ]
    lengths = [len(episode["rewards"]) for episode in episodes]
    last = np.zeros(sum(lengths), bool)
    last[np.cumsum(lengths) - 1] = True
    terminal = np.repeat([episode["terminal"] for episode in episodes], lengths)
    rows = {name: np.concatenate([episode[name] for episode in episodes]) for name in ("observations", "actions", "rewards")}
    facts["medium"] = write(files["medium"], environment, **rows, terminals=last & terminal, timeouts=last & ~terminal)
    record("environments", environment, facts | {"agent": {"steps": steps, "seconds": round(seconds), "curve": curve, "seed": seed}} | here())


def write(path, environment, **rows):
    """Writes a file of trajectories; returns what the episodes come to."""
    import minrnn as package

    told = package.write_trajectories(path, **rows)
    last = np.flatnonzero(rows["terminals"] | rows["timeouts"])
    earned = np.add.reduceat(rows["rewards"][: last[-1] + 1].astype(float), np.concatenate([[0], last[:-1] + 1]))
    found = score(environment, earned)
    print(f"{path}: {told['episodes']} episodes, {told['steps']} steps, score {found.mean():.1f} on average, {found.max():.1f} at best", flush=True)
    return {
        "episodes": told["episodes"],
        "steps": told["steps"],
        "return": round(told["mean_return"], 2),
        "best": round(told["best_return"], 2),
        "score": round(float(found.mean()), 2),
        "best_score": round(float(found.max()), 2),
        "checksum": checksum(path),
    }


def checksum(path):
    """Of all rows, as the file has it (docs/formats.md)."""
    with open(path, "rb") as file:
        return file.read(36)[28:32][::-1].hex()


def here():
    from importlib.metadata import version

    return {"machine": processor(), "commit": commit(), **{name: version(name) for name in ("mujoco", "gymnasium", "stable-baselines3")}}


def kept():
    return json.loads(RESULTS.read_text()) if RESULTS.exists() else {"environments": {}, "policies": {}}


def record(part, key, found):
    """Keeps what was found; another run beside this one may have written since."""
    everything = kept()
    everything[part][key] = found
    temporary = RESULTS.with_suffix(".tmp")
    temporary.write_text(json.dumps(everything, indent=1) + "\n")
    temporary.replace(RESULTS)


def learn(folder, environment, data, mixer, seed, threads):
    """Trains a policy, lets it act, and keeps what it earned."""
    import minrnn as package

    name = f"{environment}-{data}-{mixer}-{seed}"
    run, packed, recorded = folder / "runs" / name, folder / f"{name}.minrnn", folder / f"{environment}-{data}.trajectories"
    expected, found = kept()["environments"][environment][data]["checksum"], checksum(recorded)
    if found != expected:
        raise SystemExit(f"{recorded}: other episodes (checksum {found}) than those that {RESULTS} has results of ({expected})")
    chosen = [*SETTINGS, *SETTINGS_OF.get((environment, data), []), f"mixer={mixer}"]
    if not packed.exists():
        if (run / "checkpoints").exists():
            minrnn("train", "--resume", run)
        else:
            settings = [word for setting in [*chosen, f"seed={seed}", f"threads={threads}"] for word in ("--set", setting)]
            minrnn("train", "--task", "policy", "--data", recorded, *settings, "--out", run)
        minrnn("pack", run, "--weights", "f32", "-o", packed)
    model = package.load(packed)
    records = [json.loads(line) for line in (run / "metrics.jsonl").read_text().splitlines()]
    steps = [line for line in records if line["kind"] == "train"]
    updates = int(next(setting for setting in SETTINGS if setting.startswith("max_iterations")).split("=")[1])
    found = {
        "parameters": model.parameters,
        "minutes": round(updates * 64 * 20 / np.median([step["tokens_per_s"] for step in steps]) / 60, 1),
        "state_bytes": model.session_bytes(1000),
        "returns": {},
    }
    # Attention keeps all that it has seen, so it only gets windows. The others carry their state, and for comparison also get windows, as the published
    # policies do.
    for memory, window in [("carried", None), ("window", CONTEXT)]:
        if mixer == "attention" and window is None:
            continue
        for asked, target in (("best recorded", None), ("published", PUBLISHED_TARGET[environment])):
            policy = model.policy(PLAYED, target_return=target, window=window, threads=threads)
            episodes = play(environment, PLAYED, 20_000, policy.act)
            found["returns"][f"{memory}, {asked}"] = [round(float(sum(episode["rewards"])), 2) for episode in episodes]
        found.setdefault("milliseconds", {})[memory] = milliseconds(model, window)
    record("policies", name.replace("-", "/", 1), found | {"settings": chosen, "threads": threads} | here())
    for how, earned in found["returns"].items():
        print(f"{name}, {how}: score {score(environment, earned).mean():.1f}", flush=True)


def milliseconds(model, window):
    """What an action takes, in an episode alone: the median of those that see a whole window, the calls of Python with it."""
    policy, rng = model.policy(window=window, threads=1), np.random.default_rng(0)
    seen, times = rng.normal(size=(300, policy.observation_width)).astype(np.float32), []
    for at, one in enumerate(seen):
        began = time.perf_counter()
        policy.act(one, 1.0 if at else None)
        times.append(time.perf_counter() - began)
    return round(1000 * float(np.median(times[100:])), 4)


# The columns of the paper's Table 3, the one of each mixer, its rows, and the file with what was published.
COLUMNS = ["DT", "DS4", "DAaren", "DMamba", "minLSTM", "minGRU"]
COLUMN_OF = {"min-gru": "minGRU", "min-lstm": "minLSTM", "mamba": "DMamba", "attention": "DT", "aaren": "DAaren"}
ROW_OF = {"medium": "M", "replay": "M-R"}
TABLE = ROOT / "crates/reproduce/experiments/table3.toml"


def spread(values):
    """The mean, and the reach of its 95 % interval; none of one value."""
    from scipy.stats import t

    n = len(values)
    return float(np.mean(values)), float(t.ppf(0.975, n - 1) * np.std(values, ddof=1) / np.sqrt(n)) if n > 1 else None


def scores(policies, environment, data, mixer, how):
    """The score of each episode, a list for every seed."""
    found = [policies[key] for key in sorted(policies) if key.startswith(f"{environment}/{data}-{mixer}-")]
    return [score(environment, one["returns"][how]) for one in found if how in one["returns"]]


def told(seeds):
    """The mean score; behind ± the reach over seeds where there are three, else over the episodes of what there is."""
    if not seeds:
        return ""
    mean, reach = spread([one.mean() for one in seeds]) if len(seeds) >= 3 else spread(np.concatenate(seeds))
    return f"{mean:.1f} ± {reach:.1f}"


def published():
    """Row and column of Table 3 to what the paper has."""
    import tomllib

    table = tomllib.loads(TABLE.read_text())
    names = [column["label"] for column in table["columns"]]
    return {(row["label"], name): text for row in table["rows"] for name, text in zip(names, row["published"]["score"], strict=True)}


def page():
    everything, paper = kept(), published()
    policies, number = everything["policies"], lambda value: f"{value:,}".replace(",", " ")
    first = next(iter(everything["environments"].values()))
    lines = [
        "# Policies on MuJoCo, learned from data of our own",
        "",
        "The question of the paper's Table 3, on the simulator that it uses but on other data. D4RL's files are not available here, so we trained an agent by soft actor-critic until five",
        f"episodes without noise had a score of {MEDIUM:.0f}. *replay* is everything it did on the way there, *medium* is {RECORDED} episodes of the resulting agent, with its noise. D4RL's medium set has a",
        "million steps, of another agent: published numbers stand beside ours for orientation only. A score of 0 is what random pushes earn, 100 what an expert earns, by D4RL's returns.",
        "",
        f"The policies have the paper's size and settings (3 layers, width 128, context 20, batch 64, dropout 0.1, rate 1e-3; Hopper width 256, Hopper and Walker2d's medium set rate 1e-4), with a tenth of its 100 000 updates. Each plays {PLAYED} episodes, through the",
        "Python package. Every 20th recorded episode is held out: the checkpoint is the one with the least action error on half of these. Nothing was chosen by score.",
        "",
        "    python tools/offline_rl.py collect FOLDER HalfCheetah      # what it needs: the first lines of the script",
        "    python tools/offline_rl.py learn FOLDER HalfCheetah",
        "    python tools/offline_rl.py page",
        "",
        "## The data",
        "",
        "| | episodes | steps | average score | best score | the agent learned for |",
        "|---|---|---|---|---|---|",
    ]
    for environment, facts in everything["environments"].items():
        for data in DATA:
            of, agent = facts[data], facts["agent"]
            lines.append(f"| {environment}, {data} | {of['episodes']} | {number(of['steps'])} | {of['score']:.1f} | {of['best_score']:.1f} | {number(agent['steps'])} steps |")
    lines += [
        "",
        "## What the policies earn",
        "",
        "Scores when asked for the return of the best recorded episode and, in the last two columns, for the published target. *carried*: the state is carried from step to step. *window*: the last 20",
        "steps are reread each time, as in the published policies. ± is half the width of the 95 % interval, over seeds where there are three, otherwise over episodes.",
        "",
        "| | seeds | carried | window | published, D4RL's data | carried, published target | window, published target |",
        "|---|---|---|---|---|---|---|",
    ]
    for environment, facts in everything["environments"].items():
        for data in DATA:
            row = f"{environment.replace('2d', '')}-{ROW_OF[data]}"
            if any(key.startswith(f"{environment}/{data}-") for key in policies):
                lines.append(f"| **{environment}, {data}**: recorded | | {facts[data]['score']:.1f} | {facts[data]['score']:.1f} | | | |")
            for mixer in MIXERS:
                of = lambda how: scores(policies, environment, data, mixer, how)
                cells = {how: told(of(how)) for how in ("carried, best recorded", "window, best recorded", "carried, published", "window, published")}
                seeds = len(of("window, best recorded"))
                if seeds:
                    carried, window, *targets = cells.values()
                    lines.append(f"| {mixer} | {seeds} | {carried or '–'} | {window} | {paper[row, COLUMN_OF[mixer]]} | {targets[0] or '–'} | {targets[1]} |")
    lines += [
        "",
        "## What they take",
        "",
        "| | parameters | minutes to learn | state | ms per action, carried | window |",
        "|---|---|---|---|---|---|",
    ]
    for mixer in MIXERS:
        of = [one for key, one in policies.items() if f"-{mixer}-" in f"-{key.split('/')[1].split('-', 1)[1]}-"]
        if of:
            median = lambda value: float(np.median([value(one) for one in of]))
            carried = f"{median(lambda one: one['milliseconds']['carried']):.3f}" if "carried" in of[0]["milliseconds"] else "–"
            kept_bytes = number(of[0]["state_bytes"]) + " bytes" if carried != "–" else "20 steps"
            window = median(lambda one: one["milliseconds"]["window"])
            lines.append(f"| {mixer} | {number(of[0]['parameters'])} | {median(lambda one: one['minutes']):.0f} | {kept_bytes} | {carried} | {window:.3f} |")
    open_cells = []
    for environment in everything["environments"]:
        for data in DATA:
            without = [mixer for mixer in MIXERS if not scores(policies, environment, data, mixer, "window, best recorded")]
            open_cells += [f"{environment}, {data}: {', '.join(without)}"] if without else []
    absent = [environment for environment in REFERENCE if environment not in everything["environments"]]
    lines += [
        "",
        "Minutes cover all updates at their median time, on one thread beside other programs; the time per action is from one episode, on one thread, including Python's part.",
        "",
        *([f"Not run: {'; '.join(open_cells)}.", ""] if open_cells else []),
        *([f"No data were made for {' and '.join(absent)}.", ""] if absent else []),
        f"{first['machine']}; MuJoCo {first['mujoco']}, gymnasium {first['gymnasium']} (environments of version 5; D4RL's were version 2 on an older MuJoCo),"
        f" stable-baselines3 {first['stable-baselines3']}. Every return, the settings and the commits: [mujoco.json](mujoco.json).",
    ]
    RESULTS.with_suffix(".md").write_text("\n".join(lines) + "\n")
    record_in_table(everything)


def record_in_table(everything):
    """Puts the scores beside the published ones that `minrnn reproduce table3` prints."""
    rows = {}
    for environment in everything["environments"]:
        for data in DATA:
            found = dict.fromkeys(COLUMNS, "")
            for mixer, column in COLUMN_OF.items():
                how = "window, best recorded" if mixer == "attention" else "carried, best recorded"
                found[column] = told(scores(everything["policies"], environment, data, mixer, how))
            if any(found.values()):
                rows[f"{environment.replace('2d', '')}-{ROW_OF[data]}"] = "recorded.score = " + json.dumps([*found.values()], ensure_ascii=False)
    lines, label = [], None
    for line in TABLE.read_text().splitlines():
        if line.startswith("recorded.score"):
            continue
        label = json.loads(line.split("=", 1)[1]) if line.startswith("label") else label
        lines.append(line)
        if line.startswith("published.score") and label in rows:
            lines.append(rows[label])
    temporary = TABLE.with_suffix(".tmp")
    temporary.write_text("\n".join(lines) + "\n")
    temporary.replace(TABLE)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    commands = parser.add_subparsers(dest="command", required=True)
    for name, about in (("collect", "data of an agent"), ("learn", "policies of the data")):
        command = commands.add_parser(name, help=about)
        command.add_argument("folder", type=Path)
        command.add_argument("environment", choices=[*REFERENCE])
    learning = commands.choices["learn"]
    learning.add_argument("--only", choices=MIXERS)
    learning.add_argument("--data", choices=DATA)
    learning.add_argument("--seeds", type=int, default=1)
    learning.add_argument("--threads", type=int, default=1)
    commands.add_parser("page", help="what was found, results/offline-rl/mujoco.md, and the scores that `minrnn reproduce table3` prints")
    args = parser.parse_args()
    if args.command == "page":
        return page()
    args.folder = args.folder.resolve()
    args.folder.mkdir(parents=True, exist_ok=True)
    # MuJoCo writes its log to the working directory.
    os.chdir(args.folder)
    if args.command == "collect":
        return collect(args.folder, args.environment, 0)
    for seed in range(1, args.seeds + 1):
        for data in [args.data] if args.data else DATA:
            for mixer in [args.only] if args.only else MIXERS:
                if f"{args.environment}/{data}-{mixer}-{seed}" not in kept()["policies"]:
                    learn(args.folder, args.environment, data, mixer, seed, args.threads)


if __name__ == "__main__":
    main()
