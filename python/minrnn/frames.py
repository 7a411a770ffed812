"""Python's tables.

A table is anything with named columns: a dictionary of arrays or lists, a pandas or polars frame, a pyarrow table. NumPy arrays have no
names: ``[T, columns]`` is one sequence, ``[N, T, columns]`` or a list of ``[T, columns]`` several.
"""

from __future__ import annotations

import datetime
import decimal
import os
from typing import Any

import numpy as np

from .errors import InputError, KindError


# Values that hold several values.
SEVERAL = (list, tuple, dict, set, frozenset, np.ndarray)
# Values that are read neither as numbers nor as names.
NO_NAMES = (datetime.timedelta, np.timedelta64, complex, np.complexfloating, *SEVERAL)
# Values that NumPy itself converts to numbers correctly.
NUMBERS = (bool, int, float, np.bool_, np.integer, np.floating, decimal.Decimal)
# The types of most values, none of which is masked or holds others.
PLAIN = frozenset([bool, int, float, str, type(None), np.float64, np.float32, np.int64])


def sequences(task: dict[str, Any], table: Any) -> list[Any] | None:
    """The sequences ``[T, columns]`` of arrays without names; None for a table with named columns."""
    if isinstance(table, np.ndarray):
        return _of_array(table, len(task["columns"]))
    if isinstance(table, (list, tuple)):
        # Tables keep the names of their columns.
        return [
            sequence if _is_named(sequence) else _of_steps(numbers(sequence, f"sequence {at}"), len(task["columns"]))
            for at, sequence in enumerate(table)
        ]
    return None


def _of_steps(sequence, columns):
    """A sequence ``[T, columns]``; one of a single column may be ``[T]``."""
    return sequence[:, None] if columns == 1 and sequence.ndim == 1 else sequence


def _is_named(sequence: Any) -> bool:
    return isinstance(sequence, dict) or hasattr(sequence, "columns")


class SequenceNames:
    """The names of a table's sequences, in the table's own types."""

    def __init__(self, task: dict[str, Any], table: Any) -> None:
        group = task.get("group") or ""
        has_names = group and not isinstance(table, (str, os.PathLike)) and _has_names(table)
        key = key_of(table, group) if has_names else None
        self._column = None if key is None else table[key]
        self._names = [] if key is None else names_of(table, key)
        # A row of each sequence, by the text of its name.
        self._rows = {as_name(name): row for row, name in enumerate(self._names)}

    def names(self, texts: list[str]) -> list[Any]:
        """The names that are written as ``texts``."""
        return [self._names[self._rows[text]] if text in self._rows else text for text in texts]

    def column(self, texts: list[str]) -> Any:
        """The same as a column of the table's library and type; None if the table lacks any of them."""
        if self._column is None or not all(text in self._rows for text in texts):
            return None
        return taken(self._column, [self._rows[text] for text in texts], library_of(self._column))


def key_of(table: Any, name: str) -> Any:
    """The key of the column ``name``, compared as text; None if there is none."""
    return next((key for key in _names(table) if str(key).strip() == name), None)


def library_of(table: Any) -> str:
    """The library that a table or a column comes from."""
    return type(table).__module__.split(".")[0]


def taken(column: Any, rows: list[int], library: str) -> Any:
    """The values of a column at ``rows``, with its type: a column of ``library`` if that is pandas or polars, otherwise an array."""
    if library == "pandas":
        found = column.take(rows)
        # A pandas Index or array has no index to reset.
        return found.reset_index(drop=True) if hasattr(found, "reset_index") else found
    return column[rows] if library == "polars" else _values({"": column}, "")[rows]


def names_of(table: Any, group: str) -> list[Any]:
    """The sequence name of each row."""
    return of_python(_values(table, group))


def of_python(values: np.ndarray) -> list[Any]:
    """The values of an array as Python objects."""
    # NumPy does not convert nanoseconds to Python's times.
    return (values.astype("datetime64[us]") if values.dtype.kind == "M" else values).tolist()


def as_name(value: Any) -> str:
    """How the library writes a value used as a name."""
    if isinstance(value, (bool, np.bool_)):
        return "true" if value else "false"
    if isinstance(value, decimal.Decimal) and value.is_finite():
        # Written as in a column that has the same number of decimals for all values.
        value = int(value) if is_whole(value) else float(value)
    if isinstance(value, (float, np.floating)):
        return np.format_float_positional(float(value), trim="-")
    if isinstance(value, np.datetime64):
        value = value.astype("datetime64[us]").item()
    if isinstance(value, datetime.date):
        return _written(value)
    if isinstance(value, NO_NAMES):
        raise KindError(f"expected a text, a number, a truth or a time as a name, found {no_name(value)}")
    return text_of(value).strip()


