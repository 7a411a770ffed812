//! Hyena's long implicit filter (Poli et al. 2023, arXiv:2302.10866).

use super::s6::{mixing_cell, output_mixing};
use super::{MixerKind, MixerSpec, Sealed, Tensors};
use crate::config::{CheckedConfig, Cost, KvCache, wrong};
use crate::{ModelConfig, Result};

/// Most lags of a filter that is kept as a window.
const MAX_LAGS: usize = 1 << 16;
/// Features of a lag in Hyena's filter.
pub const HYENA_FEATURES: usize = 3;
/// Width of the network that computes the filter from them.
pub const HYENA_HIDDEN: usize = 64;

pub(super) struct Spec;

impl Sealed for Spec {}

impl MixerSpec for Spec {
    fn validate(&self, config: &ModelConfig) -> Result<()> {
        expect_lags(config, MixerKind::HyenaFilter)
    }

    fn tensors(&self, config: &CheckedConfig, _layer: usize, tensors: &mut Tensors) {
        filter_tensors(config, tensors);
        output_mixing(config, tensors);
    }

    fn cell(&self, config: &CheckedConfig) -> Cost {
        filter_cell(config, MixerKind::HyenaFilter) + mixing_cell(config)
    }
}

/// Checks the lags of the filter of `kind`.
pub(super) fn expect_lags(config: &ModelConfig, kind: MixerKind) -> Result<()> {
    let found = config.max_seq_len;
    if (2..=MAX_LAGS).contains(&found) {
        return Ok(());
    }
    wrong(alloc::format!("{kind} has a filter of max_seq_len lags, expected between 2 and {MAX_LAGS}, found {found}"))
}

/// The layers of the network that computes Hyena's filter: inputs, outputs, and whether there is a bias.
pub fn hyena_layers(d_model: usize) -> [(usize, usize, bool); 4] {
    let hidden = (HYENA_HIDDEN, HYENA_HIDDEN, true);
    [(HYENA_FEATURES, HYENA_HIDDEN, true), hidden, hidden, (HYENA_HIDDEN, d_model, false)]
}

/// The tensors of the network that makes the filter; it multiplies no token.
pub(super) fn filter_tensors(config: &CheckedConfig, tensors: &mut Tensors) {
    tensors.part("filter", |tensors| {
        tensors.parameter("features", &[config.max_seq_len, HYENA_FEATURES]);
        for (i, (from, to, bias)) in hyena_layers(config.d_model).into_iter().enumerate() {
            tensors.parameter(&alloc::format!("layers.{i}.weight"), &[to, from]);
            if bias {
                tensors.parameter(&alloc::format!("layers.{i}.bias"), &[to]);
            }
        }
        tensors.parameter("frequency", &[HYENA_HIDDEN]);
        tensors.parameter("skip", &[config.d_model]);
    });
}

/// The window of the filter.
pub(super) fn filter_cell(config: &CheckedConfig, kind: MixerKind) -> Cost {
    let (lags, each) = (config.max_seq_len, config.sizes().d);
    Cost::cache(KvCache {
        mixer: kind,
        len_per_token: each,
        macs_per_token: each,
        capacity: lags.saturating_sub(1),
        window: lags,
        grows: false,
    })
}
