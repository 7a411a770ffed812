"""The delta rule in PyTorch, as a whole mixer: S_t = S_{t−1} + β_t (v_t − S_{t−1} k_t) k_tᵀ, o_t = S_t q_t, keys of length 1.

* loop: one step after the other.
* chunked: the WY form. Inside a chunk of 64 steps the corrections U = v − S k of all steps solve the unit lower triangular system
  (I + tril(diag(β) K Kᵀ, −1)) U = diag(β) (V − K Sᵀ), so one triangular solve for all chunks gives U as an affine map of the chunk's
  entering S, and only S goes from chunk to chunk.
"""

from collections.abc import Callable
from functools import partial

import torch
import torch.nn.functional as F
from common import Case
from torch import Tensor, nn
from whole_layer import HEADS, main

CHUNK = 64
Form = Callable[[Tensor, Tensor, Tensor, Tensor], Tensor]


def loop(q: Tensor, k: Tensor, v: Tensor, beta: Tensor) -> Tensor:
    """o [B, H, T, n] for q, k, v of that shape and β [B, H, T, 1]; the state is Sᵀ."""
    state = q.new_zeros(*q.shape[:2], q.shape[3], q.shape[3])
    steps = []
    for q, k, v, beta in zip(*(x.unsqueeze(3).unbind(2) for x in (q, k, v, beta)), strict=True):
        state = state + k.mT * (beta * (v - k @ state))
        steps.append(q @ state)
    return torch.cat(steps, dim=2)


def chunked(q: Tensor, k: Tensor, v: Tensor, beta: Tensor) -> Tensor:
    seq_len, width = q.shape[2:]
    # Steps after the end have β = 0 and correct nothing.
    q, k, v, beta = (F.pad(x, (0, 0, 0, -seq_len % CHUNK)).unflatten(2, (-1, CHUNK)) for x in (q, k, v, beta))
    system = torch.eye(CHUNK) + (beta * k @ k.mT).tril(-1)
    right = beta * torch.cat([k, v], dim=-1)
    from_state, constant = torch.linalg.solve_triangular(system, right, upper=False, unitriangular=True).split(width, dim=-1)
    inside = (q @ k.mT).tril()
    state, outputs = q.new_zeros(*q.shape[:2], width, width), []
    for q, k, inside, from_state, constant in zip(*(x.unbind(2) for x in (q, k, inside, from_state, constant)), strict=True):
        corrections = constant - from_state @ state
        outputs.append(q @ state + inside @ corrections)
        state = state + k.mT @ corrections
    return torch.cat(outputs, dim=2)[:, :, :seq_len]


class Delta(nn.Module):
    def __init__(self, case: Case, form: Form):
        super().__init__()
        self.form, self.widths = form, [case.d_hidden] * 3 + [HEADS]
        self.in_proj = nn.Linear(case.d_model, sum(self.widths))
        self.out_proj = nn.Linear(case.d_hidden, case.d_model)

    def forward(self, x: Tensor) -> Tensor:
        parts = self.in_proj(x).split(self.widths, dim=-1)
        q, k, v, beta = (part.unflatten(2, (HEADS, -1)).transpose(1, 2) for part in parts)
        k = k * (k.square().sum(dim=-1, keepdim=True) + 1e-6).rsqrt()
        return self.out_proj(self.form(q, k, v, beta.sigmoid()).transpose(1, 2).flatten(2))


FORMS: dict[str, Form] = {"torch-loop": loop, "torch-chunked": chunked}
LAYERS = {name: {"delta": partial(Delta, form=form)} for name, form in FORMS.items()}

if __name__ == "__main__":
    main(LAYERS)
