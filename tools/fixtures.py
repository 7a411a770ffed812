"""What the writers of fixtures share: a tiny model's logits, loss and gradients computed by PyTorch, and the model of the xlstm package.

It lies beside the scripts that import it, which are run by their paths.
"""

import argparse
import json
from collections.abc import Callable
from pathlib import Path

import torch
import torch.nn.functional as F
from safetensors.torch import save_file
from torch import Tensor, nn

BATCH, SEQ_LEN = 2, 9
Weights = dict[str, Tensor]


def fixture(
    config: dict,
    seed: int,
    draw_weights: Callable[[dict, torch.Generator], Weights],
    language_model: Callable[[dict, Weights, Tensor], Tensor],
) -> dict[str, Tensor]:
    """The weights that `draw_weights` draws for `config`, tokens, and what `language_model` computes of them in float64."""
    rng = torch.Generator().manual_seed(seed)
    weights = draw_weights(config, rng)
    tokens, targets = torch.randint(config["vocab_size"], (2, BATCH, SEQ_LEN), generator=rng)
    leaves = {name: tensor.double().requires_grad_() for name, tensor in weights.items()}
    logits = language_model(config, leaves, tokens)
    loss = F.cross_entropy(logits.flatten(0, 1), targets.flatten())
    gradients = torch.autograd.grad(loss, list(leaves.values()))
    expect = {"logits": logits, "loss": loss.reshape(1)}
    expect |= {f"grad.{name}": gradient for name, gradient in zip(leaves, gradients, strict=True)}
    tensors = weights | {f"expect.{name}": tensor.detach().float() for name, tensor in expect.items()}
    tensors |= {"input.tokens": tokens.int(), "target.tokens": targets.int()}
    return {name: tensor.contiguous() for name, tensor in tensors.items()}


def write_variants(
    description: str,
    variants: dict[str, dict],
    draw_weights: Callable[[dict, torch.Generator], Weights],
    language_model: Callable[[dict, Weights, Tensor], Tensor],
) -> None:
    """The command line of a script that writes a fixture for each of `variants`, configurations by name."""
    parser = argparse.ArgumentParser(description=description)
    parser.add_argument("--out", type=Path, default=Path("crates/minrnn/tests/fixtures"))
    out = parser.parse_args().out
    out.mkdir(parents=True, exist_ok=True)
    for seed, (name, config) in enumerate(variants.items()):
        tensors = fixture(config, seed, draw_weights, language_model)
        save(tensors, out / f"{name}.safetensors", {"config": json.dumps(config)})


def save(tensors: dict[str, Tensor], path: Path, metadata: dict[str, str]) -> None:
    """Writes a fixture and says how large it is."""
    save_file(tensors, path, metadata=metadata)
    print(f"{path}: {path.stat().st_size / 1024:.1f} KiB")


def xlstm_model(*, vocab_size: int, heads: int, context_length: int, blocks: int, width: int, slstm_at: list[int]) -> nn.Module:
    """xLSTMLMModel of NX-AI's xlstm with the vanilla back end."""
    from xlstm import (
        FeedForwardConfig,
        mLSTMBlockConfig,
        mLSTMLayerConfig,
        sLSTMBlockConfig,
        sLSTMLayerConfig,
        xLSTMLMModel,
        xLSTMLMModelConfig,
    )

    feed_forward = FeedForwardConfig(proj_factor=1.3, act_fn="gelu")
    config = xLSTMLMModelConfig(
        vocab_size=vocab_size,
        mlstm_block=mLSTMBlockConfig(mlstm=mLSTMLayerConfig(num_heads=heads)),
        slstm_block=sLSTMBlockConfig(slstm=sLSTMLayerConfig(backend="vanilla", num_heads=heads), feedforward=feed_forward),
        context_length=context_length,
        num_blocks=blocks,
        embedding_dim=width,
        slstm_at=slstm_at,
    )
    return xLSTMLMModel(config)
