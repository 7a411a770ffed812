"""Policies: the file that they learn from, and that they do from Python what `minrnn rollout` has them do."""

import struct
import subprocess
import sys

import numpy as np
import pytest

import minrnn

MINRNN = [sys.executable, "-m", "minrnn"]
SETTINGS = dict(d_model=16, n_layers=1, max_iterations=30, eval_every=30, warmup=5)


def run(*arguments):
    said = subprocess.run([*MINRNN, *map(str, arguments)], capture_output=True, text=True, timeout=300)
    assert said.returncode == 0, said.stderr
    return said.stdout


def read(path):
    """The rows of a file of trajectories."""
    data = path.read_bytes()
    magic, version, observation, action, n = struct.unpack_from("<8sIIIQ", data)
    assert magic == b"MINRNNRL" and version == 1
    at, rows = 36, {}
    for name, width in (("observations", observation), ("actions", action), ("rewards", 1)):
        rows[name] = np.frombuffer(data, "<f4", n * width, at).reshape((n, width) if name != "rewards" else n)
        at += 4 * n * width
    rows["terminals"], rows["timeouts"] = (np.frombuffer(data, "u1", n, at + part * n) for part in (0, 1))
    return rows


def episodes(rows):
    ends = np.flatnonzero(rows["terminals"] | rows["timeouts"]) + 1
    return [{name: values[start:end] for name, values in rows.items()} for start, end in zip([0, *ends], ends)]


@pytest.fixture(scope="module")
def recorded(tmp_path_factory):
    """Episodes of somebody who pushes a point mass."""
    path = tmp_path_factory.mktemp("recorded") / "medium.trajectories"
    run("rollout", "--behavior", "medium", "--episodes", 20, "--record", path)
    return path


@pytest.fixture(scope="module", params=["min-gru", "attention"])
def packed(request, recorded, tmp_path_factory):
    path = tmp_path_factory.mktemp(request.param) / "policy.minrnn"
    minrnn.train("policy", recorded, mixer=request.param, progress=False, **SETTINGS).pack(path, "f32")
    return path


def test_the_file_is_that_of_the_command(recorded, tmp_path):
    rows = read(recorded)
    told = minrnn.write_trajectories(tmp_path / "again", **rows)
    assert (tmp_path / "again").read_bytes() == recorded.read_bytes()
    returns = [episode["rewards"].sum(dtype=float) for episode in episodes(rows)]
    assert told["episodes"] == 20 and told["steps"] == len(rows["rewards"])
    np.testing.assert_allclose([told["mean_return"], told["best_return"]], [np.mean(returns), np.max(returns)], rtol=1e-6)
    # What follows the last ending is no episode.
    more = {name: np.concatenate([values, values[:3]]) for name, values in rows.items()}
    assert minrnn.write_trajectories(tmp_path / "more", **more)["steps"] == told["steps"]
    assert (tmp_path / "more").read_bytes() == recorded.read_bytes()


@pytest.mark.parametrize("window", [None, 20])
def test_it_does_what_rollout_has_it_do(packed, window, tmp_path):
    run("rollout", packed, "--episodes", 3, "--seed", 5, "--record", tmp_path / "played", *([] if window is None else ["--window", window]))
    played = episodes(read(tmp_path / "played"))
    policy = minrnn.load(packed).policy(3, window=window)
    rewards = None
    for step in range(max(len(episode["rewards"]) for episode in played)):
        here = [min(step, len(episode["rewards"]) - 1) for episode in played]
        actions = policy.act([episode["observations"][at] for episode, at in zip(played, here)], rewards)
        for episode, at, action in zip(played, here, actions):
            if at == step:
                np.testing.assert_allclose(action, episode["actions"][at], rtol=1e-4, atol=1e-5)
        rewards = [episode["rewards"][at] for episode, at in zip(played, here)]


@pytest.mark.parametrize("window", [None, 4])
def test_episodes_side_by_side_are_those_alone_and_begin_anew_alone(packed, window):
    model = minrnn.load(packed)
    rng = np.random.default_rng(3)
    observations, rewards = rng.normal(size=(9, 2, 4)), rng.normal(size=(9, 2))

    def alone(place, steps, target):
        policy = model.policy(target_return=target, window=window)
        assert policy.act(observations[steps[0], place]).shape == (2,)
        policy.reset(target_return=target)
        return [policy.act(observations[at, place], None if at == steps[0] else rewards[at - 1, place]) for at in steps]

    both = model.policy(2, target_return=50, window=window)
    found = []
    for at in range(9):
        if at == 5:
            both.reset([1], target_return=30)
        found.append(both.act(observations[at], rewards[at - 1] if at else None))
    found = np.array(found)
    np.testing.assert_allclose(found[:, 0], alone(0, range(9), 50), rtol=1e-4, atol=1e-5)
    np.testing.assert_allclose(found[:5, 1], alone(1, range(5), 50), rtol=1e-4, atol=1e-5)
    np.testing.assert_allclose(found[5:, 1], alone(1, range(5, 9), 30), rtol=1e-4, atol=1e-5)
    assert not np.allclose(found[5:, 1], found[5:, 0], atol=1e-4)


def test_without_a_return_it_is_asked_for_the_best_recorded(packed, recorded):
    model, begin = minrnn.load(packed), np.ones(4)
    best = max(episode["rewards"].sum(dtype=float) for episode in episodes(read(recorded)))
    np.testing.assert_array_equal(model.policy().act(begin), model.policy(target_return=best).act(begin))
    assert not np.allclose(model.policy().act(begin), model.policy(target_return=best - 80).act(begin), atol=1e-4)


