"""GILR, signed minGRU and minGRU with decay in PyTorch: gates of all steps at once, then the linear recurrence by one of the scans.

GILR is the cell alone with a gradient of its initial state, as in the benchmark's definition; the others are whole mixers, which
start from zeros.

    GILR      h_t = σ(u_t) h_{t−1} + (1 − σ(u_t)) tanh(v_t)
    signed    h_t = (1 − z_t) tanh(s_t) h_{t−1} + z_t g(v_t)           z_t = σ(k_t)
    decay     h_t = (1 − z_t) e^{−λ Δt_t} h_{t−1} + z_t g(v_t)         λ = softplus(θ), Δt = 1
"""

from functools import partial

import torch
import torch.nn.functional as F
from common import Case
from linear_scans import SCANS, Scan
from torch import Tensor, nn
from torch_cells import g, log_g
from whole_layer import Make, main


class Gilr(nn.Module):
    def __init__(self, case: Case, scan: Scan):
        super().__init__()
        self.scan, self.d_output = scan, case.d_hidden
        self.in_proj = nn.Linear(case.d_model, 2 * case.d_hidden)
        self.h0 = nn.Parameter(torch.rand(case.batch_size, case.d_hidden))

    def forward(self, x: Tensor) -> Tensor:
        impulse, forget = self.in_proj(x).chunk(2, dim=-1)
        forget = forget.sigmoid()
        return self.scan(forget, (1 - forget) * impulse.tanh(), self.h0)


class SignedMinGru(nn.Module):
    def __init__(self, case: Case, scan: Scan):
        super().__init__()
        self.scan = scan
        self.in_proj = nn.Linear(case.d_model, 3 * case.d_hidden)
        self.out_proj = nn.Linear(case.d_hidden, case.d_model)

    def forward(self, x: Tensor) -> Tensor:
        value, take, sign = self.in_proj(x).chunk(3, dim=-1)
        take = take.sigmoid()
        return self.out_proj(self.scan((1 - take) * sign.tanh(), take * g(value), None))


class DecayMinGru(nn.Module):
    def __init__(self, case: Case, scan: Scan | None):
        """Without a scan: the log-space scan of minGRU, which takes logarithms of the coefficients."""
        super().__init__()
        self.scan = scan
        self.in_proj = nn.Linear(case.d_model, 2 * case.d_hidden)
        self.out_proj = nn.Linear(case.d_hidden, case.d_model)
        self.theta = nn.Parameter(torch.linspace(1e-3, 1, case.d_hidden).expm1().log())
        self.register_buffer("delta_t", torch.ones(case.batch_size, case.seq_len, 1))

    def forward(self, x: Tensor) -> Tensor:
        value, take = self.in_proj(x).chunk(2, dim=-1)
        exponent = F.softplus(self.theta) * self.delta_t
        if self.scan is None:
            total = (-F.softplus(take) - exponent).cumsum(dim=1)
            log_values = log_g(value) - F.softplus(-take)
            return self.out_proj((total + (log_values - total).logcumsumexp(dim=1)).exp())
        take = take.sigmoid()
        return self.out_proj(self.scan((1 - take) * (-exponent).exp(), take * g(value), None))


def by(scan: Scan) -> dict[str, Make]:
    cells = {"gilr": Gilr, "signed-min-gru": SignedMinGru, "decay-min-gru": DecayMinGru}
    return {mixer: partial(cell, scan=scan) for mixer, cell in cells.items()}


LAYERS = {name: by(scan) for name, scan in SCANS.items()}
LAYERS["torch-log-scan"] = {"decay-min-gru": partial(DecayMinGru, scan=None)}

if __name__ == "__main__":
    main(LAYERS)
