#!/usr/bin/env python3
"""Converts recorded episodes from HDF5, as D4RL and Minari publish them, to the plain file that minrnn reads.

    python -m venv env && env/bin/pip install h5py numpy
    env/bin/python tools/convert_trajectories.py hopper_medium-v2.hdf5 -o hopper-medium.trajectories
    env/bin/python tools/convert_trajectories.py hopper_expert-v2.hdf5 hopper_medium-v2.hdf5 -o hopper-medium-expert.trajectories
    env/bin/python tools/convert_trajectories.py ~/.minari/datasets/mujoco/hopper/medium-v0 -o hopper-medium.trajectories

D4RL: datasets `observations`, `actions`, `rewards`, `terminals`, `timeouts` at top level, one row per step. Minari: a group per episode with
`observations` (one row more than steps), `actions`, `rewards`, `terminations`, `truncations`; the directory of the data set may be given.
Of each source what follows its last complete trajectory is dropped, so that episodes of different sources are never joined.

The layout of the result is in crates/minrnn/src/data/offline_rl/file.rs.

    env/bin/python tools/convert_trajectories.py --write-examples crates/minrnn/tests/fixtures/offline_rl

writes a tiny file of each kind as HDF5, converts it, checks it, and leaves the converted ones for the tests.
"""
import argparse
import re
import struct
import sys
import tempfile
import zlib
from pathlib import Path

import h5py
import numpy as np

MAGIC, VERSION = b"MINRNNRL", 1
EPISODE = re.compile(r"episode_(\d+)")


class Rows:
    """Steps one after the other."""

    def __init__(self, observations, actions, rewards, terminals, timeouts, source):
        self.observations = matrix(observations, f"{source}: observations")
        self.actions = matrix(actions, f"{source}: actions")
        self.rewards, self.terminals, self.timeouts = (np.asarray(x).reshape(-1) for x in (rewards, terminals, timeouts))
        counts = [len(x) for x in (self.observations, self.actions, self.rewards, self.terminals, self.timeouts)]
        if len(set(counts)) != 1:
            sys.exit(f"{source}: observations, actions, rewards, terminals and timeouts have {counts} rows, expected equal numbers")

    def complete(self):
        """Without what follows the last ending."""
        ends = np.flatnonzero((self.terminals != 0) | (self.timeouts != 0))
        n = ends[-1] + 1 if len(ends) else 0
        self.observations, self.actions, self.rewards, self.terminals, self.timeouts = (
            x[:n] for x in (self.observations, self.actions, self.rewards, self.terminals, self.timeouts)
        )
        return self


def matrix(x, what):
    x = np.asarray(x)
    if x.ndim < 2:
        sys.exit(f"{what} have shape {x.shape}, expected a row of numbers for every step")
    return x.reshape(len(x), -1)


def read(path):
    """The rows of a file, or of the directory of a Minari data set."""
    path = Path(path)
    if path.is_dir():
        path = path / "data" / "main_data.hdf5"
    try:
        with h5py.File(path) as file:
            return (minari(file, path) if any(map(EPISODE.fullmatch, file)) else d4rl(file, path)).complete()
    except OSError as error:
        sys.exit(f"{path}: not an HDF5 file that can be read ({error})")


def d4rl(file, path):
    names = ["observations", "actions", "rewards", "terminals", "timeouts"]
    missing = [name for name in names if not isinstance(file.get(name), h5py.Dataset)]
    if missing:
        sys.exit(f"{path}: no data set {', '.join(missing)}; expected a file of D4RL (version 2) or Minari, found {', '.join(file) or 'nothing'}")
    return Rows(*(file[name][()] for name in names), path)


def minari(file, path):
    episodes = sorted(filter(EPISODE.fullmatch, file), key=lambda name: int(EPISODE.fullmatch(name)[1]))
    parts = []
    for name in episodes:
        group = file[name]
        arrays = []
        for key in ["observations", "actions", "rewards", "terminations", "truncations"]:
            if not isinstance(group.get(key), h5py.Dataset):
                sys.exit(f"{path}: {name} has no array '{key}'; observations and actions must be plain arrays, not dictionaries")
            arrays.append(group[key][()])
        observations, actions, rewards, terminals, timeouts = arrays
        n = len(actions)
        timeouts = np.array(timeouts, dtype=np.uint8)
        if n and not terminals[-1]:
            # The group is an episode even if recording was stopped.
            timeouts[-1] = 1
        parts.append((observations[:n], actions, rewards, terminals, timeouts))
    return Rows(*(np.concatenate(column) for column in zip(*parts)), path)


