//! Mamba (S6):
//!
//! ```text
//! [u, ζ] = W_in x      u ← SiLU(conv4(u))      [δ, B, C] = W_x u      Δ = softplus(W_dt δ + b)
//! h ← exp(Δ A) h + Δ u B for each of N states of a channel            y = (Σ_n C h + D u) ⊙ SiLU(ζ)
//! ```
//!
//! Three products, each cut over the crew by channels. The channels are independent but for the second one, so each member takes its
//! own through the convolution after the first and through all states after the third.

use alloc::vec::Vec;

use minrnn_kernels::weight_matrix::WeightMatrix;

use super::Mixer;
use crate::conv::{Depthwise, PAST};
use crate::gates::{self, StateStep};
use crate::linear::{Linear, Shared, product};
use crate::pass::{Memory, Pass};
use crate::source::{Source, join};
use crate::workspace::{Buffers, room};
use crate::{ModelConfig, Result};

#[derive(Debug, Clone)]
pub(super) struct Mamba {
    /// D → 2E, rows u then ζ.
    in_proj: WeightMatrix,
    conv: Depthwise,
    /// E → R + 2N, rows δ, B, C.
    x_proj: WeightMatrix,
    /// R → E.
    dt_proj: Linear,
    /// A `[N, E]`.
    a: Vec<f32>,
    /// `[E]`.
    skip: Vec<f32>,
}

/// Numbers kept for a session: the convolution's window `[3, E]`, then the states `[N, E]`.
pub(super) fn memory(d_inner: usize, d_state: usize) -> usize {
    (PAST + d_state) * d_inner
}

impl Mamba {
    pub(super) fn read(config: &ModelConfig, source: &mut dyn Source, name: &str) -> Result<Self> {
        let (d, e, n, r) = (config.d_model, config.d_inner()?, config.d_state, config.dt_rank());
        let in_proj = source.matrix(&join(name, "in_proj.weight"), 2 * e, d)?;
        let conv = Depthwise::read(source, &join(name, "conv1d"), e)?;
        let x_proj = source.matrix(&join(name, "x_proj.weight"), r + 2 * n, e)?;
        let dt_proj = source.linear(&join(name, "dt_proj"), e, r)?;
        let a_log = source.vector(&join(name, "A_log"), &[e, n])?;
        let a = (0..n * e).map(|i| -libm::expf(a_log[i % e * n + i / e])).collect();
        Ok(Self { in_proj, conv, x_proj, dt_proj, a, skip: source.vector(&join(name, "D"), &[e])? })
    }

    /// N.
    fn d_state(&self) -> usize {
        self.a.len() / self.width()
    }
}

impl Mixer for Mamba {
    fn width(&self) -> usize {
        self.skip.len()
    }

    fn out_bias(&self) -> bool {
        false
    }

    fn memory(&self) -> usize {
        memory(self.width(), self.d_state())
    }

    fn init_memory(&self, memory: &mut [f32]) {
        memory.fill(0.0);
    }

    fn forward(&self, pass: &Pass<'_>, memory: Memory<'_>, buffers: &mut Buffers) {
        let (rows, e, n, r) = (pass.rows, self.width(), self.d_state(), self.dt_proj.weight.inputs());
        let Buffers { normed, product: scratch, hidden, recurrent: [z, u, delta, bc] } = buffers;
        let (u, delta, bc) = (room(u, rows * e), room(delta, rows * r), room(bc, rows * 2 * n));
        let z = Shared::new(room(z, rows * e), e);
        let inner = Shared::new(u, e);
        product(pass, &self.in_proj, 2, 0..2, rows, normed, room(scratch, rows * 2 * e), |range, values| {
            let width = range.len();
            let (before, gate) = values.split_at(rows * width);
            self.conv.forward(pass, memory, range.clone(), |row| &before[row * width..(row + 1) * width], inner);
            for (row, gate) in gate.chunks_exact(width).enumerate() {
                // SAFETY: pieces have channels of their own.
                let (u, z) = unsafe { (inner.part(row, range.clone()), z.part(row, range.clone())) };
                gates::silu(pass.level, [], u);
                z.copy_from_slice(gate);
            }
        });
        let (low_rank, selection) = (Shared::new(delta, r), Shared::new(bc, 2 * n));
        product(pass, &self.x_proj, 1, 0..1, rows, u, room(scratch, rows * (r + 2 * n)), |range, values| {
            let (split, end) = (range.end.min(r).max(range.start), range.end);
            for (row, values) in values.chunks_exact(range.len()).enumerate() {
                let (first, second) = values.split_at(split - range.start);
                // SAFETY: pieces have outputs of their own.
                unsafe {
                    low_rank.part(row, range.start.min(split)..split).copy_from_slice(first);
                    selection.part(row, split.max(r) - r..end.max(r) - r).copy_from_slice(second);
                }
            }
        });
        let (bc, inner, hidden) = (&*bc, Shared::new(u, e), Shared::new(room(hidden, rows * e), e));
        product(pass, &self.dt_proj.weight, 1, 0..1, rows, delta, room(scratch, rows * e), |range, values| {
            for span in pass.spans {
                for row in span.first..span.first + span.len {
                    let delta = &mut values[row * range.len()..(row + 1) * range.len()];
                    gates::softplus(pass.level, [&self.dt_proj.bias[range.clone()]], delta);
                    // SAFETY: pieces have channels of their own.
                    let [u, y, z] = unsafe { [&inner, &hidden, &z].map(|rows| rows.part(row, range.clone())) };
                    gates::scaled(pass.level, [u, &self.skip[range.clone()]], y);
                    gates::times(pass.level, [delta], u);
                    let (input, output) = bc[row * 2 * n..(row + 1) * 2 * n].split_at(n);
                    for state in 0..n {
                        let at = (PAST + state) * e;
                        // SAFETY: as above.
                        let h = unsafe { memory.part(span.session, at + range.start, at + range.end) };
                        let a = &self.a[state * e..][range.clone()];
                        pass.level.run(StateStep { a, delta, delta_u: u, input: input[state], output: output[state], h, y });
                    }
                    gates::gate_by_silu(pass.level, [z], y);
                }
            }
        });
    }
}
