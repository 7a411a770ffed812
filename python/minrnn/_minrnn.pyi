import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, final, overload

import numpy as np
import numpy.typing as npt
from typing_extensions import Self

__version__: str

_Rows = int | Sequence[int] | npt.NDArray[np.integer[Any]]
"""Rows of a session, ascending."""
_Table = Mapping[str, npt.ArrayLike | Sequence[float | str | None] | None]
"""A row of a table, or columns of several, that names its columns."""
_Inputs = npt.ArrayLike | Sequence[npt.ArrayLike] | str | Sequence[str] | _Table | Sequence[_Table]
"""Tokens, text, numbers, or rows of tables that name their columns."""

@final
class Generation(Iterator[str | int]):
    """A text on its way: pieces of text, or tokens."""

    def __iter__(self) -> Generation: ...
    def __next__(self) -> str | int: ...

@final
class Session:
    """What a model remembers of one or many sequences, each a row.

    Where one row is given without a dimension of rows, so is the answer. Of a model that was trained on a table, rows are read in the table's units, and answers
    are the probabilities of classes ``[classes]`` or a forecast ``[horizon, targets]`` or ``[horizon, targets, quantiles]``, float64; of other models, and with
    ``table=False``, numbers are read as the model sees them and answers are its outputs ``[outputs]``, float32. A call that is refused has changed nothing.
    """

    @property
    def batch(self) -> int:
        """Number of rows."""
    @property
    def nbytes(self) -> int:
        """Bytes that all rows take."""
    def step(self, inputs: _Inputs, rows: _Rows | None = None) -> npt.NDArray[Any]:
        """Reads one step of every row, or of ``rows``: ``[batch]`` tokens or ``[batch, inputs]`` numbers. Returns what is predicted after it."""
    def prefill(self, inputs: _Inputs, rows: _Rows | None = None) -> npt.NDArray[Any]:
        """Reads a whole sequence of every row: ``[batch, T]`` or ``[batch, T, inputs]``, or a list of sequences of any lengths. Returns what is predicted after the
        last step of each."""
    def forward(self, inputs: _Inputs, rows: _Rows | None = None) -> Any:
        """Reads as ``prefill`` does. Returns what is predicted after every step: ``[batch, T, …]``, or a list of arrays."""
    def embed(self, inputs: _Inputs, rows: _Rows | None = None, *, layer: int | None = None) -> Any:
        """Reads as ``prefill`` does. Returns what the head reads after every step, ``[batch, T, d_model]``, or what block ``layer`` (from 0) hands on."""
    def reset(self, rows: _Rows | None = None) -> None:
        """Begins every row, or ``rows``, anew."""
    def fork(self, rows: _Rows | None = None) -> Session:
        """A session with copies of all rows, or of ``rows`` in that order; one may be copied several times."""
    def copy_row(self, row: int, source: Session, source_row: int) -> None:
        """Replaces a row by one of a session of the same model."""
    @overload
    def save(self, path: None = None) -> bytes:
        """All that is remembered, as bytes or in a file."""
    @overload
    def save(self, path: str | os.PathLike[str]) -> None: ...
    def load(self, saved: bytes | str | os.PathLike[str]) -> None:
        """Goes on from what was saved of the same model; the session then has as many rows as that."""
    def state(self) -> npt.NDArray[np.float32]:
        """The numbers that are remembered, ``[batch, n]``."""
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
        stop: str | Sequence[str] = ...,
        tokens: bool = False,
    ) -> Generation:
        """Continues a text by pieces, or by tokens with ``tokens=True``, as they come. Without a prompt it goes on behind what the session has read, or begins where
        that is nothing; one that was saved, a row out of several and one after ``embed`` do not know what comes next, and need one. ``temperature=0`` takes
        the likeliest token; a text ends before the first of ``stop``, one text or several. What was handed on has been read, and so has a text of ``stop`` that was
        met, of which nothing is handed on: the session goes on behind it."""
    def __len__(self) -> int: ...

class Model:
    def __new__(cls, source: bytes | str | os.PathLike[str]) -> Self: ...
    def session(self, batch: int = 1, *, threads: int | None = None, table: bool | None = None) -> Session:
        """Begins ``batch`` sequences. ``threads`` is the most that a call takes, 0 for all cores; without it steps take one and whole sequences all. ``table=False``
        reads what the model sees in place of rows of its table."""
    def load_session(self, saved: bytes | str | os.PathLike[str], *, threads: int | None = None, table: bool | None = None) -> Session:
        """Goes on from sessions that were saved."""
    def encode(self, text: str) -> npt.NDArray[np.uint32]:
        """The tokens of a text."""
    def decode(self, tokens: npt.ArrayLike) -> str:
        """The text of tokens; what does not make up a character is U+FFFD."""
    def _predict(
        self, table: Any, future: Any, threads: int | None
    ) -> tuple[list[str], list[list[str] | None], npt.NDArray[np.float64], list[str]]: ...
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
        """Numbers that it reads at a step; 0 of one that reads tokens."""
    @property
    def outputs(self) -> int:
        """Numbers that it gives after a step."""
    @property
    def parameters(self) -> int: ...
    @property
    def columns(self) -> list[str]:
        """The columns that it reads, of one that was trained on a table."""
    @property
    def classes(self) -> list[str]: ...
    @property
    def steps_seen(self) -> int:
        """After how many steps a session has stopped growing; 0 where it never grows."""
    def session_bytes(self, steps: int = 1) -> int:
        """Bytes of a session of one row that has read ``steps``."""
    @property
    def tensors(self) -> list[tuple[str, list[int], str]]:
        """Name, shape and format of each tensor of a packed file."""
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

def train(wish: str, tables: Sequence[tuple[str, Any]], watch: Callable[[str], object] | None) -> str | None:
    """Trains what ``wish`` asks for, as JSON; gives the report as JSON, None where it was stopped."""

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
    """Runs the command ``minrnn``; gives its exit code. ``program`` starts it anew."""

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
    """Runs a recurrence: every state to ``h`` ``[B, T, E]``, the last ones to ``h_last`` ``[B, E]``."""

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
    """The gradients of everything that ``scan_forward`` read; ``h`` are its states."""
