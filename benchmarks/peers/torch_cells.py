"""minGRU and minLSTM in PyTorch: the plain loop, and the paper's log-space scan. GRU and LSTM as a plain loop.

A cell maps pre-activations [B, T, 2e] (candidate, z) or [B, T, 3e] (candidate, f, i; gates normalised) and a
non-negative state h0 [B, e] to h [B, T, e].
"""

from collections.abc import Callable

import torch
import torch.nn.functional as F
from common import PROJECTIONS, check_cell, require_close
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


def recurrent_loop(mixer: str, layer: torch.nn.RNNBase, x: Tensor, state: list[Tensor]) -> Tensor:
    """GRU or LSTM with the weights of `layer` in ordinary tensor operations, as the paper measures them: the inputs of all steps are
    projected at once, then a product with h and the gates per step. x [B, T, d], each of `state` [1, B, e]; h [B, T, e]."""
    weight_ih, weight_hh, bias_ih, bias_hh = layer.all_weights[0]
    h, c, steps = state[0][0], state[-1][0], []
    for projected in F.linear(x, weight_ih, bias_ih).unbind(1):
        recurrent = F.linear(h, weight_hh, bias_hh)
        if mixer == "gru":
            (x_r, x_z, x_n), (h_r, h_z, h_n) = projected.chunk(3, dim=-1), recurrent.chunk(3, dim=-1)
            candidate = torch.tanh(x_n + torch.sigmoid(x_r + h_r) * h_n)
            h = torch.lerp(candidate, h, torch.sigmoid(x_z + h_z))
        else:
            i, f, g, o = (projected + recurrent).chunk(4, dim=-1)
            c = torch.sigmoid(f) * c + torch.sigmoid(i) * torch.tanh(g)
            h = torch.sigmoid(o) * torch.tanh(c)
        steps.append(h)
    return torch.stack(steps, dim=1)


def recurrent_layer(mixer: str, d: int, e: int, b: int) -> tuple[torch.nn.RNNBase, list[Tensor]]:
    """`nn.GRU` or `nn.LSTM` and a state that it may begin from."""
    layer = (torch.nn.GRU if mixer == "gru" else torch.nn.LSTM)(d, e, batch_first=True)
    return layer, [torch.randn(1, b, e, requires_grad=True) for _ in range(1 if mixer == "gru" else 2)]


def fused(mixer: str, layer: torch.nn.RNNBase, x: Tensor, state: list[Tensor]) -> Tensor:
    """The same by the module itself."""
    return layer(x, state[0] if mixer == "gru" else tuple(state))[0]


def check_cells() -> None:
    for impl, cell in CELLS.items():
        for mixer in ("min-gru", "min-lstm"):
            check_cell(impl, mixer, lambda preact, h0: cell(mixer, *map(torch.from_numpy, (preact, h0))).numpy())
    for mixer in ("gru", "lstm"):
        layer, state = recurrent_layer(mixer, 3, 5, 2)
        x = torch.randn(2, 33, 3)
        with torch.no_grad():
            found, expected = (cell(mixer, layer, x, state).cpu().numpy() for cell in (recurrent_loop, fused))
        require_close(f"torch-loop {mixer}", found, expected)
