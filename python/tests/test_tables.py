"""Tables of every kind give what the command line gives."""

import csv
import datetime

import numpy as np
import pytest

import minrnn
from conftest import EXPECTED, MODELS


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


@pytest.mark.parametrize("library", ["pandas", "polars"])
def test_times_of_a_zone_are_refused_and_those_of_utc_are_not(library, temperature, months):
    module = pytest.importorskip(library)
    dates = np.array(months["date"], dtype="datetime64[ns]")

    def frame(zone):
        if library == "pandas":
            return module.DataFrame({**months, "date": module.Series(dates).dt.tz_localize(zone)})
        return module.DataFrame({**months, "date": dates}).with_columns(module.col("date").dt.replace_time_zone(zone))

    np.testing.assert_array_equal(temperature.predict(frame("UTC")).values, temperature.predict(months).values)
    with pytest.raises(minrnn.InputError, match="the column 'date' holds times of the zone 'Europe/Berlin', expected UTC"):
        temperature.predict(frame("Europe/Berlin"))


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
