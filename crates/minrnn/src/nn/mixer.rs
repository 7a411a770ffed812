//! The contract of time-mixing layers, and the list of those that configurations can name.

use burn::module::{Module, ModuleDisplay};
use burn::tensor::Tensor;
use minrnn_model::{CheckedConfig, MixerKind};

use super::init::Initializer;
use super::state::{State, StateZip};
use crate::memory::activations::Activations;
use crate::ops::StepCodes;

/// A causal layer that mixes over time and carries a state.
///
/// **Law.** Cut a sequence anywhere and carry the state across the cut: outputs, final state and gradients (through the state and
/// into the first one too) are those of the whole sequence. Padding passes the state unchanged, and its outputs and their gradients
/// mean nothing. A reset puts a row's state back to [`init_state`](Mixer::init_state) before the step.
pub trait Mixer: Module + ModuleDisplay {
    /// Everything carried between calls.
    type State: State;

    /// The state before the first step of `batch_size` sequences.
    fn init_state(&self, batch_size: usize) -> Self::State;

    /// The whole sequence `x` `[B, T, D]` → `[B, T, D]` and the state after it.
    ///
    /// # Panics
    /// When the shapes of input, state and steps do not fit.
    fn forward(&self, x: Tensor<3>, state: Self::State, steps: &StepCodes) -> (Tensor<3>, Self::State);

    /// Whether `x` and y may have 16 bits on GPUs: only where every operation between them has kernels that take such
    /// activations and compute in f32. States always are f32.
    fn takes_bf16(&self) -> bool {
        false
    }

    /// One step `x` `[B, D]` → `[B, D]` and the state after it.
    ///
    /// # Panics
    /// When the shapes of input and state do not fit.
    fn step(&self, x: Tensor<2>, state: Self::State) -> (Tensor<2>, Self::State) {
        let (y, state) = self.forward(x.unsqueeze_dim(1), state, &StepCodes::dense());
        (y.squeeze_dim(1), state)
    }
}

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
    RgLru: rg_lru::RgLru,
    Delta: delta::Delta,
}
