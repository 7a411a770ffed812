"""Estimators: scikit-learn's conventions, and the numbers of the command."""

import os
import pickle

import numpy as np
import pytest

import minrnn
from minrnn import Forecaster, SequenceClassifier, SequenceRegressor
from minrnn.frames import _names
from minrnn.predictions import Predictions
from test_training import TINY, command, frame, load, machines, write

FAST = {"settings": TINY, "n_jobs": 1}


def waves(n=24, steps=20, channels=1):
    """Slow and fast waves, ``[cases, channels, steps]``."""
    pace = np.where(np.arange(n) % 2, 0.9, 0.3)[:, None, None]
    X = np.sin(np.arange(steps) * pace + np.arange(n)[:, None, None] + np.arange(channels)[:, None])
    return X, np.array(["good", "worn"])[np.arange(n) % 2]


@pytest.fixture(scope="module")
def fitted():
    X, y = waves()
    return SequenceClassifier(**FAST).fit(X, y)


def ts(path, X, y):
    """A file of the archives."""
    head = "@problemName waves\n@timestamps false\n@univariate true\n@equalLength true\n@seriesLength 20\n@classLabel true good worn\n@data\n"
    path.write_text(head + "".join(",".join(map(repr, map(float, case[0]))) + f":{label}\n" for case, label in zip(X, y)))
    return path


def test_arrays_give_what_the_command_gives_for_the_archives_file(fitted, tmp_path):
    X, y = waves()
    command("train", "--task", "classify", "--data", ts(tmp_path / "waves.ts", X, y), "--out", tmp_path / "run", settings=TINY | {"threads": 1})
    said = command("predict", tmp_path / "run", "--data", tmp_path / "waves.ts", settings={}).stdout.splitlines()
    rows = [line.split(",") for line in said[1:]]
    assert [row[1] for row in rows] == fitted.predict(X).tolist()
    np.testing.assert_allclose([[float(share) for share in row[2:]] for row in rows], fitted.predict_proba(X), atol=2e-6)


def test_a_classifier_keeps_to_the_conventions(fitted):
    X, y = waves()
    assert fitted.classes_.tolist() == ["good", "worn"] and fitted.n_features_in_ == 1
    assert fitted.predict_proba(X).shape == (24, 2) and 0 <= fitted.score(X, y) <= 1
    assert fitted.report_["measures"] and fitted.history_
    assert "SequenceClassifier(" in repr(fitted) and "class_weight" not in repr(fitted)
    fresh = SequenceClassifier().set_params(random_state=3)
    assert fresh.get_params()["random_state"] == 3
    with pytest.raises(minrnn.InputError, match="no parameter 'seed'"):
        fresh.set_params(seed=3)
    with pytest.raises((minrnn.StateError, ValueError), match="call fit first"):
        fresh.predict(X)


def test_it_is_pickled_with_its_model(fitted):
    X, _ = waves()
    again = pickle.loads(pickle.dumps(fitted))
    np.testing.assert_array_equal(again.predict_proba(X), fitted.predict_proba(X))
    assert again.get_params() == fitted.get_params()


def test_every_parameter_counts():
    """What is learned differs from what is learned without it, and is the same again with it."""
    X, y = waves(channels=2)
    settings = {name: value for name, value in TINY.items() if name != "seed"}

    def learned(seen, **parameters):
        return SequenceClassifier(settings=settings, n_jobs=1, **parameters).fit(seen, y).predict_proba(X)

    plain = learned(X, random_state=5)
    np.testing.assert_array_equal(learned(X, random_state=5), plain)
    others = [learned(X, random_state=6), learned(X, random_state=5, class_weight={"worn": 9}), learned(X[:, [0, 0]], random_state=5)]
    assert all(np.abs(other - plain).max() > 1e-4 for other in others)


@pytest.mark.parametrize("n_jobs", [-1, -2, -1000, None, 0, 2])
def test_jobs_are_counted_as_by_scikit_learn(n_jobs):
    X, y = waves()
    asked = SequenceClassifier(settings=TINY, n_jobs=n_jobs)
    cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count()
    assert asked._threads == {-1: cores, -2: max(1, cores - 1), -1000: 1}.get(n_jobs, n_jobs)
    assert asked.fit(X, y).predict(X).shape == y.shape


def test_shapes_of_arrays_are_the_same_cases(fitted):
    X, _ = waves()
    expected = fitted.predict_proba(X)
    for same in (X[:, 0], list(X), [case[0] for case in X], X.astype(np.float32).astype(float) * 0 + X):
        np.testing.assert_array_equal(fitted.predict_proba(same), expected)
    short = fitted.predict_proba([X[0, :, :7], X[1]])
    np.testing.assert_allclose(short[1], expected[1], atol=1e-6)


@pytest.mark.parametrize("labels", [[7, -1], [0.5, 2.0], [True, False]])
def test_labels_come_back_as_they_were_given(labels):
    X, _ = waves(channels=2)
    y = np.array(labels)[np.arange(24) % 2]
    model = SequenceClassifier(class_weight={labels[0]: 2}, **FAST).fit(X, y)
    assert model.predict(X).dtype == y.dtype and model.classes_.tolist() == sorted(labels) and model.n_features_in_ == 2
    np.testing.assert_array_equal(model.classes_[model.predict_proba(X).argmax(axis=1)], model.predict(X))


