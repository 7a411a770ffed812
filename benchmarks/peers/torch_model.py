"""The language model in PyTorch eager, with a whole-sequence pass and a step for one token.

Letters: B batch, T time, D d_model, E d_inner, V vocabulary.
"""

import numpy as np
import torch
import torch.nn.functional as F
import torch_cells
from lm_setting import KERNEL, Setting, check_model
from torch import Tensor, nn
from torch_cells import CELLS, check_cells, g


class RmsNorm(nn.Module):
    """x / max(|x|, 1e-12) * sqrt(D) * (1 + gamma)."""

    def __init__(self, d: int):
        super().__init__()
        self.gamma = nn.Parameter(torch.zeros(d))

    def forward(self, x: Tensor) -> Tensor:
        return F.normalize(x, dim=-1) * x.shape[-1] ** 0.5 * (1 + self.gamma)


class Conv(nn.Module):
    """Causal depthwise convolution over 4 steps, then a pointwise one. State: the last 3 inputs [B, 3, D]."""

    def __init__(self, d: int):
        super().__init__()
        self.depthwise = nn.Conv1d(d, d, KERNEL, groups=d)
        self.pointwise = nn.Linear(d, d)

    def forward(self, x: Tensor) -> Tensor:
        return self.pointwise(self.depthwise(F.pad(x.transpose(1, 2), (KERNEL - 1, 0))).transpose(1, 2))

    def step(self, x: Tensor, window: Tensor) -> tuple[Tensor, Tensor]:
        window = torch.cat([window, x.unsqueeze(1)], dim=1)
        y = (window * self.depthwise.weight[:, 0].T).sum(1) + self.depthwise.bias
        return self.pointwise(y), window[:, 1:]


class Mixer(nn.Module):
    """minGRU or minLSTM to width E and back. State: h [B, E]."""

    def __init__(self, s: Setting, impl: str):
        super().__init__()
        rows = {"min-gru": 2, "min-lstm": 3}[s.mixer]
        self.kind, self.d_inner, self.cell = s.mixer, s.d_inner, CELLS[impl]
        self.in_proj = nn.Linear(s.d_model, rows * s.d_inner)
        self.out_proj = nn.Linear(s.d_inner, s.d_model)
        self.initial_state = nn.Parameter(torch.randn(s.d_inner)) if s.learned_state else None

    def init_state(self, batch_size: int) -> Tensor:
        if self.initial_state is None:
            return torch.zeros(batch_size, self.d_inner)
        return g(self.initial_state).expand(batch_size, -1)

    def forward(self, x: Tensor) -> tuple[Tensor, Tensor]:
        h = self.cell(self.kind, self.in_proj(x), self.init_state(x.shape[0]))
        return self.out_proj(h), h[:, -1]

    def step(self, x: Tensor, h: Tensor) -> tuple[Tensor, Tensor]:
        h = torch_cells.step(self.kind, self.in_proj(x), h)
        return self.out_proj(h), h


class FeedForward(nn.Module):
    def __init__(self, s: Setting):
        super().__init__()
        self.up = nn.Linear(s.d_model, s.d_ff)
        self.down = nn.Linear(s.d_ff, s.d_model)

    def forward(self, x: Tensor) -> Tensor:
        return self.down(F.gelu(self.up(x)))


State = list[tuple[Tensor, Tensor]]


class Block(nn.Module):
    def __init__(self, s: Setting, impl: str):
        super().__init__()
        norm = nn.LayerNorm if s.norm == "layer" else RmsNorm
        self.conv = Conv(s.d_model)
        self.mixer_norm, self.mixer = norm(s.d_model), Mixer(s, impl)
        self.ff_norm, self.ff = norm(s.d_model), FeedForward(s)
        self.dropout = nn.Dropout(s.dropout)

    def forward(self, x: Tensor) -> tuple[Tensor, tuple[Tensor, Tensor]]:
        window = F.pad(x, (0, 0, KERNEL - 1, 0))[:, 1 - KERNEL :]
        x = x + self.conv(x)
        y, h = self.mixer(self.mixer_norm(x))
        x = x + self.dropout(y)
        return x + self.dropout(self.ff(self.ff_norm(x))), (window, h)

    def step(self, x: Tensor, state: tuple[Tensor, Tensor]) -> tuple[Tensor, tuple[Tensor, Tensor]]:
        y, window = self.conv.step(x, state[0])
        x = x + y
        y, h = self.mixer.step(self.mixer_norm(x), state[1])
        x = x + y
        return x + self.ff(self.ff_norm(x)), (window, h)


class SequenceModel(nn.Module):
    def __init__(self, s: Setting, impl: str):
        super().__init__()
        self.embedding = nn.Embedding(s.vocab_size, s.d_model)
        self.blocks = nn.ModuleList(Block(s, impl) for _ in range(s.n_layers))
        self.final_norm = (nn.LayerNorm if s.norm == "layer" else RmsNorm)(s.d_model)
        self.head = nn.Linear(s.d_model, s.vocab_size, bias=False)
        self.dropout = nn.Dropout(s.dropout)

    def body(self, tokens: Tensor) -> tuple[Tensor, State]:
        """The last block's output [B, T, D] and the state after the last token."""
        x, state = self.dropout(self.embedding(tokens)), []
        for block in self.blocks:
            x, after = block(x)
            state.append(after)
        return x, state

    def forward(self, tokens: Tensor) -> Tensor:
        """Logits [B, T, V]."""
        return self.head(self.final_norm(self.body(tokens)[0]))

    def prefill(self, tokens: Tensor) -> tuple[Tensor, State]:
        """Logits [B, V] after the prompt, and the state."""
        x, state = self.body(tokens)
        return self.head(self.final_norm(x[:, -1])), state

    def step(self, tokens: Tensor, state: State) -> tuple[Tensor, State]:
        """Logits [B, V] after one more token [B], and the state."""
        x, after = self.embedding(tokens), []
        for block, before in zip(self.blocks, state, strict=True):
            x, now = block.step(x, before)
            after.append(now)
        return self.head(self.final_norm(x)), after


def load(s: Setting, impl: str, weights: dict[str, np.ndarray]) -> SequenceModel:
    model = SequenceModel(s, impl)
    model.load_state_dict({name: torch.from_numpy(value) for name, value in weights.items()})
    return model


@torch.no_grad()
def check_torch_model() -> None:
    """Cells against the loop, forward against the fixture, prefill and steps against forward."""
    check_cells()

    def by_steps(s: Setting, weights: dict, tokens: np.ndarray) -> np.ndarray:
        model = load(s, "torch-loop", weights)
        logits, state = model.prefill(torch.from_numpy(tokens[:, :2]))
        found = [model(torch.from_numpy(tokens[:, :1]))[:, 0], logits]
        for t in range(2, tokens.shape[1]):
            logits, state = model.step(torch.from_numpy(tokens[:, t]), state)
            found.append(logits)
        return torch.stack(found, dim=1).numpy()

    for impl in CELLS:
        check_model(impl, lambda s, weights, tokens: load(s, impl, weights)(torch.from_numpy(tokens)).numpy())
    check_model("torch steps", by_steps)
