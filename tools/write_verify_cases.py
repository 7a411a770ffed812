"""Writes verify cases: what PyTorch computes, for `minrnn verify` to compare with.

A case is a safetensors file about one cell: metadata `case` = "1", `cell` and its settings; tensors `x`, `h0` (`c0`),
the parameters (slstm: `x` [B, T, 4H] in parts i, f, z, o, `R` [heads, 4 hd, hd], `b` [4H]; mlstm: `q`, `k`, `v`
[B, NH, T, DH], `igate`, `fgate` [B, NH, T]; both from an empty memory; mamba: the tensors of its selective scan;
the others: the tables below), `loss_weight`, and what is expected of them: `expect.h` (where the output is no state:
`expect.y`), (`expect.c_last`) and `expect.grad.<name>` for the loss sum(loss_weight * h). Inputs are drawn as float32,
so they are stored exactly; everything else is computed in float64, by a plain loop with autograd or by torch.nn (GRU,
LSTM), then rounded to float32.

    linear_attention  q, k, v [B, NH, T, DH]
    retention         q, k [B, NH, T, DK], v [B, NH, T, DV]
    aaren             query [NH, DH], k, v [B, NH, T, DH]
    delta             q, k, v [B, NH, T, DH], beta [B, NH, T]
    wkv               r, k, v [B, T, d], decay, bonus [d]
    s4d               u [B, T, d], log_dt [d], log_a_real, a_imag [d, N], C [d, N, 2], D [d]
    gilr              x, h0, linear_g.{weight,bias}, linear_i.{weight,bias}
    rg_lru            x [B, T, d], recurrent_param [d], {input,recurrent}_gate_weight [NH, DH, DH], …_bias [NH, DH]; computed in float32 by
                      RecurrentGemma's own module, which needs `transformers`

    python tools/write_verify_cases.py --cell min_gru --seq-len 33 --out case.safetensors
    python tools/write_verify_cases.py --all crates/cli/tests/fixtures/verify    # the shipped cases
    python tools/write_verify_cases.py --long /tmp/cases                         # T = 20 000, about 2 MB each

Letters: B batch, T time, d d_model, e d_inner (for Mamba the states N of a channel).
"""

import argparse
from dataclasses import dataclass
from pathlib import Path

import torch
from safetensors.torch import save_file
from torch import Tensor
from torch.nn.functional import elu, logsigmoid, silu, softplus

CELLS = ("min_gru", "min_lstm", "gru", "lstm", "mamba", "slstm", "mlstm")
CELLS += ("linear_attention", "retention", "wkv", "aaren", "gilr", "s4d", "delta", "rg_lru")
ATTENTIONS = ("linear_attention", "retention", "aaren", "delta")
EXTREME = 40.0


@dataclass(frozen=True)
class Case:
    """One case; the same fields always give the same numbers."""

    cell: str = "min_gru"
    batch: int = 2
    seq_len: int = 33
    d_model: int = 5
    d_inner: int = 6
    candidate: str = "positive"
    normalize_gates: bool = True
    seed: int = 0
    extreme: bool = False
    heads: int = 2


