"""h_t = a_t ⊙ h_{t−1} + b_t in PyTorch, for a and b [B, T, E] and h_0 [B, E] (none: zeros), all h [B, T, E].

* loop: one fused multiply-add per step.
* chunked: √T steps inside all chunks of √T at once, √T steps over the chunks' ends, and one pass that joins them.
* doubling: log₂ T rounds over the whole sequence (Hillis and Steele).
* mambapy: the Blelloch scan of the package of that name, with its own backward pass.
"""

import math
from collections.abc import Callable

import torch
import torch.nn.functional as F
from torch import Tensor

Scan = Callable[[Tensor, Tensor, Tensor | None], Tensor]


def loop(a: Tensor, b: Tensor, h0: Tensor | None = None) -> Tensor:
    h = torch.zeros_like(b[:, 0]) if h0 is None else h0
    steps = []
    for a_t, b_t in zip(a.unbind(1), b.unbind(1), strict=True):
        h = torch.addcmul(b_t, a_t, h)
        steps.append(h)
    return torch.stack(steps, dim=1)


def with_start(a: Tensor, b: Tensor, h0: Tensor | None) -> Tensor:
    """b with a_1 h_0 in its first step."""
    return b if h0 is None else torch.cat([torch.addcmul(b[:, 0], a[:, 0], h0).unsqueeze(1), b[:, 1:]], dim=1)


def chunked(a: Tensor, b: Tensor, h0: Tensor | None = None) -> Tensor:
    batch, seq_len, width = b.shape
    size = math.isqrt(seq_len - 1) + 1
    padding = (0, 0, 0, -seq_len % size)
    a, b = (F.pad(x, padding).view(batch, -1, size, width) for x in (a, b))
    within, product = loop(a.flatten(0, 1), b.flatten(0, 1)).view_as(b), a.cumprod(dim=2)
    ends = loop(product[:, :, -1], within[:, :, -1], h0)
    entering = torch.cat([torch.zeros_like(ends[:, :1]) if h0 is None else h0.unsqueeze(1), ends[:, :-1]], dim=1)
    return torch.addcmul(within, product, entering.unsqueeze(2)).view(batch, -1, width)[:, :seq_len]


def doubling(a: Tensor, b: Tensor, h0: Tensor | None = None) -> Tensor:
    b, span = with_start(a, b, h0), 1
    while span < b.shape[1]:
        late = torch.addcmul(b[:, span:], a[:, span:], b[:, :-span])
        b = torch.cat([b[:, :span], late], dim=1)
        a = torch.cat([a[:, :span], a[:, span:] * a[:, :-span]], dim=1)
        span *= 2
    return b


def mambapy(a: Tensor, b: Tensor, h0: Tensor | None = None) -> Tensor:
    from mambapy.pscan import pscan

    b = with_start(a, b, h0)
    return pscan(a.unsqueeze(-1), b.unsqueeze(-1)).squeeze(-1)


SCANS: dict[str, Scan] = {"torch-loop": loop, "torch-chunked": chunked, "torch-doubling": doubling, "mambapy": mambapy}
