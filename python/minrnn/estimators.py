"""Estimators in scikit-learn's style, for arrays in aeon's layout and for frames; neither library is required.

They train as ``minrnn train`` does, with the same defaults, and give the same numbers. A fitted estimator holds its packed model, so it can
be pickled.
"""

from __future__ import annotations

import copy
import inspect
import os
import sys
import tempfile
import warnings
from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from .errors import InputError, KindError, StateError
from .frames import _has_names, _is_missing, _listed, _names, as_name, names_of, of_python, unmasked
from .handed import Batches, batches_of, column, floats, is_path, reads_of
from .model import Model, load
from .predictions import Predictions
from .settings import named
from .times import like
from .training import forget, train

if TYPE_CHECKING:
    from typing_extensions import Self

# Column names for sequences given as arrays, the same as for the archives' files.
SERIES, CLASS, NUMBER = "series", "class", "target"


class Estimator:
    """Base class. Constructors only store their arguments."""

    _packed: bytes | None = None
    _model: Model | None = None
    experiment: str | Mapping[str, Any]
    settings: Mapping[str, Any] | None
    missing: str | None
    random_state: int | None
    n_jobs: int | None
    progress: bool

    @classmethod
    def _parameters(cls) -> list[str]:
        return [name for name in inspect.signature(cls.__init__).parameters if name != "self"]

    def get_params(self, deep: bool = True) -> dict[str, Any]:
        """The constructor's arguments."""
        return {name: getattr(self, name) for name in self._parameters()}

    def set_params(self, **params: Any) -> Self:
        """Replaces constructor arguments."""
        for name, value in params.items():
            if name not in self._parameters():
                raise InputError(f"{type(self).__name__} has no parameter '{name}', expected one of {', '.join(self._parameters())}")
            setattr(self, name, value)
        return self

    def __repr__(self) -> str:
        defaults = {name: parameter.default for name, parameter in inspect.signature(type(self).__init__).parameters.items()}
        changed = [f"{name}={value!r}" for name, value in self.get_params().items() if not _is_same(value, defaults[name])]
        return f"{type(self).__name__}({', '.join(changed)})"

    def __getstate__(self) -> dict[str, Any]:
        # The model is loaded again from its bytes.
        return {name: value for name, value in self.__dict__.items() if name != "_model"}

    @property
    def _threads(self) -> int | None:
        """``n_jobs`` as scikit-learn counts: -1 are all cores, -2 all but one."""
        if self.n_jobs is None or self.n_jobs >= 0:
            return self.n_jobs
        cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
        return max(1, cores + 1 + self.n_jobs)

    @property
    def model_(self) -> Model:
        """The model of a fitted estimator."""
        if self._packed is None:
            raise _not_fitted(self)
        if self._model is None:
            self._model = load(self._packed)
        return self._model

    def _fit(self, table: Any, keys: Mapping[str, Any], validation: Any, test: Any) -> None:
        with tempfile.TemporaryDirectory(prefix="minrnn-") as folder:
            chosen = {**keys, "missing": self.missing, "seed": self.random_state, **named(self.settings)}
            out = os.path.join(folder, "run")
            try:
                run = train(
                    self.experiment,
                    table,
                    validation=validation,
                    test=test,
                    out=out,
                    settings=chosen,
                    threads=self._threads,
                    progress=self.progress,
                )
            except BaseException as error:
                forget(out, error)
                raise
            packed = os.path.join(folder, "model.minrnn")
            run.pack(packed, "f32")
            with open(packed, "rb") as file:
                self._packed, self._model = file.read(), None
            self.report_, self.history_ = run.report, run.history
        self.n_features_in_ = len(self.model_.columns)


