"""Inference of the Shakespeare model in PyTorch eager.

decode: `seq_len` tokens one by one, each the most likely one after those before.
prefill: one pass over a prompt of `seq_len` tokens, to the state and the last position's logits.
"""

import sys

import lm_setting
import numpy as np
import torch
import torch_device
from common import Case, Step, run
from lm_setting import Setting
from torch_model import check_torch_model, load

CELLS = ("min-gru", "min-lstm")
IMPLEMENTATIONS = {
    "decode": {"torch": CELLS},
    "prefill": {"torch-loop": CELLS, "torch-log-scan": CELLS},
}
LENGTHS = {"decode": [256], "prefill": [512, 4096]}


def builder(bench: str):
    def build(case: Case) -> tuple[Step, dict]:
        torch_device.begin(case)
        setting = Setting.of(case, dropout=0.0)
        impl = "torch-loop" if bench == "decode" else case.impl
        model = load(setting, impl, lm_setting.initial_values(setting)).eval()
        tokens = torch.from_numpy(lm_setting.batch(case, np.random.default_rng(0))[0]).to(case.device)
        with torch.inference_mode():
            _, start = model.prefill(tokens[:, :1])

        @torch.inference_mode()
        def decode() -> None:
            token, state = tokens[:, 0], start
            for _ in range(case.seq_len):
                logits, state = model.step(token, state)
                token = logits.argmax(-1)

        @torch.inference_mode()
        def prefill() -> None:
            model.prefill(tokens)

        extra = {
            "flop": lm_setting.flop(case, case.batch_size * case.seq_len, backward=False),
            "parameters": lm_setting.parameter_count(case),
        }
        return torch_device.finish(case, decode if bench == "decode" else prefill, extra)

    return build


if __name__ == "__main__":
    if len(sys.argv) < 2 or sys.argv[1] not in LENGTHS:
        sys.exit("usage: torch_decode.py decode|prefill [flags]")
    bench = sys.argv.pop(1)
    run(
        bench,
        IMPLEMENTATIONS[bench],
        builder(bench),
        check_torch_model,
        mixer=["min-gru"],
        d_model=384,
        d_hidden=768,
        batch_size=1,
        seq_len=LENGTHS[bench],
    )
