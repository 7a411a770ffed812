"""The recurrences of minGRU and minLSTM ("Were RNNs All We Needed?", Feng et al. 2024) for PyTorch on a CPU.

``linear_scan``, ``min_gru_scan`` and ``min_lstm_scan`` are differentiable operators. ``MinGRU`` and ``MinLSTM`` are modules with the
constructor, parameter names and call signature of minGRU-pytorch, so state dictionaries can be exchanged both ways. They take 32-bit floats
on a CPU; tensors that are not contiguous are copied. They work under ``torch.compile`` and have first derivatives. Letters in shapes: ``B``
batch, ``T`` time, ``E`` channels of the state.
"""

from typing import Any

import torch
from torch import nn

from ._minrnn import scan_backward, scan_forward
from .errors import InputError, KindError

__all__ = ["MinGRU", "MinLSTM", "linear_scan", "min_gru_scan", "min_lstm_scan"]

_PARTS = {"linear": 1, "min-gru": 2, "min-lstm": 3, "min-lstm-unnormalized": 3}
_CANDIDATES = ("positive", "identity", "tanh")


def _array(tensor):
    """The memory of a tensor, without a copy where it has no gaps."""
    return None if tensor is None else tensor.detach().contiguous().numpy()


def _sizes(cell, preact):
    return preact.shape[0], preact.shape[1], preact.shape[2] // _PARTS[cell.split(" ")[0]]


@torch.library.custom_op("minrnn::recurrence", mutates_args=(), device_types="cpu")
def _recurrence(
    cell: str, preact: torch.Tensor, extra: torch.Tensor | None, h0: torch.Tensor | None, segments: torch.Tensor | None
) -> tuple[torch.Tensor, torch.Tensor]:
    batch, steps, width = _sizes(cell, preact)
    h, h_last = preact.new_empty(batch, steps, width), preact.new_empty(batch, width)
    scan_forward(
        cell, _array(preact), _array(extra), _array(h0), _array(segments), h.numpy(), h_last.numpy(), torch.get_num_threads()
    )
    return h, h_last


@_recurrence.register_fake
def _(cell, preact, extra, h0, segments):
    batch, steps, width = _sizes(cell, preact)
    return preact.new_empty(batch, steps, width), preact.new_empty(batch, width)


@torch.library.custom_op("minrnn::recurrence_backward", mutates_args=(), device_types="cpu")
def _backward(
    cell: str,
    preact: torch.Tensor,
    extra: torch.Tensor | None,
    h0: torch.Tensor | None,
    segments: torch.Tensor | None,
    h: torch.Tensor,
    d_h: torch.Tensor | None,
    d_h_last: torch.Tensor | None,
) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
    # Contiguous, whatever the inputs' layout: operators under torch.compile promise it.
    d_preact = torch.empty(preact.shape, dtype=preact.dtype)
    d_extra = preact.new_empty(0 if extra is None else extra.shape)
    d_h0 = h.new_empty(h.shape[0], h.shape[2])
    room = None if extra is None else d_extra.numpy()
    scan_backward(
        cell,
        _array(preact),
        _array(extra),
        _array(h0),
        _array(segments),
        _array(h),
        _array(d_h),
        _array(d_h_last),
        d_preact.numpy(),
        room,
        d_h0.numpy(),
        torch.get_num_threads(),
    )
    return d_preact, d_extra, d_h0


@_backward.register_fake
def _(cell, preact, extra, h0, segments, h, d_h, d_h_last):
    d_extra = preact.new_empty(0 if extra is None else extra.shape)
    return torch.empty(preact.shape, dtype=preact.dtype, device=preact.device), d_extra, h.new_empty(h.shape[0], h.shape[2])


def _keep(ctx, inputs, output):
    cell, preact, extra, h0, segments = inputs
    ctx.cell = cell
    ctx.has_extra, ctx.has_h0 = extra is not None, h0 is not None
    ctx.save_for_backward(preact, extra, h0, segments, output[0])


def _gradients(ctx, d_h, d_h_last):
    preact, extra, h0, segments, h = ctx.saved_tensors
    d_preact, d_extra, d_h0 = _backward(ctx.cell, preact, extra, h0, segments, h, d_h, d_h_last)
    return None, d_preact, d_extra if ctx.has_extra else None, d_h0 if ctx.has_h0 else None, None


