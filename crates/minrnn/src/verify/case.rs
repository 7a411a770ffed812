//! Reading a case file and checking all of it before anything is computed.

use std::path::Path;

use minrnn_model::{Tensor, Weights};

use super::cell::{Cell, Found, Settings, Sizes, missing};
use super::cells::cell_of;
use crate::tensor_file::read_tensors;
use crate::{Error, Result};

const FORMAT: &str = "1";
const EXPECT: &str = "expect.";
const GRAD: &str = "grad.";
const LOSS_WEIGHT: &str = "loss_weight";
/// Maximum numbers in the states of a case, including those kept by a backward pass: a file holds only inputs and outputs.
const MAX_STATE_NUMBERS: usize = 1 << 28;
/// No backward pass keeps states more often than once in this many steps.
const KEPT_EVERY: usize = 16;

/// A case that is complete and consistent in its shapes.
#[derive(Debug, Clone)]
pub struct Case {
    pub(super) cell: &'static Cell,
    pub(super) settings: Settings,
    pub(super) sizes: Sizes,
    /// Values of every input and parameter, in the cell's order.
    pub(super) inputs: Vec<(&'static str, Vec<f32>)>,
    /// Has the shape of the first output; present when a gradient is expected.
    pub(super) loss_weight: Option<Vec<f32>>,
    /// Expected outputs, in the cell's order.
    pub(super) outputs: Vec<(&'static str, Vec<f32>)>,
    /// Expected gradients by the name of the input, in the order of `inputs`.
    pub(super) gradients: Vec<(&'static str, Vec<f32>)>,
}

impl Case {
    /// Reads the case at `path`.
    ///
    /// # Errors
    /// When the file cannot be read, is not a safetensors file of f32 tensors, is not a case, is about an unsupported cell, lacks a tensor
    /// or has one too many, or when shapes do not fit together.
    pub fn read(path: impl AsRef<Path>) -> Result<Self> {
        let weights = read_tensors(&path, "a verify case")?;
        Self::from_weights(weights).map_err(|problem| Error::malformed(path, problem))
    }

    /// The cell's name.
    pub fn cell(&self) -> &'static str {
        self.cell.name
    }

    /// The sizes of its tensors.
    pub fn sizes(&self) -> Sizes {
        self.sizes
    }

    fn from_weights(mut weights: Weights) -> Result<Self, String> {
        match weights.metadata().get("case").map(String::as_str) {
            Some(FORMAT) => {}
            Some(found) => return Err(format!("it is a verify case of format {found:?}, expected {FORMAT:?}; use the minrnn made for it")),
            None => return Err(format!("it is not a verify case: expected the metadata case = {FORMAT:?} and cell")),
        }
        let (cell, settings) = cell_of(weights.metadata())?;
        let sizes = (cell.sizes)(&Found { cell, weights: &weights })?;
        expect_small_states(cell, sizes)?;
        let (shapes, possible) = ((cell.inputs)(sizes), (cell.outputs)(sizes));
        let (main, main_shape) = &possible[0];
        let mut optional = |name: &str, shape: &[usize]| match weights.get(name) {
            Some(found) => check_shape(name, found, shape, cell).map(|()| weights.take_any(name).ok().map(Tensor::into_data)),
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
        Ok(Self { cell, settings, sizes, inputs, loss_weight, outputs, gradients })
    }
}

/// Refuses a small file whose cell would need much memory.
fn expect_small_states(cell: &Cell, sizes: Sizes) -> Result<(), String> {
    let Some(remembers) = cell.remembers else { return Ok(()) };
    let Sizes { batch_size, seq_len, d_model, .. } = sizes;
    let of_channel = remembers(sizes);
    let numbers = [batch_size, seq_len.div_ceil(KEPT_EVERY), of_channel].iter().try_fold(d_model, |numbers, &n| numbers.checked_mul(n));
    if numbers.is_some_and(|numbers| numbers <= MAX_STATE_NUMBERS) {
        return Ok(());
    }
    let (sequences, cell) = (batch_size, cell.name);
    Err(format!(
        "the memory of {cell} would take more than {MAX_STATE_NUMBERS} numbers for {sequences} sequences of {seq_len} steps, {d_model} \
         channels and {of_channel} numbers for each of them; make a smaller case"
    ))
}

fn check_shape(name: &str, found: &Tensor, expected: &[usize], cell: &Cell) -> Result<(), String> {
    if found.shape() == expected {
        return Ok(());
    }
    let Cell { name: cell, told_by: given, .. } = cell;
    let found = found.shape();
    Err(format!("tensor '{name}' has shape {found:?}, expected {expected:?} for a {cell} whose {given} are as in this file"))
}

fn unknown(name: &str, cell: &Cell, sizes: Sizes) -> String {
    let inputs = (cell.inputs)(sizes).into_iter().map(|(name, _)| name);
    let known: Vec<String> = match name.strip_prefix(EXPECT) {
        Some(_) => {
            let outputs = (cell.outputs)(sizes).into_iter().map(|(name, _)| format!("{EXPECT}{name}"));
            outputs.chain(inputs.map(|name| format!("{EXPECT}{GRAD}{name}"))).collect()
        }
        None => inputs.chain([LOSS_WEIGHT, "expect.*"]).map(str::to_owned).collect(),
    };
    format!("tensor {name:?} is unknown in a case of {}; known are {}", cell.name, known.join(", "))
}

#[cfg(test)]
mod tests {
    use std::io::Write;

    use super::*;
    use crate::verify::cells::{CELLS, MAX_HEAD};

    /// A file of zeros with these tensors.
    fn read(cell: &str, tensors: &[(&str, &[usize])]) -> Result<Case> {
        let mut header = serde_json::json!({ "__metadata__": { "case": FORMAT, "cell": cell } });
        let mut end = 0;
        for (name, shape) in tensors {
            let start = end;
            end += 4 * shape.iter().product::<usize>();
            header[*name] = serde_json::json!({ "dtype": "F32", "shape": shape, "data_offsets": [start, end] });
        }
        let header = header.to_string();
        let mut file = tempfile::NamedTempFile::new().unwrap();
        file.write_all(&(header.len() as u64).to_le_bytes()).unwrap();
        file.write_all(header.as_bytes()).unwrap();
        file.as_file().set_len((8 + header.len() + end) as u64).unwrap();
        Case::read(file.path())
    }

    #[test]
    fn a_file_asks_for_no_memory_much_larger_than_itself() {
        let heads = |n_heads: usize, seq_len: usize, width: usize| {
            let shape = [1, n_heads, seq_len, width];
            let tensors = [("q", &shape[..]), ("k", &shape), ("v", &shape), ("expect.y", &shape)];
            ["linear_attention", "retention"].map(|cell| read(cell, &tensors))
        };
        assert!(heads(2, 3, 8).iter().chain(&heads(1, 1, MAX_HEAD)).all(Result::is_ok));
        for refused in heads(32, 1, MAX_HEAD).into_iter().chain(heads(1, 300, MAX_HEAD)) {
            let sentence = refused.unwrap_err().to_string();
            assert!(sentence.contains("would take more than 268435456 numbers") && sentence.contains("make a smaller case"), "{sentence}");
        }
        let mamba = |n: usize| {
            let (sequences, states, channels) = ([n, 1, n], [n, n], [n]);
            let tensors = [("u", &sequences[..]), ("delta", &sequences), ("z", &sequences), ("B", &sequences), ("C", &sequences)];
            let others = [("A", &states[..]), ("D", &channels), ("delta_bias", &channels), ("expect.y", &sequences)];
            read("mamba", &[&tensors[..], &others].concat())
        };
        assert!(mamba(20).is_ok() && mamba(700).unwrap_err().to_string().contains("the memory of mamba"));
    }

    #[test]
    fn every_cell_is_told_of_and_its_names_are_its_own() {
        let sizes = Sizes { batch_size: 1, seq_len: 1, d_model: 4, d_inner: 1, n_heads: 1 };
        for cell in CELLS {
            assert!(include_str!("mod.rs").contains(&format!("//! | `{}` |", cell.name)), "{}", cell.name);
            assert_eq!(CELLS.iter().filter(|other| other.name == cell.name).count(), 1, "{}", cell.name);
            let inputs = (cell.inputs)(sizes);
            let names: std::collections::BTreeSet<&str> = inputs.iter().map(|(name, _)| *name).collect();
            assert_eq!(names.len(), inputs.len(), "{}", cell.name);
        }
    }
}
