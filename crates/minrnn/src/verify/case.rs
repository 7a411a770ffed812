//! The file of a case: read, and checked whole before anything is computed.

use std::path::Path;

use minrnn_stream::{Tensor, Weights};

use super::cell::Cell;
use crate::{Error, Result};

const FORMAT: &str = "1";
const EXPECT: &str = "expect.";
const GRAD: &str = "grad.";
const LOSS_WEIGHT: &str = "loss_weight";

/// The sizes of a case; all are at least 1.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Sizes {
    /// B, the number of sequences.
    pub batch_size: usize,
    /// T, the number of steps.
    pub seq_len: usize,
    /// d, the width of the input.
    pub d_model: usize,
    /// e, the width of the state (for Mamba N, that of each channel).
    pub d_inner: usize,
}

/// One case, complete and of consistent shapes.
#[derive(Debug, Clone)]
pub struct Case {
    pub(super) cell: Cell,
    pub(super) sizes: Sizes,
    /// Values of every input and parameter, in the order of [`Cell::inputs`].
    pub(super) inputs: Vec<(&'static str, Vec<f32>)>,
    /// Of the shape of the first output; there when a gradient is expected.
    pub(super) loss_weight: Option<Vec<f32>>,
    /// Expected outputs, in the order of [`Cell::outputs`].
    pub(super) outputs: Vec<(&'static str, Vec<f32>)>,
    /// Expected gradients by the name of the input, in the order of `inputs`.
    pub(super) gradients: Vec<(&'static str, Vec<f32>)>,
}

impl Case {
    /// Reads the case at `path`.
    ///
    /// # Errors
    /// When the file cannot be read, is no safetensors file of f32 tensors, is no case, is about a cell that is not supported, lacks
    /// a tensor or has one too many, or when shapes do not fit together.
    pub fn read(path: impl AsRef<Path>) -> Result<Self> {
        let weights = Weights::read(&path)?;
        Self::from_weights(weights).map_err(|problem| Error::malformed(path, problem))
    }

    /// The cell's name.
    pub fn cell(&self) -> &'static str {
        self.cell.name()
    }

    /// The sizes of its tensors.
    pub fn sizes(&self) -> Sizes {
        self.sizes
    }

    fn from_weights(mut weights: Weights) -> Result<Self, String> {
        match weights.metadata().get("case").map(String::as_str) {
            Some(FORMAT) => {}
            Some(found) => return Err(format!("it is a verify case of format {found:?}, expected {FORMAT:?}; use the minrnn made for it")),
            None => return Err(format!("it is no verify case: expected the metadata case = {FORMAT:?} and cell")),
        }
        let cell = Cell::from_metadata(weights.metadata())?;
        let sizes = sizes(&weights, cell)?;
        let shapes = cell.inputs(sizes);
        let possible = cell.outputs(sizes);
        let (main, main_shape) = &possible[0];
        let mut optional = |name: &str, shape: &[usize]| match weights.get(name) {
            Some(found) => check_shape(name, found, shape, cell).map(|()| weights.take_any(name).ok().map(|tensor| tensor.data)),
            None => Ok(None),
        };
        let mut inputs = Vec::new();
        for (name, shape) in &shapes {
            inputs.push((*name, optional(name, shape)?.ok_or_else(|| missing(name, cell))?));
        }
        let loss_weight = optional(LOSS_WEIGHT, main_shape)?;
        let mut expected = |prefix: &str, names: &[(&'static str, Vec<usize>)]| -> Result<Vec<_>, String> {
            let mut found = Vec::new();
            for (name, shape) in names {
                found.extend(optional(&format!("{EXPECT}{prefix}{name}"), shape)?.map(|values| (*name, values)));
            }
            Ok(found)
        };
        let outputs = expected("", &possible)?;
        let gradients = expected(GRAD, &shapes)?;
        if let Some(name) = weights.names().next() {
            return Err(unknown(name, cell, sizes));
        }
        if outputs.is_empty() && gradients.is_empty() {
            return Err(format!("there is nothing to compare: expected a tensor '{EXPECT}{main}' or '{EXPECT}{GRAD}<name>'"));
        }
        if loss_weight.is_none() && !gradients.is_empty() {
            return Err(format!("tensor '{LOSS_WEIGHT}' is missing; gradients are those of the sum of {LOSS_WEIGHT} * {main}"));
        }
        // One of them bounds the size of the states by the size of the file.
        if loss_weight.is_none() && outputs[0].0 != *main {
            return Err(format!("expected a tensor '{EXPECT}{main}' or '{LOSS_WEIGHT}', found neither"));
        }
        Ok(Self { cell, sizes, inputs, loss_weight, outputs, gradients })
    }
}

/// The sizes, from the two tensors that give them.
fn sizes(weights: &Weights, cell: Cell) -> Result<Sizes, String> {
    let shape = |name: &'static str| weights.get(name).map(|tensor| tensor.shape.as_slice()).ok_or_else(|| missing(name, cell));
    let [x, state] = cell.sized_by();
    let (found, found_state) = (shape(x)?, shape(state)?);
    let rows_are = if cell == Cell::Mamba { "d" } else { "B" };
    let &[batch_size, seq_len, d_model] = found else { return Err(format!("tensor '{x}' has shape {found:?}, expected [B, T, d]")) };
    let &[rows, d_inner] = found_state else {
        return Err(format!("tensor '{state}' has shape {found_state:?}, expected [{rows_are}, e]"));
    };
    if found.contains(&0) || found_state.contains(&0) {
        return Err(format!("tensor '{x}' has shape {found:?} and '{state}' {found_state:?}; every size must be at least 1"));
    }
    if cell == Cell::Mamba && rows != d_model {
        return Err(format!("tensor '{state}' has {rows} rows, but '{x}' has {d_model} channels; both are the width"));
    }
    if cell != Cell::Mamba && rows != batch_size {
        return Err(format!("tensor '{state}' has {rows} rows, but '{x}' has {batch_size}; both are the batch"));
    }
    Ok(Sizes { batch_size, seq_len, d_model, d_inner })
}

fn check_shape(name: &str, found: &Tensor, expected: &[usize], cell: Cell) -> Result<(), String> {
    if found.shape == expected {
        return Ok(());
    }
    let ([x, state], cell, found) = (cell.sized_by(), cell.name(), &found.shape);
    Err(format!("tensor '{name}' has shape {found:?}, expected {expected:?} for a {cell} whose {x} and {state} are as in this file"))
}

fn missing(name: &str, cell: Cell) -> String {
    let one = Sizes { batch_size: 1, seq_len: 1, d_model: 1, d_inner: 1 };
    let names: Vec<_> = cell.inputs(one).into_iter().map(|(name, _)| name).collect();
    format!("tensor '{name}' is missing; a case of {} has {}", cell.name(), names.join(", "))
}

fn unknown(name: &str, cell: Cell, sizes: Sizes) -> String {
    let inputs = cell.inputs(sizes).into_iter().map(|(name, _)| name);
    let known: Vec<String> = match name.strip_prefix(EXPECT) {
        Some(_) => {
            let outputs = cell.outputs(sizes).into_iter().map(|(name, _)| format!("{EXPECT}{name}"));
            outputs.chain(inputs.map(|name| format!("{EXPECT}{GRAD}{name}"))).collect()
        }
        None => inputs.chain([LOSS_WEIGHT, "expect.*"]).map(str::to_owned).collect(),
    };
    format!("tensor {name:?} is unknown in a case of {}; known are {}", cell.name(), known.join(", "))
}