SHIPPED = {
    "min_gru_positive": Case(),
    "min_gru_positive_extreme": Case(seed=1, extreme=True),
    "min_gru_positive_one_step": Case(seed=2, batch=3, seq_len=1),
    "min_gru_identity": Case(seed=3, candidate="identity"),
    "min_gru_identity_narrow": Case(seed=4, candidate="identity", seq_len=7, d_model=3, d_inner=1),
    "min_lstm_positive": Case(seed=5, cell="min_lstm"),
    "min_lstm_positive_extreme": Case(seed=6, cell="min_lstm", extreme=True),
    "min_lstm_positive_unnormalized": Case(seed=7, cell="min_lstm", normalize_gates=False),
    "min_lstm_identity": Case(seed=8, cell="min_lstm", candidate="identity", seq_len=7),
    "min_lstm_identity_unnormalized": Case(
        seed=9, cell="min_lstm", candidate="identity", normalize_gates=False, seq_len=1
    ),
    "gru": Case(seed=10, cell="gru"),
    "gru_extreme": Case(seed=11, cell="gru", seq_len=7, extreme=True),
    "gru_one_step": Case(seed=12, cell="gru", batch=1, seq_len=1),
    "lstm": Case(seed=13, cell="lstm"),
    "lstm_extreme": Case(seed=14, cell="lstm", seq_len=7, extreme=True),
    "lstm_one_step": Case(seed=15, cell="lstm", batch=1, seq_len=1),
    "mamba": Case(seed=16, cell="mamba", seq_len=70),
    "mamba_extreme": Case(seed=17, cell="mamba", extreme=True),
    "mamba_one_step": Case(seed=18, cell="mamba", batch=3, seq_len=1, d_inner=1),
    "slstm": Case(seed=16, cell="slstm"),
    "slstm_extreme": Case(seed=17, cell="slstm", seq_len=7, extreme=True),
    "slstm_one_step": Case(seed=18, cell="slstm", batch=1, seq_len=1, heads=1),
    "mlstm": Case(seed=19, cell="mlstm", seq_len=70),
    "mlstm_extreme": Case(seed=28, cell="mlstm", seq_len=7, extreme=True),
    "mlstm_one_step": Case(seed=29, cell="mlstm", batch=1, seq_len=1, heads=1),
    "linear_attention": Case(seed=30, cell="linear_attention", batch=1, seq_len=70, d_model=4, d_inner=4),
    "linear_attention_one_head": Case(seed=31, cell="linear_attention", seq_len=7, d_inner=3, heads=1),
    "retention": Case(seed=32, cell="retention", batch=1, seq_len=70, d_model=8, d_inner=6),
    "retention_one_step": Case(seed=33, cell="retention", batch=3, seq_len=1, d_model=2, d_inner=3, heads=1),
    "wkv": Case(seed=34, cell="wkv"),
    "wkv_extreme": Case(seed=35, cell="wkv", seq_len=7, extreme=True),
    "aaren": Case(seed=36, cell="aaren", batch=1),
    "aaren_extreme": Case(seed=37, cell="aaren", seq_len=7, extreme=True),
    "gilr": Case(seed=38, cell="gilr"),
    "gilr_extreme": Case(seed=39, cell="gilr", seq_len=7, extreme=True),
    "s4d": Case(seed=40, cell="s4d", d_model=3, d_inner=4),
    "s4d_one_step": Case(seed=41, cell="s4d", batch=3, seq_len=1, d_model=2, d_inner=1),
    "delta": Case(seed=42, cell="delta", batch=1),
    "delta_one_step": Case(seed=43, cell="delta", batch=3, seq_len=1, heads=1),
    "rg_lru": Case(seed=44, cell="rg_lru", d_model=6),
    "rg_lru_extreme": Case(seed=45, cell="rg_lru", seq_len=7, d_model=6, extreme=True),
    "rg_lru_one_step": Case(seed=46, cell="rg_lru", batch=3, seq_len=1, d_model=4, heads=1),
}

LONG = {
    "min_gru_long": Case(seed=20, batch=1, seq_len=20_000),
    "min_gru_long_extreme": Case(seed=21, batch=1, seq_len=20_000, extreme=True),
    "min_gru_long_identity": Case(seed=22, batch=1, seq_len=20_000, candidate="identity"),
    "min_lstm_long": Case(seed=23, cell="min_lstm", batch=1, seq_len=20_000),
    "min_lstm_long_extreme": Case(seed=24, cell="min_lstm", batch=1, seq_len=20_000, extreme=True),
    "min_lstm_long_unnormalized": Case(
        seed=25, cell="min_lstm", batch=1, seq_len=20_000, normalize_gates=False
    ),
    "gru_long": Case(seed=26, cell="gru", batch=1, seq_len=20_000),
    "lstm_long": Case(seed=27, cell="lstm", batch=1, seq_len=20_000),
    "mamba_long": Case(seed=28, cell="mamba", batch=1, seq_len=20_000),
}