def no_name(value: Any) -> str:
    """How messages refer to a value that does not belong in a column; one that holds several may be long."""
    return f"values of the type {type(value).__name__}" if isinstance(value, SEVERAL) else f"{value!r}"


def text_of(value: Any, what: str = "a name") -> str:
    """``value`` as a text; bytes are decoded as UTF-8. Messages call it ``what``."""
    if not isinstance(value, (bytes, bytearray)):
        return _expect_text(value, what)
    try:
        return value.decode()
    except UnicodeDecodeError:
        raise InputError(f"{what}: expected a text, or bytes in UTF-8, found {bytes(value[:40])!r}; decode it first") from None


def _expect_text(value: Any, what: str) -> str:
    try:
        text = str(value)
    except ValueError as error:
        # Python refuses to write integers of more than some thousand digits.
        raise InputError(f"{what}: expected what can be written as a text, found a value of the type {type(value).__name__} that cannot ({error})") from None
    if not text.isascii():
        expect_utf8(text, what)
    return text


def expect_utf8(text: str, what: str) -> None:
    """Raises if ``text``, called ``what`` in messages, holds an unpaired surrogate."""
    try:
        text.encode()
    except UnicodeEncodeError as error:
        found = f"{text[:40]!r}, whose character {error.start + 1} is half of one"
        raise InputError(f"{what}: expected a text that UTF-8 can hold, found {found}; decode it anew, or leave the character out") from None


def is_whole(value: decimal.Decimal) -> bool:
    """Whether ``value`` is a whole number with no more digits than Arrow supports."""
    return value.is_finite() and value.adjusted() < 38 and value == value.to_integral_value()


def _written(time: datetime.date) -> str:
    if not isinstance(time, datetime.datetime):
        return f"{time.isoformat()} 00:00:00"
    text, rest = time.strftime("%Y-%m-%d %H:%M:%S"), time.microsecond
    return text + (f".{rest // 1000:03d}" if rest and rest % 1000 == 0 else f".{rest:06d}" if rest else "")


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
    return list(unmasked(array))


def numbers(values, what):
    """``values``, called ``what`` in messages, as an array of numbers, with NaN for None and masked values."""
    try:
        array = unmasked(values)
        if array.dtype.kind in "fiub":
            return array.astype(float)
        if array.dtype.kind == "O":
            kinds = set(map(type, array.flat))
            if all(issubclass(kind, NUMBERS) for kind in kinds):
                return array.astype(float)
            if not any(issubclass(kind, (str, bytes, np.complexfloating)) for kind in kinds):
                return np.array([np.nan if _is_missing(value) else float(value) for value in array.flat], dtype=float).reshape(array.shape)
    except OverflowError as error:
        raise InputError(f"{what}: expected numbers below 1.8e308, found one that is larger ({error})") from None
    except ValueError as error:
        raise InputError(f"{what}: expected an array of numbers ({error})") from None
    except TypeError as error:
        raise KindError(f"{what}: expected numbers ({error})") from None
    raise KindError(f"{what}: expected numbers, found an array of {array.dtype}")


def unmasked(values):
    """``values`` as an array without a mask: NaN, NaT or None where they are masked."""
    if isinstance(values, (list, tuple)):
        values = _filled(values)
    if not np.ma.isMaskedArray(values) or not np.ma.is_masked(values):
        return np.asarray(values)
    missing = {"f": np.nan, "M": np.datetime64("NaT"), "m": np.timedelta64("NaT")}.get(values.dtype.kind)
    if missing is not None:
        return values.filled(missing)
    array = np.asarray(values).astype(object)
    array[np.ma.getmaskarray(values)] = None
    return array


def _filled(values):
    """A list without masks, at whatever depth: None where a value is masked."""
    if PLAIN.issuperset(map(type, values)):
        return values
    return [_without_mask(value) for value in values]


def _without_mask(value):
    if value is np.ma.masked:
        return None
    if isinstance(value, (list, tuple)):
        return _filled(value)
    return unmasked(value) if isinstance(value, np.ma.MaskedArray) else value


def _expect_read(table):
    if library_of(table) == "polars" and hasattr(table, "collect"):
        raise KindError(f"expected a table that has been read, found a {type(table).__name__} of polars; collect() it first")


