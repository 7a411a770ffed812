"""Training in this process: the same trainer, defaults and numbers as ``minrnn train``."""

from __future__ import annotations

import json
import os
import pathlib
import shutil
import tempfile
import weakref
from collections.abc import Callable, Mapping
from typing import Any

from . import _minrnn
from .errors import FileError, InputError, KindError
from .files import pack
from .frames import as_name
from .handed import Path, handed, is_path, is_utf8, path_of
from .model import Model, load
from .progress import progress_bar
from .settings import named, plain, written


class Run:
    """A finished training run: its results and its model."""

    def __init__(self, path: Path, report: dict[str, Any] | None = None) -> None:
        self.path = pathlib.Path(path)
        self.report = report
        """The results: ``measures`` in the units of the data, each with its ``interval`` and a ``baseline``, a classifier's ``confusion``,
        ``loss`` and ``accuracy``, the ``checkpoint`` to use and the one that was ``scored``. None for a run that was opened, not trained
        here."""
        self._model: Model | None = None

    @property
    def model(self) -> Model:
        """The model to use: the best checkpoint, or the last one if none was selected as best."""
        if self._model is None:
            self._model = load(self.path)
        return self._model

    @property
    def history(self) -> list[dict[str, Any]]:
        """Every update (``kind`` is ``train``) and evaluation (``eval``), in order."""
        path = self.path / "metrics.jsonl"
        try:
            lines = path.read_text(encoding="utf-8").splitlines()
        except OSError as error:
            raise FileError(f"could not read '{path}', in which a run has its history: {error.strerror}; give the directory of a run") from None
        return [json.loads(line) for line in lines]

    def history_frame(self) -> Any:
        """The history as a pandas frame."""
        import pandas  # type: ignore[import-untyped]

        return pandas.DataFrame(self.history)

    def pack(self, path: Path, weights: str = "bf16") -> dict[str, Any]:
        """Writes the model to one file, as ``minrnn.pack`` does."""
        return pack(self.path, path, weights)

    def __repr__(self) -> str:
        told = (self.report or {}).get("told") or []
        if not told and self.report:
            accuracy = self.report["accuracy"]
            told = [f"loss {self.report['loss']:.4f}" + ("" if accuracy is None else f", accuracy {100 * accuracy:.2f} %")]
        return "\n".join([f"<minrnn.Run {self.path}>", *(f"test {line}" for line in told)])


