"""y_t = Σ_{l ≤ t} K_l u_{t−l} for each channel in PyTorch: u [B, T, D] and K [D, L], L ≤ T, to y [B, T, D].

* fft: Fourier transforms of twice the length, as S4, H3 and Hyena do.
* toeplitz: a T × T matrix for each channel and a batched product; more operations, all of them multiply-adds.
* direct: the sum as it is written, for checks.
"""

from collections.abc import Callable

import torch
import torch.nn.functional as F
from torch import Tensor

Convolution = Callable[[Tensor, Tensor], Tensor]


def fft(u: Tensor, kernel: Tensor) -> Tensor:
    seq_len = u.shape[1]
    spectra = torch.fft.rfft(u.mT, n=2 * seq_len) * torch.fft.rfft(kernel, n=2 * seq_len)
    return torch.fft.irfft(spectra, n=2 * seq_len)[..., :seq_len].mT


def toeplitz(u: Tensor, kernel: Tensor) -> Tensor:
    seq_len = u.shape[1]
    # Row r of the windows is K_{T−1−r}, …, K_0 followed by zeros, which is row T − 1 − r of the matrix.
    backwards = F.pad(kernel, (seq_len - 1, seq_len - kernel.shape[1])).flip(1)
    matrices = backwards.unfold(1, seq_len, 1).flip(1)
    return (matrices @ u.permute(2, 1, 0)).permute(2, 1, 0)


def direct(u: Tensor, kernel: Tensor) -> Tensor:
    u = F.pad(u, (0, 0, kernel.shape[1] - 1, 0))
    return torch.stack([(window * kernel.flip(1)).sum(dim=2) for window in u.unfold(1, kernel.shape[1], 1).unbind(1)], dim=1)


def depthwise(u: Tensor, taps: Tensor, bias: Tensor | None = None) -> Tensor:
    """A short causal convolution by `conv1d`; the last of the taps [D, 1, K] meets the current step."""
    width = taps.shape[2]
    return F.conv1d(F.pad(u.mT, (width - 1, 0)), taps, bias, groups=len(taps)).mT


CONVOLUTIONS: dict[str, Convolution] = {"torch-fft": fft, "torch-toeplitz": toeplitz}
