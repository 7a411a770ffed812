//! The cells a case can be about: their settings, their tensors, and the differentiable operations behind them.

use std::collections::BTreeMap;

use burn::tensor::Tensor;

use super::case::Sizes;
use crate::nn::linear::matrix_product;
use crate::ops::{self, Candidate, Gates, GruForm, Start, StepCodes};

/// Names of the cells that can be verified.
const SUPPORTED: &[&str] = &["min_gru", "min_lstm", "gru", "lstm", "slstm", "mlstm"];
/// Cells the format knows and this version does not.
const LATER: &[&str] = &["mamba"];
/// Metadata that say nothing about the cell; `format` is what safetensors' own writers add.
const COMMON: &[&str] = &["case", "cell", "format"];

/// A cell with its settings.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Cell {
    MinGru(Candidate),
    MinLstm(Candidate, Gates),
    Gru,
    Lstm,
    SLstm,
    MLstm,
}

impl Cell {
    /// The cell that `metadata` name, or a sentence about what is wrong with them.
    pub(super) fn from_metadata(metadata: &BTreeMap<String, String>) -> Result<Self, String> {
        let cells = || SUPPORTED.join(", ");
        let name = metadata.get("cell").ok_or_else(|| format!("the metadata name no 'cell'; expected one of {}", cells()))?;
        let cell = match name.as_str() {
            "min_gru" => Self::MinGru(candidate(metadata)?),
            "min_lstm" => Self::MinLstm(candidate(metadata)?, gates(metadata)?),
            "gru" => Self::Gru,
            "lstm" => Self::Lstm,
            "slstm" => Self::SLstm,
            "mlstm" => Self::MLstm,
            later if LATER.contains(&later) => return Err(format!("cell '{later}' is not supported yet; supported are {}", cells())),
            other => return Err(format!("unknown cell {other:?}; supported are {}", cells())),
        };
        match metadata.keys().find(|key| !COMMON.contains(&key.as_str()) && !cell.settings().contains(&key.as_str())) {
            None => Ok(cell),
            Some(key) if cell.settings().is_empty() => Err(format!("unknown setting {key:?} in the metadata; {name} has no settings")),
            Some(key) => Err(format!("unknown setting {key:?} in the metadata; {name} has {}", cell.settings().join(" and "))),
        }
    }

    /// The name in the metadata.
    pub(super) fn name(self) -> &'static str {
        match self {
            Self::MinGru(_) => "min_gru",
            Self::MinLstm(..) => "min_lstm",
            Self::Gru => "gru",
            Self::Lstm => "lstm",
            Self::SLstm => "slstm",
            Self::MLstm => "mlstm",
        }
    }

    fn settings(self) -> &'static [&'static str] {
        match self {
            Self::MinGru(_) => &["candidate"],
            Self::MinLstm(..) => &["candidate", "normalize_gates"],
            Self::Gru | Self::Lstm | Self::SLstm | Self::MLstm => &[],
        }
    }

    /// Name and shape of every input and parameter.
    pub(super) fn inputs(self, sizes: Sizes) -> Vec<(&'static str, Vec<usize>)> {
        let Sizes { batch_size: b, seq_len: t, d_model: d, d_inner: e, n_heads } = sizes;
        let head = e / n_heads;
        match self {
            Self::SLstm => return vec![("x", vec![b, t, d]), ("R", vec![n_heads, 4 * head, head]), ("b", vec![4 * e])],
            Self::MLstm => {
                let sequences = ["q", "k", "v"].map(|name| (name, vec![b, n_heads, t, head]));
                return sequences.into_iter().chain(["igate", "fgate"].map(|name| (name, vec![b, n_heads, t]))).collect();
            }
            _ => {}
        }
        let mut inputs = vec![("x", vec![b, t, d]), ("h0", vec![b, e])];
        let linear = |weight, bias| [(weight, vec![e, d]), (bias, vec![e])];
        let traditional = |rows: usize| {
            let matrices = [("weight_ih_l0", vec![rows, d]), ("weight_hh_l0", vec![rows, e])];
            matrices.into_iter().chain([("bias_ih_l0", vec![rows]), ("bias_hh_l0", vec![rows])])
        };
        match self {
            Self::MinGru(_) => inputs.extend(linear("linear_z.weight", "linear_z.bias")),
            Self::MinLstm(..) => {
                inputs.extend(linear("linear_f.weight", "linear_f.bias"));
                inputs.extend(linear("linear_i.weight", "linear_i.bias"));
            }
            Self::Gru => inputs.extend(traditional(3 * e)),
            Self::Lstm => {
                inputs.push(("c0", vec![b, e]));
                inputs.extend(traditional(4 * e));
            }
            Self::SLstm | Self::MLstm => {}
        }
        if matches!(self, Self::MinGru(_) | Self::MinLstm(..)) {
            inputs.extend(linear("linear_h.weight", "linear_h.bias"));
        }
        inputs
    }

    /// Name and shape of every output that can be expected; the first is `h`.
    pub(super) fn outputs(self, sizes: Sizes) -> Vec<(&'static str, Vec<usize>)> {
        let h = ("h", vec![sizes.batch_size, sizes.seq_len, sizes.d_inner]);
        match self {
            Self::MLstm => vec![("h", vec![sizes.batch_size, sizes.n_heads, sizes.seq_len, sizes.d_inner / sizes.n_heads])],
            Self::Lstm => vec![h, ("c_last", vec![sizes.batch_size, sizes.d_inner])],
            _ => vec![h],
        }
    }

    /// The cell with the parameters that `input` gives by name, each flat.
    pub(super) fn layer(self, sizes: Sizes, input: impl Fn(&str) -> Tensor<1>) -> Layer {
        let Sizes { d_model: d, d_inner: e, .. } = sizes;
        // Row-major matrices of the same width: their rows follow each other.
        let cat = |names: &[&str]| Tensor::cat(names.iter().map(|name| input(name)).collect(), 0);
        let (parts, weights, biases, recurrent): (_, &[&str], &[&str], _) = match self {
            Self::MinGru(_) => (2, &["linear_h.weight", "linear_z.weight"], &["linear_h.bias", "linear_z.bias"], None),
            Self::MinLstm(..) => {
                (3, &["linear_h.weight", "linear_f.weight", "linear_i.weight"], &["linear_h.bias", "linear_f.bias", "linear_i.bias"], None)
            }
            Self::Gru => (3, &["weight_ih_l0"], &["bias_ih_l0"], Some("weight_hh_l0")),
            Self::Lstm => (4, &["weight_ih_l0"], &["bias_ih_l0"], Some("weight_hh_l0")),
            Self::SLstm | Self::MLstm => unreachable!("the cells of xLSTM have no input side"),
        };
        Layer {
            cell: self,
            weight: cat(weights).reshape([parts * e, d]).transpose(),
            bias: cat(biases),
            recurrent: recurrent.map(|weight| Recurrent { weight: input(weight).reshape([parts * e, e]), bias: input("bias_hh_l0") }),
        }
    }
}

