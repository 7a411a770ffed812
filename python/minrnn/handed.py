"""Passes Python's tables to the library: as Arrow streams where a library offers them, otherwise as NumPy columns."""

from __future__ import annotations

import datetime
import decimal
import importlib
import os
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
import numpy.typing as npt

from .errors import InputError, KindError
from .frames import (
    NO_NAMES,
    NUMBERS,
    _is_missing,
    _names,
    _values,
    as_name,
    expect_arrow,
    is_whole,
    library_of,
    names_of,
    no_column,
    no_name,
    text_of,
    unmasked,
)

Path = str | os.PathLike[str]
# Whether a column is read, given its name.
Reads = Callable[[str], bool]

# Arrow's whole numbers have at most 38 digits.
WIDEST = 10**38

# The names of UTC in Arrow's streams.
UTC = ("UTC", "Etc/UTC", "GMT", "Z", "+00:00")
# What errors call the tables.
TABLE, TO_COME, USUAL = "the table", "the rows to come", "the usual rows"


def is_path(source: Any) -> bool:
    """Whether ``source`` is a path."""
    return isinstance(source, (str, os.PathLike))


def path_of(what: str, given: Any) -> str:
    """The path ``given``, called ``what`` in errors, as a text."""
    path = os.fspath(given) if is_path(given) else given
    if not isinstance(path, str):
        raise KindError(f"{what}: expected a path as a text or a pathlib.Path, found {type(given).__name__}")
    try:
        os.fsencode(path)
    except UnicodeEncodeError as error:
        found = f"{path[:40]!r}, whose character {error.start + 1} is none of a file's name"
        raise InputError(f"{what}: expected a path, found {found}; leave the character out") from None
    return path


def is_utf8(path: str) -> bool:
    """Whether the bytes of a path are UTF-8, which Python has surrogates for where they are not."""
    return not any("\ud800" <= character <= "\udfff" for character in path)


class Batches:
    """A stream of Arrow, read once so that it can be handed over again and again. Like the stream, it does not tell the names of its columns."""

    def __init__(self, table: Any) -> None:
        self._table = table

    def __arrow_c_stream__(self, requested_schema: Any = None) -> Any:
        return self._table.__arrow_c_stream__(requested_schema)

    def of_columns(self, reads: Reads) -> Batches:
        """The same with those columns alone that are read."""
        return Batches(self._table.select([name for name in _names(self._table) if reads(name)]))


def batches_of(stream: Any) -> Batches | None:
    """What a stream of Arrow holds; None if there is no library that keeps it."""
    for name, make in (("pyarrow", "table"), ("polars", "DataFrame")):
        try:
            library = importlib.import_module(name)
        except ImportError:
            continue
        try:
            return Batches(getattr(library, make)(stream))
        except (OSError, ValueError, TypeError, RuntimeError) as error:
            raise InputError(f"{TABLE} cannot be read: {error}") from error
    return None


def handed(table: Any, reads: Reads | None = None, what: str = TABLE) -> Any:
    """A capsule with an Arrow stream (polars, pyarrow and anything else with the PyCapsule interface), or a list of columns. Columns that
    are not read may hold anything: they are passed without values, so that messages know their names."""
    if isinstance(table, (np.ndarray, list, tuple)):
        raise KindError(f"expected a table whose columns have names: a dictionary of columns, or a frame; found {type(table).__name__}")
    # pandas would pass its index as a column, and needs pyarrow for that.
    if hasattr(table, "__arrow_c_stream__") and library_of(table) != "pandas":
        return _of_arrow(table, reads or _all).__arrow_c_stream__()
    names = _names(table)
    for name in names:
        text_of(str(name), f"{what}: the name of a column")
    if not names:
        raise InputError(f"{what}: there are no columns, expected those that the model reads")
    read = [_column(str(name), table, name) for name in names if reads is None or reads(str(name))]
    n_rows = len(read[0][2]) if read else 0
    for name, _, values in read:
        if len(values) != n_rows:
            raise InputError(f"{what}: the column '{name}' has {len(values)} rows, expected {n_rows} as '{read[0][0]}' has; give all the same length")
    left = iter(read)
    return [next(left) if reads is None or reads(str(name)) else (str(name), "-", n_rows) for name in names]


def _all(_: str) -> bool:
    return True


