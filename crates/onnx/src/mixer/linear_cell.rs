//! The mixers with a linear recurrence between two projections: minGRU, minLSTM, GILR, signed and decaying minGRU.
//!
//! Each updates its state by what it loses, h ← h − (1 − a) h + b: close to 1, a rounded to f32 would forget a different share.

use minrnn_kernels::Candidate;
use minrnn_kernels::sigmoid::largest_share;
use minrnn_kernels::softplus::softplus_f64;
use minrnn_model::{ForgetFloor, MixerKind};

use super::{Place, initial};
use crate::Result;
use crate::graph::{Graph, Value};

pub(super) fn step(g: &mut Graph<'_>, at: &Place<'_>, x: Value) -> Result<Value> {
    let (config, e, d) = (at.config, at.config.d_inner(), at.config.d_model);
    let candidate = at.kind.spec().candidate(config);
    let initial = initial(g, at, "initial_state", candidate)?;
    let h = g.state(&at.at("h"), &[e], initial);
    let parts = if matches!(at.kind, MixerKind::MinLstm | MixerKind::SignedMinGru) { 3 } else { 2 };
    let all = g.linear(&at.at("in_proj"), x, [d, parts * e], true)?;
    let h = match at.kind {
        MixerKind::MinLstm => {
            let [v, p, q] = g.split(all, 1, [e; 3]);
            min_lstm(g, config.normalize_gates, candidate, [v, p, q], h)
        }
        MixerKind::SignedMinGru => {
            let [v, k, s] = g.split(all, 1, [e; 3]);
            signed(g, candidate, [v, k, s], h)
        }
        MixerKind::DecayMinGru => {
            let [v, k] = g.split(all, 1, [e; 2]);
            let theta = g.tensor(&at.at("decay"), &[e])?;
            // 1 − e^{−u} for the rate u = softplus(θ) of steps of the same length.
            let missing = |theta: &f32| -libm::expm1(-softplus_f64((*theta).into())) as f32;
            let missing: Vec<f32> = theta.iter().map(missing).collect();
            let missing = g.constant(&at.at("decay.missing"), &[e], &missing);
            scaled(g, candidate, [v, k, missing], h)
        }
        _ => {
            let [v, k] = g.split(all, 1, [e; 2]);
            let mut share = g.sigmoid(k);
            if config.forget_floor == ForgetFloor::Learned {
                let (theta, ceiling) = (g.tensor(&at.at("forget_floor"), &[e])?, config.forget_ceiling(at.layer) as f32);
                let most: Vec<f32> = theta.iter().map(|&theta| largest_share(theta, ceiling)).collect();
                let most = g.constant(&at.at("forget_floor.share"), &[e], &most);
                share = g.mul(share, most);
            }
            let value = g.candidate(candidate, v);
            g.move_to(h, value, share)
        }
    };
    g.keep(&at.at("h"), h);
    let y = g.linear(&at.at("out_proj"), h, [e, d], true)?;
    if !config.highway || !matches!(at.kind, MixerKind::MinGru | MixerKind::MinLstm) {
        return Ok(y);
    }
    let gate = g.linear(&at.at("highway"), x, [d, d], true)?;
    let gate = g.sigmoid(gate);
    Ok(g.move_to(x, y, gate))
}

/// f' h + i' h̃; normalised, f' = f / (f + i) and i' = σ(softplus(−p) − softplus(−q)) without that 0/0.
fn min_lstm(g: &mut Graph<'_>, normalized: bool, candidate: Candidate, [v, p, q]: [Value; 3], h: Value) -> Value {
    let value = g.candidate(candidate, v);
    let [less_p, less_q] = [p, q].map(|x| g.neg(x));
    if normalized {
        let [forget, input] = [less_p, less_q].map(|x| g.softplus(x));
        let difference = g.sub(forget, input);
        let share = g.sigmoid(difference);
        return g.move_to(h, value, share);
    }
    let (loss, input) = (g.sigmoid(less_p), g.sigmoid(q));
    let added = g.mul(input, value);
    less_and_more(g, h, loss, added)
}

/// (1 − z) tanh(s) h + z h̃, with 1 − |tanh s| = 2 e / (1 + e) for e = e^−2|s|.
fn signed(g: &mut Graph<'_>, candidate: Candidate, [v, k, s]: [Value; 3], h: Value) -> Value {
    let (sign, size) = (g.sign(s), g.abs(s));
    let size = g.times(size, -2.0);
    let e = g.exp(size);
    let (twice, divisor) = (g.add(e, e), g.plus(e, 1.0));
    let missing = g.div(twice, divisor);
    let turned = g.mul(sign, h);
    scaled(g, candidate, [v, k, missing], turned)
}

/// (1 − z) φ h + z h̃, `missing` being 1 − φ.
fn scaled(g: &mut Graph<'_>, candidate: Candidate, [v, k, missing]: [Value; 3], h: Value) -> Value {
    let less_k = g.neg(k);
    let (take, keep) = (g.sigmoid(k), g.sigmoid(less_k));
    let lost = g.mul(keep, missing);
    let (loss, value) = (g.add(take, lost), g.candidate(candidate, v));
    let added = g.mul(take, value);
    less_and_more(g, h, loss, added)
}

/// h + (added − loss h).
pub(super) fn less_and_more(g: &mut Graph<'_>, h: Value, loss: Value, added: Value) -> Value {
    let lost = g.mul(loss, h);
    let step = g.sub(added, lost);
    g.add(h, step)
}
