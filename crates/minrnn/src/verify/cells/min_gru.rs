//! minGRU: candidate and update gate are linear in x.

use burn::tensor::Tensor;

use super::{hidden, linear, state_sizes, x_and_h0};
use crate::ops::{self, Candidate, Start, StepCodes};
use crate::verify::cell::{Cell, Given};

pub(super) const CELL: Cell = Cell {
    name: "min_gru",
    settings: &[("candidate", &["positive", "identity"])],
    told_by: "x and h0",
    sizes: state_sizes,
    remembers: None,
    inputs: |sizes| {
        let gate = linear(sizes, ["linear_z.weight", "linear_z.bias"]);
        [x_and_h0(sizes), gate, linear(sizes, ["linear_h.weight", "linear_h.bias"])].concat()
    },
    outputs: hidden,
    run,
};

fn run(given: &Given) -> Vec<Tensor<1>> {
    let (weight, bias) = given.rows(&["linear_h", "linear_z"]);
    vec![min_gru(given, candidate(given), weight, bias)]
}

/// The setting `candidate`.
pub(super) fn candidate(given: &Given) -> Candidate {
    given.settings["candidate"].parse().expect("the settings of a case are checked")
}

/// h, flat, with candidate and update gate in the rows of `weight`.
pub(super) fn min_gru(given: &Given, candidate: Candidate, weight: Tensor<2>, bias: Tensor<1>) -> Tensor<1> {
    let (h, _) = given.gated(weight, given.get("h0"), |preact, h0| {
        ops::min_gru(preact, Some(bias.clone()), candidate, Start::carried(h0), &StepCodes::dense())
    });
    h
}
