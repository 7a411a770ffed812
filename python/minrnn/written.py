"""A model's output for a table or a text, as columns and as frames."""

from __future__ import annotations

from typing import Any

from .errors import InputError
from .frames import library_of, taken


class Written:
    """Output in named columns, with several rows for each sequence of a table, or rows of a text. ``group`` is the column of sequence
    names, and ``column`` holds these names as a column of the table's library, if it has them."""

    def __init__(self, group: str | None = None, column: Any = None) -> None:
        self._group, self._column = group, column

    def _named(self) -> list[tuple[str, Any]]:
        """The columns with their names."""
        raise NotImplementedError

    def _sequence_of_rows(self) -> list[int]:
        """The sequence of each row."""
        raise NotImplementedError

    def columns(self) -> dict[str, Any]:
        """The same as a dictionary of columns, named as by the command."""
        return _apart(self._named())

    def _columns_of(self, library: str) -> dict[str, Any]:
        """The same, with names of the type that the table has them of where that is one of ``library``, or an array is wanted."""
        columns = self.columns()
        is_array = library not in ("pandas", "polars")
        if self._column is not None and self._group in columns and (is_array or library_of(self._column) == library):
            columns[self._group] = taken(self._column, self._sequence_of_rows(), library)
        return columns

    def to_pandas(self) -> Any:
        """The same as a pandas frame; sequence names that come from a pandas frame keep their type."""
        import pandas  # type: ignore[import-untyped]

        return pandas.DataFrame(self._columns_of("pandas"))

    def to_polars(self) -> Any:
        """The same as a polars frame; sequence names that come from a polars frame keep their type."""
        import polars

        columns = self._columns_of("polars")
        return polars.DataFrame({name: column if library_of(column) == "polars" else list(column) for name, column in columns.items()})

    def __repr__(self) -> str:
        return f"<minrnn.{type(self).__name__} of {self._counted()}: {', '.join(name for name, _ in self._named())}>"

    def _counted(self) -> str:
        """What it is of, and how many."""
        raise NotImplementedError


def free_name(name: str, more: str, others: list[tuple[str, Any]]) -> str:
    """A name for a column of our own that no other column has: the table may have one of that name."""
    while any(name == other for other, _ in others):
        name += more
    return name


def _apart(columns: list[tuple[str, Any]]) -> dict[str, Any]:
    """Columns by their names, none of which takes the place of another."""
    names = [name for name, _ in columns]
    twice = [name for at, name in enumerate(names) if name in names[:at]]
    if twice:
        raise InputError(f"two columns would be called '{twice[0]}'; read the numbers from the attributes instead")
    return dict(columns)
