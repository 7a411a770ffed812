"""Writes fixtures of a tiny language model: weights, logits, loss and every gradient, computed by PyTorch.

The model is the plain reading of the block (no dropout), in float64; values are stored as float32:

    x = embedding[tokens]
    per block:  x += pointwise(depthwise4(x))        with conv
                x += out_proj(mixer(norm(x)))
                x += ff(norm(x))
    logits = head(norm(x)),   loss = mean cross-entropy

Weights bear PyTorch's names and layouts (`blocks.0.mixer.in_proj.weight` is [2E, D], rows candidate then gate), and
the file's metadata holds the model's configuration as JSON under `config`. Further tensors: `input.tokens` and
`target.tokens` (int32 [B, T]), `expect.logits` [B, T, V], `expect.loss` [1], `expect.grad.<weight>`.

    python tools/reference_values.py [--out crates/minrnn/tests/fixtures]

Letters: B batch, T time, D d_model, E d_inner, M feed-forward width, V vocabulary.
"""

import torch
import torch.nn.functional as F
from fixtures import Weights, write_variants
from torch import Tensor

SIZES = {"vocab_size": 11, "d_model": 8, "expansion": 2.0, "n_layers": 2}
VARIANTS = {
    "block_min_gru": SIZES
    | {"mixer": "min-gru", "conv": True, "ff": "mlp", "ff_mult": 4.0, "norm": "layer", "initial_state": "zero"},
    "block_min_lstm": SIZES
    | {"mixer": "min-lstm", "conv": False, "ff": "gated", "ff_mult": 2.0, "norm": "rms", "initial_state": "learned"},
}


def draw_weights(config: dict, rng: torch.Generator) -> Weights:
    """Float32 weights in PyTorch's default ranges; norms and learned vectors are off their defaults, to be seen."""
    d, vocab = config["d_model"], config["vocab_size"]
    e, m = int(config["expansion"] * d), int(config["ff_mult"] * d)
    weights: Weights = {}

    def normal(*shape: int) -> Tensor:
        return torch.randn(shape, generator=rng)

    def uniform(fan_in: int, *shape: int) -> Tensor:
        return (torch.rand(shape, generator=rng) * 2 - 1) * fan_in**-0.5

    def linear(name: str, rows: int, columns: int) -> None:
        weights[f"{name}.weight"] = uniform(columns, rows, columns)
        weights[f"{name}.bias"] = uniform(columns, rows)

    def norm(name: str) -> None:
        if config["norm"] == "rms":
            weights[f"{name}.gamma"] = 0.2 * normal(d)
        else:
            weights[f"{name}.weight"] = 1 + 0.2 * normal(d)
            weights[f"{name}.bias"] = 0.2 * normal(d)

    weights["embedding.weight"] = normal(vocab, d)
    for layer in range(config["n_layers"]):
        block = f"blocks.{layer}"
        if config["conv"]:
            weights[f"{block}.conv.depthwise.weight"] = uniform(4, d, 1, 4)
            weights[f"{block}.conv.depthwise.bias"] = uniform(4, d)
            linear(f"{block}.conv.pointwise", d, d)
        norm(f"{block}.mixer_norm")
        linear(f"{block}.mixer.in_proj", (2 if config["mixer"] == "min-gru" else 3) * e, d)
        linear(f"{block}.mixer.out_proj", d, e)
        if config["initial_state"] == "learned":
            weights[f"{block}.mixer.initial_state"] = normal(e)
        norm(f"{block}.ff_norm")
        linear(f"{block}.ff.up", (2 if config["ff"] == "gated" else 1) * m, d)
        linear(f"{block}.ff.down", d, m)
        if config["ff"] == "gated":
            weights[f"{block}.ff.scale"] = 1 + 0.2 * normal(m)
    norm("final_norm")
    weights["head.weight"] = uniform(d, vocab, d)
    return weights


def g(x: Tensor) -> Tensor:
    """The paper's positivity map: x + 1/2 for x >= 0, sigmoid(x) below."""
    return torch.where(x >= 0, x + 0.5, torch.sigmoid(x))


def linear(w: Weights, name: str, x: Tensor) -> Tensor:
    return x @ w[f"{name}.weight"].T + w[f"{name}.bias"]


def norm(w: Weights, name: str, x: Tensor) -> Tensor:
    """LayerNorm with eps 1e-5, or RMSNorm x / max(|x|, 1e-12) * sqrt(D) * (1 + gamma)."""
    if f"{name}.gamma" in w:
        return F.normalize(x, dim=-1, eps=1e-12) * x.shape[-1] ** 0.5 * (1 + w[f"{name}.gamma"])
    return F.layer_norm(x, x.shape[-1:], w[f"{name}.weight"], w[f"{name}.bias"], eps=1e-5)


def convolution(w: Weights, name: str, x: Tensor) -> Tensor:
    """Causal depthwise convolution of 4 steps, then pointwise; the last tap meets the present step."""
    padded = F.pad(x.transpose(1, 2), (3, 0))
    weight, bias = w[f"{name}.depthwise.weight"], w[f"{name}.depthwise.bias"]
    y = F.conv1d(padded, weight, bias, groups=weight.shape[0]).transpose(1, 2)
    return linear(w, f"{name}.pointwise", y)


def mixer(w: Weights, name: str, x: Tensor) -> Tensor:
    """minGRU, or minLSTM with normalised gates, and the projection back to D."""
    e = w[f"{name}.out_proj.weight"].shape[1]
    value, *gates = linear(w, f"{name}.in_proj", x).split(e, dim=-1)
    if len(gates) == 1:
        take = torch.sigmoid(gates[0])
    else:
        forget, take = torch.sigmoid(gates[0]), torch.sigmoid(gates[1])
        take = take / (forget + take)
    theta = w.get(f"{name}.initial_state")
    h = x.new_zeros(x.shape[0], e) if theta is None else g(theta).expand(x.shape[0], e)
    steps = []
    for t in range(x.shape[1]):
        h = (1 - take[:, t]) * h + take[:, t] * g(value[:, t])
        steps.append(h)
    return linear(w, f"{name}.out_proj", torch.stack(steps, dim=1))


def feed_forward(w: Weights, name: str, x: Tensor) -> Tensor:
    """down(gelu(up(x))), or gated: down(gelu(gate) * value * scale); GELU with erf."""
    y = linear(w, f"{name}.up", x)
    if f"{name}.scale" in w:
        value, gate = y.chunk(2, dim=-1)
        y = F.gelu(gate) * value * w[f"{name}.scale"]
    else:
        y = F.gelu(y)
    return linear(w, f"{name}.down", y)


def language_model(config: dict, w: Weights, tokens: Tensor) -> Tensor:
    """Logits [B, T, V]."""
    x = w["embedding.weight"][tokens]
    for layer in range(config["n_layers"]):
        block = f"blocks.{layer}"
        if config["conv"]:
            x = x + convolution(w, f"{block}.conv", x)
        x = x + mixer(w, f"{block}.mixer", norm(w, f"{block}.mixer_norm", x))
        x = x + feed_forward(w, f"{block}.ff", norm(w, f"{block}.ff_norm", x))
    return norm(w, "final_norm", x) @ w["head.weight"].T


def main() -> None:
    write_variants(__doc__.split("\n", 1)[0], VARIANTS, draw_weights, language_model)


if __name__ == "__main__":
    main()
