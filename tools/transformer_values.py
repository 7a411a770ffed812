"""Writes fixtures of two tiny Transformers, nanoGPT's block and Llama's, in the form of `reference_values.py`.

Computed by PyTorch in float64 with `scaled_dot_product_attention`; no dropout:

    x = embedding[tokens] (+ positions[t])
    per block:  x += out_proj(attention(in_proj(norm(x))))        rows of in_proj are queries, keys, values
                x += ff(norm(x))
    logits = head(norm(x)),   loss = mean cross-entropy

    python tools/transformer_values.py [--out crates/minrnn/tests/fixtures]

Letters: B batch, T time, D d_model, M feed-forward width, V vocabulary.
"""

import torch
import torch.nn.functional as F
from fixtures import Weights, write_variants
from reference_values import norm
from torch import Tensor

SIZES = {"mixer": "attention", "vocab_size": 11, "d_model": 8, "n_heads": 2, "n_layers": 2, "max_seq_len": 16, "bias": False}
VARIANTS = {
    "block_nano_gpt": SIZES | {"norm": "layer", "ff": "mlp", "ff_mult": 4.0, "positions": "learned", "tie_embeddings": True},
    "block_llama": SIZES | {"norm": "rms", "ff": "swi-glu", "ff_mult": 8 / 3, "positions": "rotary"},
}
MULTIPLE = 64  # the width of SwiGLU is rounded up to a multiple of this


def draw_weights(config: dict, rng: torch.Generator) -> Weights:
    """Float32 weights; gains are off their defaults, to be seen."""
    d, vocab = config["d_model"], config["vocab_size"]
    gated = config["ff"] == "swi-glu"
    m = -int(-config["ff_mult"] * d // MULTIPLE) * MULTIPLE if gated else int(config["ff_mult"] * d)
    weights: Weights = {}

    def matrix(name: str, rows: int, columns: int) -> None:
        weights[f"{name}.weight"] = torch.randn(rows, columns, generator=rng) * columns**-0.5

    def gain(name: str) -> None:
        noise = 0.2 * torch.randn(d, generator=rng)
        weights[f"{name}.gamma" if config["norm"] == "rms" else f"{name}.weight"] = noise + (config["norm"] != "rms")

    weights["embedding.weight"] = torch.randn(vocab, d, generator=rng)
    if config["positions"] == "learned":
        weights["positions.weight"] = torch.randn(config["max_seq_len"], d, generator=rng)
    for layer in range(config["n_layers"]):
        block = f"blocks.{layer}"
        gain(f"{block}.mixer_norm")
        matrix(f"{block}.mixer.in_proj", 3 * d, d)
        matrix(f"{block}.mixer.out_proj", d, d)
        gain(f"{block}.ff_norm")
        matrix(f"{block}.ff.up", 2 * m if gated else m, d)
        matrix(f"{block}.ff.down", d, m)
    gain("final_norm")
    if not config.get("tie_embeddings"):
        matrix("head", vocab, d)
    return weights


def turned(x: Tensor) -> Tensor:
    """Rotary positions of [B, heads, T, width]: halves are pairs, as in Llama's `rotate_half`."""
    width, steps = x.shape[-1], x.shape[-2]
    frequencies = 10_000.0 ** (-torch.arange(0, width, 2, dtype=x.dtype) / width)
    angles = torch.outer(torch.arange(steps, dtype=x.dtype), frequencies).repeat(1, 2)
    first, second = x.chunk(2, dim=-1)
    return x * angles.cos() + torch.cat((-second, first), dim=-1) * angles.sin()


def attention(config: dict, w: Weights, name: str, x: Tensor) -> Tensor:
    b, t, d = x.shape
    parts = (x @ w[f"{name}.in_proj.weight"].T).chunk(3, dim=-1)
    q, k, v = (part.view(b, t, config["n_heads"], -1).transpose(1, 2) for part in parts)
    if config["positions"] == "rotary":
        q, k = turned(q), turned(k)
    y = F.scaled_dot_product_attention(q, k, v, is_causal=True)
    return y.transpose(1, 2).reshape(b, t, d) @ w[f"{name}.out_proj.weight"].T


def feed_forward(config: dict, w: Weights, name: str, x: Tensor) -> Tensor:
    y = x @ w[f"{name}.up.weight"].T
    if config["ff"] == "swi-glu":
        value, gate = y.chunk(2, dim=-1)
        y = F.silu(gate) * value
    else:
        y = F.gelu(y)
    return y @ w[f"{name}.down.weight"].T


def normed(w: Weights, name: str, x: Tensor) -> Tensor:
    """LayerNorm without bias, or RMSNorm."""
    if f"{name}.gamma" in w:
        return norm(w, name, x)
    return F.layer_norm(x, x.shape[-1:], w[f"{name}.weight"], eps=1e-5)


def language_model(config: dict, w: Weights, tokens: Tensor) -> Tensor:
    """Logits [B, T, V]."""
    x = w["embedding.weight"][tokens]
    if "positions.weight" in w:
        x = x + w["positions.weight"][: tokens.shape[1]]
    for layer in range(config["n_layers"]):
        block = f"blocks.{layer}"
        x = x + attention(config, w, f"{block}.mixer", normed(w, f"{block}.mixer_norm", x))
        x = x + feed_forward(config, w, f"{block}.ff", normed(w, f"{block}.ff_norm", x))
    return normed(w, "final_norm", x) @ w.get("head.weight", w["embedding.weight"]).T


def main() -> None:
    write_variants(__doc__.split("\n", 1)[0], VARIANTS, draw_weights, language_model)


if __name__ == "__main__":
    main()
