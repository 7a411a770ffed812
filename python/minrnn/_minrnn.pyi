import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, final, overload

import numpy as np
import numpy.typing as npt
from typing_extensions import Self

__version__: str

_Rows = int | Sequence[int] | npt.NDArray[np.integer[Any]]
"""Rows of a session, ascending except for ``reset`` and ``fork``."""
_Table = Mapping[str, npt.ArrayLike | Sequence[float | str | None] | None]
"""A row of a table as a mapping from column names, or several as columns."""
_Inputs = npt.ArrayLike | Sequence[npt.ArrayLike] | str | Sequence[str] | _Table | Sequence[_Table]
"""Tokens, text, numbers, or rows of tables with named columns."""

@final
class Generation(Iterator[str | int]):
    """A text being generated: an iterator over pieces of text, or over tokens."""

    def __iter__(self) -> Generation: ...
    def __next__(self) -> str | int: ...

@final
class Session:
    """A model's state for one or many sequences, each a row.

    A single row may be given without the row dimension; the answer then has none either. A model trained on a table reads rows in the
    table's units and answers with class probabilities ``[classes]``, a regressor's number ``[1]``, or a forecast ``[horizon, targets]`` or
    ``[horizon, targets, quantiles]``, float64. Other models, and any with ``table=False``, read numbers as the model sees them and answer
    with its outputs ``[outputs]``, float32. A refused call changes nothing.
    """

    @property
    def batch(self) -> int:
        """Number of rows."""
    @property
    def nbytes(self) -> int:
        """Bytes used by all rows."""
    def step(self, inputs: _Inputs, rows: _Rows | None = None) -> npt.NDArray[Any]:
        """Reads one step of every row, or of ``rows``: ``[batch]`` tokens or ``[batch, inputs]`` numbers. Returns the prediction after
        it."""
    def surprise(self, inputs: _Inputs, rows: _Rows | None = None) -> npt.NDArray[np.float64]:
        """How surprising the next row of the table is for every row, or for ``rows``, in nats, by what was forecast for it; NaN where
        that is not known. Given as to ``step``, before it; nothing is read."""
    def prefill(self, inputs: _Inputs, rows: _Rows | None = None) -> npt.NDArray[Any]:
        """Reads a whole sequence for every row: ``[batch, T]`` or ``[batch, T, inputs]``, or a list of sequences of any lengths. Returns
        the prediction after the last step of each."""
    def forward(self, inputs: _Inputs, rows: _Rows | None = None) -> Any:
        """Reads like ``prefill``. Returns the predictions after every step: ``[batch, T, …]``, or a list of arrays."""
    def embed(self, inputs: _Inputs, rows: _Rows | None = None, *, layer: int | None = None) -> Any:
        """Reads like ``prefill``. Returns the head's input after every step, ``[batch, T, d_model]``, or the output of block ``layer``
        (from 0). Of a table whose model reads several rows as one step, after every step that these rows complete: a list of arrays
        if their numbers differ."""
    def reset(self, rows: _Rows | None = None) -> None:
        """Resets every row, or ``rows``."""
    def fork(self, rows: _Rows | None = None) -> Session:
        """A new session with copies of all rows, or of ``rows`` in that order; a row may be copied several times."""
    def copy_row(self, row: int, source: Session, source_row: int) -> None:
        """Replaces a row by a row of a session of the same model."""
    @overload
    def save(self, path: None = None) -> bytes:
        """Saves the whole state, as bytes or to a file."""
    @overload
    def save(self, path: str | os.PathLike[str]) -> None: ...
    def load(self, saved: bytes | str | os.PathLike[str]) -> None:
        """Restores a saved state of the same model; the session then has as many rows as were saved."""
    def state(self) -> npt.NDArray[np.float32]:
        """The state as numbers, ``[batch, n]``."""
    def generate(
        self,
        prompt: _Inputs | None = None,
        max_tokens: int = 256,
        *,
        temperature: float = 1.0,
        top_k: int = 0,
        top_p: float = 1.0,
        min_p: float = 0.0,
        repetition_penalty: float = 1.0,
        seed: int = 0,
        stop: str | Sequence[str] | None = ...,
        tokens: bool = False,
    ) -> Generation:
        """Continues a text, yielding pieces of text, or tokens with ``tokens=True``, as they are generated. Without a prompt it continues
        from what the session has read, or starts a new text if it has read nothing; a session that was restored, forked from several rows,
        or used with ``embed`` does not hold the next token's logits and needs a prompt. ``temperature=0`` takes the most likely token. The
        text ends before the first occurrence of ``stop``, one string or several. The session has read everything that was yielded, and also
        a stop string that was met, although that is not yielded."""
    def __len__(self) -> int: ...

