"""One sLSTM or mLSTM layer in PyTorch: in-projection, recurrence, loss = sum(w * h), backward to x, the states and weights.

The work of `minrnn bench layer --mixer s-lstm|m-lstm`. The sLSTM is the plain loop; the mLSTM is xLSTM's parallel form,
all pairs of steps at once, or its recurrence.
"""

import numpy as np
import torch
from common import Case, Step, require_close, run
from torch import Tensor
from torch.nn.functional import logsigmoid

IMPLEMENTATIONS = {"torch-loop": ("s-lstm", "m-lstm"), "torch-parallel": ("m-lstm",)}
EPS = 1e-6


def heads_of(width: int) -> int:
    return 4 if width % 4 == 0 else 1


def slstm(preact: Tensor, recurrent: Tensor, state: list[Tensor]) -> Tensor:
    """h [B, T, e] from [B, T, 4e] in parts i, f, z, o, R [heads, 4 hd, hd] and h, c, n, m [B, e]."""
    h, c, n, m = state
    heads, _, width = recurrent.shape
    steps = []
    for x in preact.unbind(1):
        own = torch.einsum("bnk,nrk->bnr", h.view(-1, heads, width), recurrent).view(-1, heads, 4, width)
        i, f, z, o = (x + own.transpose(1, 2).flatten(1)).chunk(4, dim=1)
        kept = logsigmoid(f) + m
        m = torch.maximum(kept, i).detach()
        take, keep = (i - m).exp(), (kept - m).exp()
        c, n = keep * c + take * z.tanh(), keep * n + take
        h = o.sigmoid() * c / n
        steps.append(h)
    return torch.stack(steps, dim=1)


def mlstm_loop(q: Tensor, k: Tensor, v: Tensor, i: Tensor, f: Tensor) -> Tensor:
    """h [B, NH, T, hd] from q, k, v of that shape and gates [B, NH, T], one step after the other."""
    b, heads, _, width = q.shape
    c, n, m = q.new_zeros(b, heads, width, width), q.new_zeros(b, heads, width), q.new_full((b, heads), -torch.inf)
    steps = []
    for q, k, v, i, f in zip(*(x.unbind(2) for x in (q, k * width**-0.5, v, i, logsigmoid(f))), strict=True):
        kept = f + m
        m = torch.maximum(kept, i).detach()
        take, keep = (i - m).exp()[..., None], (kept - m).exp()[..., None]
        c = keep[..., None] * c + (take * k)[..., None] * v[..., None, :]
        n = keep * n + take * k
        along = (n * q).sum(-1, keepdim=True).abs()
        steps.append((c * q[..., None]).sum(-2) / (torch.maximum(along, (-m).exp()[..., None]) + EPS))
    return torch.stack(steps, dim=2)


def mlstm_parallel(q: Tensor, k: Tensor, v: Tensor, i: Tensor, f: Tensor) -> Tensor:
    """The same for all pairs of steps at once."""
    t, width = q.shape[2:]
    total = logsigmoid(f).cumsum(-1)
    past = torch.ones(t, t, dtype=torch.bool).tril()
    logs = (total[..., None] - total[..., None, :] + i[..., None, :]).masked_fill(~past, -torch.inf)
    m = logs.amax(-1, keepdim=True).detach()
    scores = (q @ k.mT) * width**-0.5 * (logs - m).exp()
    return scores @ v / (torch.maximum(scores.sum(-1, keepdim=True).abs(), (-m).exp()) + EPS)


MLSTM = {"torch-loop": mlstm_loop, "torch-parallel": mlstm_parallel}


def build(case: Case) -> tuple[Step, dict]:
    torch.set_num_threads(case.threads)
    torch.manual_seed(0)
    b, t, d, e = case.batch_size, case.seq_len, case.d_model, case.d_hidden
    heads = heads_of(e)
    x = torch.randn(b, t, d, requires_grad=True)
    loss_weight = torch.randn(b, t, e)
    outputs = 4 * e if case.mixer == "s-lstm" else 3 * e + 2 * heads
    projection = torch.nn.Linear(d, outputs)
    leaves = [x, *projection.parameters()]

    if case.mixer == "s-lstm":
        recurrent = ((torch.rand(heads, 4 * e // heads, e // heads) * 2 - 1) * e**-0.5).requires_grad_()
        h0, c0 = (torch.randn(b, e, requires_grad=True) for _ in range(2))
        leaves += [recurrent, h0, c0]
        parts, depth = 4, d + e // heads

        def forward() -> Tensor:
            return slstm(projection(x), recurrent, [h0, c0, torch.ones(b, e), torch.zeros(b, e)])
    else:
        parts, depth = 3, d

        def forward() -> Tensor:
            *qkv, i, f = projection(x).split([e, e, e, heads, heads], dim=-1)
            q, k, v = (part.view(b, t, heads, e // heads).transpose(1, 2) for part in qkv)
            return MLSTM[case.impl](q, k, v, i.transpose(1, 2), f.transpose(1, 2)).transpose(1, 2).reshape(b, t, e)

    def step() -> None:
        torch.autograd.grad((loss_weight * forward()).sum(), leaves)

    return step, {"flop": 6 * b * t * parts * e * depth, "version": f"torch {torch.__version__}"}


def check_cells() -> None:
    """Both forms of the mLSTM against each other, and the first step of the sLSTM against its equation."""
    torch.manual_seed(0)
    q, k, v = torch.randn(3, 2, 3, 33, 4, dtype=torch.float64)
    i, f = torch.randn(2, 2, 3, 33, dtype=torch.float64)
    require_close("mlstm", mlstm_loop(q, k, v, i, f).numpy(), mlstm_parallel(q, k, v, i, f).numpy())
    x = torch.randn(2, 1, 16, dtype=torch.float64)
    empty = [torch.zeros(2, 4, dtype=torch.float64) for _ in range(3)] + [torch.full((2, 4), -torch.inf).double()]
    found = slstm(x, torch.zeros(2, 8, 2, dtype=torch.float64), empty)
    _, _, z, o = x.chunk(4, dim=-1)
    require_close("slstm", found.numpy(), np.asarray(o.sigmoid() * z.tanh()))


if __name__ == "__main__":
    run(
        "layer",
        IMPLEMENTATIONS,
        build,
        check_cells,
        d_model=64,
        d_hidden=128,
        batch_size=64,
        seq_len=[64, 256, 512],
    )