def g(x: Tensor) -> Tensor:
    """The paper's positivity map: x + 1/2 for x >= 0, sigmoid(x) below."""
    return torch.where(x >= 0, x + 0.5, torch.sigmoid(x))


def is_min(case: Case) -> bool:
    return case.cell.startswith("min_")


def is_xlstm(case: Case) -> bool:
    return case.cell in ("slstm", "mlstm")


def draw_xlstm(case: Case) -> dict[str, Tensor]:
    """Inputs and parameters of the cells of xLSTM, whose input side is ready; gates of +8 and -8 under `extreme`."""
    rng = torch.Generator().manual_seed(case.seed)
    b, t, e, heads = case.batch, case.seq_len, case.d_inner, case.heads
    width = e // heads

    def normal(*shape: int) -> Tensor:
        return torch.randn(shape, generator=rng)

    if case.cell == "slstm":
        tensors = {"x": normal(b, t, 4 * e), "R": normal(heads, 4 * width, width) * width**-0.5, "b": normal(4 * e)}
        if case.extreme:
            tensors["x"][..., : 2 * e] = tensors["x"][..., : 2 * e].sign() * 8
        return tensors | {"loss_weight": normal(b, t, e)}
    tensors = {name: normal(b, heads, t, width) for name in ("q", "k", "v")}
    tensors |= {"igate": normal(b, heads, t), "fgate": normal(b, heads, t) + 2}
    if case.extreme:
        tensors |= {name: tensors[name].sign() * 8 for name in ("igate", "fgate")}
    return tensors | {"loss_weight": normal(b, heads, t, width)}


def draw_attention(case: Case) -> dict[str, Tensor]:
    """Queries, keys and values; `extreme`: scores of Aaren about +40 and -40."""
    rng = torch.Generator().manual_seed(case.seed)
    b, t, heads = case.batch, case.seq_len, case.heads
    value = case.d_inner // heads
    key = case.d_model // heads if case.cell == "retention" else value

    def normal(*shape: int) -> Tensor:
        return torch.randn(shape, generator=rng)

    tensors = {"query": normal(heads, key)} if case.cell == "aaren" else {"q": normal(b, heads, t, key)}
    tensors |= {"k": normal(b, heads, t, key), "v": normal(b, heads, t, value)}
    if case.cell == "aaren" and case.extreme:
        length = tensors["query"].square().sum(-1)[:, None, None]
        along = torch.sign(normal(b, heads, t, 1)) * EXTREME * key**0.5
        tensors["k"] += along * tensors["query"][:, None] / length
    if case.cell == "delta":
        tensors["beta"] = normal(b, heads, t)
    return tensors | {"loss_weight": normal(b, heads, t, value)}


def draw_channels(case: Case) -> dict[str, Tensor]:
    """What the recurrences of single channels read, and their parameters; `extreme`: keys of +40 and -40."""
    rng = torch.Generator().manual_seed(case.seed)
    b, t, d, n = case.batch, case.seq_len, case.d_model, case.d_inner

    def normal(*shape: int) -> Tensor:
        return torch.randn(shape, generator=rng)

    if case.cell == "wkv":
        tensors = {name: normal(b, t, d) for name in ("r", "k", "v")}
        if case.extreme:
            tensors["k"] = tensors["k"].sign() * EXTREME
        tensors |= {"decay": normal(d) - 1, "bonus": normal(d)}
    else:
        tensors = {"u": normal(b, t, d), "log_dt": normal(d) - 2, "log_a_real": normal(d, n) * 0.5}
        tensors |= {"a_imag": normal(d, n) * 3, "C": normal(d, n, 2), "D": normal(d)}
    return tensors | {"loss_weight": normal(b, t, d)}


