"""The language model in JAX, a function of a dictionary of weights.

Letters: B batch, T time, D d_model, E d_inner, V vocabulary.
"""

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array, random
from jax_cells import CELLS, check_cells, g
from lm_setting import KERNEL, Setting, check_model

Weights = dict[str, Array]


def linear(w: Weights, name: str, x: Array) -> Array:
    return x @ w[f"{name}.weight"].T + w[f"{name}.bias"]


def norm(w: Weights, name: str, x: Array) -> Array:
    """LayerNorm with eps 1e-5, or RMSNorm x / max(|x|, 1e-12) * sqrt(D) * (1 + gamma)."""
    if f"{name}.gamma" in w:
        length = jnp.sqrt(jnp.sum(x * x, -1, keepdims=True))
        return x / jnp.maximum(length, 1e-12) * x.shape[-1] ** 0.5 * (1 + w[f"{name}.gamma"])
    centred = x - x.mean(-1, keepdims=True)
    variance = jnp.mean(centred * centred, -1, keepdims=True)
    return centred * jax.lax.rsqrt(variance + 1e-5) * w[f"{name}.weight"] + w[f"{name}.bias"]


def convolution(w: Weights, name: str, x: Array) -> Array:
    """Four shifted products (XLA's grouped convolution is many times slower on a CPU), then the pointwise layer."""
    taps = w[f"{name}.depthwise.weight"][:, 0]
    padded = jnp.pad(x, ((0, 0), (KERNEL - 1, 0), (0, 0)))
    y = sum(padded[:, j : j + x.shape[1]] * taps[:, j] for j in range(KERNEL))
    return linear(w, f"{name}.pointwise", y + w[f"{name}.depthwise.bias"])


def mixer(s: Setting, impl: str, w: Weights, name: str, x: Array) -> Array:
    h0 = jnp.zeros((x.shape[0], s.d_inner))
    if s.learned_state:
        h0 += g(w[f"{name}.initial_state"])
    return linear(w, f"{name}.out_proj", CELLS[impl](s.mixer, linear(w, f"{name}.in_proj", x), h0))


def feed_forward(w: Weights, name: str, x: Array) -> Array:
    return linear(w, f"{name}.down", jax.nn.gelu(linear(w, f"{name}.up", x), approximate=False))


def language_model(s: Setting, impl: str, w: Weights, tokens: Array, key: Array | None = None) -> Array:
    """Logits [B, T, V]; dropout acts when there is a key."""

    def dropout(x: Array, site: int) -> Array:
        if key is None or s.dropout == 0.0:
            return x
        kept = random.bernoulli(random.fold_in(key, site), 1 - s.dropout, x.shape)
        return jnp.where(kept, x / (1 - s.dropout), 0.0)

    x = dropout(w["embedding.weight"][tokens], 0)
    for layer in range(s.n_layers):
        block = f"blocks.{layer}"
        x = x + convolution(w, f"{block}.conv", x)
        x = x + dropout(mixer(s, impl, w, f"{block}.mixer", norm(w, f"{block}.mixer_norm", x)), 2 * layer + 1)
        x = x + dropout(feed_forward(w, f"{block}.ff", norm(w, f"{block}.ff_norm", x)), 2 * layer + 2)
    return norm(w, "final_norm", x) @ w["head.weight"].T


def check_jax_model() -> None:
    """Cells against the loop, the model against the fixture."""
    check_cells()
    for impl in CELLS:
        check_model(impl, lambda s, weights, tokens: np.asarray(language_model(s, impl, weights, tokens)))
