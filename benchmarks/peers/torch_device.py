"""Where a PyTorch peer computes: the processor, or an NVIDIA card."""

import torch
from common import Case, Step


def begin(case: Case) -> None:
    """Makes new tensors lie on the case's device; products there use plain f32, as everywhere."""
    torch.set_num_threads(case.threads)
    torch.manual_seed(0)
    torch.set_default_device(case.device)
    torch.set_float32_matmul_precision("highest")


def finish(case: Case, step: Step, extra: dict) -> tuple[Step, dict]:
    """`step` until the device has done all of it, and the keys of the JSON line."""
    extra = {**extra, "version": f"torch {torch.__version__}"}
    if case.device == "cpu":
        return step, extra

    def until_done() -> None:
        step()
        torch.cuda.synchronize()

    return until_done, {**extra, "machine": torch.cuda.get_device_name()}
