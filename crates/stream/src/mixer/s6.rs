//! S6, the selective state spaces of Mamba:
//!
//! ```text
//! [δ, B, C] = W_x u      Δ = softplus(W_dt δ + b)      h ← exp(Δ A) h + Δ u B for each of N states of a channel      y = Σ_n C h + D u
//! ```
//!
//! There are two products, each split over the workers by channels; after the second each worker takes its own channels through all states.

use alloc::vec::Vec;
use core::ops::Range;

use minrnn_kernels::matmul::transposed;
use minrnn_kernels::weight_matrix::WeightMatrix;

use super::{Mixer, Output};
use crate::gates::{self, StateStep};
use crate::linear::{Linear, matmul};
use crate::pass::{Memory, Pass};
use crate::shared::Shared;
use crate::source::{Source, join};
use crate::workspace::{Buffers, room};
use crate::{CheckedConfig, Result};

/// The state spaces of E channels, as S6 and Mamba have them.
#[derive(Debug, Clone)]
pub(super) struct Selective {
    /// E → R + 2N, rows δ, B, C.
    x_proj: WeightMatrix,
    /// R → E.
    dt_proj: Linear,
    /// A `[N, E]`.
    a: Vec<f32>,
    /// `[E]`.
    skip: Vec<f32>,
}

/// Where the numbers between the products go.
pub(super) struct Room<'a> {
    pub(super) product: &'a mut Vec<f32>,
    pub(super) hidden: &'a mut Vec<f32>,
    pub(super) delta: &'a mut Vec<f32>,
    pub(super) bc: &'a mut Vec<f32>,
}

impl Selective {
    pub(super) fn read(source: &mut dyn Source, name: &str, width: usize, d_state: usize, rank: usize) -> Result<Self> {
        let (e, n, r) = (width, d_state, rank);
        let x_proj = source.matrix(&join(name, "x_proj.weight"), r + 2 * n, e)?;
        let dt_proj = source.linear(&join(name, "dt_proj"), e, r)?;
        let a_log = source.vector(&join(name, "A_log"), &[e, n])?;
        let a = transposed(&a_log, e, n).into_iter().map(|a| -libm::expf(a)).collect();
        Ok(Self { x_proj, dt_proj, a, skip: source.vector(&join(name, "D"), &[e])? })
    }

    /// E.
    pub(super) fn width(&self) -> usize {
        self.skip.len()
    }

    /// N.
    pub(super) fn d_state(&self) -> usize {
        self.a.len() / self.width()
    }

    /// Writes y of `u` `[N, E]` to `room.hidden` and overwrites `u`. The states `[N, E]` begin at `first` of the memory.
    /// `then(row, channels, y, spare)` gets each piece of a row of y, with as many numbers of scratch memory.
    pub(super) fn forward(
        &self,
        pass: &Pass<'_>,
        (memory, first): (Memory<'_>, usize),
        u: &mut [f32],
        room_of: Room<'_>,
        then: impl Fn(usize, Range<usize>, &mut [f32], &mut [f32]) + Sync,
    ) {
        let (rows, e, n, r) = (pass.rows, self.width(), self.d_state(), self.dt_proj.weight.inputs());
        let Room { product: scratch, hidden, delta, bc } = room_of;
        let (delta, bc) = (room(delta, rows * r), room(bc, rows * 2 * n));
        let (low_rank, selection) = (Shared::new(delta, r), Shared::new(bc, 2 * n));
        matmul(pass, &self.x_proj, 1, 0..1, rows, u, room(scratch, rows * (r + 2 * n)), |range, values| {
            // A piece may lie before R, after it or across it; a side that it lacks is an empty range inside its row.
            let step = range.start.min(r)..range.end.min(r);
            let selected = range.start.max(r) - r..range.end.max(r) - r;
            for (row, values) in values.chunks_exact(range.len()).enumerate() {
                let (first, second) = values.split_at(step.len());
                // SAFETY: pieces have outputs of their own.
                unsafe {
                    low_rank.part(row, step.clone()).copy_from_slice(first);
                    selection.part(row, selected.clone()).copy_from_slice(second);
                }
            }
        });
        let (bc, inner, hidden) = (&*bc, Shared::new(u, e), Shared::new(room(hidden, rows * e), e));
        matmul(pass, &self.dt_proj.weight, 1, 0..1, rows, delta, room(scratch, rows * e), |range, values| {
            for span in pass.spans {
                for row in span.first..span.first + span.len {
                    let delta = &mut values[row * range.len()..(row + 1) * range.len()];
                    gates::softplus(pass.level, [&self.dt_proj.bias[range.clone()]], delta);
                    // SAFETY: pieces have channels of their own.
                    let [u, y] = unsafe { [&inner, &hidden].map(|rows| rows.part(row, range.clone())) };
                    gates::scaled(pass.level, [u, &self.skip[range.clone()]], y);
                    gates::times(pass.level, [delta], u);
                    let (input, output) = bc[row * 2 * n..(row + 1) * 2 * n].split_at(n);
                    for state in 0..n {
                        let at = first + state * e;
                        // SAFETY: pieces have channels of their own, here of each state of a session, one of which is in use at a time.
                        let h = unsafe { memory.part(span.session, at + range.start, at + range.end) };
                        let a = &self.a[state * e..][range.clone()];
                        pass.level.run(StateStep { a, delta, delta_u: u, input: input[state], output: output[state], h, y });
                    }
                    then(row, range.clone(), y, delta);
                }
            }
        });
    }
}

#[derive(Debug, Clone)]
pub(super) struct S6 {
    ssm: Selective,
    output: Output,
}

impl S6 {
    pub(super) fn read(config: &CheckedConfig, source: &mut dyn Source, name: &str) -> Result<Self> {
        let ssm = Selective::read(source, name, config.d_model, config.d_state, config.step_rank())?;
        Ok(Self { ssm, output: Output::of_map(config) })
    }
}

impl Mixer for S6 {
    fn width(&self) -> usize {
        self.ssm.width()
    }

    fn output(&self) -> Output {
        self.output
    }

    fn forward(&self, pass: &Pass<'_>, memory: Memory<'_>, buffers: &mut Buffers) {
        let Buffers { normed, product, hidden, recurrent: [delta, bc, ..], .. } = buffers;
        let u = room(normed, pass.rows * self.width());
        self.ssm.forward(pass, (memory, 0), u, Room { product, hidden, delta, bc }, |_, _, y, spare| {
            if self.output == Output::Gated {
                spare.copy_from_slice(y);
                self.output.activate(spare, y);
            }
        });
    }
}
