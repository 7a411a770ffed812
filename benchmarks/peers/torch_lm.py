"""One training step of the Shakespeare model in PyTorch: forward, loss, backward, clip, AdamW.

`torch-compile` is the log-space scan through `torch.compile`; the others are eager.

`--precision bf16` runs forward pass and loss under autocast: matrix products in bf16, as its rules choose."""

import lm_setting
import numpy as np
import torch
import torch.nn.functional as F
import torch_device
from common import Case, Step, run
from lm_setting import Setting
from torch_model import check_torch_model, load

CELLS = ("min-gru", "min-lstm")
IMPLEMENTATIONS = {"torch-log-scan": CELLS, "torch-loop": CELLS, "torch-compile": CELLS}


def build(case: Case) -> tuple[Step, dict]:
    torch_device.begin(case)
    setting = Setting.of(case)
    compiled = case.impl == "torch-compile"
    model = load(setting, "torch-log-scan" if compiled else case.impl, lm_setting.initial_values(setting)).train()
    parameters = list(model.parameters())
    run_model = torch.compile(model) if compiled else model
    groups = [
        {"params": [p for p in parameters if p.ndim >= 2], "weight_decay": lm_setting.WEIGHT_DECAY},
        {"params": [p for p in parameters if p.ndim < 2], "weight_decay": 0.0},
    ]
    optimizer = torch.optim.AdamW(groups, lr=lm_setting.LEARNING_RATE, betas=lm_setting.BETAS, fused=True)
    rng = np.random.default_rng(0)

    def step() -> None:
        tokens, targets = (torch.from_numpy(x).to(case.device) for x in lm_setting.batch(case, rng))
        optimizer.zero_grad(set_to_none=True)
        with torch.autocast(case.device, dtype=torch.bfloat16, enabled=case.precision == "bf16"):
            loss = F.cross_entropy(run_model(tokens).flatten(0, 1), targets.flatten())
        loss.backward()
        torch.nn.utils.clip_grad_norm_(parameters, lm_setting.CLIP_NORM)
        optimizer.step()

    extra = {
        "flop": lm_setting.flop(case, case.batch_size * case.seq_len, backward=True),
        "parameters": lm_setting.parameter_count(case),
    }
    return torch_device.finish(case, step, extra)


if __name__ == "__main__":
    run(
        "lm",
        IMPLEMENTATIONS,
        build,
        check_torch_model,
        impl=["torch-log-scan"],
        mixer=["min-gru"],
        d_model=384,
        d_hidden=768,
        batch_size=64,
        seq_len=[256],
    )
