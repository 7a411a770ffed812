//! Associative memories updated by the delta rule.

use burn::tensor::Tensor;

use super::{by_head, head_width, query_sizes, y_by_head};
use crate::ops::{self, StepCodes};
use crate::verify::cell::{Cell, Given, Sizes, steps};

pub(super) const CELL: Cell = Cell {
    name: "delta",
    settings: &[],
    told_by: "queries",
    sizes: query_sizes,
    remembers: Some(head_width),
    inputs: |sizes| {
        let beta = ("beta", vec![sizes.batch_size, sizes.n_heads, sizes.seq_len]);
        ["q", "k", "v"].map(|name| (name, by_head(sizes, sizes.d_inner))).into_iter().chain([beta]).collect()
    },
    outputs: y_by_head,
    run,
};

fn run(given: &Given) -> Vec<Tensor<1>> {
    let Sizes { batch_size, n_heads, .. } = given.sizes;
    let head = head_width(given.sizes);
    let x = Tensor::cat(["q", "k", "v", "beta"].map(|name| given.by_step(name)).into(), 2);
    let memory = Tensor::zeros([batch_size, n_heads, head, head], &x.device());
    let (y, _) = given.in_calls(memory, |range, memory| ops::delta(steps(&x, range), memory, &StepCodes::dense()));
    vec![given.by_head(y)]
}
