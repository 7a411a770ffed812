"""Tables of every kind give what the command line gives."""

import csv
import datetime
import json

import numpy as np
import pytest

import minrnn
from conftest import EXPECTED, MODELS
from minrnn import handed
from test_training import TINY, frame, load, machines


def read(path):
    with open(path, newline="") as file:
        rows = list(csv.DictReader(file))
    return {name: [row[name] for row in rows] for name in rows[0]}


@pytest.fixture
def recordings():
    table = read(EXPECTED / "sensors-in.csv")
    return {"recording": table["recording"], "acceleration": [float(value) for value in table["acceleration"]]}


@pytest.fixture
def months():
    table = read(MODELS / "temperature.csv")
    return {"date": table["date"], "temperature": [float(value) for value in table["temperature"]]}


def expect(predicted, expected):
    for name, column in predicted.columns().items():
        if isinstance(column[0], str):
            assert list(column) == expected[name], name
        else:
            np.testing.assert_allclose(np.asarray(column, dtype=float), np.array(expected[name], dtype=float), rtol=1e-5, atol=2e-6)


def test_classes_are_those_of_the_command_line(sensors, recordings):
    predicted = sensors.predict(recordings)
    assert predicted.names == ["r0", "r1", "r2"] and predicted.probabilities.shape == (3, 4)
    expect(predicted, read(EXPECTED / "sensors.csv"))


def test_forecasts_are_those_of_the_command_line(temperature, months):
    predicted = temperature.predict(months)
    assert predicted.values.shape == (1, 12, 1, 3)
    expect(predicted, read(EXPECTED / "temperature.csv"))


@pytest.mark.parametrize("library", ["pandas", "polars", "pyarrow"])
def test_frames_are_read_and_written(library, sensors, temperature, recordings, months):
    module = pytest.importorskip(library)
    frame = {"pandas": "DataFrame", "polars": "DataFrame", "pyarrow": "table"}[library]
    make = getattr(module, frame)
    np.testing.assert_array_equal(sensors.predict(make(recordings)).probabilities, sensors.predict(recordings).probabilities)
    predicted = temperature.predict(make(months))
    np.testing.assert_array_equal(predicted.values, temperature.predict(months).values)
    if library != "pyarrow":
        written = getattr(predicted, f"to_{library}")()
        assert list(written.columns) == ["date", "step", "temperature", "temperature q0.1", "temperature q0.9"] and len(written) == 12


def test_files_are_read(sensors, recordings):
    predicted = sensors.predict(EXPECTED / "sensors-in.csv")
    np.testing.assert_array_equal(predicted.probabilities, sensors.predict(recordings).probabilities)
    assert predicted.names == ["r0", "r1", "r2"]
    with pytest.raises(minrnn.FileError, match="nothing.csv"):
        sensors.predict("nothing.csv")


def test_rows_come_in_any_order_where_there_are_times(temperature, months):
    expected = temperature.predict(months).values
    order = np.random.default_rng(0).permutation(len(months["date"]))
    shuffled = {name: [column[at] for at in order] for name, column in months.items()}
    np.testing.assert_array_equal(temperature.predict(shuffled).values, expected)
    dates = {**shuffled, "date": np.array(shuffled["date"], dtype="datetime64[M]")}
    np.testing.assert_array_equal(temperature.predict(dates).values, expected)


def test_arrays_are_sequences(sensors, recordings):
    expected = sensors.predict(recordings).probabilities
    values = np.array(recordings["acceleration"])
    sequences = [values[:40, None], values[40:95, None], values[95:, None]]
    np.testing.assert_array_equal(sensors.predict(sequences).probabilities, expected)
    np.testing.assert_array_equal(sensors.predict(sequences[0]).probabilities, expected[:1])
    np.testing.assert_array_equal(sensors.predict(np.stack([sequences[0]] * 2)).probabilities, expected[[0, 0]])


def test_a_row_may_name_its_columns(sensors):
    np.testing.assert_array_equal(sensors.session().step({"acceleration": 0.3}), sensors.session().step(0.3))
    with pytest.raises(minrnn.InputError, match="reads no column 'speed', expected acceleration"):
        sensors.session().step({"speed": 0.3})
    with pytest.raises(minrnn.InputError, match="'acceleration' is missing"):
        sensors.session().step({})


