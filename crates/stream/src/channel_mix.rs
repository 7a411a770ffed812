//! RWKV-4's channel mixing, a feed-forward part that also sees the previous token's input:
//!
//! ```text
//! x + σ(W_r Mix(μ_r)) ⊙ (W_v relu(W_k Mix(μ_k))²)       Mix(μ)_t = μ ⊙ x_t + (1 − μ) ⊙ x_{t−1}
//! ```

use minrnn_kernels::weight_matrix::WeightMatrix;

use crate::gates;
use crate::linear::{product, write};
use crate::pass::{Memory, Pass};
use crate::source::{Source, join};
use crate::token_shift::TokenShift;
use crate::workspace::{Buffers, room};
use crate::{CheckedConfig, FeedForwardKind, Result};

/// A feed-forward part with a token shift.
#[derive(Debug, Clone)]
pub(crate) struct ChannelMix {
    /// D → M.
    key: WeightMatrix,
    /// D → D.
    receptance: WeightMatrix,
    /// M → D.
    value: WeightMatrix,
    /// μ of key and receptance.
    shift: TokenShift<2>,
}

/// Numbers that the feed-forward part of a block keeps for a session.
pub(crate) fn state_len(config: &CheckedConfig, layer: usize) -> usize {
    if config.ff_at(layer) == FeedForwardKind::ChannelMix { config.d_model } else { 0 }
}

impl ChannelMix {
    pub(crate) fn read(config: &CheckedConfig, source: &mut dyn Source, name: &str) -> Result<Self> {
        let (d, d_ff) = (config.d_model, config.d_ff());
        let mut matrix = |part: &str, outputs, inputs| source.matrix(&join(&join(name, part), "weight"), outputs, inputs);
        let (key, receptance, value) = (matrix("key", d_ff, d)?, matrix("receptance", d, d)?, matrix("value", d, d_ff)?);
        Ok(Self { key, receptance, value, shift: TokenShift::read(config, source, name, ["mix_key", "mix_receptance"])? })
    }

    /// `x += FF(buffers.normed)`, `x` `[N, D]`.
    pub(crate) fn forward(&self, pass: &Pass<'_>, memory: Memory<'_>, x: &mut [f32], buffers: &mut Buffers) {
        let (n, d, d_ff) = (pass.rows, self.value.outputs(), self.value.inputs());
        let Buffers { normed, product: scratch, hidden, recurrent: [mixed, gate, ..], .. } = buffers;
        let [k, r] = self.shift.mixtures(pass, memory, normed, mixed);
        let scratch = room(scratch, n * d.max(d_ff));
        let hidden = room(hidden, n * d_ff);
        write(pass, &self.receptance, r, scratch, room(gate, n * d));
        product(pass, &self.key, n, k, scratch, hidden, |_, _, values, hidden| gates::squared_relu(pass.level, [values], hidden));
        let gate = &*gate;
        product(pass, &self.value, n, hidden, scratch, x, |row, range, values, x| {
            gates::add_gated(pass.level, [values, &gate[row * d..][range]], x);
        });
        self.shift.remember(pass, memory, normed);
    }
}
