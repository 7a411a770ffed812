//! The time-mixing layers. A new one is a file and a line in [`read`] and [`memory_len`].

mod decay_min_gru;
mod delta;
mod gru;
mod lstm;
mod min_gru;
mod min_lstm;
mod recurrent;
mod signed_min_gru;

use alloc::boxed::Box;
use alloc::vec;
use alloc::vec::Vec;
use core::fmt::Debug;

use crate::pass::{Memory, Pass};
use crate::source::{Source, join};
use crate::workspace::Buffers;
use crate::{Candidate, InitialState, MixerKind, ModelConfig, Result};

/// From normalised inputs to hidden values; the block projects these back by `out_proj`.
pub(crate) trait Mixer: Debug + Send + Sync {
    /// W, the numbers of a token before `out_proj`.
    fn width(&self) -> usize;

    /// Whether `out_proj` has a bias.
    fn out_bias(&self) -> bool {
        true
    }

    /// Numbers kept for a session.
    fn memory(&self) -> usize;

    /// Writes what is kept before the first token.
    fn init_memory(&self, memory: &mut [f32]);

    /// Reads `buffers.normed` `[N, D]`, writes `buffers.hidden` `[N, W]` and moves the memory of each span on.
    fn forward(&self, pass: &Pass<'_>, memory: Memory<'_>, buffers: &mut Buffers);
}

/// The mixer of block `layer`, without its down-projection.
pub(crate) fn read(config: &ModelConfig, layer: usize, source: &mut dyn Source, name: &str) -> Result<Box<dyn Mixer>> {
    Ok(match config.mixer_at(layer) {
        MixerKind::MinGru => Box::new(min_gru::MinGru::read(config, layer, source, name)?),
        MixerKind::MinLstm => Box::new(min_lstm::MinLstm::read(config, source, name)?),
        MixerKind::Gru => Box::new(gru::Gru::read(config, source, name)?),
        MixerKind::Lstm => Box::new(lstm::Lstm::read(config, source, name)?),
        MixerKind::SignedMinGru => Box::new(signed_min_gru::SignedMinGru::read(config, source, name)?),
        MixerKind::DecayMinGru => Box::new(decay_min_gru::DecayMinGru::read(config, source, name)?),
        MixerKind::Delta => Box::new(delta::Delta::read(config, source, name)?),
    })
}

impl MixerKind {
    /// The mixers that the runtime runs: those whose state has a fixed size.
    pub const STREAMED: &'static [Self] =
        &[Self::MinGru, Self::MinLstm, Self::Gru, Self::Lstm, Self::SignedMinGru, Self::DecayMinGru, Self::Delta];
}

/// Numbers that a mixer keeps for a session.
pub(crate) fn memory_len(config: &ModelConfig, kind: MixerKind) -> Result<usize> {
    let e = config.d_inner()?;
    Ok(match kind {
        MixerKind::MinGru | MixerKind::MinLstm | MixerKind::Gru | MixerKind::SignedMinGru | MixerKind::DecayMinGru => e,
        MixerKind::Delta => e * (e / config.n_heads),
        MixerKind::Lstm => 2 * e,
    })
}

/// The state `[E]` before the first token: 0, or θ of the tensor `part`, through g where the candidate is positive.
fn initial(config: &ModelConfig, source: &mut dyn Source, name: &str, part: &str, candidate: Candidate) -> Result<Vec<f32>> {
    let e = config.d_inner()?;
    if config.initial_state == InitialState::Zero {
        return Ok(vec![0.0; e]);
    }
    let mut theta = source.vector(&join(name, part), &[e])?;
    if candidate == Candidate::Positive {
        theta.iter_mut().for_each(|x| *x = if *x >= 0.0 { *x + 0.5 } else { 1.0 / (1.0 + libm::expf(-*x)) });
    }
    Ok(theta)
}
