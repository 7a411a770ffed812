//! GRU, in the paper's form and in PyTorch's:
//!
//! ```text
//! r = σ(p_r + U_r h + b_r)        z = σ(p_z + U_z h + b_z)
//! paper:  n = tanh(p_n + U_n (r ⊙ h) + b_n)          h ← (1 − z) ⊙ h + z ⊙ n
//! torch:  n = tanh(p_n + b_n + r ⊙ (U_n h + b'_n))    h ← (1 − z) ⊙ n + z ⊙ h
//! ```
//!
//! with p = W x. A step is one product (two in the paper's form), split over the workers by channels, with the gates applied at its end.

use alloc::vec::Vec;

use super::recurrent::{Recurrent, active, gather, steps};
use super::{Mixer, initial};
use crate::gates;
use crate::linear::matmul;
use crate::pass::{Memory, Pass};
use crate::shared::Shared;
use crate::source::{Source, join};
use crate::workspace::{Buffers, room};
use crate::{Candidate, CheckedConfig, GruForm, Result};

#[derive(Debug, Clone)]
pub(super) struct Gru {
    /// Rows r, z, n.
    sides: Recurrent,
    /// b'_n of PyTorch's form, which stands inside the reset gate.
    inner_bias: Option<Vec<f32>>,
    initial: Vec<f32>,
}

impl Gru {
    pub(super) fn read(config: &CheckedConfig, source: &mut dyn Source, name: &str) -> Result<Self> {
        let mut sides = Recurrent::read(config, source, name, 3, false)?;
        let e = sides.width();
        let inner_bias = match config.gru_form {
            GruForm::Paper => None,
            GruForm::Torch => {
                let mut recurrent = source.vector(&join(name, "recurrent.bias"), &[3 * e])?;
                let inner = recurrent.split_off(2 * e);
                sides.bias.iter_mut().zip(recurrent).for_each(|(bias, recurrent)| *bias += recurrent);
                Some(inner)
            }
        };
        Ok(Self { sides, inner_bias, initial: initial(config, source, name, "initial_state", Candidate::Identity)? })
    }

    /// Step `t` of the paper's form: `h` `[rows, E]` holds the states before it.
    fn paper_step(&self, pass: &Pass<'_>, memory: Memory<'_>, t: usize, rows: usize, buffers: StepBuffers<'_>) {
        let (e, sides) = (self.sides.width(), &self.sides);
        let StepBuffers { preact, h, inner, scratch, hidden } = buffers;
        let (reset, update) = inner.split_at_mut(rows * e);
        {
            let (reset, update) = (Shared::new(reset, e), Shared::new(update, e));
            matmul(pass, &sides.weight, 3, 0..2, rows, h, scratch, |range, values| {
                let width = range.len();
                for (row, span) in active(pass, t).enumerate() {
                    let p = |gate: usize| &preact[(span.first + t) * 3 * e + gate * e..][range.clone()];
                    let u = |gate: usize| &values[(gate * rows + row) * width..][..width];
                    // SAFETY: pieces have channels of their own.
                    let (reset, update) = unsafe { (reset.part(row, range.clone()), update.part(row, range.clone())) };
                    gates::gated(pass.level, [p(0), u(0), &sides.bias(0)[range.clone()], &h[row * e..][range.clone()]], reset);
                    gates::gate(pass.level, [p(1), u(1), &sides.bias(1)[range.clone()]], update);
                }
            });
        }
        let update = &*update;
        matmul(pass, &sides.weight, 3, 2..3, rows, reset, scratch, |range, values| {
            let width = range.len();
            for (row, span) in active(pass, t).enumerate() {
                let p = &preact[(span.first + t) * 3 * e + 2 * e..][range.clone()];
                let u = &values[row * width..][..width];
                // SAFETY: pieces have channels of their own.
                let (h, out) = unsafe { (memory.part(span.session, range.start, range.end), hidden.part(span.first + t, range.clone())) };
                gates::gru_paper(pass.level, [p, u, &sides.bias(2)[range.clone()], &update[row * e..][range.clone()]], h);
                out.copy_from_slice(h);
            }
        });
    }

    /// Step `t` of PyTorch's form.
    fn torch_step(&self, pass: &Pass<'_>, memory: Memory<'_>, t: usize, rows: usize, inner_bias: &[f32], buffers: StepBuffers<'_>) {
        let (e, sides) = (self.sides.width(), &self.sides);
        let StepBuffers { preact, h, scratch, hidden, .. } = buffers;
        matmul(pass, &sides.weight, 3, 0..3, rows, h, scratch, |range, values| {
            let width = range.len();
            for (row, span) in active(pass, t).enumerate() {
                let p = |gate: usize| &preact[(span.first + t) * 3 * e + gate * e..][range.clone()];
                let u = |gate: usize| &values[(gate * rows + row) * width..][..width];
                let b = |gate: usize| &sides.bias(gate)[range.clone()];
                // SAFETY: pieces have channels of their own.
                let (h, out) = unsafe { (memory.part(span.session, range.start, range.end), hidden.part(span.first + t, range.clone())) };
                let inputs = [p(0), u(0), b(0), p(1), u(1), b(1), p(2), u(2), b(2), &inner_bias[range.clone()]];
                gates::gru_torch(pass.level, inputs, h);
                out.copy_from_slice(h);
            }
        });
    }
}

/// What a step reads and writes besides the memory.
struct StepBuffers<'a> {
    preact: &'a [f32],
    h: &'a [f32],
    inner: &'a mut [f32],
    scratch: &'a mut [f32],
    hidden: Shared<'a>,
}

impl Mixer for Gru {
    fn width(&self) -> usize {
        self.sides.width()
    }

    fn init_memory(&self, memory: &mut [f32]) {
        memory.copy_from_slice(&self.initial);
    }

    fn forward(&self, pass: &Pass<'_>, memory: Memory<'_>, buffers: &mut Buffers) {
        let (e, sessions) = (self.sides.width(), pass.spans.len());
        self.sides.input_side(pass, buffers);
        let hidden = Shared::new(room(&mut buffers.hidden, pass.rows * e), e);
        let [preact, h, inner, scratch] = &mut buffers.recurrent;
        let (h, scratch) = (room(h, sessions * e), room(scratch, sessions * 3 * e));
        let inner = room(inner, if self.inner_bias.is_none() { 2 * sessions * e } else { 0 });
        for t in 0..steps(pass) {
            let rows = gather(pass, memory, t, e, h);
            let inner = &mut inner[..if self.inner_bias.is_none() { 2 * rows * e } else { 0 }];
            let buffers = StepBuffers { preact, h, inner, scratch, hidden };
            match &self.inner_bias {
                None => self.paper_step(pass, memory, t, rows, buffers),
                Some(inner_bias) => self.torch_step(pass, memory, t, rows, inner_bias, buffers),
            }
        }
    }
}
