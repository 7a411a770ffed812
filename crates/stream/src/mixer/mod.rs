//! The time-mixing layers. A new one needs a file and a line in the list.

mod aaren;
mod attention;
mod delta;
mod gru;
mod h3;
mod hyena;
mod hyena_filter;
mod linear_cell;
mod long_filter;
mod lstm;
mod m_lstm;
mod mamba;
mod recurrent;
mod retention;
mod rg_lru;
mod rwkv4;
mod s4;
mod s6;
mod s_lstm;
mod state_space;

use alloc::boxed::Box;
use alloc::vec;
use alloc::vec::Vec;
use core::fmt::Debug;

use minrnn_kernels::{Out, gelu};

use crate::pass::{Memory, Pass};
use crate::source::{Source, join};
use crate::workspace::Buffers;
use crate::{Candidate, CheckedConfig, InitialState, MixerKind, Result};

/// From normalised inputs to hidden values; the block projects these back by `out_proj`.
pub(crate) trait Mixer: Debug + Send + Sync {
    /// W, the numbers of a token before `out_proj`.
    fn width(&self) -> usize;

    /// How the block's output is made from the hidden values.
    fn output(&self) -> Output {
        Output::Projected
    }

    /// Whether `out_proj`, if there is one, has a bias.
    fn out_bias(&self) -> bool {
        true
    }

    /// Writes what is kept before the first token, as many numbers as the mixer's specification says ([`state_len`]): zeros, unless the mixer says
    /// otherwise.
    ///
    /// [`state_len`]: minrnn_model::MixerSpec::state_len
    fn init_memory(&self, memory: &mut [f32]) {
        memory.fill(0.0);
    }

    /// Reads `buffers.normed` `[N, D]`, writes `buffers.hidden` `[N, W]` and advances the memory of each span.
    fn forward(&self, pass: &Pass<'_>, memory: Memory<'_>, buffers: &mut Buffers);
}

/// What a block adds to its input, made from a mixer's hidden values.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Output {
    /// The hidden values themselves; W is D.
    Hidden,
    /// Their product with `out_proj`.
    Projected,
    /// value ⊙ σ(gate) of the product, `out_proj` having rows for both.
    Gated,
}

impl Output {
    /// The output of a map that treats channels separately: a gated projection mixes them, unless the projection of a wiring does.
    fn of_map(config: &CheckedConfig) -> Self {
        if config.has_output_mixing() { Self::Gated } else { Self::Hidden }
    }

    /// Writes the hidden values from the result `y` of such a map: GELU(`y`) where a projection follows.
    fn activate(self, y: &[f32], hidden: &mut [f32]) {
        match self {
            Self::Gated => gelu::forward(1, y.len(), y, None, Out::new(hidden)),
            Self::Hidden | Self::Projected => hidden.copy_from_slice(y),
        }
    }
}

/// Lists how the mixer of each kind is read. A kind missing from the list does not compile.
macro_rules! mixers {
    ($config:ident, $layer:ident, $kind:ident, $source:ident, $name:ident; $($($variant:ident)|+ => $read:expr,)+) => {
        /// The mixer of block `layer`, of width `config.d_model`, without its down-projection.
        pub(crate) fn read($config: &CheckedConfig, $layer: usize, $source: &mut dyn Source, $name: &str) -> Result<Box<dyn Mixer>> {
            let $kind = $config.mixer_at($layer);
            Ok(match $kind {
                $($(MixerKind::$variant)|+ => Box::new($read),)+
            })
        }
    };
}

mixers! {
    config, layer, kind, source, name;
    MinGru | MinLstm | Gilr | SignedMinGru | DecayMinGru => linear_cell::LinearCell::read(config, layer, kind, source, name)?,
    Gru => gru::Gru::read(config, source, name)?,
    Lstm => lstm::Lstm::read(config, source, name)?,
    Mamba => mamba::Mamba::read(config, source, name)?,
    S6 => s6::S6::read(config, source, name)?,
    Rwkv4 => rwkv4::Rwkv4::read(config, source, name)?,
    Aaren => aaren::Aaren::read(config, source, name)?,
    LinearAttention | RetNet => retention::Retention::read(config, kind, source, name)?,
    SLstm => s_lstm::SLstm::read(config, source, name)?,
    MLstm => m_lstm::MLstm::read(config, source, name)?,
    Attention => attention::Attention::read(config, source, name)?,
    S4 | S4d => s4::S4::read(config, source, name, kind == MixerKind::S4)?,
    H3 => h3::H3::read(config, source, name)?,
    Hyena => hyena::Hyena::read(config, source, name)?,
    HyenaFilter => hyena_filter::HyenaFilter::read(config, source, name)?,
    Delta => delta::Delta::read(config, source, name)?,
    RgLru => rg_lru::RgLru::read(config, source, name)?,
}

/// The state `[E]` before the first token: 0, or what [`Candidate::first_state`] makes of θ, the tensor `part`.
fn initial(config: &CheckedConfig, source: &mut dyn Source, name: &str, part: &str, candidate: Candidate) -> Result<Vec<f32>> {
    let e = config.d_inner();
    if config.initial_state == InitialState::Zero {
        return Ok(vec![0.0; e]);
    }
    let mut theta = source.vector(&join(name, part), &[e])?;
    theta.iter_mut().for_each(|theta| *theta = candidate.first_state(*theta));
    Ok(theta)
}
