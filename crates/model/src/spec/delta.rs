//! Associative memories under the delta rule (Schlag et al. 2021, arXiv:2102.11174; Yang et al. 2024, arXiv:2406.06484).

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
        config.heads_of(MixerKind::Delta, config.d_inner()?, "the inner width").map(drop)
    }

    fn tensors(&self, config: &CheckedConfig, _layer: usize, tensors: &mut Tensors) {
        let (d, e) = (config.d_model, config.d_inner());
        tensors.linear("in_proj", d, 3 * e + config.n_heads, true);
        tensors.linear("out_proj", e, d, true);
    }

    fn cell(&self, config: &CheckedConfig) -> Cost {
        let Sizes { e, heads, .. } = config.sizes();
        let w = e / heads;
        // Reading the memory under the key, β times the error, its outer product, and reading for the query.
        Cost::elementwise(3 * e * w + e) + Cost::state(e * w)
    }
}
