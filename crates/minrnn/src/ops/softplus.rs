//! The softplus function, composed of tensor operations.

use burn::tensor::{Tensor, activation};

/// ln(1 + eˣ), exact for large |x|.
pub(crate) fn softplus<const D: usize>(x: Tensor<D>) -> Tensor<D> {
    activation::relu(x.clone()) + (-x.abs()).exp().log1p()
}
