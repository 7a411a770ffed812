"""Exceptions. Each message says what was expected, what was found, and what to do."""


class MinrnnError(Exception):
    """Base class of everything the library raises."""


class FileError(MinrnnError, OSError):
    """A file cannot be read or written."""


class ModelError(MinrnnError, ValueError):
    """A file is damaged or holds a model that cannot be run."""


class InputError(MinrnnError, ValueError):
    """Tokens, values, shapes, rows or settings are not valid here."""


class KindError(MinrnnError, TypeError):
    """The type is not one that the model or the call accepts."""


class StateError(MinrnnError, ValueError):
    """A saved session is damaged or belongs to another model, or a state is no longer finite."""


class BusyError(MinrnnError, RuntimeError):
    """Another thread is using the session."""


class TrainingError(MinrnnError, ArithmeticError):
    """Training diverged, or a model's outputs are not finite."""


class OutOfMemoryError(MinrnnError, MemoryError):
    """There is not enough memory for what was asked for."""


class InternalError(MinrnnError, RuntimeError):
    """A bug in the library; please report it."""
