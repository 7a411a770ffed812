//! The cells of xLSTM in verification: their input sides are ready, and they start from nothing.

use burn::tensor::Tensor;

use super::calls::{by_head, by_step, in_calls, steps};
use super::case::Sizes;
use crate::ops::{self, EMPTY_M, ForgetGate, MLstmMemory, SLstmMemory, StepCodes};

/// h `[B, T, H]`, flat, of an sLSTM with sigmoid forget gate, by calls of at most `per_call` steps. `input` gives x, R and b by name, flat.
pub(super) fn s_lstm(sizes: Sizes, input: impl Fn(&str) -> Tensor<1>, per_call: usize) -> Tensor<1> {
    let Sizes { batch_size, seq_len, d_model, d_inner, n_heads } = sizes;
    let x = input("x").reshape([batch_size, seq_len, d_model]);
    let head = d_inner / n_heads;
    let recurrent = input("R").reshape([n_heads, 4 * head, head]);
    let device = x.device();
    let zeros = || Tensor::zeros([batch_size, d_inner], &device);
    let memory = SLstmMemory { h: zeros(), c: zeros(), n: zeros(), m: Tensor::full([batch_size, d_inner], EMPTY_M, &device) };
    let h = in_calls(seq_len, per_call, memory, |range, memory| {
        ops::s_lstm(steps(&x, &range), recurrent.clone(), Some(input("b")), ForgetGate::Sigmoid, memory, &StepCodes::dense())
    });
    h.flatten(0, 2)
}

/// h `[B, NH, T, DH]`, flat, of an mLSTM likewise, from q, k, v, igate and fgate.
pub(super) fn m_lstm(sizes: Sizes, input: impl Fn(&str) -> Tensor<1>, per_call: usize) -> Tensor<1> {
    let Sizes { batch_size, seq_len, d_inner, n_heads, .. } = sizes;
    let head = d_inner / n_heads;
    let sequence = |name: &str, width: usize| by_step(input(name), sizes, width);
    let [q, k, v] = ["q", "k", "v"].map(|name| sequence(name, head));
    let gates = Tensor::cat(vec![sequence("igate", 1), sequence("fgate", 1)], 2);
    let device = q.device();
    let memory = MLstmMemory {
        c: Tensor::zeros([batch_size, n_heads, head, head], &device),
        n: Tensor::zeros([batch_size, n_heads, head], &device),
        m: Tensor::full([batch_size, n_heads], EMPTY_M, &device),
    };
    let h = in_calls(seq_len, per_call, memory, |range, memory| {
        let [q, k, v, gates] = [&q, &k, &v, &gates].map(|x| steps(x, &range));
        ops::m_lstm(q, k, v, gates, memory, &StepCodes::dense())
    });
    by_head(h, sizes)
}
