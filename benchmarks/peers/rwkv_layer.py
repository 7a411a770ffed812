"""RWKV-4's time mixing in PyTorch, as a whole mixer: token shift, projections, the weighted mean over time, gate, output.

    y_t = (p_{t−1} + e^{u + k_t} v_t) / (q_{t−1} + e^{u + k_t})      p_t = e^w p_{t−1} + e^{k_t} v_t      q_t = e^w q_{t−1} + e^{k_t}

* transformers: that package's loop for processors, `rwkv_linear_attention_cpu`.
* torch-loop: p and q divided by e^{o}, o the running maximum, one step after the other.
* the others: p and q, with e^{k − max k} for e^k, as linear recurrences by one of the scans; exact unless keys of one channel
  differ by more than about 80.
"""

from collections.abc import Callable
from functools import partial

import torch
import torch.nn.functional as F
from common import Case
from linear_scans import SCANS, Scan
from torch import Tensor, nn
from whole_layer import main

Form = Callable[[Tensor, Tensor, Tensor, Tensor], Tensor]


def loop(k: Tensor, v: Tensor, decay: Tensor, u: Tensor) -> Tensor:
    """y [B, T, E] for k, v of that shape, decay and u [E]; w = −e^decay."""
    w = -decay.exp()
    p = q = torch.zeros_like(k[:, 0])
    o, steps = torch.full_like(p, -1e38), []
    for k, v in zip(k.unbind(1), v.unbind(1), strict=True):
        top = torch.maximum(o, u + k)
        kept, taken = (o - top).exp(), (u + k - top).exp()
        steps.append((kept * p + taken * v) / (kept * q + taken))
        top = torch.maximum(w + o, k)
        kept, taken = (w + o - top).exp(), (k - top).exp()
        p, q, o = kept * p + taken * v, kept * q + taken, top
    return torch.stack(steps, dim=1)


def by_scan(k: Tensor, v: Tensor, decay: Tensor, u: Tensor, scan: Scan) -> Tensor:
    weights = (k - k.amax(dim=1, keepdim=True).detach()).exp()
    added = torch.cat([weights * v, weights], dim=-1)
    fade = (-decay.exp()).exp().repeat(2).expand_as(added)
    p, q = F.pad(scan(fade, added, None)[:, :-1], (0, 0, 1, 0)).chunk(2, dim=-1)
    now = u.exp() * weights
    return (p + now * v) / (q + now)


def transformers(k: Tensor, v: Tensor, decay: Tensor, u: Tensor) -> Tensor:
    from transformers.models.rwkv.modeling_rwkv import rwkv_linear_attention_cpu

    return rwkv_linear_attention_cpu(decay, u, k, v)[0]


class Rwkv4(nn.Module):
    def __init__(self, case: Case, form: Form):
        super().__init__()
        d, e = case.d_model, case.d_hidden
        self.form = form
        self.receptance, self.key, self.value = (nn.Linear(d, e, bias=False) for _ in range(3))
        self.out_proj = nn.Linear(e, d, bias=False)
        self.mix = nn.ParameterList(nn.Parameter(torch.rand(d)) for _ in range(3))
        self.decay = nn.Parameter(torch.linspace(-5, 3, e))
        self.bonus = nn.Parameter(torch.zeros(e))

    def forward(self, x: Tensor) -> Tensor:
        before = F.pad(x[:, :-1], (0, 0, 1, 0))
        linears = (self.receptance, self.key, self.value)
        r, k, v = (linear(torch.lerp(before, x, share)) for linear, share in zip(linears, self.mix, strict=True))
        return self.out_proj(r.sigmoid() * self.form(k, v, self.decay, self.bonus))


FORMS: dict[str, Form] = {name: partial(by_scan, scan=scan) for name, scan in SCANS.items()}
FORMS |= {"torch-loop": loop, "transformers": transformers}
LAYERS = {name: {"rwkv4": partial(Rwkv4, form=form)} for name, form in FORMS.items()}

if __name__ == "__main__":
    main(LAYERS)
