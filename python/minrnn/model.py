"""Models: what they are for, and what they say of whole texts and tables."""

from __future__ import annotations

import json
import os
from typing import Any

from . import _minrnn
from .errors import InputError, KindError
from .frames import Predictions, SequenceNames, sequences
from .handed import TABLE, TO_COME, Reads, handed, is_path, reads_of
from .policy import Policy


class Model(_minrnn.Model):
    """A trained model; ``load`` makes one. What it remembers of sequences is in its sessions."""

    @property
    def config(self) -> dict[str, Any]:
        """The configuration, as ``config.json`` of a checkpoint has it."""
        return json.loads(self._config)

    @property
    def task(self) -> dict[str, Any] | None:
        """What inputs and outputs mean, of a model that was trained on a table; None of others."""
        return json.loads(self._task)

    @property
    def targets(self) -> list[str]:
        """The columns that are predicted."""
        target = (self.task or {}).get("target", [])
        return [target] if isinstance(target, str) else target

    @property
    def horizon(self) -> int:
        """Steps ahead, of a forecaster; 0 of others."""
        return (self.task or {}).get("horizon", 0)

    @property
    def quantiles(self) -> list[float]:
        """The levels of the quantiles that are forecast; none where the mean alone is."""
        return (self.task or {}).get("quantiles", [])

    def describe(self) -> dict[str, Any]:
        """What the model is."""
        config, task = self.config, self.task or {}
        about: dict[str, Any] = {
            "kind": self.kind,
            "path": None if self.path is None else str(self.path),
            "mixer": config["mixers"] or config["mixer"],
            "layers": config["n_layers"],
            "d_model": config["d_model"],
            "parameters": self.parameters,
            "session_bytes": self.session_bytes(),
            "steps_seen": self.steps_seen,
            "outputs": self.outputs,
        }
        if self.vocab_size:
            about["vocab_size"] = self.vocab_size
        else:
            about["inputs"] = self.inputs
        for key in ("columns", "group", "time", "target", "classes", "horizon", "season", "quantiles"):
            if task.get(key):
                about[key] = task[key]
        if self.tensors:
            about["weights"] = sorted({format for _, shape, format in self.tensors if len(shape) == 2})
        return about

    def generate(
        self, prompt: _minrnn._Inputs | None = None, max_tokens: int = 256, *, threads: int | None = None, **sampling: Any
    ) -> _minrnn.Generation:
        """Continues a text in a session of its own; see ``Session.generate``."""
        return self.session(1, threads=threads).generate(prompt, max_tokens, **sampling)

    def predict(self, table: Any, *, future: Any = None, threads: int | None = None) -> Predictions:
        """What the model says at the end of every sequence of a table, in memory or a file; see ``Predictions``. ``future`` has the rows to come, for a model that reads columns which are
        known ahead."""
        task = json.loads(self._table_task())
        unnamed = sequences(task, table)
        if unnamed is not None:
            if future is not None:
                raise InputError("sequences without names take no rows to come; give a table whose columns have names, and future with it")
            if not unnamed:
                raise InputError("the table has no rows, expected at least one")
            numbers = self.session(len(unnamed), threads=threads, table=True).prefill(unnamed)
            return Predictions(task, self._output_names, None, numbers)
        reads = reads_of(task)
        to_come = None if future is None else _read(future, reads, TO_COME)
        names, times, numbers, notes = self._predict(_read(table, reads), to_come, threads)
        # Only now: what cannot be a name has been refused by its column.
        known = SequenceNames(task, table)
        named = None if names == [""] else known.names(names)
        told = [each for each in times if each is not None]
        return Predictions(task, self._output_names, named, numbers, told if len(told) == len(times) else None, notes, known.column(names))

    def _labels_of(self, table: Any) -> list[str]:
        """The label of every sequence of a table, in memory or a file, as the table has it, in the order in which ``predict`` has the sequences."""
        task = self.task
        return self._labels(_read(table, None if task is None else reads_of(task)))

    def policy(
        self, batch: int = 1, *, target_return: float | None = None, window: int | None = None, threads: int | None = None
    ) -> Policy:
        """Acts in ``batch`` episodes; see ``Policy``. It is asked for ``target_return``, or for that of the best episode it learned from, and carries what it remembers
        through an episode; with ``window`` it reads the last so many steps each time instead."""
        return Policy(self, batch, target_return=target_return, window=window, threads=threads)

    def __reduce__(self) -> tuple[Any, ...]:
        if self.path is None:
            raise KindError("a model that came as bytes cannot be pickled; load it from a file")
        return type(self), (self.path,)

    def __repr__(self) -> str:
        return f"<minrnn.Model {self.kind}, {self.parameters} parameters, {self.path}>"


def _read(table: Any, reads: Reads | None, what: str = TABLE) -> Any:
    return os.fspath(table) if is_path(table) else handed(table, reads, what)


def load(source: bytes | str | os.PathLike[str]) -> Model:
    """Reads a model: the path of a packed file, a run (its best checkpoint) or a checkpoint, or the bytes of a packed file."""
    return Model(source)
