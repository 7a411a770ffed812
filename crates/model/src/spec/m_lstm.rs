//! mLSTM in its block (Beck et al. 2024, arXiv:2405.04517).

use super::{MixerKind, MixerSpec, Sealed, Setting, Tensors};
use crate::config::{CheckedConfig, Cost};
use crate::{ModelConfig, Result};

/// Channels of a block of mLSTM's query, key and value maps.
pub const MLSTM_BLOCK: usize = 4;

pub(super) struct Spec;

impl Sealed for Spec {}

impl MixerSpec for Spec {
    fn takes(&self) -> &'static [Setting] {
        &[Setting::Expansion, Setting::Heads]
    }

    fn is_whole_block(&self) -> bool {
        true
    }

    fn validate(&self, config: &ModelConfig) -> Result<()> {
        let what = "the inner width (expansion · d_model rounded up to a multiple of 64)";
        config.heads_of(MixerKind::MLstm, config.mlstm_inner()?, what).map(drop)
    }

    fn tensors(&self, config: &CheckedConfig, _layer: usize, tensors: &mut Tensors) {
        let (d, e, heads) = (config.d_model, config.mlstm_inner(), config.n_heads);
        tensors.linear("in_proj", d, 2 * e, false);
        tensors.conv1d(e);
        for map in ["q_proj", "k_proj", "v_proj"] {
            tensors.weight(&alloc::format!("{map}.weight"), &[e / MLSTM_BLOCK, MLSTM_BLOCK, MLSTM_BLOCK]);
        }
        for gate in ["igate", "fgate"] {
            tensors.linear(gate, 3 * e, heads, true);
        }
        tensors.parameter("outnorm.weight", &[e]);
        tensors.parameter("learnable_skip", &[e]);
        tensors.linear("out_proj", e, d, false);
    }

    fn cell(&self, config: &CheckedConfig) -> Cost {
        let (e, heads) = (config.mlstm_inner() as u128, config.sizes().heads);
        let w = e / heads;
        // f C, i k vᵀ and Cᵀ q; then i k, k/√e, f n, n q, the quotient, the skip and the gate.
        Cost::short_conv(e) + Cost::elementwise(3 * e * w + 7 * e) + Cost::state(e * w + e + heads)
    }
}
