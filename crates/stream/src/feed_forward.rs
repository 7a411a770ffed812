//! The feed-forward part of a block: x + down(act(up(norm(x)))), plain or gated; for the equations see the training model.

use alloc::vec::Vec;

use core::ops::Range;

use minrnn_kernels::weight_matrix::Inputs;
use minrnn_kernels::{Out, gelu};

use crate::gates;
use crate::linear::{Linear, matmul, split_rows};
use crate::pass::Pass;
use crate::shared::Shared;
use crate::source::{Source, join};
use crate::workspace::{Buffers, room};
use crate::{CheckedConfig, FeedForwardKind, Result};

/// A plain or gated layer.
#[derive(Debug, Clone)]
pub(crate) struct FeedForward {
    /// D → M, or D → 2M with rows value then gate (gate then value in `ge-glu`).
    up: Linear,
    /// M → D.
    down: Linear,
    activation: Activation,
}

/// What is done with the products of `up`.
#[derive(Debug, Clone)]
enum Activation {
    Gelu,
    /// GELU(gate) ⊙ value ⊙ scale, the scale `[M]`.
    Gated(Vec<f32>),
    GeGlu,
    SwiGlu,
}

impl FeedForward {
    /// The part `name` of a plain or gated `kind`.
    pub(crate) fn read(config: &CheckedConfig, kind: FeedForwardKind, source: &mut dyn Source, name: &str) -> Result<Self> {
        let (d, d_ff) = (config.d_model, config.d_ff());
        let layers = |source: &mut dyn Source, halves: usize, has_bias: bool| -> Result<[Linear; 2]> {
            let mut linear = |part: &str, outputs: usize, inputs: usize| match has_bias {
                true => source.linear(&join(name, part), outputs, inputs),
                false => source.linear_without_bias(&join(name, part), outputs, inputs),
            };
            Ok([linear("up", halves * d_ff, d)?, linear("down", d, d_ff)?])
        };
        let ([up, down], activation) = match kind {
            FeedForwardKind::None | FeedForwardKind::ChannelMix => unreachable!("a block asks for a plain or gated part"),
            FeedForwardKind::Mlp => (layers(source, 1, config.bias)?, Activation::Gelu),
            FeedForwardKind::Gated => (layers(source, 2, config.bias)?, Activation::Gated(source.vector(&join(name, "scale"), &[d_ff])?)),
            FeedForwardKind::GeGlu => (layers(source, 2, false)?, Activation::GeGlu),
            FeedForwardKind::SwiGlu => (layers(source, 2, false)?, Activation::SwiGlu),
        };
        Ok(Self { up, down, activation })
    }

    /// `x += FF(buffers.normed)`, `x` `[N, D]`.
    pub(crate) fn forward(&self, pass: &Pass<'_>, x: &mut [f32], buffers: &mut Buffers) {
        let (n, d, d_ff, up) = (pass.rows, self.down.weight.outputs(), self.down.weight.inputs(), self.up.weight.outputs());
        let width = up.max(d);
        let scratch = room(&mut buffers.product, n * width);
        let hidden = room(&mut buffers.hidden, n * d_ff);
        let groups = up / d_ff;
        // Rows are independent: each member takes its own through both products without waiting for the others.
        let (shared_x, shared_scratch) = (Shared::new(x, d), Shared::new(scratch, width));
        let shared_hidden = Shared::new(hidden, d_ff);
        let by_rows = split_rows(pass, n, d * (up + d_ff), |rows, memory| {
            let part = |width: usize| rows.start * width..rows.end * width;
            // SAFETY: pieces have rows of their own.
            let [x, scratch, hidden] =
                unsafe { [shared_x.part(0, part(d)), shared_scratch.part(0, part(width)), shared_hidden.part(0, part(d_ff))] };
            let values = &mut scratch[..rows.len() * up];
            let inputs = Inputs { rows: rows.len(), x: &buffers.normed[part(d)], bias: None };
            self.up.weight.multiply(pass.level, inputs, 0..up, values, up, memory);
            for (values, hidden) in values.chunks_exact(up).zip(hidden.chunks_exact_mut(d_ff)) {
                self.activate(pass, 0..d_ff, |group| &values[group * d_ff..][..d_ff], hidden);
            }
            self.down.add_rows(pass, hidden, scratch, x, memory);
        });
        if by_rows {
            return;
        }
        let shared_hidden = Shared::new(hidden, d_ff);
        matmul(pass, &self.up.weight, groups, 0..groups, n, &buffers.normed, scratch, |range, values| {
            for row in 0..n {
                // SAFETY: pieces have channels of their own.
                let hidden = unsafe { shared_hidden.part(row, range.clone()) };
                self.activate(pass, range.clone(), |group| &values[(group * n + row) * range.len()..][..range.len()], hidden);
            }
        });
        self.down.add_to(pass, n, hidden, scratch, x);
    }

    /// Computes the channels `range` of a hidden row from those of the products, `values(0)` and, in the gated forms, `values(1)`.
    fn activate<'a>(&self, pass: &Pass<'_>, range: Range<usize>, values: impl Fn(usize) -> &'a [f32], hidden: &mut [f32]) {
        let (width, d_ff) = (range.len(), self.down.weight.inputs());
        let bias = |group: usize| &self.up.bias[group * d_ff..][range.clone()];
        match &self.activation {
            Activation::Gelu => gelu::forward(1, width, values(0), Some(bias(0)), Out::new(hidden)),
            Activation::SwiGlu => gates::swi_glu(pass.level, [values(0), values(1)], hidden),
            Activation::Gated(scale) => {
                gelu::forward(1, width, values(1), Some(bias(1)), Out::new(hidden));
                gates::scale_by(pass.level, values(0), bias(0), &scale[range.clone()], hidden);
            }
            Activation::GeGlu => {
                gelu::forward(1, width, values(0), None, Out::new(hidden));
                gates::times(pass.level, [values(1)], hidden);
            }
        }
    }
}
