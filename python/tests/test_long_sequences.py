"""Tables of long sequences, of which several rows are one step of the model."""

import json

import numpy as np
import pytest

import minrnn
from test_training import TINY, machines


@pytest.fixture(scope="module")
def run(tmp_path_factory):
    """A model of machines with 603 rows each, three of which are a step."""
    return minrnn.train("classify", machines(12, 603), out=tmp_path_factory.mktemp("long") / "run", group="machine", target="state", settings=TINY, threads=1)


def test_each_row_is_answered_as_if_the_sequence_ended_there(run):
    model = run.model
    assert model.task["rows_per_step"]["n"] == 3
    rows = np.array(machines(1, 20)["vibration"])[:, None]
    single = model.session()
    steps = np.concatenate([single.step(row[None]) for row in rows])
    np.testing.assert_array_equal(model.session().forward(rows[None])[0], steps)
    for end in (1, 2, 3, 4, 11, 20):
        np.testing.assert_array_equal(model.session().prefill(rows[None, :end])[0], steps[end - 1])
        table = {"machine": ["m"] * end, "vibration": rows[:end, 0]}
        np.testing.assert_allclose(model.predict(table).probabilities[0], steps[end - 1], rtol=1e-5, atol=1e-6)
    # Saved between two rows of a step.
    saved = model.session()
    saved.prefill(rows[None, :7])
    restored = model.load_session(saved.save())
    np.testing.assert_array_equal(restored.step(rows[None, 7]), steps[7:8])


def test_what_is_inside_is_told_for_each_complete_step(run):
    rows = np.array(machines(1, 20)["vibration"])[:, None]
    whole = run.model.session().embed(rows[None])
    assert whole.shape == (1, 6, 8)
    session = run.model.session()
    parts = [session.embed(rows[None, start:end]) for start, end in ((0, 4), (4, 5), (5, 5), (5, 20))]
    assert [part.shape[1] for part in parts] == [1, 0, 0, 5]
    np.testing.assert_array_equal(np.concatenate(parts, axis=1), whole)
    # Sessions that are at different rows of a step complete different numbers of them.
    two = run.model.session(2)
    two.prefill(rows[None, :2], rows=[1])
    inside = two.embed(np.stack([rows[:4], rows[:4]]))
    assert isinstance(inside, list) and [one.shape for one in inside] == [(1, 8), (2, 8)]


def test_the_number_of_rows_is_a_setting(tmp_path):
    for wanted, expected in ((1, None), (5, 5)):
        out = tmp_path / str(wanted)
        minrnn.train("classify", machines(12, 30), out=out, group="machine", target="state", settings=TINY | {"rows_per_step": wanted}, threads=1)
        last = (out / "checkpoints" / "last").read_text().strip()
        steps = json.loads((out / "checkpoints" / last / "task.json").read_text()).get("rows_per_step")
        assert (steps and steps["n"]) == expected
