"""One recurrent layer in PyTorch: in-projection, recurrence, loss = sum(w * h), backward to x, h0 and the weights."""

import torch
import torch.nn.functional as F
import torch_device
from common import PROJECTIONS, Case, Step, layer_flop, run
from torch_cells import CELLS, check_cells

IMPLEMENTATIONS = {
    "torch-loop": ("min-gru", "min-lstm"),
    "torch-log-scan": ("min-gru", "min-lstm"),
    "torch-nn": ("gru", "lstm"),
}


def build(case: Case) -> tuple[Step, dict]:
    torch_device.begin(case)
    b, t, d, e = case.batch_size, case.seq_len, case.d_model, case.d_hidden
    x = torch.randn(b, t, d, requires_grad=True)
    loss_weight = torch.randn(b, t, e)

    if case.impl == "torch-nn":
        layer = (torch.nn.GRU if case.mixer == "gru" else torch.nn.LSTM)(d, e, batch_first=True)
        state = [torch.randn(1, b, e, requires_grad=True) for _ in range(1 if case.mixer == "gru" else 2)]
        leaves = [x, *state, *layer.parameters()]

        def forward() -> torch.Tensor:
            return layer(x, state[0] if case.mixer == "gru" else tuple(state))[0]
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
