"""A column means the same in whatever holds it, and what means nothing is refused by its name."""

import datetime
import warnings
from decimal import Decimal

import numpy as np
import pytest

import minrnn
from minrnn import frames, handed
from test_training import TINY, frame, machines, write

LIBRARIES = ["dictionary", "pandas", "polars", "pyarrow"]


def made(library, table):
    return table if library == "dictionary" else frame(library, table)


@pytest.fixture(scope="module")
def named():
    """Tells two classes by a number and a column of the names false, true and x, of which some are missing."""
    table = machines()
    n = len(table["machine"])
    table["k"] = [["false", "true", "x", "true"][row % 4] for row in range(n)]
    settings = {**TINY, "columns": ["vibration", "k"], "missing": "mask"}
    return minrnn.train("classify", table, group="machine", target="state", settings=settings, threads=1).model


def read(model, k, library="dictionary"):
    n = len(k)
    return model.predict(made(library, {"machine": ["m"] * n, "vibration": [0.1 * at for at in range(n)], "k": k})).probabilities


@pytest.mark.parametrize("library", LIBRARIES)
def test_truths_beside_a_missing_one_are_the_names_that_they_are_in_files(library, named, tmp_path):
    n = 4
    file = write({"machine": ["m"] * n, "vibration": [0.1 * at for at in range(n)], "k": ["true", "true", "false", ""]}, tmp_path / "table.csv")
    expected = named.predict(file).probabilities
    assert not np.allclose(expected, read(named, ["x", "x", "x", None]), atol=1e-6)
    np.testing.assert_array_equal(read(named, [True, True, False, None], library), expected)
    if library == "pandas":
        import pandas

        np.testing.assert_array_equal(read(named, pandas.array([True, True, False, None], dtype="boolean"), library), expected)


@pytest.mark.parametrize("library", LIBRARIES)
@pytest.mark.parametrize("missing", ["", "NA", "?", "null", "None", " nan"])
def test_a_text_that_is_missing_in_a_file_is_missing_in_a_frame(library, missing, named):
    expected = read(named, ["x", "true", None])
    assert not np.allclose(expected, read(named, ["x", "true", "unknown"]), atol=1e-6)
    np.testing.assert_array_equal(read(named, ["x", "true", missing], library), expected)
    session = named.session()
    for at, k in enumerate(["x", "true", missing]):
        after = session.step({"vibration": 0.1 * at, "k": k})
    np.testing.assert_allclose(after, expected[0], rtol=1e-6)


def test_what_looks_missing_is_a_name_where_training_saw_it():
    table = machines()
    table["k"] = [["NA", "EU"][row % 2] for row in range(len(table["machine"]))]
    settings = {**TINY, "columns": ["vibration", "k"], "missing": "mask"}
    model = minrnn.train("classify", table, group="machine", target="state", settings=settings, threads=1).model
    assert model.task["categories"][0]["values"] == ["EU", "NA"]
    assert not np.allclose(read(model, ["NA", "NA"]), read(model, [None, None]), atol=1e-6)


def test_bytes_are_names_in_utf_8(named):
    expected = read(named, ["x", "true", "false"])
    for k in ([b"x", b"true", b"false"], np.array(["x", "true", "false"], dtype="S5"), np.array([b"x", b"true", b"false"], dtype=object)):
        np.testing.assert_array_equal(read(named, k), expected)
    np.testing.assert_array_equal(*(named.session().step({"vibration": 0.1, "k": k}) for k in (b"true", "true")))
    with pytest.raises(minrnn.InputError, match="the column 'k': expected a text, or bytes in UTF-8, found b'.xff'"):
        read(named, [b"x", b"\xff"])
    with pytest.raises(minrnn.InputError, match="bytes in UTF-8"):
        named.session().step({"vibration": 0.1, "k": b"\xff"})


@pytest.mark.parametrize("names", [[2**70, 2**70 + 1], [2**63, -1], [10**40, 10**40 + 1], [2**63 - 1, -(2**63) - 1]])
def test_whole_numbers_are_names_however_many_digits_they_have(names, sensors):
    table = {"recording": np.repeat(np.array(names, dtype=object), 3), "acceleration": [0.1, 0.2, 0.3] * 2}
    for column in (table["recording"], table["recording"].tolist()):
        assert sensors.predict({**table, "recording": column}).names == names


