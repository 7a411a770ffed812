//! The time-mixing layers. A new one is a file and a line in the list.

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

use crate::pass::{Memory, Pass};
use crate::source::{Source, join};
use crate::workspace::Buffers;
use crate::{Candidate, CheckedConfig, InitialState, MixerKind, Result};

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

    /// Writes what is kept before the first token, as many numbers as the mixer's specification says ([`state_len`]).
    ///
    /// [`state_len`]: minrnn_model::MixerSpec::state_len
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

/// Lists how the mixer of each kind is read. One that is not in the list does not compile.
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

/// The state `[E]` before the first token: 0, or θ of the tensor `part`, through g where the candidate is positive.
fn initial(config: &CheckedConfig, source: &mut dyn Source, name: &str, part: &str, candidate: Candidate) -> Result<Vec<f32>> {
    let e = config.d_inner();
    if config.initial_state == InitialState::Zero {
        return Ok(vec![0.0; e]);
    }
    let mut theta = source.vector(&join(name, part), &[e])?;
    if candidate == Candidate::Positive {
        theta.iter_mut().for_each(|x| *x = if *x >= 0.0 { *x + 0.5 } else { 1.0 / (1.0 + libm::expf(-*x)) });
    }
    Ok(theta)
}
