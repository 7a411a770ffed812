//! The description of a cell in a case, and the tensors it is given.

use std::collections::BTreeMap;
use std::ops::Range;

use burn::tensor::Tensor;
use minrnn_model::Weights;

/// The sizes of a case; all are at least 1.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Sizes {
    /// B, the number of sequences.
    pub batch_size: usize,
    /// T, the number of steps.
    pub seq_len: usize,
    /// d, the width of the input.
    pub d_model: usize,
    /// e, the width of the state (for Mamba and S4D N, the width for each channel).
    pub d_inner: usize,
    /// The number of heads; 1 for cells without.
    pub n_heads: usize,
}

/// Names and shapes of tensors.
pub(super) type Shapes = Vec<(&'static str, Vec<usize>)>;

/// A cell that a case can be about: one file in `cells/`, and one line in its list.
#[derive(Debug)]
pub(super) struct Cell {
    /// The name in the metadata.
    pub name: &'static str,
    /// Its settings in the metadata, with their possible values.
    pub settings: &'static [(&'static str, &'static [&'static str])],
    /// The tensors that determine the sizes, in words.
    pub told_by: &'static str,
    /// The sizes of a case.
    pub sizes: fn(&Found<'_>) -> Result<Sizes, String>,
    /// Numbers stored per channel, if they may exceed the inputs in the file.
    pub remembers: Option<fn(Sizes) -> usize>,
    /// Every input and parameter.
    pub inputs: fn(Sizes) -> Shapes,
    /// Every possible output; the first is the one weighted by the loss.
    pub outputs: fn(Sizes) -> Shapes,
    /// The outputs, each flat, in that order.
    pub run: fn(&Given) -> Vec<Tensor<1>>,
}

/// The settings of a case by name.
pub(super) type Settings = BTreeMap<&'static str, &'static str>;

/// The tensors in the file of a case, before it is known whether they fit.
pub(super) struct Found<'a> {
    pub cell: &'static Cell,
    pub weights: &'a Weights,
}

impl Found<'_> {
    /// The shape of the tensor `name`.
    pub fn shape(&self, name: &str) -> Result<&[usize], String> {
        self.weights.get(name).map(minrnn_model::Tensor::shape).ok_or_else(|| missing(name, self.cell))
    }
}

/// A sentence saying that the tensor `name` is missing in a case of `cell`.
pub(super) fn missing(name: &str, cell: &Cell) -> String {
    let one = Sizes { batch_size: 1, seq_len: 1, d_model: 1, d_inner: 1, n_heads: 1 };
    let names: Vec<_> = (cell.inputs)(one).into_iter().map(|(name, _)| name).collect();
    format!("tensor '{name}' is missing; a case of {} has {}", cell.name, names.join(", "))
}

/// Every input and parameter on a device, and how they are to be read.
pub(super) struct Given {
    pub sizes: Sizes,
    pub settings: Settings,
    pub shapes: BTreeMap<&'static str, Vec<usize>>,
    /// Flat, so that gradients come back in the order of the file.
    pub tensors: BTreeMap<&'static str, Tensor<1>>,
    /// Maximum number of steps in a call of the cell.
    pub per_call: usize,
}

impl Given {
    /// The tensor `name` with its shape.
    pub fn get<const D: usize>(&self, name: &str) -> Tensor<D> {
        let shape: [usize; D] = self.shapes[name].clone().try_into().expect("a cell knows the dimensions of its tensors");
        self.tensors[name].clone().reshape(shape)
    }

    /// A tensor `[B, NH, T, ·]` or `[B, NH, T]` as `[B, T, NH · ·]`.
    pub fn by_step(&self, name: &str) -> Tensor<3> {
        let Sizes { batch_size, seq_len, n_heads, .. } = self.sizes;
        let width = self.shapes[name].get(3).copied().unwrap_or(1);
        let by_head = self.tensors[name].clone().reshape([batch_size, n_heads, seq_len, width]);
        by_head.swap_dims(1, 2).reshape([batch_size, seq_len, n_heads * width])
    }

    /// The inverse, flat.
    pub fn by_head(&self, y: Tensor<3>) -> Tensor<1> {
        let Sizes { batch_size, seq_len, n_heads, .. } = self.sizes;
        let head = y.dims()[2] / n_heads;
        y.reshape([batch_size, seq_len, n_heads, head]).swap_dims(1, 2).flatten(0, 3)
    }

    /// The outputs `[B, T, ·]` of successive calls of some steps each, with the state carried between them, and the last state.
    pub fn in_calls<M>(&self, first: M, mut call: impl FnMut(&Range<usize>, M) -> (Tensor<3>, M)) -> (Tensor<3>, M) {
        let mut memory = Some(first);
        let calls = (0..self.sizes.seq_len).step_by(self.per_call).map(|t| {
            let range = t..self.sizes.seq_len.min(t + self.per_call);
            let (y, next) = call(&range, memory.take().expect("put back by the call before"));
            memory = Some(next);
            y
        });
        let y = Tensor::cat(calls.collect(), 1);
        (y, memory.expect("put back by the last call"))
    }
}

/// The steps `range` of `x` `[B, T, ·]`.
pub(super) fn steps(x: &Tensor<3>, range: &Range<usize>) -> Tensor<3> {
    x.clone().narrow(1, range.start, range.len())
}
