"""Linear attention and RetNet's retention in PyTorch, as whole mixers: projections, rotation or features, heads, output.

Both are o_t = Σ_{s ≤ t} γ^{t−s} (q_t · k_s) v_s for each head, linear attention with γ = 1 and a normaliser, in four forms:

* loop: a state S_t = γ S_{t−1} + k_t v_tᵀ, one step after the other.
* quadratic: all pairs of steps at once, masked.
* chunked: pairs inside chunks of 64 steps, a state between chunks.
* cumsum (γ = 1 alone): all states by one cumulative sum of outer products, as in fast-transformers' plain version.
"""

from collections.abc import Callable
from functools import partial

import torch
import torch.nn.functional as F
from common import Case
from torch import Tensor, nn
from whole_layer import HEADS, main

CHUNK = 64
Form = Callable[[Tensor, Tensor, Tensor, Tensor | None], Tensor]


def loop(q: Tensor, k: Tensor, v: Tensor, decay: Tensor | None) -> Tensor:
    """o [B, H, T, V] for q, k [B, H, T, K], v [B, H, T, V] and γ [H] (none: 1)."""
    state, steps = 0, []
    for q, k, v in zip(q.unbind(2), k.unbind(2), v.unbind(2), strict=True):
        state = (state if decay is None else decay[:, None, None] * state) + k.unsqueeze(-1) * v.unsqueeze(-2)
        steps.append((q.unsqueeze(-2) @ state).squeeze(-2))
    return torch.stack(steps, dim=2)


def powers(decay: Tensor, size: int) -> Tensor:
    """γ^{t−s} for s ≤ t, else 0: [H, size, size]."""
    lag = torch.arange(size).unsqueeze(1) - torch.arange(size)
    return torch.where(lag >= 0, decay[:, None, None] ** lag.clamp(min=0), 0.0)


def quadratic(q: Tensor, k: Tensor, v: Tensor, decay: Tensor | None) -> Tensor:
    scores = q @ k.mT
    return (scores.tril() if decay is None else scores * powers(decay, q.shape[2])) @ v


def chunked(q: Tensor, k: Tensor, v: Tensor, decay: Tensor | None) -> Tensor:
    batch, heads, seq_len, _ = q.shape
    # Zero keys after the end change no output.
    q, k, v = (F.pad(x, (0, 0, 0, -seq_len % CHUNK)).unflatten(2, (-1, CHUNK)) for x in (q, k, v))
    scores = q @ k.mT
    if decay is None:
        inside, leaving, reading, fade = scores.tril(), k, q, None
    else:
        along = decay[:, None, None, None] ** torch.arange(1, CHUNK + 1).unsqueeze(-1)
        inside, fade = scores * powers(decay, CHUNK).unsqueeze(1), along[:, 0, -1:]
        leaving, reading = k * (along.flip(2) / decay[:, None, None, None]), q * along
    state, states = torch.zeros_like(k[:, :, 0].mT @ v[:, :, 0]), []
    for added in (leaving.mT @ v).unbind(2):
        states.append(state)
        state = state + added if fade is None else torch.addcmul(added, fade, state)
    return (inside @ v + reading @ torch.stack(states, dim=2)).flatten(2, 3)[:, :, :seq_len]


def cumsum(q: Tensor, k: Tensor, v: Tensor, decay: None) -> Tensor:
    states = (k.unsqueeze(-1) * v.unsqueeze(-2)).cumsum(dim=2)
    return (q.unsqueeze(-2) @ states).squeeze(-2)


def heads_of(x: Tensor) -> Tensor:
    """[B, T, E] → [B, H, T, E / H]."""
    return x.unflatten(2, (HEADS, -1)).transpose(1, 2)


class LinearAttention(nn.Module):
    def __init__(self, case: Case, form: Form):
        super().__init__()
        d, e = case.d_model, case.d_hidden
        self.form = form
        self.query, self.key, self.value = (nn.Linear(d, e, bias=False) for _ in range(3))
        self.out_proj = nn.Linear(e, d, bias=False)

    def forward(self, x: Tensor) -> Tensor:
        q, k = (F.elu(heads_of(linear(x))) + 1 for linear in (self.query, self.key))
        # The normaliser is the attention to a value of 1.
        v = F.pad(heads_of(self.value(x)), (0, 1), value=1.0)
        numerator, denominator = self.form(q, k, v, None).tensor_split([-1], dim=-1)
        return self.out_proj((numerator / (denominator + 1e-6)).transpose(1, 2).flatten(2))


class RetNet(nn.Module):
    def __init__(self, case: Case, form: Form):
        super().__init__()
        d, e = case.d_model, case.d_hidden
        self.form = form
        self.query, self.key = (nn.Linear(d, d, bias=False) for _ in range(2))
        self.value, self.gate = (nn.Linear(d, e, bias=False) for _ in range(2))
        self.out_proj = nn.Linear(e, d, bias=False)
        self.register_buffer("decay", 1 - 0.5 ** torch.arange(5.0, 5 + HEADS))
        pairs = d // HEADS // 2
        angles = torch.arange(case.seq_len).unsqueeze(1) * 1e4 ** -torch.linspace(0, 1, pairs)
        self.register_buffer("cos", angles.cos())
        self.register_buffer("sin", angles.sin())

    def rotated(self, x: Tensor) -> Tensor:
        even, odd = x[..., 0::2], x[..., 1::2]
        turned = (even * self.cos - odd * self.sin, odd * self.cos + even * self.sin)
        return torch.stack(turned, dim=-1).flatten(-2)

    def forward(self, x: Tensor) -> Tensor:
        q, k = (self.rotated(heads_of(linear(x))) for linear in (self.query, self.key))
        o = self.form(q, k * k.shape[-1] ** -0.5, heads_of(self.value(x)), self.decay)
        o = o * (o.square().mean(dim=-1, keepdim=True) + 1e-6).rsqrt()
        return self.out_proj(F.silu(self.gate(x)) * o.transpose(1, 2).flatten(2))


FORMS: dict[str, Form] = {"torch-loop": loop, "torch-quadratic": quadratic, "torch-chunked": chunked}
MIXERS = {"linear-attention": LinearAttention, "ret-net": RetNet}
LAYERS = {name: {mixer: partial(cell, form=form) for mixer, cell in MIXERS.items()} for name, form in FORMS.items()}
LAYERS["torch-cumsum"] = {"linear-attention": partial(LinearAttention, form=cumsum)}

if __name__ == "__main__":
    main(LAYERS)