def beside_missing(library, names):
    """Columns of whole numbers of which the last is missing."""
    if library == "dictionary":
        return [[*names, None], [*names, float("nan")], np.array([*names, None], dtype=object)]
    module = pytest.importorskip(library)
    if library == "pandas":
        made = [module.array([*names, None], dtype="Int64"), module.Categorical([*names, None]), module.Series([*names, None], dtype="Int64")]
        made += [module.Series(module.Categorical([*names, None])), module.Index(made[0])]
        arrow = pytest.importorskip("pyarrow")
        encoded = module.ArrowDtype(arrow.dictionary(arrow.int32(), arrow.int64()))
        return [*made, *(module.Series([*names, None], dtype=dtype) for dtype in ("int64[pyarrow]", encoded))]
    if library == "polars":
        return [module.Series([*names, None]), module.Series([*names, None], dtype=module.UInt64)]
    one = module.array([*names, None])
    return [one, module.chunked_array([one]), one.dictionary_encode()]


@pytest.mark.parametrize("library", LIBRARIES)
def test_whole_numbers_beside_a_missing_one_keep_their_digits(library):
    for names in ([2**60 + 1, 2**60 + 2], [2**53 + 1, 2**53 + 2]):
        for column in beside_missing(library, names):
            assert handed.column("k", {"k": column}) == ("n", [*names, None]), column
            read = handed.columns_read({"k": column}, ["k"], [True])[0]
            assert read == [*map(str, names), None], column
            np.testing.assert_array_equal(handed.floats("k", {"k": column}), [*map(float, names), np.nan])


@pytest.mark.parametrize("library", LIBRARIES)
def test_sessions_and_predictions_read_the_same_names_of_a_table(library):
    table = machines()
    names = [2**60 + 1, 2**60 + 2]
    table["k"] = [[*map(str, names), "x"][row % 3] for row in range(len(table["machine"]))]
    settings = {**TINY, "columns": ["vibration", "k"], "missing": "mask"}
    model = minrnn.train("classify", table, group="machine", target="state", settings=settings, threads=1).model
    assert model.task["categories"][0]["values"] == [*map(str, names), "x"]
    for k in ([names[0], None, names[1]], [names[1], None, names[0]]):
        read = made(library, {"vibration": [0.1, 0.2, 0.3], "k": k})
        expected = model.predict(made(library, {"machine": ["m"] * 3, "vibration": [0.1, 0.2, 0.3], "k": k})).probabilities[0]
        np.testing.assert_allclose(model.session().prefill(read), expected, rtol=1e-6)
    assert not np.allclose(expected, model.session().prefill({"vibration": [0.1, 0.2, 0.3], "k": [names[0], None, names[1]]}), atol=1e-6)


@pytest.mark.parametrize("library", LIBRARIES)
def test_decimal_numbers_are_numbers_in_whatever_holds_them(library, sensors, named):
    values = [Decimal("0.10"), Decimal("2.5"), Decimal("-1")]
    floats = [0.1, 2.5, -1.0]
    expected = sensors.predict({"recording": ["a"] * 3, "acceleration": floats}).probabilities
    np.testing.assert_array_equal(sensors.predict(made(library, {"recording": ["a"] * 3, "acceleration": values})).probabilities, expected)
    np.testing.assert_allclose(sensors.session().prefill(made(library, {"acceleration": values})), expected[0], rtol=1e-6)
    found = sensors.predict(made(library, {"recording": values, "acceleration": floats}))
    assert found.names == values
    np.testing.assert_array_equal(found.probabilities, sensors.predict({"recording": floats, "acceleration": floats}).probabilities)
    # As names they are the numbers that floats are.
    numbers = [Decimal("1.50"), Decimal("2.00"), None]
    np.testing.assert_array_equal(read(named, numbers, library), read(named, [1.5, 2.0, None]))


def test_decimal_numbers_may_be_missing_infinite_and_long():
    assert handed.column("x", {"x": [Decimal("NaN"), Decimal("sNaN"), Decimal(2**60 + 1)]}) == ("n", [None, None, 2**60 + 1])
    kind, values = handed.column("x", {"x": [Decimal("Infinity"), Decimal("1E+50"), 1, None]})
    assert kind == "f"
    np.testing.assert_array_equal(values, [np.inf, 1e50, 1, np.nan])
    assert [frames.as_name(value) for value in (Decimal("1.50"), Decimal("2.0"), Decimal(2**60 + 1))] == ["1.5", "2", str(2**60 + 1)]


@pytest.mark.parametrize("library", ["polars", "pyarrow"])
def test_bytes_of_frames_are_names_in_utf_8(library, named):
    k = [b"x", b"true", "é".encode(), None]
    np.testing.assert_array_equal(read(named, k, library), read(named, ["x", "true", "é", None]))
    with pytest.raises(minrnn.InputError, match="the column 'k': expected a text, or bytes in UTF-8, found b'.xff'"):
        read(named, [b"x", b"\xff"], library)
    # They may be anything where nobody reads them.
    table = {"machine": ["m"], "vibration": [0.1], "k": ["x"]}
    expected = named.predict(table).probabilities
    np.testing.assert_array_equal(named.predict(made(library, {**table, "raw": [b"\xff"]})).probabilities, expected)


