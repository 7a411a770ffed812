//! The weighted mean of losses.

use burn::tensor::Tensor;

/// `sum` of weighted numbers, by the `total` of their weights; 0 where this is 0. NaN in either comes through.
pub(super) fn weighted_mean(sum: Tensor<1>, total: f64) -> Tensor<1> {
    // A loss has a gradient, be it of zeros.
    if total == 0.0 { sum * 0.0 } else { sum / total }
}
