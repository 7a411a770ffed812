//! minLSTM: candidate, forget and input gate are linear in x.

use burn::tensor::Tensor;

use super::min_gru::candidate;
use super::{hidden, linear, state_sizes, x_and_h0};
use crate::ops::{self, Gates, Start, StepCodes};
use crate::verify::cell::{Cell, Given};

pub(super) const CELL: Cell = Cell {
    name: "min_lstm",
    settings: &[("candidate", &["positive", "identity"]), ("normalize_gates", &["true", "false"])],
    told_by: "x and h0",
    sizes: state_sizes,
    remembers: None,
    inputs: |sizes| {
        let gates = [["linear_f.weight", "linear_f.bias"], ["linear_i.weight", "linear_i.bias"]].map(|names| linear(sizes, names));
        [x_and_h0(sizes), gates.concat(), linear(sizes, ["linear_h.weight", "linear_h.bias"])].concat()
    },
    outputs: hidden,
    run,
};

fn run(given: &Given) -> Vec<Tensor<1>> {
    let gates = if given.settings["normalize_gates"] == "true" { Gates::Normalized } else { Gates::Unnormalized };
    let (weight, bias) = given.rows(&["linear_h", "linear_f", "linear_i"]);
    let (h, _) = given.gated(weight, given.get("h0"), |preact, h0| {
        ops::min_lstm(preact, Some(bias.clone()), candidate(given), gates, Start::carried(h0), &StepCodes::dense())
    });
    vec![h]
}
