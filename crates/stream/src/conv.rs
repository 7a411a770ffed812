//! The convolution at the start of a block, x + PW(DW(x)), and the one inside a mixer, SiLU(DW(x)). Its memory is a window of the last K −
//! 1 = 3 inputs.

use alloc::vec::Vec;
use core::ops::Range;

use minrnn_kernels::matmul::transposed;
use minrnn_model::CONV_TAPS;

use crate::gates;
use crate::linear::{LANES, Linear};
use crate::pass::{Memory, Pass};
use crate::shared::Shared;
use crate::source::{Source, join};
use crate::workspace::{Buffers, room};
use crate::{CheckedConfig, Result};

/// Inputs that are kept.
pub(crate) const PAST: usize = CONV_TAPS - 1;

/// Filters of a causal depthwise convolution.
#[derive(Debug, Clone)]
pub(crate) struct Depthwise {
    /// `[K, D]`; the last tap meets the current step.
    taps: Vec<f32>,
    bias: Vec<f32>,
}

/// Causal depthwise convolution followed by a pointwise one, with a residual connection.
#[derive(Debug, Clone)]
pub(crate) struct Conv {
    depthwise: Depthwise,
    pointwise: Linear,
}

impl Conv {
    pub(crate) fn read(config: &CheckedConfig, source: &mut dyn Source, name: &str) -> Result<Self> {
        let d = config.d_model;
        let depthwise = Depthwise::read(source, &join(name, "depthwise"), d)?;
        Ok(Self { depthwise, pointwise: source.linear(&join(name, "pointwise"), d, d)? })
    }

    /// Numbers kept for a session: the window `[K − 1, D]`, oldest first.
    pub(crate) fn state_len(d_model: usize) -> usize {
        PAST * d_model
    }

    /// `x += PW(DW(x))`, `x` `[N, D]`.
    pub(crate) fn forward(&self, pass: &Pass<'_>, memory: Memory<'_>, x: &mut [f32], buffers: &mut Buffers) {
        let d = self.depthwise.bias.len();
        let y = room(&mut buffers.normed, pass.rows * d);
        let shared = Shared::new(y, d);
        pass.workers.split(d, LANES, CONV_TAPS * pass.rows * d, |_, range| {
            let inputs = |row: usize| &x[row * d..][range.clone()];
            self.depthwise.forward(pass, memory, range.clone(), inputs, shared);
        });
        let scratch = room(&mut buffers.product, pass.rows * d);
        self.pointwise.add_to(pass, pass.rows, y, scratch, x);
    }
}

impl Depthwise {
    pub(crate) fn read(source: &mut dyn Source, name: &str, width: usize) -> Result<Self> {
        let taps = transposed(&source.vector(&join(name, "weight"), &[width, 1, CONV_TAPS])?, width, CONV_TAPS);
        Ok(Self { taps, bias: source.vector(&join(name, "bias"), &[width])? })
    }

    /// `y` = SiLU(DW(`x`)) for one token; advances the window by it.
    pub(crate) fn step_silu(&self, pass: &Pass<'_>, window: &mut [f32], x: &[f32], y: &mut [f32]) {
        let d = self.bias.len();
        let inputs = [&window[..d], &window[d..2 * d], &window[2 * d..], x];
        let taps: [&[f32]; CONV_TAPS] = core::array::from_fn(|tap| &self.taps[tap * d..][..d]);
        gates::convolve(pass.level, inputs, taps, &self.bias, y);
        gates::silu(pass.level, [], y);
        window.copy_within(d.., 0);
        window[2 * d..].copy_from_slice(x);
    }

    /// Computes the channels `range` of `y` `[N, D]` from their inputs `x(row)`. Nothing else may use these channels of `y` or of the window,
    /// with which the memory begins.
    pub(crate) fn forward<'x>(
        &self,
        pass: &Pass<'_>,
        memory: Memory<'_>,
        range: Range<usize>,
        x: impl Fn(usize) -> &'x [f32],
        y: Shared<'_>,
    ) {
        let d = self.bias.len();
        let (from, to) = (range.start, range.end);
        let taps: [&[f32]; CONV_TAPS] = core::array::from_fn(|tap| &self.taps[tap * d + from..tap * d + to]);
        for span in pass.spans {
            // SAFETY: the caller's channels, in the memory and in `y`.
            let mut window: [&mut [f32]; PAST] = core::array::from_fn(|i| unsafe { memory.part(span.session, i * d + from, i * d + to) });
            for t in 0..span.len {
                let inputs: [&[f32]; CONV_TAPS] = core::array::from_fn(|tap| match (t + tap).checked_sub(PAST) {
                    Some(past) => x(span.first + past),
                    None => &window[t + tap][..],
                });
                // SAFETY: the caller's channels of every row.
                let y = unsafe { y.part(span.first + t, range.clone()) };
                gates::convolve(pass.level, inputs, taps, &self.bias[from..to], y);
            }
            // The window's slot i now holds position len + i, counted from the oldest that was in it.
            for i in 0..PAST {
                match (span.len + i).checked_sub(PAST) {
                    Some(past) => window[i].copy_from_slice(x(span.first + past)),
                    None => {
                        let (to_slot, from_slot) = window.split_at_mut(span.len + i);
                        if span.len > 0 {
                            to_slot[i].copy_from_slice(from_slot[0]);
                        }
                    }
                }
            }
        }
    }
}
