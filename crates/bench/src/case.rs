//! What to measure.

use burn::tensor::Device;
use minrnn::memory::Room;
use minrnn_model::{MixerKind, WeightFormat};

use crate::{Error, Result};

/// How many times as wide as a model its recurrence may be: the greatest `expansion`.
const MOST_TIMES: usize = 64;

/// A bench's own sizes.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Defaults {
    pub d_model: usize,
    pub d_hidden: usize,
    pub batch_size: usize,
    pub seq_len: &'static [usize],
    pub iterations: usize,
}

/// One measurement.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Case {
    /// The time-mixing layer.
    pub mixer: MixerKind,
    /// D.
    pub d_model: usize,
    /// E.
    pub d_hidden: usize,
    /// B.
    pub batch_size: usize,
    /// T.
    pub seq_len: usize,
    /// Number format: of matrix products in training (f32, bf16), of weights in inference (all four).
    pub precision: WeightFormat,
    /// Recompute each block in the backward pass instead of keeping its activations ([`Bench::Lm`](crate::Bench::Lm) only).
    pub checkpoint_blocks: bool,
}

impl Case {
    /// B · T.
    pub(crate) fn tokens(&self) -> u128 {
        self.batch_size as u128 * self.seq_len as u128
    }

    /// The error for a refused configuration, in terms of the widths that were asked for, not of the ratio computed from them.
    pub(crate) fn refused(&self, error: impl Into<Error>) -> Error {
        let Self { d_model, d_hidden, .. } = *self;
        if d_hidden > d_model.saturating_mul(MOST_TIMES) { Error::Widths { d_model, d_hidden, most: MOST_TIMES } } else { error.into() }
    }

    /// The precision of training; formats for weights alone are refused.
    pub(crate) fn training_precision(&self) -> Result<minrnn::ops::Precision> {
        match self.precision {
            WeightFormat::F32 => Ok(minrnn::ops::Precision::F32),
            WeightFormat::Bf16 => Ok(minrnn::ops::Precision::Bf16),
            weights => Err(Error::WeightsOnly(weights)),
        }
    }
}

/// Refuses work that keeps `floats` numbers at once if there is no room for them. The memory of a GPU is not
/// known.
pub(crate) fn expect_room(floats: u128, device: &Device) -> Result<()> {
    if device.clone().inner() != Device::flex() {
        return Ok(());
    }
    let needed = floats.saturating_mul(4);
    let available = Room::left(None).map_or(1 << 46, |room| u128::from(room.bytes));
    if needed > available { Err(Error::Memory { needed, available }) } else { Ok(()) }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Bench;
    use crate::language_model::config;

    #[test]
    fn the_widest_recurrence_that_is_named_is_one_that_is_taken() {
        let case = |d_hidden| Case { d_model: 8, d_hidden, ..Bench::Decode.case() };
        config(&case(8 * MOST_TIMES)).validate().unwrap();
        let wider = case(8 * MOST_TIMES + 8);
        let refused = wider.refused(config(&wider).validate().unwrap_err());
        assert_eq!(refused.to_string(), "a recurrence of width 520 is more than 64 times as wide as a model of width 8");
        assert!(refused.is_wrong_input());
    }
}