def draw_rg_lru(case: Case) -> dict[str, Tensor]:
    """Values and parameters of RG-LRU, its channels from slow to fast; `extreme`: gates of about +40 and -40."""
    rng = torch.Generator().manual_seed(case.seed)
    b, t, d, heads = case.batch, case.seq_len, case.d_model, case.heads
    width = d // heads

    def normal(*shape: int) -> Tensor:
        return torch.randn(shape, generator=rng)

    tensors = {"x": normal(b, t, d), "recurrent_param": torch.linspace(-8.0, 1.0, d)}
    for gate in ("input", "recurrent"):
        tensors[f"{gate}_gate_weight"] = normal(heads, width, width) * width**-0.5
        tensors[f"{gate}_gate_bias"] = normal(heads, width).sign() * EXTREME if case.extreme else normal(heads, width)
    return tensors | {"loss_weight": normal(b, t, d)}


def draw_inputs(case: Case) -> dict[str, Tensor]:
    """Inputs and parameters in float32: linear layers with PyTorch's default range, a non-zero initial state."""
    if is_xlstm(case):
        return draw_xlstm(case)
    if case.cell in ATTENTIONS:
        return draw_attention(case)
    if case.cell == "rg_lru":
        return draw_rg_lru(case)
    if case.cell in ("wkv", "s4d"):
        return draw_channels(case)
    rng = torch.Generator().manual_seed(case.seed)
    b, t, d, e = case.batch, case.seq_len, case.d_model, case.d_inner

    def normal(*shape: int) -> Tensor:
        return torch.randn(shape, generator=rng)

    def uniform(limit: float, *shape: int) -> Tensor:
        return (torch.rand(shape, generator=rng) * 2 - 1) * limit

    if case.cell == "mamba":
        delta = torch.sign(normal(b, t, d)) * EXTREME if case.extreme else normal(b, t, d)
        sequences = {"u": normal(b, t, d), "delta": delta, "z": normal(b, t, d), "B": normal(b, t, e), "C": normal(b, t, e)}
        rates = -torch.arange(1.0, e + 1) * (1 + torch.rand((d, 1), generator=rng))
        parameters = {"A": rates, "D": normal(d), "delta_bias": uniform(1.0, d) - 3}
        return sequences | parameters | {"loss_weight": normal(b, t, d)}

    # With `extreme` every input is +1 or -1, so that a gate row that is 40 at one input gives a gate of +40 or -40.
    x = torch.sign(normal(b, t, d)) if case.extreme else normal(b, t, d)
    h0 = normal(b, e)
    tensors = {"x": x, "h0": h0.abs() if is_min(case) and case.candidate == "positive" else h0}

    if is_min(case) or case.cell == "gilr":
        gates, value = {"min_gru": (["z"], "h"), "min_lstm": (["f", "i"], "h"), "gilr": (["g"], "i")}[case.cell]
        for shift, name in enumerate([*gates, value]):
            weight = uniform(d**-0.5, e, d)
            if case.extreme and name != value:
                saturate(weight, shift)
            tensors[f"linear_{name}.weight"] = weight
            tensors[f"linear_{name}.bias"] = uniform(d**-0.5, e)
    else:
        blocks = 3 if case.cell == "gru" else 4
        tensors["weight_ih_l0"] = uniform(e**-0.5, blocks * e, d)
        tensors["weight_hh_l0"] = uniform(e**-0.5, blocks * e, e)
        tensors["bias_ih_l0"] = uniform(e**-0.5, blocks * e)
        tensors["bias_hh_l0"] = uniform(e**-0.5, blocks * e)
        if case.cell == "lstm":
            tensors["c0"] = normal(b, e)
        if case.extreme:
            for block in range(blocks):
                if block != 2:  # the candidate: n of r, z, n and g of i, f, g, o
                    saturate(tensors["weight_ih_l0"][block * e : (block + 1) * e], block)
    tensors["loss_weight"] = normal(b, t, e)
    return tensors


