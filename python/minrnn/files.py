"""Operations on model files: the functions behind the commands of the same names."""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from typing import Any

from . import _minrnn
from .handed import Path
from .settings import named, plain


def pack(run: Path, path: Path, weights: str = "bf16") -> dict[str, Any]:
    """Writes the model of a run or a checkpoint to one file that ``load`` reads, with its matrices as ``f32``, ``bf16``, ``int8`` or
    ``int4``, or rounds the matrices of a packed file further. An existing file is replaced only if it is a packed model. Returns a
    summary."""
    return json.loads(_minrnn.pack(os.fspath(run), os.fspath(path), weights))


def verify(path: Path, *, rtol: float = 1e-4, atol: float = 1e-5) -> list[dict[str, Any]]:
    """Compares our cells with the tensors of a verify case, computed elsewhere. Returns every comparison; ``pass`` says whether it
    holds."""
    return json.loads(_minrnn.verify(os.fspath(path), rtol, atol))


def inspect(path: Path, **settings: Any) -> dict[str, Any]:
    """Parameters, FLOPs and memory of a model, given as a run, a checkpoint, a packed file, a ``config.json``, or an experiment's name or
    file. Keywords override settings of the last two."""
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
    """Makes the checkpoint ``output`` from weights named as in another library: ``mamba-hf``, ``xlstm``, ``min-gru-pytorch``, ``nano-gpt``,
    ``torch-gru`` and others. For files that hold recurrent layers only, ``into`` is the run whose recurrent layers are replaced. Returns a
    summary."""
    optional = [None if path is None else os.fspath(path) for path in (tokenizer, into)]
    return json.loads(_minrnn.import_weights(os.fspath(file), os.fspath(output), format, _settings(settings), *optional))


def export_weights(run: Path, output: Path, *, format: str) -> dict[str, Any]:
    """Writes a trained model in another library's format, or as ``onnx``: one step as a graph. An existing file is replaced only if it is
    of the same format. Returns a summary."""
    return json.loads(_minrnn.export_weights(os.fspath(run), os.fspath(output), format))


def _settings(settings: Mapping[str, Any] | None) -> list[str]:
    """Settings as TOML has them; those that are None are left to their defaults."""
    return [f"{name}={json.dumps(plain(name, value))}" for name, value in named(settings).items() if value is not None]