@pytest.mark.parametrize("library", ["dictionary", "pandas", "polars", "pyarrow"])
def test_frames_in_long_form_are_read(library):
    make = dict if library == "dictionary" else lambda table: frame(library, table)
    model = SequenceClassifier(group="machine", target="state", **FAST).fit(make(machines()), test=make(machines(8)))
    assert model.classes_.tolist() == ["good", "worn"] and len(model.predict(make(machines(6)))) == 6
    assert model.score(make(machines())) == np.mean(model.predict(make(machines())) == np.array(["good", "worn"])[np.arange(24) % 2])
    assert model.report_["measures"][0]["n"] == 8


@pytest.mark.parametrize("library", ["dictionary", "objects", "pandas", "polars", "pyarrow"])
@pytest.mark.parametrize("labels, names", [([True, False], ["false", "true"]), ([2.0, 0.5], ["0.5", "2"]), ([1, -7], ["-7", "1"])])
def test_labels_of_frames_that_are_no_texts_come_back_as_they_were_given(library, labels, names):
    table = machines()
    states = [labels[state == "worn"] for state in table["state"]]
    table["state"] = np.array(states, dtype=object) if library == "objects" else states
    table = table if library in ("dictionary", "objects") else frame(library, table)
    model = SequenceClassifier(group="machine", target="state", class_weight={labels[0]: 2}, **FAST).fit(table)
    assert model.model_.classes == names and model.classes_.tolist() == sorted(labels)
    assert set(model.predict(table).tolist()) <= set(labels) and 0 <= model.score(table) <= 1


def test_labels_that_are_times_or_have_blanks_around_them_are_found_again():
    X, _ = waves()
    times = np.array(["2024-01-01", "2024-02-03"], dtype="datetime64[ns]")
    for labels in (times, times.astype("datetime64[D]"), np.array([" good", "worn "])):
        y = labels[np.arange(24) % 2]
        model = SequenceClassifier(class_weight={labels[0]: 2}, **FAST).fit(X, y)
        assert model.classes_.tolist() == labels.tolist() and model.predict(X).dtype == y.dtype
        assert model.score(X, y) == np.mean(model.predict(X) == y) == model.score(X, y.astype("datetime64[D]") if y.dtype.kind == "M" else y)
        table = {"series": np.repeat(np.arange(24), 20), "class": np.repeat(y, 20), "value": X.reshape(-1)}
        of_frame = SequenceClassifier(group="series", target="class", class_weight={labels[0]: 2}, **FAST).fit(table)
        assert of_frame.model_.classes == model.model_.classes and 0 <= of_frame.score(table) <= 1


def test_files_are_tables(tmp_path):
    file = write(machines(), tmp_path / "machines.csv")
    of_file, of_frame = (SequenceClassifier(group="machine", target="state", **FAST).fit(table) for table in (file, machines()))
    assert of_file.classes_.tolist() == ["good", "worn"]
    assert of_file.score(file) == of_frame.score(file) == of_frame.score(machines()) == of_file.score(machines()) > 0
    np.testing.assert_array_equal(of_file.predict_proba(file), of_frame.predict_proba(machines()))


def test_numbers_of_files_are_scored(tmp_path):
    X, _ = waves()
    y = X.mean(axis=(1, 2)) * 3 + 10
    long = {"series": np.repeat(np.arange(24), 20), "target": np.repeat(y, 20), "value": X.reshape(-1)}
    file = write(long, tmp_path / "numbers.csv")
    model = SequenceRegressor(group="series", target="target", **FAST).fit(file)
    assert model.score(file) == pytest.approx(model.score(long)) != 0
    assert model.score(file, y) == pytest.approx(model.score(long, y[:, None])) == pytest.approx(model.score(long))


def test_labels_to_score_by_are_one_for_each_case(fitted):
    X, y = waves()
    expected = fitted.score(X, y)
    assert fitted.score(X, y[:, None]) == fitted.score(X, y.tolist()) == fitted.score(X, np.array([f" {label}" for label in y])) == expected
    regressor = SequenceRegressor(**FAST).fit(X, X.mean(axis=(1, 2)))
    for model, labels in ((fitted, y), (regressor, X.mean(axis=(1, 2)))):
        for wrong, sentence in [
            (labels[:3], "a label for each of 24 cases"),
            (np.stack([labels] * 2, axis=1), r"found the shape \[24, 2\]"),
            ([np.nan, *labels[1:]], "label of case 0 is missing"),
            (None, "give y, one for every sequence"),
        ]:
            with pytest.raises(minrnn.InputError, match=sentence):
                model.score(X, wrong)
    with pytest.raises(minrnn.InputError, match="the label of case 1 is inf, expected a finite number"):
        regressor.score(X, [0.5, np.inf, *range(22)])