def saturate(weight: Tensor, shift: int) -> None:
    """Sets one entry per row to 40; different gates read different inputs."""
    rows = torch.arange(weight.shape[0])
    weight[rows, (rows + shift) % weight.shape[1]] = EXTREME


def min_cell(case: Case, p: dict[str, Tensor]) -> Tensor:
    """h [B, T, e] of minGRU or minLSTM, one step after the other."""
    preact = {
        name[7:-7]: p["x"] @ weight.T + p[f"{name[:-7]}.bias"]
        for name, weight in p.items()
        if name.endswith(".weight")
    }
    value = g(preact["h"]) if case.candidate == "positive" else preact["h"]
    if case.cell == "min_gru":
        keep, take = gate(-preact["z"]), gate(preact["z"])
    elif case.normalize_gates:
        difference = softplus_exact(-preact["f"]) - softplus_exact(-preact["i"])
        keep, take = gate(-difference), gate(difference)
    else:
        keep, take = gate(preact["f"]), gate(preact["i"])
    h, steps = p["h0"], []
    for k, i, v in zip(keep.unbind(1), take.unbind(1), value.unbind(1), strict=True):
        h = k * h + i * v
        steps.append(h)
    return torch.stack(steps, dim=1)


def gilr(p: dict[str, Tensor]) -> Tensor:
    """h [B, T, e] of the gated impulse linear recurrence, one step after the other."""
    gates = p["x"] @ p["linear_g.weight"].T + p["linear_g.bias"]
    impulse = torch.tanh(p["x"] @ p["linear_i.weight"].T + p["linear_i.bias"])
    h, steps = p["h0"], []
    for keep, take, i in zip(gate(gates).unbind(1), gate(-gates).unbind(1), impulse.unbind(1), strict=True):
        h = keep * h + take * i
        steps.append(h)
    return torch.stack(steps, dim=1)


def rg_lru(p: dict[str, Tensor]) -> Tensor:
    """h [B, T, d] of RecurrentGemma's recurrent layer, a sequence from its first step on."""
    from transformers import RecurrentGemmaConfig
    from transformers.models.recurrent_gemma.modeling_recurrent_gemma import RecurrentGemmaRglru

    b, t, d = p["x"].shape
    config = RecurrentGemmaConfig(lru_width=d, hidden_size=d, num_attention_heads=p["input_gate_bias"].shape[0])
    layer = RecurrentGemmaRglru(config)
    names = [name for name, _ in layer.named_parameters()]
    positions = torch.arange(t).expand(b, t)
    x, parameters = p["x"].float(), {name: p[name].float() for name in names}
    return torch.func.functional_call(layer, parameters, (x, positions)).double()


def linear_attention(p: dict[str, Tensor]) -> Tensor:
    """y [B, NH, T, DH] of attention with the features elu(x) + 1, one step after the other from nothing."""
    b, heads, _, width = p["v"].shape
    s, n = p["v"].new_zeros(b, heads, width, width), p["v"].new_zeros(b, heads, width)
    steps = []
    for q, k, v in zip(*(p[name].unbind(2) for name in ("q", "k", "v")), strict=True):
        q, k = elu(q) + 1, elu(k) + 1
        s, n = s + k[..., None] * v[..., None, :], n + k
        steps.append((q[..., None] * s).sum(-2) / ((q * n).sum(-1, keepdim=True) + 1e-6))
    return torch.stack(steps, dim=2)


