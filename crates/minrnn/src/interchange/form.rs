//! Variants of a file's form for which a minrnn model has only one.

use minrnn_model::{CONV_TAPS, Weights};
use serde::{Deserialize, Serialize};

use crate::{Error, Result};

/// Choices of another library that do not affect the model's numbers: which zeros it stores. Stored beside an imported model, they allow it
/// to be [exported](super::export) as the file it came from. The default is our own form: all taps and all biases.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Form {
    /// Taps of the short convolutions; our additional older ones are zero.
    pub taps: usize,
    /// Whether Mamba's convolutions have a bias; if not, ours is zero.
    pub conv_bias: bool,
}

impl Default for Form {
    fn default() -> Self {
        Self { taps: CONV_TAPS, conv_bias: true }
    }
}

/// Ends of the names of filters `[D, 1, K]` in the formats.
const THEIR_FILTERS: [&str; 3] = [".mixer.conv1d.weight", ".conv1d.conv.weight", ".0.net.0.weight"];
/// Ends of our names.
const OUR_FILTERS: [&str; 2] = [".conv1d.weight", ".conv.depthwise.weight"];
/// The end of the names of Mamba's convolution biases, on either side.
const BIAS: &str = ".mixer.conv1d.bias";

impl Form {
    /// The form of another library's file.
    pub fn of(weights: &Weights) -> Self {
        let filters = || weights.names().filter(|name| THEIR_FILTERS.iter().any(|end| name.ends_with(end)));
        let taps = filters().filter_map(|name| weights.get(name)?.shape().get(2).copied()).max();
        let is_mamba = filters().any(|name| name.ends_with(THEIR_FILTERS[0]));
        Self {
            taps: taps.unwrap_or(CONV_TAPS).clamp(1, CONV_TAPS),
            conv_bias: !is_mamba || weights.names().any(|name| name.ends_with(BIAS)),
        }
    }

    /// This form, extended if necessary to hold `ours`, a model that may have been trained further since it was read: with the taps and
    /// biases that are no longer zero.
    pub(super) fn that_holds(self, ours: &Weights) -> Result<Self> {
        if !(1..=CONV_TAPS).contains(&self.taps) {
            return Err(Error::Config(format!("filters have 1 to {CONV_TAPS} taps, found taps = {} in the form of a file", self.taps)));
        }
        let tensors = |ends: &'static [&'static str]| {
            let names = ours.names().filter(|name| ends.iter().any(|end| name.ends_with(end)));
            names.filter_map(|name| ours.get(name))
        };
        let filters = tensors(&OUR_FILTERS).flat_map(|tensor| tensor.data().chunks_exact(CONV_TAPS));
        let used = filters.filter_map(|filter| filter.iter().position(|&tap| tap != 0.0)).map(|zeros| CONV_TAPS - zeros).max();
        let biased = tensors(&[BIAS]).any(|tensor| tensor.data().iter().any(|&bias| bias != 0.0));
        Ok(Self { taps: self.taps.max(used.unwrap_or(1)), conv_bias: self.conv_bias || biased })
    }
}