def write(sources, out):
    """Writes the rows of all sources; returns the numbers of steps and of trajectories."""
    widths = {(rows.observations.shape[1], rows.actions.shape[1]) for rows in sources}
    if len(widths) != 1:
        sys.exit(f"the sources have observations and actions of different widths: {sorted(widths)}")
    ((observation, action),) = widths
    for actions in (rows.actions.astype("<f4") for rows in sources):
        outside = actions[~(np.abs(actions) <= 1)]
        if len(outside):
            sys.exit(f"there is an action of {outside[0]}, expected -1 to 1, where policies act: divide the actions by what they reach at most")
    column = lambda name, kind: b"".join(np.ascontiguousarray(getattr(rows, name), kind).tobytes() for rows in sources)
    flags = lambda name: b"".join((getattr(rows, name) != 0).astype("u1").tobytes() for rows in sources)
    n = sum(len(rows.rewards) for rows in sources)
    if n == 0:
        sys.exit("there is no complete trajectory: no row is a terminal or a timeout")
    payload = column("observations", "<f4") + column("actions", "<f4") + column("rewards", "<f4") + flags("terminals") + flags("timeouts")
    head = struct.pack("<8sIIIQI", MAGIC, VERSION, observation, action, n, zlib.crc32(payload))
    partial = Path(f"{out}.writing")
    partial.write_bytes(head + struct.pack("<I", zlib.crc32(head)) + payload)
    partial.replace(out)
    return n, sum(int(((rows.terminals != 0) | (rows.timeouts != 0)).sum()) for rows in sources)


def write_examples(folder):
    """Step i: observation [i, i + 0.25, i + 0.5], action [-i / 8, i / 8], reward 10 i. Trajectories of 3 and 2 steps, ended by a terminal
    and a timeout; in the D4RL file a third one is unfinished."""
    folder.mkdir(parents=True, exist_ok=True)
    steps = np.arange(7, dtype=np.float32)
    observations = steps[:, None] + np.array([0, 0.25, 0.5], dtype=np.float32)
    actions, rewards = np.stack([-steps / 8, steps / 8], axis=1), 10 * steps
    with tempfile.TemporaryDirectory() as scratch:
        with h5py.File(f"{scratch}/d4rl.hdf5", "w") as file:
            for name, data in [("observations", observations), ("actions", actions), ("rewards", rewards[:, None])]:
                file.create_dataset(name, data=data, compression="gzip", chunks=True)
            file["terminals"], file["timeouts"] = steps == 2, steps == 4
            file["infos/qpos"] = observations
        data = Path(scratch) / "data"
        data.mkdir()
        with h5py.File(data / "main_data.hdf5", "w") as file:
            # As text, 10 comes before 2.
            for number, start, end, stopped in [(2, 0, 3, True), (10, 3, 5, False)]:
                group = file.create_group(f"episode_{number}")
                group["observations"], group["actions"], group["rewards"] = observations[start : end + 1], actions[start:end], rewards[start:end]
                last = steps[start:end] == end - 1
                group["terminations"], group["truncations"] = last & stopped, last & (not stopped)
        expected = None
        for name, source in [("d4rl", f"{scratch}/d4rl.hdf5"), ("minari", scratch)]:
            out = folder / f"{name}.trajectories"
            assert write([read(source)], out) == (5, 2)
            expected = expected or out.read_bytes()
            assert out.read_bytes() == expected, "both formats hold the same episodes"
        twice = Path(scratch) / "twice"
        assert write([read(f"{scratch}/d4rl.hdf5"), read(scratch)], twice) == (10, 4)
    print(f"wrote and checked the examples in {folder}")


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("sources", nargs="*", help="HDF5 files, or directories of Minari data sets, written one after the other")
    parser.add_argument("-o", "--out", help="the file to write")
    parser.add_argument("--write-examples", type=Path, metavar="DIR", help="write and check the examples of the tests")
    arguments = parser.parse_args()
    if arguments.write_examples:
        return write_examples(arguments.write_examples)
    if not arguments.sources or not arguments.out:
        parser.error("give at least one source, and the file to write with -o")
    n, trajectories = write([read(source) for source in arguments.sources], arguments.out)
    print(f"{arguments.out}: {trajectories} trajectories, {n} steps")


if __name__ == "__main__":
    main()
