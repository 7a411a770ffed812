"""What the families of mixers share: a layer made of a PyTorch module, its check and its measurement.

One iteration is the forward pass, loss = sum(w * y), and the backward pass to x and all parameters, as in `minrnn bench layer`.
Each mixer has several implementations of the same function, and they have the same parameters. Before one is timed, its
outputs and all its gradients are compared in float64 with a plain loop over time.
"""

import importlib.util
from collections.abc import Callable
from dataclasses import replace
from importlib.metadata import version

import torch
import torch_device
from common import Case, Step, require_close, run
from packages import package
from torch import Tensor, nn

HEADS = 4
Make = Callable[[Case], nn.Module]
Layers = dict[str, dict[str, Make]]  # implementation → mixer → how its layer is made

# transformers casts to f32. The mLSTM of the others lets a gradient through the stabiliser, on which the output depends because of the 1e-6 in the
# denominator: with 1e-12 instead they agree to 3e-12 (their outputs, and the gradients of all but the chunked form, where only outputs were compared).
LOOSE = ("transformers", "xlstm", "mlstm-kernels")
# Two whole chunks, and less than one.
LENGTHS = (128, 37)
TINY = Case("", "", d_model=32, d_hidden=64, batch_size=2, seq_len=0, threads=1, norm="layer")


def installed(impl: str) -> bool:
    module = package(impl)
    return module is None or importlib.util.find_spec(module) is not None


def gradients(layer: nn.Module, x: Tensor, loss_weight: Tensor) -> tuple[Tensor, ...]:
    """Of x, then of the parameters."""
    return torch.autograd.grad((loss_weight * layer(x)).sum(), [x, *layer.parameters()])


def build(layers: Layers, references: dict[str, Make], case: Case) -> tuple[Step, dict]:
    torch_device.begin(case)
    if case.device == "cpu":
        check(layers, references, case.impl, case.mixer, LENGTHS[:1])
    torch.manual_seed(0)
    layer = layers[case.impl][case.mixer](case)
    x = torch.randn(case.batch_size, case.seq_len, case.d_model, requires_grad=True)
    width = getattr(layer, "d_output", case.d_model)
    loss_weight = torch.randn(case.batch_size, case.seq_len, width)
    weights = sum(parameter.numel() for parameter in layer.parameters() if parameter.dim() > 1)
    parameters = sum(parameter.numel() for parameter in layer.parameters())
    if case.compiled:
        layer.compile()
    step, extra = torch_device.finish(case, lambda: gradients(layer, x, loss_weight), {})
    if module := package(case.impl):
        extra["version"] += f", {module} {version(module)}"
    return step, {**extra, "flop": 6 * case.batch_size * case.seq_len * weights, "parameters": parameters}


def reference_name(layer: nn.Module, name: str) -> str:
    """The name of a parameter in the reference; `aliases` of a layer are the beginnings of names that differ there."""
    for theirs, ours in getattr(layer, "aliases", {}).items():
        if name.startswith(theirs):
            return ours + name[len(theirs) :]
    return name


def check(layers: Layers, references: dict[str, Make], impl: str, mixer: str, lengths: tuple[int, ...]) -> None:
    """Stops unless outputs and gradients are those of the loop."""
    tolerance = 1e-4 if impl.startswith(LOOSE) else 1e-8
    torch.set_default_dtype(torch.float64)
    for seq_len in lengths:
        case = replace(TINY, impl=impl, mixer=mixer, seq_len=seq_len)
        torch.manual_seed(seq_len)
        reference = references.get(mixer, layers.get("torch-loop", {}).get(mixer))(case)
        layer = layers[impl][mixer](case)
        with torch.no_grad():
            for parameter in reference.parameters():
                parameter.add_(0.2 * torch.randn_like(parameter))
            expected = dict(reference.named_parameters())
            for name, parameter in layer.named_parameters():
                parameter.copy_(expected[reference_name(layer, name)])
        x = torch.randn(case.batch_size, seq_len, case.d_model, requires_grad=True)
        y = reference(x)
        loss_weight = torch.randn_like(y)
        names = ["x", *(name for name, _ in reference.named_parameters())]
        wanted = {"y": y, **dict(zip(names, gradients(reference, x, loss_weight), strict=True))}
        names = ["x", *(reference_name(layer, name) for name, _ in layer.named_parameters())]
        found = {"y": layer(x), **dict(zip(names, gradients(layer, x, loss_weight), strict=True))}
        if found.keys() != wanted.keys():
            raise SystemExit(f"{impl} {mixer} has other parameters: {sorted(found.keys() ^ wanted.keys())}")
        for name, value in wanted.items():
            scale = value.detach().abs().max().clamp(min=1e-6)
            pair = (found[name].detach() / scale, value.detach() / scale)
            require_close(f"{impl} {mixer}, {name} of {seq_len} steps,", *(part.numpy() for part in pair), tolerance)
    torch.set_default_dtype(torch.float32)


def main(layers: Layers, references: dict[str, Make] | None = None, extra_check: Callable[[], None] = lambda: None) -> None:
    """The main function of a family; `references` are the loops of the mixers that have none among `layers`."""
    layers = {impl: mixers for impl, mixers in layers.items() if installed(impl)}
    references = references or {}

    def check_all() -> None:
        extra_check()
        for impl, mixers in layers.items():
            for mixer in mixers:
                check(layers, references, impl, mixer, LENGTHS)

    run(
        "layer",
        {impl: tuple(mixers) for impl, mixers in layers.items()},
        lambda case: build(layers, references, case),
        extra_check,
        check_all,
        d_model=64,
        d_hidden=128,
        batch_size=64,
        seq_len=[64, 256, 512],
    )