_recurrence.register_autograd(_gradients, setup_context=_keep)


def _expect_floats(**tensors):
    for name, tensor in tensors.items():
        if tensor is None:
            continue
        if not isinstance(tensor, torch.Tensor):
            raise KindError(f"{name}: expected a tensor, found {type(tensor).__name__}")
        if tensor.device.type != "cpu":
            raise KindError(f"{name} is on the device {tensor.device}, expected a CPU; move it by .cpu()")
        if tensor.dtype != torch.float32:
            raise KindError(f"{name} has the type {tensor.dtype}, expected torch.float32; convert it by .float()")


def _segments(lengths, resets, batch, steps, device):
    """What each step is: 0 goes on, 1 begins anew, 2 is behind the end of its row; None where all go on."""
    if lengths is None and resets is None:
        return None
    codes = torch.zeros(batch, steps, dtype=torch.int32, device=device)
    if resets is not None:
        resets = torch.as_tensor(resets, device=device)
        if tuple(resets.shape) != (batch, steps):
            raise InputError(f"resets: expected the shape [{batch}, {steps}], found {list(resets.shape)}")
        codes = (resets != 0).to(torch.int32)
    if lengths is not None:
        lengths = torch.as_tensor(lengths, device=device)
        if tuple(lengths.shape) != (batch,):
            raise InputError(f"lengths: expected the shape [{batch}], found {list(lengths.shape)}")
        codes = torch.where(torch.arange(steps, device=device) >= lengths[:, None], 2, codes)
    return codes.to(torch.int32)


def _scan(cell, what, preact, extra, h0, lengths, resets, return_last):
    _expect_floats(**{what: preact, "values": extra, "h0": h0})
    parts = _PARTS[cell.split(" ")[0]]
    if preact.dim() != 3 or preact.shape[2] % parts:
        width = "E" if parts == 1 else f"{parts} E"
        raise InputError(f"{what}: expected the shape [B, T, {width}], found {list(preact.shape)}")
    batch, steps, width = _sizes(cell, preact)
    if extra is not None and extra.shape != preact.shape:
        raise InputError(f"values: expected the shape of the coefficients, {list(preact.shape)}, found {list(extra.shape)}")
    if h0 is not None:
        if tuple(h0.shape) == (batch, 1, width):
            h0 = h0[:, 0]
        if tuple(h0.shape) != (batch, width):
            raise InputError(f"h0: expected the shape [{batch}, {width}], found {list(h0.shape)}")
    h, h_last = _recurrence(cell, preact, extra, h0, _segments(lengths, resets, batch, steps, preact.device))
    return (h, h_last) if return_last else h


def linear_scan(
    coefficients: torch.Tensor,
    values: torch.Tensor,
    h0: torch.Tensor | None = None,
    *,
    lengths: Any = None,
    resets: Any = None,
    return_last: bool = False,
) -> Any:
    """The linear recurrence h_t = a_t h_{t−1} + b_t with coefficients a and values b ``[B, T, E]``, starting from ``h0`` ``[B, E]`` or 0.
    Returns every state, ``[B, T, E]``.

    The state is reset to 0 before a step where ``resets`` ``[B, T]`` is true; steps beyond ``lengths`` ``[B]`` are padding, with states 0.
    With ``return_last`` the state of each row's last real step, ``[B, E]``, is returned as well. Gradients flow to the coefficients, the
    values and ``h0``.
    """
    return _scan("linear", "coefficients", coefficients, values, h0, lengths, resets, return_last)


def _candidate(candidate):
    if candidate not in _CANDIDATES:
        raise InputError(f"unknown candidate {candidate!r}; expected one of {', '.join(_CANDIDATES)}")
    return candidate


