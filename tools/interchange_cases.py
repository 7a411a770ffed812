"""Writes the fixtures of imports and exports: models of other libraries, an input, and the logits the libraries compute.

The models are those of the packages themselves, small and with weights off their initial values; where there is no package
(BorealisAI/minRNNs, nanoGPT) the model is written down here under its names of parameters. Logits are computed in float64.

    python -m venv env && env/bin/pip install torch safetensors numpy minGRU-pytorch transformers xlstm omegaconf dacite
    env/bin/pip install --no-deps --target older minGRU-pytorch==0.0.14
    env/bin/python tools/interchange_cases.py --older older [--only CASE] [--out crates/minrnn/tests/fixtures/interchange]

A fixture holds the tensors of the model, `case.tokens` [B, T] (as floats), `case.logits` [B, T, V], and as JSON under `case` in its
metadata the format and the settings of the import. Where the format is a part of a model, `case.rest.NAME` are the other tensors under
our names, and the JSON has the configuration of the whole.

Letters: B batch, T time, D d_model, E d_inner, M feed-forward width, V vocabulary.
"""

import argparse
import importlib
import json
import sys
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

import torch
import torch.nn.functional as F
from fixtures import BATCH, SEQ_LEN, save, xlstm_model
from torch import Tensor, nn

VOCAB, D = 11, 8


@dataclass
class Case:
    """A model, and how it is to be imported."""

    format: str
    model: nn.Module
    logits: Callable[[Tensor], Tensor]
    settings: str = ""
    state: dict[str, Tensor] | None = None
    config: dict = field(default_factory=dict)
    rest: dict[str, Tensor] = field(default_factory=dict)


def off_initial_values(model: nn.Module) -> nn.Module:
    """The model in evaluation and float64, every float32 parameter and statistic moved away from where it starts."""
    with torch.no_grad():
        for name, tensor in model.state_dict().items():
            if not tensor.is_floating_point():
                continue
            noise = torch.randn(tensor.shape)
            if name.endswith("running_var"):
                tensor.add_(noise.abs())
            else:
                tensor.add_(0.1 * noise)
    return model.double().eval()


def min_lm(package: str, name: str, **options: object) -> Case:
    """lucidrains/minGRU-pytorch."""
    model_class = getattr(importlib.import_module(package), name)
    model = off_initial_values(model_class(num_tokens=VOCAB, dim=D, depth=2, **options))
    return Case("min-gru-pytorch", model, model)


def older_min_gru_lm(older: Path | None) -> Case:
    """minGRULM, which the current package no longer has."""
    if older is None:
        raise SystemExit("give --older, where minGRU-pytorch==0.0.14 is installed")
    current = {name: module for name, module in sys.modules.items() if name.split(".")[0] == "minGRU_pytorch"}
    for name in current:
        del sys.modules[name]
    sys.path.insert(0, str(older))
    try:
        return min_lm("minGRU_pytorch.minGRULM", "minGRULM")
    finally:
        sys.path.pop(0)
        for name in [name for name in sys.modules if name.split(".")[0] == "minGRU_pytorch"]:
            del sys.modules[name]
        sys.modules.update(current)


def g(x: Tensor) -> Tensor:
    """The paper's positivity map: x + 1/2 for x >= 0, sigmoid(x) below."""
    return torch.where(x >= 0, x + 0.5, torch.sigmoid(x))


class MinRnn(nn.Module):
    """minGRU (2 parts) or minLSTM (3 parts: candidate, forget gate, input gate) with independent or normalised gates."""

    def __init__(self, parts: int, d_inner: int, learned: bool, normalized: bool) -> None:
        super().__init__()
        self.to_hidden_and_gate = nn.Linear(D, parts * d_inner)
        self.to_out = nn.Linear(d_inner, D)
        self.init_hidden_state = nn.Parameter(torch.randn(d_inner)) if learned else None
        self.parts, self.normalized = parts, normalized

    def forward(self, x: Tensor) -> Tensor:
        value, *gates = self.to_hidden_and_gate(x).chunk(self.parts, dim=-1)
        gates = [torch.sigmoid(gate) for gate in gates]
        keep, take = (1 - gates[0], gates[0]) if self.parts == 2 else gates
        if self.normalized:
            keep, take = keep / (keep + take), take / (keep + take)
        h = torch.zeros_like(value[:, 0]) if self.init_hidden_state is None else g(self.init_hidden_state)
        states = []
        for t in range(x.shape[1]):
            h = keep[:, t] * h + take[:, t] * g(value[:, t])
            states.append(h)
        return self.to_out(torch.stack(states, dim=1))


