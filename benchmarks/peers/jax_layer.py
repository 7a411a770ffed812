"""One recurrent layer in JAX: in-projection, recurrence, loss = sum(w * h), backward to x, h0 and the weights."""

import jax
import jax.numpy as jnp
from common import PROJECTIONS, Case, Step, layer_flop, run
from jax import random
from jax_cells import CELLS, check_cells

IMPLEMENTATIONS = {name: ("min-gru", "min-lstm") for name in CELLS}


def build(case: Case) -> tuple[Step, dict]:
    b, t, d, e = case.batch_size, case.seq_len, case.d_model, case.d_hidden
    rows = PROJECTIONS[case.mixer] * e
    keys = random.split(random.key(0), 5)
    leaves = {
        "x": random.normal(keys[0], (b, t, d)),
        "h0": random.uniform(keys[1], (b, e)),
        "weight": random.uniform(keys[2], (rows, d), minval=-1, maxval=1) * d**-0.5,
        "bias": random.uniform(keys[3], (rows,), minval=-1, maxval=1) * d**-0.5,
    }
    loss_weight = random.normal(keys[4], (b, t, e))
    cell = CELLS[case.impl]

    @jax.jit
    @jax.value_and_grad
    def loss_and_gradients(leaves: dict, loss_weight: jax.Array) -> jax.Array:
        preact = leaves["x"] @ leaves["weight"].T + leaves["bias"]
        return jnp.sum(loss_weight * cell(case.mixer, preact, leaves["h0"]))

    def step() -> None:
        jax.block_until_ready(loss_and_gradients(leaves, loss_weight))

    return step, {"flop": layer_flop(case), "version": f"jax {jax.__version__}"}


if __name__ == "__main__":
    run(
        "layer",
        IMPLEMENTATIONS,
        build,
        check_cells,
        d_model=64,
        d_hidden=128,
        batch_size=64,
        seq_len=[64, 256, 512, 1024, 4096],
    )
