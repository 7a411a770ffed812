"""sLSTM and mLSTM in PyTorch, as whole mixers wired as in xLSTM's blocks, without the residual connection and its norm.

* torch-loop: the cell one step after the other.
* torch-parallel: the mLSTM for all pairs of steps at once.
* torch-chunked: the mLSTM in pairs inside chunks of 64 steps, with a state between chunks.
* xlstm: the whole layer of the package of that name, the sLSTM with its back end "vanilla".
* mlstm-kernels-parallel, mlstm-kernels-chunked: the cell by the plain PyTorch kernels of that package, as xLSTM-7B's code offers
  them, differentiated by autograd. Their own backward passes (`custbw`) are left out: they take the normaliser for a constant
  and so give other gradients.
"""

from collections.abc import Callable
from functools import partial

import torch
import torch.nn.functional as F
from common import Case
from long_convolutions import depthwise
from torch import Tensor, nn
from torch.nn.functional import logsigmoid
from whole_layer import HEADS, main

EPS, BLOCK, CHUNK = 1e-6, 4, 64
Cell = Callable[[Tensor, Tensor, Tensor, Tensor, Tensor], Tensor]


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
        steps.append((q[..., None, :] @ c).squeeze(-2) / (torch.maximum(along, (-m).exp()[..., None]) + EPS))
    return torch.stack(steps, dim=2)


def pair_logs(total: Tensor, i: Tensor) -> Tensor:
    """F_t − F_s + ĩ_s for s ≤ t, else −∞, from F and ĩ [.., T]."""
    future = torch.ones(i.shape[-1], i.shape[-1], dtype=torch.bool).triu(1)
    return (total[..., None] + (i - total)[..., None, :]).masked_fill(future, -torch.inf)


def mlstm_parallel(q: Tensor, k: Tensor, v: Tensor, i: Tensor, f: Tensor) -> Tensor:
    """The same for all pairs of steps at once."""
    logs = pair_logs(logsigmoid(f).cumsum(-1), i)
    m = logs.amax(-1, keepdim=True).detach()
    scores = (q @ k.mT) * q.shape[-1] ** -0.5 * (logs - m).exp()
    return scores @ v / (torch.maximum(scores.sum(-1, keepdim=True).abs(), (-m).exp()) + EPS)


def mlstm_chunked(q: Tensor, k: Tensor, v: Tensor, i: Tensor, f: Tensor) -> Tensor:
    """The same in chunks; the normaliser is the memory of a value of 1."""
    seq_len, width = q.shape[2:]
    tail = -seq_len % CHUNK
    v = F.pad(v, (0, 1), value=1.0)
    # Steps after the end add e^−∞.
    q, k, v = (F.pad(x, (0, 0, 0, tail)).unflatten(2, (-1, CHUNK)) for x in (q, k * width**-0.5, v))
    i, f = F.pad(i, (0, tail), value=-1e30).unflatten(2, (-1, CHUNK)), F.pad(logsigmoid(f), (0, tail)).unflatten(2, (-1, CHUNK))
    total = f.cumsum(-1)
    logs, leaving = pair_logs(total, i), total[..., -1:] - total + i
    top, top_leaving = logs.amax(-1).detach(), leaving.amax(-1, keepdim=True).detach()
    added = (k * (leaving - top_leaving).exp().unsqueeze(-1)).mT @ v
    memory, m, memories, ms = torch.zeros_like(added[:, :, 0]), torch.full_like(top_leaving[:, :, 0], -1e30), [], []
    for end, added, top_end in zip(total[..., -1:].unbind(2), added.unbind(2), top_leaving.unbind(2), strict=True):
        memories.append(memory)
        ms.append(m)
        kept = m + end
        m = torch.maximum(kept, top_end).detach()
        memory = (kept - m).exp().unsqueeze(-1) * memory + (top_end - m).exp().unsqueeze(-1) * added
    entering = torch.stack(ms, dim=2) + total
    m = torch.maximum(top, entering).detach().unsqueeze(-1)
    scores = (q @ k.mT) * (logs - m).exp()
    read = scores @ v + (entering.unsqueeze(-1) - m).exp() * (q @ torch.stack(memories, dim=2))
    h, along = read.tensor_split([-1], dim=-1)
    return (h / (torch.maximum(along.abs(), (-m).exp()) + EPS)).flatten(2, 3)[:, :, :seq_len]


def kernels_parallel(q: Tensor, k: Tensor, v: Tensor, i: Tensor, f: Tensor) -> Tensor:
    from mlstm_kernels.torch.parallel.native import mlstm_parallel__native_autograd

    return mlstm_parallel__native_autograd(q, k, v, i, f, eps=EPS)


def kernels_chunked(q: Tensor, k: Tensor, v: Tensor, i: Tensor, f: Tensor) -> Tensor:
    from mlstm_kernels.torch.chunkwise.native import mlstm_chunkwise__native_autograd

    return mlstm_chunkwise__native_autograd(q, k, v, i, f, eps=EPS, chunk_size=min(CHUNK, q.shape[2]))


class Headwise(nn.Module):
    """A block-diagonal map, weights [blocks, out, in]."""

    def __init__(self, blocks: int, width: int):
        super().__init__()
        self.weight = nn.Parameter(width**-0.5 * torch.randn(blocks, width, width))

    def forward(self, x: Tensor) -> Tensor:
        blocks = x.unflatten(-1, (self.weight.shape[0], -1))
        return torch.einsum("btgi,goi->btgo", blocks, self.weight).flatten(2)