def turned(x: Tensor, position: int) -> Tensor:
    """The neighbouring channels 2j, 2j + 1 turned by position * 10000^(-j / (pairs - 1))."""
    pairs = x.shape[-1] // 2
    angle = position * 10_000.0 ** -(torch.arange(pairs, dtype=x.dtype) / max(pairs - 1, 1))
    first, second = x[..., 0::2], x[..., 1::2]
    cos, sin = angle.cos(), angle.sin()
    return torch.stack([first * cos - second * sin, second * cos + first * sin], dim=-1).flatten(-2)


def retention(p: dict[str, Tensor]) -> Tensor:
    """y [B, NH, T, DV] of RetNet's retention before its norm and gate, one step after the other from nothing."""
    b, heads, _, key = p["q"].shape
    decay = (1 - 2.0 ** (-5 - torch.arange(heads, dtype=torch.float64)))[:, None, None]
    s, steps = p["v"].new_zeros(b, heads, key, p["v"].shape[-1]), []
    for t, (q, k, v) in enumerate(zip(*(p[name].unbind(2) for name in ("q", "k", "v")), strict=True)):
        q, k = turned(q, t), turned(k, t) * key**-0.5
        s = decay * s + k[..., None] * v[..., None, :]
        steps.append((q[..., None] * s).sum(-2))
    return torch.stack(steps, dim=2)


def aaren(p: dict[str, Tensor]) -> Tensor:
    """y [B, NH, T, DH] of the softmax over every prefix, each by itself."""
    scores = (p["k"] * p["query"][:, None]).sum(-1) * p["k"].shape[-1] ** -0.5
    prefixes = range(1, scores.shape[2] + 1)
    return torch.stack([(scores[..., :t].softmax(-1)[..., None] * p["v"][:, :, :t]).sum(2) for t in prefixes], dim=2)


def delta(p: dict[str, Tensor]) -> Tensor:
    """y [B, NH, T, DH] of memories corrected by the delta rule, one step after the other from nothing."""
    b, heads, _, width = p["v"].shape
    s, steps = p["v"].new_zeros(b, heads, width, width), []
    for q, k, v, beta in zip(*(p[name].unbind(2) for name in ("q", "k", "v", "beta")), strict=True):
        k = k / (k.square().sum(-1, keepdim=True) + 1e-6).sqrt()
        error = v - (s * k[..., None, :]).sum(-1)
        s = s + gate(beta)[..., None, None] * error[..., None] * k[..., None, :]
        steps.append((s * q[..., None, :]).sum(-1))
    return torch.stack(steps, dim=2)


def wkv(p: dict[str, Tensor]) -> Tensor:
    """y [B, T, d] of RWKV-4's average under its gate: every prefix by itself, as a softmax, which overflows nowhere."""
    seq_len, rate = p["k"].shape[1], p["decay"].exp()
    steps = []
    for t in range(seq_len):
        # A past step i has decayed for t - 1 - i steps; the present one gets the bonus.
        age = torch.arange(t - 1, -1, -1, dtype=torch.float64)[:, None]
        logits = torch.cat([p["k"][:, :t] - age * rate, (p["k"][:, t] + p["bonus"])[:, None]], dim=1)
        steps.append((logits.softmax(1) * p["v"][:, : t + 1]).sum(1))
    return gate(p["r"]) * torch.stack(steps, dim=1)


def s4d(p: dict[str, Tensor]) -> Tensor:
    """y [B, T, d] of diagonal state spaces by zero-order hold, one step after the other from nothing."""
    a, c = torch.complex(-p["log_a_real"].exp(), p["a_imag"]), torch.view_as_complex(p["C"])
    grown = torch.exp(p["log_dt"].exp()[:, None] * a)
    x, steps = torch.zeros_like(a), []
    for u in p["u"].unbind(1):
        x = grown * x + (grown - 1) / a * u[..., None]
        steps.append(2 * (c * x).real.sum(-1) + p["D"] * u)
    return torch.stack(steps, dim=1)


