"""Operations on model files: the functions behind the commands of the same names."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from . import _minrnn
from .handed import Path, path_of
from .settings import named, plain


def pack(run: Path, path: Path, weights: str = "bf16") -> dict[str, Any]:
    """Writes the model of a run or a checkpoint to one file that ``load`` reads, with its matrices as ``f32``, ``bf16``, ``int8`` or
    ``int4``, or rounds the matrices of a packed file further. An existing file is replaced only if it is a packed model. Returns a
    summary."""
    return json.loads(_minrnn.pack(path_of("run", run), path_of("path", path), weights))


def verify(path: Path, *, rtol: float = 1e-4, atol: float = 1e-5) -> list[dict[str, Any]]:
    """Compares our cells with the tensors of a verify case, computed elsewhere. Returns every comparison; ``pass`` says whether it
    holds."""
    return json.loads(_minrnn.verify(path_of("path", path), rtol, atol))


def inspect(path: Path, **settings: Any) -> dict[str, Any]:
    """Parameters, FLOPs and memory of a model, given as a run, a checkpoint, a packed file, a ``config.json``, or an experiment's name or
    file. Keywords override settings of the last two."""
    return json.loads(_minrnn.inspect(path_of("path", path), _settings(settings)))


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
    optional = [None if path is None else path_of(name, path) for name, path in (("tokenizer", tokenizer), ("into", into))]
    return json.loads(_minrnn.import_weights(path_of("file", file), path_of("output", output), format, _settings(settings), *optional))


def export_weights(run: Path, output: Path, *, format: str) -> dict[str, Any]:
    """Writes a trained model in another library's format, or as ``onnx``: one step as a graph. An existing file is replaced only if it is
    of the same format. Returns a summary."""
    return json.loads(_minrnn.export_weights(path_of("run", run), path_of("output", output), format))


def _settings(settings: Mapping[str, Any] | None) -> list[str]:
    """Settings as TOML has them; those that are None are left to their defaults."""
    return [f"{name}={_toml(plain(name, value))}" for name, value in named(settings).items() if value is not None]


def _toml(value: Any) -> str:
    """A setting as TOML writes it."""
    if isinstance(value, dict):
        return "{" + ", ".join(f"{_toml(key)} = {_toml(inner)}" for key, inner in value.items()) + "}"
    if isinstance(value, list):
        return "[" + ", ".join(map(_toml, value)) + "]"
    # Unlike JSON, TOML has no halves of surrogate pairs, and U+007F only as an escape.
    return json.dumps(value, ensure_ascii=False).replace("\x7f", "\\u007f")
