//! Decaying minGRU, beyond the paper: it also forgets as time passes.

use super::min_gru::gated;
use super::{MixerSpec, Sealed, Setting, Tensors};
use crate::config::{CheckedConfig, Cost};

pub(super) struct Spec;

impl Sealed for Spec {}

impl MixerSpec for Spec {
    fn takes(&self) -> &'static [Setting] {
        &[Setting::Expansion, Setting::Candidate, Setting::InitialState]
    }

    fn tensors(&self, config: &CheckedConfig, _layer: usize, tensors: &mut Tensors) {
        gated(config, 2, tensors);
        tensors.parameter("decay", &[config.d_inner()]);
    }

    fn cell(&self, config: &CheckedConfig) -> Cost {
        // As minGRU, and λ Δt and one more factor of the state.
        Cost::elementwise(4 * config.sizes().e) + Cost::state(config.sizes().e)
    }
}
