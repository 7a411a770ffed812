//! sLSTM (Beck et al. 2024, arXiv:2405.04517).

use super::{MixerKind, MixerSpec, Sealed, Setting, Tensors};
use crate::config::{CheckedConfig, Cost};
use crate::{ModelConfig, Result};

pub(super) struct Spec;

impl Sealed for Spec {}

impl MixerSpec for Spec {
    fn takes(&self) -> &'static [Setting] {
        &[Setting::Heads, Setting::SLstmConv, Setting::SLstmForgetGate, Setting::SLstmRecurrentInit]
    }

    fn validate(&self, config: &ModelConfig) -> Result<()> {
        config.heads_of(MixerKind::SLstm, config.d_model, "d_model").map(drop)
    }

    fn tensors(&self, config: &CheckedConfig, _layer: usize, tensors: &mut Tensors) {
        let (d, heads) = (config.d_model, config.n_heads);
        let head = d / heads;
        if config.slstm_conv {
            tensors.conv1d(d);
        }
        for gate in ["igate", "fgate", "zgate", "ogate"] {
            tensors.weight(&alloc::format!("{gate}.weight"), &[heads, head, head]);
        }
        tensors.weight("recurrent.weight", &[heads, 4 * head, head]);
        tensors.parameter("bias", &[4 * d]);
        tensors.parameter("group_norm.weight", &[d]);
    }

    fn cell(&self, config: &CheckedConfig) -> Cost {
        let conv = if config.slstm_conv { Cost::short_conv(config.sizes().d) } else { Cost::default() };
        conv + Cost::elementwise(5 * config.sizes().d) + Cost::state(4 * config.sizes().d)
    }
}
