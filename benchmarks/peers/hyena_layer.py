"""Hyena of order 2 in PyTorch, as a whole mixer: gates around a long convolution whose filter is a function of the lag.

    x0, x1, v = DW3(W x + b)        y = W_o (x0 ⊙ (h * (x1 ⊙ v) + b' ⊙ x1 ⊙ v)) + b_o

The filter's network and its features are evaluated and differentiated in every iteration, for as many lags as there are steps.
"""

import math
from functools import partial

import torch
import torch.nn.functional as F
from common import Case
from long_convolutions import CONVOLUTIONS, Convolution, depthwise, direct
from torch import Tensor, nn
from whole_layer import main

SHORT, HIDDEN, BAND = 3, 64, 1e-4


class Filter(nn.Module):
    """h [D, L] from the features of all lags."""

    def __init__(self, d_model: int, lags: int):
        super().__init__()
        share, angle = torch.linspace(0, 1, lags), 2 * math.pi * BAND / lags * torch.arange(lags)
        self.features = nn.Parameter(torch.stack([share, angle.cos(), -angle.sin()], dim=1))
        self.layers = nn.ModuleList([nn.Linear(3, HIDDEN), nn.Linear(HIDDEN, HIDDEN), nn.Linear(HIDDEN, HIDDEN)])
        self.last = nn.Linear(HIDDEN, d_model, bias=False)
        self.frequency = nn.Parameter(torch.ones(HIDDEN))
        rates = torch.linspace(math.log(0.01) / 1.5, math.log(0.01) / 0.3, d_model)
        self.register_buffer("window", (share.unsqueeze(1) * rates).exp())

    def forward(self) -> Tensor:
        h = self.features
        for layer in self.layers:
            h = (self.frequency * layer(h)).sin()
        return (self.last(h) * self.window).mT


class Hyena(nn.Module):
    def __init__(self, case: Case, convolution: Convolution):
        super().__init__()
        d = case.d_model
        self.convolution = convolution
        self.in_proj, self.out_proj = nn.Linear(d, 3 * d), nn.Linear(d, d)
        self.short_conv = nn.Conv1d(3 * d, 3 * d, SHORT, groups=3 * d)
        self.filter = Filter(d, case.seq_len)
        self.skip = nn.Parameter(torch.randn(d))

    def forward(self, x: Tensor) -> Tensor:
        x0, x1, v = depthwise(self.in_proj(x), self.short_conv.weight, self.short_conv.bias).chunk(3, dim=-1)
        v = x1 * v
        return self.out_proj(x0 * (self.convolution(v, self.filter()) + self.skip * v))


class HyenaFilter(nn.Module):
    """The long convolution alone, with S4's output mixing."""

    def __init__(self, case: Case, convolution: Convolution):
        super().__init__()
        d = case.d_model
        self.convolution = convolution
        self.filter, self.skip = Filter(d, case.seq_len), nn.Parameter(torch.randn(d))
        self.out_proj = nn.Linear(d, 2 * d)

    def forward(self, x: Tensor) -> Tensor:
        return F.glu(self.out_proj(F.gelu(self.convolution(x, self.filter()) + self.skip * x)))


def by(convolution: Convolution) -> dict:
    return {"hyena": partial(Hyena, convolution=convolution), "hyena-filter": partial(HyenaFilter, convolution=convolution)}


if __name__ == "__main__":
    main({name: by(convolution) for name, convolution in CONVOLUTIONS.items()}, by(direct))
