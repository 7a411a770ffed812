//! The mixers with a linear recurrence between two projections: minGRU, minLSTM, GILR (minGRU with a tanh candidate), signed and decaying
//! minGRU. They differ in their [`Cell`] and in its inputs beside the products.
//!
//! The channels are independent, so each worker runs its own through all tokens right after their product: the same code for a token and
//! for a prompt.

use alloc::vec;
use alloc::vec::Vec;

use minrnn_kernels::Gates;
use minrnn_kernels::recurrence::{Cell, StepInputs, step};
use minrnn_kernels::sigmoid::largest_share;
use minrnn_kernels::softplus::softplus;

use super::{Mixer, initial};
use crate::linear::{Linear, matmul};
use crate::pass::{Memory, Pass};
use crate::shared::Shared;
use crate::source::{Source, join};
use crate::workspace::{Buffers, room};
use crate::{CheckedConfig, ForgetFloor, MixerKind, Result};

#[derive(Debug, Clone)]
pub(super) struct LinearCell {
    cell: Cell,
    /// The cell's extra input, one number per channel; empty for cells without.
    extra: Vec<f32>,
    /// D → parts·E, rows in the order of the cell's parts.
    in_proj: Linear,
    initial: Vec<f32>,
}

impl LinearCell {
    pub(super) fn read(config: &CheckedConfig, layer: usize, kind: MixerKind, source: &mut dyn Source, name: &str) -> Result<Self> {
        let e = config.d_inner();
        let candidate = kind.spec().candidate(config);
        let (cell, extra) = match kind {
            MixerKind::MinLstm if config.normalize_gates => (Cell::MinLstm(candidate, Gates::Normalized), vec![]),
            MixerKind::MinLstm => (Cell::MinLstm(candidate, Gates::Unnormalized), vec![]),
            MixerKind::SignedMinGru => (Cell::SignedMinGru(candidate), vec![]),
            // All steps have the same length, so u is the rate softplus(θ).
            MixerKind::DecayMinGru => {
                let theta = source.vector(&join(name, "decay"), &[e])?;
                (Cell::DecayMinGru(candidate), theta.into_iter().map(softplus).collect())
            }
            _ if config.forget_floor == ForgetFloor::Learned => {
                let (theta, ceiling) = (source.vector(&join(name, "forget_floor"), &[e])?, config.forget_ceiling(layer) as f32);
                (Cell::FlooredMinGru(candidate), theta.into_iter().map(|theta| largest_share(theta, ceiling)).collect())
            }
            _ => (Cell::MinGru(candidate), vec![]),
        };
        let in_proj = source.linear(&join(name, "in_proj"), cell.parts() * e, config.d_model)?;
        Ok(Self { cell, extra, in_proj, initial: initial(config, source, name, "initial_state", candidate)? })
    }
}

impl Mixer for LinearCell {
    fn width(&self) -> usize {
        self.initial.len()
    }

    fn init_memory(&self, memory: &mut [f32]) {
        memory.copy_from_slice(&self.initial);
    }

    fn forward(&self, pass: &Pass<'_>, memory: Memory<'_>, buffers: &mut Buffers) {
        /// Most parts of a cell.
        const PARTS: usize = 3;
        let (n, e, parts) = (pass.rows, self.initial.len(), self.cell.parts());
        let hidden = Shared::new(room(&mut buffers.hidden, n * e), e);
        let scratch = room(&mut buffers.product, n * parts * e);
        matmul(pass, &self.in_proj.weight, parts, 0..parts, n, &buffers.normed, scratch, |range, values| {
            let width = range.len();
            let mut bias: [&[f32]; PARTS] = [&[]; PARTS];
            bias.iter_mut().zip(self.in_proj.bias.chunks_exact(e)).for_each(|(bias, part)| *bias = &part[range.clone()]);
            let extra = self.extra.get(range.clone()).unwrap_or(&[]);
            for span in pass.spans {
                // SAFETY: a piece has channels of its own, and of these nothing else is in use.
                let h = unsafe { memory.part(span.session, range.start, range.end) };
                for row in span.first..span.first + span.len {
                    let mut x: [&[f32]; PARTS] = [&[]; PARTS];
                    x[..parts].iter_mut().enumerate().for_each(|(j, x)| *x = &values[(j * n + row) * width..][..width]);
                    // SAFETY: a piece has channels of its own, and the rows of a session follow one another.
                    let out = unsafe { hidden.part(row, range.clone()) };
                    step(pass.level, self.cell, StepInputs { preact: &x[..parts], bias: &bias[..parts], extra }, h, out);
                }
            }
        });
    }
}
