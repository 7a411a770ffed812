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
        return [np.asarray(sequence, dtype=float) for sequence in table]
    return None


def originals(task: dict[str, Any], table: Any) -> dict[str, Any]:
    """The names of sequences as they stand in the table, by their texts."""
    group = task.get("group")
    if not group or isinstance(table, (str, os.PathLike)) or group not in _names(table):
        return {}
    return {as_name(name): name for name in names_of(table, group)}


def names_of(table: Any, group: str) -> list[Any]:
    """The name of the sequence of each row."""
    names = _values(table, group)
    # NumPy makes no times of Python's of nanoseconds.
    return (names.astype("datetime64[us]") if names.dtype.kind == "M" else names).tolist()


def as_name(value: Any) -> str:
    """How the library writes a value that is a name."""
    if isinstance(value, (bool, np.bool_)):
        return "true" if value else "false"
    if isinstance(value, (float, np.floating)):
        return np.format_float_positional(float(value), trim="-")
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
    where the table did not name them, and ``times`` the times that are forecast as the table would write them, None where no column tells times.
    """

    def __init__(self, task: dict[str, Any], names: list[Any] | None, numbers: np.ndarray, times: list[list[str]] | None = None) -> None:
        self._task = task
        self.names, self.times = names, times
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
        task, n = self._task, len(self)
        names = list(range(n)) if self.names is None else list(self.names)
        if task["task"] == "classify":
            columns: dict[str, Any] = {task["group"]: names, task["target"]: self.labels}
            shares = {f"probability of {name}": self.probabilities[:, at] for at, name in enumerate(self.classes)}
            return {**columns, **shares}
        if task["task"] == "regress":
            return {task["group"]: names, task["target"]: self.values[:, 0]}
        horizon = self.values.shape[1]
        columns = {} if self.names is None and n == 1 else {task.get("group") or "sequence": np.repeat(np.array(names, dtype=object), horizon)}
        if self.times is not None:
            columns[task.get("time") or "time"] = np.array([time for times in self.times for time in times], dtype=object)
        step = "step"
        while step in columns or step in self.targets:
            step += "_ahead"
        columns[step] = np.tile(np.arange(1, horizon + 1), n)
        for at, target in enumerate(self.targets):
            values = self.values[:, :, at]
            if not self.quantiles:
                columns[target] = values.reshape(-1)
            for place in sorted(range(len(self.quantiles)), key=lambda place: self.quantiles[place] != 0.5):
                level = self.quantiles[place]
                columns[target if level == 0.5 else f"{target} q{level:g}"] = values[:, :, place].reshape(-1)
        return columns

    def to_pandas(self) -> Any:
        """The same as a frame of pandas."""
        import pandas  # type: ignore[import-untyped]

        return pandas.DataFrame(self.columns())

    def to_polars(self) -> Any:
        """The same as a frame of polars."""
        import polars

        return polars.DataFrame({name: list(column) for name, column in self.columns().items()})

    def __repr__(self) -> str:
        return f"<minrnn.Predictions of {len(self)} sequences: {', '.join(self.columns())}>"


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
        column = column.to_numpy()
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