def _has_names(table):
    _expect_read(table)
    return isinstance(table, dict) or any(not callable(getattr(table, name, print)) for name in ("column_names", "columns"))


def _names(table):
    _expect_read(table)
    if isinstance(table, dict):
        return list(table)
    for attribute in ("column_names", "columns"):
        names = getattr(table, attribute, None)
        # `column_names` is pyarrow's; in the other libraries `columns` holds the names.
        if names is not None and not callable(names):
            return list(names)
    raise KindError(f"expected a table: a dictionary of columns, a frame, or NumPy's array; found {type(table).__name__}")


def _values(table, name):
    """A column as an array."""
    column = table[name]
    expect_arrow(name, column)
    if hasattr(column, "to_numpy") and (whole := _whole_beside_missing(column)) is not None:
        column = whole
    elif hasattr(column, "to_numpy"):
        # Data with another layout than NumPy's is copied: pyarrow's arrays only do so on request, its tables and the other libraries always.
        is_arrow = library_of(column) == "pyarrow" and not hasattr(column, "chunks")
        column = column.to_numpy(zero_copy_only=False) if is_arrow else column.to_numpy()
    try:
        column = unmasked(column) if not isinstance(column, (list, tuple)) else _listed(column)
    except ValueError:
        raise InputError(f"the column '{name}' holds lists of several lengths, expected one value for each row") from None
    if column.ndim != 1:
        raise InputError(f"the column '{name}' has the shape {list(column.shape)}, expected one value for each row")
    if column.dtype.kind in "mc":
        raise no_column(name, column.dtype)
    return column


def _whole_beside_missing(column):
    """The values of a column of whole numbers of which some are missing, where NumPy would make floats of them; None of all others."""
    library = library_of(column)
    if library in ("pandas", "polars") and not hasattr(column, "dtype"):
        # A data frame, if several columns have the same name.
        return None
    if library == "pandas":
        # Of a categorical column the categories have the type.
        dtype = column.dtype
        categories = getattr(dtype, "categories", None)
        if (dtype if categories is None else categories.dtype).kind not in "iu" or not column.isna().any():
            return None
        return _objects(column.tolist()) if categories is None else _of_categories(column, categories)
    if library == "polars":
        return _objects(column.to_list()) if column.dtype.is_integer() and column.null_count() else None
    if library == "pyarrow":
        import pyarrow  # type: ignore[import-untyped]

        dtype = column.type.value_type if pyarrow.types.is_dictionary(column.type) else column.type
        return _objects(column.to_pylist()) if pyarrow.types.is_integer(dtype) and column.null_count else None
    return None


def _of_categories(column, categories):
    known, codes = categories.tolist(), getattr(column, "cat", column).codes
    return _objects([None if code < 0 else known[code] for code in codes])


def _objects(values):
    """A list as an array of what it holds."""
    made = np.empty(len(values), dtype=object)
    made[:] = values
    return made


def expect_arrow(name, column):
    """Refuses a polars column of a type that neither Arrow nor NumPy has."""
    if library_of(column) == "polars" and str(column.dtype) in ("Int128", "UInt128"):
        raise KindError(f"the column '{name}' holds {column.dtype}, which Arrow does not have; cast it to Int64, Float64 or String")


def no_column(name, found):
    """The error for a column whose values can be read neither as numbers nor as names."""
    return KindError(f"the column '{name}' holds {found}, expected numbers, texts or times; make numbers of them, or leave the column out")


def _listed(column):
    if any(isinstance(value, np.ma.MaskedArray) for value in column):
        column = [None if value is np.ma.masked else value for value in column]
    # NumPy would convert numbers beside text to text, and integers that do not fit into 64 bits to floats, in which several become the same number.
    array = np.asarray(column)
    if array.dtype.kind in "iubMmc" or array.dtype.kind == "f" and not _holds_wide(column, array):
        return array
    return _objects(column)


def _holds_wide(column, array):
    """Whether a list has a whole number of which floats, that NumPy makes of it beside the others, do not hold every digit."""
    return array.ndim == 1 and any(isinstance(column[at], (int, np.integer)) for at in np.flatnonzero(np.abs(array) >= 2**53))


def _is_missing(value):
    # NaN, NaT and pandas' NA are not equal to themselves, or raise when asked, as decimal's signalling NaN does.
    if value is None or value is np.ma.masked:
        return True
    if isinstance(value, SEVERAL):
        return False
    try:
        return bool(value != value)
    except (TypeError, decimal.InvalidOperation):
        return True
    except ValueError:
        # A container compares element by element.
        return False