def test_what_is_refused_changes_nothing(packed):
    model = minrnn.load(packed)
    policy, same = (model.policy(2, target_return=50) for _ in range(2))
    seen = np.ones((2, 4))
    np.testing.assert_array_equal(policy.act(seen), same.act(seen))
    for refused, message in (
        (lambda: policy.act(seen), "what the actions before have earned"),
        (lambda: policy.act(seen[:1], [0, 0]), r"expected an array of shape \[2, 4\], found \[1, 4\]"),
        (lambda: policy.act(seen[0], [0, 0]), r"expected an array of shape \[2, 4\], found \[4\]"),
        (lambda: policy.act(seen * np.nan, [0, 0]), "finite"),
        (lambda: policy.act(np.ma.array(seen, mask=[[True, False, False, False]] * 2), [0, 0]), "finite"),
        (lambda: policy.act(seen, np.ma.array([0, 0], mask=[True, False])), "finite"),
        (lambda: policy.act([[np.ma.masked, 1, 1, 1]] * 2, [0, 0]), "finite"),
        (lambda: policy.act(seen, [0, np.inf]), "finite"),
        (lambda: policy.act(seen, [0, 10**400]), "rewards: expected numbers below 1.8e308"),
        (lambda: policy.act(seen, [0]), "expected 2 numbers"),
        (lambda: policy.reset([2]), "below 2"),
        (lambda: policy.reset([-1]), "below 2"),
        (lambda: policy.reset(np.array([True, False])), "np.flatnonzero makes them of a mask"),
        (lambda: policy.reset([0.7]), "whole numbers"),
        (lambda: policy.reset([0], target_return=[1, 2]), "one for each of 1"),
        (lambda: policy.reset(target_return=np.nan), "finite"),
        (lambda: model.policy(window=0), "at least one step"),
    ):
        with pytest.raises(minrnn.InputError, match=message):
            refused()
    np.testing.assert_array_equal(policy.act(seen, [1, 2]), same.act(seen, [1, 2]))


@pytest.mark.parametrize("window", [None, 3])
def test_actions_that_are_not_finite_are_refused_by_episode_and_nothing_is_read(packed, window):
    model = minrnn.load(packed)
    policy, same = (model.policy(2, target_return=50, window=window) for _ in range(2))
    seen = np.ones((2, 4))
    np.testing.assert_array_equal(policy.act(seen), same.act(seen))
    with pytest.raises(minrnn.TrainingError, match=r"the actions of the episodes \[1\] .* begin them anew by reset\(\[1\]\)"):
        policy.act(seen * [[1], [1e30]], [0, 0])
    np.testing.assert_array_equal(policy.act(seen, [0, 0]), same.act(seen, [0, 0]))


def test_what_is_no_number_is_refused(packed):
    model = minrnn.load(packed)
    for refused, message in (
        (lambda: model.policy(target_return="x"), "target_return: expected numbers, found an array of <U1"),
        (lambda: model.policy().act(["a"] * 4), "observations: expected numbers"),
        (lambda: model.policy(window=2.5), "window: expected a whole number of steps, found float"),
    ):
        with pytest.raises(minrnn.KindError, match=message):
            refused()


def test_only_policies_act(sensors):
    with pytest.raises(minrnn.KindError, match="for classifier, expected a policy"):
        sensors.policy()


@pytest.mark.parametrize(
    "change, message",
    [
        ({"observations": np.ones((5, 3))}, r"observations: expected a row for each of 6 steps, found an array of shape \[5, 3\]"),
        ({"actions": np.ones(6)}, "actions: expected a row"),
        ({"rewards": np.ones(0)}, "rewards: expected a number for each of at least one step"),
        ({"rewards": np.full(6, np.nan)}, "rewards: number 0 is NaN"),
        ({"terminals": np.zeros(6)}, "none of 6 steps ends an episode"),
        ({"terminals": [0, 1]}, "terminals: expected a number for each of the 6 steps"),
        ({"actions": np.full((6, 2), 1.5)}, "there is an action outside -1 to 1, where a policy acts: step 0, number 0"),
    ],
)
def test_rows_that_are_no_episodes_are_refused(change, message, tmp_path):
    rows = dict(observations=np.ones((6, 3)), actions=np.zeros((6, 2)), rewards=np.ones(6), terminals=[0, 0, 1, 0, 0, 1]) | change
    with pytest.raises(minrnn.InputError, match=message):
        minrnn.write_trajectories(tmp_path / "file", **rows)
    assert not list(tmp_path.iterdir())


def test_episodes_are_written_over_episodes_alone(tmp_path):
    rows = dict(observations=np.ones((6, 3)), actions=np.zeros((6, 2)), rewards=np.ones(6), terminals=[0, 0, 1, 0, 0, 1])
    for _ in range(2):
        minrnn.write_trajectories(tmp_path / "file", **rows)
    (tmp_path / "thesis").write_text("Chapter 1")
    with pytest.raises(minrnn.InputError, match="thesis' exists and is not a file of trajectories; give another file to write"):
        minrnn.write_trajectories(tmp_path / "thesis", **rows)
    assert (tmp_path / "thesis").read_text() == "Chapter 1"


def test_episodes_are_not_written_into_a_run(tmp_path):
    rows = dict(observations=np.ones((6, 3)), actions=np.zeros((6, 2)), rewards=np.ones(6), terminals=[0, 0, 1, 0, 0, 1])
    (tmp_path / "checkpoints").mkdir()
    (tmp_path / "experiment.toml").touch()
    with pytest.raises(minrnn.InputError, match="lies in the run"):
        minrnn.write_trajectories(tmp_path / "file", **rows)
