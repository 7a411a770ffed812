"""Policies: acting, and writing the recorded episodes they learn from."""

from __future__ import annotations

import json
from operator import index
from typing import Any

import numpy as np
import numpy.typing as npt

from . import _minrnn
from .errors import InputError, KindError, TrainingError
from .frames import numbers, unmasked
from .handed import Path, path_of


def write_trajectories(
    path: Path,
    observations: npt.ArrayLike,
    actions: npt.ArrayLike,
    rewards: npt.ArrayLike,
    terminals: npt.ArrayLike,
    timeouts: npt.ArrayLike | None = None,
) -> dict[str, Any]:
    """Writes recorded episodes to a file for ``minrnn.train("policy", path)``: ``[N, S]`` observations, ``[N, A]`` actions in −1 to 1 and
    ``[N]`` rewards, one row for each step, one episode after another. The last row of each episode has a 1 in ``terminals``, or in
    ``timeouts`` if the time was up; rows after the last such row are dropped. An existing file is replaced only if it holds episodes.
    Returns a summary."""
    ends = np.zeros(np.shape(terminals)) if timeouts is None else timeouts
    return json.loads(_minrnn.write_trajectories(path_of("path", path), observations, actions, rewards, terminals, ends))


class Policy:
    """A policy acting in ``batch`` episodes side by side, made by ``Model.policy``.

    It is given a target return. The rewards it earns are subtracted from it, and it acts on what remains, on what it observes and on its
    last action (Chen et al. 2021, arXiv:2106.01345, §3). A refused call changes nothing.
    """

    def __init__(
        self, model: _minrnn.Model, batch: int = 1, *, target_return: float | None = None, window: int | None = None, threads: int | None = None
    ) -> None:
        encoding = json.loads(model._encoding)
        if encoding is None:
            raise KindError(f"the model is for {model.kind}, expected a policy; train one with minrnn.train('policy', …)")
        if window is not None and _steps(window) < 1:
            raise InputError(f"a window has at least one step, found {window}")
        self._model = model
        self._best: float | None = encoding.get("best_return")
        self._window = window
        self._session = model.session(batch, threads=threads)
        self.batch = batch
        """Number of episodes."""
        self.observation_width = len(encoding["mean"])
        """Numbers in an observation."""
        self.action_width: int = encoding["action_width"]
        """Numbers in an action."""
        self._to_go = np.zeros(batch)
        self._time = np.zeros(batch, int)
        self._before = np.zeros((batch, self.action_width), np.float32)
        self._rows: list[npt.NDArray[np.float32]] = [self._nothing() for _ in range(batch)]
        self.reset(target_return=target_return)

    def reset(self, rows: npt.ArrayLike | None = None, *, target_return: float | npt.ArrayLike | None = None) -> None:
        """Restarts every episode, or those in ``rows``, with ``target_return``, one for all or one for each; by default the return of the
        best episode the policy learned from."""
        places = np.arange(self.batch) if rows is None else np.atleast_1d(unmasked(rows))
        if places.size and (places.dtype.kind not in "iu" or places.ndim > 1):
            raise InputError(f"rows: expected whole numbers of episodes, found an array of {places.dtype}, shape {list(places.shape)}; np.flatnonzero makes them of a mask")
        places = places.astype(int)
        if places.size and not (0 <= places.min() and places.max() < self.batch):
            raise InputError(f"rows: expected numbers of episodes below {self.batch}, found {places.tolist()}")
        if target_return is None and self._best is None:
            raise InputError("the policy does not know its best recorded return; give target_return")
        asked = numbers(self._best if target_return is None else target_return, "target_return")
        if asked.shape not in ((), places.shape) or not np.isfinite(asked).all():
            raise InputError(f"target_return: expected a finite number, or one for each of {places.size} episodes, found {target_return!r}")
        if self._window is None and places.size:
            self._session.reset(np.unique(places))
        self._to_go[places], self._time[places], self._before[places] = asked, 0, 0
        for place in places:
            self._rows[place] = self._nothing()

    def act(self, observations: npt.ArrayLike, rewards: npt.ArrayLike | None = None) -> npt.NDArray[np.float32]:
        """The action for every episode, ``[batch, A]`` from ``[batch, S]`` observations, or ``[A]`` from ``[S]`` if there is one episode.
        ``rewards`` are those earned by the previous actions, ignored for an episode that is just beginning."""
        seen = numbers(observations, "observations").astype(np.float32)
        alone = self.batch == 1 and seen.ndim == 1
        if seen.shape != ((self.observation_width,) if alone else (self.batch, self.observation_width)):
            expected = f"{[self.batch, self.observation_width]}" + (f" or {[self.observation_width]}" if self.batch == 1 else "")
            raise InputError(f"observations: expected an array of shape {expected}, found {list(seen.shape)}")
        if not np.isfinite(seen).all():
            raise InputError("observations: expected finite numbers")
        going = self._time > 0
        to_go = np.where(going, self._to_go - self._earned(rewards, going), self._to_go)
        row = self._model._rows(to_go, seen.reshape(self.batch, -1), self._before, self._time)
        windows = self._rows
        if self._window is None:
            session = self._session.fork()
            actions = session.step(row)
        else:
            session = self._session
            windows = [np.concatenate([kept, new[None]])[-self._window :] for kept, new in zip(self._rows, row)]
            session.reset()
            actions = session.prefill(windows)
        lost = np.flatnonzero(~np.isfinite(actions).all(axis=1)).tolist()
        if lost:
            remedy = f"look at what they observe, or begin them anew by reset({lost})"
            raise TrainingError(f"the actions of the episodes {lost} (counted from 0) are not finite, and nothing was read; {remedy}")
        # The new state is kept only now: a refused call changes nothing.
        self._session, self._rows = session, windows
        self._to_go, self._before = to_go, actions.copy()
        self._time += 1
        return actions[0] if alone else actions

    def _earned(self, rewards: npt.ArrayLike | None, going: npt.NDArray[np.bool_]) -> npt.NDArray[np.float64]:
        if rewards is None:
            if going.any():
                raise InputError("rewards: expected what the actions before have earned, or a reset where episodes begin")
            return np.zeros(self.batch)
        # Rounded as in recorded episodes.
        earned = numbers(rewards, "rewards").astype(np.float32).astype(float)
        if earned.shape != (self.batch,) and not (self.batch == 1 and earned.shape == ()):
            raise InputError(f"rewards: expected {self.batch} numbers, found an array of shape {list(earned.shape)}")
        if not np.isfinite(earned[going] if earned.shape else earned).all():
            raise InputError("rewards: expected finite numbers")
        return earned.reshape(self.batch)

    def _nothing(self) -> npt.NDArray[np.float32]:
        return np.zeros((0, self._model.inputs), np.float32)

    def __repr__(self) -> str:
        return f"<minrnn.Policy of {self.batch} episodes, {self.observation_width} numbers observed, {self.action_width} done>"


def _steps(window: Any) -> int:
    try:
        return index(window)
    except TypeError:
        raise KindError(f"window: expected a whole number of steps, found {type(window).__name__}") from None
