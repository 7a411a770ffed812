//! The feed-forward part of a block: x + down(GELU(up(norm(x)))), plain or gated.

use alloc::vec::Vec;

use minrnn_kernels::gelu;

use crate::gates;
use crate::linear::{Linear, Shared, product};
use crate::norm::as_out;
use crate::pass::Pass;
use crate::source::{Source, join};
use crate::workspace::{Buffers, room};
use crate::{FeedForwardKind, ModelConfig, Result};

/// A plain or gated GELU layer.
#[derive(Debug, Clone)]
pub(crate) struct FeedForward {
    /// D → M, or D → 2M with rows value then gate.
    up: Linear,
    /// M → D.
    down: Linear,
    /// `[M]`, only in the gated form: GELU(gate) ⊙ value ⊙ scale.
    scale: Option<Vec<f32>>,
}

impl FeedForward {
    pub(crate) fn read(config: &ModelConfig, source: &mut dyn Source, name: &str) -> Result<Self> {
        let (d, d_ff) = (config.d_model, config.d_ff()?);
        let gated = config.ff == FeedForwardKind::Gated;
        let up = source.linear(&join(name, "up"), if gated { 2 * d_ff } else { d_ff }, d)?;
        let down = source.linear(&join(name, "down"), d, d_ff)?;
        let scale = if gated { Some(source.vector(&join(name, "scale"), &[d_ff])?) } else { None };
        Ok(Self { up, down, scale })
    }

    /// `x += FF(buffers.normed)`, `x` `[N, D]`.
    pub(crate) fn forward(&self, pass: &Pass<'_>, x: &mut [f32], buffers: &mut Buffers) {
        let (n, d_ff) = (pass.rows, self.down.weight.inputs());
        let scratch = room(&mut buffers.product, n * self.up.weight.outputs().max(self.down.weight.outputs()));
        let hidden = room(&mut buffers.hidden, n * d_ff);
        let shared = Shared::new(hidden, d_ff);
        let groups = if self.scale.is_some() { 2 } else { 1 };
        product(pass, &self.up.weight, groups, 0..groups, n, &buffers.normed, scratch, |range, values| {
            let bias = |group: usize| &self.up.bias[group * d_ff..][range.clone()];
            let width = range.len();
            for row in 0..n {
                let part = |group: usize| &values[(group * n + row) * width..][..width];
                // SAFETY: pieces have channels of their own.
                let hidden = unsafe { shared.part(row, range.clone()) };
                match &self.scale {
                    None => gelu::forward(1, width, part(0), Some(bias(0)), as_out(hidden)),
                    Some(scale) => {
                        gelu::forward(1, width, part(1), Some(bias(1)), as_out(hidden));
                        gates::scale_by(pass.level, part(0), bias(0), &scale[range.clone()], hidden);
                    }
                }
            }
        });
        self.down.add_to(pass, n, hidden, scratch, x);
    }
}
