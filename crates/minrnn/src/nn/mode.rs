//! Whether a pass trains or evaluates.

use crate::ops::Dropout;

/// Training or evaluation, with the key of the pass's dropout masks.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Mode {
    /// Dropout off, BatchNorm with its running statistics.
    Evaluate,
    /// Dropout on, BatchNorm with the batch's statistics.
    Train {
        /// Determines the dropout masks; derived from seed, iteration and micro-step.
        dropout_key: u64,
    },
}

impl Mode {
    /// The dropout site of embedded inputs; blocks count theirs from 0.
    pub(crate) const EMBEDDING_SITE: u64 = u64::MAX;

    /// Whether the mode is training.
    pub fn is_train(self) -> bool {
        matches!(self, Self::Train { .. })
    }

    /// The dropout of one site of the model; each site has its own masks.
    pub fn dropout(self, probability: f64, site: u64) -> Dropout {
        match self {
            Self::Train { dropout_key } if probability > 0.0 => {
                Dropout { probability: probability as f32, key: mix(dropout_key ^ mix(site.wrapping_add(1))) }
            }
            _ => Dropout::OFF,
        }
    }
}

/// The finaliser of SplitMix64: neighbouring inputs give unrelated outputs.
fn mix(mut x: u64) -> u64 {
    x = (x ^ (x >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    x = (x ^ (x >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    x ^ (x >> 31)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sites_and_passes_have_their_own_masks() {
        let train = |dropout_key| Mode::Train { dropout_key };
        assert_ne!(train(1).dropout(0.2, 0), train(1).dropout(0.2, 1));
        assert_ne!(train(1).dropout(0.2, 0), train(2).dropout(0.2, 0));
        assert_eq!(train(1).dropout(0.2, 0), train(1).dropout(0.2, 0));
        assert_eq!(Mode::Evaluate.dropout(0.2, 0), Dropout::OFF);
    }
}