def test_truths_are_scored_by_what_equals_them():
    X, _ = waves()
    y = np.arange(24) % 2 == 1
    model = SequenceClassifier(**FAST).fit(X, y)
    assert model.score(X, y) == model.score(X, y.astype(int)) == np.mean(model.predict(X) == y)


@pytest.mark.parametrize("library", ["pandas", "polars", "pyarrow"])
def test_what_learned_from_a_frame_reads_frames_as_frames(library):
    model = SequenceClassifier(group="machine", target="state", **FAST).fit(frame(library, machines()))
    table = machines(4)
    for without in ({"vibration": table["vibration"]}, {"engine": table["machine"], "vibration": table["vibration"]}):
        with pytest.raises(minrnn.InputError, match="no column 'machine'"):
            model.predict(frame(library, without))
    if library == "pandas":
        with pytest.raises(minrnn.InputError, match="no column 'machine'"):
            model.predict(frame(library, table).set_index("machine"))
    X, y = waves()
    cases = frame("pandas", {f"t{at}": X[:, 0, at] for at in range(20)}) if library == "pandas" else X
    assert SequenceClassifier(**FAST).fit(cases, y).predict(cases).shape == (24,)


@pytest.mark.parametrize("library", ["dictionary", "pandas", "polars"])
def test_classes_are_those_of_the_model_however_they_are_written(library):
    make = dict if library == "dictionary" else lambda table: frame(library, table)
    X, _ = waves()
    for labels in ([1e20, 1.0], [1e-7, 2e-7], [" good", "worn "], [2**63 + 1, 2**63 + 3]):
        y = [labels[at % 2] for at in range(24)]
        long = {"series": np.repeat(np.arange(24), 20), "class": [label for label in y for _ in range(20)], "value": X.reshape(-1)}
        of_frame = SequenceClassifier(group="series", target="class", **FAST).fit(make(long))
        of_list = SequenceClassifier(**FAST).fit(X, y)
        assert of_frame.classes_.tolist() == of_list.classes_.tolist() == sorted(labels)
        assert of_list.score(X, y) == np.mean([found == label for found, label in zip(of_list.predict(X), y)])
        assert of_frame.score(make(long)) == of_list.score(X, y)


def test_a_wide_frame_is_learned_from_and_scored():
    X, y = waves()
    wide = {"class": y, **{f"t{at}": X[:, 0, at] for at in range(20)}}
    model = SequenceClassifier(**FAST).fit(wide)
    assert model.classes_.tolist() == ["good", "worn"] and model.predict(wide).shape == (24,)
    assert model.score(wide) == np.mean(model.predict(wide) == y)


@pytest.mark.parametrize("library", ["dictionary", "pandas", "polars", "pyarrow"])
def test_labels_and_sequences_without_a_name_are_refused(library):
    make = dict if library == "dictionary" else lambda table: frame(library, table)
    table = machines()
    table["machine"] = np.repeat(np.arange(24.0), 20)
    model = SequenceClassifier(group="machine", target="state", **FAST).fit(make(table))
    nameless = [make({**table, "machine": np.where(np.arange(480) < 20, np.nan, table["machine"])})]
    if library == "pandas":
        nameless.append(nameless[0].astype({"machine": "Int64"}))
    for one in nameless:
        for call in (model.predict, SequenceClassifier(group="machine", target="state", **FAST).fit):
            with pytest.raises(minrnn.InputError, match="column 'machine': the cell is empty, expected a name"):
                call(one)


def test_pairs_of_arrays_are_scored():
    X, y = waves()
    model = SequenceClassifier(**FAST).fit(X, y, test=(X[:10], y[:10]))
    assert model.report_["measures"][0]["n"] == 10


def test_missing_values_are_a_choice():
    X, y = waves()
    X[3, 0, 5] = np.nan
    with pytest.raises(minrnn.InputError, match="table"):
        SequenceClassifier(**FAST).fit(X, y)
    for missing in ("forward-fill", "mask"):
        assert SequenceClassifier(missing=missing, **FAST).fit(X, y).predict(X).shape == (24,)


REFUSED = [
    (lambda X, y: (X, None), minrnn.InputError, "requires y to be passed"),
    (lambda X, y: (X, y[:3]), minrnn.InputError, "a label for each of 24 cases"),
    (lambda X, y: (X[0, 0], y), minrnn.InputError, "expected an array of the shape"),
    (lambda X, y: ([], []), minrnn.InputError, "at least one case"),
    (lambda X, y: ([X[0], np.zeros((2, 9))], y[:2]), minrnn.InputError, "case 1 has the shape"),
    (lambda X, y: ([X[0], X[1], np.zeros((1, 0)), X[3]], y[:4]), minrnn.InputError, r"case 2 has the shape \[1, 0\], expected at least one step"),
    (lambda X, y: (np.array([["a", "b"]]), y[:1]), minrnn.KindError, "expected numbers"),
    (lambda X, y: (np.array([[1.0, "a"]], dtype=object), y[:1]), minrnn.KindError, "case 0: expected numbers"),
    (lambda X, y: (X * 1j, y), minrnn.InputError, "Complex data not supported"),
    (lambda X, y: (X, [None, *y[1:]]), minrnn.InputError, "label of case 0 is missing"),
    (lambda X, y: (machines(), y), minrnn.InputError, "leave y out"),
    (lambda X, y: (X, [1, *y[1:].tolist()]), minrnn.InputError, "labels of several kinds"),
    (lambda X, y: (X, np.array([1, *y[1:]], dtype=object)), minrnn.InputError, "labels of several kinds"),
]


