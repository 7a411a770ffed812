"""The language model all peers build: the Shakespeare setting, its count of parameters and of operations.

Three blocks of width 384 (conv4 depthwise + pointwise, mixer to 768 and back, 4x GELU MLP with erf), learned initial
state, untied head without bias, 65 symbols, dropout 0.2 at three sites. With minGRU it has 6 711 552 parameters under
LayerNorm and 6 708 864 under RMSNorm, which has no bias.
"""

from dataclasses import dataclass

import numpy as np
from common import FIXTURE, PROJECTIONS, Case, require_close
from safetensors import safe_open

COUNTS = {
    ("min-gru", "layer"): 6_711_552,
    ("min-gru", "rms"): 6_708_864,
    ("min-lstm", "layer"): 7_598_592,
    ("min-lstm", "rms"): 7_595_904,
}
LEARNING_RATE, BETAS, EPSILON, WEIGHT_DECAY, CLIP_NORM = 1e-3, (0.9, 0.99), 1e-8, 0.1, 0.25
KERNEL = 4


@dataclass(frozen=True)
class Setting:
    """Everything that shapes the model."""

    mixer: str = "min-gru"
    norm: str = "layer"
    d_model: int = 384
    d_inner: int = 768
    n_layers: int = 3
    d_ff: int = 4 * 384
    vocab_size: int = 65
    learned_state: bool = True
    dropout: float = 0.2

    @staticmethod
    def of(case: Case, dropout: float = 0.2) -> "Setting":
        d = case.d_model
        return Setting(case.mixer, case.norm, d, case.d_hidden, d_ff=4 * d, dropout=dropout)


# The model of tools/reference_values.py, whose logits are in the fixture.
FIXTURE_SETTING = Setting(
    d_model=8, d_inner=16, n_layers=2, d_ff=32, vocab_size=11, learned_state=False, dropout=0.0
)


def shapes(s: Setting) -> dict[str, tuple[int, ...]]:
    """Name and shape of every parameter; `Linear` weights are [out, in], `in_proj` rows [candidate | gates]."""
    d, e, f = s.d_model, s.d_inner, s.d_ff
    norm = ("weight", "bias") if s.norm == "layer" else ("gamma",)
    found: dict[str, tuple[int, ...]] = {"embedding.weight": (s.vocab_size, d)}
    for layer in range(s.n_layers):
        block = f"blocks.{layer}"
        found |= {f"{block}.conv.depthwise.weight": (d, 1, KERNEL), f"{block}.conv.depthwise.bias": (d,)}
        found |= {f"{block}.{part}_norm.{kind}": (d,) for part in ("mixer", "ff") for kind in norm}
        linear = {
            "conv.pointwise": (d, d),
            "mixer.in_proj": (PROJECTIONS[s.mixer] * e, d),
            "mixer.out_proj": (d, e),
            "ff.up": (f, d),
            "ff.down": (d, f),
        }
        for name, shape in linear.items():
            found |= {f"{block}.{name}.weight": shape, f"{block}.{name}.bias": shape[:1]}
        if s.learned_state:
            found[f"{block}.mixer.initial_state"] = (e,)
    return found | {f"final_norm.{kind}": (d,) for kind in norm} | {"head.weight": (s.vocab_size, d)}


def initial_values(s: Setting, seed: int = 0) -> dict[str, np.ndarray]:
    """PyTorch's default initialisation: uniform within 1/sqrt(fan_in), embeddings and states normal, norms plain."""
    rng = np.random.default_rng(seed)
    found, values = shapes(s), {}
    for name, shape in found.items():
        layer, kind = name.rsplit(".", 1)
        if kind == "initial_state" or layer == "embedding":
            value = rng.standard_normal(shape)
        elif "norm" in layer:
            value = np.full(shape, 1.0 if kind == "weight" else 0.0)
        else:
            fan_in = np.prod(found[f"{layer}.weight"][1:])
            value = rng.uniform(-1, 1, shape) * fan_in**-0.5
        values[name] = value.astype(np.float32)
    return values


def parameter_count(case: Case) -> int:
    """Checked against the published count at the published size."""
    count = sum(int(np.prod(shape)) for shape in shapes(Setting.of(case)).values())
    if (case.d_model, case.d_hidden) == (384, 768):
        assert count == COUNTS[case.mixer, case.norm], count
    return count


def flop(case: Case, tokens: int, backward: bool) -> int:
    """Operations of the matrix products on `tokens` tokens: 2 per weight, three times that with the backward pass."""
    matrices = (shape for name, shape in shapes(Setting.of(case)).items() if len(shape) == 2 and name[:3] != "emb")
    return (6 if backward else 2) * tokens * sum(int(np.prod(shape)) for shape in matrices)


def batch(case: Case, rng: np.random.Generator) -> tuple[np.ndarray, np.ndarray]:
    """Random tokens and targets, int64 [B, T]."""
    tokens = rng.integers(0, Setting().vocab_size, (case.batch_size, case.seq_len + 1))
    return tokens[:, :-1], tokens[:, 1:]


def check_model(impl: str, logits_of) -> None:
    """Stops unless `logits_of(setting, weights, tokens)` reproduces the fixture's logits."""
    with safe_open(FIXTURE, "numpy") as file:
        weights = {name: file.get_tensor(name) for name in shapes(FIXTURE_SETTING)}
        tokens = file.get_tensor("input.tokens").astype(np.int64)
        expected = file.get_tensor("expect.logits")
    require_close(f"{impl} language model", logits_of(FIXTURE_SETTING, weights, tokens), expected)