class Model:
    def __new__(cls, source: bytes | str | os.PathLike[str]) -> Self: ...
    def session(self, batch: int = 1, *, threads: int | None = None, table: bool | None = None) -> Session:
        """Starts ``batch`` sequences. ``threads`` is the maximum number of threads for a call, 0 for all cores; by default steps use one
        and whole sequences all cores. With ``table=False`` a session reads the model's own inputs instead of rows of its table."""
    def load_session(self, saved: bytes | str | os.PathLike[str], *, threads: int | None = None, table: bool | None = None) -> Session:
        """Restores saved sessions."""
    def encode(self, text: str) -> npt.NDArray[np.uint32]:
        """The tokens of a text."""
    def decode(self, tokens: npt.ArrayLike) -> str:
        """The text of tokens; bytes that do not form a character become U+FFFD."""
    def threshold(self, share: float = 0.999) -> float | None:
        """The surprise, in nats, that a share ``share`` of the rows held out in training did not exceed: a row above it is unusual. None if
        the model does not know."""
    def _predict(
        self, table: Any, future: Any, threads: int | None
    ) -> tuple[list[str], list[list[str] | None], npt.NDArray[np.float64], list[str]]: ...
    def _score(
        self, table: Any, usual: Any, threshold: Any, threads: int | None
    ) -> tuple[list[tuple[str, int, list[str] | None]], list[npt.NDArray[np.float64]], float | None, list[str]]: ...
    def _score_text(
        self, text: Any, usual: Any, by: Any, threshold: Any, threads: int | None
    ) -> tuple[
        list[npt.NDArray[np.int64]], npt.NDArray[np.float64], list[npt.NDArray[np.bool_]], list[str], float | None, list[str]
    ]: ...
    def _labels(self, table: Any) -> list[str]: ...
    @property
    def kind(self) -> str:
        """``text``, ``classifier``, ``regressor``, ``forecaster``, ``policy``, ``tokens`` or ``values``."""
    @property
    def path(self) -> os.PathLike[str] | None: ...
    @property
    def vocab_size(self) -> int: ...
    @property
    def inputs(self) -> int:
        """The number of inputs at each step; 0 for a model that reads tokens."""
    @property
    def outputs(self) -> int:
        """The number of outputs after a step."""
    @property
    def parameters(self) -> int: ...
    @property
    def columns(self) -> list[str]:
        """The columns that it reads, for a model trained on a table."""
    @property
    def classes(self) -> list[str]: ...
    @property
    def steps_seen(self) -> int:
        """The number of steps after which a session stops growing; 0 if it never grows."""
    def session_bytes(self, steps: int = 1) -> int:
        """Bytes of a one-row session after ``steps`` steps."""
    @property
    def tensors(self) -> list[tuple[str, list[int], str]]:
        """The name, shape and format of each tensor of a packed file."""
    @property
    def _config(self) -> str: ...
    @property
    def _task(self) -> str: ...
    def _table_task(self) -> str: ...
    @property
    def _output_names(self) -> list[tuple[str, int]]: ...
    @property
    def _encoding(self) -> str: ...
    def _rows(
        self, to_go: npt.ArrayLike, observations: npt.ArrayLike, before: npt.ArrayLike, times: npt.ArrayLike
    ) -> npt.NDArray[np.float32]: ...

def train(
    wish: str, paths: Mapping[str, str], tables: Sequence[tuple[str, Any]], watch: Callable[[str], object] | None
) -> str | None:
    """Trains as ``wish`` says (JSON), with ``paths`` by the names ``data``, ``validation``, ``test``, ``from`` and ``out``. Returns the report
    as JSON, None if training was stopped."""

def pack(run: str, path: str, weights: str) -> str: ...
def verify(path: str, rtol: float, atol: float) -> str: ...
def inspect(path: str, settings: Sequence[str]) -> str: ...
def import_weights(file: str, output: str, format: str, settings: Sequence[str], tokenizer: str | None, into: str | None) -> str: ...
def export_weights(run: str, output: str, format: str) -> str: ...
def write_trajectories(
    path: str | os.PathLike[str],
    observations: npt.ArrayLike,
    actions: npt.ArrayLike,
    rewards: npt.ArrayLike,
    terminals: npt.ArrayLike,
    timeouts: npt.ArrayLike,
) -> str: ...
def run_command(program: Sequence[str], arguments: Sequence[str]) -> int:
    """Runs the ``minrnn`` command and returns its exit code. ``program`` is the command line that starts it again."""

def scan_forward(
    name: str,
    preact: npt.NDArray[np.float32],
    extra: npt.NDArray[np.float32] | None,
    h0: npt.NDArray[np.float32] | None,
    codes: npt.NDArray[np.int32] | None,
    h: npt.NDArray[np.float32],
    h_last: npt.NDArray[np.float32],
    threads: int,
) -> None:
    """Runs a recurrence, writing every state to ``h`` ``[B, T, E]`` and the last ones to ``h_last`` ``[B, E]``."""

def scan_backward(
    name: str,
    preact: npt.NDArray[np.float32],
    extra: npt.NDArray[np.float32] | None,
    h0: npt.NDArray[np.float32] | None,
    codes: npt.NDArray[np.int32] | None,
    h: npt.NDArray[np.float32],
    d_h: npt.NDArray[np.float32] | None,
    d_h_last: npt.NDArray[np.float32] | None,
    d_preact: npt.NDArray[np.float32],
    d_extra: npt.NDArray[np.float32] | None,
    d_h0: npt.NDArray[np.float32],
    threads: int,
) -> None:
    """The gradients of all inputs of ``scan_forward``; ``h`` are its states."""
