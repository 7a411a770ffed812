//! minLSTM (Feng et al. 2024, arXiv:2410.01201, §3.2).

use super::min_gru::{gated, highway};
use super::{MixerSpec, Sealed, Setting, Tensors};
use crate::config::{CheckedConfig, Cost};

pub(super) struct Spec;

impl Sealed for Spec {}

impl MixerSpec for Spec {
    fn takes(&self) -> &'static [Setting] {
        &[
            Setting::Expansion,
            Setting::Candidate,
            Setting::NormalizeGates,
            Setting::ForgetBias,
            Setting::InitialState,
            Setting::Highway,
            Setting::LogSpace,
        ]
    }

    fn tensors(&self, config: &CheckedConfig, _layer: usize, tensors: &mut Tensors) {
        gated(config, 3, tensors);
    }

    fn cell(&self, config: &CheckedConfig) -> Cost {
        Cost::elementwise(2 * config.sizes().e + highway(config)) + Cost::state(config.sizes().e)
    }
}
