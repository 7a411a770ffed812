"""One training step of the Shakespeare model in JAX, one jitted function: forward, loss, backward, clip, AdamW."""

from functools import partial

import jax
import jax.numpy as jnp
import lm_setting
import numpy as np
from common import Case, Step, run
from jax import Array, random
from jax_cells import CELLS
from jax_model import Weights, check_jax_model, language_model
from lm_setting import Setting

IMPLEMENTATIONS = {name: ("min-gru", "min-lstm") for name in CELLS}


def clip(gradients: Weights) -> Weights:
    total = jnp.sqrt(sum(jnp.sum(gradient * gradient) for gradient in gradients.values()))
    scale = jnp.minimum(1.0, lm_setting.CLIP_NORM / (total + 1e-6))
    return {name: gradient * scale for name, gradient in gradients.items()}


def adamw(w: Array, gradient: Array, m: Array, v: Array, iteration: Array) -> tuple[Array, Array, Array]:
    """New weight and moments; `iteration` counts from 1; vectors do not decay."""
    beta1, beta2 = lm_setting.BETAS
    m = beta1 * m + (1 - beta1) * gradient
    v = beta2 * v + (1 - beta2) * gradient * gradient
    decay = lm_setting.WEIGHT_DECAY if w.ndim >= 2 else 0.0
    update = m / (1 - beta1**iteration) / (jnp.sqrt(v / (1 - beta2**iteration)) + lm_setting.EPSILON)
    return w * (1 - lm_setting.LEARNING_RATE * decay) - lm_setting.LEARNING_RATE * update, m, v


def build(case: Case) -> tuple[Step, dict]:
    setting = Setting.of(case)
    weights = {name: jnp.asarray(value) for name, value in lm_setting.initial_values(setting).items()}
    zeros = {name: jnp.zeros_like(value) for name, value in weights.items()}
    rng = np.random.default_rng(0)

    def loss_of(w: Weights, tokens: Array, targets: Array, key: Array) -> Array:
        log_p = jax.nn.log_softmax(language_model(setting, case.impl, w, tokens, key))
        return -jnp.take_along_axis(log_p, targets[..., None], axis=-1).mean()

    @partial(jax.jit, donate_argnums=0)
    def train(state: tuple, tokens: Array, targets: Array) -> tuple[tuple, Array]:
        w, m, v, iteration = state
        key = random.fold_in(random.key(0), iteration)
        loss, gradients = jax.value_and_grad(loss_of)(w, tokens, targets, key)
        gradients = clip(gradients)
        new = {name: adamw(w[name], gradients[name], m[name], v[name], iteration) for name in w}
        w, m, v = ({name: part[i] for name, part in new.items()} for i in range(3))
        return (w, m, v, iteration + 1), loss

    state = (weights, zeros, jax.tree.map(jnp.copy, zeros), jnp.int32(1))

    def step() -> None:
        nonlocal state
        state, loss = train(state, *lm_setting.batch(case, rng))
        jax.block_until_ready((state, loss))

    return step, {
        "flop": lm_setting.flop(case, case.batch_size * case.seq_len, backward=True),
        "parameters": lm_setting.parameter_count(case),
        "version": f"jax {jax.__version__}",
    }


if __name__ == "__main__":
    run(
        "lm",
        IMPLEMENTATIONS,
        build,
        check_jax_model,
        impl=["jax-scan"],
        mixer=["min-gru"],
        d_model=384,
        d_hidden=768,
        batch_size=64,
        seq_len=[256],
    )
