//! What is known of each mixer without running it. A file for each: the settings it reads and their limits, its tensors, what it costs and what
//! it carries. Everyone who needs one of these asks here: the checks of a configuration, `inspect`, the readers of files, the runtime's states.

mod aaren;
mod attention;
mod decay_min_gru;
mod delta;
mod gilr;
mod gru;
mod h3;
mod hyena;
mod hyena_filter;
mod linear_attention;
mod lstm;
mod m_lstm;
mod mamba;
mod min_gru;
mod min_lstm;
mod ret_net;
mod rg_lru;
mod rwkv4;
mod s4;
mod s6;
mod s_lstm;
mod signed_min_gru;
mod tensors;

use crate::config::{CheckedConfig, Cost};
use crate::mixer_kind::{MixerKind, mixers};
use crate::{Candidate, ModelConfig, Result};

pub use hyena::HYENA_TAPS;
pub use hyena_filter::{HYENA_FEATURES, HYENA_HIDDEN, hyena_layers};
pub use m_lstm::MLSTM_BLOCK;
pub use tensors::{Role, TensorSpec, Tensors};

/// Kept out of reach, so that nobody else implements [`MixerSpec`]: a kind is one of [`MixerKind`], and a method more breaks no one.
mod sealed {
    pub trait Sealed {}
}
use sealed::Sealed;

/// A mixer as configurations and files know it; this crate has all of them.
pub trait MixerSpec: Sealed + Sync {
    /// The settings of which not every mixer takes another value than the default.
    fn takes(&self) -> &'static [Setting] {
        &[]
    }

    /// The inner layer of a mixer that is a whole block with a wiring of its own.
    fn inner_layer(&self) -> Option<MixerKind> {
        None
    }

    /// Whether a block with this mixer has no feed-forward part.
    fn is_whole_block(&self) -> bool {
        false
    }

    /// Checks the settings that the mixer reads; `config.d_model` is the width that it is given.
    ///
    /// # Errors
    /// A sentence that names the first key out of range, or the keys that contradict each other.
    fn validate(&self, config: &ModelConfig) -> Result<()> {
        let _ = config;
        Ok(())
    }

    /// How a linear cell makes its candidate.
    fn candidate(&self, config: &ModelConfig) -> Candidate {
        config.candidate
    }

    /// Lists the tensors of the mixer of block `layer`.
    fn tensors(&self, config: &CheckedConfig, layer: usize, tensors: &mut Tensors);

    /// What a token costs outside of matrices that multiply it whole, and what a sequence carries: everything of [`Cost`] but what follows
    /// from the tensors.
    fn cell(&self, config: &CheckedConfig) -> Cost;

    /// Numbers that the inference runtime keeps for a session.
    fn state_len(&self, config: &CheckedConfig) -> usize {
        usize::try_from(self.cell(config).state).unwrap_or(usize::MAX)
    }
}

/// A setting that some mixers do not have.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Setting {
    /// `initial_state = learned`.
    InitialState,
    /// `highway = true`.
    Highway,
    /// `forget_floor = learned`.
    ForgetFloor,
    /// `scan = log-space`.
    LogSpace,
    /// `init = gpt`.
    GptInit,
    /// `positions = rotary`.
    Rotary,
}

/// The specification of each.
macro_rules! specs {
    ($($(#[$doc:meta])* $variant:ident = $text:literal => $spec:expr,)+) => {
        impl MixerKind {
            /// What is known of the mixer.
            pub fn spec(self) -> &'static dyn MixerSpec {
                match self {
                    $(Self::$variant => &$spec,)+
                }
            }
        }
    };
}

mixers!(specs);

/// The names of the mixers that take `setting`, for a sentence.
pub(crate) fn names_with(setting: Setting) -> alloc::string::String {
    let names = MixerKind::ALL.iter().filter(|kind| kind.spec().takes().contains(&setting)).map(|kind| kind.name());
    names.collect::<alloc::vec::Vec<_>>().join(" and ")
}
