//! Signed minGRU: h ← (1 − z) ⊙ tanh(s) ⊙ h + z ⊙ h̃ with z = σ(k), h̃ = candidate(v), the products being [v | k | s].
//!
//! Channels are cut over the workers as in [`super::min_gru`].

use alloc::vec::Vec;

use super::{Mixer, initial};
use crate::gates;
use crate::linear::{Linear, Shared, matmul};
use crate::pass::{Memory, Pass};
use crate::source::{Source, join};
use crate::workspace::{Buffers, room};
use crate::{Candidate, CheckedConfig, Result};

#[derive(Debug, Clone)]
pub(super) struct SignedMinGru {
    /// D → 3E, rows candidate, update gate, sign.
    in_proj: Linear,
    initial: Vec<f32>,
    candidate: Candidate,
}

impl SignedMinGru {
    pub(super) fn read(config: &CheckedConfig, source: &mut dyn Source, name: &str) -> Result<Self> {
        Ok(Self {
            in_proj: source.linear(&join(name, "in_proj"), 3 * config.d_inner(), config.d_model)?,
            initial: initial(config, source, name, "initial_state", config.candidate)?,
            candidate: config.candidate,
        })
    }
}

impl Mixer for SignedMinGru {
    fn width(&self) -> usize {
        self.initial.len()
    }

    fn state_len(&self) -> usize {
        self.initial.len()
    }

    fn init_memory(&self, memory: &mut [f32]) {
        memory.copy_from_slice(&self.initial);
    }

    fn forward(&self, pass: &Pass<'_>, memory: Memory<'_>, buffers: &mut Buffers) {
        let (n, e) = (pass.rows, self.initial.len());
        let hidden = Shared::new(room(&mut buffers.hidden, n * e), e);
        let scratch = room(&mut buffers.product, n * 3 * e);
        matmul(pass, &self.in_proj.weight, 3, 0..3, n, &buffers.normed, scratch, |range, values| {
            let width = range.len();
            let bias: [&[f32]; 3] = core::array::from_fn(|group| &self.in_proj.bias[group * e..][range.clone()]);
            for span in pass.spans {
                // SAFETY: pieces have channels of their own.
                let h = unsafe { memory.part(span.session, range.start, range.end) };
                for row in span.first..span.first + span.len {
                    let x: [&[f32]; 3] = core::array::from_fn(|group| &values[(group * n + row) * width..][..width]);
                    // SAFETY: as above.
                    let out = unsafe { hidden.part(row, range.clone()) };
                    gates::signed_min_gru(pass.level, self.candidate, x, bias, h, out);
                }
            }
        });
    }
}
