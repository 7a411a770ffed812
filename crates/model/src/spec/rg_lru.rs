//! RG-LRU (De et al. 2024, arXiv:2402.19427).

use super::{MixerKind, MixerSpec, Sealed, Setting, Tensors};
use crate::config::{CheckedConfig, Cost};
use crate::{ModelConfig, Result};

pub(super) struct Spec;

impl Sealed for Spec {}

impl MixerSpec for Spec {
    fn takes(&self) -> &'static [Setting] {
        &[Setting::Expansion, Setting::Heads]
    }

    fn validate(&self, config: &ModelConfig) -> Result<()> {
        config.heads_of(MixerKind::RgLru, config.d_inner()?, "the inner width").map(drop)
    }

    fn tensors(&self, config: &CheckedConfig, _layer: usize, tensors: &mut Tensors) {
        let (d, e, heads) = (config.d_model, config.d_inner(), config.n_heads);
        let head = e / heads;
        tensors.linear("in_proj", d, e, true);
        for gate in ["recurrence_gate.weight", "input_gate.weight"] {
            tensors.weight(gate, &[heads, head, head]);
        }
        tensors.parameter("bias", &[2 * e]);
        tensors.parameter("decay", &[e]);
        tensors.linear("out_proj", e, d, true);
    }

    fn cell(&self, config: &CheckedConfig) -> Cost {
        let e = config.sizes().e;
        // The exponent, 1 − a², i x, its scale, and a h; the state is h and a position.
        Cost::elementwise(5 * e) + Cost::state(e + 1)
    }
}