fn candidate(metadata: &BTreeMap<String, String>) -> Result<Candidate, String> {
    match metadata.get("candidate").map(String::as_str) {
        Some("positive") => Ok(Candidate::Positive),
        Some("identity") => Ok(Candidate::Identity),
        found => Err(wrong_setting("candidate", "positive or identity", found)),
    }
}

fn gates(metadata: &BTreeMap<String, String>) -> Result<Gates, String> {
    match metadata.get("normalize_gates").map(String::as_str) {
        Some("true") => Ok(Gates::Normalized),
        Some("false") => Ok(Gates::Independent),
        found => Err(wrong_setting("normalize_gates", "true or false", found)),
    }
}

fn wrong_setting(name: &str, expected: &str, found: Option<&str>) -> String {
    let found = found.map_or_else(|| "none".to_owned(), |found| format!("{found:?}"));
    format!("expected the setting '{name}' in the metadata to be {expected}, found {found}")
}

/// What a cell carries between steps, each `[B, e]`.
#[derive(Debug, Clone)]
pub(super) struct Carried {
    pub h: Tensor<2>,
    /// Of the LSTM.
    pub c: Option<Tensor<2>>,
}

/// A cell with parameters.
#[derive(Debug)]
pub(super) struct Layer {
    cell: Cell,
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

impl Layer {
    /// The states `[B, T, e]` of the steps of `x` `[B, T, d]`, and what is carried after them.
    pub(super) fn forward(&self, x: Tensor<3>, carried: Carried) -> (Tensor<3>, Carried) {
        let preact = matrix_product(x, self.weight.clone());
        let (bias, steps) = (Some(self.bias.clone()), StepCodes::dense());
        let start = Start::carried(carried.h);
        let recurrent = || self.recurrent.as_ref().map(|side| (side.weight.clone(), Some(side.bias.clone()))).expect("made with the layer");
        let ((h, last), c) = match self.cell {
            Cell::MinGru(candidate) => (ops::min_gru(preact, bias, candidate, start, &steps), None),
            Cell::MinLstm(candidate, gates) => (ops::min_lstm(preact, bias, candidate, gates, start, &steps), None),
            Cell::Gru => {
                let (weight, recurrent_bias) = recurrent();
                (ops::gru(GruForm::Torch, preact, bias, weight, recurrent_bias, start, &steps), None)
            }
            Cell::Lstm => {
                let (weight, recurrent_bias) = recurrent();
                let cell = Start { h0: carried.c, init: None };
                let (h, last, c_last) = ops::lstm(preact, bias, weight, recurrent_bias, start, cell, &steps);
                ((h, last), Some(c_last))
            }
            Cell::SLstm | Cell::MLstm => unreachable!("the cells of xLSTM have no input side"),
        };
        (h, Carried { h: last, c })
    }
}
