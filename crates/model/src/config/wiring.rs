//! What is around the mixers of a model, and what they are inside it.

use alloc::format;

use super::{ModelConfig, wrong};
use crate::Result;
use crate::choices::{MixerKind, WiringKind};

/// The blocks among the mixers, which have a wiring of their own, and the inner layer of each.
const INNER_LAYERS: [(MixerKind, MixerKind); 3] =
    [(MixerKind::Mamba, MixerKind::S6), (MixerKind::H3, MixerKind::S4d), (MixerKind::Hyena, MixerKind::HyenaFilter)];

impl ModelConfig {
    /// The configuration as the mixers read it: `d_model` is the width that the wiring gives them.
    ///
    /// # Errors
    /// As [`d_inner`](Self::d_inner).
    pub fn inside_wiring(&self) -> Result<Self> {
        Ok(match self.wiring {
            WiringKind::None | WiringKind::H3 => self.clone(),
            WiringKind::Mamba => Self { d_model: self.d_inner()?, expansion: 1.0, dt_rank: self.step_rank(), ..self.clone() },
        })
    }

    /// Whether GELU and a gated linear layer follow the sequence maps `s4`, `s4d`, `s6` and `hyena-filter`; a wiring mixes channels itself.
    pub fn has_output_mixing(&self) -> bool {
        self.wiring == WiringKind::None
    }

    pub(super) fn validate_wiring(&self) -> Result<()> {
        let wiring = self.wiring;
        if wiring == WiringKind::None {
            return Ok(());
        }
        if let Some((block, inner)) = INNER_LAYERS.iter().find(|(block, _)| self.mixer_kinds().contains(block)) {
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