def test_columns_whose_names_have_spaces_around_them_are_those_columns(sensors):
    table = {"recording": [7, 7, 8], "acceleration": [0.1, 0.2, 0.3]}
    around = {" recording": [7, 7, 8], "acceleration ": [0.1, 0.2, 0.3]}
    expected = sensors.predict(table)
    for library in LIBRARIES:
        if library != "dictionary":
            pytest.importorskip(library)
        found = sensors.predict(made(library, around))
        assert found.names == expected.names == [7, 8]
        np.testing.assert_array_equal(found.probabilities, expected.probabilities)
        alone = made(library, {"acceleration ": [0.1, 0.2, 0.3]})
        np.testing.assert_array_equal(sensors.session().prefill(alone), sensors.session().prefill({"acceleration": [0.1, 0.2, 0.3]}))


def test_whole_numbers_of_any_size_are_numbers(sensors):
    np.testing.assert_array_equal(handed.floats("x", {"x": [2**70, -(2**63), None]}), [2.0**70, -(2.0**63), np.nan])
    with pytest.raises(minrnn.InputError, match="deviations from the mean"):
        sensors.predict({"recording": ["a"], "acceleration": [2**70]})


def test_what_is_masked_is_missing_in_tables(named):
    vibration, is_masked = np.array([0.3, 9.0, 0.2]), [False, True, False]
    table = {"machine": ["m"] * 3, "vibration": np.where(is_masked, np.nan, vibration), "k": ["x", None, "true"]}
    expected = named.predict(table).probabilities
    masked = {
        "machine": np.ma.array(["m"] * 3),
        "vibration": np.ma.array(vibration, mask=is_masked),
        "k": np.ma.array(["x", "false", "true"], mask=is_masked),
    }
    np.testing.assert_array_equal(named.predict(masked).probabilities, expected)
    np.testing.assert_array_equal(named.predict({**masked, "vibration": [0.3, np.ma.masked, 0.2]}).probabilities, expected)
    whole = {**table, "vibration": np.ma.array([3, 9, 2], mask=is_masked)}
    np.testing.assert_array_equal(named.predict(whole).probabilities, named.predict({**table, "vibration": [3, None, 2]}).probabilities)
    of_session = {name: masked[name] for name in ("vibration", "k")}
    np.testing.assert_allclose(named.session().prefill(of_session), expected[0], rtol=1e-6)
    row = named.session().step({"vibration": np.ma.masked, "k": np.ma.masked})
    np.testing.assert_array_equal(row, named.session().step({"vibration": None, "k": None}))
    rows = np.array([[0.3, 0.0], [9.0, 1.0]])
    known = np.ma.array(rows, mask=[[False, False], [True, False]])
    expected = named.session().prefill(known.filled(np.nan))
    for given in (known, [known[0], known[1]]):
        np.testing.assert_array_equal(named.session().prefill(given), expected)
    for given in (known, [known], known[None]):
        np.testing.assert_array_equal(named.predict(given).probabilities[0], expected)


def test_what_is_masked_is_missing_however_deep_it_lies():
    masked = np.ma.array([1, 2], mask=[True, False])
    expected = [[np.nan, 2.0], [3.0, 4.0]]
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        for values in ([[np.ma.masked, 2.0], [3.0, 4.0]], [masked, [3, 4]], ([np.ma.masked, 2], (3, 4)), [masked.astype(float), np.array([3, 4])]):
            np.testing.assert_array_equal(frames.numbers(values, "x"), expected)
        np.testing.assert_array_equal(frames.numbers([[masked], [[3, np.ma.masked]]], "x"), [[[np.nan, 2]], [[3, np.nan]]])


def test_what_is_masked_is_refused_where_nothing_may_be_missing(text, sensors):
    session = text.session()
    for tokens in (np.ma.array([1, 2], mask=[False, True]), np.ma.masked, [np.ma.array([1, 2], mask=[True, False])]):
        with pytest.raises(minrnn.MinrnnError, match="masked|token ids"):
            session.prefill(tokens)
    with pytest.raises(minrnn.InputError, match="inputs: expected numbers, found some that are masked; fill them"):
        sensors.session(table=False).prefill(np.ma.array([0.1, 0.2], mask=[False, True]))
    # One that masks nothing is an array.
    np.testing.assert_array_equal(text.session().prefill(np.ma.array([1, 2])), text.session().prefill([1, 2]))


