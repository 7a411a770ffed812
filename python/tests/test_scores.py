"""Rows are scored as ``minrnn score`` scores them."""

import csv
import io

import numpy as np
import pytest

import minrnn
from conftest import MODELS
from test_command import run
from test_training import TINY

STEPS = 90


def meters(fault=None):
    """Three meters that go up and down, in the order of their names; the second one jumps at the step ``fault``."""
    step, meter = np.tile(np.arange(STEPS), 3), np.repeat(np.array([7, 8, 9], dtype=np.int16), STEPS)
    load = 10 + 3 * np.sin(step * np.pi / 6 + meter) + (step * 7919 % 13) / 13
    if fault is not None:
        load[STEPS + fault] += 40
    return {"meter": meter, "load": load}


@pytest.fixture(scope="module")
def trained():
    """A run that learned to forecast meters with quantiles."""
    settings = {**TINY, "group": "meter", "target": "load", "horizon": 2, "season": 12}
    return minrnn.train("forecast", meters(), settings=settings, threads=1)


@pytest.fixture(scope="module")
def model(trained):
    return trained.model


def written(path, table):
    with open(path, "w", newline="") as file:
        rows = csv.writer(file)
        rows.writerow(table)
        rows.writerows(zip(*table.values()))
    return path


def of_command(*arguments):
    done = run("score", *map(str, arguments))
    assert done.returncode == 0, done.stderr
    return done.stderr, list(csv.DictReader(io.StringIO(done.stdout)))


def expect(scores, rows):
    columns = scores.columns()
    assert list(columns) == list(rows[0]) and len(scores) == len(rows)
    for name, column in columns.items():
        expected = [row[name] for row in rows]
        if isinstance(column[0], str):
            assert list(column) == expected, name
        elif name == "anomaly":
            # Of a row without a surprise the command says nothing.
            assert list(column) == [mark == "1" for mark in expected]
        else:
            np.testing.assert_allclose(column.astype(float), [float(cell or "nan") for cell in expected], rtol=1e-6, atol=1e-6, err_msg=name)


def test_scores_are_those_of_the_command(temperature):
    said, rows = of_command(MODELS / "temperature.minrnn", "--data", MODELS / "temperature.csv")
    scores = temperature.score(MODELS / "temperature.csv")
    expect(scores, rows)
    assert scores.notes == [said.splitlines()[0]] and f"marking what is above {scores.threshold:.3f} nats" in said and f"{scores.anomaly.sum()} of {len(rows)} rows are marked" in said
    assert scores.names is None and scores.times[0] == "1950-01" and np.isnan(scores.surprise[0]) and np.isnan(scores.forecast[0]).all()
    lower = temperature.score(MODELS / "temperature.csv", threshold=0.8)
    assert lower.threshold < scores.threshold and lower.anomaly.sum() > scores.anomaly.sum()


def test_rows_of_several_sequences_are_compared_with_usual_ones(trained, tmp_path):
    usual, today = meters(), meters(fault=40)
    scores = trained.model.score(today, calibrate=usual, threshold=0.99)
    model_file = tmp_path / "meters.minrnn"
    trained.pack(model_file, "f32")
    paths = [written(tmp_path / "today.csv", today), written(tmp_path / "usual.csv", usual)]
    said, rows = of_command(model_file, "--data", paths[0], "--calibrate", paths[1], "--threshold", "0.99")
    expect(scores, rows)
    assert f"marking what is above {scores.threshold:.3f} nats" in said
    fault = STEPS + 40
    # What follows a fault surprises too.
    assert scores.anomaly[fault] and not scores.anomaly[:fault].any() and fault <= np.nanargmax(scores.surprise) < fault + 12
    assert scores.names[fault] == 8 and scores.steps[fault] == 41 and scores.times is None and scores.values[fault, 0] == today["load"][fault]


@pytest.mark.parametrize("library", ["pandas", "polars"])
def test_frames_keep_the_type_of_names(library, model):
    module = pytest.importorskip(library)
    table = module.DataFrame(meters())
    frame = getattr(model.score(table, calibrate=table), f"to_{library}")()
    assert list(frame.columns) == ["meter", "step", "load", "load forecast", "surprise", "anomaly"] and len(frame) == 3 * STEPS
    assert frame["meter"].dtype == table["meter"].dtype and list(frame["meter"]) == list(table["meter"]) and list(frame["load"]) == list(table["load"])


def test_a_column_of_the_table_keeps_its_name():
    table = {"step": meters()["load"][:STEPS]}
    model = minrnn.train("forecast", table, settings={**TINY, "target": "step", "horizon": 2, "season": 12}, threads=1).model
    scores = model.score(table, calibrate=table)
    assert list(scores.columns()) == ["step_scored", "step", "step forecast", "surprise", "anomaly"]
    np.testing.assert_array_equal(scores.columns()["step"], table["step"])


def test_names_that_training_never_saw_are_told():
    table = {"load": meters()["load"][:STEPS], "kind": ["a", "b", "c"] * (STEPS // 3)}
    settings = {**TINY, "target": "load", "columns": ["load", "kind"], "horizon": 2, "season": 12}
    model = minrnn.train("forecast", table, settings=settings, threads=1).model
    assert len(model.score(table, calibrate=table).notes) == 1
    other = {**table, "kind": ["a", "b", "z"] * (STEPS // 3)}
    notes = model.score(other, calibrate=table).notes
    assert len(notes) == 2 and "'z'" in notes[0] and "too few for 0.999" in notes[1], notes
    notes = model.score(table, calibrate=other).notes
    assert len(notes) == 2 and notes[0].startswith("the usual rows: ") and "'z'" in notes[0], notes


def test_what_cannot_be_scored_is_refused(model, sensors, text, temperature, tmp_path):
    with pytest.raises(minrnn.KindError, match="labels whole sequences and predicts no rows"):
        sensors.score({"acceleration": [0.1]})
    with pytest.raises(minrnn.KindError):
        text.score("a text")
    with pytest.raises(minrnn.KindError, match="names"):
        temperature.score(np.zeros((10, 1)))
    for share in (0, 1, -0.5, float("nan")):
        with pytest.raises(minrnn.InputError, match="threshold: expected a share"):
            model.score(meters(), threshold=share)
    with pytest.raises(minrnn.KindError, match="threshold: expected a number"):
        model.score(meters(), threshold="high")
    with pytest.raises(minrnn.InputError, match="the usual rows"):
        model.score(meters(), calibrate={"meter": [7, 7], "load": [1.0, float("inf")]})
    with pytest.raises(minrnn.FileError, match="nothing.csv"):
        model.score(meters(), calibrate=tmp_path / "nothing.csv")
    settings = {**TINY, "target": "load", "horizon": 2, "season": 12, "quantiles": []}
    of_mean = minrnn.train("forecast", {"load": meters()["load"][:STEPS]}, settings=settings, threads=1).model
    with pytest.raises(minrnn.KindError, match=r"quantiles=\[0.1, 0.5, 0.9\]"):
        of_mean.score({"load": [1.0, 2.0]})
