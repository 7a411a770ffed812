//! xLSTM's sLSTM with a sigmoid forget gate and a precomputed input side: i, f, z, o.

use burn::tensor::Tensor;

use super::hidden;
use crate::ops::{self, EMPTY_M, ForgetGate, SLstmMemory, StepCodes};
use crate::verify::cell::{Cell, Found, Given, Sizes, steps};

pub(super) const CELL: Cell = Cell {
    name: "slstm",
    settings: &[],
    told_by: "x and R",
    sizes,
    remembers: None,
    inputs: |Sizes { batch_size, seq_len, d_model, d_inner, n_heads }| {
        let head = d_inner / n_heads;
        vec![("x", vec![batch_size, seq_len, d_model]), ("R", vec![n_heads, 4 * head, head]), ("b", vec![4 * d_inner])]
    },
    outputs: hidden,
    run,
};

fn sizes(found: &Found<'_>) -> Result<Sizes, String> {
    let (x, recurrent) = (found.shape("x")?, found.shape("R")?);
    let &[batch_size, seq_len, d_model] = x else { return Err(format!("tensor 'x' has shape {x:?}, expected [B, T, 4H]")) };
    let &[n_heads, _, width] = recurrent else { return Err(format!("tensor 'R' has shape {recurrent:?}, expected [heads, 4 hd, hd]")) };
    if x.contains(&0) || recurrent.contains(&0) {
        return Err(format!("tensor 'x' has shape {x:?} and 'R' {recurrent:?}; every size must be at least 1"));
    }
    let d_inner = n_heads.saturating_mul(width);
    if d_inner.checked_mul(4) != Some(d_model) {
        return Err(format!("tensor 'x' is {d_model} wide, expected {} for {n_heads} heads of {width}", d_inner.saturating_mul(4)));
    }
    Ok(Sizes { batch_size, seq_len, d_model, d_inner, n_heads })
}

fn run(given: &Given) -> Vec<Tensor<1>> {
    let (x, shape) = (given.get::<3>("x"), [given.sizes.batch_size, given.sizes.d_inner]);
    let zeros = || Tensor::zeros(shape, &x.device());
    let memory = SLstmMemory { h: zeros(), c: zeros(), n: zeros(), m: Tensor::full(shape, EMPTY_M, &x.device()) };
    let (h, _) = given.in_calls(memory, |range, memory| {
        ops::s_lstm(steps(&x, range), given.get("R"), Some(given.get("b")), ForgetGate::Sigmoid, memory, &StepCodes::dense())
    });
    vec![h.flatten(0, 2)]
}
