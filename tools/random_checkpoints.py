"""Writes models of other libraries at sizes they are used at, with random weights, and decodes with transformers for comparison.

    python -m venv env && env/bin/pip install torch safetensors numpy transformers minGRU-pytorch xlstm omegaconf dacite
    env/bin/python tools/random_checkpoints.py DIR [--only NAME]
    env/bin/python tools/random_checkpoints.py DIR --decode mamba-130m --threads 1

A model is `DIR/NAME.safetensors`, beside it `DIR/bytes.json`, a vocabulary of bytes for models that have read none: of larger
vocabularies, its tokens are the first 256. `--decode` prints the fastest of several runs in tokens per second: greedy, one sequence,
the state carried, after a prompt of 16 tokens.
"""

import argparse
import json
import time
from collections.abc import Callable
from pathlib import Path

import torch
from fixtures import xlstm_model
from safetensors.torch import load_file, save_file
from torch import Tensor, nn

SEED = 1
PROMPT, TOKENS, RUNS = 16, 48, 4

State = dict[str, Tensor]


def mamba(layers: int = 24) -> nn.Module:
    """The sizes of state-spaces/mamba-130m-hf."""
    from transformers import MambaConfig, MambaForCausalLM

    return MambaForCausalLM(MambaConfig(hidden_size=768, num_hidden_layers=layers, vocab_size=50280, tie_word_embeddings=True)).eval()


def min_lm() -> State:
    """minLM at the sizes of its README, with a BPE's vocabulary."""
    from minGRU_pytorch.minLM import minLM

    return minLM(num_tokens=50257, dim=512, depth=6).state_dict()


def xlstm() -> State:
    """xLSTM[7:1] of 125M parameters, after the paper's table."""
    model = xlstm_model(vocab_size=50257, heads=4, context_length=256, blocks=24, width=768, slstm_at=[3, 20])
    return model.state_dict()


def nano_gpt() -> State:
    """GPT-2 of 124M parameters by nanoGPT's names."""
    width, layers, vocabulary, block_size = 768, 12, 50257, 1024
    state = {"transformer.wte.weight": torch.randn(vocabulary, width), "transformer.wpe.weight": torch.randn(block_size, width)}
    for i in range(layers):
        layer = f"transformer.h.{i}"
        for norm in ("ln_1", "ln_2"):
            state |= {f"{layer}.{norm}.weight": torch.ones(width), f"{layer}.{norm}.bias": torch.zeros(width)}
        for name, rows, columns in (
            ("attn.c_attn", 3 * width, width),
            ("attn.c_proj", width, width),
            ("mlp.c_fc", 4 * width, width),
            ("mlp.c_proj", width, 4 * width),
        ):
            state |= {f"{layer}.{name}.weight": torch.randn(rows, columns), f"{layer}.{name}.bias": torch.zeros(rows)}
    state = {name: 0.02 * tensor if tensor.dim() == 2 else tensor for name, tensor in state.items()}
    state |= {"transformer.ln_f.weight": torch.ones(width), "transformer.ln_f.bias": torch.zeros(width)}
    return state | {"lm_head.weight": state["transformer.wte.weight"]}


MODELS: dict[str, Callable[[], State]] = {
    "mamba-130m": lambda: mamba().state_dict(),
    "min-lm": min_lm,
    "xlstm-125m": xlstm,
    "nano-gpt-124m": nano_gpt,
}


def write(directory: Path, only: str | None) -> None:
    directory.mkdir(parents=True, exist_ok=True)
    (directory / "bytes.json").write_text(json.dumps({"format": "minrnn-tokenizer", "version": 1, "kind": "byte"}))
    for name, make in MODELS.items():
        if only in (None, name):
            torch.manual_seed(SEED)
            # Tied tensors share memory, which the file format does not allow.
            tensors = {key: tensor.float().clone().contiguous() for key, tensor in make().items()}
            path = directory / f"{name}.safetensors"
            save_file(tensors, path)
            print(f"{path}: {sum(tensor.numel() for tensor in tensors.values()) / 1e6:.1f} M numbers")


@torch.inference_mode()
def decode(path: Path, threads: int) -> None:
    torch.set_num_threads(threads)
    model = mamba()
    model.load_state_dict(load_file(path))
    prompt = torch.arange(PROMPT).unsqueeze(0) + 97

    def seconds(tokens: int) -> float:
        begin = time.perf_counter()
        model.generate(prompt, max_new_tokens=tokens, min_new_tokens=tokens, do_sample=False, use_cache=True, pad_token_id=0)
        return time.perf_counter() - begin

    # The cost of the prompt and of a call cancels out.
    fastest = min(seconds(TOKENS + 1) for _ in range(RUNS)) - min(seconds(1) for _ in range(RUNS))
    print(f"transformers, {threads} threads: {TOKENS / fastest:.1f} tokens/s")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n", 1)[0])
    parser.add_argument("directory", type=Path)
    parser.add_argument("--only", choices=MODELS, help="write this model alone")
    parser.add_argument("--decode", choices=["mamba-130m"], help="decode with this model, which has been written")
    parser.add_argument("--threads", type=int, default=1)
    args = parser.parse_args()
    if args.decode is None:
        write(args.directory, args.only)
    else:
        decode(args.directory / f"{args.decode}.safetensors", args.threads)


if __name__ == "__main__":
    main()