def _of_arrow(table: Any, reads: Reads) -> Any:
    """A frame of Arrow whose columns that are not read are empty, and none of which has a type that it cannot be handed over with."""
    library = library_of(table)
    if library == "polars" and hasattr(table, "columns"):
        import polars

        def handed_over(name: str) -> Any:
            if not reads(name):
                return polars.repeat(None, table.height, dtype=polars.Boolean, eager=True).alias(name)
            expect_arrow(name, table[name])
            if table[name].dtype == polars.Binary:
                return polars.Series(name, _texts(name, table[name].to_list()), dtype=polars.String)
            # The library cannot read what polars exports for columns of type Null.
            return table[name].cast(polars.String) if table[name].dtype == polars.Null else table[name]

        return polars.DataFrame([handed_over(name) for name in table.columns])
    if library == "pyarrow" and hasattr(table, "column_names"):
        if all(reads(column.name) and not _holds_bytes(column.type) for column in table.schema):
            return table
        import pyarrow  # type: ignore[import-untyped]

        nothing = pyarrow.nulls(table.num_rows, pyarrow.bool_())

        def of_column(at: int, name: str) -> Any:
            if not reads(name):
                return nothing
            column = table.column(at)
            return pyarrow.array(_texts(name, column.to_pylist()), pyarrow.string()) if _holds_bytes(column.type) else column

        return pyarrow.Table.from_arrays([of_column(at, name) for at, name in enumerate(table.column_names)], names=table.column_names)
    return table


def _holds_bytes(of_arrow: Any) -> bool:
    """Whether a type of pyarrow is one of bytes."""
    return str(of_arrow).split("[")[0] in ("binary", "large_binary", "binary_view", "fixed_size_binary")


def _texts(name: str, values: list[Any]) -> list[str | None]:
    """The values of a column as texts, None where one is missing."""
    return [None if value is None else text_of(value, f"the column '{name}'") for value in values]


def reads_of(task: Mapping[str, Any]) -> Reads:
    """Returns a function that tells whether a model of this task reads a column, given its name."""
    if task.get("layout") not in (None, "long"):
        # In a wide table every column is a series, or a step.
        return _all
    target = task["target"]
    read = {*([target] if isinstance(target, str) else target), *task["columns"], task.get("group"), task.get("time")}
    # Inputs derived from a column have its name with a suffix: price+1, ds.weekday.
    read |= {name.rsplit(mark, 1)[0] for name in task["columns"] for mark in "+." if mark in name}
    return lambda name: name.strip() in read


def _of_zone(name: str, zone: Any) -> InputError:
    remedy = "convert them to UTC (of local times an hour is there twice each autumn), or keep the dates alone"
    return InputError(f"the column '{name}' holds times of the zone '{zone}', expected UTC or times without a zone; {remedy}")


def _without_zone(name: str, time: Any) -> Any:
    """A date, or a time in UTC or without a zone."""
    zone = getattr(time, "tzinfo", None)
    if zone is None:
        return time
    if time.utcoffset():
        raise _of_zone(name, zone)
    return time.replace(tzinfo=None)


def zone_of(column: Any) -> Any:
    """The time zone of a pandas, polars or pyarrow column of times; None if there is none."""
    if library_of(column) == "pyarrow":
        return getattr(column.type, "tz", None)
    dtype = getattr(column, "dtype", None)
    # A pandas column backed by Arrow has its zone in another type.
    dtype = getattr(dtype, "pyarrow_dtype", dtype)
    return getattr(dtype, "tz", None) or getattr(dtype, "time_zone", None)


def _is_utc(zone: Any) -> bool:
    """Whether a zone, or what has its name, is UTC by whatever name: one that is never before or behind it."""
    return str(zone) in UTC or isinstance(zone, datetime.tzinfo) and zone.utcoffset(None) == datetime.timedelta()


def column(name: str, table: Any) -> tuple[str, Any]:
    """The kind and values of a column: ``f`` floats; ``i``, ``u``, ``n`` and ``w`` integers (the last two are lists with None, ``w`` of
    more than 64 bits); ``b`` booleans (a list with None, or an array); ``t`` microseconds; ``s`` texts."""
    return _column(name, table, name)[1:]


def floats(name: str, table: Any) -> npt.NDArray[np.float64]:
    """A column of numbers, NaN where one is missing."""
    kind, values = column(name, table)
    if kind in "st":
        raise KindError(f"the column '{name}' holds {'times' if kind == 't' else 'texts'}, expected numbers")
    return np.array([np.nan if value is None else value for value in values] if isinstance(values, list) else values, dtype=float)


def name_of(value: Any, column: str) -> str | None:
    """How the library writes ``value``, from a row of a column of names; None if it is missing."""
    if isinstance(value, (np.ndarray, list, tuple)):
        one = unmasked(value)
        if one.size != 1:
            raise InputError(f"inputs: expected one name of the column '{column}', found an array of shape {list(one.shape)}")
        value = one.reshape(-1)[0]
    return None if _is_missing(value) else as_name(value)


