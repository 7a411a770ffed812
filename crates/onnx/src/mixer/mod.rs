//! The time-mixing layers. A new one needs a file and a line in the list, or a line among those without a step of fixed size.

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
mod rg_lru;
mod rwkv4;
mod s4;
mod s6;
mod s_lstm;

use minrnn_kernels::Candidate;
use minrnn_model::{CheckedConfig, InitialState, MixerKind};

use crate::graph::{Graph, Initial, Value};
use crate::{Error, Result, join};

/// Which mixer is asked for.
struct Place<'a> {
    config: &'a CheckedConfig,
    kind: MixerKind,
    /// The block.
    layer: usize,
    /// The path of its tensors.
    name: &'a str,
}

impl Place<'_> {
    /// The path of a part.
    fn at(&self, part: &str) -> String {
        join(self.name, part)
    }
}

/// Lists how a step of each kind is written, and the kinds for which there is none. A kind that is in neither list does not compile.
macro_rules! mixers {
    ($($($variant:ident)|+ => $step:path,)+; $($grows:ident)|+ => $reason:literal) => {
        /// What the mixer `name` of block `layer`, of width `config.d_model`, makes of `x` `[B, D]`.
        pub(crate) fn mixed(g: &mut Graph<'_>, config: &CheckedConfig, layer: usize, name: &str, x: Value) -> Result<Value> {
            let kind = config.mixer_at(layer);
            let place = &Place { config, kind, layer, name };
            match kind {
                $($(MixerKind::$variant)|+ => $step(g, place, x),)+
                $(MixerKind::$grows)|+ => Err(Error::Config(format!(concat!("a step graph cannot hold mixer = {}: ", $reason), kind))),
            }
        }
    };
}

mixers! {
    MinGru | MinLstm | Gilr | SignedMinGru | DecayMinGru => linear_cell::step,
    Gru => gru::step,
    Lstm => lstm::step,
    Mamba => mamba::step,
    S6 => s6::step,
    Rwkv4 => rwkv4::step,
    Aaren => aaren::step,
    LinearAttention | RetNet => retention::step,
    SLstm => s_lstm::step,
    MLstm => m_lstm::step,
    S4 | S4d => s4::step,
    H3 => h3::step,
    Delta => delta::step,
    RgLru => rg_lru::step,;
    Attention | Hyena | HyenaFilter => "what it keeps of the past grows with every step; run it with minrnn itself"
}

/// The state before the first token: 0, or what [`Candidate::first_state`] makes of θ, the tensor `part`.
fn initial(g: &mut Graph<'_>, at: &Place<'_>, part: &str, candidate: Candidate) -> Result<Initial> {
    if at.config.initial_state == InitialState::Zero {
        return Ok(Initial::All(0.0));
    }
    let theta = g.tensor(&at.at(part), &[at.config.d_inner()])?;
    Ok(Initial::Each(theta.into_iter().map(|theta| candidate.first_state(theta)).collect()))
}
