//! The list of mixers that configurations can name.

use burn::module::Module;
use burn::tensor::Tensor;
use minrnn_model::{CheckedConfig, MixerKind};

use super::init::Initializer;
use super::mixer::Mixer;
use super::state::{State, StateZip};
use crate::memory::activations::Activations;
use crate::ops::StepCodes;

/// Lists the mixers: variant, module file, module type.
macro_rules! mixers {
    ($($variant:ident: $file:ident::$module:ident),+ $(,)?) => {
        /// Any mixer of the library, chosen at run time by the configuration.
        #[derive(Module, Debug)]
        #[allow(clippy::large_enum_variant, reason = "a model holds a handful, all of one variant")]
        pub enum AnyMixer {
            $(#[doc = concat!("[`", stringify!($module), "`](super::", stringify!($module), ").")] $variant(super::$file::$module),)+
        }

        /// The state of [`AnyMixer`].
        #[derive(Debug, Clone)]
        #[allow(clippy::large_enum_variant, reason = "a model holds one per block, all of one variant")]
        pub enum AnyState {
            $(#[doc = concat!("State of [`", stringify!($module), "`](super::", stringify!($module), ").")]
            $variant(<super::$file::$module as Mixer>::State),)+
        }

        impl AnyMixer {
            /// A new mixer for block `layer`, as `config` asks for, of the width that its wiring leaves.
            pub fn new(config: &CheckedConfig, layer: usize, init: &mut Initializer) -> Self {
                let config = &config.inside_wiring();
                match config.mixer_at(layer) {
                    $(MixerKind::$variant => Self::$variant(super::$file::$module::new(config, layer, init)),)+
                }
            }

            /// Adds what the mixer of block `layer` keeps for the backward pass, and holds for a moment.
            pub(crate) fn activations(config: &CheckedConfig, layer: usize, list: &mut Activations) {
                let config = &config.inside_wiring();
                match config.mixer_at(layer) {
                    $(MixerKind::$variant => super::$file::$module::activations(config, list),)+
                }
            }
        }

        impl State for AnyState {
            fn zip<F: StateZip>(self, other: Self, f: &mut F) -> Self {
                match (self, other) {
                    $((Self::$variant(a), Self::$variant(b)) => Self::$variant(a.zip(b, f)),)+
                    _ => panic!("the states belong to different mixers"),
                }
            }
        }

        impl Mixer for AnyMixer {
            type State = AnyState;

            fn init_state(&self, batch_size: usize) -> AnyState {
                match self {
                    $(Self::$variant(mixer) => AnyState::$variant(mixer.init_state(batch_size)),)+
                }
            }

            fn takes_bf16(&self) -> bool {
                match self {
                    $(Self::$variant(mixer) => mixer.takes_bf16(),)+
                }
            }

            fn forward(&self, x: Tensor<3>, state: AnyState, steps: &StepCodes) -> (Tensor<3>, AnyState) {
                match (self, state) {
                    $((Self::$variant(mixer), AnyState::$variant(state)) => {
                        let (y, state) = mixer.forward(x, state, steps);
                        (y, AnyState::$variant(state))
                    })+
                    _ => panic!("the state belongs to another mixer"),
                }
            }

            fn step(&self, x: Tensor<2>, state: AnyState) -> (Tensor<2>, AnyState) {
                match (self, state) {
                    $((Self::$variant(mixer), AnyState::$variant(state)) => {
                        let (y, state) = mixer.step(x, state);
                        (y, AnyState::$variant(state))
                    })+
                    _ => panic!("the state belongs to another mixer"),
                }
            }
        }
    };
}

mixers! {
    MinGru: min_gru::MinGru,
    MinLstm: min_lstm::MinLstm,
    Gru: gru::Gru,
    Lstm: lstm::Lstm,
    Mamba: mamba::Mamba,
    S6: s6::S6,
    Gilr: gilr::Gilr,
    Rwkv4: rwkv4::Rwkv4,
    Aaren: aaren::Aaren,
    LinearAttention: linear_attention::LinearAttention,
    RetNet: ret_net::RetNet,
    SLstm: s_lstm::SLstm,
    MLstm: m_lstm::MLstm,
    Attention: attention::Attention,
    S4: s4::S4,
    S4d: s4d::S4d,
    H3: h3::H3,
    Hyena: hyena::Hyena,
    HyenaFilter: hyena_filter::HyenaFilter,
    SignedMinGru: signed_min_gru::SignedMinGru,
    DecayMinGru: decay_min_gru::DecayMinGru,
    Delta: delta::Delta,
    RgLru: rg_lru::RgLru,
}
