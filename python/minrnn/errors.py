"""What can go wrong: every exception says what was expected, what was found, and what to do."""


class MinrnnError(Exception):
    """Whatever the library refuses."""


class FileError(MinrnnError, OSError):
    """A file cannot be read or written."""


class ModelError(MinrnnError, ValueError):
    """A file is damaged, or holds a model that cannot be run."""


class InputError(MinrnnError, ValueError):
    """Tokens, values, shapes, rows or settings that do not fit."""


class KindError(MinrnnError, TypeError):
    """Something of another type than the model or the call takes."""


class StateError(MinrnnError, ValueError):
    """A saved session that is damaged or belongs to another model, or a state whose numbers are none."""


class BusyError(MinrnnError, RuntimeError):
    """Another thread is using the session."""


class TrainingError(MinrnnError, ArithmeticError):
    """A training that diverged, or a model whose outputs are no numbers."""


class OutOfMemoryError(MinrnnError, MemoryError):
    """Memory cannot hold what was asked for, or what it needs."""


class InternalError(MinrnnError, RuntimeError):
    """The library failed inside; please report it."""
