//! PyTorch's LSTM: i, f, g, o.

use burn::tensor::Tensor;

use super::{hidden, recurrent, state_sizes, x_and_h0};
use crate::ops::{self, Start, StepCodes};
use crate::verify::cell::{Cell, Given, Shapes, Sizes};

pub(super) const CELL: Cell = Cell {
    name: "lstm",
    settings: &[],
    told_by: "x and h0",
    sizes: state_sizes,
    remembers: None,
    inputs: |sizes| [x_and_h0(sizes), cell_state(sizes, "c0"), recurrent(sizes, 4 * sizes.d_inner)].concat(),
    outputs: |sizes| [hidden(sizes), cell_state(sizes, "c_last")].concat(),
    run,
};

fn cell_state(Sizes { batch_size, d_inner, .. }: Sizes, name: &'static str) -> Shapes {
    vec![(name, vec![batch_size, d_inner])]
}

fn run(given: &Given) -> Vec<Tensor<1>> {
    let (h, (_, c_last)) = given.gated(given.get("weight_ih_l0"), (given.get("h0"), given.get::<2>("c0")), |preact, (h0, c0)| {
        let (bias, weight, recurrent_bias) = (given.get("bias_ih_l0"), given.get("weight_hh_l0"), given.get("bias_hh_l0"));
        let (h, h_last, c_last) =
            ops::lstm(preact, Some(bias), weight, Some(recurrent_bias), Start::carried(h0), Start::carried(c0), &StepCodes::dense());
        (h, (h_last, c_last))
    });
    vec![h, c_last.flatten(0, 1)]
}
