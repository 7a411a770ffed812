"""How much each row of a table surprises a forecaster, and each line or token of a text a text model."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from .written import Written, free_name


class Scores(Written):
    """How much each of the N rows of a table surprises a forecaster, sequence by sequence, in order of time.

    ``surprise`` ``[N]`` is in nats, NaN where it is undefined, as at the start of a sequence; ``anomaly`` ``[N]`` is true for rows whose
    surprise exceeds ``threshold``. ``threshold`` and ``anomaly`` are None if the model does not know how surprising held-out rows were and
    no table was given to calibrate on. ``values`` ``[N, targets]`` are the values of ``targets``, and ``forecast`` ``[N, targets]`` their
    forecasts one step before. ``names`` has the sequence name of each row, None if the table has none; ``times`` its time as the table
    would write it, None if it has no time column; ``steps`` its number within its sequence, from 1. ``notes`` are sentences about the tables
    and the threshold worth knowing.
    """

    def __init__(
        self,
        task: dict[str, Any],
        names: list[Any] | None,
        lengths: list[int],
        times: list[str] | None,
        numbers: list[npt.NDArray[np.float64]],
        threshold: float | None,
        notes: list[str],
        column: Any = None,
    ) -> None:
        super().__init__(task.get("group"), column)
        self._lengths, self._time = lengths, task.get("time") or "time"
        self.targets: list[str] = task["target"]
        self.names = None if names is None else [name for name, n in zip(names, lengths) for _ in range(n)]
        self.times, self.notes, self.threshold = times, notes, threshold
        self.steps = np.concatenate([np.arange(1, n + 1) for n in lengths])
        self.values, self.forecast, self.surprise = numbers
        self.anomaly = None if threshold is None else self.surprise > threshold

    def __len__(self) -> int:
        return len(self.surprise)

    def _sequence_of_rows(self) -> list[int]:
        return np.repeat(np.arange(len(self._lengths)), self._lengths).tolist()

    def _counted(self) -> str:
        return f"{len(self)} rows"

    def _named(self) -> list[tuple[str, Any]]:
        named: list[tuple[str, Any]] = []
        if self._group is not None and self.names is not None:
            named.append((self._group, np.array(self.names, dtype=object)))
        if self.times is not None:
            named.append((self._time, np.array(self.times, dtype=object)))
        # Columns of the table keep their names.
        of_table = [*named, *((target, None) for target in self.targets)]

        def own(name: str) -> str:
            return free_name(name, "_scored", of_table)

        if self.times is None:
            named.append((own("step"), self.steps))
        for at, target in enumerate(self.targets):
            named += [(target, self.values[:, at]), (own(f"{target} forecast"), self.forecast[:, at])]
        named.append((own("surprise"), self.surprise))
        return named if self.anomaly is None else [*named, (own("anomaly"), self.anomaly)]


class TextScores(Written):
    """How much each of the N lines of a text surprises a text model, or each of its N tokens.

    ``surprise`` ``[N]`` is in nats, for a line the mean over its tokens, NaN for the first token of the text, which nothing predicts;
    ``anomaly`` ``[N]`` is true for rows whose surprise exceeds ``threshold``, and for those of ``unknown`` ``[N]``: rows with something that
    is not in the vocabulary, or a byte that is not UTF-8. ``threshold`` is None, and only the latter are marked, if the model does not know
    the text held out in training and no text was given to calibrate on. ``lines`` ``[N]`` is the line of each row, from 1, ``tokens``
    ``[N]`` its number of tokens without unknown ones, and ``texts`` its text, with U+FFFD for bytes that are not UTF-8; lines
    are without their line break, as far as the vocabulary has it, and are cut behind 65536 bytes. ``notes`` are sentences about the texts
    and the threshold worth knowing.
    """

    def __init__(
        self,
        by: str,
        places: list[npt.NDArray[np.int64]],
        surprise: npt.NDArray[np.float64],
        marks: list[npt.NDArray[np.bool_]],
        texts: list[str],
        threshold: float | None,
        notes: list[str],
    ) -> None:
        super().__init__()
        self._by = by
        self.lines, self.tokens = places
        self.surprise, self.texts, self.threshold, self.notes = surprise, texts, threshold, notes
        self.anomaly, self.unknown = marks

    def __len__(self) -> int:
        return len(self.surprise)

    def _counted(self) -> str:
        return f"{len(self)} {self._by}s"

    def _named(self) -> list[tuple[str, Any]]:
        tokens = [("tokens", self.tokens)] if self._by == "line" else []
        texts = np.array(self.texts, dtype=object)
        return [("line", self.lines), *tokens, ("surprise", self.surprise), ("anomaly", self.anomaly), ("text", texts)]
