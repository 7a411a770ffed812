"""Runs, checkpoints and packed files of other mixers, as they lie in the repository since they were made."""

import json
import shutil

import numpy as np
import pytest

import minrnn
from conftest import EXPECTED, ROOT
from test_tables import expect, read

FIXTURES = ROOT / "crates" / "cli" / "tests" / "fixtures" / "compatibility"
RUNS = ["min-gru", "min-lstm", "mamba", "rwkv4", "attention"]
PACKED = ["min-gru-f32.minrnn", "min-gru-bf16.minrnn", "min-gru-int8.minrnn", "min-gru-int4.minrnn", "mamba-int8.minrnn", "rwkv4-f32.minrnn"]


@pytest.mark.parametrize("name", ["classes", "series"])
def test_runs_predict_as_the_command_line_does(name):
    model = minrnn.load(FIXTURES / name)
    predicted = model.predict(read(FIXTURES / f"{name}.csv") | numbers(FIXTURES / f"{name}.csv", model.columns))
    expect(predicted, read(EXPECTED / f"{name}.csv"))


def numbers(path, columns):
    table = read(path)
    return {column: [float(value) for value in table[column]] for column in columns}


@pytest.mark.parametrize("name", RUNS + PACKED)
def test_every_mixer_may_be_cut_forked_and_saved(name):
    model = minrnn.load(FIXTURES / name)
    tokens = np.random.default_rng(0).integers(0, model.vocab_size, 70)
    whole = model.session().forward(tokens)
    session = model.session(2)
    session.prefill([tokens[:33], tokens[:20]])
    fork, loaded = session.fork(), model.load_session(session.save())
    for each in (session, fork, loaded):
        np.testing.assert_allclose(each.forward(tokens[33:60], rows=0), whole[33:60], rtol=1e-4, atol=1e-5)
        np.testing.assert_allclose([each.step(token, rows=0) for token in tokens[60:]], whole[60:], rtol=1e-4, atol=1e-5)
        np.testing.assert_allclose(each.prefill(tokens[20:50], rows=1), whole[49], rtol=1e-4, atol=1e-5)
    session.reset()
    np.testing.assert_array_equal(session.step([1, 1]), model.session(2).step([1, 1]))


def test_a_run_is_its_best_checkpoint():
    run, best = FIXTURES / "min-gru", FIXTURES / "min-gru" / "checkpoints"
    checkpoint = best / best.joinpath("best").read_text().strip()
    of_run, of_checkpoint = minrnn.load(run).session(), minrnn.load(checkpoint).session()
    np.testing.assert_array_equal(of_run.forward([1, 2, 3]), of_checkpoint.forward([1, 2, 3]))
    # Sessions of one are those of the other.
    of_checkpoint.load(of_run.save())


def test_a_run_that_was_killed_before_its_first_pointer_is_its_last_checkpoint(tmp_path):
    run = shutil.copytree(FIXTURES / "min-gru", tmp_path / "run")
    for pointer in ("best", "last"):
        run.joinpath("checkpoints", pointer).unlink()
    of_run, of_checkpoint = minrnn.load(run).session(), minrnn.load(FIXTURES / "min-gru").session()
    np.testing.assert_array_equal(of_run.forward([1, 2, 3]), of_checkpoint.forward([1, 2, 3]))


@pytest.mark.parametrize("name", ["min-gru-int8", "rwkv4-f32"])
def test_outputs_are_those_of_before(name):
    expected = np.array(json.loads(FIXTURES.joinpath(f"{name}.logits.json").read_text()))
    model = minrnn.load(FIXTURES / f"{name}.minrnn")
    tokens = np.arange(40 + len(expected)) * 7 % model.vocab_size
    np.testing.assert_allclose(model.session().forward(tokens)[40:], expected, atol=2e-3)


def test_texts_are_those_of_before():
    calls = [call for call in json.loads(FIXTURES.joinpath("expected.json").read_text()) if call["args"][0] == "generate"]
    greedy = [call for call in calls if "0" in call["args"] and call["stdout"] and "--load-session" not in call["args"]]
    assert greedy
    for call in greedy:
        options = dict(zip(call["args"][2::2], call["args"][3::2]))
        pieces = minrnn.load(FIXTURES / call["args"][1]).generate(options["--prompt"], int(options["--max-tokens"]), temperature=0)
        assert "".join(pieces) == call["stdout"].removesuffix("\n"), call["args"]


def test_sessions_that_grow_say_so():
    model = minrnn.load(FIXTURES / "attention")
    assert model.steps_seen > 0 and model.session_bytes(10) > model.session_bytes(1)
    session = model.session()
    before = session.nbytes
    session.prefill([1, 2, 3])
    assert session.nbytes > before
