//! Mamba (Gu and Dao 2023, arXiv:2312.00752), with its convolution and gate.

use super::s6::{selective_cell, selective_tensors};
use super::{MixerKind, MixerSpec, Sealed, Setting, Tensors};
use crate::config::{CheckedConfig, Cost};

pub(super) struct Spec;

impl Sealed for Spec {}

impl MixerSpec for Spec {
    fn takes(&self) -> &'static [Setting] {
        &[Setting::Expansion, Setting::StateSize, Setting::StepRank]
    }

    fn inner_layer(&self) -> Option<MixerKind> {
        Some(MixerKind::S6)
    }

    fn tensors(&self, config: &CheckedConfig, _layer: usize, tensors: &mut Tensors) {
        let (d, e) = (config.d_model, config.d_inner());
        tensors.linear("in_proj", d, 2 * e, false);
        tensors.conv1d(e);
        selective_tensors(config, e, tensors);
        tensors.linear("out_proj", e, d, false);
    }

    fn cell(&self, config: &CheckedConfig) -> Cost {
        let e = config.sizes().e;
        Cost::short_conv(e) + selective_cell(config, e) + Cost::elementwise(e)
    }
}
