"""What is done to files of models: the functions of the commands of these names."""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from typing import Any

from . import _minrnn
from .handed import Path
from .settings import named, plain


def pack(run: Path, path: Path, weights: str = "bf16") -> dict[str, Any]:
    """Writes the model of a run or a checkpoint into one file, its matrices as ``f32``, ``bf16``, ``int8`` or ``int4``, or rounds those of a packed one further.
    ``load`` reads it. A file that is there is replaced only if it is a packed model. Returns what was done."""
    return json.loads(_minrnn.pack(os.fspath(run), os.fspath(path), weights))


def verify(path: Path, *, rtol: float = 1e-4, atol: float = 1e-5) -> list[dict[str, Any]]:
    """Compares our cells with the tensors of a verify case, computed elsewhere; returns every comparison, of which ``pass`` says whether it holds."""
    return json.loads(_minrnn.verify(os.fspath(path), rtol, atol))


def inspect(path: Path, **settings: Any) -> dict[str, Any]:
    """Parameters, FLOPs and memory of a model: a run, a checkpoint, a packed file, a ``config.json``, or an experiment by its name or file. Keywords are settings of
    the last two."""
    return json.loads(_minrnn.inspect(os.fspath(path), _settings(settings)))


def import_weights(
    file: Path,
    output: Path,
    *,
    format: str,
    tokenizer: Path | None = None,
    into: Path | None = None,
    settings: Mapping[str, Any] | None = None,
) -> dict[str, Any]:
    """Makes the checkpoint ``output`` of weights under the names of another library: ``mamba-hf``, ``xlstm``, ``min-gru-pytorch``, ``nano-gpt``, ``torch-gru`` and others.
    ``into`` is the run whose recurrent layers are replaced, for files that hold those alone. Returns what was done."""
    optional = [None if path is None else os.fspath(path) for path in (tokenizer, into)]
    return json.loads(_minrnn.import_weights(os.fspath(file), os.fspath(output), format, _settings(settings), *optional))


def export_weights(run: Path, output: Path, *, format: str) -> dict[str, Any]:
    """Writes a trained model in the form of another library, or as ``onnx``, one step as a graph. A file that is there is replaced only if it is of that kind.
    Returns what was done."""
    return json.loads(_minrnn.export_weights(os.fspath(run), os.fspath(output), format))


def _settings(settings: Mapping[str, Any] | None) -> list[str]:
    """Settings as TOML has them; those that are None are left to their defaults."""
    return [f"{name}={json.dumps(plain(name, value))}" for name, value in named(settings).items() if value is not None]
