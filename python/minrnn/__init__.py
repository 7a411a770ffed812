"""Efficient recurrent sequence models, trained, and run as streams of steps.

``minrnn.train`` trains a model from a frame or a file, ``minrnn.load`` reads one; its sessions remember sequences: ``step``, ``prefill``, ``forward`` and
``generate`` read into them. ``SequenceClassifier``, ``SequenceRegressor`` and ``Forecaster`` are estimators in the manner of scikit-learn, and ``minrnn.torch`` has the
recurrences for PyTorch.
"""

from ._minrnn import Generation, Session, __version__
from .errors import (
    BusyError,
    FileError,
    InputError,
    InternalError,
    KindError,
    MinrnnError,
    ModelError,
    OutOfMemoryError,
    StateError,
    TrainingError,
)
from .estimators import Forecaster, SequenceClassifier, SequenceRegressor
from .files import export_weights, import_weights, inspect, pack, verify
from .model import Model, load
from .policy import Policy, write_trajectories
from .training import Run, train

__all__ = [
    "BusyError",
    "FileError",
    "Forecaster",
    "Generation",
    "InputError",
    "InternalError",
    "KindError",
    "MinrnnError",
    "Model",
    "ModelError",
    "OutOfMemoryError",
    "Policy",
    "Run",
    "SequenceClassifier",
    "SequenceRegressor",
    "Session",
    "StateError",
    "TrainingError",
    "__version__",
    "export_weights",
    "import_weights",
    "inspect",
    "load",
    "pack",
    "train",
    "verify",
    "write_trajectories",
]
