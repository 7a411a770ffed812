//! RWKV-4's token shift: mixtures μ ⊙ x_t + (1 − μ) ⊙ x_{t−1}. Its memory is the previous input.

use alloc::vec::Vec;

use crate::gates;
use crate::pass::{Memory, Pass};
use crate::source::{Source, join};
use crate::workspace::room;
use crate::{CheckedConfig, Result};

/// N mixtures of the same inputs.
#[derive(Debug, Clone)]
pub(crate) struct TokenShift<const N: usize> {
    /// μ `[D]` of each.
    shares: [Vec<f32>; N],
}

impl<const N: usize> TokenShift<N> {
    pub(crate) fn read(config: &CheckedConfig, source: &mut dyn Source, name: &str, parts: [&str; N]) -> Result<Self> {
        let mut shares = [const { Vec::new() }; N];
        for (share, part) in shares.iter_mut().zip(parts) {
            *share = source.vector(&join(name, part), &[config.d_model])?;
        }
        Ok(Self { shares })
    }

    /// The mixtures, `[N, D]` each; the memory's first D numbers are the previous input of a session.
    pub(crate) fn mixtures<'a>(&self, pass: &Pass<'_>, memory: Memory<'_>, x: &[f32], mixed: &'a mut Vec<f32>) -> [&'a [f32]; N] {
        let d = self.shares[0].len();
        let mixed = room(mixed, N * pass.rows * d);
        for (mixed, share) in mixed.chunks_exact_mut(pass.rows * d).zip(&self.shares) {
            for span in pass.spans {
                for row in span.first..span.first + span.len {
                    // SAFETY: called between two phases, when nothing else uses the memory.
                    let previous = if row == span.first { unsafe { &*memory.part(span.session, 0, d) } } else { &x[(row - 1) * d..][..d] };
                    gates::mix_with(pass.level, [&x[row * d..][..d], previous, share], &mut mixed[row * d..][..d]);
                }
            }
        }
        core::array::from_fn(|i| &mixed[i * pass.rows * d..][..pass.rows * d])
    }

    /// Keeps the last input of every session for the next call.
    pub(crate) fn remember(&self, pass: &Pass<'_>, memory: Memory<'_>, x: &[f32]) {
        let d = self.shares[0].len();
        for span in pass.spans.iter().filter(|span| span.len > 0) {
            // SAFETY: called between two phases, when nothing else uses the memory.
            let previous = unsafe { memory.part(span.session, 0, d) };
            previous.copy_from_slice(&x[(span.first + span.len - 1) * d..][..d]);
        }
    }
}
