//! The rules of a format, read from theirs to ours and back.

use minrnn_model::{Tensor, Weights};

use super::foreign::same_bits;
use super::rule::{Constant, Map, Rule};
use super::{Format, NamedTensor};
use crate::{Error, Result};

/// The rules of one model; every tensor of either side is in exactly one, apart from those of [`Rule::Repeat`].
#[derive(Default)]
pub(super) struct Table {
    rules: Vec<Rule>,
    ours: String,
    theirs: String,
}

impl Table {
    /// Sets the prefixes of the names that follow.
    pub(super) fn below(&mut self, ours: impl Into<String>, theirs: impl Into<String>) {
        (self.ours, self.theirs) = (ours.into(), theirs.into());
    }

    /// The same numbers on either side.
    pub(super) fn same<const N: usize>(&mut self, ours: &str, theirs: &str, shape: [usize; N]) {
        self.pair(ours, theirs, shape, Map::Same);
    }

    /// Numbers converted by `map`.
    pub(super) fn pair<const N: usize>(&mut self, ours: &str, theirs: &str, shape: [usize; N], map: Map) {
        let (ours, theirs) = (self.ours(ours), self.theirs(theirs));
        self.rules.push(Rule::Pair { ours, theirs, shape: shape.to_vec(), map });
    }

    /// Weight and bias of a linear layer.
    pub(super) fn linear(&mut self, ours: &str, theirs: &str, rows: usize, columns: usize) {
        self.same(&format!("{ours}.weight"), &format!("{theirs}.weight"), [rows, columns]);
        self.same(&format!("{ours}.bias"), &format!("{theirs}.bias"), [rows]);
    }

    /// The weight of a linear layer that has no bias on the other side.
    pub(super) fn linear_without_bias(&mut self, ours: &str, theirs: &str, rows: usize, columns: usize) {
        self.same(&format!("{ours}.weight"), &format!("{theirs}.weight"), [rows, columns]);
        self.fixed(&format!("{ours}.bias"), [rows], Constant::Zeros);
    }

    /// One of our tensors that is a constant for the other side.
    pub(super) fn fixed<const N: usize>(&mut self, ours: &str, shape: [usize; N], constant: Constant) {
        self.rules.push(Rule::Fixed { ours: self.ours(ours), shape: shape.to_vec(), constant });
    }

    /// One of their tensors with the values of one of ours that is in another rule.
    pub(super) fn repeat<const N: usize>(&mut self, ours: &str, theirs: &str, shape: [usize; N]) {
        self.rules.push(Rule::Repeat { ours: self.ours(ours), theirs: self.theirs(theirs), shape: shape.to_vec() });
    }

    /// The head, either separate or the embedding again.
    pub(super) fn head(&mut self, theirs: &str, vocab_size: usize, d_model: usize, tied: bool) {
        match tied {
            true => self.repeat("embedding.weight", theirs, [vocab_size, d_model]),
            false => self.same("head.weight", theirs, [vocab_size, d_model]),
        }
    }

    /// One of their tensors that nothing depends on.
    pub(super) fn unused<const N: usize>(&mut self, theirs: &str, shape: [usize; N], value: f32) {
        self.rules.push(Rule::Unused { theirs: self.theirs(theirs), shape: shape.to_vec(), value });
    }

    fn ours(&self, name: &str) -> String {
        format!("{}{name}", self.ours)
    }

    fn theirs(&self, name: &str) -> String {
        format!("{}{name}", self.theirs)
    }

    /// Our tensors from theirs.
    pub(super) fn import(self, theirs: &mut Weights) -> Result<Vec<NamedTensor>> {
        let mut tensors: Vec<NamedTensor> = Vec::new();
        for rule in self.rules {
            match rule {
                Rule::Pair { ours, theirs: name, shape, map } => {
                    let values = theirs.take(&name, &map.their_shape(&shape))?;
                    let data = map.to_ours(values, &shape);
                    tensors.push((ours, Tensor::new(shape, data)?));
                }
                Rule::Fixed { ours, shape, constant } => {
                    let data = constant.values(&shape);
                    tensors.push((ours, Tensor::new(shape, data)?));
                }
                Rule::Repeat { ours, theirs: name, shape } => {
                    if theirs.get(&name).is_none() {
                        continue;
                    }
                    let repeated = theirs.take(&name, &shape)?;
                    if tensors.iter().any(|(name, first)| *name == ours && !same_bits(first.data(), &repeated)) {
                        let problem = format!("tensor '{name}' differs from the one it should repeat, our '{ours}'");
                        return Err(Error::malformed(theirs.path(), problem));
                    }
                }
                Rule::Unused { theirs: name, shape, .. } => {
                    if theirs.get(&name).is_some() {
                        theirs.take(&name, &shape)?;
                    }
                }
            }
        }
        Ok(tensors)
    }

    /// Their tensors from ours.
    pub(super) fn export(self, ours: &mut Weights, format: Format) -> Result<Vec<NamedTensor>> {
        let mut tensors = Vec::new();
        // Checked before the tensors are taken; a missing or misshapen one is reported by the rule that takes it.
        for rule in &self.rules {
            if let Rule::Repeat { ours: name, theirs, .. } = rule
                && let Some(tensor) = ours.get(name)
            {
                tensors.push((theirs.clone(), tensor.clone()));
            }
        }
        for rule in self.rules {
            match rule {
                Rule::Pair { ours: name, theirs, shape, map } => {
                    let data = map.to_theirs(ours.take(&name, &shape)?, &shape);
                    tensors.push((theirs, Tensor::new(map.their_shape(&shape), data)?));
                }
                Rule::Fixed { ours: name, shape, constant } => {
                    let values = ours.take(&name, &shape)?;
                    let expected = constant.values(&shape);
                    if let Some(at) = (0..values.len()).find(|&at| values[at] != expected[at]) {
                        let (found, constant) = (values[at], constant.name());
                        let place = format!("it must be {constant}, found {found} at position {at}");
                        let problem = format!("a file of format {format} has no tensor for '{name}' {shape:?}: {place}");
                        return Err(Error::malformed(ours.path(), problem));
                    }
                }
                Rule::Unused { theirs, shape, value } => {
                    let data = vec![value; shape.iter().product()];
                    tensors.push((theirs, Tensor::new(shape, data)?));
                }
                Rule::Repeat { .. } => {}
            }
        }
        Ok(tensors)
    }
}
