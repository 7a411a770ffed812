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
use crate::{Candidate, ModelConfig, Result};

pub use tensors::{Role, TensorSpec, Tensors};

/// A mixer as configurations and files know it.
pub trait MixerSpec: Sync {
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

/// Lists the mixers: the variant, the name in files, and the specification.
macro_rules! mixers {
    ($dollar:tt; $($(#[$doc:meta])* $variant:ident = $text:literal => $spec:expr,)+) => {
        minrnn_kernels::choices! {
            /// The time-mixing layer.
            MixerKind, "mixer" {
                $($(#[$doc])* $variant = $text,)+
            }
        }

        impl MixerKind {
            /// What is known of the mixer.
            pub fn spec(self) -> &'static dyn MixerSpec {
                match self {
                    $(Self::$variant => &$spec,)+
                }
            }
        }

        /// Calls a macro with the names of all variants of `MixerKind`, for tests of each of them.
        #[doc(hidden)]
        #[macro_export]
        macro_rules! each_mixer {
            ($dollar call:ident) => {
                $dollar call! { $($variant)+ }
            };
        }
    };
}

mixers! {
    $;
    /// minGRU: one update gate that depends on the input alone.
    #[default]
    MinGru = "min-gru" => min_gru::Spec,
    /// minLSTM: a forget and an input gate that depend on the input alone.
    MinLstm = "min-lstm" => min_lstm::Spec,
    /// The gated recurrent unit, stepped through time.
    Gru = "gru" => gru::Spec,
    /// The long short-term memory, stepped through time.
    Lstm = "lstm" => lstm::Spec,
    /// Mamba (S6): a state space model whose step size, input and output depend on the input; its own convolution and gate.
    Mamba = "mamba" => mamba::Spec,
    /// S6: Mamba's selective state spaces alone, without its convolution and gate.
    S6 = "s6" => s6::Spec,
    /// The gated impulse linear recurrence: a minGRU with the candidate tanh.
    Gilr = "gilr" => gilr::Spec,
    /// The time mixing of RWKV-4: a fading average of values, weighted by the exponentials of keys.
    Rwkv4 = "rwkv4" => rwkv4::Spec,
    /// Softmax attention to everything read, with a learned query for each head.
    Aaren = "aaren" => aaren::Spec,
    /// Attention with elu(x) + 1 in place of the softmax.
    LinearAttention = "linear-attention" => linear_attention::Spec,
    /// RetNet's multi-scale retention.
    RetNet = "ret-net" => ret_net::Spec,
    /// xLSTM's scalar memory: exponential gates, heads, stepped through time.
    SLstm = "s-lstm" => s_lstm::Spec,
    /// xLSTM's matrix memory, in a block of its own without feed-forward part.
    MLstm = "m-lstm" => m_lstm::Spec,
    /// Causal softmax attention, whose state is a cache of keys and values.
    Attention = "attention" => attention::Spec,
    /// S4: a state space whose matrix is a diagonal less a rank-one part.
    S4 = "s4" => s4::Spec { name: "s4", rank_one: true },
    /// S4D: a diagonal state space.
    S4d = "s4d" => s4::Spec { name: "s4d", rank_one: false },
    /// H3: a shift and a diagonal state space between products of queries, keys and values.
    H3 = "h3" => h3::Spec,
    /// Hyena: gates around a convolution with a long implicit filter.
    Hyena = "hyena" => hyena::Spec,
    /// Hyena's long implicit filter alone, without its gates and short convolution.
    HyenaFilter = "hyena-filter" => hyena_filter::Spec,
    /// Beyond the paper: a minGRU whose coefficients may be negative.
    SignedMinGru = "signed-min-gru" => signed_min_gru::Spec,
    /// Beyond the paper: a minGRU that also forgets with the time that passes.
    DecayMinGru = "decay-min-gru" => decay_min_gru::Spec,
    /// Beyond the paper: associative memories that are corrected by the delta rule.
    Delta = "delta" => delta::Spec,
    /// RG-LRU, the gated linear recurrence of Griffin and RecurrentGemma.
    RgLru = "rg-lru" => rg_lru::Spec,
}

/// The names of the mixers that take `setting`, for a sentence.
pub(crate) fn names_with(setting: Setting) -> alloc::string::String {
    let names = MixerKind::ALL.iter().filter(|kind| kind.spec().takes().contains(&setting)).map(|kind| kind.name());
    names.collect::<alloc::vec::Vec<_>>().join(" and ")
}
