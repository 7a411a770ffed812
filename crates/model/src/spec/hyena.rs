//! Hyena (Poli et al. 2023, arXiv:2302.10866).

use super::hyena_filter::{expect_lags, filter_cell, filter_tensors};
use super::{MixerKind, MixerSpec, Sealed, Tensors};
use crate::config::{CheckedConfig, Cost};
use crate::{ModelConfig, Result};

/// Taps of Hyena's short convolution.
pub const HYENA_TAPS: usize = 3;

pub(super) struct Spec;

impl Sealed for Spec {}

impl MixerSpec for Spec {
    fn inner_layer(&self) -> Option<MixerKind> {
        Some(MixerKind::HyenaFilter)
    }

    fn validate(&self, config: &ModelConfig) -> Result<()> {
        expect_lags(config, MixerKind::Hyena)
    }

    fn tensors(&self, config: &CheckedConfig, _layer: usize, tensors: &mut Tensors) {
        let d = config.d_model;
        tensors.linear("in_proj", d, 3 * d, true);
        tensors.depthwise("short_conv", 3 * d, HYENA_TAPS);
        filter_tensors(config, tensors);
        tensors.linear("out_proj", d, d, true);
    }

    fn cell(&self, config: &CheckedConfig) -> Cost {
        let d = config.sizes().d;
        Cost::conv(3 * d, HYENA_TAPS as u128) + filter_cell(config, MixerKind::Hyena) + Cost::elementwise(2 * d)
    }
}
