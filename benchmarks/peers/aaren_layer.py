"""Aaren in PyTorch, as a whole mixer: softmax attention whose query is learned, o_t = Σ_{i ≤ t} e^{s_i} v_i / Σ_{i ≤ t} e^{s_i}.

* loop: the running maximum, sum of weights and weighted sum, one step after the other.
* scan: the same three by log₂ T rounds of the associative combination of prefixes.
* cumsum: two cumulative sums of e^{s − max s}; exact unless scores of one sequence differ by more than about 80.
* quadratic: the softmax of all pairs of steps, masked, as attention is written.
"""

from collections.abc import Callable
from functools import partial

import torch
import torch.nn.functional as F
from common import Case
from torch import Tensor, nn
from whole_layer import HEADS, main

Form = Callable[[Tensor, Tensor], Tensor]


def loop(scores: Tensor, v: Tensor) -> Tensor:
    """o [B, T, H, e] for s [B, T, H, 1] and v [B, T, H, e]."""
    m, u, w = scores[:, 0], torch.ones_like(scores[:, 0]), v[:, 0]
    steps = [w]
    for s, v_t in zip(scores.unbind(1)[1:], v.unbind(1)[1:], strict=True):
        top = torch.maximum(m, s)
        kept, taken = (m - top).exp(), (s - top).exp()
        m, u, w = top, kept * u + taken, kept * w + taken * v_t
        steps.append(w / u)
    return torch.stack(steps, dim=1)


def scan(scores: Tensor, v: Tensor) -> Tensor:
    m, u, w, span = scores, torch.ones_like(scores), v, 1
    while span < scores.shape[1]:
        top = torch.maximum(m[:, :-span], m[:, span:])
        early, late = (m[:, :-span] - top).exp(), (m[:, span:] - top).exp()
        joined = (top, early * u[:, :-span] + late * u[:, span:], early * w[:, :-span] + late * w[:, span:])
        m, u, w = (torch.cat([x[:, :span], y], dim=1) for x, y in zip((m, u, w), joined, strict=True))
        span *= 2
    return w / u


def cumsum(scores: Tensor, v: Tensor) -> Tensor:
    weights = (scores - scores.amax(dim=1, keepdim=True).detach()).exp()
    return (weights * v).cumsum(dim=1) / weights.cumsum(dim=1)


def quadratic(scores: Tensor, v: Tensor) -> Tensor:
    seq_len = scores.shape[1]
    future = torch.ones(seq_len, seq_len, dtype=torch.bool).triu(1)
    pairs = scores.permute(0, 2, 3, 1).masked_fill(future, -torch.inf)
    return (pairs.softmax(dim=-1) @ v.transpose(1, 2)).transpose(1, 2)


class Aaren(nn.Module):
    def __init__(self, case: Case, form: Form):
        super().__init__()
        d, e = case.d_model, case.d_hidden
        self.form = form
        self.query = nn.Parameter(torch.randn(e))
        self.key, self.value = (nn.Linear(d, e, bias=False) for _ in range(2))
        self.out_proj = nn.Linear(e, d, bias=False)

    def forward(self, x: Tensor) -> Tensor:
        # q · (W_k x) = (W_kᵀ q) · x: no key is needed.
        weight = (self.query.unsqueeze(1) * self.key.weight).unflatten(0, (HEADS, -1))
        scores = F.linear(x, weight.sum(dim=1) * weight.shape[1] ** -0.5).unsqueeze(-1)
        return self.out_proj(self.form(scores, self.value(x).unflatten(2, (HEADS, -1))).flatten(2))


FORMS: dict[str, Form] = {"torch-loop": loop, "torch-scan": scan, "torch-cumsum": cumsum, "torch-quadratic": quadratic}
LAYERS = {name: {"aaren": partial(Aaren, form=form)} for name, form in FORMS.items()}

if __name__ == "__main__":
    main(LAYERS)
