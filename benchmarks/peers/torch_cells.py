"""minGRU and minLSTM in PyTorch: the plain loop, and the paper's log-space scan.

A cell maps pre-activations [B, T, 2e] (candidate, z) or [B, T, 3e] (candidate, f, i; gates normalised) and a
non-negative state h0 [B, e] to h [B, T, e].
"""

from collections.abc import Callable

import torch
import torch.nn.functional as F
from common import PROJECTIONS, check_cell
from torch import Tensor

Cell = Callable[[str, Tensor, Tensor], Tensor]


def g(x: Tensor) -> Tensor:
    return torch.where(x >= 0, x + 0.5, x.sigmoid())


def log_g(x: Tensor) -> Tensor:
    return torch.where(x >= 0, (F.relu(x) + 0.5).log(), -F.softplus(-x))


def split(mixer: str, preact: Tensor) -> tuple[Tensor, Tensor]:
    """The candidate before g, and the logit of how much of it each step takes."""
    value, *gates = preact.chunk(PROJECTIONS[mixer], dim=-1)
    return value, gates[0] if mixer == "min-gru" else F.softplus(-gates[0]) - F.softplus(-gates[1])


def step(mixer: str, preact: Tensor, h: Tensor) -> Tensor:
    """The next state from one step's pre-activations [B, 2e] or [B, 3e]."""
    value, take = split(mixer, preact)
    return torch.lerp(h, g(value), take.sigmoid())


def loop(mixer: str, preact: Tensor, h0: Tensor) -> Tensor:
    """Gates for all steps at once, then one `lerp` per step."""
    value, take = split(mixer, preact)
    h, steps = h0, []
    for z, candidate in zip(take.sigmoid().unbind(1), g(value).unbind(1), strict=True):
        h = torch.lerp(h, candidate, z)
        steps.append(h)
    return torch.stack(steps, dim=1)


def log_scan(mixer: str, preact: Tensor, h0: Tensor) -> Tensor:
    """Heinsen's form, as in the paper's listings: exp(S + running logsumexp(ln b - S)), S the sum of ln a."""
    value, take = split(mixer, preact)
    log_coeffs = -F.softplus(take)
    log_values = torch.cat([h0.log().unsqueeze(1), log_g(value) - F.softplus(-take)], dim=1)
    total = F.pad(log_coeffs.cumsum(dim=1), (0, 0, 1, 0))
    return (total + (log_values - total).logcumsumexp(dim=1))[:, 1:].exp()


CELLS: dict[str, Cell] = {"torch-loop": loop, "torch-log-scan": log_scan}


def check_cells() -> None:
    for impl, cell in CELLS.items():
        for mixer in ("min-gru", "min-lstm"):
            check_cell(impl, mixer, lambda preact, h0: cell(mixer, *map(torch.from_numpy, (preact, h0))).numpy())
