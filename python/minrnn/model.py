"""Models: what they do, and their predictions for whole texts and tables."""

from __future__ import annotations

import json
import os
from typing import Any, Literal, overload

from . import _minrnn
from .errors import InputError, KindError
from .frames import SequenceNames, sequences
from .handed import TABLE, TO_COME, USUAL, Reads, handed, is_path, path_of, reads_of
from .policy import Policy
from .predictions import Predictions
from .scores import Scores, TextScores

_Unit = Literal["line", "token"]


class Model(_minrnn.Model):
    """A trained model, loaded by ``load``. Its sessions hold the state of sequences."""

    @property
    def config(self) -> dict[str, Any]:
        """The configuration, as in a checkpoint's ``config.json``."""
        return json.loads(self._config)

    @property
    def task(self) -> dict[str, Any] | None:
        """What inputs and outputs mean, for a model trained on a table; otherwise None."""
        return json.loads(self._task)

    @property
    def targets(self) -> list[str]:
        """The predicted columns."""
        target = (self.task or {}).get("target", [])
        return [target] if isinstance(target, str) else target

    @property
    def horizon(self) -> int:
        """The number of steps ahead a forecaster predicts; 0 for other models."""
        return (self.task or {}).get("horizon", 0)

    @property
    def quantiles(self) -> list[float]:
        """The levels of the forecast quantiles; empty if only the mean is forecast."""
        return (self.task or {}).get("quantiles", [])

    def describe(self) -> dict[str, Any]:
        """A summary of the model."""
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
        """The predictions at the end of every sequence of a table, in memory or in a file; see ``Predictions``. ``future`` has the future
        rows, for a model with columns that are known ahead."""
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
        # Only now: by then a value that cannot be a name has been refused with its column.
        known = SequenceNames(task, table)
        named = None if names == [""] else known.names(names)
        told = [each for each in times if each is not None]
        return Predictions(task, self._output_names, named, numbers, told if len(told) == len(times) else None, notes, known.column(names))

    @overload
    def score(
        self, data: bytes, *, threshold: float = 0.999, calibrate: Any = None, by: _Unit = "line", threads: int | None = None
    ) -> TextScores: ...
    @overload
    def score(
        # The path of a table, or what a text model scores.
        self,
        data: str | os.PathLike[str],
        *,
        threshold: float = 0.999,
        calibrate: Any = None,
        by: _Unit = "line",
        threads: int | None = None,
    ) -> Any: ...
    @overload
    def score(
        self, data: Any, *, threshold: float = 0.999, calibrate: Any = None, by: _Unit = "line", threads: int | None = None
    ) -> Scores: ...
    def score(
        self, data: Any, *, threshold: float = 0.999, calibrate: Any = None, by: _Unit = "line", threads: int | None = None
    ) -> Scores | TextScores:
        """How much each row of a table surprises a forecaster with quantiles, see ``Scores``, or each line of a text a text model, or each
        token with ``by="token"``, see ``TextScores``. A table is in memory or in a file; a text is a str, also one that looks like a path,
        bytes in UTF-8 (any bytes for a vocabulary of bytes), or the ``pathlib.Path`` of a file. A row is marked as an anomaly if it is more
        surprising than the share ``threshold`` of the rows held out in training, or of those of the table or text ``calibrate``, which
        should hold nothing unusual; a row of a text also if it has something that is not in the vocabulary."""
        if self.kind == "text":
            return TextScores(by, *self._score_text(data, calibrate, by, threshold, threads))
        task = json.loads(self._table_task())
        if by != "line":
            raise KindError("by: the model reads tables, whose rows are scored, and by is for texts; leave it out")
        for given in (data, calibrate):
            if isinstance(given, bytes) or (isinstance(given, str) and "\n" in given):
                raise KindError("the model reads tables, and a text is scored by a text model; give a table, or the path of its file")
        reads = reads_of(task)
        usual = None if calibrate is None else _read(calibrate, reads, USUAL)
        sequences, numbers, found, notes = self._score(_read(data, reads), usual, threshold, threads)
        texts, lengths = [text for text, _, _ in sequences], [n for _, n, _ in sequences]
        times = [time for _, _, of_sequence in sequences for time in of_sequence or ()]
        known = SequenceNames(task, data)
        named = None if texts == [""] else known.names(texts)
        written = times if len(times) == sum(lengths) else None
        return Scores(task, named, lengths, written, numbers, found, notes, known.column(texts))

    def _labels_of(self, table: Any) -> list[str]:
        """The label of every sequence of a table, in memory or a file, as the table has it, in the order in which ``predict`` has the sequences."""
        task = self.task
        return self._labels(_read(table, None if task is None else reads_of(task)))

    def policy(
        self, batch: int = 1, *, target_return: float | None = None, window: int | None = None, threads: int | None = None
    ) -> Policy:
        """Acts in ``batch`` episodes; see ``Policy``. The policy aims for ``target_return``, by default that of the best episode it learned
        from. It carries its state through an episode; with ``window`` it reads the last ``window`` steps afresh each time instead."""
        return Policy(self, batch, target_return=target_return, window=window, threads=threads)

    def __reduce__(self) -> tuple[Any, ...]:
        if self.path is None:
            raise KindError("a model that came as bytes cannot be pickled; load it from a file")
        return type(self), (self.path,)

    def __repr__(self) -> str:
        return f"<minrnn.Model {self.kind}, {self.parameters} parameters, {self.path}>"


def _read(table: Any, reads: Reads | None, what: str = TABLE) -> Any:
    return path_of(what, table) if is_path(table) else handed(table, reads, what)


def load(source: bytes | str | os.PathLike[str]) -> Model:
    """Loads a model from a packed file, a run (its best checkpoint) or a checkpoint, given by its path, or from the bytes of a packed
    file."""
    return Model(source)
