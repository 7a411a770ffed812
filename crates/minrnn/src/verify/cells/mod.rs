//! The cells that a case can be about, and what they share.

use std::collections::BTreeMap;

use burn::tensor::Tensor;

use super::cell::{Cell, Found, Given, Settings, Shapes, Sizes, steps};
use crate::nn::linear::matmul_sequences;

macro_rules! cells {
    ($($file:ident,)+) => {
        $(mod $file;)+

        /// Every cell, in the order in which they are listed to users.
        pub(super) const CELLS: &[&Cell] = &[$(&$file::CELL,)+];
    };
}

cells! {
    min_gru,
    min_lstm,
    gru,
    lstm,
    mamba,
    s_lstm,
    m_lstm,
    linear_attention,
    retention,
    rwkv4,
    aaren,
    gilr,
    rg_lru,
    s4d,
    delta,
}

/// Metadata that say nothing about the cell; `format` is added by safetensors' own writers.
const COMMON: &[&str] = &["case", "cell", "format"];

/// Maximum width of a head, and maximum states per channel: their memory is not bounded by the size of the file.
pub(super) const MAX_HEAD: usize = 1 << 12;

/// The cell named by `metadata` with its settings, or a sentence about what is wrong with them.
pub(super) fn cell_of(metadata: &BTreeMap<String, String>) -> Result<(&'static Cell, Settings), String> {
    let names = || CELLS.iter().map(|cell| cell.name).collect::<Vec<_>>().join(", ");
    let name = metadata.get("cell").ok_or_else(|| format!("the metadata name no 'cell'; expected one of {}", names()))?;
    let found = CELLS.iter().copied().find(|cell| cell.name == name);
    let cell = found.ok_or_else(|| format!("unknown cell {name:?}; supported are {}", names()))?;
    let mut settings = Settings::new();
    for (key, known) in cell.settings {
        let found = metadata.get(*key);
        let value = known.iter().find(|value| found.is_some_and(|found| found == *value));
        settings.insert(*key, value.copied().ok_or_else(|| wrong_setting(key, known, found))?);
    }
    let keys: Vec<&str> = cell.settings.iter().map(|(key, _)| *key).collect();
    match metadata.keys().find(|key| !COMMON.contains(&key.as_str()) && !keys.contains(&key.as_str())) {
        None => Ok((cell, settings)),
        Some(key) if keys.is_empty() => Err(format!("unknown setting {key:?} in the metadata; {name} has no settings")),
        Some(key) => Err(format!("unknown setting {key:?} in the metadata; {name} has {}", keys.join(" and "))),
    }
}

fn wrong_setting(name: &str, known: &[&str], found: Option<&String>) -> String {
    let found = found.map_or_else(|| "none".to_owned(), |found| format!("{found:?}"));
    format!("expected the setting '{name}' in the metadata to be {}, found {found}", known.join(" or "))
}

/// The sizes of a cell with `x` `[B, T, d]` and `h0` `[B, e]`.
fn state_sizes(found: &Found<'_>) -> Result<Sizes, String> {
    let (x, h0) = (found.shape("x")?, found.shape("h0")?);
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

/// The sizes of a cell with precomputed queries, keys and values, from one of them, the tensor `name`.
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

/// The sizes from `q` `[B, NH, T, DH]`.
fn query_sizes(found: &Found<'_>) -> Result<Sizes, String> {
    head_sizes("q", found.shape("q")?)
}

/// Sequences `[B, NH, T, d / NH or e / NH]`.
fn by_head(Sizes { batch_size, seq_len, n_heads, .. }: Sizes, width: usize) -> Vec<usize> {
    vec![batch_size, n_heads, seq_len, width / n_heads]
}

/// The width of a head's values.
fn head_width(Sizes { d_inner, n_heads, .. }: Sizes) -> usize {
    d_inner / n_heads
}

/// `x` and `h0`, with which the inputs of gated cells begin.
fn x_and_h0(Sizes { batch_size, seq_len, d_model, d_inner, .. }: Sizes) -> Shapes {
    vec![("x", vec![batch_size, seq_len, d_model]), ("h0", vec![batch_size, d_inner])]
}

/// Weight and bias of a linear map from d to e.
fn linear(Sizes { d_model, d_inner, .. }: Sizes, [weight, bias]: [&'static str; 2]) -> Shapes {
    vec![(weight, vec![d_inner, d_model]), (bias, vec![d_inner])]
}

/// PyTorch's parameters of a recurrent layer, with its gates in `rows` rows.
fn recurrent(Sizes { d_model, d_inner, .. }: Sizes, rows: usize) -> Shapes {
    let matrices = [("weight_ih_l0", vec![rows, d_model]), ("weight_hh_l0", vec![rows, d_inner])];
    matrices.into_iter().chain([("bias_ih_l0", vec![rows]), ("bias_hh_l0", vec![rows])]).collect()
}

/// The output `h` `[B, T, e]`.
fn hidden(Sizes { batch_size, seq_len, d_inner, .. }: Sizes) -> Shapes {
    vec![("h", vec![batch_size, seq_len, d_inner])]
}

/// The output `y` `[B, NH, T, e / NH]`.
fn y_by_head(sizes: Sizes) -> Shapes {
    vec![("y", by_head(sizes, sizes.d_inner))]
}

/// The output `y` `[B, T, d]`.
fn y_by_channel(Sizes { batch_size, seq_len, d_model, .. }: Sizes) -> Shapes {
    vec![("y", vec![batch_size, seq_len, d_model])]
}

impl Given {
    /// h of a gated cell, flat, and its last state: `call` receives the products of a few steps with `weight` `[parts·e, d]`, and the
    /// state.
    fn gated<S>(&self, weight: Tensor<2>, first: S, call: impl Fn(Tensor<3>, S) -> (Tensor<3>, S)) -> (Tensor<1>, S) {
        let (x, weight) = (self.get::<3>("x"), weight.transpose());
        let (h, last) = self.in_calls(first, |range, state| call(matmul_sequences(steps(&x, range), weight.clone()), state));
        (h.flatten(0, 2), last)
    }

    /// The stacked rows of several linear maps: weight `[parts·e, d]` and bias `[parts·e]`.
    fn rows(&self, names: &[&str]) -> (Tensor<2>, Tensor<1>) {
        let weights = names.iter().map(|name| self.get(&format!("{name}.weight"))).collect();
        (Tensor::cat(weights, 0), Tensor::cat(names.iter().map(|name| self.get(&format!("{name}.bias"))).collect(), 0))
    }
}
