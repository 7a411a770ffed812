//! The cells of xLSTM in verification: their input sides are ready, and they start from nothing.

use burn::tensor::Tensor;

use super::case::Sizes;
use crate::ops::{self, EMPTY_M, ForgetGate, MLstmMemory, SLstmMemory, StepCodes};

/// h `[B, T, H]` of an sLSTM with sigmoid forget gate, by calls of at most `per_call` steps. `input` gives x, R and b by name, flat.
pub(super) fn slstm(sizes: Sizes, input: impl Fn(&str) -> Tensor<1>, per_call: usize) -> Tensor<3> {
    let Sizes { batch_size, seq_len, d_model, d_inner, n_heads } = sizes;
    let x = input("x").reshape([batch_size, seq_len, d_model]);
    let head = d_inner / n_heads;
    let recurrent = input("R").reshape([n_heads, 4 * head, head]);
    let device = x.device();
    let zeros = || Tensor::zeros([batch_size, d_inner], &device);
    let mut memory = SLstmMemory { h: zeros(), c: zeros(), n: zeros(), m: Tensor::full([batch_size, d_inner], EMPTY_M, &device) };
    let calls = (0..seq_len).step_by(per_call).map(|t| {
        let x = x.clone().narrow(1, t, per_call.min(seq_len - t));
        let (h, next) = ops::slstm(x, recurrent.clone(), Some(input("b")), ForgetGate::Sigmoid, memory.clone(), &StepCodes::dense());
        memory = next;
        h
    });
    Tensor::cat(calls.collect(), 1)
}

/// h `[B, NH, T, DH]` of an mLSTM likewise, from q, k, v, igate and fgate.
pub(super) fn mlstm(sizes: Sizes, input: impl Fn(&str) -> Tensor<1>, per_call: usize) -> Tensor<4> {
    let Sizes { batch_size, seq_len, d_inner, n_heads, .. } = sizes;
    let head = d_inner / n_heads;
    let sequence = |name: &str, width: usize| {
        let by_head = input(name).reshape([batch_size, n_heads, seq_len, width]);
        by_head.swap_dims(1, 2).reshape([batch_size, seq_len, n_heads * width])
    };
    let [q, k, v] = ["q", "k", "v"].map(|name| sequence(name, head));
    let gates = Tensor::cat(vec![sequence("igate", 1), sequence("fgate", 1)], 2);
    let device = q.device();
    let mut memory = MLstmMemory {
        c: Tensor::zeros([batch_size, n_heads, head, head], &device),
        n: Tensor::zeros([batch_size, n_heads, head], &device),
        m: Tensor::full([batch_size, n_heads], EMPTY_M, &device),
    };
    let calls = (0..seq_len).step_by(per_call).map(|t| {
        let part = |x: &Tensor<3>| x.clone().narrow(1, t, per_call.min(seq_len - t));
        let (h, next) = ops::mlstm(part(&q), part(&k), part(&v), part(&gates), memory.clone(), &StepCodes::dense());
        memory = next;
        h
    });
    let h = Tensor::cat(calls.collect(), 1);
    h.reshape([batch_size, seq_len, n_heads, head]).swap_dims(1, 2)
}
