//! PyTorch's GRU: r, z, n.

use burn::tensor::Tensor;

use super::{hidden, recurrent, state_sizes, x_and_h0};
use crate::ops::{self, GruForm, Start, StepCodes};
use crate::verify::cell::{Cell, Given};

pub(super) const CELL: Cell = Cell {
    name: "gru",
    settings: &[],
    told_by: "x and h0",
    sizes: state_sizes,
    remembers: None,
    inputs: |sizes| [x_and_h0(sizes), recurrent(sizes, 3 * sizes.d_inner)].concat(),
    outputs: hidden,
    run,
};

fn run(given: &Given) -> Vec<Tensor<1>> {
    let (h, _) = given.gated(given.get("weight_ih_l0"), given.get("h0"), |preact, h0| {
        let (bias, weight, recurrent_bias) = (given.get("bias_ih_l0"), given.get("weight_hh_l0"), given.get("bias_hh_l0"));
        ops::gru(GruForm::Torch, preact, Some(bias), weight, Some(recurrent_bias), Start::carried(h0), &StepCodes::dense())
    });
    vec![h]
}
