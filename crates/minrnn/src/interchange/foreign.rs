//! What the names and shapes in another library's file imply.

use std::collections::BTreeSet;

use minrnn_model::{Tensor, Weights};

use super::form::Form;
use crate::{Error, Result};

/// The tensors of a file, asked for their shapes.
pub(super) struct Foreign<'a>(&'a Weights);

/// The direction in which a table is read.
pub(super) enum Side<'a> {
    /// From a file, which decides wherever the format leaves a choice.
    Import(Foreign<'a>),
    /// To a file of this form.
    Export(Form),
}

impl<'a> Foreign<'a> {
    pub(super) fn new(weights: &'a Weights) -> Self {
        Self(weights)
    }

    pub(super) fn has(&self, name: &str) -> bool {
        self.0.get(name).is_some()
    }

    pub(super) fn tensor(&self, name: &str) -> Result<&'a Tensor> {
        Ok(self.0.get(name).ok_or_else(|| self.0.missing(name, None))?)
    }

    /// The sizes of a tensor of N dimensions.
    pub(super) fn shape<const N: usize>(&self, name: &str) -> Result<[usize; N]> {
        let found = self.tensor(name)?.shape();
        let wrong =
            |_| self.wrong(format!("tensor '{name}' has shape {found:?}, expected {N} dimensions; the file belongs to another model"));
        found.try_into().map_err(wrong)
    }

    /// Rows of `name` in each of `parts` blocks of equal size, and its columns.
    pub(super) fn blocks_of_rows(&self, name: &str, parts: usize) -> Result<[usize; 2]> {
        let [rows, columns] = self.shape(name)?;
        if !rows.is_multiple_of(parts) {
            return Err(self.wrong(format!("tensor '{name}' has {rows} rows, expected a multiple of {parts}")));
        }
        Ok([rows / parts, columns])
    }

    /// Whether the file has no tensor `again`, or one with the numbers of `name`.
    pub(super) fn repeats(&self, name: &str, again: &str) -> bool {
        self.0.get(again).is_none_or(|again| self.0.get(name).is_some_and(|first| same_bits(first.data(), again.data())))
    }

    /// Number of different n in names that begin with `prefix` n `.`.
    pub(super) fn layers(&self, prefix: &str) -> usize {
        let numbers = self.0.names().filter_map(|name| name.strip_prefix(prefix)?.split_once('.')?.0.parse::<usize>().ok());
        numbers.collect::<BTreeSet<_>>().len()
    }

    /// A complaint about the file.
    pub(super) fn wrong(&self, problem: String) -> Error {
        Error::malformed(self.0.path(), problem)
    }
}

impl Side<'_> {
    /// Whether a tensor that the format may lack exists; `written` on export.
    pub(super) fn has(&self, name: &str, written: bool) -> bool {
        match self {
            Self::Import(file) => file.has(name),
            Self::Export(_) => written,
        }
    }

    /// Size of the last dimension of `name`; `written` on export.
    pub(super) fn last_size(&self, name: &str, written: usize) -> Result<usize> {
        match self {
            Self::Import(file) => Ok(file.tensor(name)?.shape().last().copied().unwrap_or(1)),
            Self::Export(_) => Ok(written),
        }
    }

    /// Taps of the filters in `name` `[D, 1, taps]`, at most `limit`.
    pub(super) fn taps(&self, name: &str, limit: usize) -> Result<usize> {
        let file = match self {
            Self::Import(file) => file,
            Self::Export(form) => return Ok(form.taps),
        };
        let [_, _, taps] = file.shape(name)?;
        if !(1..=limit).contains(&taps) {
            let problem = format!("tensor '{name}' has filters of {taps} taps, expected 1 to {limit}; a minrnn model has no longer ones");
            return Err(file.wrong(problem));
        }
        Ok(taps)
    }

    /// Whether the convolution has a bias in `name`.
    pub(super) fn has_conv_bias(&self, name: &str) -> bool {
        match self {
            Self::Import(file) => file.has(name),
            Self::Export(form) => form.conv_bias,
        }
    }
}

/// Whether two tensors have the same numbers, bit for bit.
pub(super) fn same_bits(a: &[f32], b: &[f32]) -> bool {
    a.iter().map(|x| x.to_bits()).eq(b.iter().map(|x| x.to_bits()))
}
