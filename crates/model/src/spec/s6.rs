//! S6, the selective state spaces of Mamba (Gu and Dao 2023, arXiv:2312.00752).

use super::{MixerSpec, Sealed, Setting, Tensors};
use crate::config::{CheckedConfig, Cost};

pub(super) struct Spec;

impl Sealed for Spec {}

impl MixerSpec for Spec {
    fn takes(&self) -> &'static [Setting] {
        &[Setting::StateSize, Setting::StepRank]
    }

    fn tensors(&self, config: &CheckedConfig, _layer: usize, tensors: &mut Tensors) {
        selective_tensors(config, config.d_model, tensors);
        output_mixing(config, tensors);
    }

    fn cell(&self, config: &CheckedConfig) -> Cost {
        selective_cell(config, config.sizes().d) + mixing_cell(config)
    }
}

/// The tensors of selective state spaces of `e` channels.
pub(super) fn selective_tensors(config: &CheckedConfig, e: usize, tensors: &mut Tensors) {
    let (n, r) = (config.d_state, config.step_rank());
    tensors.linear("x_proj", e, r + 2 * n, false);
    tensors.linear("dt_proj", r, e, true);
    tensors.parameter("A_log", &[e, n]);
    tensors.parameter("D", &[e]);
}

/// Δ A, its exponential times h, (Δ u) B and C h for each state; Δ u and D u for each channel.
pub(super) fn selective_cell(config: &CheckedConfig, e: u128) -> Cost {
    Cost::elementwise(4 * e * config.sizes().n + 2 * e) + Cost::state(e * config.sizes().n)
}

/// The tensors of GELU and a gated linear layer, if no wiring mixes the channels.
pub(super) fn output_mixing(config: &CheckedConfig, tensors: &mut Tensors) {
    if config.has_output_mixing() {
        tensors.linear("out_proj", config.d_model, 2 * config.d_model, true);
    }
}

/// Multiply-adds of the same.
pub(super) fn mixing_cell(config: &CheckedConfig) -> Cost {
    Cost::elementwise(if config.has_output_mixing() { config.sizes().d } else { 0 })
}
