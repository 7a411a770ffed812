//! Linear layers whose bias is added by a fused operation.

use burn::module::Param;
use burn::nn::Linear;
use burn::tensor::Tensor;

use crate::ops::{self, Dropout, bias_dropout_residual};

/// The rows of a batch of sequences: `[B, T, M]` → `[B·T, M]`. Works without any step too, where Burn's reshape would read a 0 as
/// "unchanged".
pub(crate) fn rows(x: Tensor<3>) -> Tensor<2> {
    let [batch, seq_len, width] = x.dims();
    match batch * seq_len {
        0 => Tensor::zeros([0, width], &x.device()),
        n => x.reshape([n, width]),
    }
}

/// Back to a batch of sequences: `[B·T, M]` → `[B, T, M]`.
pub(crate) fn sequences(x: Tensor<2>, batch: usize, seq_len: usize) -> Tensor<3> {
    let [n, width] = x.dims();
    match n {
        0 => Tensor::zeros([batch, seq_len, width], &x.device()),
        _ => x.reshape([batch, seq_len, width]),
    }
}

/// x W for rows `[N, D]` and a matrix `[D, M]`.
pub(crate) fn matmul_rows(x: Tensor<2>, weight: Tensor<2>) -> Tensor<2> {
    match x.dims()[0] {
        0 => Tensor::zeros([0, weight.dims()[1]], &x.device()),
        _ => ops::matmul(x, weight),
    }
}

/// x W for a matrix `[D, M]`.
///
/// # Shapes
/// * `x` `[B, T, D]` → `[B, T, M]`
pub(crate) fn matmul_sequences(x: Tensor<3>, weight: Tensor<2>) -> Tensor<3> {
    let [batch, seq_len, _] = x.dims();
    sequences(matmul_rows(rows(x), weight), batch, seq_len)
}

/// x Wᵀ for a matrix `[M, D]`.
///
/// # Shapes
/// * `x` `[B, T, D]` → `[B, T, M]`
pub(crate) fn matmul_sequences_transposed(x: Tensor<3>, weight: Tensor<2>) -> Tensor<3> {
    let [batch, seq_len, _] = x.dims();
    match batch * seq_len {
        0 => Tensor::zeros([batch, seq_len, weight.dims()[0]], &x.device()),
        _ => sequences(ops::matmul_transposed(rows(x), weight), batch, seq_len),
    }
}

/// x W without the bias.
///
/// # Shapes
/// * `x` `[B, T, D]` → `[B, T, M]`
pub(crate) fn matmul(linear: &Linear, x: Tensor<3>) -> Tensor<3> {
    matmul_sequences(x, linear.weight.val())
}

/// The bias, if the layer has one.
pub(crate) fn bias(linear: &Linear) -> Option<Tensor<1>> {
    linear.bias.as_ref().map(Param::val)
}

/// x W + bias.
///
/// # Shapes
/// * `x` `[B, T, D]` → `[B, T, M]`
pub(crate) fn apply(linear: &Linear, x: Tensor<3>) -> Tensor<3> {
    let [batch, seq_len, _] = x.dims();
    let y = matmul_rows(rows(x), linear.weight.val());
    sequences(bias_dropout_residual(y, bias(linear), None, Dropout::OFF), batch, seq_len)
}