def selective_scan(p: dict[str, Tensor]) -> Tensor:
    """y [B, T, d] of Mamba's recurrence with its gate, one step after the other."""
    delta = softplus_exact(p["delta"] + p["delta_bias"])
    h, steps = p["u"].new_zeros(p["u"].shape[0], *p["A"].shape), []
    for t in range(p["u"].shape[1]):
        d, u = delta[:, t, :, None], p["u"][:, t, :, None]
        h = torch.exp(d * p["A"]) * h + d * p["B"][:, t, None, :] * u
        steps.append((h * p["C"][:, t, None, :]).sum(-1))
    return (torch.stack(steps, dim=1) + p["D"] * p["u"]) * silu(p["z"])


def gate(x: Tensor) -> Tensor:
    """Sigmoid whose gradient keeps its digits: autograd's s (1 - s) has none left at large x."""
    return logsigmoid(x).exp()


def softplus_exact(x: Tensor) -> Tensor:
    """ln(1 + e^x) without PyTorch's cut to the identity above 20, which costs 2e-9."""
    return softplus(x, threshold=1000.0)


def torch_cell(case: Case, p: dict[str, Tensor]) -> dict[str, Tensor]:
    """h [B, T, e], and the last cell state [B, e] for LSTM, by torch.nn with the given parameters."""
    kind = torch.nn.GRU if case.cell == "gru" else torch.nn.LSTM
    layer = kind(case.d_model, case.d_inner, batch_first=True, dtype=torch.float64)
    parameters = {name: p[name] for name, _ in layer.named_parameters()}
    h0 = p["h0"].unsqueeze(0)
    state = h0 if case.cell == "gru" else (h0, p["c0"].unsqueeze(0))
    h, last = torch.func.functional_call(layer, parameters, (p["x"], state))
    return {"h": h} if case.cell == "gru" else {"h": h, "c_last": last[1][0]}


def slstm_cell(p: dict[str, Tensor]) -> Tensor:
    """h [B, T, H] of an sLSTM with sigmoid forget gate, one step after the other from nothing."""
    heads, rows, width = p["R"].shape
    e = heads * width
    h = c = n = torch.zeros(p["x"].shape[0], e, dtype=torch.float64)
    m, steps = torch.full_like(h, -torch.inf), []
    for x in p["x"].unbind(1):
        # [B, heads, 4 hd] to parts i, f, z, o of all heads.
        own = torch.einsum("bnk,nrk->bnr", h.view(-1, heads, width), p["R"]).view(-1, heads, 4, width)
        i, f, z, o = (x + own.transpose(1, 2).reshape(-1, 4 * e) + p["b"]).chunk(4, dim=1)
        kept = logsigmoid(f) + m
        m = torch.maximum(kept, i).detach()
        take, keep = (i - m).exp(), (kept - m).exp()
        c, n = keep * c + take * z.tanh(), keep * n + take
        h = gate(o) * c / n
        steps.append(h)
    return torch.stack(steps, dim=1)


def mlstm_cell(p: dict[str, Tensor]) -> Tensor:
    """h [B, NH, T, DH] of an mLSTM, one step after the other from nothing."""
    b, heads, _, width = p["q"].shape
    c, n = torch.zeros(b, heads, width, width, dtype=torch.float64), torch.zeros(b, heads, width, dtype=torch.float64)
    m, steps = torch.full((b, heads), -torch.inf, dtype=torch.float64), []
    for q, k, v, i, f in zip(*(p[name].unbind(2) for name in ("q", "k", "v", "igate", "fgate")), strict=True):
        kept = logsigmoid(f) + m
        m = torch.maximum(kept, i).detach()
        take, keep = (i - m).exp()[..., None], (kept - m).exp()[..., None]
        k = k * width**-0.5
        c = keep[..., None] * c + take[..., None] * k[..., None] * v[..., None, :]
        n = keep * n + take * k
        along = (n * q).sum(-1, keepdim=True).abs()
        steps.append((c * q[..., None]).sum(-2) / (torch.maximum(along, (-m).exp()[..., None]) + 1e-6))
    return torch.stack(steps, dim=2)


