//! Signed minGRU, beyond the paper: its coefficients lie in (−1, 1).

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
        gated(config, 3, tensors);
    }

    fn cell(&self, config: &CheckedConfig) -> Cost {
        Cost::elementwise(3 * config.sizes().e) + Cost::state(config.sizes().e)
    }
}
