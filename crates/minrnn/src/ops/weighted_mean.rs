//! The weighted mean of losses.

use burn::tensor::Tensor;

/// `sum` of weighted numbers, divided by the `total` of their weights; 0 if that is 0. NaN in either propagates.
pub(super) fn weighted_mean(sum: Tensor<1>, total: f64) -> Tensor<1> {
    // A loss must have a gradient, even if it is zero.
    if total == 0.0 { sum * 0.0 } else { sum / total }
}
