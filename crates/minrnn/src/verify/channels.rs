//! The recurrences of single channels in verification, whose input sides are ready: RWKV-4's average and S4D's state space.
//!
//! Every function gives its output `[B, T, d]` flat, by calls of at most `per_call` steps; `input` gives tensors by name, flat.

use burn::tensor::Tensor;

use super::calls::{in_calls, steps};
use super::case::Sizes;
use crate::nn::diagonal_recurrence;
use crate::ops::{self, EMPTY_LOG_WEIGHT, Rwkv4Memory, StepCodes};

/// σ(r) ⊙ the fading average of the values, from an empty memory.
pub(super) fn rwkv4(sizes: Sizes, input: impl Fn(&str) -> Tensor<1>, per_call: usize) -> Tensor<1> {
    let Sizes { batch_size, seq_len, d_inner, .. } = sizes;
    let inputs = ["r", "k", "v"].map(|name| input(name).reshape([batch_size, seq_len, d_inner]));
    let device = inputs[0].device();
    let memory = Rwkv4Memory {
        mean: Tensor::zeros([batch_size, d_inner], &device),
        log_weight: Tensor::full([batch_size, d_inner], EMPTY_LOG_WEIGHT, &device),
    };
    let y = in_calls(seq_len, per_call, memory, |range, memory| {
        let inputs = [0, 1, 2].map(|i| steps(&inputs[i], &range));
        ops::rwkv4(inputs, input("decay"), input("bonus"), memory, &StepCodes::dense())
    });
    y.flatten(0, 2)
}

/// A diagonal state space for each channel, from a state of 0.
pub(super) fn s4d(sizes: Sizes, input: impl Fn(&str) -> Tensor<1>, per_call: usize) -> Tensor<1> {
    let Sizes { batch_size, seq_len, d_model: d, d_inner: n, .. } = sizes;
    let u = input("u").reshape([batch_size, seq_len, d]);
    let [log_a_real, a_imag] = ["log_a_real", "a_imag"].map(|name| input(name).reshape([d, n]));
    let parameters = diagonal_recurrence(input("log_dt"), log_a_real, a_imag, input("C").reshape([d, n, 2]));
    let x0 = Tensor::zeros([batch_size, 2 * n, d], &u.device());
    let y = in_calls(seq_len, per_call, x0, |range, x| {
        ops::state_space(steps(&u, &range), parameters.clone(), input("D"), x, &StepCodes::dense())
    });
    y.flatten(0, 2)
}
