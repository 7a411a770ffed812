"""Predictions at the end of every sequence of a table."""

from __future__ import annotations

from typing import Any

import numpy as np

from .written import Written, free_name


class Predictions(Written):
    """Predictions at the end of every sequence.

    A classifier gives ``classes`` (their names), ``probabilities`` ``[N, classes]`` and ``labels``, the most likely class of each sequence;
    a regressor gives ``values`` ``[N, 1]``; a forecaster gives ``values`` ``[N, horizon, targets]``, or ``[N, horizon, targets,
    quantiles]`` with ``quantiles``, in the units of the table. ``names`` are the names of the sequences, None if the table has none.
    ``times`` are the forecast times as the table would write them, None if it has no time column. ``notes`` are sentences about the table
    worth knowing: where steps are longer than usual, which sequences end early, which names training never saw.
    """

    def __init__(
        self,
        task: dict[str, Any],
        output_names: list[tuple[str, int]],
        names: list[Any] | None,
        numbers: np.ndarray,
        times: list[list[str]] | None = None,
        notes: list[str] | None = None,
        column: Any = None,
    ) -> None:
        super().__init__(task.get("group"), column)
        self._task, self._output_names = task, output_names
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

    def _sequence_of_rows(self) -> list[int]:
        each = self.values.shape[1] if self._task["task"] == "forecast" else 1
        return [sequence for sequence in range(len(self)) for _ in range(each)]

    def _counted(self) -> str:
        return f"{len(self)} sequences"

    def _named(self) -> list[tuple[str, Any]]:
        task, n = self._task, len(self)
        names = list(range(n)) if self.names is None else list(self.names)
        if task["task"] == "classify":
            shares = [(name, self.probabilities[:, place]) for name, place in self._output_names]
            return [(task["group"], names), (task["target"], self.labels), *shares]
        if task["task"] == "regress":
            return [(task["group"], names), *((name, self.values[:, place]) for name, place in self._output_names)]
        horizon = self.values.shape[1]
        numbers = self.values.reshape(n, horizon, -1)
        values = [(name, numbers[:, :, place].reshape(-1)) for name, place in self._output_names]
        own: list[tuple[str, Any]] = []
        if self.names is not None or n != 1:
            group = task.get("group") or free_name("sequence", "_number", values)
            own.append((group, np.repeat(np.array(names, dtype=object), horizon)))
        if self.times is not None:
            own.append((task.get("time") or "time", np.array([time for times in self.times for time in times], dtype=object)))
        step = free_name("step", "_ahead", [*own, *values])
        return [*own, (step, np.tile(np.arange(1, horizon + 1), n)), *values]