@pytest.mark.parametrize("wrong, error, sentence", REFUSED)
def test_what_is_no_case_is_refused(wrong, error, sentence):
    with pytest.raises(error, match=sentence):
        SequenceClassifier(**FAST).fit(*wrong(*waves()))


def test_a_case_without_steps_is_refused_wherever_cases_are_read(fitted):
    X, y = waves()
    cases = [X[0], np.zeros((1, 0)), X[2]]
    for call in (
        lambda: SequenceClassifier(**FAST).fit(X, y, test=(cases, y[:3])),
        lambda: SequenceRegressor(**FAST).fit(cases, [1.0, 2.0, 3.0]),
        lambda: fitted.predict(cases),
        lambda: fitted.score(cases, y[:3]),
    ):
        with pytest.raises(minrnn.InputError, match=r"case 1 has the shape \[1, 0\], expected at least one step of each channel; leave the case out"):
            call()


def test_other_channels_are_refused(fitted):
    with pytest.raises(minrnn.InputError, match="case 0 has 2 channels, expected 1 feature"):
        fitted.predict(waves(channels=2)[0])


def test_a_regressor_finds_numbers(tmp_path):
    X, _ = waves()
    y = X.mean(axis=(1, 2)) * 3 + 10
    model = SequenceRegressor(**FAST).fit(X, y)
    assert model.predict(X).shape == (24,) and model.score(X, y) <= 1
    again = pickle.loads(pickle.dumps(model))
    np.testing.assert_array_equal(again.predict(X), model.predict(X))
    long = {"series": np.repeat(np.arange(24), 20), "target": np.repeat(y, 20), "value": X.reshape(-1)}
    file = write(long, tmp_path / "numbers.csv")
    flags = ["--group", "series", "--target", "target"]
    command("train", "regress", "--data", file, *flags, "--out", tmp_path / "run", settings=TINY | {"threads": 1})
    said = command("predict", tmp_path / "run", "--data", file, settings={}).stdout.splitlines()[1:]
    of_frame = SequenceRegressor(group="series", target="target", **FAST).fit(long)
    np.testing.assert_allclose([float(line.split(",")[1]) for line in said], of_frame.predict(long), rtol=1e-5)
    assert of_frame.score(long) == pytest.approx(of_frame.score(long, y))


def test_a_forecaster_gives_what_the_command_gives(tmp_path):
    table = {name: column for name, column in load().items() if name != "offer"}
    model = Forecaster(6, season=12, **FAST).fit(table)
    file = write(table, tmp_path / "load.csv")
    command("train", "forecast", "--data", file, "--horizon", "6", "--season", "12", "--out", tmp_path / "run", settings=TINY | {"threads": 1})
    said = command("predict", tmp_path / "run", "--data", file, settings={}).stdout.splitlines()
    forecast = model.predict()
    assert list(forecast) == said[0].split(",") == ["unique_id", "ds", "step", "y", "y q0.1", "y q0.9"]
    np.testing.assert_allclose([float(line.split(",")[3]) for line in said[1:]], forecast["y"], rtol=1e-5)
    assert forecast["ds"][0] == np.datetime64("2024-01-04T08")
    again = pickle.loads(pickle.dumps(model))
    np.testing.assert_array_equal(again.predict()["y"], forecast["y"])


def test_quantiles_however_close_have_columns_of_their_own_named_as_by_the_command(tmp_path):
    table = {name: column for name, column in load().items() if name != "offer"}
    settings = TINY | {"quantiles": [0.1, 0.1000001, 0.5]}
    run = minrnn.train("forecast", table, out=tmp_path / "run", settings=settings | {"horizon": 2}, threads=1)
    predictions = run.model.predict(table)
    columns = predictions.columns()
    said = command("predict", run.path, "--data", write(table, tmp_path / "load.csv"), settings={}).stdout.splitlines()
    assert list(columns) == said[0].split(",") == ["unique_id", "ds", "step", "y", "y q0.1", "y q0.1000001"]
    np.testing.assert_array_equal(columns["y q0.1000001"], predictions.values[:, :, 0, 1].reshape(-1))


def test_a_column_never_takes_the_place_of_another():
    task = {"task": "forecast", "target": ["sequence", "step"], "horizon": 2}
    names, numbers = [("sequence", 0), ("step", 1)], np.arange(8.0).reshape(2, 2, 2)
    columns = Predictions(task, names, None, numbers).columns()
    assert list(columns) == ["sequence_number", "step_ahead", "sequence", "step"] and columns["step"].tolist() == [1, 3, 5, 7]
    twice = Predictions(task, [("y", 0), ("y", 1)], None, numbers)
    assert "of 2 sequences" in repr(twice)
    with pytest.raises(minrnn.InputError, match="two columns would be called 'y'"):
        twice.columns()


