//! minGRU with decay, for steps of the same length: h ← (1 − z) ⊙ e^{−λ} ⊙ h + z ⊙ h̃ with z = σ(k), h̃ = candidate(v),
//! λ = softplus(θ), the products being [v | k].
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
pub(super) struct DecayMinGru {
    /// D → 2E, rows candidate then update gate.
    in_proj: Linear,
    /// 1 − e^{−λ} of every channel.
    lost: Vec<f32>,
    initial: Vec<f32>,
    candidate: Candidate,
}

impl DecayMinGru {
    pub(super) fn read(config: &CheckedConfig, source: &mut dyn Source, name: &str) -> Result<Self> {
        let e = config.d_inner();
        let mut lost = source.vector(&join(name, "decay"), &[e])?;
        for x in &mut lost {
            let rate = libm::fmaxf(*x, 0.0) + libm::log1pf(libm::expf(-libm::fabsf(*x)));
            *x = -libm::expm1f(-rate);
        }
        Ok(Self {
            in_proj: source.linear(&join(name, "in_proj"), 2 * e, config.d_model)?,
            lost,
            initial: initial(config, source, name, "initial_state", config.candidate)?,
            candidate: config.candidate,
        })
    }
}

impl Mixer for DecayMinGru {
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
        let scratch = room(&mut buffers.product, n * 2 * e);
        matmul(pass, &self.in_proj.weight, 2, 0..2, n, &buffers.normed, scratch, |range, values| {
            let (v, k) = values.split_at(n * range.len());
            let bias = [&self.in_proj.bias[range.clone()], &self.in_proj.bias[e + range.start..e + range.end]];
            let lost = &self.lost[range.clone()];
            for span in pass.spans {
                // SAFETY: pieces have channels of their own.
                let h = unsafe { memory.part(span.session, range.start, range.end) };
                for row in span.first..span.first + span.len {
                    let part = row * range.len()..(row + 1) * range.len();
                    // SAFETY: as above.
                    let out = unsafe { hidden.part(row, range.clone()) };
                    gates::decay_min_gru(pass.level, self.candidate, [&v[part.clone()], &k[part]], bias, lost, h, out);
                }
            }
        });
    }
}