NEITHER = [
    np.array([1, 2], dtype="timedelta64[s]"),
    [datetime.timedelta(seconds=1), None],
    np.array([1j, 2]),
    np.array([1j, None]),
]


@pytest.mark.parametrize("values", NEITHER)
def test_durations_and_complex_numbers_are_neither_numbers_nor_names(values, sensors, named):
    with pytest.raises(minrnn.KindError, match="the column 'acceleration' holds .*, expected numbers, texts or times"):
        sensors.predict({"recording": ["a", "a"], "acceleration": values})
    with pytest.raises(minrnn.KindError, match="the column 'recording' holds|as a name"):
        sensors.predict({"recording": values, "acceleration": [1.0, 2.0]})
    with pytest.raises(minrnn.KindError, match="as a name"):
        named.session().step({"vibration": 0.1, "k": values[0]})
    with pytest.raises(minrnn.MinrnnError):
        minrnn.SequenceClassifier(settings=TINY).fit(np.zeros((2, 1, 5)), values)


SEVERAL = [[[1], [2]], [(1, 2), None], [{"a": 1}, {}], [{1}, {2}], [np.zeros(2), np.zeros(2)], [np.zeros(2), np.zeros(3)], [np.zeros(2), None]]


@pytest.mark.parametrize("values", SEVERAL)
@pytest.mark.parametrize("library", ["dictionary", "pandas"])
def test_cells_that_hold_several_values_are_refused_by_their_column(library, values, sensors):
    column = np.empty(2, dtype=object)
    column[:] = values
    kind = type(values[0]).__name__
    sentence = f"the column '{{}}' holds values of the type {kind}, expected numbers, texts or times; make numbers of them, or leave the column out"
    with pytest.raises(minrnn.KindError, match=sentence.format("acceleration")):
        sensors.predict(made(library, {"recording": ["a", "a"], "acceleration": column}))
    with pytest.raises(minrnn.KindError, match=sentence.format("recording")):
        sensors.predict(made(library, {"recording": column, "acceleration": [0.1, 0.2]}))
    with pytest.raises(minrnn.KindError, match=sentence.format("more")):
        minrnn.train("classify", made(library, {"x": [0.1, 0.2], "state": ["a", "b"], "more": column}), target="state", settings=TINY)
    table = {"recording": ["a", "a"], "acceleration": [0.1, 0.2]}
    assert len(sensors.predict(made(library, {**table, "more": column}))) == 1
    with pytest.raises(minrnn.KindError, match=f"as a name, found values of the type {kind}"):
        frames.as_name(values[0])


def test_what_python_cannot_hold_or_write_is_refused_by_a_sentence(sensors):
    table = {"recording": ["a", "a"], "acceleration": [0.1, 0.2]}
    for given, sentence in (
        ([[10**400]], "sequence 0: expected numbers below 1.8e308, found one that is larger"),
        ({**table, "acceleration": [10**400, 1.5]}, "the column 'acceleration' holds a number that is too large, expected numbers below 1.8e308"),
        ({**table, "recording": [10**5000, 1]}, "the column 'recording': expected what can be written as a text, found a value of the type int"),
        ({**table, "recording": ["a", "b\ud800"]}, "the column 'recording': expected a text that UTF-8 can hold, found 'b.ud800', whose character 2"),
        ({**table, "b\ud800": [1, 2]}, "the table: the name of a column: expected a text that UTF-8 can hold"),
    ):
        with pytest.raises(minrnn.InputError, match=sentence):
            sensors.predict(given)


def unread(library):
    """Columns that no model reads."""
    if library == "dictionary":
        return {"flat": np.zeros((4, 2)), "short": [1], "lists": [[1], [1, 2]], "time": np.zeros(4, dtype="timedelta64[s]")}
    if library == "pandas":
        import pandas

        return {"zone": pandas.date_range("2024-01-01", periods=4, tz="Europe/Berlin"), "since": pandas.to_timedelta(range(4))}
    if library == "polars":
        import polars

        whole = polars.Series([2**70] * 4, dtype=polars.Int128)
        return {"nothing": polars.Series([None] * 4), "whole": whole, "any": polars.Series([object()] * 4, dtype=polars.Object)}
    import pyarrow

    return {"nothing": pyarrow.nulls(4), "ends": pyarrow.RunEndEncodedArray.from_arrays([4], ["a"])}


