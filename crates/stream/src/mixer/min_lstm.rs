//! minLSTM: h ← f' ⊙ h + i' ⊙ h̃ with f = σ(p), i = σ(q), h̃ = candidate(v), the products being [v | p | q]; f' and i' are the gates
//! divided by their sum, or the gates themselves.
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
pub(super) struct MinLstm {
    /// D → 3E, rows candidate, forget gate, input gate.
    in_proj: Linear,
    initial: Vec<f32>,
    candidate: Candidate,
    normalized: bool,
}

impl MinLstm {
    pub(super) fn read(config: &CheckedConfig, source: &mut dyn Source, name: &str) -> Result<Self> {
        Ok(Self {
            in_proj: source.linear(&join(name, "in_proj"), 3 * config.d_inner(), config.d_model)?,
            initial: initial(config, source, name, "initial_state", config.candidate)?,
            candidate: config.candidate,
            normalized: config.normalize_gates,
        })
    }
}

impl Mixer for MinLstm {
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
                    gates::min_lstm(pass.level, self.candidate, self.normalized, x, bias, h, out);
                }
            }
        });
    }
}