@pytest.mark.parametrize("library", ["pandas", "polars", "pyarrow"])
def test_forecasts_are_frames_of_the_library_of_the_table(library):
    table = {name: column for name, column in load().items() if name != "offer"}
    forecast = Forecaster(4, **FAST).fit(frame(library, table)).predict()
    assert type(forecast).__module__.split(".")[0] == (library if library != "pyarrow" else "builtins")
    assert len(forecast["y"]) == 12
    first = forecast["ds"][0]
    assert str(first).startswith("2024-01-04")
    assert np.issubdtype(np.asarray(forecast["ds"]).dtype, np.datetime64)


def test_a_forecast_is_scored_on_what_came():
    whole = load()
    rows = np.tile(np.arange(80) < 70, 3)
    history, later = ({name: column[mask] for name, column in whole.items() if name != "offer"} for mask in (rows, ~rows))
    model = Forecaster(5, **FAST).fit(history)
    forecast = np.asarray(model.predict()["y"]).reshape(3, 5)
    assert model.score(later) == pytest.approx(-np.abs(forecast - later["y"].reshape(3, 10)[:, :5]).mean())
    with pytest.raises(minrnn.InputError, match="has no values"):
        model.score({**later, "unique_id": np.repeat("other", 30)})


def test_a_forecast_is_scored_on_what_is_in_memory(tmp_path):
    forecaster = Forecaster(**FAST).fit(load())
    with pytest.raises(minrnn.KindError, match="expected a table in memory to score on, found the path '.*later.csv'"):
        forecaster.score(tmp_path / "later.csv")


def test_values_are_scored_by_their_times_not_by_their_rows():
    whole = {name: column for name, column in load().items() if name != "offer"}
    at = np.tile(np.arange(80), 3)

    def rows(mask, order=slice(None)):
        return {name: column[mask][order] for name, column in whole.items()}

    model = Forecaster(5, **FAST).fit(rows(at < 70))
    expected = model.score(rows((at >= 70) & (at < 75)))
    assert model.score(rows(at >= 70, slice(None, None, -1))) == pytest.approx(expected)
    assert model.score(whole) == pytest.approx(expected)
    # A step is left out: the others are what they were.
    errors = [model.score(rows(at == step)) for step in range(70, 75)]
    assert model.score(rows((at >= 70) & (at < 75) & (at != 71))) == pytest.approx(np.mean(errors[:1] + errors[2:]))
    for other in (at < 10, (at >= 60) & (at < 72), at >= 72):
        with pytest.raises(minrnn.InputError, match="the series 'b0': the times from 2024-01-03 22:00:00 to 2024-01-04 02:00:00 follow"):
            model.score(rows(other))
    twice = {name: np.concatenate([column, column]) for name, column in rows(at == 70).items()}
    with pytest.raises(minrnn.InputError, match="each once"):
        model.score(twice)


def test_times_keep_their_type_and_go_on_beyond_nanoseconds():
    days = np.datetime64("2262-03-01", "D") + np.arange(42)
    table = {"unique_id": ["a"] * 42, "ds": days.astype("datetime64[us]"), "y": np.sin(np.arange(42) * 0.9)}
    forecast = Forecaster(5, **FAST).fit(table).predict()
    assert forecast["ds"].tolist() == (np.datetime64("2262-04-12", "D") + np.arange(5)).astype("datetime64[us]").tolist()
    nanoseconds = {**table, "ds": days.astype("datetime64[ns]")}
    again = Forecaster(5, **FAST).fit(nanoseconds).predict()
    assert again["ds"].tolist() == forecast["ds"].tolist()
    numbers = {**table, "ds": np.array([20240101 + at for at in range(28)] + [20240129, 20240130, 20240131] + [20240201 + at for at in range(11)])}
    assert Forecaster(5, **FAST).fit(numbers).predict()["ds"].tolist() == [20240212, 20240213, 20240214, 20240215, 20240216]


@pytest.mark.parametrize("library", ["dictionary", "pandas", "polars", "pyarrow"])
def test_a_forecaster_keeps_what_it_learned_from_as_it_was(library):
    table = {name: column.copy() for name, column in load().items()} | {"note": np.repeat("unread", 240)}
    given = table if library == "dictionary" else frame(library, table)
    model = Forecaster(3, known_ahead=["offer"], calendar=["weekday"], columns=["offer"], **FAST).fit(given)
    future = {"unique_id": np.repeat(["b0", "b1", "b2"], 3), "ds": np.tile(load()["ds"][79] + np.arange(1, 4) * np.timedelta64(3_600_000, "ms"), 3), "offer": np.zeros(9)}
    expected = np.asarray(model.predict(future=future)["y"])
    if library == "pandas":
        given["y"] *= 100
        given.loc[:, "offer"] = 5.0
    elif library == "dictionary":
        given["y"] *= 100
    elif library == "polars":
        given[0, "y"] = 1e5
    np.testing.assert_array_equal(model.predict(future=future)["y"], expected)
    assert sorted(_names(model._history)) == ["ds", "offer", "unique_id", "y"]


