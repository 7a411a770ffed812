//! The list of mixers that a configuration can name.

use burn::module::Module;
use burn::tensor::Tensor;
use minrnn_model::{CheckedConfig, MixerKind};

use super::init::Initializer;
use super::layer::expect_layer;
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
            /// A new mixer for block `layer`, counted from 0, as described by `config`, with the width inside its wiring.
            ///
            /// # Panics
            /// When `config` has no such block.
            pub fn new(config: &CheckedConfig, layer: usize, init: &mut Initializer) -> Self {
                expect_layer(config, layer);
                let config = &config.inside_wiring();
                match config.mixer_at(layer) {
                    $(MixerKind::$variant => Self::$variant(super::$file::$module::new(config, layer, init)),)+
                }
            }

            /// Adds what the mixer of block `layer` keeps for the backward pass, and what it holds temporarily.
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

#[cfg(test)]
mod tests {
    use minrnn_model::ModelConfig;

    use super::*;
    use crate::memory::activations::Sizes;

    #[test]
    fn a_bias_takes_memory_where_a_checkpoint_has_one() {
        let mut n_compared = 0;
        for &mixer in MixerKind::ALL {
            for bias in [true, false] {
                let config = ModelConfig { mixer, vocab_size: 11, bias, ..ModelConfig::default() }.checked().unwrap();
                let mut list = Activations::new(Sizes { batch_size: 1, seq_len: 8, scored: 8, threads: 1 });
                AnyMixer::activations(&config, 0, &mut list);
                let mut tensors = config.tensors();
                tensors.retain(|tensor| tensor.name.starts_with("backbone.blocks.0.mixer."));
                for (from, to, has_bias) in list.layers {
                    let shape = [to as usize, from as usize];
                    let weights = tensors.iter().filter(|tensor| tensor.shape == shape);
                    let layers: Vec<&str> = weights.filter_map(|tensor| tensor.name.strip_suffix("weight")).collect();
                    assert!(!layers.is_empty(), "{mixer}: no layer from {from} to {to}");
                    for layer in layers {
                        let name = format!("{layer}bias");
                        assert_eq!(tensors.iter().any(|tensor| tensor.name == name), has_bias, "{mixer}: {name}");
                        n_compared += 1;
                    }
                }
            }
        }
        assert!(n_compared > MixerKind::ALL.len(), "{n_compared} layers are compared");
    }
}