@pytest.mark.parametrize("library", LIBRARIES)
def test_columns_that_are_not_read_may_hold_anything(library, sensors):
    if library != "dictionary":
        pytest.importorskip(library)
    table = {"recording": ["a", "a", "b", "b"], "acceleration": [0.1, 0.2, 0.3, 0.4]}
    expected = sensors.predict(table)
    found = sensors.predict(made(library, {**unread(library), **table}))
    np.testing.assert_array_equal(found.probabilities, expected.probabilities)
    assert found.names == expected.names
    # Sentences know them.
    with pytest.raises(minrnn.InputError, match="there is no column 'acceleration'; did you mean 'aceleration'"):
        sensors.predict(made(library, {"recording": ["a"], "aceleration": [0.1]}))


def test_types_of_polars_that_arrow_does_not_have_are_refused_and_those_of_nothing_are_missing(sensors, named):
    polars = pytest.importorskip("polars")
    table = polars.DataFrame({"recording": ["a", "a"], "acceleration": [0.1, 0.2]})
    wide = polars.lit(1).cast(polars.Int128)
    for name in table.columns:
        with pytest.raises(minrnn.KindError, match=f"the column '{name}' holds Int128, which Arrow does not have; cast it"):
            sensors.predict(table.with_columns(wide.alias(name)))
    with pytest.raises(minrnn.InputError, match="row 1, column 'acceleration': the cell is empty"):
        sensors.predict(table.with_columns(polars.lit(None).alias("acceleration")))
    np.testing.assert_array_equal(read(named, polars.Series([None, None]), "polars"), read(named, [None, None]))
    with pytest.raises(minrnn.KindError, match="found a LazyFrame of polars; collect\\(\\) it first"):
        sensors.predict(table.lazy())


def test_columns_of_pandas_without_a_frame_are_columns(sensors):
    pandas = pytest.importorskip("pandas")
    names, values = ["a", "a", "b"], [0.1, 0.2, 0.3]
    expected = sensors.predict({"recording": names, "acceleration": values})
    for make in (pandas.Index, pandas.array, pandas.Categorical, pandas.Series):
        found = sensors.predict({"recording": make(names), "acceleration": make(values)})
        np.testing.assert_array_equal(found.probabilities, expected.probabilities)
        assert list(found.to_pandas()["recording"]) == found.names == ["a", "b"]
    times = pandas.DatetimeIndex(["2024-01-01", "2024-01-02"], tz="UTC")
    assert len(sensors.predict({"recording": times, "acceleration": values[:2]})) == 2


def test_several_columns_of_one_name_are_refused_where_they_are_read(sensors):
    pandas = pytest.importorskip("pandas")
    names = ["recording", "acceleration"]
    table = pandas.DataFrame([["a", 0.1, 1, 2]], columns=[*names, "x", "x"])
    assert len(sensors.predict(table)) == 1
    for values in ([0.1, 0.2], pandas.array([1, None], dtype="Int64")):
        with pytest.raises(minrnn.InputError, match="the column 'acceleration' has the shape .*, expected one value for each row"):
            sensors.predict(pandas.DataFrame([["a", *values]], columns=[*names, "acceleration"]))


def test_columns_have_the_same_length_and_there_are_some(sensors, temperature):
    table = {"recording": ["a", "b"], "acceleration": [0.1]}
    with pytest.raises(minrnn.InputError, match="the table: the column 'acceleration' has 1 rows, expected 2 as 'recording' has"):
        sensors.predict(table)
    with pytest.raises(minrnn.InputError, match="the table: there are no columns"):
        sensors.predict({})
    with pytest.raises(minrnn.InputError, match="the column 'acceleration' holds lists of several lengths"):
        sensors.predict({"recording": ["a", "b"], "acceleration": [[1], [1, 2]]})
    with pytest.raises(minrnn.InputError, match="the rows to come: there are no columns"):
        temperature.predict({"date": ["1950-01"], "temperature": [20.0]}, future={})


def test_sequences_without_names_are_numbers_and_have_no_rows_to_come(sensors):
    one = np.zeros((3, 1))
    for future in ({"nonsense": [1]}, one):
        with pytest.raises(minrnn.InputError, match="without names take no rows to come"):
            sensors.predict(one, future=future)
    for given, error in (
        ([[[1], [2, 3]]], minrnn.InputError),
        (["a"], minrnn.KindError),
        ([["1"]], minrnn.KindError),
        ([np.array([["1"]], dtype=object)], minrnn.KindError),
        ([np.array([[1j]])], minrnn.KindError),
    ):
        with pytest.raises(error, match="sequence 0: expected"):
            sensors.predict(given)
    np.testing.assert_array_equal(sensors.predict([[[1], [2.5]]]).probabilities, sensors.predict(np.array([[1], [2.5]])).probabilities)
