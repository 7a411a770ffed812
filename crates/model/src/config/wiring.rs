//! The wiring around the mixers of a model, and the mixers inside it.

use alloc::format;

use super::{ModelConfig, wrong};
use crate::Result;
use crate::WiringKind;

impl ModelConfig {
    /// Whether GELU and a gated linear layer follow the sequence maps `s4`, `s4d`, `s6` and `hyena-filter`; not in a wiring, which mixes
    /// channels itself.
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

#[cfg(test)]
mod tests {
    use super::super::tests::{refusal, valid};
    use super::*;
    use crate::MixerKind;

    #[test]
    fn a_wiring_takes_inner_layers_and_checks_them_at_its_width() {
        let wired = |c: &mut ModelConfig, wiring, mixer| (c.wiring, c.mixer) = (wiring, mixer);
        let refused = refusal(|c| wired(c, WiringKind::H3, MixerKind::Mamba));
        assert!(refused.contains("mixer = mamba") && refused.contains("use mixer = s6"), "{refused}");
        assert!(refusal(|c| wired(c, WiringKind::Mamba, MixerKind::H3)).contains("use mixer = s4d"));
        assert!(refusal(|c| wired(c, WiringKind::Mamba, MixerKind::Hyena)).contains("use mixer = hyena-filter"));
        let refused = refusal(|c| (c.wiring, c.mixer, c.d_state) = (WiringKind::H3, MixerKind::S6, 1));
        assert!(refused.contains("d_state of at least 2, found 1"), "{refused}");
        let heads = |c: &mut ModelConfig, wiring| {
            wired(c, wiring, MixerKind::Attention);
            (c.d_model, c.expansion, c.n_heads) = (6, 1.5, 2);
        };
        let refused = refusal(|c| heads(c, WiringKind::Mamba));
        assert!(refused.contains("found 2 heads for 9 with mixer = attention") && refused.contains("expansion · d_model"), "{refused}");
        let mut config = valid();
        heads(&mut config, WiringKind::H3);
        config.validate().unwrap();
    }
}
