//! Causal softmax attention (Vaswani et al. 2017, arXiv:1706.03762).

use super::{MixerKind, MixerSpec, Sealed, Setting, Tensors};
use crate::config::{CheckedConfig, Cost, KvCache, wrong};
use crate::{ModelConfig, Positions, Result};

pub(super) struct Spec;

impl Sealed for Spec {}

impl MixerSpec for Spec {
    fn takes(&self) -> &'static [Setting] {
        &[Setting::Heads, Setting::Window, Setting::Rotary, Setting::GptInit]
    }

    fn validate(&self, config: &ModelConfig) -> Result<()> {
        let (head_width, n_heads) = (config.heads_of(MixerKind::Attention, config.d_model, "d_model")?, config.n_heads);
        if config.positions == Positions::Rotary && !head_width.is_multiple_of(2) {
            return wrong(alloc::format!(
                "positions = rotary needs heads of even width, found {head_width} with n_heads = {n_heads}; change n_heads"
            ));
        }
        Ok(())
    }

    fn tensors(&self, config: &CheckedConfig, _layer: usize, tensors: &mut Tensors) {
        let d = config.d_model;
        tensors.linear("in_proj", d, 3 * d, config.bias);
        tensors.linear("out_proj", d, d, config.bias);
    }

    fn cell(&self, config: &CheckedConfig) -> Cost {
        let (d, window) = (config.sizes().d, config.attention_window());
        let each = 2 * d;
        let grows = config.window == 0;
        let cache = KvCache { mixer: MixerKind::Attention, len_per_token: each, macs_per_token: each, capacity: window, window, grows };
        let turning = if config.positions == Positions::Rotary { 4 * d } else { 0 };
        Cost::elementwise(turning) + Cost::state(1) + Cost::cache(cache)
    }
}