def test_parameters_may_be_arrays_and_a_horizon_that_is_whole():
    table = {name: column for name, column in load().items() if name != "offer"}
    model = Forecaster(3.0, quantiles=np.array([0.1, 0.5, 0.9]), **FAST)
    assert "horizon=3.0, quantiles=array(" in repr(model)
    early = {name: np.concatenate([column.reshape(3, 80)[at, :77] for at in range(3)]) for name, column in table.items()}
    assert np.isfinite(model.fit(early).score(table))


TIMES = {
    "utc": lambda pandas, times: pandas.Series(times).dt.tz_localize("UTC"),
    "arrow-utc": lambda pandas, times: pandas.Series(times).dt.tz_localize("UTC").astype("timestamp[us, UTC][pyarrow]"),
    "arrow": lambda pandas, times: pandas.Series(times).astype("timestamp[ms][pyarrow]"),
    "arrow-date": lambda pandas, times: pandas.Series(times.astype("datetime64[D]").tolist(), dtype="date32[pyarrow]"),
    "dates": lambda pandas, times: pandas.Series(times.astype("datetime64[D]").tolist(), dtype=object),
    "datetimes": lambda pandas, times: pandas.Series(times.astype("datetime64[us]").tolist(), dtype=object),
    "period": lambda pandas, times: pandas.Series(pandas.PeriodIndex(times, freq="D")),
    "integers": lambda pandas, times: pandas.Series(times.astype("datetime64[D]").astype(int), dtype="Int64"),
    "small": lambda pandas, times: pandas.Series(times.astype("datetime64[D]").astype(np.int32)),
    "texts": lambda pandas, times: pandas.Series(times.astype("datetime64[D]").astype(str)),
}


@pytest.mark.parametrize("kind", list(TIMES))
def test_times_of_pandas_keep_their_type_so_that_frames_can_be_merged(kind):
    pandas = pytest.importorskip("pandas")
    if kind.startswith("arrow"):
        pytest.importorskip("pyarrow")
    times = np.datetime64("2024-01-01") + np.arange(45).astype("timedelta64[D]")
    whole = pandas.DataFrame({"unique_id": "a", "ds": TIMES[kind](pandas, times.astype("datetime64[ns]")), "y": np.sin(np.arange(45) * 0.9)})
    forecast = Forecaster(5, **FAST).fit(whole[:40]).predict()
    assert forecast["ds"].dtype == whole["ds"].dtype
    assert forecast["ds"].tolist() == whole["ds"].tolist()[40:] and len(forecast.merge(whole, on="ds")) == 5


NAMES = {
    "integers": lambda pandas, names: pandas.Series(names),
    "small": lambda pandas, names: pandas.Series(names.astype(np.int16)),
    "nullable": lambda pandas, names: pandas.Series(names, dtype="Int64"),
    "reals": lambda pandas, names: pandas.Series(names / 4),
    "categories": lambda pandas, names: pandas.Series(names.astype(str), dtype="category"),
    "categories-of-integers": lambda pandas, names: pandas.Series(names, dtype="category"),
    "arrow": lambda pandas, names: pandas.Series(names, dtype="int32[pyarrow]"),
    "arrow-texts": lambda pandas, names: pandas.Series(names.astype(str), dtype="string[pyarrow]"),
    "texts": lambda pandas, names: pandas.Series(names.astype(str)),
    "objects": lambda pandas, names: pandas.Series(names.astype(object)),
}


def two_series(names):
    """Two series of 40 steps, whose names have the type of ``names``."""
    return {"unique_id": names, "ds": np.tile(np.arange(40), 2), "y": np.sin(np.arange(80) * 0.9)}


@pytest.mark.parametrize("kind", list(NAMES))
def test_names_of_pandas_keep_their_type_so_that_frames_can_be_merged(kind):
    pandas = pytest.importorskip("pandas")
    if kind.startswith("arrow"):
        pytest.importorskip("pyarrow")
    frame = pandas.DataFrame(two_series(NAMES[kind](pandas, np.repeat([7, 1000], 40))))
    # Rows that stand in an order of their own, under names of their own.
    frame = frame.sample(frac=1, random_state=1)
    model = Forecaster(5, **FAST).fit(frame)
    names = [frame["unique_id"].iloc[0], next(name for name in frame["unique_id"] if name != frame["unique_id"].iloc[0])]
    # A model from a file knows the type by the frame that it predicts for.
    for forecast in (model.predict(), model.model_.predict(frame).to_pandas()):
        assert forecast["unique_id"].dtype == frame["unique_id"].dtype
        assert forecast["unique_id"].tolist() == [names[0]] * 5 + [names[1]] * 5 and forecast["step"].tolist() == [1, 2, 3, 4, 5] * 2
        assert len(forecast.merge(frame.drop_duplicates("unique_id"), on="unique_id")) == 10


