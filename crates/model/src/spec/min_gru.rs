//! minGRU (Feng et al. 2024, arXiv:2410.01201, §3.1).

use super::{MixerSpec, Sealed, Setting, Tensors};
use crate::config::{CheckedConfig, Cost};
use crate::{ForgetFloor, ModelConfig, Result, ScanKind};

pub(super) struct Spec;

impl Sealed for Spec {}

impl MixerSpec for Spec {
    fn takes(&self) -> &'static [Setting] {
        &[Setting::Expansion, Setting::Candidate, Setting::InitialState, Setting::Highway, Setting::ForgetFloor, Setting::LogSpace]
    }

    fn validate(&self, config: &ModelConfig) -> Result<()> {
        if config.forget_floor != ForgetFloor::None && config.scan != ScanKind::Linear {
            return crate::config::wrong(alloc::format!("forget_floor = learned needs scan = linear, found {}", config.scan));
        }
        Ok(())
    }

    fn tensors(&self, config: &CheckedConfig, _layer: usize, tensors: &mut Tensors) {
        gated(config, 2, tensors);
        if config.forget_floor == ForgetFloor::Learned {
            tensors.parameter("forget_floor", &[config.d_inner()]);
        }
    }

    fn cell(&self, config: &CheckedConfig) -> Cost {
        let floor = if config.forget_floor == ForgetFloor::Learned { 1 } else { 0 };
        Cost::elementwise((2 + floor) * config.sizes().e + highway(config)) + Cost::state(config.sizes().e)
    }
}

/// The tensors of a linear cell whose in-projection has `parts` parts.
pub(super) fn gated(config: &CheckedConfig, parts: usize, tensors: &mut Tensors) {
    let (d, e) = (config.d_model, config.d_inner());
    tensors.linear("in_proj", d, parts * e, true);
    tensors.linear("out_proj", e, d, true);
    if config.highway {
        tensors.linear("highway", d, d, true);
    }
    initial_state(config, tensors);
}

/// θ of a learned initial state.
pub(super) fn initial_state(config: &CheckedConfig, tensors: &mut Tensors) {
    if config.initial_state == crate::InitialState::Learned {
        tensors.parameter("initial_state", &[config.d_inner()]);
    }
}

/// Multiply-adds of the mixture of state and input.
pub(super) fn highway(config: &CheckedConfig) -> u128 {
    if config.highway { 2 * config.sizes().d } else { 0 }
}
