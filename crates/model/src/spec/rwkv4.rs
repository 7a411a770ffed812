//! The time mixing of RWKV-4 (Peng et al. 2023, arXiv:2305.13048).

use super::{MixerSpec, Sealed, Setting, Tensors};
use crate::config::{CheckedConfig, Cost, Sizes};

pub(super) struct Spec;

impl Sealed for Spec {}

impl MixerSpec for Spec {
    fn takes(&self) -> &'static [Setting] {
        &[Setting::Expansion]
    }

    fn tensors(&self, config: &CheckedConfig, _layer: usize, tensors: &mut Tensors) {
        let (d, e) = (config.d_model, config.d_inner());
        for part in ["receptance", "key", "value"] {
            tensors.linear(part, d, e, false);
        }
        tensors.linear("out_proj", e, d, false);
        for part in ["mix_receptance", "mix_key", "mix_value"] {
            tensors.parameter(part, &[d]);
        }
        tensors.parameter("decay", &[e]);
        tensors.parameter("bonus", &[e]);
    }

    fn cell(&self, config: &CheckedConfig) -> Cost {
        let Sizes { d, e, .. } = config.sizes();
        // Three token shifts; e^(u + k) v and the quotient, the two sums' updates, the gate.
        Cost::elementwise(6 * d + 6 * e) + Cost::state(d + 2 * e)
    }

    /// Includes what rounding the log-weights loses.
    fn state_len(&self, config: &CheckedConfig) -> usize {
        config.d_model + 3 * config.d_inner()
    }
}
