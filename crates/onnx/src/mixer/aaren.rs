//! Aaren, o being the mean of the values read and l the logarithm of their weight, per head:
//! l ← ln(e^l + e^s), o ← o + e^(s − l) (v − o), s = x · (W_kᵀ q / √e). Logarithms are added in f64.

use minrnn_kernels::prefix_softmax::EMPTY;
use minrnn_kernels::simd::sqrt;

use super::Place;
use crate::Result;
use crate::graph::{Graph, Initial, Value};
use crate::proto::DataType;

pub(super) fn step(g: &mut Graph<'_>, at: &Place<'_>, x: Value) -> Result<Value> {
    let (config, d, e) = (at.config, at.config.d_model, at.config.d_inner());
    let (heads, width) = (config.n_heads, config.head_inner());
    let (query, key) = (g.tensor(&at.at("query"), &[e])?, g.tensor(&at.at("key.weight"), &[e, d])?);
    let mut score = vec![0.0; heads * d];
    for ((query, key), channel) in query.iter().zip(key.chunks_exact(d)).zip(0..) {
        let factor = query / sqrt(width as f32);
        score[channel / width * d..][..d].iter_mut().zip(key).for_each(|(sum, key)| *sum += factor * key);
    }
    let score = g.constant(&at.at("score.weight"), &[heads, d], &score);
    let score = g.gemm(x, score, None);
    let value = g.linear(&at.at("value"), x, [d, e], false)?;
    let value = g.reshape(value, &[heads, width]);

    let mean = g.state(&at.at("mean"), &[heads, width], Initial::All(0.0));
    let weight = g.state(&at.at("log_weight"), &[heads], Initial::All(EMPTY));
    let [score, old] = [score, weight].map(|x| g.cast(x, DataType::Double));
    let (larger, smaller) = (g.max(score, old), g.min(score, old));
    let distance = g.sub(smaller, larger);
    let ratio = g.exp(distance);
    let one = g.doubles("double.1", &[], &[1.0]);
    let sum = g.add(ratio, one);
    let more = g.log(sum);
    let new = g.add(larger, more);
    let share = g.sub(score, new);
    let share = g.exp(share);
    let [share, new] = [share, new].map(|x| g.cast(x, DataType::Float));
    g.keep(&at.at("log_weight"), new);
    let share = g.reshape(share, &[heads, 1]);
    let mean = g.move_to(mean, value, share);
    g.keep(&at.at("mean"), mean);
    let y = g.reshape(mean, &[e]);
    g.linear(&at.at("out_proj"), y, [e, d], false)
}
