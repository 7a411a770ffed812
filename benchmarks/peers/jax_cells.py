"""minGRU and minLSTM in JAX: `lax.scan` over time, and `lax.associative_scan`.

A cell maps pre-activations [B, T, 2e] (candidate, z) or [B, T, 3e] (candidate, f, i; gates normalised) and a state
h0 [B, e] to h [B, T, e].
"""

from collections.abc import Callable

import jax
import jax.numpy as jnp
import numpy as np
from common import PROJECTIONS, check_cell
from jax import Array, lax

Cell = Callable[[str, Array, Array], Array]


def g(x: Array) -> Array:
    return jnp.where(x >= 0, x + 0.5, jax.nn.sigmoid(x))


def gates(mixer: str, preact: Array) -> tuple[Array, Array]:
    """How much of the candidate each step takes, and the candidate."""
    value, *gates = jnp.split(preact, PROJECTIONS[mixer], axis=-1)
    take = gates[0] if mixer == "min-gru" else jax.nn.softplus(-gates[0]) - jax.nn.softplus(-gates[1])
    return jax.nn.sigmoid(take), g(value)


def scan(mixer: str, preact: Array, h0: Array) -> Array:
    """Time-major, gates computed inside the step."""

    def step(h: Array, preact_t: Array) -> tuple[Array, Array]:
        take, value = gates(mixer, preact_t)
        h = h + take * (value - h)
        return h, h

    return lax.scan(step, h0, preact.swapaxes(0, 1))[1].swapaxes(0, 1)


def associative_scan(mixer: str, preact: Array, h0: Array) -> Array:
    def combine(first: tuple[Array, Array], second: tuple[Array, Array]) -> tuple[Array, Array]:
        return first[0] * second[0], second[0] * first[1] + second[1]

    take, value = gates(mixer, preact)
    coeffs, values = lax.associative_scan(combine, (1 - take, take * value), axis=1)
    return coeffs * h0[:, None] + values


CELLS: dict[str, Cell] = {"jax-scan": scan, "jax-associative-scan": associative_scan}


def check_cells() -> None:
    for impl, cell in CELLS.items():
        for mixer in ("min-gru", "min-lstm"):
            check_cell(impl, mixer, lambda preact, h0: np.asarray(cell(mixer, preact, h0)))
