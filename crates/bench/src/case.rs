//! What to measure.

use burn::tensor::Device;
use minrnn::memory::Room;
use minrnn_model::{MixerKind, WeightFormat};

use crate::{Error, Result};

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
    /// Compute each block again in the backward pass instead of keeping its activations ([`Bench::Lm`](crate::Bench::Lm) only).
    pub checkpoint_blocks: bool,
}

impl Case {
    /// B · T.
    pub(crate) fn tokens(&self) -> u128 {
        self.batch_size as u128 * self.seq_len as u128
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

/// Refuses work that keeps more than `floats` numbers at once where there is no room for them. What a GPU has is not
/// known.
pub(crate) fn expect_room(floats: u128, device: &Device) -> Result<()> {
    if device.clone().inner() != Device::flex() {
        return Ok(());
    }
    let needed = floats.saturating_mul(4);
    let available = Room::left(None).map_or(1 << 46, |room| u128::from(room.bytes));
    if needed > available { Err(Error::Memory { needed, available }) } else { Ok(()) }
}
