"""One Mamba layer in PyTorch, as a whole mixer: in-projection, convolution, selection, scan, gate, out-projection; and S6, its selective
state spaces alone.

* torch-loop: one step after the other, from exp(Δ A) and Δ B u of all steps at once.
* mambapy: the parallel scan of the package of that name.
* transformers: the whole `MambaMixer` of that package on its slow path, without the GPU kernels.
* transformers-mambapy: the same with its option `use_mambapy`.

All start from a state of zeros.
"""

from collections.abc import Callable
from functools import partial

import torch
import torch.nn.functional as F
from common import ROOT, Case, require_close
from safetensors.torch import load_file
from torch import Tensor, nn
from whole_layer import installed, main

D_STATE = 16
CASE = ROOT / "crates/cli/tests/fixtures/verify/mamba.safetensors"
Scan = Callable[[Tensor, Tensor, Tensor, Tensor, Tensor, Tensor], Tensor]


class Selection(nn.Module):
    """The selective state spaces: step size, B and C from the input, and the scan."""

    def __init__(self, width: int, rank: int, scan: Scan):
        super().__init__()
        self.scan, self.rank = scan, rank
        self.x_proj = nn.Linear(width, rank + 2 * D_STATE, bias=False)
        self.dt_proj = nn.Linear(rank, width)
        nn.init.constant_(self.dt_proj.bias, -4.6)
        self.A_log = nn.Parameter(torch.arange(1.0, D_STATE + 1).to(self.dt_proj.bias).log().repeat(width, 1))
        self.D = nn.Parameter(torch.ones(width))

    def select(self, u: Tensor) -> Tensor:
        delta, b, c = self.x_proj(u).split([self.rank, D_STATE, D_STATE], dim=-1)
        return self.scan(u, F.softplus(self.dt_proj(delta)), -self.A_log.exp(), b, c, self.D)


class Mamba(Selection):
    """Selective state spaces and everything around them."""

    def __init__(self, case: Case, scan: Scan):
        d, e = case.d_model, case.d_hidden
        super().__init__(e, -(-d // 16), scan)
        self.in_proj = nn.Linear(d, 2 * e, bias=False)
        self.conv1d = nn.Conv1d(e, e, 4, groups=e, padding=3)
        self.out_proj = nn.Linear(e, d, bias=False)

    def forward(self, x: Tensor) -> Tensor:
        u, z = self.in_proj(x).chunk(2, dim=-1)
        u = F.silu(self.conv1d(u.mT)[..., : x.shape[1]].mT)
        return self.out_proj(self.select(u) * F.silu(z))


class S6(Selection):
    """Selective state spaces alone, with S4's output mixing."""

    def __init__(self, case: Case, scan: Scan):
        d = case.d_model
        super().__init__(d, -(-d // 16), scan)
        self.out_proj = nn.Linear(d, 2 * d)

    def forward(self, x: Tensor) -> Tensor:
        return F.glu(self.out_proj(F.gelu(self.select(x))))


def loop(u: Tensor, delta: Tensor, a: Tensor, b: Tensor, c: Tensor, skip: Tensor) -> Tensor:
    """y [B, T, E] for u, delta [B, T, E], a [E, N], b, c [B, T, N], one step after the other."""
    decay = torch.exp(delta.unsqueeze(-1) * a)
    added = (delta * u).unsqueeze(-1) * b.unsqueeze(2)
    h, steps = torch.zeros_like(added[:, 0]), []
    for decay_t, added_t, c_t in zip(decay.unbind(1), added.unbind(1), c.unbind(1), strict=True):
        h = torch.addcmul(added_t, decay_t, h)
        steps.append((h @ c_t.unsqueeze(-1)).squeeze(-1))
    return torch.stack(steps, dim=1) + skip * u


def mambapy(u: Tensor, delta: Tensor, a: Tensor, b: Tensor, c: Tensor, skip: Tensor) -> Tensor:
    """The same by mambapy's parallel scan; the method reads nothing of its object."""
    from mambapy.mamba import MambaBlock

    return MambaBlock.selective_scan(None, u, delta, a, b, c, skip)


def transformers_mixer(case: Case, use_mambapy: bool) -> nn.Module:
    from transformers import MambaConfig
    from transformers.models.mamba.modeling_mamba import MambaMixer

    expansion = case.d_hidden // case.d_model
    config = MambaConfig(hidden_size=case.d_model, expand=expansion, state_size=D_STATE, num_hidden_layers=1, use_mambapy=use_mambapy)
    return MambaMixer(config, layer_idx=0)


SCANS: dict[str, Scan] = {"torch-loop": loop, "mambapy": mambapy}
LAYERS = {name: {"mamba": partial(Mamba, scan=scan), "s6": partial(S6, scan=scan)} for name, scan in SCANS.items()}
LAYERS["transformers"] = {"mamba": partial(transformers_mixer, use_mambapy=False)}
LAYERS["transformers-mambapy"] = {"mamba": partial(transformers_mixer, use_mambapy=True)}


def check_scans() -> None:
    """Stops unless every scan gives what the shipped verify case expects."""
    case = load_file(CASE)
    delta = F.softplus(case["delta"] + case["delta_bias"])
    for name, scan in SCANS.items():
        if installed(name):
            y = scan(case["u"], delta, case["A"], case["B"], case["C"], case["D"]) * F.silu(case["z"])
            require_close(name, y.numpy(), case["expect.y"].numpy())


if __name__ == "__main__":
    main(LAYERS, extra_check=check_scans)
