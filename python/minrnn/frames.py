"""Tables of Python, and predictions as tables.

A table is whatever has columns by name: a dictionary of arrays or lists, a frame of pandas or polars, a table of pyarrow. NumPy's arrays have no names: ``[T, columns]``
is one sequence, ``[N, T, columns]`` or a list of ``[T, columns]`` several.
"""

from __future__ import annotations

import datetime
import os
from typing import Any

import numpy as np

from .errors import InputError, KindError


def sequences(task: dict[str, Any], table: Any) -> list[Any] | None:
    """The sequences ``[T, columns]`` of arrays without names; None of a table whose columns have names."""
    if isinstance(table, np.ndarray):
        return _of_array(table, len(task["columns"]))
    if isinstance(table, (list, tuple)):
        # Tables keep the names of their columns.
        return [sequence if _is_named(sequence) else _of_steps(np.asarray(sequence, dtype=float), len(task["columns"])) for sequence in table]
    return None


def _of_steps(sequence, columns):
    """A sequence ``[T, columns]``; one of a single column may be ``[T]``."""
    return sequence[:, None] if columns == 1 and sequence.ndim == 1 else sequence


def _is_named(sequence: Any) -> bool:
    return isinstance(sequence, dict) or hasattr(sequence, "columns")


class SequenceNames:
    """The names of the sequences of a table, as it has them."""

    def __init__(self, task: dict[str, Any], table: Any) -> None:
        group = task.get("group")
        has_names = group and not isinstance(table, (str, os.PathLike)) and _has_names(table)
        key = key_of(table, group) if has_names else None
        self._column = None if key is None else table[key]
        self._names = [] if key is None else names_of(table, key)
        # Where a sequence has a row, by the text of its name.
        self._rows = {as_name(name): row for row, name in enumerate(self._names)}

    def names(self, texts: list[str]) -> list[Any]:
        """The names that are written as ``texts``."""
        return [self._names[self._rows[text]] if text in self._rows else text for text in texts]

    def column(self, texts: list[str]) -> Any:
        """The same as a column of the library and the type that the table has it of; None where the table does not have them."""
        if self._column is None or not all(text in self._rows for text in texts):
            return None
        return taken(self._column, [self._rows[text] for text in texts], library_of(self._column))


def key_of(table: Any, name: str) -> Any:
    """The column that the library, which knows columns by their texts, calls ``name``; None where there is none."""
    return next((key for key in _names(table) if str(key) == name), None)


def library_of(table: Any) -> str:
    """The library that a table, or a column of one, is of."""
    return type(table).__module__.split(".")[0]


def taken(column: Any, rows: list[int], library: str) -> Any:
    """A column with the values at ``rows``, of the type that it has: one of ``library``, pandas or polars, and an array for all others."""
    if library == "pandas":
        return column.iloc[rows].reset_index(drop=True)
    return column[rows] if library == "polars" else _values({"": column}, "")[rows]


def names_of(table: Any, group: str) -> list[Any]:
    """The name of the sequence of each row."""
    return of_python(_values(table, group))


def of_python(values: np.ndarray) -> list[Any]:
    """The values of an array as Python has them."""
    # NumPy makes no times of Python's of nanoseconds.
    return (values.astype("datetime64[us]") if values.dtype.kind == "M" else values).tolist()


def as_name(value: Any) -> str:
    """How the library writes a value that is a name."""
    if isinstance(value, (bool, np.bool_)):
        return "true" if value else "false"
    if isinstance(value, (float, np.floating)):
        return np.format_float_positional(float(value), trim="-")
    if isinstance(value, np.datetime64):
        value = value.astype("datetime64[us]").item()
    if isinstance(value, datetime.date):
        return _written(value)
    return str(value).strip()


def _written(time: datetime.date) -> str:
    if not isinstance(time, datetime.datetime):
        return f"{time.isoformat()} 00:00:00"
    text, rest = time.strftime("%Y-%m-%d %H:%M:%S"), time.microsecond
    return text + (f".{rest // 1000:03d}" if rest and rest % 1000 == 0 else f".{rest:06d}" if rest else "")


