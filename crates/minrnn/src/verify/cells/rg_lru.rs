//! RG-LRU as in RecurrentGemma, from the first step of a sequence.

use burn::tensor::Tensor;

use super::hidden;
use crate::ops::{self, RgLruMemory, StepCodes, block_diagonal};
use crate::verify::cell::{Cell, Found, Given, Sizes, steps};

pub(super) const CELL: Cell = Cell {
    name: "rg_lru",
    settings: &[],
    told_by: "x and input_gate_weight",
    sizes,
    remembers: None,
    inputs: |Sizes { batch_size, seq_len, d_model, n_heads, .. }| {
        let head = d_model / n_heads;
        let gate = |weight, bias| [(weight, vec![n_heads, head, head]), (bias, vec![n_heads, head])];
        let gates = [gate("input_gate_weight", "input_gate_bias"), gate("recurrent_gate_weight", "recurrent_gate_bias")];
        let first = [("x", vec![batch_size, seq_len, d_model]), ("recurrent_param", vec![d_model])];
        first.into_iter().chain(gates.into_iter().flatten()).collect()
    },
    outputs: hidden,
    run,
};

fn sizes(found: &Found<'_>) -> Result<Sizes, String> {
    let (x, gate) = (found.shape("x")?, found.shape("input_gate_weight")?);
    let &[batch_size, seq_len, d_model] = x else { return Err(format!("tensor 'x' has shape {x:?}, expected [B, T, d]")) };
    let &[n_heads, width, _] = gate else {
        return Err(format!("tensor 'input_gate_weight' has shape {gate:?}, expected [heads, d / heads, d / heads]"));
    };
    if x.contains(&0) || gate.contains(&0) {
        return Err(format!("tensor 'x' has shape {x:?} and 'input_gate_weight' {gate:?}; every size must be at least 1"));
    }
    if n_heads.checked_mul(width) != Some(d_model) {
        return Err(format!("tensor 'x' is {d_model} wide, expected {} for {n_heads} heads of {width}", n_heads.saturating_mul(width)));
    }
    Ok(Sizes { batch_size, seq_len, d_model, d_inner: d_model, n_heads })
}

fn run(given: &Given) -> Vec<Tensor<1>> {
    let (x, Sizes { batch_size, d_model, .. }) = (given.get::<3>("x"), given.sizes);
    // Rows of these matrices are inputs.
    let [recurrent, input] = ["recurrent_gate_weight", "input_gate_weight"].map(|name| given.get::<3>(name).swap_dims(1, 2));
    let bias = ["recurrent_gate_bias", "input_gate_bias"].map(|name| given.get::<2>(name).reshape([d_model]));
    let decay = given.get::<1>("recurrent_param");
    let rate = (burn::tensor::activation::relu(decay.clone()) + (-decay.abs()).exp().log1p()) * 8.0;
    let zeros = |width| Tensor::zeros([batch_size, width], &x.device());
    let (h, _) = given.in_calls(RgLruMemory { h: zeros(d_model), position: zeros(1) }, |range, memory| {
        let x = steps(&x, range);
        let [recurrence_gate, input_gate] = [&recurrent, &input].map(|weight| block_diagonal(x.clone(), weight.clone()));
        let inputs = ops::RgLru { x, recurrence_gate, input_gate, bias: Tensor::cat(bias.to_vec(), 0), rate: rate.clone() };
        ops::rg_lru(inputs, memory, &StepCodes::dense())
    });
    vec![h.flatten(0, 2)]
}