def min_gru_scan(
    hidden_and_gate: torch.Tensor,
    h0: torch.Tensor | None = None,
    *,
    candidate: str = "positive",
    lengths: Any = None,
    resets: Any = None,
    return_last: bool = False,
) -> Any:
    """minGRU (§3.1) from pre-activations ``[B, T, 2 E]``, the candidate's before the gate's: h ← (1 − z) h + z h̃ with z = σ(gate).

    h̃ is x + ½ for x ≥ 0 and σ(x) below ("positive", the paper's log version), x ("identity") or tanh(x) ("tanh"). Otherwise as
    ``linear_scan``.
    """
    cell = f"min-gru {_candidate(candidate)}"
    return _scan(cell, "hidden_and_gate", hidden_and_gate, None, h0, lengths, resets, return_last)


def min_lstm_scan(
    hidden_and_f_i_gate: torch.Tensor,
    h0: torch.Tensor | None = None,
    *,
    candidate: str = "positive",
    normalize_gates: bool = True,
    lengths: Any = None,
    resets: Any = None,
    return_last: bool = False,
) -> Any:
    """minLSTM (§3.2) from pre-activations ``[B, T, 3 E]`` of the candidate, the forget gate and the input gate: h ← f′ h + i′ h̃.

    f′ = f / (f + i) and i′ = i / (f + i), or the gates themselves with ``normalize_gates=False``. Otherwise as ``min_gru_scan``.
    """
    cell = f"min-lstm{'' if normalize_gates else '-unnormalized'} {_candidate(candidate)}"
    return _scan(cell, "hidden_and_f_i_gate", hidden_and_f_i_gate, None, h0, lengths, resets, return_last)


class _Layer(nn.Module):
    """A product before the recurrence, and one behind it where the width changes."""

    def __init__(self, name, parts, dim, expansion_factor, proj_out):
        super().__init__()
        dim_inner = int(dim * expansion_factor)
        proj_out = expansion_factor != 1.0 if proj_out is None else proj_out
        self.add_module(name, nn.Linear(dim, dim_inner * parts, bias=False))
        self.to_out = nn.Linear(dim_inner, dim, bias=False) if proj_out else nn.Identity()

    def _run(self, scan, preact, prev_hidden, return_next_prev_hidden, lengths, resets):
        h, h_last = scan(preact, prev_hidden, lengths=lengths, resets=resets, return_last=True)
        out = self.to_out(h)
        return (out, h_last[:, None]) if return_next_prev_hidden else out


class MinGRU(_Layer):
    """minGRU as a layer, a replacement for minGRU-pytorch's ``minGRU``: ``[B, T, dim]`` in and out.

    ``prev_hidden`` ``[B, 1, E]`` or ``[B, E]`` is the state to start from, and ``return_next_prev_hidden`` also returns the state ``[B, 1,
    E]`` to continue from. ``lengths`` ``[B]`` and ``resets`` ``[B, T]`` are as in ``linear_scan``.
    """

    to_hidden_and_gate: nn.Linear

    def __init__(self, dim: int, expansion_factor: float = 1.0, proj_out: bool | None = None) -> None:
        super().__init__("to_hidden_and_gate", 2, dim, expansion_factor, proj_out)

    def forward(
        self,
        x: torch.Tensor,
        prev_hidden: torch.Tensor | None = None,
        return_next_prev_hidden: bool = False,
        *,
        lengths: Any = None,
        resets: Any = None,
    ) -> Any:
        return self._run(min_gru_scan, self.to_hidden_and_gate(x), prev_hidden, return_next_prev_hidden, lengths, resets)


class MinLSTM(_Layer):
    """minLSTM as a layer, a replacement for minGRU-pytorch's ``minLSTM``; called like ``MinGRU``.

    The given state is used as it is, so a sequence may be cut anywhere; minGRU-pytorch 0.2 applies g to it if more than one step follows.
    """

    to_hidden_and_f_i_gate: nn.Linear

    def __init__(self, dim: int, expansion_factor: float = 1.0, proj_out: bool | None = None) -> None:
        super().__init__("to_hidden_and_f_i_gate", 3, dim, expansion_factor, proj_out)

    def forward(
        self,
        x: torch.Tensor,
        prev_hidden: torch.Tensor | None = None,
        return_next_prev_hidden: bool = False,
        *,
        lengths: Any = None,
        resets: Any = None,
    ) -> Any:
        return self._run(min_lstm_scan, self.to_hidden_and_f_i_gate(x), prev_hidden, return_next_prev_hidden, lengths, resets)