class _Labels(Estimator):
    """Base class of estimators with one label for each sequence."""

    _label: str
    _of_arrays: bool = False
    group: str | None
    target: str | None
    time: str | None

    def fit(self, X: Any, y: Any = None, *, validation: Any = None, test: Any = None) -> Self:
        """Learns from ``X`` and ``y``: an array ``[cases, channels, steps]`` or ``[cases, steps]``, or a list of arrays ``[channels,
        steps]`` of any lengths, with a label for each; or a frame with a row for each case. Without ``y``, learns from a table (a frame or
        a path) with the labels in its column ``target``. ``validation`` and ``test`` are pairs of arrays, or frames."""
        table = self._table(X, y)
        others = [None if other is None else self._table(*other) if isinstance(other, tuple) else self._table(other, None) for other in (validation, test)]
        keys: dict[str, Any] = {"group": self.group, "target": self.target, "time": self.time}
        of_arrays = isinstance(table, _Long)
        if of_arrays:
            keys = {"group": SERIES, "target": self._label}
        self._fit(table, {**keys, **self._keys()}, *others)
        self._of_arrays = of_arrays
        self._learned(_one_each(y) if of_arrays else self._as_given(X))
        return self

    def _keys(self) -> dict[str, Any]:
        return {}

    def _learned(self, labels: npt.NDArray[Any]) -> None:
        """Takes labels as they were given."""

    def _table(self, X: Any, y: Any) -> Any:
        if _is_table(X) and y is None:
            return X
        if isinstance(X, Mapping) or is_path(X):
            raise InputError("a table has its labels in a column, which target names; leave y out")
        if y is None:
            raise InputError(f"{type(self).__name__} requires y to be passed, but the target y is None; give a label for every sequence")
        return _long(_cases(X), _one_each(y, warns=True), self._label)

    def _as_given(self, X: Any) -> npt.NDArray[Any]:
        """The labels in a frame as they stand there; none of a file or a stream, which has them as the model does."""
        target = self.model_.targets[0]
        values = [] if is_path(X) or not _has_names(X) or target not in _names(X) else names_of(X, target)
        return _objects([value for value in values if not _is_missing(value)])

    def _reads_table(self, X: Any) -> bool:
        """Whether the sequences of ``X`` are those of a table. One that learned from arrays has a case in each row of a frame that does not name sequences."""
        model = self.model_
        if not _is_table(X) or is_path(X) or isinstance(X, Mapping):
            return _is_table(X)
        return not self._of_arrays or (model.task or {}).get("group") in _names(X)

    def _expected(self, X: Any, y: Any, n: int) -> npt.NDArray[Any]:
        """The labels of the ``n`` sequences of ``X``: ``y``, or those in the table."""
        if y is not None:
            return _labels(_one_each(y), n)
        if not self._reads_table(X):
            raise InputError(f"{type(self).__name__} is scored by labels; give y, one for every sequence, or a table that has them")
        return _objects(self.model_._labels_of(X))

    def _predict(self, X: Any) -> Predictions:
        model = self.model_
        if self._reads_table(X):
            return _told(model.predict(X, threads=self._threads))
        cases = _cases(X)
        for at, case in enumerate(cases):
            if len(case) != self.n_features_in_:
                raise InputError(f"case {at} has {len(case)} channels, expected {self.n_features_in_} features (channels) as in training")
        return model.predict([case.T for case in cases], threads=self._threads)


