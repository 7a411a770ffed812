//! mLSTM: m⁺ = max(ln f + m, ĩ), C ← e^(ln f + m − m⁺) C + e^(ĩ − m⁺) k vᵀ/√e, n likewise of k, h = Cᵀ q / (max(|n · q|, e^−m⁺) + 1e−6),
//! y = (norm of each head of h + s ⊙ c̄) ⊙ SiLU(ζ).

use minrnn_kernels::m_lstm::{EMPTY_M, EPS};
use minrnn_kernels::simd::sqrt;
use minrnn_model::MLSTM_BLOCK;

use super::Place;
use crate::block_diagonal::product;
use crate::graph::{Graph, Initial, Value};
use crate::window::depthwise;
use crate::{Result, norm};

pub(super) fn step(g: &mut Graph<'_>, at: &Place<'_>, x: Value) -> Result<Value> {
    let (d, e, heads) = (at.config.d_model, at.config.mlstm_inner(), at.config.n_heads);
    let head = e / heads;
    let up = g.linear(&at.at("in_proj"), x, [d, 2 * e], false)?;
    let [u, z] = g.split(up, 1, [e; 2]);
    let gated = depthwise(g, &at.at("conv1d"), e, u)?;
    let gated = g.silu(gated);
    let blocks = [e / MLSTM_BLOCK, MLSTM_BLOCK, MLSTM_BLOCK];
    let q = product(g, &at.at("q_proj.weight"), blocks, gated)?;
    let k = product(g, &at.at("k_proj.weight"), blocks, gated)?;
    let v = product(g, &at.at("v_proj.weight"), blocks, u)?;
    let qkv = g.concat(&[q, k, v], 1);
    let [i, f] = ["igate", "fgate"].map(|gate| g.linear(&at.at(gate), qkv, [3 * e, heads], true));
    let (i, f) = (i?, f?);

    let c = g.state(&at.at("C"), &[heads, head, head], Initial::All(0.0));
    let n = g.state(&at.at("n"), &[heads, head], Initial::All(0.0));
    let m = g.state(&at.at("m"), &[heads], Initial::All(EMPTY_M));
    let log_forget = g.log_sigmoid(f);
    let kept = g.add(log_forget, m);
    let new_m = g.max(kept, i);
    let [take, keep] = [i, kept].map(|x| {
        let below = g.sub(x, new_m);
        let factor = g.exp(below);
        g.reshape(factor, &[heads, 1])
    });
    let k = g.reshape(k, &[heads, head]);
    let k = g.times(k, 1.0 / sqrt(head as f32));
    let k = g.mul(take, k);
    let kept = g.mul(keep, n);
    let n = g.add(kept, k);
    let (column, row) = (g.reshape(k, &[heads, head, 1]), g.reshape(v, &[heads, 1, head]));
    let added = g.mul(column, row);
    let keep = g.reshape(keep, &[heads, 1, 1]);
    let kept = g.mul(keep, c);
    let c = g.add(kept, added);
    for (part, value) in [("C", c), ("n", n), ("m", new_m)] {
        g.keep(&at.at(part), value);
    }

    let q = g.reshape(q, &[heads, 1, head]);
    let (found, n) = (g.matmul(q, c), g.reshape(n, &[heads, head, 1]));
    let weight = g.matmul(q, n);
    let (weight, floor) = (g.abs(weight), g.neg(new_m));
    let floor = g.exp(floor);
    let floor = g.reshape(floor, &[heads, 1, 1]);
    let divisor = g.max(weight, floor);
    let divisor = g.plus(divisor, EPS);
    let h = g.div(found, divisor);
    let h = g.reshape(h, &[heads, head]);
    let normed = norm::heads(g, &at.at("outnorm.weight"), [heads, head], h)?;
    let skip = g.parameter(&at.at("learnable_skip"), &[e])?;
    let skipped = g.mul(skip, gated);
    let (sum, gate) = (g.add(normed, skipped), g.silu(z));
    let y = g.mul(sum, gate);
    g.linear(&at.at("out_proj"), y, [e, d], false)
}
