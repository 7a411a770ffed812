"""S4, S4D and H3 in PyTorch, as whole mixers: the kernel of a state space in closed form, then a long convolution with it.

    S4D    K_l = 2 Re Σ_n C_n (e^{ΔA_n} − 1)/A_n e^{ΔA_n l}
    S4     K's transform at the roots of unity by Cauchy products (A = Λ − P P*, bilinear); its parameter c̃ is C (I − Ā^L),
           as in the authors' code
    H3     q ⊙ S4D(shift(k) ⊙ v), the shift being a convolution of N taps, by `conv1d`

Checked against the recurrence x_t = Ā x_{t−1} + B̄ u_t, y_t = 2 Re C x_t of the same parameters.
"""

import math
from collections.abc import Callable
from functools import partial

import torch
import torch.nn.functional as F
from common import Case
from long_convolutions import CONVOLUTIONS, Convolution, depthwise
from torch import Tensor, nn
from whole_layer import Make, main

D_STATE = 16


class Diagonal(nn.Module):
    """S4D's state spaces, one for each channel, with half of the states kept."""

    def __init__(self, channels: int):
        super().__init__()
        half = D_STATE // 2
        self.log_dt = nn.Parameter(torch.empty(channels).uniform_(math.log(1e-3), math.log(1e-1)))
        self.log_a_real = nn.Parameter(torch.full((channels, half), math.log(0.5)))
        self.a_imag = nn.Parameter(math.pi * torch.arange(half).repeat(channels, 1).to(torch.get_default_dtype()))
        self.c = nn.Parameter(math.sqrt(0.5) * torch.randn(channels, half, 2))
        self.skip = nn.Parameter(torch.randn(channels))

    def poles(self) -> Tensor:
        return torch.complex(-self.log_a_real.exp(), self.a_imag)

    def kernel(self, seq_len: int) -> Tensor:
        """K [D, T]."""
        a = self.poles()
        grown = a * self.log_dt.exp().unsqueeze(1)
        read = torch.view_as_complex(self.c) * grown.expm1() / a
        return 2 * torch.einsum("dn,dnl->dl", read, (grown.unsqueeze(2) * torch.arange(seq_len)).exp()).real

    def discrete(self, _: int) -> tuple[Tensor, Tensor, Tensor]:
        """Ā [D, N, N], B̄ and C [D, N] of a recurrence that writes y = Re C x."""
        a = self.poles()
        grown = a * self.log_dt.exp().unsqueeze(1)
        return torch.diag_embed(grown.exp()), grown.expm1() / a, 2 * torch.view_as_complex(self.c)


class LowRank(Diagonal):
    """S4's: a rank-one part P P*, and B."""

    def __init__(self, channels: int):
        super().__init__(channels)
        self.p, self.b = (nn.Parameter(torch.randn(channels, D_STATE // 2, 2)) for _ in range(2))

    def all_states(self) -> tuple[Tensor, ...]:
        """Λ, P, B and c̃ with the conjugates of the states that are left out."""
        kept = (self.poles(), *(torch.view_as_complex(x) for x in (self.p, self.b, self.c)))
        return tuple(torch.cat([x, x.conj()], dim=1) for x in kept)

    def kernel(self, seq_len: int) -> Tensor:
        poles, p, b, c = self.all_states()
        root = torch.polar(torch.tensor(1.0), -2 * math.pi * torch.arange(seq_len // 2 + 1) / seq_len)
        step = 2 / self.log_dt.exp()[:, None, None]
        # 2 / (1 + ω) is part of the products with c̃, so that nothing is infinite at ω = −1.
        cauchy = 1 / (step * (1 - root) - (1 + root) * poles.unsqueeze(2))
        by_c, by_p = 2 * cauchy, (1 + root) * cauchy
        product = lambda left, middle, right: torch.einsum("dn,dnk->dk", left * right, middle)
        correction = product(c, by_c, p) * product(p.conj(), by_p, b) / (1 + product(p.conj(), by_p, p))
        return torch.fft.irfft(product(c, by_c, b) - correction, n=seq_len)

    def discrete(self, seq_len: int) -> tuple[Tensor, Tensor, Tensor]:
        poles, p, b, c = self.all_states()
        half = (torch.diag_embed(poles) - p.unsqueeze(2) * p.conj().unsqueeze(1)) * self.log_dt.exp()[:, None, None] / 2
        one = torch.eye(D_STATE)
        inverse = torch.linalg.inv(one - half)
        a, b = inverse @ (one + half), inverse @ b.unsqueeze(2) * self.log_dt.exp()[:, None, None]
        tilde = torch.linalg.inv(one - torch.linalg.matrix_power(a, seq_len))
        return a, b.squeeze(2), (c.unsqueeze(1) @ tilde).squeeze(1)


Form = Callable[[Tensor, Diagonal], Tensor]


def by_convolution(u: Tensor, ssm: Diagonal, convolution: Convolution) -> Tensor:
    """y [B, T, D] with the skip D u."""
    return convolution(u, ssm.kernel(u.shape[1])) + ssm.skip * u


def by_recurrence(u: Tensor, ssm: Diagonal) -> Tensor:
    a, b, c = ssm.discrete(u.shape[1])
    x, steps = torch.zeros_like(b), []
    for u_t in u.unbind(1):
        x = (a @ x.unsqueeze(-1)).squeeze(-1) + b * u_t.unsqueeze(-1)
        steps.append((c * x).sum(dim=-1).real + ssm.skip * u_t)
    return torch.stack(steps, dim=1)


class S4(nn.Module):
    def __init__(self, case: Case, form: Form, ssm: type[Diagonal]):
        super().__init__()
        self.form = form
        self.ssm = ssm(case.d_model)
        self.out_proj = nn.Linear(case.d_model, 2 * case.d_model)

    def forward(self, x: Tensor) -> Tensor:
        return F.glu(self.out_proj(F.gelu(self.form(x, self.ssm))))


class H3(nn.Module):
    def __init__(self, case: Case, form: Form):
        super().__init__()
        d = case.d_model
        self.form = form
        self.in_proj, self.out_proj = nn.Linear(d, 3 * d), nn.Linear(d, d)
        self.taps = nn.Parameter(torch.empty(d, 1, D_STATE).uniform_(-(D_STATE**-0.5), D_STATE**-0.5))
        self.skip = nn.Parameter(torch.randn(d))
        self.ssm = Diagonal(d)

    def forward(self, x: Tensor) -> Tensor:
        q, k, v = self.in_proj(x).chunk(3, dim=-1)
        k = depthwise(k, self.taps) + self.skip * k
        return self.out_proj(q * self.form(k * v, self.ssm))


def by(form: Form) -> dict[str, Make]:
    layers = {"s4": partial(S4, ssm=LowRank), "s4d": partial(S4, ssm=Diagonal), "h3": H3}
    return {mixer: partial(layer, form=form) for mixer, layer in layers.items()}


LAYERS = {name: by(partial(by_convolution, convolution=convolution)) for name, convolution in CONVOLUTIONS.items()}

if __name__ == "__main__":
    main(LAYERS, by(by_recurrence))
