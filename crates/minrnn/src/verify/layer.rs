//! The differentiable operations behind the cells.

use std::ops::Range;

use burn::tensor::Tensor;

use super::calls::steps;
use super::case::Sizes;
use super::cell::Cell;
use crate::nn::linear::matmul_sequences;
use crate::ops::{self, Candidate, GruForm, SelectiveScan, Start, StepCodes};

/// What a cell carries between steps.
#[derive(Debug, Clone)]
#[allow(clippy::large_enum_variant, reason = "there is one at a time")]
pub(super) enum Carried {
    /// h `[B, e]`, and the cell state of the LSTM.
    Hidden { h: Tensor<2>, c: Option<Tensor<2>> },
    /// The states `[B, d, e]` of Mamba.
    States(Option<Tensor<3>>),
}

/// A cell with its inputs and parameters.
#[derive(Debug)]
#[allow(clippy::large_enum_variant, reason = "there is one at a time")]
pub(super) enum Layer {
    Gated(Gated),
    Mamba(Mamba),
}

impl Layer {
    /// The cell with the tensors that `input` gives by name, each flat.
    pub(super) fn new(cell: Cell, sizes: Sizes, input: impl Fn(&str) -> Tensor<1>) -> Self {
        match cell {
            Cell::Mamba => Self::Mamba(Mamba::new(sizes, input)),
            _ => Self::Gated(Gated::new(cell, sizes, input)),
        }
    }

    /// What is carried into the first step.
    pub(super) fn start(&self) -> Carried {
        match self {
            Self::Gated(layer) => Carried::Hidden { h: layer.h0.clone(), c: layer.c0.clone() },
            Self::Mamba(_) => Carried::States(None),
        }
    }

    /// The output `[B, ·, ·]` of the steps `range`, and what is carried after them.
    pub(super) fn forward(&self, range: Range<usize>, carried: Carried) -> (Tensor<3>, Carried) {
        match (self, carried) {
            (Self::Gated(layer), Carried::Hidden { h, c }) => layer.forward(range, h, c),
            (Self::Mamba(layer), Carried::States(h)) => layer.forward(range, h),
            _ => unreachable!("a layer carries what it began with"),
        }
    }
}

/// A cell whose gates see the input by a product.
#[derive(Debug)]
pub(super) struct Gated {
    cell: Cell,
    /// `[B, T, d]`.
    x: Tensor<3>,
    h0: Tensor<2>,
    /// Of the LSTM.
    c0: Option<Tensor<2>>,
    /// `[d, parts·e]`.
    weight: Tensor<2>,
    bias: Tensor<1>,
    recurrent: Option<Recurrent>,
}

#[derive(Debug)]
struct Recurrent {
    weight: Tensor<2>,
    bias: Tensor<1>,
}

impl Gated {
    fn new(cell: Cell, sizes: Sizes, input: impl Fn(&str) -> Tensor<1>) -> Self {
        let Sizes { batch_size: b, seq_len: t, d_model: d, d_inner: e, .. } = sizes;
        // Row-major matrices of the same width: their rows follow each other.
        let cat = |names: &[&str]| Tensor::cat(names.iter().map(|name| input(name)).collect(), 0);
        let (parts, weight, bias, recurrent) = match cell {
            Cell::MinLstm(..) => (
                3,
                cat(&["linear_h.weight", "linear_f.weight", "linear_i.weight"]),
                cat(&["linear_h.bias", "linear_f.bias", "linear_i.bias"]),
                None,
            ),
            Cell::Gilr => {
                // minGRU's update gate is what the forget gate leaves.
                let weight = Tensor::cat(vec![input("linear_i.weight"), -input("linear_g.weight")], 0);
                (2, weight, Tensor::cat(vec![input("linear_i.bias"), -input("linear_g.bias")], 0), None)
            }
            Cell::Gru => (3, input("weight_ih_l0"), input("bias_ih_l0"), Some("weight_hh_l0")),
            Cell::Lstm => (4, input("weight_ih_l0"), input("bias_ih_l0"), Some("weight_hh_l0")),
            _ => (2, cat(&["linear_h.weight", "linear_z.weight"]), cat(&["linear_h.bias", "linear_z.bias"]), None),
        };
        Self {
            cell,
            x: input("x").reshape([b, t, d]),
            h0: input("h0").reshape([b, e]),
            c0: (cell == Cell::Lstm).then(|| input("c0").reshape([b, e])),
            weight: weight.reshape([parts * e, d]).transpose(),
            bias,
            recurrent: recurrent.map(|weight| Recurrent { weight: input(weight).reshape([parts * e, e]), bias: input("bias_hh_l0") }),
        }
    }

    fn forward(&self, range: Range<usize>, h: Tensor<2>, c: Option<Tensor<2>>) -> (Tensor<3>, Carried) {
        let preact = matmul_sequences(steps(&self.x, &range), self.weight.clone());
        let (bias, codes) = (Some(self.bias.clone()), StepCodes::dense());
        let start = Start::carried(h);
        let recurrent = || self.recurrent.as_ref().map(|side| (side.weight.clone(), Some(side.bias.clone()))).expect("made with the layer");
        let ((h, last), c) = match self.cell {
            Cell::MinGru(candidate) => (ops::min_gru(preact, bias, candidate, start, &codes), None),
            Cell::Gilr => (ops::min_gru(preact, bias, Candidate::Tanh, start, &codes), None),
            Cell::MinLstm(candidate, gates) => (ops::min_lstm(preact, bias, candidate, gates, start, &codes), None),
            Cell::Gru => {
                let (weight, recurrent_bias) = recurrent();
                (ops::gru(GruForm::Torch, preact, bias, weight, recurrent_bias, start, &codes), None)
            }
            Cell::Lstm => {
                let (weight, recurrent_bias) = recurrent();
                let cell = Start { h0: c, init: None };
                let (h, last, c_last) = ops::lstm(preact, bias, weight, recurrent_bias, start, cell, &codes);
                ((h, last), Some(c_last))
            }
            _ => unreachable!("a layer of its own"),
        };
        (h, Carried::Hidden { h: last, c })
    }
}

/// The selective scan between Mamba's projections.
#[derive(Debug)]
pub(super) struct Mamba {
    whole: SelectiveScan,
}

impl Mamba {
    fn new(sizes: Sizes, input: impl Fn(&str) -> Tensor<1>) -> Self {
        let Sizes { batch_size: b, seq_len: t, d_model: d, d_inner: n, .. } = sizes;
        let sequence = |name: &str, width: usize| input(name).reshape([b, t, width]);
        Self {
            whole: SelectiveScan {
                u: sequence("u", d),
                delta: sequence("delta", d),
                delta_bias: input("delta_bias"),
                a: input("A").reshape([d, n]),
                bc: Tensor::cat(vec![sequence("B", n), sequence("C", n)], 2),
                skip: input("D"),
                z: Some(sequence("z", d)),
                h0: None,
            },
        }
    }

    fn forward(&self, range: Range<usize>, h0: Option<Tensor<3>>) -> (Tensor<3>, Carried) {
        let SelectiveScan { u, delta, bc, z, .. } = &self.whole;
        let [u, delta, bc] = [u, delta, bc].map(|x| steps(x, &range));
        let z = z.as_ref().map(|z| steps(z, &range));
        let (y, last) = ops::selective_scan(SelectiveScan { u, delta, bc, z, h0, ..self.whole.clone() }, &StepCodes::dense());
        (y, Carried::States(Some(last)))
    }
}