class SequenceClassifier(_Labels):
    """Predicts a class for every sequence.

    ``experiment`` and ``settings`` are as for ``minrnn.train``. ``class_weight`` is None, ``"balanced"`` or a dictionary of weights.
    ``missing`` says how NaNs are treated: ``"error"``, ``"forward-fill"`` or ``"mask"``. ``random_state`` is the seed, ``n_jobs`` the
    number of threads, -1 for all cores. ``group``, ``target`` and ``time`` are columns of frames.
    """

    _label = CLASS

    def __init__(
        self,
        *,
        experiment: str | Mapping[str, Any] = "classify",
        settings: Mapping[str, Any] | None = None,
        class_weight: str | Mapping[Any, float] | None = None,
        missing: str | None = None,
        group: str | None = None,
        target: str | None = None,
        time: str | None = None,
        random_state: int | None = None,
        n_jobs: int | None = None,
        progress: bool = False,
    ) -> None:
        self.experiment, self.settings, self.class_weight, self.missing = experiment, settings, class_weight, missing
        self.group, self.target, self.time = group, target, time
        self.random_state, self.n_jobs, self.progress = random_state, n_jobs, progress

    def _keys(self) -> dict[str, Any]:
        return {"class_weights": self.class_weight}

    def _learned(self, labels: npt.NDArray[Any]) -> None:
        names = self.model_.classes
        # Labels as they were given, by the names that the model has for them; of several with the same name, the first.
        given: dict[str, Any] = {}
        for label in labels.tolist() if labels.dtype.kind != "M" else labels:
            given.setdefault(as_name(label), label)
        are_known = all(name in given for name in names) and _are_alike(given.values())
        known = np.array([given[name] for name in names], dtype=labels.dtype if labels.dtype != object else None) if are_known else np.array(names)
        self._order = np.argsort(known, kind="stable").tolist()
        self.classes_ = known[self._order]

    def predict_proba(self, X: Any) -> npt.NDArray[np.float64]:
        """The probabilities of ``classes_``, ``[cases, classes]``."""
        return self._predict(X).probabilities[:, self._expect_order()]

    def predict(self, X: Any) -> npt.NDArray[Any]:
        """The most likely class of every sequence."""
        shares = self.predict_proba(X)
        return self.classes_[shares.argmax(axis=1)]

    def score(self, X: Any, y: Any = None) -> float:
        """The accuracy: the share of sequences whose class is predicted correctly. For a table, ``y`` defaults to its label column."""
        X, _ = _read_once(X)
        found = self.predict_proba(X).argmax(axis=1)
        names = [self.model_.classes[place] for place in self._order]
        # Python's booleans equal numbers, but are named differently.
        places = {label: at for labels in (names, of_python(self.classes_)) for at, label in enumerate(labels)}
        expected = of_python(self._expected(X, y, len(found)))
        return float(np.mean([places.get(label, places.get(as_name(label))) == at for label, at in zip(expected, found)]))

    def _expect_order(self) -> list[int]:
        self.model_  # noqa: B018 (it refuses one that is not fitted)
        return self._order

    def __sklearn_tags__(self) -> Any:
        return _tags("classifier")


class SequenceRegressor(_Labels):
    """Predicts a number for every sequence; parameters as for ``SequenceClassifier``."""

    _label = NUMBER

    def __init__(
        self,
        *,
        experiment: str | Mapping[str, Any] = "regress",
        settings: Mapping[str, Any] | None = None,
        missing: str | None = None,
        group: str | None = None,
        target: str | None = None,
        time: str | None = None,
        random_state: int | None = None,
        n_jobs: int | None = None,
        progress: bool = False,
    ) -> None:
        self.experiment, self.settings, self.missing = experiment, settings, missing
        self.group, self.target, self.time = group, target, time
        self.random_state, self.n_jobs, self.progress = random_state, n_jobs, progress

    def predict(self, X: Any) -> npt.NDArray[np.float64]:
        """The predicted number of every sequence."""
        return self._predict(X).values[:, 0]

    def score(self, X: Any, y: Any = None) -> float:
        """R², the share of the variance explained. For a table, ``y`` defaults to its label column."""
        X, _ = _read_once(X)
        predicted = self.predict(X)
        expected = np.asarray(self._expected(X, y, len(predicted)), dtype=float)
        if not np.isfinite(expected).all():
            at = int(np.flatnonzero(~np.isfinite(expected))[0])
            raise InputError(f"the label of case {at} is {expected[at]}, expected a finite number")
        left, all_of_it = ((expected - predicted) ** 2).sum(), ((expected - expected.mean()) ** 2).sum()
        return float(1 - left / all_of_it) if all_of_it > 0 else float(left == 0)

    def __sklearn_tags__(self) -> Any:
        return _tags("regressor")


