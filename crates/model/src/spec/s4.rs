//! S4 and S4D (Gu et al. 2022, arXiv:2111.00396 and arXiv:2206.11893).

use super::s6::{mixing_cell, output_mixing};
use super::{MixerSpec, Sealed, Setting, Tensors};
use crate::config::{CheckedConfig, Cost, wrong};
use crate::{ModelConfig, Result};

/// Largest state of the mixers that begin with the eigenvectors of a matrix of this size.
const MAX_HIPPO: usize = 1 << 8;

pub(super) struct Spec {
    pub(super) name: &'static str,
    /// Whether the matrix is a diagonal minus a rank-one part, as S4's.
    pub(super) rank_one: bool,
}

impl Sealed for Spec {}

impl MixerSpec for Spec {
    fn takes(&self) -> &'static [Setting] {
        if self.rank_one { &[Setting::StateSize] } else { &[Setting::StateSize, Setting::S4Init] }
    }

    fn validate(&self, config: &ModelConfig) -> Result<()> {
        states_in_pairs(config, self.name)
    }

    fn tensors(&self, config: &CheckedConfig, _layer: usize, tensors: &mut Tensors) {
        tensors.state_space(config.d_model, config.d_state, self.rank_one);
        output_mixing(config, tensors);
    }

    fn cell(&self, config: &CheckedConfig) -> Cost {
        // The rank-one part: two more products of each state.
        let rank_one = if self.rank_one { 2 * config.sizes().d * config.sizes().n } else { 0 };
        diagonal_cell(config, config.sizes().d) + Cost::elementwise(rank_one) + mixing_cell(config)
    }
}

/// Checks the size of states that are pairs.
pub(super) fn states_in_pairs(config: &ModelConfig, name: &str) -> Result<()> {
    let found = config.d_state;
    if found.is_multiple_of(2) && found <= MAX_HIPPO {
        return Ok(());
    }
    wrong(alloc::format!("{name} keeps half of d_state numbers and needs an even one of at most {MAX_HIPPO}, found {found}"))
}

/// Of the N/2 complex states of each channel: a x (4), b u (2), c x (2); and the skip.
pub(super) fn diagonal_cell(config: &CheckedConfig, channels: u128) -> Cost {
    Cost::elementwise(channels * (4 * config.sizes().n + 1)) + Cost::state(channels * config.sizes().n)
}