@pytest.mark.parametrize("kind", ["Int16", "UInt64", "String", "Categorical", "Enum"])
def test_names_of_polars_keep_their_type_so_that_frames_can_be_joined(kind):
    polars = pytest.importorskip("polars")
    texts = kind in ("String", "Categorical", "Enum")
    dtype = polars.Enum(["1000", "7"]) if kind == "Enum" else getattr(polars, kind)
    names = ["7"] * 40 + ["1000"] * 40 if texts else [7] * 40 + [1000] * 40
    frame = polars.DataFrame(two_series(polars.Series(names, dtype=dtype)))
    model = Forecaster(5, **FAST).fit(frame)
    for forecast in (model.predict(), model.model_.predict(frame).to_polars()):
        assert forecast["unique_id"].dtype == frame["unique_id"].dtype
        assert forecast["unique_id"].to_list() == names[35:45]
        assert len(forecast.join(frame.unique("unique_id"), on="unique_id")) == 10


@pytest.mark.parametrize("library", ["dictionary", "pyarrow"])
def test_names_of_arrays_keep_their_type_and_those_of_a_file_are_texts(library, tmp_path):
    table = two_series(np.repeat(np.array([7, 1000], dtype=np.int32), 40))
    given = table if library == "dictionary" else frame(library, table)
    model = Forecaster(5, **FAST).fit(given)
    forecast = model.predict()
    assert forecast["unique_id"].dtype == np.int32 and forecast["unique_id"].tolist() == [7] * 5 + [1000] * 5
    assert model.model_.predict(given).names == [7, 1000]
    file = tmp_path / "table.csv"
    file.write_text("unique_id,ds,y\n" + "".join(f"{name},{at},{y}\n" for name, at, y in zip(*table.values())))
    assert model.predict(file)["unique_id"].tolist() == ["7"] * 5 + ["1000"] * 5
    # The type is that of the table that is predicted for.
    other = {**table, "unique_id": np.repeat(["a", "b"], 40)}
    assert model.predict(other)["unique_id"].tolist() == ["a"] * 5 + ["b"] * 5


def test_times_that_are_categories_go_on_as_texts():
    pandas = pytest.importorskip("pandas")
    days = (np.datetime64("2024-01-01") + np.arange(45).astype("timedelta64[D]")).astype(str)
    frame = pandas.DataFrame({"unique_id": "a", "ds": pandas.Categorical(days[:40]), "y": np.sin(np.arange(40) * 0.9)})
    assert Forecaster(5, **FAST).fit(frame).predict()["ds"].tolist() == days[40:].tolist()


def test_a_stream_of_batches_and_a_column_called_select_are_learned_from():
    pyarrow = pytest.importorskip("pyarrow")
    pandas = pytest.importorskip("pandas")
    table = {"unique_id": ["a"] * 40, "ds": list(range(40)), "y": np.sin(np.arange(40) * 0.9).tolist(), "select": [1.0, 2.0] * 20}
    expected = Forecaster(3, columns=["y", "select"], **FAST).fit(pandas.DataFrame(table)).predict()["y"].tolist()

    class Stream:
        def __arrow_c_stream__(self, requested_schema=None):
            return pyarrow.table(table).__arrow_c_stream__(requested_schema)

    assert list(Forecaster(3, columns=["y", "select"], **FAST).fit(Stream()).predict()["y"]) == expected


def test_a_stream_that_can_be_read_once_is_learned_from_and_forecast():
    pyarrow = pytest.importorskip("pyarrow")
    table = pyarrow.table({"unique_id": ["a"] * 40, "ds": list(range(40)), "y": np.sin(np.arange(40) * 0.9), "notes": ["x"] * 40})

    def once(table=table):
        return pyarrow.RecordBatchReader.from_batches(table.schema, table.to_batches(max_chunksize=7))

    expected = Forecaster(3, **FAST).fit(table).predict()
    model = Forecaster(3, **FAST).fit(once())
    for each in (model, model, pickle.loads(pickle.dumps(model))):
        np.testing.assert_array_equal(each.predict()["y"], expected["y"])
    long = pyarrow.table({name: list(values) for name, values in machines().items()})
    classifier = SequenceClassifier(group="machine", target="state", **FAST).fit(once(long))
    assert classifier.classes_.tolist() == ["good", "worn"] and classifier.score(once(long)) == classifier.score(long)
    with pytest.raises(minrnn.InputError, match="the table"):
        Forecaster(3, **FAST).fit(pyarrow.RecordBatchReader.from_batches(table.schema, broken(table)))


def broken(table):
    yield table.to_batches()[0]
    raise OSError("the disk")


@pytest.mark.parametrize("kind", ["utc", "date", "int32", "milliseconds"])
def test_times_of_polars_keep_their_type_so_that_frames_can_be_joined(kind):
    polars = pytest.importorskip("polars")
    times = polars.Series("ds", (np.datetime64("2024-01-01") + np.arange(45)).astype("datetime64[us]"))
    change = {
        "utc": lambda: times.dt.replace_time_zone("UTC"),
        "date": lambda: times.cast(polars.Date),
        "int32": lambda: times.cast(polars.Date).cast(polars.Int32),
        "milliseconds": lambda: times.cast(polars.Datetime("ms")),
    }[kind]
    whole = polars.DataFrame({"unique_id": ["a"] * 45, "ds": change(), "y": np.sin(np.arange(45) * 0.9)})
    forecast = Forecaster(5, **FAST).fit(whole[:40]).predict()
    assert forecast["ds"].dtype == whole["ds"].dtype
    assert forecast["ds"].to_list() == whole["ds"].to_list()[40:] and len(forecast.join(whole, on="ds")) == 5


