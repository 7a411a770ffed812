"""Tables of Python on their way into the library: streams of Arrow where a library offers them, columns of NumPy otherwise."""

from __future__ import annotations

import os
from typing import Any

import numpy as np

from .errors import InputError, KindError
from .frames import _is_missing, _names, _values

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


def _column(name: str, table: Any, key: Any) -> tuple[str, str, Any]:
    column = table[key]
    zone = getattr(getattr(column, "dt", None), "tz", None)
    if zone is not None:
        # As in files: a day of another zone begins at another time.
        if str(zone) not in UTC:
            sentence = "expected UTC or times without a zone; convert them, or drop the zone and keep local times"
            raise InputError(f"the column '{name}' holds times of the zone '{zone}', {sentence}")
        column = column.dt.tz_localize(None)
        table, key = {name: column}, name
    values = _values(table, key)
    kind = values.dtype.kind
    if kind == "f":
        return name, "f", np.array(values, dtype=float)
    if kind in "iu" and (not len(values) or int(values.max()) <= np.iinfo(np.int64).max):
        return name, "i", np.array(values, dtype=np.int64)
    if kind in "iu":
        return name, "f", np.array(values, dtype=float)
    if kind == "b":
        return name, "b", np.array(values, dtype=bool)
    if kind == "M":
        return name, "t", values.astype("datetime64[ns]").astype(np.int64)
    return name, *_objects(values)


def _objects(values: np.ndarray) -> tuple[str, Any]:
    """Values of mixed types: all numbers, all times, or else texts."""
    known = [None if _is_missing(value) else value for value in values.tolist()]
    there = [value for value in known if value is not None]
    if there and all(isinstance(value, (bool, int, float, np.number)) for value in there):
        return "f", np.array([np.nan if value is None else float(value) for value in known])
    if there and all(hasattr(value, "isoformat") for value in there):
        times = np.array(["NaT" if value is None else value.isoformat() for value in known], dtype="datetime64[ns]")
        return "t", times.astype(np.int64)
    return "s", [None if value is None else str(value) for value in known]
