//! Aaren's attention: the softmax of q · k / √DH over all steps so far, with the same q at every step.

use burn::tensor::Tensor;

use super::{by_head, head_sizes, head_width, y_by_head};
use crate::ops::{self, EMPTY_LOG_WEIGHT, PrefixMemory, StepCodes};
use crate::verify::cell::{Cell, Given, Sizes, steps};

pub(super) const CELL: Cell = Cell {
    name: "aaren",
    settings: &[],
    told_by: "keys",
    sizes: |found| head_sizes("k", found.shape("k")?),
    remembers: None,
    inputs: |sizes| {
        let query = ("query", vec![sizes.n_heads, head_width(sizes)]);
        [query].into_iter().chain(["k", "v"].map(|name| (name, by_head(sizes, sizes.d_inner)))).collect()
    },
    outputs: y_by_head,
    run,
};

fn run(given: &Given) -> Vec<Tensor<1>> {
    let Sizes { batch_size, seq_len, d_inner, n_heads, .. } = given.sizes;
    let head = head_width(given.sizes);
    let [k, v] = ["k", "v"].map(|name| given.by_step(name));
    let products = k.reshape([batch_size, seq_len, n_heads, head]) * given.get::<2>("query").reshape([1, 1, n_heads, head]);
    let scores = products.sum_dim(3).reshape([batch_size, seq_len, n_heads]) / (head as f64).sqrt();
    let memory = PrefixMemory {
        mean: Tensor::zeros([batch_size, d_inner], &v.device()),
        log_weight: Tensor::full([batch_size, n_heads], EMPTY_LOG_WEIGHT, &v.device()),
    };
    let (y, _) =
        given.in_calls(memory, |range, memory| ops::prefix_softmax(steps(&scores, range), steps(&v, range), memory, &StepCodes::dense()));
    vec![given.by_head(y)]
}
