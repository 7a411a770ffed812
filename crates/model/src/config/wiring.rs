//! What is around the mixers of a model, and what they are inside it.

use alloc::format;

use super::{ModelConfig, wrong};
use crate::Result;
use crate::WiringKind;

impl ModelConfig {
    /// Whether GELU and a gated linear layer follow the sequence maps `s4`, `s4d`, `s6` and `hyena-filter`; a wiring mixes channels itself.
    pub fn has_output_mixing(&self) -> bool {
        self.wiring == WiringKind::None
    }

    pub(super) fn validate_wiring(&self) -> Result<()> {
        let wiring = self.wiring;
        if wiring == WiringKind::None {
            return Ok(());
        }
        let inner = |kind: crate::MixerKind| kind.spec().inner_layer().map(|inner| (kind, inner));
        if let Some((block, inner)) = self.mixer_kinds().into_iter().find_map(inner) {
            return wrong(format!(
                "wiring = {wiring} goes around an inner layer, found mixer = {block}, which has a wiring of its own; use mixer = {inner}, its \
                 inner layer, or wiring = none"
            ));
        }
        if wiring == WiringKind::H3 && self.d_state < 2 {
            return wrong(format!(
                "wiring = h3 shifts keys by up to d_state − 1 steps and needs a d_state of at least 2, found {}",
                self.d_state
            ));
        }
        Ok(())
    }
}