def cell(case: Case, p: dict[str, Tensor]) -> dict[str, Tensor]:
    """What the cell gives."""
    if case.cell == "slstm":
        return {"h": slstm_cell(p)}
    if case.cell == "mlstm":
        return {"h": mlstm_cell(p)}
    if is_min(case):
        return {"h": min_cell(case, p)}
    if case.cell == "rg_lru":
        return {"h": rg_lru(p)}
    return {"h": gilr(p)} if case.cell == "gilr" else torch_cell(case, p)


def read_out(case: Case, p: dict[str, Tensor]) -> dict[str, Tensor] | None:
    """The same of the cells whose output is no state."""
    cells = [linear_attention, retention, aaren, delta, wkv, s4d]
    by_name = {function.__name__: function for function in cells} | {"mamba": selective_scan}
    return {"y": by_name[case.cell](p)} if case.cell in by_name else None


def compute(case: Case) -> dict[str, Tensor]:
    """Every tensor of the case file, in float32."""
    stored = draw_inputs(case)
    p = {name: tensor.double().requires_grad_() for name, tensor in stored.items() if name != "loss_weight"}
    expect = read_out(case, p) or cell(case, p)
    loss = (stored["loss_weight"].double() * expect["y" if "y" in expect else "h"]).sum()
    for name, gradient in zip(p, torch.autograd.grad(loss, list(p.values())), strict=True):
        expect[f"grad.{name}"] = gradient
    stored |= {f"expect.{name}": tensor.detach() for name, tensor in expect.items()}
    return {name: tensor.float().contiguous() for name, tensor in stored.items()}


def write(case: Case, path: Path) -> None:
    metadata = {"case": "1", "cell": case.cell}
    if is_min(case):
        metadata["candidate"] = case.candidate
    if case.cell == "min_lstm":
        metadata["normalize_gates"] = str(case.normalize_gates).lower()
    path.parent.mkdir(parents=True, exist_ok=True)
    save_file(compute(case), path, metadata=metadata)
    print(f"{path}: {case.cell}, T = {case.seq_len}, {path.stat().st_size / 1024:.1f} KiB")


def main() -> None:
    default = Case()
    parser = argparse.ArgumentParser(description=__doc__.split("\n", 1)[0])
    parser.add_argument("--cell", choices=CELLS, default=default.cell)
    parser.add_argument("--batch", type=int, default=default.batch)
    parser.add_argument("--seq-len", type=int, default=default.seq_len)
    parser.add_argument("--d-model", type=int, default=default.d_model)
    parser.add_argument("--d-inner", type=int, default=default.d_inner)
    parser.add_argument("--candidate", choices=("positive", "identity"), default=default.candidate)
    parser.add_argument("--normalize-gates", action=argparse.BooleanOptionalAction, default=default.normalize_gates)
    parser.add_argument("--heads", type=int, default=default.heads, help="of the cells with heads")
    parser.add_argument("--seed", type=int, default=default.seed)
    parser.add_argument("--extreme", action="store_true", help="gates of +40 and -40 (xLSTM: 8)")
    where = parser.add_mutually_exclusive_group(required=True)
    where.add_argument("--out", type=Path, help="write this one case")
    where.add_argument("--all", type=Path, metavar="DIR", help="write the shipped cases, ignoring the flags above")
    where.add_argument("--long", type=Path, metavar="DIR", help="write the cases with T = 20 000, likewise")
    args = vars(parser.parse_args())

    out, shipped, long = args.pop("out"), args.pop("all"), args.pop("long")
    if out:
        write(Case(**args), out)
    for name, case in (SHIPPED if shipped else LONG if long else {}).items():
        write(case, (shipped or long) / f"{name}.safetensors")


if __name__ == "__main__":
    main()