def test_what_is_to_be_known_of_a_table_is_told_with_its_predictions():
    table = {name: column for name, column in load().items() if name != "offer"}
    model = Forecaster(3, **FAST).fit(table)
    short = {name: column[:230] for name, column in table.items()}
    sentence = "1 of 3 sequences end before the newest"
    with pytest.warns(UserWarning, match=sentence) as told:
        model.predict(short)
    assert [warning.filename for warning in told] == [__file__]
    assert [note[: len(sentence)] for note in model.model_.predict(short).notes] == [sentence]
    assert model.model_.predict(table).notes == []


def test_a_training_of_an_estimator_that_is_stopped_promises_no_run(monkeypatch):
    def stop(*_, **__):
        raise KeyboardInterrupt

    monkeypatch.setattr("minrnn.training.progress_bar", lambda: Bar(stop))
    with pytest.raises(KeyboardInterrupt) as stopped:
        SequenceClassifier(progress=True, **FAST).fit(*waves())
    assert getattr(stopped.value, "__notes__", []) == []


class Bar:
    """A progress bar that does something with updates."""

    def __init__(self, do):
        self.do = do

    def __call__(self, event):
        if event["event"] == "update":
            self.do()

    def close(self):
        pass


def test_scikit_learn_takes_them():
    pytest.importorskip("sklearn")
    from sklearn.base import clone, is_classifier, is_regressor
    from sklearn.model_selection import GridSearchCV, cross_val_score

    X, y = waves()
    model = SequenceClassifier(**FAST)
    assert is_classifier(model) and is_regressor(SequenceRegressor()) and is_regressor(Forecaster())
    assert clone(model).get_params() == model.get_params()
    assert cross_val_score(model, X, y, cv=2).shape == (2,)
    search = GridSearchCV(model, {"random_state": [1, 2]}, cv=2).fit(X, y)
    assert search.best_params_["random_state"] in (1, 2)
    from sklearn.exceptions import NotFittedError

    with pytest.raises(NotFittedError):
        SequenceClassifier().predict(X)


# Checks that are about rows of features, where these estimators have sequences of steps.
NOT_OF_SEQUENCES = {
    "check_n_features_in_after_fitting",  # the number of channels, not of steps
    "check_n_features_in",
    "check_fit2d_1feature",  # a sequence of one step
    "check_fit2d_1sample",
    "check_fit2d_predict1d",
    "check_estimators_empty_data_messages",
    "check_classifiers_regression_target",  # any labels are classes
    "check_classifiers_train",  # as little training as here does not learn iris
    "check_regressors_train",
    "check_class_weight_classifiers",
}


@pytest.mark.filterwarnings("ignore:.*does not inherit from:UserWarning")
@pytest.mark.parametrize("kind", [SequenceClassifier, SequenceRegressor])
def test_scikit_learns_checks_hold_but_for_those_about_features(kind):
    checks = pytest.importorskip("sklearn.utils.estimator_checks")
    small = {"max_iterations": 2, "d_model": 4, "n_layers": 1, "eval_every": 2, "checkpoint_every": 2, "warmup": 1, "refit": False}
    results = checks.check_estimator(kind(settings=small, n_jobs=1), on_fail=None, on_skip=None)
    failed = {result["check_name"]: str(result["exception"]) for result in results if result["status"] == "failed"}
    assert failed.keys() <= NOT_OF_SEQUENCES, {name: why for name, why in failed.items() if name not in NOT_OF_SEQUENCES}
    assert sum(result["status"] == "passed" for result in results) >= 36


def test_aeon_arrays_are_taken():
    datasets = pytest.importorskip("aeon.datasets")
    X, y = datasets.load_gunpoint(split="train")
    model = SequenceClassifier(**FAST).fit(X, y)
    assert model.predict(X).dtype == y.dtype and model.n_features_in_ == 1


@pytest.mark.parametrize("library", ["pandas", "polars"])
def test_names_of_series_in_a_dictionary_keep_their_type(library):
    module = pytest.importorskip(library)
    names = np.repeat([7, 1000], 40).astype(np.int16)
    forecast = Forecaster(5, **FAST).fit({**two_series(names), "unique_id": module.Series(names)}).predict()
    assert forecast["unique_id"].dtype == np.int16 and forecast["unique_id"].tolist() == [7] * 5 + [1000] * 5


def test_batches_of_arrow_may_hold_names_as_texts():
    pyarrow = pytest.importorskip("pyarrow")
    batch = pyarrow.RecordBatch.from_pydict({name: pyarrow.array(list(column)) for name, column in two_series(["a"] * 40 + ["b"] * 40).items()})
    assert Forecaster(5, **FAST).fit(batch).predict()["unique_id"].tolist() == ["a"] * 5 + ["b"] * 5
