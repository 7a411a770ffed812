//! xLSTM's mLSTM, with a precomputed input side.

use burn::tensor::Tensor;

use super::{by_head, head_width, query_sizes};
use crate::ops::{self, EMPTY_M, MLstmMemory, StepCodes};
use crate::verify::cell::{Cell, Given, Sizes, steps};

pub(super) const CELL: Cell = Cell {
    name: "mlstm",
    settings: &[],
    told_by: "queries",
    sizes: query_sizes,
    remembers: Some(head_width),
    inputs: |sizes| {
        let Sizes { batch_size, seq_len, n_heads, .. } = sizes;
        let sequences = ["q", "k", "v"].map(|name| (name, by_head(sizes, sizes.d_inner)));
        sequences.into_iter().chain(["igate", "fgate"].map(|name| (name, vec![batch_size, n_heads, seq_len]))).collect()
    },
    outputs: |sizes| vec![("h", by_head(sizes, sizes.d_inner))],
    run,
};

fn run(given: &Given) -> Vec<Tensor<1>> {
    let Sizes { batch_size, n_heads, .. } = given.sizes;
    let head = head_width(given.sizes);
    let [q, k, v] = ["q", "k", "v"].map(|name| given.by_step(name));
    let gates = Tensor::cat(vec![given.by_step("igate"), given.by_step("fgate")], 2);
    let device = q.device();
    let memory = MLstmMemory {
        c: Tensor::zeros([batch_size, n_heads, head, head], &device),
        n: Tensor::zeros([batch_size, n_heads, head], &device),
        m: Tensor::full([batch_size, n_heads], EMPTY_M, &device),
    };
    let (h, _) = given.in_calls(memory, |range, memory| {
        let [q, k, v, gates] = [&q, &k, &v, &gates].map(|x| steps(x, range));
        ops::m_lstm(q, k, v, gates, memory, &StepCodes::dense())
    });
    vec![given.by_head(h)]
}
