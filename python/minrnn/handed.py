"""Tables of Python on their way into the library: streams of Arrow where a library offers them, columns of NumPy otherwise."""

from __future__ import annotations

import datetime
import os
from typing import Any

import numpy as np
import numpy.typing as npt

from .errors import InputError, KindError
from .frames import _is_missing, _names, _values, as_name, names_of

Path = str | os.PathLike[str]

UTC = ("UTC", "Etc/UTC", "GMT")


def is_path(source: Any) -> bool:
    """Whether ``source`` names a file."""
    return isinstance(source, (str, os.PathLike))


def handed(table: Any) -> Any:
    """A capsule with a stream of Arrow (polars, pyarrow and all that offer the PyCapsule interface), or a list of columns."""
    if isinstance(table, (np.ndarray, list, tuple)):
        raise KindError(f"expected a table whose columns have names: a dictionary of columns, or a frame; found {type(table).__name__}")
    # pandas would hand over its index as a column, and needs pyarrow for it.
    if hasattr(table, "__arrow_c_stream__") and not type(table).__module__.startswith("pandas"):
        return table.__arrow_c_stream__()
    return [_column(str(name), table, name) for name in _names(table)]


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
    """The zone of a column of pandas that holds times; None where there is none."""
    dtype = getattr(column, "dtype", None)
    # Of one that lies in Arrow another type tells it.
    return getattr(getattr(dtype, "pyarrow_dtype", dtype), "tz", None)


def column(name: str, table: Any) -> tuple[str, Any]:
    """Kind and values of a column: ``f`` numbers, ``i``, ``u`` and ``n`` whole ones (the last a list with None), ``b`` truths, ``t`` microseconds, ``s`` texts."""
    return _column(name, table, name)[1:]


def floats(name: str, table: Any) -> npt.NDArray[np.float64]:
    """A column of numbers, NaN where one is missing."""
    kind, values = column(name, table)
    if kind in "st":
        raise KindError(f"the column '{name}' holds {'times' if kind == 't' else 'texts'}, expected numbers")
    return np.array([np.nan if value is None else value for value in values] if kind == "n" else values, dtype=float)


def name_of(value: Any, column: str) -> str | None:
    """How the library writes ``value``, which a column of names has in a row; None of one that is missing."""
    if isinstance(value, (np.ndarray, list, tuple)):
        one = np.asarray(value)
        if one.size != 1:
            raise InputError(f"inputs: expected one name of the column '{column}', found an array of shape {list(one.shape)}")
        value = one.reshape(-1)[0]
    return None if _is_missing(value) else as_name(value)


def columns_read(table: Any, columns: list[str], are_names: list[bool]) -> list[Any]:
    """The ``columns`` of a table that a session reads: numbers, or names as the library writes them, None where one is missing."""
    keys = {str(key): key for key in _names(table)}
    unknown = [name for name in keys if name not in columns]
    if unknown:
        raise InputError(f"inputs: the model reads no column '{unknown[0]}', expected {', '.join(columns)}")
    missing = [name for name in columns if name not in keys]
    if missing:
        raise InputError(f"inputs: the column '{missing[0]}' is missing")
    read: list[Any] = []
    for name, holds_names in zip(columns, are_names, strict=True):
        values = names_of(table, keys[name]) if holds_names else floats(keys[name], table)
        read.append([name_of(value, name) for value in values] if holds_names else values)
        if len(values) != len(read[0]):
            raise InputError(f"inputs: the column '{name}' has {len(values)} rows, expected {len(read[0])} as '{columns[0]}' has")
    return read


def _column(name: str, table: Any, key: Any) -> tuple[str, str, Any]:
    column = table[key]
    zone = zone_of(column)
    if zone is not None:
        # As in files: a day of another zone begins at another time.
        if str(zone) not in UTC:
            raise _of_zone(name, zone)
        column = column.dt.tz_localize(None)
        table, key = {name: column}, name
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
    """Times since 1970, NumPy's smallest number where one is missing."""
    # Seconds and more hold times that microseconds do not, and NumPy does not say so.
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
    if there and all(isinstance(value, (int, np.integer)) and not isinstance(value, bool) and abs(int(value)) < 2**63 for value in there):
        return "n", [None if value is None else int(value) for value in known]
    if len(there) == len(known) and there and all(isinstance(value, (bool, np.bool_)) for value in there):
        # They are names as well, which numbers would be others.
        return "b", np.array(known, dtype=bool)
    if there and all(isinstance(value, (bool, int, float, np.number)) for value in there):
        return "f", np.array([np.nan if value is None else float(value) for value in known])
    if there and all(isinstance(value, datetime.date) for value in there):
        times = np.array(["NaT" if value is None else _without_zone(name, value).isoformat() for value in known], dtype="datetime64[us]")
        return "t", times.astype(np.int64)
    return "s", [None if value is None else str(value) for value in known]
