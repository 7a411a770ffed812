//! H3 (Fu et al. 2023, arXiv:2212.14052).

use super::s4::{diagonal_cell, states_in_pairs};
use super::{MixerKind, MixerSpec, Sealed, Setting, Tensors};
use crate::config::{CheckedConfig, Cost, wrong};
use crate::{ModelConfig, Result};

pub(super) struct Spec;

impl Sealed for Spec {}

impl MixerSpec for Spec {
    fn takes(&self) -> &'static [Setting] {
        &[Setting::StateSize, Setting::HeadWidth]
    }

    fn inner_layer(&self) -> Option<MixerKind> {
        Some(MixerKind::S4d)
    }

    fn validate(&self, config: &ModelConfig) -> Result<()> {
        states_in_pairs(config, "h3")?;
        if !config.d_model.is_multiple_of(config.head_width) {
            return wrong(alloc::format!("head_width must divide d_model = {}, found {}", config.d_model, config.head_width));
        }
        Ok(())
    }

    fn tensors(&self, config: &CheckedConfig, _layer: usize, tensors: &mut Tensors) {
        let (d, n) = (config.d_model, config.d_state);
        tensors.linear("in_proj", d, 3 * d, true);
        tensors.shift(d, n);
        tensors.state_space(d / config.head_width, n, false);
        tensors.linear("out_proj", d, d, true);
    }

    fn cell(&self, config: &CheckedConfig) -> Cost {
        let (d, width) = (config.sizes().d, config.head_width as u128);
        Cost::shift(config) + diagonal_cell(config, d * width) + Cost::elementwise(2 * d * width)
    }
}