class RmsNorm(nn.Module):
    """x / |x| * sqrt(D) * (1 + gamma)."""

    def __init__(self) -> None:
        super().__init__()
        self.gamma = nn.Parameter(torch.zeros(D))

    def forward(self, x: Tensor) -> Tensor:
        return F.normalize(x, dim=-1) * D**0.5 * (1 + self.gamma)


class ChannelNorm(nn.Module):
    """BatchNorm of [B, T, D] over batch and time."""

    def __init__(self) -> None:
        super().__init__()
        self.norm = nn.BatchNorm1d(D, momentum=0.9)

    def forward(self, x: Tensor) -> Tensor:
        return self.norm(x.transpose(1, 2)).transpose(1, 2)


class CausalConv(nn.Module):
    """Depthwise over `taps` steps, then pointwise."""

    def __init__(self, taps: int) -> None:
        super().__init__()
        self.net = nn.Sequential(nn.Conv1d(D, D, taps, groups=D), nn.Conv1d(D, D, 1))
        self.taps = taps

    def forward(self, x: Tensor) -> Tensor:
        return self.net(F.pad(x.transpose(1, 2), (self.taps - 1, 0))).transpose(1, 2)


class GatedGelu(nn.Module):
    """GELU(second half) * first half * a learned vector."""

    def __init__(self, width: int) -> None:
        super().__init__()
        self.mult_bias = nn.Parameter(torch.ones(width))

    def forward(self, x: Tensor) -> Tensor:
        value, gate = x.chunk(2, dim=-1)
        return F.gelu(gate) * value * self.mult_bias


class MinRnnsModel(nn.Module):
    """The model of BorealisAI/minRNNs over tokens, by its names of parameters."""

    def __init__(self, cell: Callable[[], MinRnn], norm: type[nn.Module], conv: bool, ff: int | None) -> None:
        super().__init__()

        def layer() -> nn.ModuleList:
            feed_forward = None
            if ff is not None:
                feed_forward = nn.Sequential(nn.Linear(D, 2 * ff * D), GatedGelu(ff * D), nn.Linear(ff * D, D))
            return nn.ModuleList([CausalConv(4) if conv else None, norm(), cell(), norm(), feed_forward])

        self.token_emb = nn.Embedding(VOCAB, D)
        self.layers = nn.ModuleList([layer() for _ in range(2)])
        self.norm = norm()
        self.to_out = nn.Linear(D, VOCAB, bias=False)

    def forward(self, tokens: Tensor) -> Tensor:
        x = self.token_emb(tokens)
        for conv, norm, cell, ff_norm, ff in self.layers:
            if conv is not None:
                x = x + conv(x)
            x = x + cell(norm(x))
            if ff is not None:
                x = x + ff(ff_norm(x))
        return self.to_out(self.norm(x))


def min_rnns(parts: int, norm: type[nn.Module], settings: str, normalized: bool = False, **options: object) -> Case:
    model = MinRnnsModel(lambda: MinRnn(parts, 12, norm is RmsNorm, normalized), norm, **options)
    model = off_initial_values(model)
    return Case("min-rnns", model, model, settings)


def torch_layers(kind: type[nn.RNNBase], d_inner: int, bias: bool = True) -> Case:
    """Layers of PyTorch inside our block: x + out_proj(layer(norm(x))). Of equal widths they are one stack, else a list."""
    name = kind.__name__.lower()
    layers = [kind(D, d_inner, bias=bias, batch_first=True) for _ in range(2)]
    stack = kind(D, d_inner, num_layers=2, bias=bias) if d_inner == D else nn.ModuleList(layers)
    off_initial_values(stack)
    for i, layer in enumerate(layers):
        if d_inner == D:
            layer.load_state_dict({key: stack.state_dict()[key.replace("l0", f"l{i}")] for key in layer.state_dict()})
        layer.double()
    rest = {"embedding.weight": torch.randn(VOCAB, D), "head.weight": torch.randn(VOCAB, D)}
    rest["backbone.final_norm.gamma"] = 0.1 * torch.randn(D)
    for i in range(2):
        block = f"backbone.blocks.{i}"
        rest[f"{block}.mixer_norm.gamma"] = 0.1 * torch.randn(D)
        rest[f"{block}.mixer.out_proj.weight"] = 0.5 * torch.randn(D, d_inner)
        rest[f"{block}.mixer.out_proj.bias"] = 0.1 * torch.randn(D)

    def norm(x: Tensor, where: str) -> Tensor:
        return F.normalize(x, dim=-1) * D**0.5 * (1 + rest[f"{where}.gamma"].double())

    def logits(tokens: Tensor) -> Tensor:
        x = rest["embedding.weight"].double()[tokens]
        for i, layer in enumerate(layers):
            block = f"backbone.blocks.{i}"
            y, _ = layer(norm(x, f"{block}.mixer_norm"))
            out_proj = [rest[f"{block}.mixer.out_proj.{part}"].double() for part in ("weight", "bias")]
            x = x + F.linear(y, *out_proj)
        return norm(x, "backbone.final_norm") @ rest["head.weight"].double().T

    config = {"mixer": name, "gru_form": "torch", "vocab_size": VOCAB, "d_model": D, "expansion": d_inner / D, "n_layers": 2, "ff": "none"}
    return Case(f"torch-{name}", stack, logits, config=config, rest=rest)


