//! Linear attention (Katharopoulos et al. 2020, arXiv:2006.16236).

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
        config.heads_of(MixerKind::LinearAttention, config.d_inner()?, "the inner width").map(drop)
    }

    fn tensors(&self, config: &CheckedConfig, _layer: usize, tensors: &mut Tensors) {
        let (d, e) = (config.d_model, config.d_inner());
        for part in ["query", "key", "value"] {
            tensors.linear(part, d, e, false);
        }
        tensors.linear("out_proj", e, d, false);
    }

    fn cell(&self, config: &CheckedConfig) -> Cost {
        let Sizes { e, heads, .. } = config.sizes();
        let w = e / heads;
        Cost::elementwise(2 * e * w + 2 * e) + Cost::state(e * (w + 1))
    }
}
