"""One Mamba layer in PyTorch up to its output projection: in-projection, convolution, selection, scan and gate,
loss = sum(w * y), backward to x and all weights.

torch-loop steps through time as the slow path of transformers does, from exp(delta A) and delta B u of all steps at
once; mambapy is the parallel scan of the package of that name. Both start from a state of zeros.
"""

import importlib.util
from collections.abc import Callable

import torch
import torch.nn.functional as F
from common import ROOT, Case, Step, require_close, run
from safetensors.torch import load_file
from torch import Tensor

D_STATE = 16
CASE = ROOT / "crates/cli/tests/fixtures/verify/mamba.safetensors"
Scan = Callable[[Tensor, Tensor, Tensor, Tensor, Tensor, Tensor], Tensor]


class Layer(torch.nn.Module):
    """The parameters and everything around the scan."""

    def __init__(self, d_model: int, d_inner: int):
        super().__init__()
        self.rank = -(-d_model // 16)
        self.in_proj = torch.nn.Linear(d_model, 2 * d_inner, bias=False)
        self.conv1d = torch.nn.Conv1d(d_inner, d_inner, 4, groups=d_inner, padding=3)
        self.x_proj = torch.nn.Linear(d_inner, self.rank + 2 * D_STATE, bias=False)
        self.dt_proj = torch.nn.Linear(self.rank, d_inner)
        torch.nn.init.constant_(self.dt_proj.bias, -4.6)
        self.A_log = torch.nn.Parameter(torch.arange(1.0, D_STATE + 1).log().repeat(d_inner, 1))
        self.D = torch.nn.Parameter(torch.ones(d_inner))

    def forward(self, x: Tensor, scan: Scan) -> Tensor:
        u, z = self.in_proj(x).chunk(2, dim=-1)
        u = F.silu(self.conv1d(u.mT)[..., : x.shape[1]].mT)
        delta, b, c = self.x_proj(u).split([self.rank, D_STATE, D_STATE], dim=-1)
        return scan(u, F.softplus(self.dt_proj(delta)), -self.A_log.exp(), b, c, self.D) * F.silu(z)


def loop(u: Tensor, delta: Tensor, a: Tensor, b: Tensor, c: Tensor, skip: Tensor) -> Tensor:
    """y [B, T, E] for u, delta [B, T, E], a [E, N], b, c [B, T, N], one step after the other."""
    decay = torch.exp(delta.unsqueeze(-1) * a)
    added = (delta * u).unsqueeze(-1) * b.unsqueeze(2)
    h, steps = torch.zeros_like(added[:, 0]), []
    for t in range(u.shape[1]):
        h = decay[:, t] * h + added[:, t]
        steps.append((h @ c[:, t].unsqueeze(-1)).squeeze(-1))
    return torch.stack(steps, dim=1) + skip * u


def mambapy_scan(u: Tensor, delta: Tensor, a: Tensor, b: Tensor, c: Tensor, skip: Tensor) -> Tensor:
    """The same by mambapy's parallel scan; the method reads nothing of its object."""
    from mambapy.mamba import MambaBlock

    return MambaBlock.selective_scan(None, u, delta, a, b, c, skip)


SCANS: dict[str, Scan] = {"torch-loop": loop}
if importlib.util.find_spec("mambapy"):
    SCANS["mambapy"] = mambapy_scan


def build(case: Case) -> tuple[Step, dict]:
    torch.set_num_threads(case.threads)
    torch.manual_seed(0)
    d, e = case.d_model, case.d_hidden
    x = torch.randn(case.batch_size, case.seq_len, d, requires_grad=True)
    loss_weight = torch.randn(case.batch_size, case.seq_len, e)
    layer, scan = Layer(d, e), SCANS[case.impl]
    leaves = [x, *layer.parameters()]

    def step() -> None:
        torch.autograd.grad((loss_weight * layer(x, scan)).sum(), leaves)

    weights = 2 * d * e + e * (layer.rank + 2 * D_STATE) + layer.rank * e
    return step, {"flop": 3 * 2 * case.batch_size * case.seq_len * weights, "version": f"torch {torch.__version__}"}


def check() -> None:
    """Stops unless every scan gives what the shipped verify case expects."""
    case = load_file(CASE)
    delta = F.softplus(case["delta"] + case["delta_bias"])
    for name, scan in SCANS.items():
        y = scan(case["u"], delta, case["A"], case["B"], case["C"], case["D"]) * F.silu(case["z"])
        require_close(name, y.numpy(), case["expect.y"].numpy())


if __name__ == "__main__":
    run(
        "layer",
        dict.fromkeys(SCANS, ("mamba",)),
        build,
        check,
        d_model=64,
        d_hidden=128,
        batch_size=64,
        seq_len=[64, 256, 512, 1024, 4096],
    )