def mamba(tied: bool, **options: object) -> Case:
    """MambaForCausalLM of transformers, by its path of plain PyTorch."""
    from transformers import MambaConfig, MambaForCausalLM

    options |= {"hidden_size": D, "state_size": 4, "num_hidden_layers": 2, "tie_word_embeddings": tied, "use_cache": False}
    config = MambaConfig(vocab_size=VOCAB, **options)
    model = off_initial_values(MambaForCausalLM(config))
    if not tied:
        model.lm_head.weight.data = torch.randn(VOCAB, D).double()
    return Case("mamba-hf", model, lambda tokens: model(tokens).logits)


def xlstm(heads: int, slstm_at: list[int]) -> Case:
    """xLSTMLMModel of NX-AI's xlstm, three blocks."""
    model = off_initial_values(
        xlstm_model(vocab_size=VOCAB, heads=heads, context_length=SEQ_LEN, blocks=3, width=16, slstm_at=slstm_at)
    )
    for name, tensor in model.state_dict().items():
        if name.endswith(("xlstm_norm.weight", "ffn_norm.weight", "post_blocks_norm.weight")):
            # So that 1 + w is exact.
            tensor.copy_((tensor * 4096).round() / 4096)
    return Case("xlstm", model, model)


def xlstm_cuda_order() -> Case:
    """The same with the tensors of sLSTM in the order that the CUDA back end stores them in."""
    case = xlstm(heads=2, slstm_at=[0, 1, 2])
    state = dict(case.model.state_dict())
    for name, tensor in state.items():
        if name.endswith("_recurrent_kernel_"):
            state[name] = tensor.transpose(1, 2)
        if name.endswith("_bias_"):
            state[name] = tensor.unflatten(0, (4, 2, -1)).transpose(0, 1).flatten()
    case.state = state
    return case


class OptionalBiasNorm(nn.Module):
    """LayerNorm, with or without a bias."""

    def __init__(self, bias: bool) -> None:
        super().__init__()
        self.weight = nn.Parameter(torch.ones(D))
        self.bias = nn.Parameter(torch.zeros(D)) if bias else None

    def forward(self, x: Tensor) -> Tensor:
        return F.layer_norm(x, (D,), self.weight, self.bias)


class GptAttention(nn.Module):
    """Causal self-attention; rows of `c_attn` are queries, keys, values."""

    def __init__(self, heads: int, bias: bool) -> None:
        super().__init__()
        self.c_attn = nn.Linear(D, 3 * D, bias=bias)
        self.c_proj = nn.Linear(D, D, bias=bias)
        self.heads = heads

    def forward(self, x: Tensor) -> Tensor:
        q, k, v = (part.unflatten(-1, (self.heads, -1)).transpose(1, 2) for part in self.c_attn(x).chunk(3, dim=-1))
        y = F.scaled_dot_product_attention(q, k, v, is_causal=True)
        return self.c_proj(y.transpose(1, 2).flatten(-2))


class GptMlp(nn.Module):
    """GELU between two linear layers."""

    def __init__(self, bias: bool) -> None:
        super().__init__()
        self.c_fc = nn.Linear(D, 4 * D, bias=bias)
        self.c_proj = nn.Linear(4 * D, D, bias=bias)

    def forward(self, x: Tensor) -> Tensor:
        return self.c_proj(F.gelu(self.c_fc(x)))


class GptBlock(nn.Module):
    """x + attention(norm(x)), then x + mlp(norm(x))."""

    def __init__(self, heads: int, bias: bool) -> None:
        super().__init__()
        self.ln_1, self.attn = OptionalBiasNorm(bias), GptAttention(heads, bias)
        self.ln_2, self.mlp = OptionalBiasNorm(bias), GptMlp(bias)

    def forward(self, x: Tensor) -> Tensor:
        x = x + self.attn(self.ln_1(x))
        return x + self.mlp(self.ln_2(x))


