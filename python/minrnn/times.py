"""Forecasts as a frame of the same library as their table, with sequence names and times of the same types, so that the two can be
joined."""

from __future__ import annotations

import datetime
from typing import Any

import numpy as np
import numpy.typing as npt

from .frames import _has_names, _is_missing, _values, key_of, library_of
from .handed import is_path, zone_of
from .predictions import Predictions

# The type that an array of texts is converted to first, by the kind of the column.
WIDEST: dict[str, Any] = {"M": "datetime64[us]", "i": np.int64, "u": np.uint64, "f": float}


def like(table: Any, predicted: Predictions) -> Any:
    """Predictions as a frame of the same library as ``table``."""
    library = "" if is_path(table) else library_of(table)
    columns = predicted._columns_of(library if library in ("pandas", "polars") else "numpy")
    time = predicted._task.get("time") or ""
    key = key_of(table, time) if time in columns and not is_path(table) and _has_names(table) else None
    if key is not None:
        texts = [str(value) for value in columns[time]]
        columns[time] = {"pandas": _of_pandas, "polars": _of_polars}.get(library, _of_numpy)(texts, table[key], _values(table, key))
    if library == "pandas":
        import pandas  # type: ignore[import-untyped]

        return pandas.DataFrame(columns)
    if library == "polars":
        import polars

        return polars.DataFrame({name: list(column) if isinstance(column, np.ndarray) else column for name, column in columns.items()})
    return columns


def _of_numpy(texts: list[str], _: Any, known: npt.NDArray[Any]) -> npt.NDArray[Any]:
    """Times as ``known`` has them; texts where it has those."""
    if known.dtype.kind in WIDEST:
        widest = np.array(texts, dtype=WIDEST[known.dtype.kind])
        same = widest.astype(known.dtype)
        # Nanoseconds end in 2262, and a time within a day is not a date.
        return same if np.array_equal(same.astype(widest.dtype), widest) else widest
    first = next((value for value in known if not _is_missing(value)), None)
    if isinstance(first, datetime.date):
        times = np.array(texts, dtype="datetime64[us]").tolist()
        if not isinstance(first, datetime.datetime):
            # A time within a day is not a date.
            is_whole = all(time.time() == datetime.time() for time in times)
            times = [time.date() for time in times] if is_whole else times
        elif first.tzinfo is not None:
            times = [time.replace(tzinfo=first.tzinfo) for time in times]
        return _objects(times)
    if first is not None and not isinstance(first, str) and isinstance(first, (int, float, np.number)):
        return _of_numpy(texts, None, np.array([first]))
    return _objects(texts)


def _objects(values: list[Any]) -> npt.NDArray[Any]:
    made = np.empty(len(values), dtype=object)
    made[:] = values
    return made


def _of_pandas(texts: list[str], known: Any, values: npt.NDArray[Any]) -> Any:
    import pandas

    dtype = known.dtype
    if isinstance(dtype, pandas.PeriodDtype):
        return pandas.PeriodIndex(texts, freq=dtype.freq)
    if isinstance(dtype, np.dtype):
        found = _of_numpy(texts, None, values)
        # Without the type pandas would convert objects to dates.
        return pandas.Series(found, dtype=found.dtype)
    plain = pandas.Series(_of_numpy(texts, None, values))
    if isinstance(dtype, pandas.CategoricalDtype):
        # Future times are not among the categories.
        return plain
    if zone_of(known) is not None:
        plain = pandas.Series(np.array(texts, dtype="datetime64[us]")).dt.tz_localize("UTC")
    try:
        same = plain.astype(dtype)
    except (ValueError, TypeError, NotImplementedError):
        # Nanoseconds end in 2262.
        return plain
    return same


def _of_polars(texts: list[str], known: Any, values: npt.NDArray[Any]) -> Any:
    import polars

    plain = _of_numpy(texts, None, values)
    made = polars.Series(plain if plain.dtype.kind == "M" else plain.tolist())
    zone = getattr(known.dtype, "time_zone", None)
    if zone is not None:
        made = made.dt.replace_time_zone("UTC").dt.convert_time_zone(zone)
    same = made.cast(known.dtype, strict=False)
    return same if same.null_count() == 0 and (same.cast(made.dtype) == made).all() else made
