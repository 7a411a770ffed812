//! The norms, for inference.

use alloc::vec::Vec;

use minrnn_kernels::layer_norm::{self, EPS};
use minrnn_kernels::simd::sqrt;
use minrnn_kernels::{Out, rms_norm};

use crate::gates;
use crate::pass::Pass;
use crate::shared::Shared;
use crate::source::Source;
use crate::{CheckedConfig, NormKind, Result};

/// Rows the kernels do in one block, without asking the pool for threads.
const BLOCK: usize = 128;

/// Normalises rows `[N, D]`.
#[derive(Debug, Clone)]
pub(crate) enum Norm {
    /// γ ⊙ (x − mean) / √(variance + 1e−5) + β over channels.
    Layer { gamma: Vec<f32>, beta: Vec<f32> },
    /// (1 + γ) ⊙ x √D / ‖x‖ over channels.
    Rms { gamma: Vec<f32> },
    /// (1 + γ) ⊙ x / √(mean x² + ε) over channels.
    RmsEps { gamma: Vec<f32>, eps: f32 },
    /// (x − mean) ⊙ scale + β with the running statistics, scale = γ / √(variance + 1e−5).
    Batch { mean: Vec<f32>, scale: Vec<f32>, beta: Vec<f32> },
}

impl Norm {
    pub(crate) fn read(config: &CheckedConfig, source: &mut dyn Source, name: &str) -> Result<Self> {
        let mut vector = |part: &str| source.vector(&alloc::format!("{name}.{part}"), &[config.d_model]);
        Ok(match config.norm {
            NormKind::Layer => {
                let gamma = vector("weight")?;
                Self::Layer { gamma, beta: if config.bias { vector("bias")? } else { alloc::vec![0.0; config.d_model] } }
            }
            NormKind::Rms if config.rms_eps > 0.0 => Self::RmsEps { gamma: vector("gamma")?, eps: config.rms_eps as f32 },
            NormKind::Rms => Self::Rms { gamma: vector("gamma")? },
            NormKind::Batch => {
                let (gamma, beta) = (vector("weight")?, vector("bias")?);
                let (mean, variance) = (vector("running_mean")?, vector("running_var")?);
                let scale = gamma.iter().zip(variance).map(|(gamma, variance)| gamma / sqrt(variance + EPS)).collect();
                Self::Batch { mean, scale, beta }
            }
        })
    }

    /// A LayerNorm with gain and bias, whatever the model's other norms are.
    pub(crate) fn layer(source: &mut dyn Source, name: &str, width: usize) -> Result<Self> {
        let mut vector = |part: &str| source.vector(&alloc::format!("{name}.{part}"), &[width]);
        Ok(Self::Layer { gamma: vector("weight")?, beta: vector("bias")? })
    }

    /// `y` = norm(`x`), both `[rows, D]`.
    pub(crate) fn forward(&self, pass: &Pass<'_>, rows: usize, x: &[f32], y: &mut [f32]) {
        let d = self.width();
        let y = Shared::new(y, d);
        // A norm is worth a few multiplications for each element.
        pass.workers.split(rows, 1, 2 * rows * d, |_, range| {
            for from in range.clone().step_by(BLOCK) {
                let to = range.end.min(from + BLOCK);
                // SAFETY: pieces have rows of their own.
                let y = unsafe { y.part(0, from * d..to * d) };
                self.block(pass, to - from, &x[from * d..to * d], y);
            }
        });
    }

    fn width(&self) -> usize {
        match self {
            Self::Layer { gamma, .. } | Self::Rms { gamma } | Self::RmsEps { gamma, .. } => gamma.len(),
            Self::Batch { mean, .. } => mean.len(),
        }
    }

    fn block(&self, pass: &Pass<'_>, rows: usize, x: &[f32], y: &mut [f32]) {
        let d = self.width();
        match self {
            Self::Layer { gamma, beta } => layer_norm::forward(rows, d, layer_norm::Inputs { x, gamma, eps: EPS }, beta, Out::new(y)),
            Self::Rms { gamma } => rms_norm::forward(rows, d, rms_norm::Inputs { x, gamma }, Out::new(y)),
            Self::RmsEps { gamma, eps } => {
                for (x, y) in x.chunks_exact(d).zip(y.chunks_exact_mut(d)) {
                    let mean_square = x.iter().map(|x| x * x).sum::<f32>() / d as f32;
                    let factor = rms_norm::inverse_root(mean_square, *eps);
                    y.iter_mut().zip(x).zip(gamma).for_each(|((y, x), gamma)| *y = x * factor * (1.0 + gamma));
                }
            }
            Self::Batch { mean, scale, beta } => {
                for (x, y) in x.chunks_exact(d).zip(y.chunks_exact_mut(d)) {
                    gates::scale_shift(pass.level, [x, mean, scale, beta], y);
                }
            }
        }
    }
}
