//! RetNet's retention (Sun et al. 2023, arXiv:2307.08621).

use super::{MixerSpec, Sealed, Setting, Tensors};
use crate::config::{CheckedConfig, Cost, Sizes};
use crate::{ModelConfig, Result};

pub(super) struct Spec;

impl Sealed for Spec {}

impl MixerSpec for Spec {
    fn takes(&self) -> &'static [Setting] {
        &[Setting::Expansion, Setting::Heads]
    }

    fn validate(&self, config: &ModelConfig) -> Result<()> {
        config.retention_heads().map(drop)
    }

    fn tensors(&self, config: &CheckedConfig, _layer: usize, tensors: &mut Tensors) {
        let (d, e) = (config.d_model, config.d_inner());
        for (part, width) in [("query", d), ("key", d), ("value", e), ("gate", e)] {
            tensors.linear(part, d, width, false);
        }
        tensors.linear("out_proj", e, d, false);
    }

    fn cell(&self, config: &CheckedConfig) -> Cost {
        let Sizes { d, e, .. } = config.sizes();
        let w = e / config.sizes().heads;
        // Rotating q and k, scaling k; decay, outer product and reading of the state; the gate. A position is carried too.
        Cost::elementwise(5 * d + 3 * d * w + e) + Cost::state(d * w + 1)
    }
}
