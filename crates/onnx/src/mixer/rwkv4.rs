//! RWKV-4's time mixing, a the mean of the values read and l the logarithm of their weight:
//! y = σ(r) ⊙ (a + σ(u + k − l) ⊙ (v − a)), a ← a + σ(k − w − l) ⊙ (v − a), l ← ln(e^(w + l) + e^k). What rounding l loses is kept for the next step.

use minrnn_kernels::rwkv4::EMPTY;

use super::Place;
use crate::Result;
use crate::graph::{Graph, Initial, Value};
use crate::token_shift::mixtures;

/// Below this, 1 + e loses too many digits of e.
const SMALL: f32 = 1e-3;

pub(super) fn step(g: &mut Graph<'_>, at: &Place<'_>, x: Value) -> Result<Value> {
    let (d, e) = (at.config.d_model, at.config.d_inner());
    let [for_r, for_k, for_v] = mixtures(g, at.name, ["mix_receptance", "mix_key", "mix_value"], d, x)?;
    let r = g.linear(&at.at("receptance"), for_r, [d, e], false)?;
    let k = g.linear(&at.at("key"), for_k, [d, e], false)?;
    let v = g.linear(&at.at("value"), for_v, [d, e], false)?;
    let fading: Vec<f32> = g.tensor(&at.at("decay"), &[e])?.into_iter().map(|decay| -libm::expf(decay)).collect();
    let (w, u) = (g.constant(&at.at("fading"), &[e], &fading), g.parameter(&at.at("bonus"), &[e])?);

    let mean = g.state(&at.at("mean"), &[e], Initial::All(0.0));
    let weight = g.state(&at.at("log_weight"), &[e], Initial::All(EMPTY));
    let lost = g.state(&at.at("lost"), &[e], Initial::All(0.0));
    let ahead = g.sub(k, weight);
    let ahead = g.sub(ahead, lost);
    let now = g.add(u, ahead);
    let now = g.sigmoid(now);
    let y = g.move_to(mean, v, now);
    let gate = g.sigmoid(r);
    let y = g.mul(gate, y);

    let x = g.sub(ahead, w);
    let share = g.sigmoid(x);
    let mean = g.move_to(mean, v, share);
    let more = log_of_sum(g, x);
    let grown = g.add(w, more);
    let grown = g.add(lost, grown);
    let zero = g.number(0.0);
    let is_larger = g.greater(x, zero);
    let (larger, more) = (g.choose(is_larger, k, weight), g.choose(is_larger, more, grown));
    let next = g.add(larger, more);
    let added = g.sub(next, larger);
    let lost = g.sub(more, added);
    g.keep(&at.at("mean"), mean);
    g.keep(&at.at("log_weight"), next);
    g.keep(&at.at("lost"), lost);
    g.linear(&at.at("out_proj"), y, [e, d], false)
}

/// ln(1 + e^−|x|).
fn log_of_sum(g: &mut Graph<'_>, x: Value) -> Value {
    let size = g.abs(x);
    let size = g.neg(size);
    let e = g.exp(size);
    let sum = g.plus(e, 1.0);
    let log = g.log(sum);
    let squared = g.mul(e, e);
    let half = g.times(squared, 0.5);
    let (series, small) = (g.sub(e, half), g.number(SMALL));
    let is_small = g.less(e, small);
    g.choose(is_small, series, log)
}
