//! Hyena of order 2: gates around a long filter:
//!
//! ```text
//! x0, x1, v = DW3(W x + b)      v ← x1 ⊙ v      v ← h * v      y = x0 ⊙ v
//! ```
//!
//! A session keeps the last two inputs of the short convolution, oldest first, and the filter's past.

use alloc::vec::Vec;

use minrnn_kernels::matmul::transposed;
use minrnn_model::HYENA_TAPS;

use super::Mixer;
use super::long_filter::LongFilter;
use crate::linear::Linear;
use crate::pass::{Memory, Pass};
use crate::shared::Shared;
use crate::source::{Source, join};
use crate::workspace::{Buffers, room};
use crate::{CheckedConfig, Result};

/// Inputs that the short convolution keeps.
const PAST: usize = HYENA_TAPS - 1;

#[derive(Debug, Clone)]
pub(super) struct Hyena {
    /// D → 3D, rows x0, x1, v.
    in_proj: Linear,
    /// `[K, 3D]`; the last tap meets the current step.
    taps: Vec<f32>,
    /// `[3D]`.
    bias: Vec<f32>,
    filter: LongFilter,
}

impl Hyena {
    pub(super) fn read(config: &CheckedConfig, source: &mut dyn Source, name: &str) -> Result<Self> {
        let (d, short) = (config.d_model, join(name, "short_conv"));
        let in_proj = source.linear(&join(name, "in_proj"), 3 * d, d)?;
        let taps = transposed(&source.vector(&join(&short, "weight"), &[3 * d, 1, HYENA_TAPS])?, 3 * d, HYENA_TAPS);
        let bias = source.vector(&join(&short, "bias"), &[3 * d])?;
        Ok(Self { in_proj, taps, bias, filter: LongFilter::read(config, source, name)? })
    }

    /// The short convolution of `all` `[N, 3D]`, in place.
    fn convolve(&self, pass: &Pass<'_>, memory: Memory<'_>, all: &mut [f32]) {
        let width = self.bias.len();
        let tap = |i: usize| &self.taps[i * width..][..width];
        let (oldest, older, newest) = (tap(0), tap(1), tap(2));
        for span in pass.spans {
            // SAFETY: called between two phases, when nothing else uses the memory.
            let (first, second) = unsafe { memory.part(span.session, 0, PAST * width) }.split_at_mut(width);
            for row in all[span.first * width..][..span.len * width].chunks_exact_mut(width) {
                for c in 0..width {
                    let now = row[c];
                    row[c] = self.bias[c] + oldest[c] * first[c] + older[c] * second[c] + newest[c] * now;
                    (first[c], second[c]) = (second[c], now);
                }
            }
        }
    }
}

impl Mixer for Hyena {
    fn width(&self) -> usize {
        self.filter.width()
    }

    fn forward(&self, pass: &Pass<'_>, memory: Memory<'_>, buffers: &mut Buffers) {
        let (n, d) = (pass.rows, self.width());
        let Buffers { normed, product, hidden, recurrent: [all, gated, ..], .. } = buffers;
        let all = room(all, n * 3 * d);
        self.in_proj.write(pass, n, normed, room(product, n * 3 * d), all);
        self.convolve(pass, memory, all);
        let (all, gated) = (&*all, room(gated, n * d));
        for (row, gated) in all.chunks_exact(3 * d).zip(gated.chunks_exact_mut(d)) {
            gated.iter_mut().zip(&row[d..2 * d]).zip(&row[2 * d..]).for_each(|((gated, x1), v)| *gated = x1 * v);
        }
        self.filter.forward(pass, memory, gated, Shared::new(room(hidden, n * d), d), |row, channels, y| {
            y.iter_mut().zip(&all[row * 3 * d..][channels]).for_each(|(y, x0)| *y *= x0);
        });
    }
}