class Forecaster(Estimator):
    """Forecasts the next values of every series of a frame in Nixtla's long format: columns ``unique_id``, ``ds`` and ``y``, or those named
    by ``group``, ``time`` and ``target``.

    ``horizon`` is the number of steps ahead, ``season`` the number of steps in a season, ``quantiles`` the levels to forecast. ``columns``
    are read beside the target, ``calendar`` adds parts of the calendar derived from the times, and ``known_ahead`` names columns whose
    future rows are known.
    """

    def __init__(
        self,
        horizon: int = 1,
        *,
        season: int | None = None,
        quantiles: Sequence[float] | None = None,
        columns: Sequence[str] | None = None,
        calendar: Sequence[str] | None = None,
        known_ahead: Sequence[str] | None = None,
        experiment: str | Mapping[str, Any] = "forecast",
        settings: Mapping[str, Any] | None = None,
        missing: str | None = None,
        group: str | None = "unique_id",
        time: str | None = "ds",
        target: str | Sequence[str] | None = "y",
        random_state: int | None = None,
        n_jobs: int | None = None,
        progress: bool = False,
    ) -> None:
        self.horizon, self.season, self.quantiles, self.columns = horizon, season, quantiles, columns
        self.calendar, self.known_ahead, self.experiment, self.settings = calendar, known_ahead, experiment, settings
        self.missing, self.group, self.time, self.target = missing, group, time, target
        self.random_state, self.n_jobs, self.progress = random_state, n_jobs, progress

    def fit(self, df: Any, y: Any = None, *, validation: Any = None, test: Any = None) -> Self:
        """Learns from a frame or the path of a table. ``test`` has the values that follow, which are scored and not learned from. ``y`` is
        ignored."""
        df, kept = _read_once(df)
        names = ["horizon", "season", "quantiles", "columns", "calendar", "known_ahead", "group", "time", "target"]
        self._fit(df, {name: getattr(self, name) for name in names}, validation, test)
        self._history = None if is_path(df) or not kept else _kept(df, self.model_.task or {})
        return self

    def predict(self, df: Any = None, *, future: Any = None) -> Any:
        """The next values of every series of ``df``, by default the training data: a frame of the same library with a row for each series
        and step, whose names and times have the same types as there. ``future`` has the future rows of the columns that are known ahead."""
        table = self._table(df)
        predicted = _told(self.model_.predict(table, future=future, threads=self._threads))
        return like(table, predicted)

    def score(self, df: Any, y: Any = None) -> float:
        """Minus the mean absolute error of forecasts from the training data, on the values of ``df`` that follow it, as far as they go.
        Values are matched to steps by time if there is a time column, otherwise by the order of the rows."""
        if is_path(df):
            raise KindError(f"expected a table in memory to score on, found the path '{os.fspath(df)}'; read it into a frame first")
        predicted = self.model_.predict(self._table(None), threads=self._threads)
        task = self.model_.task or {}
        columns = [floats(target, df) for target in task["target"]]
        group, time = task.get("group"), task.get("time")
        names = [as_name(name) for name in names_of(df, group)] if group else [""] * len(columns[0])
        rows: dict[str, list[int | None]] = {}
        for at, name in enumerate(names):
            rows.setdefault(name, []).append(at)
        times = _comparable(time, df) if time is not None and time in _names(df) else None
        middle = predicted.quantiles.index(0.5) if predicted.quantiles else None
        errors = []
        for row, name in enumerate(predicted.names or [""]):
            there = rows.get(as_name(name), [])
            if times is not None and predicted.times is not None and there:
                there = _in_order(there, times, predicted.times[row], f"the series '{name}'" if group else "the table")
            steps = [(step, at) for step, at in enumerate(there[: self.model_.horizon]) if at is not None]
            for target, values in enumerate(columns):
                forecast = predicted.values[row, :, target] if middle is None else predicted.values[row, :, target, middle]
                errors += [abs(values[at] - forecast[step]) for step, at in steps]
        found = np.array(errors, dtype=float)
        found = found[~np.isnan(found)]
        if not len(found):
            raise InputError("the table has no values of the series that were learned from")
        return float(-found.mean())

    def _table(self, df: Any) -> Any:
        self.model_  # noqa: B018 (it refuses one that is not fitted)
        if df is not None:
            return df
        if self._history is None:
            raise InputError("it learned from a file or a stream, which it does not keep; give the table to go on from")
        return self._history

    def __sklearn_tags__(self) -> Any:
        return _tags("regressor")


def _comparable(name: str, df: Any) -> tuple[str, list[Any]]:
    """The kind of a table's times, and they as ``_read`` reads those of predictions."""
    kind, values = column(name, df)
    return kind, [_read(kind, value) for value in (values if isinstance(values, list) else values.tolist())]


