//! The file of a case: read, and checked whole before anything is computed.

use std::path::Path;

use minrnn_model::{Tensor, Weights};

use super::cell::Cell;
use crate::{Error, Result};

const FORMAT: &str = "1";
const EXPECT: &str = "expect.";
const GRAD: &str = "grad.";
const LOSS_WEIGHT: &str = "loss_weight";
/// Widest head, and most states of a channel: their memories are not bounded by the file.
const MAX_HEAD: usize = 1 << 12;
/// Most numbers of the states of a case, those included that a backward pass keeps: a file holds only what goes in and comes out.
const MAX_STATE_NUMBERS: usize = 1 << 28;
/// No backward pass keeps a state for fewer steps than this.
const KEPT_EVERY: usize = 16;

/// The sizes of a case; all are at least 1.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Sizes {
    /// B, the number of sequences.
    pub batch_size: usize,
    /// T, the number of steps.
    pub seq_len: usize,
    /// d, the width of the input.
    pub d_model: usize,
    /// e, the width of the state (for Mamba and S4D N, that of each channel).
    pub d_inner: usize,
    /// The number of heads; 1 for cells without.
    pub n_heads: usize,
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
        let sizes = cell.sizes(&weights)?;
        cell.expect_small_states(sizes)?;
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

impl Cell {
    /// The sizes of a case of this cell.
    fn sizes(self, weights: &Weights) -> Result<Sizes, String> {
        let shape = |name: &'static str| weights.get(name).map(|tensor| tensor.shape.as_slice()).ok_or_else(|| missing(name, self));
        match self {
            Self::SLstm => slstm_sizes(shape("x")?, shape("R")?),
            Self::MLstm | Self::LinearAttention | Self::Delta => head_sizes("q", shape("q")?),
            Self::Aaren => head_sizes("k", shape("k")?),
            Self::Retention => retention_sizes(shape("q")?, shape("v")?),
            Self::Wkv => channel_sizes(shape("k")?),
            Self::S4d => state_space_sizes(shape("u")?, shape("a_imag")?),
            Self::Mamba => scan_sizes(shape("u")?, shape("A")?),
            _ => state_sizes(shape("x")?, shape("h0")?),
        }
    }

    /// Refuses a small file whose cell would need a large memory.
    fn expect_small_states(self, sizes: Sizes) -> Result<(), String> {
        let Sizes { batch_size, seq_len, d_model, d_inner, n_heads } = sizes;
        let of_channel = match self {
            Self::LinearAttention | Self::Retention | Self::MLstm | Self::Delta => d_inner / n_heads,
            Self::S4d | Self::Mamba => d_inner,
            // As large as inputs that are in the file.
            _ => return Ok(()),
        };
        let numbers = [batch_size, seq_len.div_ceil(KEPT_EVERY), of_channel].iter().try_fold(d_model, |numbers, &n| numbers.checked_mul(n));
        if numbers.is_some_and(|numbers| numbers <= MAX_STATE_NUMBERS) {
            return Ok(());
        }
        let (sequences, cell) = (batch_size, self.name());
        Err(format!(
            "the memory of {cell} would take more than {MAX_STATE_NUMBERS} numbers for {sequences} sequences of {seq_len} steps, {d_model} \
             channels and {of_channel} numbers for each of them; make a smaller case"
        ))
    }
}

/// The sizes of an sLSTM, whose input side is ready.
fn slstm_sizes(x: &[usize], recurrent: &[usize]) -> Result<Sizes, String> {
    let &[batch_size, seq_len, d_model] = x else { return Err(format!("tensor 'x' has shape {x:?}, expected [B, T, 4H]")) };
    let &[n_heads, _, width] = recurrent else { return Err(format!("tensor 'R' has shape {recurrent:?}, expected [heads, 4 hd, hd]")) };
    if x.contains(&0) || recurrent.contains(&0) {
        return Err(format!("tensor 'x' has shape {x:?} and 'R' {recurrent:?}; every size must be at least 1"));
    }
    let d_inner = n_heads.saturating_mul(width);
    if d_inner.checked_mul(4) != Some(d_model) {
        return Err(format!("tensor 'x' is {d_model} wide, expected {} for {n_heads} heads of {width}", d_inner.saturating_mul(4)));
    }
    Ok(Sizes { batch_size, seq_len, d_model, d_inner, n_heads })
}

/// The sizes of a cell whose queries, keys and values are ready, by one of them, the tensor `name`.
fn head_sizes(name: &str, shape: &[usize]) -> Result<Sizes, String> {
    let &[batch_size, n_heads, seq_len, width] = shape else {
        return Err(format!("tensor '{name}' has shape {shape:?}, expected [B, NH, T, DH]"));
    };
    if shape.contains(&0) {
        return Err(format!("tensor '{name}' has shape {shape:?}; every size must be at least 1"));
    }
    if width > MAX_HEAD {
        return Err(format!("tensor '{name}' has heads of {width}, expected at most {MAX_HEAD}"));
    }
    let d_inner = n_heads * width;
    Ok(Sizes { batch_size, seq_len, d_model: d_inner, d_inner, n_heads })
}