class HeadNorm(nn.Module):
    """A norm of the channels of each head, with the gain 1 + w."""

    def __init__(self, width: int):
        super().__init__()
        self.weight = nn.Parameter(torch.zeros(width))

    def forward(self, x: Tensor) -> Tensor:
        return F.group_norm(x.flatten(0, 1), HEADS, 1 + self.weight, eps=1e-5).view_as(x)


class MLstm(nn.Module):
    def __init__(self, case: Case, cell: Cell):
        super().__init__()
        d, e = case.d_model, case.d_hidden
        self.cell = cell
        self.proj_up, self.proj_down = nn.Linear(d, 2 * e, bias=False), nn.Linear(e, d, bias=False)
        self.conv1d = nn.Conv1d(e, e, 4, groups=e)
        self.q_proj, self.k_proj, self.v_proj = (Headwise(e // BLOCK, BLOCK) for _ in range(3))
        self.igate, self.fgate = nn.Linear(3 * e, HEADS), nn.Linear(3 * e, HEADS)
        self.outnorm = HeadNorm(e)
        self.learnable_skip = nn.Parameter(torch.ones(e))

    def forward(self, x: Tensor) -> Tensor:
        u, z = self.proj_up(x).chunk(2, dim=-1)
        c = F.silu(depthwise(u, self.conv1d.weight, self.conv1d.bias))
        qkv = self.q_proj(c), self.k_proj(c), self.v_proj(u)
        joined = torch.cat(qkv, dim=-1)
        heads = (part.unflatten(2, (HEADS, -1)).transpose(1, 2) for part in qkv)
        h = self.cell(*heads, self.igate(joined).mT, self.fgate(joined).mT).transpose(1, 2).flatten(2)
        return self.proj_down((self.outnorm(h) + self.learnable_skip * c) * F.silu(z))


class SLstm(nn.Module):
    """The sLSTM, whose cell is the plain loop; of the width of the model."""

    def __init__(self, case: Case):
        super().__init__()
        d, head = case.d_model, case.d_model // HEADS
        self.conv1d = nn.Conv1d(d, d, 4, groups=d)
        self.igate, self.fgate, self.zgate, self.ogate = (Headwise(HEADS, head) for _ in range(4))
        # Rows i, f, z, o of each head.
        self.recurrent = nn.Parameter(d**-0.5 * (2 * torch.rand(HEADS, 4 * head, head) - 1))
        self.bias = nn.Parameter(torch.zeros(4 * d))
        self.group_norm = HeadNorm(d)

    def forward(self, x: Tensor) -> Tensor:
        gated = F.silu(depthwise(x, self.conv1d.weight, self.conv1d.bias))
        parts = self.igate(gated), self.fgate(gated), self.zgate(x), self.ogate(x)
        return self.group_norm(self.cell(torch.cat(parts, dim=-1) + self.bias))

    def cell(self, preact: Tensor) -> Tensor:
        """h [B, T, D] from [B, T, 4D] in parts i, f, z, o."""
        batch, _, parts = preact.shape
        h = c = n = preact.new_zeros(batch, parts // 4)
        m, steps, recurrent = torch.full_like(h, -1e30), [], self.recurrent.mT
        for x in preact.unbind(1):
            own = torch.bmm(h.view(batch, HEADS, -1).transpose(0, 1), recurrent).view(HEADS, batch, 4, -1)
            i, f, z, o = (x + own.permute(1, 2, 0, 3).reshape(batch, parts)).chunk(4, dim=1)
            kept = logsigmoid(f) + m
            m = torch.maximum(kept, i).detach()
            take, keep = (i - m).exp(), (kept - m).exp()
            c, n = torch.addcmul(take * z.tanh(), keep, c), torch.addcmul(take, keep, n)
            h = o.sigmoid() * c / n
            steps.append(h)
        return torch.stack(steps, dim=1)


def package_mlstm(case: Case) -> nn.Module:
    from xlstm.blocks.mlstm.layer import mLSTMLayer, mLSTMLayerConfig

    widths = {"embedding_dim": case.d_model, "proj_factor": case.d_hidden / case.d_model}
    layer = mLSTMLayer(mLSTMLayerConfig(**widths, num_heads=HEADS, context_length=case.seq_len))
    layer.aliases = {"conv1d.conv.": "conv1d.", "mlstm_cell.": ""}
    return layer


def package_slstm(case: Case) -> nn.Module:
    from xlstm.blocks.slstm.layer import sLSTMLayer, sLSTMLayerConfig

    # The package's dtype is that of its states on GPUs; the default is bfloat16, under autocast.
    config = sLSTMLayerConfig(embedding_dim=case.d_model, num_heads=HEADS, backend="vanilla", dtype="float32")
    layer = sLSTMLayer(config)
    # The layer passes its cell the gate named f where the cell expects i.
    swapped = {"fgate.": "igate.", "igate.": "fgate."}
    cell = {"slstm_cell._recurrent_kernel_": "recurrent", "slstm_cell._bias_": "bias"}
    layer.aliases = {"conv1d.conv.": "conv1d.", **swapped, **cell}
    return layer


CELLS: dict[str, Cell] = {
    "torch-loop": mlstm_loop,
    "torch-parallel": mlstm_parallel,
    "torch-chunked": mlstm_chunked,
    "mlstm-kernels-parallel": kernels_parallel,
    "mlstm-kernels-chunked": kernels_chunked,
}
LAYERS = {name: {"m-lstm": partial(MLstm, cell=cell)} for name, cell in CELLS.items()}
LAYERS["torch-loop"]["s-lstm"] = SLstm
LAYERS["xlstm"] = {"m-lstm": package_mlstm, "s-lstm": package_slstm}

if __name__ == "__main__":
    main(LAYERS)