def columns_read(table: Any, columns: list[str], are_names: list[bool]) -> list[Any]:
    """The ``columns`` of a table that a session reads: numbers, or names as the library writes them, with None for missing names."""
    keys = {str(key).strip(): key for key in _names(table)}
    unknown = [name for name in keys if name not in columns]
    if unknown:
        raise InputError(f"inputs: the model reads no column '{unknown[0]}', expected {', '.join(columns)}")
    missing = [name for name in columns if name not in keys]
    if missing:
        raise InputError(f"inputs: the column '{missing[0]}' is missing")
    read: list[Any] = []
    for name, holds_names in zip(columns, are_names, strict=True):
        values = names_of(table, keys[name]) if holds_names else floats(keys[name], table)
        read.append([None if _is_missing(value) else as_name(value) for value in values] if holds_names else values)
        if len(values) != len(read[0]):
            raise InputError(f"inputs: the column '{name}' has {len(values)} rows, expected {len(read[0])} as '{columns[0]}' has")
    return read


def _column(name: str, table: Any, key: Any) -> tuple[str, str, Any]:
    column = table[key]
    zone = zone_of(column)
    if zone is not None:
        # As in files, only UTC is accepted: a day in another zone begins at another time.
        if not _is_utc(zone):
            raise _of_zone(name, zone)
        # A pandas Index or array has tz_localize itself; from the other libraries NumPy gets times in UTC.
        if library_of(column) == "pandas":
            table, key = {name: getattr(column, "dt", column).tz_localize(None)}, name
    values = _values(table, key)
    kind = values.dtype.kind
    if kind == "f":
        return name, "f", np.array(values, dtype=float)
    if kind == "u" and values.dtype.itemsize == 8:
        return name, "u", np.array(values, dtype=np.uint64)
    if kind in "iu":
        return name, "i", np.array(values, dtype=np.int64)
    if kind == "b":
        return name, "b", np.array(values, dtype=bool)
    if kind == "M":
        return name, "t", microseconds(name, values)
    return name, *_objects(name, values)


def microseconds(name: str, times: np.ndarray) -> npt.NDArray[np.int64]:
    """Times in microseconds since 1970; NumPy's smallest integer where one is missing."""
    # Seconds and coarser units hold times that microseconds cannot, and NumPy does not report it.
    made = times.astype("datetime64[us]")
    seconds = [of.astype("datetime64[s]") for of in (made, times)]
    far = np.flatnonzero((seconds[0] != seconds[1]) & ~np.isnat(times))
    if len(far):
        raise InputError(f"the column '{name}' holds the time {times[far[0]]}, which is farther from 1970 than microseconds count")
    return made.astype(np.int64)


def _objects(name: str, values: np.ndarray) -> tuple[str, Any]:
    """Values of mixed types: all numbers, all times, or else texts."""
    known = [None if _is_missing(value) else value for value in values.tolist()]
    there = [value for value in known if value is not None]
    other = next((value for value in there if isinstance(value, NO_NAMES)), None)
    if other is not None:
        raise no_column(name, no_name(other))
    if any(isinstance(value, decimal.Decimal) for value in there):
        # Whole decimals are whole numbers, whatever their type.
        known = [int(value) if isinstance(value, decimal.Decimal) and is_whole(value) else value for value in known]
        there = [value for value in known if value is not None]
    if there and all(isinstance(value, (int, np.integer)) and not isinstance(value, bool) for value in there):
        most = max(abs(int(value)) for value in there)
        if most < WIDEST:
            return "n" if most < 2**63 else "w", [None if value is None else int(value) for value in known]
    elif there and all(isinstance(value, (bool, np.bool_)) for value in there):
        # Booleans may also be names, which would differ for numbers.
        return "b", np.array(known, dtype=bool) if len(there) == len(known) else [None if value is None else bool(value) for value in known]
    elif there and all(isinstance(value, NUMBERS) for value in there):
        return "f", np.array([np.nan if value is None else _float(name, value) for value in known])
    elif there and all(isinstance(value, datetime.date) for value in there):
        times = np.array(["NaT" if value is None else _without_zone(name, value).isoformat() for value in known], dtype="datetime64[us]")
        return "t", times.astype(np.int64)
    return "s", _texts(name, known)


def _float(name: str, value: Any) -> float:
    try:
        return float(value)
    except OverflowError:
        raise InputError(f"the column '{name}' holds a number that is too large, expected numbers below 1.8e308; scale it down, or make texts of them") from None
