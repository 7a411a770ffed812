//! Aaren (Feng et al. 2024, arXiv:2405.13956).

use super::{MixerKind, MixerSpec, Sealed, Setting, Tensors};
use crate::config::{CheckedConfig, Cost, Sizes};
use crate::{ModelConfig, Result};

pub(super) struct Spec;

impl Sealed for Spec {}

impl MixerSpec for Spec {
    fn takes(&self) -> &'static [Setting] {
        &[Setting::Expansion, Setting::Heads]
    }

    fn validate(&self, config: &ModelConfig) -> Result<()> {
        config.heads_of(MixerKind::Aaren, config.d_inner()?, "the inner width").map(drop)
    }

    fn tensors(&self, config: &CheckedConfig, _layer: usize, tensors: &mut Tensors) {
        let (d, e) = (config.d_model, config.d_inner());
        tensors.parameter("query", &[e]);
        // The keys are never computed: a score is the product of x with one vector for each head.
        tensors.parameter("key.weight", &[e, d]);
        tensors.linear("value", d, e, false);
        tensors.linear("out_proj", e, d, false);
    }

    fn cell(&self, config: &CheckedConfig) -> Cost {
        let Sizes { d, e, heads, .. } = config.sizes();
        Cost { matmul_macs: d * heads, ..Cost::elementwise(2 * e) } + Cost::state(e + heads)
    }
}
