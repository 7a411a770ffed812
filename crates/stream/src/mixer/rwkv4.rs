//! RWKV-4's time mixing. With a the mean of the values read and l the logarithm of their weight:
//!
//! ```text
//! y = σ(r) ⊙ (a + σ(u + k − l) ⊙ (v − a))       a ← a + σ(k − w − l) ⊙ (v − a)       l ← ln(e^(w + l) + e^k)
//! ```
//!
//! The rounding error of l is carried to the next step, as the kernel does over a whole sequence: it would add up when the past fades
//! slowly.
//!
//! The channels are independent, so each worker runs its own through all tokens right after the product with W_v.

use alloc::vec::Vec;

use minrnn_kernels::rwkv4::{self, EMPTY};
use minrnn_kernels::weight_matrix::WeightMatrix;

use super::Mixer;
use crate::linear::{matmul, write};
use crate::pass::{Memory, Pass};
use crate::shared::Shared;
use crate::source::{Source, join};
use crate::token_shift::TokenShift;
use crate::workspace::{Buffers, room};
use crate::{CheckedConfig, Result};

/// A session keeps the previous input `[D]`, the mean `[E]`, the log-weight `[E]`, what rounding the log-weight has lost `[E]`.
#[derive(Debug, Clone)]
pub(super) struct Rwkv4 {
    receptance: WeightMatrix,
    key: WeightMatrix,
    value: WeightMatrix,
    /// μ of receptance, key and value.
    shift: TokenShift<3>,
    /// w = −e^decay.
    fading: Vec<f32>,
    bonus: Vec<f32>,
}

impl Rwkv4 {
    pub(super) fn read(config: &CheckedConfig, source: &mut dyn Source, name: &str) -> Result<Self> {
        let (d, e) = (config.d_model, config.d_inner());
        let mut matrix = |part: &str| source.matrix(&join(&join(name, part), "weight"), e, d);
        let (receptance, key, value) = (matrix("receptance")?, matrix("key")?, matrix("value")?);
        let shift = TokenShift::read(config, source, name, ["mix_receptance", "mix_key", "mix_value"])?;
        let fading = source.vector(&join(name, "decay"), &[e])?.into_iter().map(|decay| -libm::expf(decay)).collect();
        Ok(Self { receptance, key, value, shift, fading, bonus: source.vector(&join(name, "bonus"), &[e])? })
    }
}

impl Mixer for Rwkv4 {
    fn width(&self) -> usize {
        self.bonus.len()
    }

    fn out_bias(&self) -> bool {
        false
    }

    fn init_memory(&self, memory: &mut [f32]) {
        memory.fill(0.0);
        let log_weight = memory.len() - 2 * self.width();
        memory[log_weight..][..self.width()].fill(EMPTY);
    }

    fn forward(&self, pass: &Pass<'_>, memory: Memory<'_>, buffers: &mut Buffers) {
        let (n, d, e) = (pass.rows, self.value.inputs(), self.width());
        let Buffers { normed, product: scratch, hidden, recurrent: [mixed, receptance, key, _], .. } = buffers;
        let [r, k, v] = self.shift.mixtures(pass, memory, normed, mixed);
        let scratch = room(scratch, n * e);
        write(pass, &self.receptance, r, scratch, room(receptance, n * e));
        write(pass, &self.key, k, scratch, room(key, n * e));
        let (receptance, key, hidden) = (&*receptance, &*key, Shared::new(room(hidden, n * e), e));
        matmul(pass, &self.value, 1, 0..1, n, v, scratch, |range, values| {
            let (w, u) = (&self.fading[range.clone()], &self.bonus[range.clone()]);
            for span in pass.spans {
                // SAFETY: pieces have channels of their own.
                let [mean, log_weight, lost] =
                    unsafe { [d, d + e, d + 2 * e].map(|at| memory.part(span.session, at + range.start, at + range.end)) };
                for row in span.first..span.first + span.len {
                    let v = &values[row * range.len()..][..range.len()];
                    let [r, k] = [receptance, key].map(|x| &x[row * e..][range.clone()]);
                    // SAFETY: pieces have channels of their own, and the rows of a session follow one another.
                    let out = unsafe { hidden.part(row, range.clone()) };
                    rwkv4::step(pass.level, [r, k, v], [w, u], [&mut *mean, &mut *log_weight, &mut *lost], out);
                }
            }
        });
        self.shift.remember(pass, memory, normed);
    }
}