@pytest.mark.parametrize("library", ["pandas", "polars", "pyarrow"])
def test_times_of_a_zone_are_refused_and_those_of_utc_are_not(library, temperature, months):
    module = pytest.importorskip(library)
    dates = np.array(months["date"], dtype="datetime64[ns]")

    def column(zone):
        if library == "pandas":
            return module.Series(dates).dt.tz_localize(zone)
        return module.Series(dates).dt.replace_time_zone(zone) if library == "polars" else module.array(dates, module.timestamp("ns", zone))

    expected = temperature.predict(months).values
    tables = [lambda of_zone: frame(library, {**months, "date": of_zone}), lambda of_zone: {**months, "date": of_zone}]
    if library == "pyarrow":
        tables.append(lambda of_zone: {**months, "date": module.chunked_array([of_zone[:5], of_zone[5:]])})
    for table in tables:
        np.testing.assert_array_equal(temperature.predict(table(column("UTC"))).values, expected)
        with pytest.raises(minrnn.InputError, match="the column 'date' holds times of the zone 'Europe/Berlin', expected UTC"):
            temperature.predict(table(column("Europe/Berlin")))


def test_utc_is_known_by_whatever_name_it_has(temperature, months):
    pandas = pytest.importorskip("pandas")
    dates = pandas.Series(np.array(months["date"], dtype="datetime64[ns]"))
    expected = temperature.predict(months).values
    for zone in ("dateutil/UTC", "Etc/GMT", datetime.timezone(datetime.timedelta()), datetime.timezone.utc):
        np.testing.assert_array_equal(temperature.predict({**months, "date": dates.dt.tz_localize(zone)}).values, expected)
    for zone in ("Europe/London", "Etc/GMT+1", datetime.timezone(datetime.timedelta(hours=1))):
        with pytest.raises(minrnn.InputError, match="holds times of the zone"):
            temperature.predict({**months, "date": dates.dt.tz_localize(zone)})


def test_times_are_what_they_are_however_far_from_today(temperature, months):
    expected = temperature.predict(months)
    for first in ("1500-01", "2300-01", "9000-01"):
        dates = np.datetime64(first, "M") + np.arange(len(months["date"]))
        for column in (dates, dates.astype("datetime64[s]"), dates.astype("datetime64[us]"), dates.astype("datetime64[us]").tolist()):
            predicted = temperature.predict({**months, "date": column})
            np.testing.assert_array_equal(predicted.values, expected.values)
            assert np.datetime64(predicted.times[0][0], "M") == dates[-1] + 1, column
    far = np.array(["0001-01-01"] * len(dates), dtype="datetime64[s]") + np.arange(len(dates)) * 10**13
    with pytest.raises(minrnn.InputError, match="farther from 1970"):
        temperature.predict({**months, "date": far})


def test_objects_with_a_zone_are_refused_as_columns_are(temperature, months):
    dates = [datetime.datetime.fromisoformat(f"{date}-01") for date in months["date"]]
    expected = temperature.predict(months).values
    of_utc = [date.replace(tzinfo=datetime.timezone.utc) for date in dates]
    np.testing.assert_array_equal(temperature.predict({**months, "date": of_utc}).values, expected)
    np.testing.assert_array_equal(temperature.predict({**months, "date": [date.date() for date in dates]}).values, expected)
    elsewhere = [date.replace(tzinfo=datetime.timezone(datetime.timedelta(hours=2))) for date in dates]
    with pytest.raises(minrnn.InputError, match="the column 'date' holds times of the zone 'UTC\\+02:00', expected UTC"):
        temperature.predict({**months, "date": elsewhere})
    with pytest.raises(minrnn.InputError, match="holds no times: found '00:00:00'"):
        temperature.predict({**months, "date": [date.time() for date in dates]})


def test_sequences_keep_their_names(sensors, recordings):
    names = dict(zip(["r0", "r1", "r2"], range(3)))
    of_row = np.array([names[name] for name in recordings["recording"]])
    expected = sensors.predict(recordings).probabilities
    for three in (
        [2**63 + 1, 2**63 + 2, 2**64 - 1],
        [2**60 + 1, 2**60 + 2, 2**60 + 3],
        [1.0, 2.5, 1e21],
        [1e-7, 2e-7, 3e-7],
        [datetime.datetime(2024, 1, 1), datetime.datetime(2024, 1, 1, 0, 0, 0, 250_000), datetime.datetime(2024, 1, 1, 0, 0, 0, 7)],
    ):
        for column in (np.array(three)[of_row], np.array(three, dtype=object)[of_row].tolist()):
            predicted = sensors.predict({**recordings, "recording": column})
            assert predicted.names == three, three
            np.testing.assert_array_equal(predicted.probabilities, expected)


