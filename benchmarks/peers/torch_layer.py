"""One recurrent layer in PyTorch: in-projection, recurrence, loss = sum(w * h), backward to x, h0 and the weights."""

import torch
import torch.nn.functional as F
import torch_device
from common import PROJECTIONS, Case, Step, layer_flop, run
from torch_cells import CELLS, check_cells, fused, recurrent_layer, recurrent_loop

IMPLEMENTATIONS = {
    "torch-loop": ("min-gru", "min-lstm", "gru", "lstm"),
    "torch-log-scan": ("min-gru", "min-lstm"),
    "torch-nn": ("gru", "lstm"),
}


def build(case: Case) -> tuple[Step, dict]:
    torch_device.begin(case)
    b, t, d, e = case.batch_size, case.seq_len, case.d_model, case.d_hidden
    x = torch.randn(b, t, d, requires_grad=True)
    loss_weight = torch.randn(b, t, e)

    if case.mixer in ("gru", "lstm"):
        layer, state = recurrent_layer(case.mixer, d, e, b)
        recurrence = fused if case.impl == "torch-nn" else recurrent_loop
        leaves = [x, *state, *layer.parameters()]

        def forward() -> torch.Tensor:
            return recurrence(case.mixer, layer, x, state)
    else:
        projection = torch.nn.Linear(d, PROJECTIONS[case.mixer] * e)
        h0 = torch.rand(b, e, requires_grad=True)
        cell = CELLS[case.impl]
        leaves = [x, h0, *projection.parameters()]

        def forward() -> torch.Tensor:
            return cell(case.mixer, F.linear(x, projection.weight, projection.bias), h0)

    def step() -> None:
        torch.autograd.grad((loss_weight * forward()).sum(), leaves)

    return torch_device.finish(case, step, {"flop": layer_flop(case)})


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
