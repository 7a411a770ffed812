//! The time-mixing layers. A new one is a file and a line in [`read`] and [`state_len`].

mod aaren;
mod delta;
mod gru;
mod h3;
mod linear_cell;
mod lstm;
mod m_lstm;
mod mamba;
mod recurrent;
mod retention;
mod rwkv4;
mod s4;
mod s6;
mod s_lstm;
mod state_space;

use alloc::boxed::Box;
use alloc::format;
use alloc::vec;
use alloc::vec::Vec;
use core::fmt::Debug;

use crate::pass::{Memory, Pass};
use crate::source::{Source, join};
use crate::workspace::Buffers;
use crate::{Candidate, Error, InitialState, MixerKind, ModelConfig, Pooling, Positions, Result, shift};

/// From normalised inputs to hidden values; the block projects these back by `out_proj`.
pub(crate) trait Mixer: Debug + Send + Sync {
    /// W, the numbers of a token before `out_proj`.
    fn width(&self) -> usize;

    /// Whether the hidden values go through `out_proj`; otherwise W is D.
    fn has_out_proj(&self) -> bool {
        true
    }

    /// Whether `out_proj` has a bias.
    fn out_bias(&self) -> bool {
        true
    }

    /// What is made of the product with `out_proj`.
    fn output(&self) -> Output {
        Output::Plain
    }

    /// Numbers kept for a session.
    fn state_len(&self) -> usize;

    /// Writes what is kept before the first token.
    fn init_memory(&self, memory: &mut [f32]);

    /// Reads `buffers.normed` `[N, D]`, writes `buffers.hidden` `[N, W]` and moves the memory of each span on.
    fn forward(&self, pass: &Pass<'_>, memory: Memory<'_>, buffers: &mut Buffers);
}

/// What a block adds of the projection of hidden values.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Output {
    /// All of it.
    Plain,
    /// value ⊙ σ(gate), `out_proj` having rows for both.
    Gated,
}

/// The mixer of block `layer`, of width `config.d_model`, without its down-projection.
pub(crate) fn read(config: &ModelConfig, layer: usize, source: &mut dyn Source, name: &str) -> Result<Box<dyn Mixer>> {
    let kind = config.mixer_at(layer);
    Ok(match kind {
        MixerKind::MinGru | MixerKind::MinLstm | MixerKind::Gilr | MixerKind::SignedMinGru | MixerKind::DecayMinGru => {
            Box::new(linear_cell::LinearCell::read(config, layer, kind, source, name)?)
        }
        MixerKind::Gru => Box::new(gru::Gru::read(config, source, name)?),
        MixerKind::Lstm => Box::new(lstm::Lstm::read(config, source, name)?),
        MixerKind::Mamba => Box::new(mamba::Mamba::read(config, source, name)?),
        MixerKind::S6 => Box::new(s6::S6::read(config, source, name)?),
        MixerKind::Rwkv4 => Box::new(rwkv4::Rwkv4::read(config, source, name)?),
        MixerKind::Aaren => Box::new(aaren::Aaren::read(config, source, name)?),
        MixerKind::LinearAttention | MixerKind::RetNet => Box::new(retention::Retention::read(config, kind, source, name)?),
        MixerKind::SLstm => Box::new(s_lstm::SLstm::read(config, source, name)?),
        MixerKind::MLstm => Box::new(m_lstm::MLstm::read(config, source, name)?),
        MixerKind::Attention => return Err(not_streamed(kind)),
        MixerKind::S4 | MixerKind::S4d => Box::new(s4::S4::read(config, source, name, kind == MixerKind::S4)?),
        MixerKind::H3 => Box::new(h3::H3::read(config, source, name)?),
        MixerKind::Hyena | MixerKind::HyenaFilter => return Err(not_streamed(kind)),
        MixerKind::Delta => Box::new(delta::Delta::read(config, source, name)?),
    })
}

impl MixerKind {
    /// The mixers that the runtime runs: those whose state has a fixed size.
    pub const SUPPORTED: &'static [Self] = &[
        Self::MinGru,
        Self::MinLstm,
        Self::Gru,
        Self::Lstm,
        Self::Mamba,
        Self::S6,
        Self::Gilr,
        Self::Rwkv4,
        Self::Aaren,
        Self::LinearAttention,
        Self::RetNet,
        Self::SLstm,
        Self::MLstm,
        Self::S4,
        Self::S4d,
        Self::H3,
        Self::SignedMinGru,
        Self::DecayMinGru,
        Self::Delta,
    ];
}

impl ModelConfig {
    /// Checks that the runtime runs such a model.
    ///
    /// # Errors
    /// When a mixer is not among [`MixerKind::SUPPORTED`], or positions are learned.
    pub fn check_supported(&self) -> Result<()> {
        if let Some(kind) = self.mixer_kinds().into_iter().find(|kind| !MixerKind::SUPPORTED.contains(kind)) {
            return Err(not_streamed(kind));
        }
        if !self.is_language_model() || self.pooling != Pooling::Last || self.pair_head {
            let sentence = "the inference runtime runs language models, but this one reads or predicts something else; use minrnn predict";
            return Err(Error::Config(sentence.into()));
        }
        if self.positions == Positions::Learned {
            return Err(Error::Config(format!("the inference runtime has no positions = {}; {TAKE_THE_TRAINING_MODEL}", self.positions)));
        }
        Ok(())
    }
}

const TAKE_THE_TRAINING_MODEL: &str = "take the training model, as minrnn generate and minrnn eval do with a run or a checkpoint";

fn not_streamed(kind: MixerKind) -> Error {
    let names: Vec<_> = MixerKind::SUPPORTED.iter().map(|kind| kind.name()).collect();
    let names = names.join(", ");
    Error::Config(format!("the inference runtime does not run mixer = {kind}, expected one of {names}; {TAKE_THE_TRAINING_MODEL}"))
}

/// Numbers that a mixer of width `config.d_model` keeps for a session.
pub(crate) fn state_len(config: &ModelConfig, kind: MixerKind) -> Result<usize> {
    let e = config.d_inner()?;
    Ok(match kind {
        MixerKind::MinGru | MixerKind::MinLstm | MixerKind::Gru | MixerKind::Gilr | MixerKind::SignedMinGru | MixerKind::DecayMinGru => e,
        MixerKind::Delta => e * (e / config.n_heads),
        MixerKind::Lstm => 2 * e,
        MixerKind::Mamba => mamba::state_len(e, config.d_state),
        MixerKind::S6 | MixerKind::S4 | MixerKind::S4d => config.d_state * config.d_model,
        MixerKind::Rwkv4 => config.d_model + 3 * e,
        MixerKind::Aaren => e + config.n_heads,
        MixerKind::LinearAttention | MixerKind::RetNet => retention::state_len(config, kind)?,
        MixerKind::SLstm => s_lstm::state_len(config.d_model, config.slstm_conv),
        MixerKind::MLstm => m_lstm::state_len(config.mlstm_inner()?, config.n_heads),
        MixerKind::Attention => return Err(not_streamed(kind)),
        MixerKind::H3 => shift::state_len(config.d_model, config.d_state) + config.d_state * config.d_model * config.head_width,
        MixerKind::Hyena | MixerKind::HyenaFilter => return Err(not_streamed(kind)),
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
