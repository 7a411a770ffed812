"""One attention layer in PyTorch: in-projection, causal SDPA with 4 heads, loss = sum(w * y), backward to x and the weights.

The work of `minrnn bench layer --mixer attention`; no down-projection.
"""

import numpy as np
import torch
import torch.nn.functional as F
from common import Case, Step, require_close, run

HEADS = 4
IMPLEMENTATIONS = {"torch-sdpa": ("attention",)}


def attend(qkv: torch.Tensor) -> torch.Tensor:
    """Queries, keys and values [B, T, 3e] to outputs [B, T, e]."""
    b, t, triple = qkv.shape
    heads = (part.view(b, t, HEADS, -1).transpose(1, 2) for part in qkv.chunk(3, dim=-1))
    return F.scaled_dot_product_attention(*heads, is_causal=True).transpose(1, 2).reshape(b, t, triple // 3)


def reference(qkv: np.ndarray) -> np.ndarray:
    """The same, query by query in float64."""
    b, t, triple = qkv.shape
    q, k, v = (part.reshape(b, t, HEADS, -1) for part in np.split(qkv.astype(np.float64), 3, axis=-1))
    out = np.zeros_like(q)
    for i in range(t):
        scores = np.einsum("bhc,bshc->bhs", q[:, i], k[:, : i + 1]) / np.sqrt(q.shape[-1])
        weights = np.exp(scores - scores.max(axis=-1, keepdims=True))
        out[:, i] = np.einsum("bhs,bshc->bhc", weights / weights.sum(axis=-1, keepdims=True), v[:, : i + 1])
    return out.reshape(b, t, triple // 3)


def check() -> None:
    qkv = np.random.default_rng(0).standard_normal((2, 33, 3 * 12)).astype(np.float32)
    require_close("torch-sdpa attention", attend(torch.from_numpy(qkv)).numpy(), reference(qkv))


def build(case: Case) -> tuple[Step, dict]:
    torch.set_num_threads(case.threads)
    torch.manual_seed(0)
    b, t, d, e = case.batch_size, case.seq_len, case.d_model, case.d_hidden
    x = torch.randn(b, t, d, requires_grad=True)
    loss_weight = torch.randn(b, t, e)
    projection = torch.nn.Linear(d, 3 * e)
    leaves = [x, *projection.parameters()]

    def step() -> None:
        torch.autograd.grad((loss_weight * attend(projection(x))).sum(), leaves)

    # The two products of attention meet half of the steps on average.
    flop = 6 * b * t * e * (3 * d + t)
    return step, {"flop": flop, "version": f"torch {torch.__version__}"}


if __name__ == "__main__":
    run(
        "layer",
        IMPLEMENTATIONS,
        build,
        check,
        d_model=64,
        d_hidden=128,
        batch_size=64,
        seq_len=[64, 256, 512, 1024, 4096],
    )