class NanoGpt(nn.Module):
    """The model of nanoGPT by its names of parameters; the head shares the embedding."""

    def __init__(self, heads: int, bias: bool, block_size: int = 12) -> None:
        super().__init__()
        parts = {"wte": nn.Embedding(VOCAB, D), "wpe": nn.Embedding(block_size, D)}
        parts |= {"h": nn.ModuleList([GptBlock(heads, bias) for _ in range(2)]), "ln_f": OptionalBiasNorm(bias)}
        self.transformer = nn.ModuleDict(parts)
        self.lm_head = nn.Linear(D, VOCAB, bias=False)
        self.lm_head.weight = self.transformer.wte.weight

    def forward(self, tokens: Tensor) -> Tensor:
        x = self.transformer.wte(tokens) + self.transformer.wpe(torch.arange(tokens.shape[1]))
        for block in self.transformer.h:
            x = block(x)
        return self.lm_head(self.transformer.ln_f(x))


def nano_gpt(heads: int, bias: bool) -> Case:
    model = off_initial_values(NanoGpt(heads, bias))
    return Case("nano-gpt", model, model, f"n_heads={heads}")


def cases(older: Path | None) -> dict[str, Callable[[], Case]]:
    package = "minGRU_pytorch.minLM"
    return {
        "min_gru_pytorch": lambda: min_lm(package, "minLM"),
        "min_gru_pytorch_lstm_conv": lambda: min_lm(
            package, "minLM", use_lstm=True, expansion=1.0, enable_conv=True, conv_kernel_size=4
        ),
        "min_gru_pytorch_three_taps": lambda: min_lm(package, "minLM", enable_conv=True),
        "min_gru_pytorch_gru_lm": lambda: older_min_gru_lm(older),
        "min_rnns": lambda: min_rnns(2, RmsNorm, "", conv=True, ff=2),
        "min_rnns_lstm_batch_norm": lambda: min_rnns(
            3, ChannelNorm, "normalize_gates=true", normalized=True, conv=False, ff=2
        ),
        "min_rnns_lstm_without_ff": lambda: min_rnns(3, RmsNorm, "normalize_gates=false", conv=False, ff=None),
        "torch_gru": lambda: torch_layers(nn.GRU, 12),
        "torch_lstm": lambda: torch_layers(nn.LSTM, D),
        "torch_lstm_without_bias": lambda: torch_layers(nn.LSTM, 12, bias=False),
        "mamba_hf": lambda: mamba(tied=True),
        "mamba_hf_untied": lambda: mamba(tied=False),
        "xlstm": lambda: xlstm(heads=2, slstm_at=[1]),
        "xlstm_one_head": lambda: xlstm(heads=1, slstm_at=[0, 2]),
        "xlstm_cuda_order": xlstm_cuda_order,
        "nano_gpt": lambda: nano_gpt(heads=2, bias=False),
        "nano_gpt_bias": lambda: nano_gpt(heads=4, bias=True),
        "mamba_hf_three_taps": lambda: mamba(tied=True, conv_kernel=3),
        "mamba_hf_without_conv_bias": lambda: mamba(tied=False, use_conv_bias=False),
    }


def fixture(case: Case) -> tuple[dict[str, Tensor], dict[str, str]]:
    tokens = torch.randint(VOCAB, (BATCH, SEQ_LEN))
    with torch.no_grad():
        logits = case.logits(tokens)
    tensors = dict(case.state or case.model.state_dict())
    tensors |= {f"case.rest.{name}": tensor for name, tensor in case.rest.items()}
    tensors |= {"case.tokens": tokens, "case.logits": logits}
    about = {"format": case.format, "settings": case.settings.split(), "config": case.config or None}
    return {name: tensor.float().clone().contiguous() for name, tensor in tensors.items()}, {"case": json.dumps(about)}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n", 1)[0])
    parser.add_argument("--older", type=Path, help="where minGRU-pytorch==0.0.14 is installed")
    parser.add_argument("--only", help="write this case alone")
    parser.add_argument("--out", type=Path, default=Path("crates/minrnn/tests/fixtures/interchange"))
    args = parser.parse_args()
    args.out.mkdir(parents=True, exist_ok=True)
    for seed, (name, make) in enumerate(cases(args.older).items()):
        if args.only not in (None, name):
            continue
        torch.manual_seed(seed)
        tensors, metadata = fixture(make())
        path = args.out / f"{name}.safetensors"
        save(tensors, path, metadata)


if __name__ == "__main__":
    main()
