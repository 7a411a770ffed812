//! LSTM (Hochreiter and Schmidhuber 1997, with the forget gate of Gers et al. 2000).

use super::{MixerSpec, Sealed, Setting, Tensors};
use crate::InitialState;
use crate::config::{CheckedConfig, Cost};

pub(super) struct Spec;

impl Sealed for Spec {}

impl MixerSpec for Spec {
    fn takes(&self) -> &'static [Setting] {
        &[Setting::Expansion, Setting::ForgetBias, Setting::InitialState]
    }

    fn tensors(&self, config: &CheckedConfig, _layer: usize, tensors: &mut Tensors) {
        let (d, e) = (config.d_model, config.d_inner());
        tensors.linear("in_proj", d, 4 * e, true);
        tensors.linear("recurrent", e, 4 * e, true);
        tensors.linear("out_proj", e, d, true);
        super::min_gru::initial_state(config, tensors);
        if config.initial_state == InitialState::Learned {
            tensors.parameter("initial_cell", &[e]);
        }
    }

    fn cell(&self, config: &CheckedConfig) -> Cost {
        Cost::elementwise(3 * config.sizes().e) + Cost::state(2 * config.sizes().e)
    }
}
