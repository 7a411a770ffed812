//! What cells whose input side is ready share: calls of a few steps each, and the layouts of heads.

use std::ops::Range;

use burn::tensor::Tensor;

use super::case::Sizes;

/// The outputs `[B, T, ·]` of calls of at most `per_call` steps, each from the memory that the one before it left.
pub(super) fn in_calls<M>(seq_len: usize, per_call: usize, first: M, mut call: impl FnMut(Range<usize>, M) -> (Tensor<3>, M)) -> Tensor<3> {
    let mut memory = Some(first);
    let calls = (0..seq_len).step_by(per_call).map(|t| {
        let (y, next) = call(t..seq_len.min(t + per_call), memory.take().expect("put back by the call before"));
        memory = Some(next);
        y
    });
    Tensor::cat(calls.collect(), 1)
}

/// The steps `range` of `x` `[B, T, ·]`.
pub(super) fn steps(x: &Tensor<3>, range: &Range<usize>) -> Tensor<3> {
    x.clone().narrow(1, range.start, range.len())
}

/// A flat `[B, NH, T, width]` as `[B, T, NH · width]`.
pub(super) fn by_step(x: Tensor<1>, sizes: Sizes, width: usize) -> Tensor<3> {
    let Sizes { batch_size, seq_len, n_heads, .. } = sizes;
    let by_head = x.reshape([batch_size, n_heads, seq_len, width]);
    by_head.swap_dims(1, 2).reshape([batch_size, seq_len, n_heads * width])
}

/// The way back, flat.
pub(super) fn by_head(y: Tensor<3>, sizes: Sizes) -> Tensor<1> {
    let Sizes { batch_size, seq_len, d_inner, n_heads, .. } = sizes;
    y.reshape([batch_size, seq_len, n_heads, d_inner / n_heads]).swap_dims(1, 2).flatten(0, 3)
}