def _read(kind: str, time: Any) -> Any:
    if kind == "t":
        return int(np.datetime64(time, "us").astype(np.int64)) if isinstance(time, str) else time
    return str(time).strip() if kind == "s" else float(time)


def _in_order(rows: Sequence[int | None], times: tuple[str, list[Any]], ahead: list[str], what: str) -> list[int | None]:
    """The row of each time that is forecast; None where there is none."""
    kind, known = times
    at = {known[row]: row for row in rows if row is not None}
    found = [at.get(_read(kind, time)) for time in ahead]
    matched = sum(row is not None for row in found)
    if matched < min(len(at), len(ahead)) or len(at) < len(rows):
        other = f"the times from {ahead[0]} to {ahead[-1]} follow what was learned from, each once"
        raise InputError(f"{what}: {other}, found {matched} of them among {len(rows)} rows; give the rows that follow, or put the times right")
    return found


class _Long(dict[str, Any]):
    """Arrays as columns in long form."""


def _is_table(X: Any) -> bool:
    """Whether ``X`` has columns with names, or is the path of such a table."""
    if hasattr(X, "toarray"):
        raise KindError("expected sequences as arrays or as a table, found a sparse matrix; sparse input is not supported")
    return is_path(X) or isinstance(X, Mapping) or any(hasattr(X, name) for name in ("columns", "column_names", "__arrow_c_stream__"))


def _cases(X: Any) -> list[npt.NDArray[np.float64]]:
    """The cases of ``X``, each ``[channels, steps]``."""
    if not isinstance(X, (list, tuple)):
        X = unmasked(X)
        if X.ndim == 2:
            X = X[:, None, :]
        if X.ndim != 3:
            raise InputError(f"expected an array of the shape [cases, channels, steps] or [cases, steps], found {list(X.shape)}")
    cases = [_numbers(unmasked(case), at) for at, case in enumerate(X)]
    cases = [case[None] if case.ndim == 1 else case for case in cases]
    if not cases:
        raise InputError("expected at least one case, found none")
    for at, case in enumerate(cases):
        if case.ndim != 2 or case.shape[0] != cases[0].shape[0]:
            raise InputError(f"case {at} has the shape {list(case.shape)}, expected [channels, steps] with {cases[0].shape[0]} channels as case 0")
        if not case.size:
            raise InputError(f"case {at} has the shape {list(case.shape)}, expected at least one step of each channel; leave the case out")
    return cases


def _numbers(case: npt.NDArray[Any], at: int) -> npt.NDArray[np.float64]:
    if case.dtype.kind == "c":
        raise InputError(f"case {at}: expected real numbers, found an array of {case.dtype}; Complex data not supported")
    if case.dtype.kind not in "fiubO":
        raise KindError(f"case {at}: expected numbers, found an array of {case.dtype}")
    try:
        return case.astype(float)
    except (TypeError, ValueError) as error:
        raise KindError(f"case {at}: expected numbers ({error})") from None


def _is_same(one: Any, other: Any) -> bool:
    if one is other:
        return True
    try:
        return bool(one == other)
    except (TypeError, ValueError):
        # Arrays compare element by element, so they have no single truth value.
        return False


def _objects(values: Sequence[Any]) -> npt.NDArray[Any]:
    """Values as they are: of mixed ones NumPy would make texts."""
    return _listed(list(values))


def _are_alike(values: Iterable[Any]) -> bool:
    """Whether labels can be put in order, as texts and numbers cannot."""
    try:
        sorted(values)
    except TypeError:
        return False
    return True


def _one_each(y: Any, warns: bool = False) -> npt.NDArray[Any]:
    """Labels as an array ``[cases]``, of which a column ``[cases, 1]`` is one."""
    labels = _objects(y) if isinstance(y, (list, tuple)) else unmasked(y)
    if labels.ndim == 1 and labels.dtype == object and len(labels) and all(isinstance(label, (list, tuple, np.ndarray)) for label in labels):
        labels = np.asarray(y)
    if labels.ndim != 2 or labels.shape[1] != 1:
        return labels
    if warns:
        sentence = f"A column-vector y was passed when a 1d array was expected: y has the shape {list(labels.shape)}"
        _warn(sentence, _column_warning())
    return labels[:, 0]