@pytest.fixture(scope="module")
def shop():
    """Forecasts sales by the weekday and a number that is a name."""
    days = 140
    table = {
        "ds": np.datetime64("2024-01-01") + np.arange(days),
        "y": np.array([10 + 5 * (day % 7 == 0) + 3 * (day % 3) for day in range(days)], dtype=float),
        "shift": [["7", "9", "early"][day % 3] for day in range(days)],
    }
    settings = {**TINY, "columns": ["y", "shift"], "calendar": ["weekday"], "horizon": 2}
    return minrnn.train("forecast", table, settings=settings, threads=1).model, table


def weekday(day):
    return int((day.astype("datetime64[D]").astype(int) + 3) % 7 + 1)


def test_numbers_in_columns_of_names_are_names(shop):
    model, table = shop
    expected = model.predict(table).values[0]
    shifts = [int(name) if name.isdigit() else name for name in table["shift"]]
    for make in (int, float, np.int64, np.float32, str, lambda day: np.array([day])):
        session = model.session()
        for day, y, shift in zip(table["ds"], table["y"], shifts):
            row = {"y": y, "ds.weekday": make(weekday(day)), "shift": shift}
            told = session.step(row)
        np.testing.assert_allclose(told, expected, rtol=1e-6)


def test_codes_are_what_arrays_have_and_no_row_that_names_its_columns(shop):
    model, table = shop
    names = [category["values"] for category in model.task["categories"]]
    places = [category["column"] for category in model.task["categories"]]
    rows = np.zeros((len(table["y"]), 3))
    columns = {"y": table["y"], "shift": table["shift"], "ds.weekday": [str(weekday(day)) for day in table["ds"]]}
    for at, name in enumerate(model.columns):
        known = dict(zip(places, names)).get(at)
        rows[:, at] = columns[name] if known is None else [known.index(value) for value in columns[name]]
    np.testing.assert_allclose(model.session().prefill(rows), model.predict(table).values[0], rtol=1e-6)


@pytest.mark.parametrize("library", ["dictionary", "pandas", "polars", "pyarrow"])
def test_sessions_read_tables_by_the_names_of_their_columns(library, shop):
    model, table = shop
    # In another order than the model's, with numbers for names.
    columns = {"shift": table["shift"], "ds.weekday": [weekday(at) for at in table["ds"]], "y": table["y"]}
    read = columns if library == "dictionary" else frame(library, columns)
    expected = model.predict(table).values[0]
    np.testing.assert_allclose(model.session().prefill(read), expected, rtol=1e-6)
    np.testing.assert_allclose(model.session().forward(read)[-1], expected, rtol=1e-6)
    np.testing.assert_allclose(model.session(2).prefill([read, read]), [expected] * 2, rtol=1e-6)
    np.testing.assert_allclose(model.predict([read, read]).values, [expected] * 2, rtol=1e-6)
    first = {name: column[:2] for name, column in columns.items()}
    steps = model.session(2).step(first if library == "dictionary" else frame(library, first))
    rows = [{name: column[at] for name, column in first.items()} for at in range(2)]
    np.testing.assert_array_equal(steps, [model.session().step(row) for row in rows])
    with pytest.raises(minrnn.InputError, match="the column 'shift' is missing"):
        model.session().prefill({"y": [1.0], "ds.weekday": [1]})
    with pytest.raises(minrnn.InputError, match="reads no column 'ds'"):
        model.session().prefill({**columns, "ds": table["ds"]})
    with pytest.raises(minrnn.InputError, match="expected a table of 3 rows, a step for each row, found 2"):
        model.session(3).step(first)


def test_a_missing_name_is_missing_and_no_name(shop):
    model, _ = shop
    for missing in (None, np.nan, float("nan")):
        with pytest.raises(minrnn.InputError, match="column 'shift': found NaN"):
            model.session().step({"y": 10.0, "shift": missing, "ds.weekday": 1})
    other, late = ({"y": 10.0, "shift": shift, "ds.weekday": 1} for shift in (8, "late"))
    np.testing.assert_array_equal(model.session().step(other), model.session().step(late))


