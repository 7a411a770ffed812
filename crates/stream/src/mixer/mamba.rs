//! Mamba:
//!
//! ```text
//! [u, ζ] = W_in x      u ← SiLU(conv4(u))      y = S6(u) ⊙ SiLU(ζ)
//! ```
//!
//! The channels are independent, except in the first product of S6, so each worker takes its own through the convolution after the product
//! here.

use minrnn_kernels::weight_matrix::WeightMatrix;

use super::Mixer;
use super::s6::{Room, Selective};
use crate::conv::{Depthwise, PAST};
use crate::gates;
use crate::pass::{Memory, Pass};
use crate::source::{Source, join};
use crate::wiring::branches;
use crate::workspace::{Buffers, room};
use crate::{CheckedConfig, Result};

/// A session keeps the convolution's window `[K − 1, E]`, then the states `[N, E]`.
#[derive(Debug, Clone)]
pub(super) struct Mamba {
    /// D → 2E, rows u then ζ.
    in_proj: WeightMatrix,
    conv: Depthwise,
    ssm: Selective,
}

impl Mamba {
    pub(super) fn read(config: &CheckedConfig, source: &mut dyn Source, name: &str) -> Result<Self> {
        let (d, e) = (config.d_model, config.d_inner());
        let in_proj = source.matrix(&join(name, "in_proj.weight"), 2 * e, d)?;
        let conv = Depthwise::read(source, &join(name, "conv1d"), e)?;
        Ok(Self { in_proj, conv, ssm: Selective::read(source, name, e, config.d_state, config.step_rank())? })
    }
}

impl Mixer for Mamba {
    fn width(&self) -> usize {
        self.ssm.width()
    }

    fn out_bias(&self) -> bool {
        false
    }

    fn forward(&self, pass: &Pass<'_>, memory: Memory<'_>, buffers: &mut Buffers) {
        let (rows, e) = (pass.rows, self.width());
        let Buffers { normed, product, hidden, recurrent: [z, u, delta, bc], .. } = buffers;
        let (u, z) = (room(u, rows * e), room(z, rows * e));
        branches(pass, &self.in_proj, &self.conv, memory, normed, room(product, rows * 2 * e), [&mut *u, &mut *z]);
        self.ssm.forward(pass, (memory, PAST * e), u, Room { product, hidden, delta, bc }, |row, range, y, _| {
            gates::gate_by_silu(pass.level, [&z[row * e..][range]], y);
        });
    }
}
