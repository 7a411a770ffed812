"""Opens the folders that `minrnn export` writes with the libraries they are for, and models of these libraries with `minrnn import`.

    python -m venv env && env/bin/pip install torch transformers safetensors xlstm omegaconf dacite
    cargo build --release
    env/bin/python tools/check_folders.py target/release/minrnn

Out and back: a Mamba of transformers, saved in f32, bf16 and f16, whole and in parts, is imported, exported, and opened by AutoModelForCausalLM: the
same logits within 1e-4. Trained here: models of characters, bytes and pieces are trained for a moment and exported; the folder is opened by the code
of its own README, its tokenizer gives the ids, and the library is as surprised by every token of a text as `minrnn score`, within 1e-4.
"""

import argparse
import csv
import re
import subprocess
import tempfile
from pathlib import Path

import torch
from tokenizers import Tokenizer
from torch import Tensor

TOLERANCE = 1e-4
TEXT = "".join(f"the {i % 7} café ran {i * i % 13} times; " + ("\n" if i % 3 == 0 else "") for i in range(400))


def run(minrnn: str, *arguments: object) -> str:
    done = subprocess.run([minrnn, *map(str, arguments)], capture_output=True, text=True)
    if done.returncode != 0:
        raise SystemExit(f"minrnn {' '.join(map(str, arguments))}: {done.stderr}")
    return done.stdout


def expect_close(what: str, found: Tensor, expected: Tensor) -> None:
    error = float((found.double() - expected.double()).abs().max() / max(1.0, float(expected.abs().max())))
    if found.shape != expected.shape or not error <= TOLERANCE:
        raise SystemExit(f"{what}: error {error:.1e}, shapes {found.shape} and {expected.shape}")
    print(f"{what}: error {error:.1e}")


def out_and_back(minrnn: str, folder: Path) -> None:
    from transformers import AutoModelForCausalLM, MambaConfig, MambaForCausalLM

    sizes = {"vocab_size": 97, "hidden_size": 48, "state_size": 8, "num_hidden_layers": 3}
    for i, (dtype, tied, shard) in enumerate(
        [(torch.float32, True, "5GB"), (torch.bfloat16, False, "40KB"), (torch.float16, True, "40KB"), (torch.float32, False, "40KB")]
    ):
        torch.manual_seed(i)
        config = MambaConfig(**sizes, tie_word_embeddings=tied, layer_norm_epsilon=1e-3, conv_kernel=3 + i % 2)
        saved, imported, exported = (folder / f"{name}-{i}" for name in ("saved", "imported", "exported"))
        MambaForCausalLM(config).to(dtype).save_pretrained(saved, max_shard_size=shard)
        run(minrnn, "import", saved, "--format", "mamba-hf", "-o", imported)
        run(minrnn, "export", imported, "--format", "mamba-hf", "-o", exported)
        ids = torch.randint(sizes["vocab_size"], (2, 40))
        with torch.no_grad():
            ours, theirs = (AutoModelForCausalLM.from_pretrained(path, dtype=torch.float32).eval() for path in (exported, saved))
            files = len(list(saved.glob("*.safetensors")))
            expect_close(f"transformers, {dtype}, {files} files", ours(ids).logits, theirs(ids).logits)
            shown = ours.generate(ids[:, :4], max_new_tokens=3, do_sample=False)
            if shown.shape != (2, 7):
                raise SystemExit(f"generated {shown.shape}")


def opened(folder: Path, ids: list[int]) -> Tensor:
    """The logits [T, V] of the ids, by the code of the folder's README."""
    code = re.search(r"```python\n(.*?)```", (folder / "README.md").read_text(), re.S).group(1)
    names = {"ids": torch.tensor([ids])}
    exec(code.replace('"model"', repr(str(folder))), names)
    return names["logits"][0]


def trained(minrnn: str, folder: Path) -> None:
    from transformers import AutoTokenizer

    text = folder / "text.txt"
    text.write_text(TEXT)
    common = ["d_model=32", "n_layers=2", "max_iterations=60", "conv=false", "initial_state=zero", "batch_size=4", "seq_len=32"]
    xlstm = ["mixers=m-lstm,s-lstm", "norm=layer", "bias=false", "ff=ge-glu", "ff_mult=1.3", "n_heads=2", "max_seq_len=20000"]
    cases = [
        ("mamba-hf", "char", ["mixer=mamba", "ff=none", "norm=rms"]),
        ("mamba-hf", "byte", ["mixer=mamba", "ff=none", "norm=rms", "tie_embeddings=true", "rms_eps=1e-5"]),
        ("mamba-hf", "bpe", ["mixer=mamba", "ff=none", "norm=rms", "d_state=4"]),
        ("xlstm", "char", xlstm),
        ("xlstm", "bpe", [*xlstm, "slstm_conv=false", "tie_embeddings=true"]),
    ]
    for i, (form, tokenizer, settings) in enumerate(cases):
        model, exported, scored = folder / f"run-{i}", folder / f"folder-{i}", folder / f"scored-{i}.csv"
        sets = [argument for setting in [*common, *settings, f"tokenizer={tokenizer}", "bpe_vocab_size=280"] for argument in ("--set", setting)]
        if tokenizer != "bpe":
            sets = sets[:-2]
        run(minrnn, "train", "--data", text, "--out", model, *sets)
        run(minrnn, "export", model, "--format", form, "-o", exported)
        run(minrnn, "score", model, "--data", text, "--by", "token", "--out", scored)
        with scored.open(newline="", encoding="utf-8") as rows:
            expected = torch.tensor([float(row["surprise"] or "nan") for row in csv.DictReader(rows)])
        all_ids = Tokenizer.from_file(str(exported / "tokenizer.json")).encode(TEXT).ids
        if form == "mamba-hf":
            auto = AutoTokenizer.from_pretrained(exported)
            if auto(TEXT).input_ids != all_ids or auto.decode(all_ids) != TEXT:
                raise SystemExit(f"{form} of {tokenizer}: AutoTokenizer gives other ids or another text")
        ids = all_ids[:1000]
        logits = opened(exported, ids)
        found = -logits.log_softmax(-1)[range(len(ids) - 1), ids[1:]]
        expect_close(f"{form} of {tokenizer}", found, expected[1 : len(ids)])


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n", 1)[0])
    parser.add_argument("minrnn", help="the command")
    args = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        out_and_back(args.minrnn, Path(folder))
        trained(args.minrnn, Path(folder))


if __name__ == "__main__":
    main()
