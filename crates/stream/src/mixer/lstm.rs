//! LSTM:
//!
//! ```text
//! i, f, o = σ(p + U h + b)      g = tanh(p_g + U_g h + b_g)      c ← f ⊙ c + i ⊙ g      h ← o ⊙ tanh(c)
//! ```
//!
//! with p = W x. A step is one product, split over the workers by channels, with the gates applied at its end.

use alloc::vec::Vec;

use super::recurrent::{Recurrent, active, gather, steps};
use super::{Mixer, initial};
use crate::gates;
use crate::linear::matmul;
use crate::pass::{Memory, Pass};
use crate::shared::Shared;
use crate::source::Source;
use crate::workspace::{Buffers, room};
use crate::{Candidate, CheckedConfig, Result};

#[derive(Debug, Clone)]
pub(super) struct Lstm {
    /// Rows i, f, g, o.
    sides: Recurrent,
    /// h, then c.
    initial: Vec<f32>,
}

impl Lstm {
    pub(super) fn read(config: &CheckedConfig, source: &mut dyn Source, name: &str) -> Result<Self> {
        let sides = Recurrent::read(config, source, name, 4, true)?;
        let mut memory = initial(config, source, name, "initial_state", Candidate::Identity)?;
        memory.extend(initial(config, source, name, "initial_cell", Candidate::Identity)?);
        Ok(Self { sides, initial: memory })
    }
}

impl Mixer for Lstm {
    fn width(&self) -> usize {
        self.sides.width()
    }

    fn init_memory(&self, memory: &mut [f32]) {
        memory.copy_from_slice(&self.initial);
    }

    fn forward(&self, pass: &Pass<'_>, memory: Memory<'_>, buffers: &mut Buffers) {
        let (e, sides) = (self.sides.width(), &self.sides);
        sides.input_side(pass, buffers);
        let hidden = Shared::new(room(&mut buffers.hidden, pass.rows * e), e);
        let [preact, h, _, scratch] = &mut buffers.recurrent;
        let (preact, sessions) = (&*preact, pass.spans.len());
        let (h, scratch) = (room(h, sessions * e), room(scratch, sessions * 4 * e));
        for t in 0..steps(pass) {
            let rows = gather(pass, memory, t, e, h);
            matmul(pass, &sides.weight, 4, 0..4, rows, h, scratch, |range, values| {
                let width = range.len();
                for (row, span) in active(pass, t).enumerate() {
                    let p = |gate: usize| &preact[(span.first + t) * 4 * e + gate * e..][range.clone()];
                    let u = |gate: usize| &values[(gate * rows + row) * width..][..width];
                    let b = |gate: usize| &sides.bias(gate)[range.clone()];
                    // SAFETY: pieces have channels of their own.
                    let [h, c] = unsafe { [0, e].map(|at| memory.part(span.session, at + range.start, at + range.end)) };
                    gates::lstm_cell(pass.level, [p(0), u(0), b(0), p(1), u(1), b(1), p(2), u(2), b(2)], c);
                    gates::lstm_output(pass.level, [p(3), u(3), b(3), c], h);
                    // SAFETY: pieces have channels of their own, here of the hidden values.
                    unsafe { hidden.part(span.first + t, range.clone()) }.copy_from_slice(h);
                }
            });
        }
    }
}