class Predictions:
    """What is predicted at the end of every sequence.

    Of a classifier: ``classes`` (their names), ``probabilities`` ``[N, classes]`` and ``labels``, the likeliest class of each sequence. Of a regressor: ``values`` ``[N, 1]``. Of a forecaster: ``values``
    ``[N, horizon, targets]``, or ``[N, horizon, targets, quantiles]`` with ``quantiles``, in the units of the table. ``names`` has the names of the sequences, None
    where the table did not name them, and ``times`` the times that are forecast as the table would write them, None where no column tells times. ``notes`` has
    what should be known of the table, each a sentence: where steps are longer than usual, which sequences end early, which names training never saw.
    """

    def __init__(
        self,
        task: dict[str, Any],
        number_names: list[tuple[str, int]],
        names: list[Any] | None,
        numbers: np.ndarray,
        times: list[list[str]] | None = None,
        notes: list[str] | None = None,
        column: Any = None,
    ) -> None:
        # The names as a column of the library that the table is of, where it has them.
        self._task, self._number_names, self._column = task, number_names, column
        self.names, self.times, self.notes = names, times, notes or []
        if task["task"] == "classify":
            self.classes, self.probabilities = task["classes"], numbers
            self.labels = [self.classes[at] for at in numbers.argmax(axis=1)]
        elif task["task"] == "regress":
            self.targets, self.quantiles, self.values = [task["target"]], [], numbers
        else:
            self.targets, self.quantiles, self.values = task["target"], task.get("quantiles", []), numbers

    def __len__(self) -> int:
        return len(self.probabilities if self._task["task"] == "classify" else self.values)

    def columns(self) -> dict[str, Any]:
        """The predictions as a dictionary of columns, as ``minrnn predict`` names them."""
        return _apart(self._named())

    def _named(self) -> list[tuple[str, Any]]:
        """The columns with their names."""
        task, n = self._task, len(self)
        names = list(range(n)) if self.names is None else list(self.names)
        if task["task"] == "classify":
            shares = [(name, self.probabilities[:, place]) for name, place in self._number_names]
            return [(task["group"], names), (task["target"], self.labels), *shares]
        if task["task"] == "regress":
            return [(task["group"], names), *((name, self.values[:, place]) for name, place in self._number_names)]
        horizon = self.values.shape[1]
        numbers = self.values.reshape(n, horizon, -1)
        values = [(name, numbers[:, :, place].reshape(-1)) for name, place in self._number_names]
        own: list[tuple[str, Any]] = []
        if self.names is not None or n != 1:
            group = task.get("group") or _free("sequence", "_number", values)
            own.append((group, np.repeat(np.array(names, dtype=object), horizon)))
        if self.times is not None:
            own.append((task.get("time") or "time", np.array([time for times in self.times for time in times], dtype=object)))
        step = _free("step", "_ahead", [*own, *values])
        return [*own, (step, np.tile(np.arange(1, horizon + 1), n)), *values]

    def _columns_of(self, library: str) -> dict[str, Any]:
        """The same, with names of the type that the table has them of where that is one of ``library``, or an array is wanted."""
        columns, group = self.columns(), self._task.get("group")
        is_array = library not in ("pandas", "polars")
        if self._column is not None and group in columns and (is_array or library_of(self._column) == library):
            each = len(columns[group]) // max(len(self), 1)
            columns[group] = taken(self._column, [row for row in range(len(self)) for _ in range(each)], library)
        return columns

    def to_pandas(self) -> Any:
        """The same as a frame of pandas; of one of pandas the names of sequences keep their type."""
        import pandas  # type: ignore[import-untyped]

        return pandas.DataFrame(self._columns_of("pandas"))

    def to_polars(self) -> Any:
        """The same as a frame of polars; of one of polars the names of sequences keep their type."""
        import polars

        columns = self._columns_of("polars")
        return polars.DataFrame({name: column if library_of(column) == "polars" else list(column) for name, column in columns.items()})

    def __repr__(self) -> str:
        return f"<minrnn.Predictions of {len(self)} sequences: {', '.join(name for name, _ in self._named())}>"


def _free(name: str, more: str, others: list[tuple[str, Any]]) -> str:
    """A name of our own that none of the others has: a table may have a column of that name."""
    while any(name == other for other, _ in others):
        name += more
    return name


def _apart(columns: list[tuple[str, Any]]) -> dict[str, Any]:
    """Columns by their names, none of which takes the place of another."""
    names = [name for name, _ in columns]
    twice = [name for at, name in enumerate(names) if name in names[:at]]
    if twice:
        raise InputError(f"two columns would be called '{twice[0]}'; read the predictions from probabilities, labels or values")
    return dict(columns)


def _of_array(array, width):
    """The sequences of an array without names."""
    if array.ndim == 1 and width == 1:
        array = array[:, None]
    if array.ndim == 2:
        array = array[None]
    if array.ndim != 3 or array.shape[2] != width:
        raise InputError(f"expected an array of the shape [T, {width}] or [N, T, {width}], found {list(array.shape)}")
    if array.dtype.kind not in "fiub":
        raise KindError(f"expected numbers, found an array of {array.dtype}")
    return list(array)


def _has_names(table):
    return isinstance(table, dict) or any(not callable(getattr(table, name, print)) for name in ("column_names", "columns"))


def _names(table):
    if isinstance(table, dict):
        return list(table)
    for attribute in ("column_names", "columns"):
        names = getattr(table, attribute, None)
        # Of pyarrow those are the names, of the others the columns have them.
        if names is not None and not callable(names):
            return list(names)
    raise KindError(f"expected a table: a dictionary of columns, a frame, or NumPy's array; found {type(table).__name__}")


def _values(table, name):
    """A column as an array."""
    column = table[name]
    if hasattr(column, "to_numpy"):
        # What does not lie in memory as NumPy has it is copied by all but pyarrow, whose tables do as they are asked.
        is_arrow = library_of(column) == "pyarrow" and not hasattr(column, "chunks")
        column = column.to_numpy(zero_copy_only=False) if is_arrow else column.to_numpy()
    column = np.asarray(column) if not isinstance(column, (list, tuple)) else _listed(column)
    if column.ndim != 1:
        raise InputError(f"the column '{name}' has the shape {list(column.shape)}, expected one value for each row")
    return column


def _listed(column):
    # NumPy would make text of numbers beside text.
    array = np.asarray(column)
    if array.dtype.kind in "fiubM":
        return array
    mixed = np.empty(len(column), dtype=object)
    mixed[:] = column
    return mixed


def _is_missing(value):
    # NaN, NaT and pandas' NA are not equal to themselves, or do not want to say.
    if value is None:
        return True
    try:
        return bool(value != value)
    except TypeError:
        return True
