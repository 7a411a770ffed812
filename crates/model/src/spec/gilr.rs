//! GILR (Martin and Cundy 2018, arXiv:1709.04057): a minGRU with a tanh candidate.

use super::min_gru::gated;
use super::{MixerSpec, Sealed, Setting, Tensors};
use crate::config::{CheckedConfig, Cost};
use crate::{Candidate, ModelConfig};

pub(super) struct Spec;

impl Sealed for Spec {}

impl MixerSpec for Spec {
    fn takes(&self) -> &'static [Setting] {
        &[Setting::Expansion, Setting::InitialState]
    }

    fn candidate(&self, _config: &ModelConfig) -> Candidate {
        Candidate::Tanh
    }

    fn tensors(&self, config: &CheckedConfig, _layer: usize, tensors: &mut Tensors) {
        gated(config, 2, tensors);
    }

    fn cell(&self, config: &CheckedConfig) -> Cost {
        Cost::elementwise(2 * config.sizes().e) + Cost::state(config.sizes().e)
    }
}