/// The sizes of a retention, whose values may be wider than its queries.
fn retention_sizes(q: &[usize], v: &[usize]) -> Result<Sizes, String> {
    let (keys, values) = (head_sizes("q", q)?, head_sizes("v", v)?);
    if q[..3] != v[..3] {
        return Err(format!("tensor 'v' has shape {v:?}, expected [{}, {}, {}, DV] as 'q' has {q:?}", q[0], q[1], q[2]));
    }
    if q[3] % 2 == 1 {
        return Err(format!("tensor 'q' has heads of {}, expected an even number: channels turn in pairs", q[3]));
    }
    Ok(Sizes { d_inner: values.d_inner, ..keys })
}

/// The sizes of RWKV-4's average, by its keys.
fn channel_sizes(k: &[usize]) -> Result<Sizes, String> {
    let &[batch_size, seq_len, d_model] = k else { return Err(format!("tensor 'k' has shape {k:?}, expected [B, T, d]")) };
    if k.contains(&0) {
        return Err(format!("tensor 'k' has shape {k:?}; every size must be at least 1"));
    }
    Ok(Sizes { batch_size, seq_len, d_model, d_inner: d_model, n_heads: 1 })
}

/// The sizes of S4D's state spaces.
fn state_space_sizes(u: &[usize], a_imag: &[usize]) -> Result<Sizes, String> {
    let &[batch_size, seq_len, d_model] = u else { return Err(format!("tensor 'u' has shape {u:?}, expected [B, T, d]")) };
    let &[rows, d_inner] = a_imag else { return Err(format!("tensor 'a_imag' has shape {a_imag:?}, expected [d, N]")) };
    if u.contains(&0) || a_imag.contains(&0) {
        return Err(format!("tensor 'u' has shape {u:?} and 'a_imag' {a_imag:?}; every size must be at least 1"));
    }
    if rows != d_model {
        return Err(format!("tensor 'a_imag' has {rows} rows, but 'u' has {d_model} channels; both are the width"));
    }
    if d_inner > MAX_HEAD {
        return Err(format!("tensor 'a_imag' has {d_inner} states a channel, expected at most {MAX_HEAD}"));
    }
    Ok(Sizes { batch_size, seq_len, d_model, d_inner, n_heads: 1 })
}

/// The sizes of Mamba, whose projections are done.
fn scan_sizes(u: &[usize], a: &[usize]) -> Result<Sizes, String> {
    let &[batch_size, seq_len, d_model] = u else { return Err(format!("tensor 'u' has shape {u:?}, expected [B, T, d]")) };
    let &[rows, d_inner] = a else { return Err(format!("tensor 'A' has shape {a:?}, expected [d, e]")) };
    if u.contains(&0) || a.contains(&0) {
        return Err(format!("tensor 'u' has shape {u:?} and 'A' {a:?}; every size must be at least 1"));
    }
    if rows != d_model {
        return Err(format!("tensor 'A' has {rows} rows, but 'u' has {d_model} channels; both are the width"));
    }
    Ok(Sizes { batch_size, seq_len, d_model, d_inner, n_heads: 1 })
}

/// The sizes of the other cells, from `x` and `h0`.
fn state_sizes(x: &[usize], h0: &[usize]) -> Result<Sizes, String> {
    let &[batch_size, seq_len, d_model] = x else { return Err(format!("tensor 'x' has shape {x:?}, expected [B, T, d]")) };
    let &[rows, d_inner] = h0 else { return Err(format!("tensor 'h0' has shape {h0:?}, expected [B, e]")) };
    if x.contains(&0) || h0.contains(&0) {
        return Err(format!("tensor 'x' has shape {x:?} and 'h0' {h0:?}; every size must be at least 1"));
    }
    if rows != batch_size {
        return Err(format!("tensor 'h0' has {rows} rows, but 'x' has {batch_size}; both are the batch"));
    }
    Ok(Sizes { batch_size, seq_len, d_model, d_inner, n_heads: 1 })
}

fn check_shape(name: &str, found: &Tensor, expected: &[usize], cell: Cell) -> Result<(), String> {
    if found.shape == expected {
        return Ok(());
    }
    let given = match cell {
        Cell::SLstm => "x and R",
        Cell::MLstm | Cell::LinearAttention | Cell::Delta => "queries",
        Cell::Retention => "queries and values",
        Cell::Aaren | Cell::Wkv => "keys",
        Cell::S4d => "u and a_imag",
        Cell::Mamba => "u and A",
        _ => "x and h0",
    };
    let (cell, found) = (cell.name(), &found.shape);
    Err(format!("tensor '{name}' has shape {found:?}, expected {expected:?} for a {cell} whose {given} are as in this file"))
}

fn missing(name: &str, cell: Cell) -> String {
    let one = Sizes { batch_size: 1, seq_len: 1, d_model: 1, d_inner: 1, n_heads: 1 };
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

#[cfg(test)]
mod tests {
    use std::io::Write;

    use super::*;

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
}
