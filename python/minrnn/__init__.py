"""Train efficient recurrent sequence models and run them step by step.

``minrnn.train`` trains a model from a frame or a file, and ``minrnn.load`` loads one. Its sessions hold the state of sequences and read
more of them with ``step``, ``prefill``, ``forward`` and ``generate``. ``SequenceClassifier``, ``SequenceRegressor`` and ``Forecaster`` are
estimators in scikit-learn's style, and ``minrnn.torch`` has the recurrences for PyTorch.
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
