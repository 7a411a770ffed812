//! Aaren: with o the mean of the values read and l the logarithm of their weight, for each head:
//!
//! ```text
//! z = σ(s − l)       o ← o + z (v − o)       l ← ln(e^l + e^s)       s = x · (W_kᵀ q / √e)
//! ```

use alloc::vec;

use minrnn_kernels::prefix_softmax::EMPTY;
use minrnn_kernels::simd::sqrt;
use minrnn_kernels::weight_matrix::{WeightFormat, WeightMatrix};

use super::Mixer;
use crate::gates;
use crate::linear::{matmul, write};
use crate::pass::{Memory, Pass};
use crate::shared::Shared;
use crate::source::{Source, join};
use crate::workspace::{Buffers, room};
use crate::{CheckedConfig, Result};

/// A session keeps the mean `[E]`, the log-weight `[H]`.
#[derive(Debug, Clone)]
pub(super) struct Aaren {
    /// W_kᵀ q / √e of every head, `[H, D]`.
    score: WeightMatrix,
    /// `[E, D]`.
    value: WeightMatrix,
}

impl Aaren {
    pub(super) fn read(config: &CheckedConfig, source: &mut dyn Source, name: &str) -> Result<Self> {
        let d = config.d_model;
        let (e, width) = (config.d_inner(), config.head_inner());
        let query = source.vector(&join(name, "query"), &[e])?;
        let key = source.matrix(&join(&join(name, "key"), "weight"), e, d)?;
        let value = source.matrix(&join(&join(name, "value"), "weight"), e, d)?;
        let (mut score, mut row) = (vec![0.0; e / width * d], vec![0.0; d]);
        for (channel, query) in query.iter().enumerate() {
            key.row(channel, &mut row);
            let factor = query / sqrt(width as f32);
            score[channel / width * d..][..d].iter_mut().zip(&row).for_each(|(sum, x)| *sum += factor * x);
        }
        Ok(Self { score: WeightMatrix::new(WeightFormat::F32, e / width, d, &score), value })
    }

    /// H.
    fn heads(&self) -> usize {
        self.score.outputs()
    }

    /// Turns the scores `[N, H]` into shares of the newest values, spread over their channels `[N, E]`, and moves the log-weights on.
    fn shares(&self, pass: &Pass<'_>, memory: Memory<'_>, scores: &[f32], shares: &mut [f32]) {
        let (heads, e) = (self.heads(), self.width());
        for span in pass.spans {
            // SAFETY: called between two phases, when nothing else uses the memory.
            let log_weight = unsafe { memory.part(span.session, e, e + heads) };
            for row in span.first..span.first + span.len {
                let shares = shares[row * e..][..e].chunks_exact_mut(e / heads);
                for ((shares, log_weight), score) in shares.zip(&mut *log_weight).zip(&scores[row * heads..]) {
                    let (score, old) = (f64::from(*score), f64::from(*log_weight));
                    let more = libm::log1p(libm::exp(-libm::fabs(score - old)));
                    let new = old.max(score) + more;
                    shares.fill(libm::exp(score - new) as f32);
                    *log_weight = new as f32;
                }
            }
        }
    }
}

impl Mixer for Aaren {
    fn width(&self) -> usize {
        self.value.outputs()
    }

    fn out_bias(&self) -> bool {
        false
    }

    fn init_memory(&self, memory: &mut [f32]) {
        let (mean, log_weight) = memory.split_at_mut(self.width());
        mean.fill(0.0);
        log_weight.fill(EMPTY);
    }

    fn forward(&self, pass: &Pass<'_>, memory: Memory<'_>, buffers: &mut Buffers) {
        let (n, e) = (pass.rows, self.width());
        let Buffers { normed, product: scratch, hidden, recurrent: [scores, shares, ..], .. } = buffers;
        let scratch = room(scratch, n * e);
        let scores = room(scores, n * self.heads());
        write(pass, &self.score, normed, scratch, scores);
        let shares = room(shares, n * e);
        self.shares(pass, memory, scores, shares);
        let (shares, hidden) = (&*shares, Shared::new(room(hidden, n * e), e));
        matmul(pass, &self.value, 1, 0..1, n, normed, scratch, |range, values| {
            for span in pass.spans {
                // SAFETY: pieces have channels of their own.
                let mean = unsafe { memory.part(span.session, range.start, range.end) };
                for row in span.first..span.first + span.len {
                    let v = &values[row * range.len()..][..range.len()];
                    gates::move_to(pass.level, [v, &shares[row * e..][range.clone()]], mean);
                    // SAFETY: pieces have channels of their own, of every row.
                    unsafe { hidden.part(row, range.clone()) }.copy_from_slice(mean);
                }
            }
        });
    }
}