def _column_warning() -> type[Warning]:
    """The warning of scikit-learn where that is in use."""
    if "sklearn" in sys.modules:
        from sklearn.exceptions import DataConversionWarning  # type: ignore[import-untyped]

        return DataConversionWarning  # type: ignore[no-any-return]
    return UserWarning


def _labels(labels: npt.NDArray[Any], n: int) -> npt.NDArray[Any]:
    """The labels of ``n`` cases, none of which is missing."""
    if labels.shape != (n,):
        raise InputError(f"expected y with a label for each of {n} cases, found the shape {list(labels.shape)}")
    missing = [at for at, value in enumerate(labels.tolist()) if _is_missing(value)]
    if missing:
        raise InputError(f"the label of case {missing[0]} is missing")
    return labels


def _told(predicted: Predictions) -> Predictions:
    """The same, once the notes on its table are told: arrays and frames have no place for them."""
    for note in predicted.notes:
        _warn(note, UserWarning)
    return predicted


def _warn(sentence: str, kind: type[Warning]) -> None:
    """Warns where the package was called from, however deep inside it is known."""
    level, frame = 1, inspect.currentframe()
    while frame is not None and frame.f_globals.get("__name__", "").split(".")[0] == __name__.split(".")[0]:
        level, frame = level + 1, frame.f_back
    warnings.warn(sentence, kind, stacklevel=level)


def _read_once(df: Any) -> tuple[Any, bool]:
    """``df`` with a stream of Arrow, which can be read once, as what it holds; and whether it can be read again."""
    if is_path(df) or _has_names(df) or not hasattr(df, "__arrow_c_stream__"):
        return df, True
    batches = batches_of(df)
    return (df, False) if batches is None else (batches, True)


def _kept(df: Any, task: Mapping[str, Any]) -> Any:
    """A copy of the columns of ``df`` that forecasts are made from: whoever changes the frame later changes no forecast."""
    reads = reads_of(task)
    if isinstance(df, Batches):
        return df.of_columns(reads)
    keys = [key for key in _names(df) if reads(str(key))]
    if isinstance(df, Mapping):
        return {key: copy.copy(df[key]) for key in keys}
    # A pandas column may be called select.
    return df.select(keys) if callable(getattr(df, "select", None)) else copy.copy(df[keys])


def _long(cases: list[npt.NDArray[np.float64]], labels: npt.NDArray[Any], label: str) -> _Long:
    """Cases and their labels as columns, of the names that the archives' files have."""
    labels = _labels(labels, len(cases))
    if not _are_alike(labels.tolist()):
        raise InputError("y has labels of several kinds, such as texts and numbers; make all of them texts")
    lengths = [case.shape[1] for case in cases]
    if label == CLASS:
        labels = np.array([as_name(value) for value in labels], dtype=object)
    channels = cases[0].shape[0]
    names = ["value"] if channels == 1 else [f"dim_{at}" for at in range(channels)]
    table = _Long({SERIES: np.repeat(np.arange(1, len(cases) + 1), lengths), label: np.repeat(labels, lengths)})
    table.update({name: np.concatenate([case[at] for case in cases]) for at, name in enumerate(names)})
    return table


def _tags(kind: str) -> Any:
    """What scikit-learn asks an estimator for; only it calls this."""
    from sklearn.utils import ClassifierTags, InputTags, RegressorTags, Tags, TargetTags  # type: ignore[import-untyped]

    return Tags(
        estimator_type=kind,
        target_tags=TargetTags(required=kind == "classifier"),
        classifier_tags=ClassifierTags() if kind == "classifier" else None,
        regressor_tags=RegressorTags() if kind == "regressor" else None,
        input_tags=InputTags(two_d_array=True, three_d_array=True),
    )


def _not_fitted(estimator: Estimator) -> Exception:
    """The exception of scikit-learn where that is in use, else our own."""
    sentence = f"this {type(estimator).__name__} has learned nothing yet; call fit first"
    if "sklearn" in sys.modules:
        from sklearn.exceptions import NotFittedError  # type: ignore[import-untyped]

        return NotFittedError(sentence)
    return StateError(sentence)
