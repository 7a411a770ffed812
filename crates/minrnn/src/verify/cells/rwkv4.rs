//! RWKV-4's average of values under the gate σ(r), with a precomputed input side.

use burn::tensor::Tensor;

use super::y_by_channel;
use crate::ops::{self, EMPTY_LOG_WEIGHT, Rwkv4Memory, StepCodes};
use crate::verify::cell::{Cell, Found, Given, Sizes, steps};

pub(super) const CELL: Cell = Cell {
    name: "wkv",
    settings: &[],
    told_by: "keys",
    sizes,
    remembers: None,
    inputs: |Sizes { batch_size, seq_len, d_model, .. }| {
        let sequences = ["r", "k", "v"].map(|name| (name, vec![batch_size, seq_len, d_model]));
        sequences.into_iter().chain(["decay", "bonus"].map(|name| (name, vec![d_model]))).collect()
    },
    outputs: y_by_channel,
    run,
};

fn sizes(found: &Found<'_>) -> Result<Sizes, String> {
    let k = found.shape("k")?;
    let &[batch_size, seq_len, d_model] = k else { return Err(format!("tensor 'k' has shape {k:?}, expected [B, T, d]")) };
    if k.contains(&0) {
        return Err(format!("tensor 'k' has shape {k:?}; every size must be at least 1"));
    }
    Ok(Sizes { batch_size, seq_len, d_model, d_inner: d_model, n_heads: 1 })
}

fn run(given: &Given) -> Vec<Tensor<1>> {
    let inputs = ["r", "k", "v"].map(|name| given.get::<3>(name));
    let (shape, device) = ([given.sizes.batch_size, given.sizes.d_inner], inputs[0].device());
    let memory = Rwkv4Memory { mean: Tensor::zeros(shape, &device), log_weight: Tensor::full(shape, EMPTY_LOG_WEIGHT, &device) };
    let (y, _) = given.in_calls(memory, |range, memory| {
        let inputs = [0, 1, 2].map(|i| steps(&inputs[i], range));
        ops::rwkv4(inputs, given.get("decay"), given.get("bonus"), memory, &StepCodes::dense())
    });
    vec![y.flatten(0, 2)]
}
