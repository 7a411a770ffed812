"""One training step of the Shakespeare model in PyTorch eager: forward, loss, backward, clip, AdamW.

`--precision bf16` runs forward pass and loss under autocast: matrix products in bf16, as its rules choose."""

import lm_setting
import numpy as np
import torch
import torch.nn.functional as F
from common import Case, Step, run
from lm_setting import Setting
from torch_model import check_torch_model, load

IMPLEMENTATIONS = {"torch-log-scan": ("min-gru", "min-lstm"), "torch-loop": ("min-gru", "min-lstm")}


def build(case: Case) -> tuple[Step, dict]:
    torch.set_num_threads(case.threads)
    torch.manual_seed(0)
    setting = Setting.of(case)
    model = load(setting, case.impl, lm_setting.initial_values(setting)).train()
    parameters = list(model.parameters())
    groups = [
        {"params": [p for p in parameters if p.ndim >= 2], "weight_decay": lm_setting.WEIGHT_DECAY},
        {"params": [p for p in parameters if p.ndim < 2], "weight_decay": 0.0},
    ]
    optimizer = torch.optim.AdamW(groups, lr=lm_setting.LEARNING_RATE, betas=lm_setting.BETAS, fused=True)
    rng = np.random.default_rng(0)

    def step() -> None:
        tokens, targets = map(torch.from_numpy, lm_setting.batch(case, rng))
        optimizer.zero_grad(set_to_none=True)
        with torch.autocast("cpu", dtype=torch.bfloat16, enabled=case.precision == "bf16"):
            loss = F.cross_entropy(model(tokens).flatten(0, 1), targets.flatten())
        loss.backward()
        torch.nn.utils.clip_grad_norm_(parameters, lm_setting.CLIP_NORM)
        optimizer.step()

    return step, {
        "flop": lm_setting.flop(case, case.batch_size * case.seq_len, backward=True),
        "parameters": lm_setting.parameter_count(case),
        "version": f"torch {torch.__version__}",
    }


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
