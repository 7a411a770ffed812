//! GILR: a minGRU with a tanh candidate, whose update gate is one minus the forget gate.

use burn::tensor::Tensor;

use super::min_gru::min_gru;
use super::{hidden, linear, state_sizes, x_and_h0};
use crate::ops::Candidate;
use crate::verify::cell::{Cell, Given};

pub(super) const CELL: Cell = Cell {
    name: "gilr",
    settings: &[],
    told_by: "x and h0",
    sizes: state_sizes,
    remembers: None,
    inputs: |sizes| {
        let gate = linear(sizes, ["linear_g.weight", "linear_g.bias"]);
        [x_and_h0(sizes), gate, linear(sizes, ["linear_i.weight", "linear_i.bias"])].concat()
    },
    outputs: hidden,
    run,
};

fn run(given: &Given) -> Vec<Tensor<1>> {
    let weight = Tensor::cat(vec![given.get("linear_i.weight"), -given.get::<2>("linear_g.weight")], 0);
    let bias = Tensor::cat(vec![given.get("linear_i.bias"), -given.get::<1>("linear_g.bias")], 0);
    vec![min_gru(given, Candidate::Tanh, weight, bias)]
}
