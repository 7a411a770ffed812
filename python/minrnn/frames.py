"""Tables of Python as sequences, and predictions as tables.

A table is whatever has columns by name: a dictionary of arrays or lists, a frame of pandas or polars, a table of pyarrow. NumPy's arrays have no names: ``[T, columns]``
is one sequence, ``[N, T, columns]`` or a list of ``[T, columns]`` several.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from .errors import InputError, KindError


class Table:
    """The sequences of a table: ``sequences``, each ``[T, columns]`` in the order of time, and their ``names``, None where there are none."""

    def __init__(self, task: dict[str, Any], table: Any) -> None:
        self.columns = task["columns"]
        if isinstance(table, np.ndarray):
            table = _of_array(table, len(self.columns))
        if isinstance(table, (list, tuple)):
            self.names, self.sequences = None, [np.asarray(sequence, dtype=float) for sequence in table]
        else:
            self.names, self.sequences = self._of_columns(task, table)
        if not self.sequences:
            raise InputError("the table has no rows, expected at least one")

    def _of_columns(self, task, table):
        known = _names(table)
        group, time = task.get("group"), task.get("time")
        for name in [*self.columns, *([group] if group else [])]:
            if name not in known:
                raise InputError(f"the table has no column '{name}', which the model was trained with; it has {', '.join(map(str, known))}")
        categories = {category["column"]: category["values"] for category in task.get("categories", [])}
        columns = [_numbers(_values(table, name), name, categories.get(at)) for at, name in enumerate(self.columns)]
        if len({len(column) for column in columns}) > 1:
            raise InputError(f"the columns have different lengths: {', '.join(f'{n} {len(c)}' for n, c in zip(self.columns, columns))}")
        rows = np.stack(columns, axis=1)
        names, of_row = (None, np.zeros(len(rows), dtype=int)) if not group else _groups(_values(table, group), group)
        if len(of_row) != len(rows):
            raise InputError(f"the column '{group}' has {len(of_row)} rows, expected {len(rows)}")
        order = np.argsort(of_row, kind="stable")
        if time and time in known:
            times = _times(_values(table, time), time)
            if len(times) != len(rows):
                raise InputError(f"the column '{time}' has {len(times)} rows, expected {len(rows)}")
            order = np.lexsort((times, of_row))
            same = (of_row[order][1:] == of_row[order][:-1]) & (times[order][1:] == times[order][:-1])
            if same.any():
                name = "the table" if names is None else f"the sequence '{names[of_row[order][1:][same][0]]}'"
                raise InputError(f"{name} has two rows of the same time in the column '{time}', expected one")
        ends = np.cumsum(np.bincount(of_row)) if len(rows) else []
        return names, np.split(rows[order], ends[:-1]) if len(rows) else []


class Predictions:
    """What is predicted at the end of every sequence.

    Of a classifier: ``classes`` (their names), ``probabilities`` ``[N, classes]`` and ``labels``, the likeliest class of each sequence. Of a regressor: ``values`` ``[N, 1]``. Of a forecaster: ``values``
    ``[N, horizon, targets]``, or ``[N, horizon, targets, quantiles]`` with ``quantiles``, in the units of the table. ``names`` has the names of the sequences, None
    where the table did not name them.
    """

    def __init__(self, task: dict[str, Any], names: list[Any] | None, numbers: np.ndarray) -> None:
        self._task = task
        self.names = names
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
        """The predictions as a dictionary of columns, as ``minrnn predict`` names them, but for the times to come."""
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
        columns["step"] = np.tile(np.arange(1, horizon + 1), n)
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


def _numbers(column, name, categories):
    """The numbers of a column, NaN where one is missing; of a column of names their places, -1 of one that training did not see."""
    if categories is not None:
        places = {value: place for place, value in enumerate(categories)}
        return np.array([np.nan if _is_missing(value) else places.get(str(value), -1) for value in column], dtype=float)
    if column.dtype.kind in "fiub":
        return column.astype(float)
    numbers = np.empty(len(column))
    for row, value in enumerate(column):
        if isinstance(value, (str, bytes)) or not _is_missing(value) and not hasattr(value, "__float__"):
            raise KindError(f"row {row} of the column '{name}' is {value!r}, expected a number (rows counted from 0)")
        numbers[row] = np.nan if _is_missing(value) else float(value)
    return numbers


def _groups(column, name):
    """The names of sequences in the order of their first rows, and of each row its sequence."""
    names, of_row = {}, np.empty(len(column), dtype=int)
    for row, value in enumerate(column.tolist()):
        if _is_missing(value):
            raise InputError(f"row {row} of the column '{name}' is empty, expected the name of its sequence (rows counted from 0)")
        of_row[row] = names.setdefault(value, len(names))
    return list(names), of_row


def _times(column, name):
    """Numbers that are in the order of time."""
    if column.dtype.kind in "fiu":
        times = column.astype(float)
    else:
        try:
            times = np.array(column, dtype="datetime64[ns]")
        except (ValueError, TypeError) as error:
            raise InputError(f"the column '{name}' holds what is no time ({error}), expected numbers, dates or times") from None
        times = np.where(np.isnat(times), np.nan, times.astype("int64").astype(float))
    if np.isnan(times).any():
        raise InputError(f"row {int(np.isnan(times).argmax())} of the column '{name}' has no time, expected one (rows counted from 0)")
    return times
