"""Causal softmax attention of 4 heads in PyTorch, as a whole mixer: in-projection, heads, out-projection, both with biases.

* torch-sdpa: `scaled_dot_product_attention`.
* torch-mha: `nn.MultiheadAttention`.
* torch-softmax: the masked softmax as it is written.
"""

from collections.abc import Callable
from functools import partial

import torch
import torch.nn.functional as F
from common import Case
from torch import Tensor, nn
from whole_layer import HEADS, main

Form = Callable[[Tensor, Tensor, Tensor], Tensor]


def softmax(q: Tensor, k: Tensor, v: Tensor) -> Tensor:
    """[B, H, T, e] from queries, keys and values of that shape."""
    future = torch.ones(q.shape[2], q.shape[2], dtype=torch.bool).triu(1)
    return (q @ k.mT * q.shape[3] ** -0.5).masked_fill(future, -torch.inf).softmax(dim=-1) @ v


def loop(q: Tensor, k: Tensor, v: Tensor) -> Tensor:
    """Query by query."""
    steps = []
    for t, query in enumerate(q.unbind(2)):
        weights = torch.einsum("bhe,bhse->bhs", query, k[:, :, : t + 1]) * q.shape[3] ** -0.5
        steps.append(torch.einsum("bhs,bhse->bhe", weights.softmax(dim=-1), v[:, :, : t + 1]))
    return torch.stack(steps, dim=2)


class Attention(nn.Module):
    def __init__(self, case: Case, form: Form):
        super().__init__()
        self.form = form
        self.in_proj, self.out_proj = nn.Linear(case.d_model, 3 * case.d_model), nn.Linear(case.d_model, case.d_model)

    def forward(self, x: Tensor) -> Tensor:
        q, k, v = (part.unflatten(2, (HEADS, -1)).transpose(1, 2) for part in self.in_proj(x).chunk(3, dim=-1))
        return self.out_proj(self.form(q, k, v).transpose(1, 2).flatten(2))


class MultiheadAttention(nn.Module):
    aliases = {"attention.in_proj_": "in_proj.", "attention.": ""}

    def __init__(self, case: Case):
        super().__init__()
        self.attention = nn.MultiheadAttention(case.d_model, HEADS, batch_first=True)
        self.register_buffer("future", torch.ones(case.seq_len, case.seq_len, dtype=torch.bool).triu(1))

    def forward(self, x: Tensor) -> Tensor:
        return self.attention(x, x, x, attn_mask=self.future, need_weights=False, is_causal=True)[0]


FORMS = {"torch-sdpa": partial(F.scaled_dot_product_attention, is_causal=True), "torch-softmax": softmax}
LAYERS = {name: {"attention": partial(Attention, form=form)} for name, form in FORMS.items()}
LAYERS["torch-mha"] = {"attention": MultiheadAttention}

if __name__ == "__main__":
    main(LAYERS, {"attention": partial(Attention, form=loop)})
