//! Gated linear attention with a constant decay: RetNet, and linear attention without decay. Per head S ← γ S + c φ(k) vᵀ, o = Sᵀ φ(q), then
//! o / (n + 1e−6), n being the output of a value of 1, or RetNet's SiLU(g) ⊙ o / √(mean o² + 1e−6).

use std::f64::consts::TAU;

use minrnn_kernels::retention::{EPS, angle, decay};
use minrnn_kernels::simd::sqrt;
use minrnn_model::MixerKind;

use super::Place;
use crate::Result;
use crate::graph::{Graph, Initial, Value};
use crate::proto::DataType;

pub(super) fn step(g: &mut Graph<'_>, at: &Place<'_>, x: Value) -> Result<Value> {
    let (config, d, heads) = (at.config, at.config.d_model, at.config.n_heads);
    let is_retention = at.kind == MixerKind::RetNet;
    let value = config.d_inner() / heads;
    let key = if is_retention { d / heads } else { value };
    let [query, keys] = ["query", "key"].map(|part| g.linear(&at.at(part), x, [d, heads * key], false));
    let values = g.linear(&at.at("value"), x, [d, heads * value], false)?;
    let [query, keys] = if is_retention { turned(g, at, key, [query?, keys?]) } else { [query?, keys?].map(|x| positive(g, x)) };
    let (query, keys) = (g.reshape(query, &[heads, 1, key]), g.reshape(keys, &[heads, key, 1]));
    let values = g.reshape(values, &[heads, 1, value]);

    let memory = g.state(&at.at("memory"), &[heads, key, value], Initial::All(0.0));
    let added = g.mul(keys, values);
    let kept = if is_retention {
        let decays: Vec<f32> = (0..heads).map(|head| decay(head) as f32).collect();
        let decays = g.constant(&format!("decays.{heads}"), &[heads, 1, 1], &decays);
        g.mul(decays, memory)
    } else {
        memory
    };
    let memory = g.add(kept, added);
    g.keep(&at.at("memory"), memory);
    let found = g.matmul(query, memory);
    let (scaled, width) = (scale(g, at, [heads, key], [query, keys, found]), heads * value);
    let y = g.reshape(scaled, &[width]);
    let y = if is_retention {
        let gate = g.linear(&at.at("gate"), x, [d, width], false)?;
        let gate = g.silu(gate);
        g.mul(gate, y)
    } else {
        y
    };
    g.linear(&at.at("out_proj"), y, [width, d], false)
}

/// o `[B, H, 1, V]`, normalised as its kind does.
fn scale(g: &mut Graph<'_>, at: &Place<'_>, [heads, key]: [usize; 2], [query, keys, found]: [Value; 3]) -> Value {
    if at.kind == MixerKind::RetNet {
        let squares = g.mul(found, found);
        let mean = g.mean(squares);
        let mean = g.plus(mean, EPS as f32);
        let root = g.sqrt(mean);
        return g.div(found, root);
    }
    let normalizer = g.state(&at.at("normalizer"), &[heads, key, 1], Initial::All(0.0));
    let normalizer = g.add(normalizer, keys);
    g.keep(&at.at("normalizer"), normalizer);
    let divisor = g.matmul(query, normalizer);
    let divisor = g.plus(divisor, EPS as f32);
    g.div(found, divisor)
}

/// elu(x) + 1: e^min(x, 0) + max(x, 0).
fn positive(g: &mut Graph<'_>, x: Value) -> Value {
    let (zero, above) = (g.number(0.0), g.relu(x));
    let below = g.min(x, zero);
    let below = g.exp(below);
    g.add(above, below)
}

/// Queries and keys `[B, H · K]` with their pairs of channels rotated by the angle of the position, keys divided by √K: `[B, H, K/2, 2]`.
fn turned(g: &mut Graph<'_>, at: &Place<'_>, key: usize, [query, keys]: [Value; 2]) -> [Value; 2] {
    let pairs = key / 2;
    let position = g.state(&at.at("position"), &[1], Initial::All(0.0));
    let next = g.next_count(position);
    g.keep(&at.at("position"), next);
    // Turns are counted in f64 and whole turns removed, so that the sine can be taken in f32: few runtimes have it in f64.
    let angles: Vec<f64> = (0..pairs).map(|pair| angle(pair, pairs) / TAU).collect();
    let angles = g.doubles(&format!("turns.{pairs}"), &[pairs, 1], &angles);
    let position = g.cast(position, DataType::Double);
    let position = g.reshape(position, &[1, 1, 1]);
    let turns = g.mul(position, angles);
    let whole = g.floor(turns);
    let part = g.sub(turns, whole);
    let part = g.cast(part, DataType::Float);
    let angle = g.times(part, TAU as f32);
    let (cos, sin) = (g.cos(angle), g.sin(angle));
    let keys = g.times(keys, 1.0 / sqrt(key as f32));
    [query, keys].map(|x| {
        let x = g.reshape(x, &[at.config.n_heads, pairs, 2]);
        let [first, second] = g.split(x, 3, [1, 1]);
        let turned = [(first, second, true), (second, first, false)].map(|(along, across, is_first)| {
            let (along, across) = (g.mul(along, cos), g.mul(across, sin));
            if is_first { g.sub(along, across) } else { g.add(along, across) }
        });
        g.concat(&turned, 3)
    })
}
