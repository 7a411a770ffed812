//! minGRU: h ← h + z ⊙ (h̃ − h) with z = σ(k), h̃ = candidate(v), the products being [v | k]. With the candidate tanh also GILR.
//!
//! With a lower bound γ of the forget gate, z is multiplied by 1 − γ.
//!
//! The channels are independent, so each member of the workers runs its own through all tokens right after their product: the same
//! code for a token and for a prompt.

use alloc::vec::Vec;

use super::{Mixer, initial};
use crate::gates;
use crate::linear::{Linear, Shared, matmul};
use crate::pass::{Memory, Pass};
use crate::source::{Source, join};
use crate::workspace::{Buffers, room};
use crate::{Candidate, CheckedConfig, ForgetFloor, Result};

#[derive(Debug, Clone)]
pub(super) struct MinGru {
    /// D → 2E, rows candidate then update gate.
    in_proj: Linear,
    initial: Vec<f32>,
    candidate: Candidate,
    /// 1 − γ of every channel, where the forget gate has a lower bound.
    share: Option<Vec<f32>>,
}

impl MinGru {
    pub(super) fn read(config: &CheckedConfig, layer: usize, candidate: Candidate, source: &mut dyn Source, name: &str) -> Result<Self> {
        let share = match config.forget_floor {
            ForgetFloor::None => None,
            ForgetFloor::Learned => {
                let (theta, ceiling) =
                    (source.vector(&join(name, "forget_floor"), &[config.d_inner()])?, config.forget_ceiling(layer) as f32);
                Some(theta.iter().map(|x| 1.0 - ceiling / (1.0 + libm::expf(-x))).collect())
            }
        };
        Ok(Self {
            in_proj: source.linear(&join(name, "in_proj"), 2 * config.d_inner(), config.d_model)?,
            initial: initial(config, source, name, "initial_state", candidate)?,
            candidate,
            share,
        })
    }
}

impl Mixer for MinGru {
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
            for span in pass.spans {
                // SAFETY: pieces have channels of their own.
                let h = unsafe { memory.part(span.session, range.start, range.end) };
                for row in span.first..span.first + span.len {
                    let part = row * range.len()..(row + 1) * range.len();
                    // SAFETY: as above.
                    let out = unsafe { hidden.part(row, range.clone()) };
                    let x = [&v[part.clone()], &k[part]];
                    match &self.share {
                        None => gates::min_gru(pass.level, self.candidate, x, bias, h, out),
                        Some(share) => gates::floored_min_gru(pass.level, self.candidate, x, bias, &share[range.clone()], h, out),
                    }
                }
            }
        });
    }
}
