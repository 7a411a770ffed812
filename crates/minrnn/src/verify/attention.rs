//! The relatives of attention in verification: queries, keys and values are ready, and the memory is empty at first.
//!
//! Every function gives its output `[B, NH, T, ·]` flat, by calls of at most `per_call` steps; `input` gives tensors by name, flat.

use burn::tensor::Tensor;

use super::calls::{by_head, by_step, in_calls, steps};
use super::case::Sizes;
use super::cell::Cell;
use crate::ops::{self, EMPTY_LOG_WEIGHT, PrefixMemory, Retention, RetentionState, StepCodes};

/// Linear attention, or the retention of RetNet before its norm and gate.
pub(super) fn retention(cell: Cell, sizes: Sizes, input: impl Fn(&str) -> Tensor<1>, per_call: usize) -> Tensor<1> {
    let Sizes { batch_size, seq_len, d_model, d_inner, n_heads } = sizes;
    let (key, value) = (d_model / n_heads, d_inner / n_heads);
    let form = match cell {
        Cell::Retention => Retention::ret_net(n_heads, key),
        _ => Retention::linear_attention(n_heads),
    };
    let [q, k, v] = [("q", key), ("k", key), ("v", value)].map(|(name, width)| by_step(input(name), sizes, width));
    let columns = value + usize::from(form.normalized);
    let memory = RetentionState {
        state: Tensor::zeros([batch_size, n_heads, key, columns], &q.device()),
        position: Tensor::zeros([batch_size, 1], &q.device()),
    };
    let y = in_calls(seq_len, per_call, memory, |range, memory| {
        let [q, k, v] = [&q, &k, &v].map(|x| steps(x, &range));
        ops::retention(&form, q, k, v, memory, &StepCodes::dense())
    });
    by_head(y, sizes)
}

/// Aaren's attention: the softmax of q · k / √DH over all steps so far, q being the same at every step.
pub(super) fn aaren(sizes: Sizes, input: impl Fn(&str) -> Tensor<1>, per_call: usize) -> Tensor<1> {
    let Sizes { batch_size, seq_len, d_inner, n_heads, .. } = sizes;
    let head = d_inner / n_heads;
    let [k, v] = ["k", "v"].map(|name| by_step(input(name), sizes, head));
    let products = k.reshape([batch_size, seq_len, n_heads, head]) * input("query").reshape([1, 1, n_heads, head]);
    let scores = products.sum_dim(3).reshape([batch_size, seq_len, n_heads]) / (head as f64).sqrt();
    let memory = PrefixMemory {
        mean: Tensor::zeros([batch_size, d_inner], &v.device()),
        log_weight: Tensor::full([batch_size, n_heads], EMPTY_LOG_WEIGHT, &v.device()),
    };
    let y = in_calls(seq_len, per_call, memory, |range, memory| {
        ops::prefix_softmax(steps(&scores, &range), steps(&v, &range), memory, &StepCodes::dense())
    });
    by_head(y, sizes)
}

/// Associative memories that are corrected by the delta rule.
pub(super) fn delta(sizes: Sizes, input: impl Fn(&str) -> Tensor<1>, per_call: usize) -> Tensor<1> {
    let Sizes { batch_size, seq_len, d_inner, n_heads, .. } = sizes;
    let head = d_inner / n_heads;
    let parts = [("q", head), ("k", head), ("v", head), ("beta", 1)].map(|(name, width)| by_step(input(name), sizes, width));
    let x = Tensor::cat(parts.to_vec(), 2);
    let memory = Tensor::zeros([batch_size, n_heads, head, head], &x.device());
    let y = in_calls(seq_len, per_call, memory, |range, memory| ops::delta(steps(&x, &range), memory, &StepCodes::dense()));
    by_head(y, sizes)
}
