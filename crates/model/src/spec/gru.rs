//! GRU (Cho et al. 2014, arXiv:1406.1078).

use super::{MixerSpec, Sealed, Setting, Tensors};
use crate::GruForm;
use crate::config::{CheckedConfig, Cost};

pub(super) struct Spec;

impl Sealed for Spec {}

impl MixerSpec for Spec {
    fn takes(&self) -> &'static [Setting] {
        &[Setting::Expansion, Setting::InitialState, Setting::GruForm]
    }

    fn tensors(&self, config: &CheckedConfig, _layer: usize, tensors: &mut Tensors) {
        let (d, e) = (config.d_model, config.d_inner());
        tensors.linear("in_proj", d, 3 * e, true);
        tensors.linear("recurrent", e, 3 * e, config.gru_form == GruForm::Torch);
        tensors.linear("out_proj", e, d, true);
        super::min_gru::initial_state(config, tensors);
    }

    fn cell(&self, config: &CheckedConfig) -> Cost {
        Cost::elementwise(3 * config.sizes().e) + Cost::state(config.sizes().e)
    }
}
