"""Efficient recurrent sequence models: trained models as streams of steps.

``minrnn.load(path)`` reads a model; its sessions remember sequences: ``step``, ``prefill``, ``forward`` and ``generate`` read into them.
``minrnn.torch`` has the recurrences for PyTorch.
"""

from ._minrnn import Generation, Session, __version__
from .errors import BusyError, FileError, InputError, InternalError, KindError, MinrnnError, ModelError, StateError
from .model import Model, load

__all__ = [
    "BusyError",
    "FileError",
    "Generation",
    "InputError",
    "InternalError",
    "KindError",
    "MinrnnError",
    "Model",
    "ModelError",
    "Session",
    "StateError",
    "__version__",
    "load",
]