def train(
    experiment: str | os.PathLike[str] | Mapping[str, Any] | None = None,
    data: Any = None,
    *,
    validation: Any = None,
    test: Any = None,
    out: Path | None = None,
    settings: Mapping[str, Any] | None = None,
    from_: Path | None = None,
    resume: bool = False,
    callback: Callable[[dict[str, Any]], object] | None = None,
    progress: bool = True,
    threads: int | None = None,
    **keys: Any,
) -> Run:
    """Trains a model and returns its run.

    ``experiment`` is a built-in one (``classify``, ``regress``, ``forecast``, ``text``, …), the path of a TOML file, or the content of such
    a file as a dictionary. ``data``, ``validation`` and ``test`` are paths or tables in memory: a pandas or polars frame, a pyarrow table
    or a dictionary of columns. Tables in memory are kept in the run as Arrow, so that it can be resumed without them. Every other keyword
    is a setting, as are the entries of ``settings``: ``target="state"``, ``d_model=32``.

    ``out`` is the run's directory; by default a temporary one, which is deleted with the returned object. ``from_`` is a run or checkpoint
    whose model training starts from, and ``resume=True`` continues the run in ``out``.

    ``callback`` is called with every event, a dictionary whose ``event`` is ``start``, ``update``, ``evaluation``, ``checkpoint``,
    ``refit`` or ``end``. An exception raised in it, or Ctrl-C, stops training at the next update, leaves a checkpoint in the run, and is
    re-raised. ``progress`` shows a bar on terminals and in notebooks.
    """
    if resume and out is None:
        raise InputError("resume continues the run in a directory; name it as out")
    directory = None if out is None else path_of("out", out)
    if directory == "":
        raise InputError("out is empty, expected a directory for the run; name one, or leave it out for a temporary one")
    if callback is not None and not callable(callback):
        raise KindError(f"callback: expected a function that is called with every event, found {type(callback).__name__}")
    wish: dict[str, Any] = {"validates": validation is not None, "resume": bool(resume)}
    sources = {"data": data, "validation": validation, "test": test}
    paths = {name: path_of(name, source) for name, source in sources.items() if source is not None and is_path(source)}
    tables = [(name, handed(source)) for name, source in sources.items() if source is not None and not is_path(source)]
    if data is not None and not is_path(data) and experiment is None and not resume and from_ is None:
        raise InputError("a table is learned from by an experiment; name one: classify, regress or forecast")
    if isinstance(experiment, Mapping):
        wish["written"] = written(experiment)
    elif experiment is not None:
        wish["experiment"] = _experiment(experiment)
    if from_ is not None:
        paths["from"] = path_of("from_", from_)
    if tables and directory is not None and not is_utf8(os.path.abspath(directory)):
        sentence = "a table in memory is kept in the run, and an experiment cannot hold its path, which would not be UTF-8"
        raise InputError(f"out: {sentence}: {os.path.abspath(directory)!r}; choose another directory")
    chosen = _settings({**named(settings), **keys, **({} if threads is None else {"threads": threads})})
    place = None if directory is not None else tempfile.mkdtemp(prefix="minrnn-")
    # Absolute, so that it is still found after a change of the working directory.
    folder = os.path.join(place, "run") if place is not None else os.path.abspath(directory or "")
    wish["settings"], paths["out"] = chosen, folder
    bar = progress_bar() if progress else None
    watchers = [watch for watch in (bar, callback) if watch is not None]

    def watch(event: str) -> None:
        told = json.loads(event)
        for each in watchers:
            each(told)

    is_over, checkpoints = False, os.path.join(folder, "checkpoints")
    was_there = os.path.isdir(checkpoints)
    try:
        report = _minrnn.train(json.dumps(wish), paths, tables, watch if watchers else None)
        is_over = report is not None
    except BaseException as error:
        # A stopped training can be resumed, wherever its run is; a refused one has left nothing, or an existing run as it was.
        is_refused = was_there and (not resume or isinstance(error, (InputError, KindError)))
        if os.path.isdir(checkpoints) and not is_refused:
            place = None
            if hasattr(error, "add_note"):
                error.add_note(_saved_in(folder))
        raise
    finally:
        if bar is not None:
            bar.close()
        if place is not None and not is_over:
            shutil.rmtree(place, ignore_errors=True)
    run = Run(folder, json.loads(report) if report is not None else None)
    if place is not None:
        weakref.finalize(run, _remove, place, os.getpid())
    return run


def _experiment(named: Any) -> str:
    """The name of an experiment, or the path of its file."""
    if not is_path(named):
        raise KindError(f"experiment: expected the name of one, the path of its file, or its content as a dictionary, found {type(named).__name__}")
    path = path_of("experiment", named)
    if not is_utf8(path):
        raise InputError(f"experiment: expected a path in UTF-8, found {path!r}; rename the file, or give its content as a dictionary")
    return path


def _remove(place: str, process: int) -> None:
    """Removes a temporary directory, unless this is a child of the ``process`` that made it, which still has the run."""
    if os.getpid() == process:
        shutil.rmtree(place, ignore_errors=True)


def _saved_in(folder: str) -> str:
    return f"everything is saved in '{folder}'; continue with minrnn.train(out=…, resume=True)"


def forget(folder: str, error: BaseException) -> None:
    """Removes the note that the run in ``folder`` can be resumed, as the run is deleted."""
    if hasattr(error, "__notes__"):
        error.__notes__ = [note for note in error.__notes__ if note != _saved_in(folder)]


def _settings(settings: Mapping[str, Any]) -> dict[str, Any]:
    """Settings as JSON has them; those that are None are left to their defaults."""
    return {name: _setting(name, value) for name, value in settings.items() if value is not None}


def _setting(name: str, value: Any) -> Any:
    if name.endswith("class_weights") and isinstance(value, Mapping):
        return [f"{as_name(label)}={weight}" for label, weight in value.items()]
    return plain(name, value)
