"""Converts settings to JSON: numbers, texts, booleans and lists of them."""

from __future__ import annotations

import math
import os
from collections.abc import Mapping
from typing import Any

import numpy as np

from .errors import InputError, KindError
from .frames import text_of


def named(settings: Mapping[str, Any] | None) -> dict[str, Any]:
    """``settings`` as a dictionary."""
    if settings is None:
        return {}
    if not isinstance(settings, Mapping):
        raise KindError(f"settings: expected a dictionary of names and values, found {type(settings).__name__}")
    other = [name for name in settings if not isinstance(name, str)]
    if other:
        raise KindError(f"settings: expected their names as texts, found {other[0]!r}")
    for name in settings:
        text_of(name, "settings")
    return dict(settings)


def plain(name: str, value: Any) -> Any:
    """The ``value`` of the setting ``name`` as JSON."""
    if value is None or isinstance(value, bool):
        return value
    if isinstance(value, str):
        return text_of(value, name)
    if isinstance(value, Mapping):
        return {text_of(key, name): plain(f"{name}.{key}", inner) for key, inner in value.items() if inner is not None}
    if isinstance(value, (list, tuple, set)) or isinstance(value, np.ndarray) and value.ndim:
        if any(inner is None for inner in value):
            raise KindError(f"{name}: expected a number, a text, or true or false at each place of the list, found None; leave it out")
        return [plain(name, inner) for inner in value]
    if isinstance(value, os.PathLike):
        return text_of(os.fspath(value), name)
    if isinstance(value, np.ndarray) and value is not np.ma.masked:
        return plain(name, value[()])
    if isinstance(value, np.bool_):
        return bool(value)
    if isinstance(value, (int, np.integer)):
        # Python refuses to write integers of some thousand digits.
        if int(value).bit_length() > 1024:
            raise InputError(f"{name} must be a number of at most 64 bits, found one of {int(value).bit_length()}")
        return int(value)
    if isinstance(value, (float, np.floating)):
        # JSON has only finite numbers.
        if not math.isfinite(value):
            raise InputError(f"{name} must be a finite number, found {value}")
        return float(value)
    raise KindError(f"{name}: expected a number, a text, true or false, or a list of them as a setting, found {value!r}")


def written(experiment: Mapping[str, Any]) -> dict[str, Any]:
    """The content of an ``experiment``'s file as JSON."""
    return {text_of(name, "settings"): plain(str(name), value) for name, value in experiment.items() if value is not None}
