//! The norms, for inference.

use minrnn_kernels::layer_norm::EPS;
use minrnn_kernels::rms_norm::FLOOR;
use minrnn_kernels::simd::sqrt;
use minrnn_model::{CheckedConfig, NormKind};

use crate::graph::{Graph, Value};
use crate::{Result, join};

/// The norm `name` of `x` `[B, D]`.
pub(crate) fn norm(g: &mut Graph<'_>, config: &CheckedConfig, name: &str, x: Value) -> Result<Value> {
    let d = config.d_model;
    match config.norm {
        NormKind::Layer => layer(g, name, d, config.bias, x),
        NormKind::Rms => {
            // (1 + γ) √D, or without the root where the norm uses the mean of squares and not their sum.
            let root = if config.rms_eps > 0.0 { 1.0 } else { sqrt(d as f32) };
            let gain: Vec<f32> = g.tensor(&join(name, "gamma"), &[d])?.iter().map(|gamma| (1.0 + gamma) * root).collect();
            let gain = g.constant(&join(name, "gain"), &[d], &gain);
            let length = if config.rms_eps > 0.0 {
                let squares = g.mul(x, x);
                let mean = g.mean(squares);
                let mean = g.plus(mean, config.rms_eps as f32);
                g.sqrt(mean)
            } else {
                let (length, floor) = (g.length(x), g.number(FLOOR));
                g.max(length, floor)
            };
            let direction = g.div(x, length);
            Ok(g.mul(direction, gain))
        }
        NormKind::Batch => {
            let [gamma, beta, mean, variance] = ["weight", "bias", "running_mean", "running_var"].map(|part| join(name, part));
            let (gamma, variance) = (g.tensor(&gamma, &[d])?, g.tensor(&variance, &[d])?);
            let scale: Vec<f32> = gamma.iter().zip(variance).map(|(gamma, variance)| gamma / sqrt(variance + EPS)).collect();
            let (scale, mean) = (g.constant(&join(name, "scale"), &[d], &scale), g.parameter(&mean, &[d])?);
            let beta = g.parameter(&beta, &[d])?;
            let centred = g.sub(x, mean);
            let scaled = g.mul(centred, scale);
            Ok(g.add(scaled, beta))
        }
    }
}

/// The LayerNorm `name` of `x` `[B, width]`.
pub(crate) fn layer(g: &mut Graph<'_>, name: &str, width: usize, has_bias: bool, x: Value) -> Result<Value> {
    let gain = g.parameter(&join(name, "weight"), &[width])?;
    let shift = if has_bias { Some(g.parameter(&join(name, "bias"), &[width])?) } else { None };
    Ok(g.layer_norm(x, gain, shift, EPS))
}

/// LayerNorm of each of `heads` heads of `x` `[B, heads, width]` separately, with gains 1 + w; `[B, heads · width]`.
pub(crate) fn heads(g: &mut Graph<'_>, name: &str, [heads, width]: [usize; 2], x: Value) -> Result<Value> {
    let gain: Vec<f32> = g.tensor(name, &[heads * width])?.iter().map(|weight| 1.0 + weight).collect();
    let gain = g.constant(&join(name, "gain"), &[heads * width], &gain);
    let ones = g.constant(&format!("ones.{width}"), &[width], &vec![1.0; width]);
    let normed = g.layer_norm(x, ones, None, EPS);
    let normed = g.reshape(normed, &[heads * width]);
    Ok(g.mul(normed, gain))
}
