//! What is known about each mixer without running it. Each has a file with the settings it reads and their limits, its tensors, its cost
//! and its state. This is the single source for the checks of a configuration, `inspect`, the readers of files, and the runtime's states.

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
use crate::{Candidate, ModelConfig, Result, WiringKind};

pub use hyena::HYENA_TAPS;
pub use hyena_filter::{HYENA_FEATURES, HYENA_HIDDEN, hyena_layers};
pub use m_lstm::MLSTM_BLOCK;
pub use tensors::{Role, TensorSpec, Tensors};

/// Out of reach for other crates, so that none implements [`MixerSpec`]: a kind is one of [`MixerKind`], and a new method breaks nobody's code.
mod sealed {
    pub trait Sealed {}
}
use sealed::Sealed;

/// A mixer as known to configurations and files; this crate implements all of them.
pub trait MixerSpec: Sealed + Sync {
    /// The settings it reads, among those that not every mixer reads.
    fn takes(&self) -> &'static [Setting] {
        &[]
    }

    /// The inner layer of a mixer that is a whole block with its own wiring.
    fn inner_layer(&self) -> Option<MixerKind> {
        None
    }

    /// Whether a block with this mixer has no feed-forward part.
    fn is_whole_block(&self) -> bool {
        false
    }

    /// Checks the settings that the mixer reads; `config.d_model` is its width.
    ///
    /// # Errors
    /// A sentence that names the first key out of range, or the keys that contradict each other.
    fn validate(&self, config: &ModelConfig) -> Result<()> {
        let _ = config;
        Ok(())
    }

    /// How a linear cell computes its candidate.
    fn candidate(&self, config: &ModelConfig) -> Candidate {
        config.candidate
    }

    /// Lists the tensors of the mixer of block `layer`.
    fn tensors(&self, config: &CheckedConfig, layer: usize, tensors: &mut Tensors);

    /// The cost of a token outside products with whole matrices, and the state of a sequence: everything in [`Cost`] that does not follow
    /// from the tensors.
    fn cell(&self, config: &CheckedConfig) -> Cost;

    /// Numbers the inference runtime keeps for a session.
    fn state_len(&self, config: &CheckedConfig) -> usize {
        usize::try_from(self.cell(config).state).unwrap_or(usize::MAX)
    }
}

macro_rules! settings {
    ($($(#[$doc:meta])* $variant:ident = $key:literal,)+) => {
        /// A setting that some mixers do not have.
        #[derive(Debug, Clone, Copy, PartialEq, Eq)]
        pub enum Setting {
            $($(#[$doc])* $variant,)+
        }

        impl Setting {
            /// All of them.
            pub const ALL: &'static [Self] = &[$(Self::$variant,)+];

            /// Its key in a configuration.
            pub fn key(self) -> &'static str {
                match self {
                    $(Self::$variant => $key,)+
                }
            }
        }
    };
}

settings! {
    /// The ratio of the recurrent width to that of the residual stream.
    Expansion = "expansion",
    /// The candidate map of the minimal cells.
    Candidate = "candidate",
    /// Whether the gates of minLSTM are divided by their sum.
    NormalizeGates = "normalize_gates",
    /// What is added to the bias of a forget gate.
    ForgetBias = "forget_bias",
    /// `initial_state = learned`.
    InitialState = "initial_state",
    /// `scan = log-space`.
    LogSpace = "scan",
    /// The number of heads.
    Heads = "n_heads",
    /// The state size of each channel.
    StateSize = "d_state",
    /// The rank of the step sizes.
    StepRank = "dt_rank",
    /// Initial frequencies of the states.
    S4Init = "s4_init",
    /// The channels of a head.
    HeadWidth = "head_width",
    /// How many of the last tokens are seen.
    Window = "window",
    /// `positions = rotary`.
    Rotary = "positions",
    /// `init = gpt`.
    GptInit = "init",
    /// `highway = true`.
    Highway = "highway",
    /// `forget_floor = learned`.
    ForgetFloor = "forget_floor",
    /// Where the reset gate acts.
    GruForm = "gru_form",
    /// Whether a convolution comes before the gates.
    SLstmConv = "slstm_conv",
    /// How the forget gate follows from its pre-activation.
    SLstmForgetGate = "slstm_forget_gate",
    /// Initial values of the recurrent weights.
    SLstmRecurrentInit = "slstm_recurrent_init",
}

impl Setting {
    /// Whether one of its values turns it off, which every mixer accepts.
    pub fn can_be_off(self) -> bool {
        matches!(self, Self::InitialState | Self::LogSpace | Self::Rotary | Self::GptInit | Self::Highway | Self::ForgetFloor)
    }

    /// Whether a mixer of `config`, or the wiring around it, reads it.
    pub fn is_read_by(self, config: &ModelConfig) -> bool {
        let by_wiring = match config.wiring {
            WiringKind::None => false,
            WiringKind::H3 => self == Self::StateSize,
            WiringKind::Mamba => self == Self::Expansion,
        };
        by_wiring || config.mixer_kinds().into_iter().any(|kind| kind.spec().takes().contains(&self))
    }

    /// The mixers that read it.
    pub fn readers(self) -> impl Iterator<Item = MixerKind> {
        MixerKind::ALL.iter().copied().filter(move |kind| kind.spec().takes().contains(&self))
    }
}

/// The specification of each.
macro_rules! specs {
    ($($(#[$doc:meta])* $variant:ident = $text:literal => $spec:expr,)+) => {
        impl MixerKind {
            /// The mixer's specification.
            pub fn spec(self) -> &'static dyn MixerSpec {
                match self {
                    $(Self::$variant => &$spec,)+
                }
            }
        }
    };
}

mixers!(specs);

impl MixerKind {
    /// Whether the width of its cell is [`Setting::Expansion`] times that of the model.
    pub(crate) fn is_expanded(self) -> bool {
        self.spec().takes().contains(&Setting::Expansion)
    }
}

/// The names of the mixers that take `setting`, for a sentence.
pub(crate) fn names_with(setting: Setting) -> alloc::string::String {
    setting.readers().map(MixerKind::name).collect::<alloc::vec::Vec<_>>().join(" and ")
}