def test_columns_are_read_as_numbers_or_as_the_names_that_the_library_writes():
    table = {"b": [1, 2.0, "x ", True, None, np.nan], "a": [1, 2, 3, 4, 5, None]}
    numbers, names = handed.columns_read(table, ["a", "b"], [False, True])
    np.testing.assert_array_equal(numbers, [1, 2, 3, 4, 5, np.nan])
    assert names == ["1", "2", "x", "true", None, None]
    with pytest.raises(minrnn.InputError, match="'b' has 1 rows, expected 6"):
        handed.columns_read({**table, "b": [1]}, ["a", "b"], [False, True])
    with pytest.raises(minrnn.InputError, match="one name of the column 'b', found an array"):
        handed.name_of([1, 2], "b")


REFUSED = [
    ({"date": ["1950-01"]}, minrnn.InputError, "no column 'temperature'"),
    ({"date": ["1950-01"], "temperature": ["warm"]}, minrnn.InputError, "the table: .*'temperature'.* texts such as 'warm'"),
    ({"date": ["1950-01", "1950-01"], "temperature": [20, 21]}, minrnn.InputError, "two rows of the time 1950-01"),
    ({"date": ["1950-01", "1950-02"], "temperature": [20, None]}, minrnn.InputError, "row 2, column 'temperature'"),
    ({"date": ["1950-01", "soon"], "temperature": [20, 20]}, minrnn.InputError, "soon"),
    ({"date": ["1950-01"], "temperature": [20, 21]}, minrnn.InputError, "length"),
    ({"date": [], "temperature": []}, minrnn.InputError, "the table"),
    ([], minrnn.InputError, "no rows"),
    (np.zeros((3, 2)), minrnn.InputError, "expected an array of the shape"),
    (np.array(["a"]), minrnn.KindError, "found an array of <U1"),
    (7, minrnn.KindError, "expected a table"),
]


@pytest.mark.parametrize("table, error, sentence", REFUSED)
def test_what_is_no_such_table_is_refused(temperature, table, error, sentence):
    with pytest.raises(error, match=sentence):
        temperature.predict(table)


def test_models_of_text_have_no_tables(text):
    with pytest.raises(minrnn.KindError, match="not trained on a table"):
        text.predict({})
    with pytest.raises(minrnn.KindError, match="not trained on a table"):
        text.session(table=True)


def overflowing(run):
    """The model of a run whose predictions are beyond all numbers."""
    checkpoint = run.path / "checkpoints" / run.path.joinpath("checkpoints", "best").read_text().strip()
    tensors = checkpoint / "model.safetensors"
    content = bytearray(tensors.read_bytes())
    begin = 8 + int.from_bytes(content[:8], "little")
    first, last = (begin + at for at in json.loads(content[8:begin])["head.weight"]["data_offsets"])
    content[first:last] = np.full((last - first) // 4, 3e38, dtype="<f4").tobytes()
    tensors.write_bytes(content)
    checkpoint.joinpath("SHA256SUMS").unlink()
    return minrnn.load(run.path)


@pytest.mark.parametrize("mixer", ["min-gru", "attention"])
def test_a_row_whose_prediction_is_not_finite_changes_nothing(mixer, tmp_path):
    settings = TINY | {"refit": False, "mixer": mixer}
    classifier = minrnn.train("classify", machines(), out=tmp_path / "classes", group="machine", target="state", settings=settings, progress=False)
    # One that looks back on rows, and keeps what it expects of the next.
    forecaster = minrnn.train("forecast", load(), out=tmp_path / "series", horizon=6, season=12, settings=settings, progress=False)
    for run in (classifier, forecaster):
        session = overflowing(run).session(3)
        if run is forecaster:
            # Where nothing has ever changed, nothing else is expected.
            assert (session.step(np.zeros((3, 1))) == 0).all()
        saved = session.save()
        for rows, values in ((None, [0, 0, 1]), ([1], [1]), ([0, 2], [1, 0]), (2, 1), (None, [1, 1, 1])):
            with pytest.raises(minrnn.TrainingError, match="the model predicts .* for row"):
                session.step(np.reshape(values, (-1, 1) if rows != 2 else (1,)), rows=rows)
            assert session.save() == saved
