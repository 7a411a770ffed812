//! Weight matrices and products with them.

use alloc::vec::Vec;
use core::ops::Range;

use minrnn_kernels::weight_matrix::{Inputs, Scratch, WeightMatrix};

use crate::gates;
use crate::pass::Pass;
use crate::shared::Shared;

/// Products are cut over threads at multiples of this many outputs.
const GRANULE: usize = WeightMatrix::SPLIT;
/// Other work is cut at multiples of this many channels: those of the widest vector.
pub(crate) const LANES: usize = 16;

/// A matrix and what is added to its product.
#[derive(Debug, Clone)]
pub(crate) struct Linear {
    /// `[outputs, inputs]`.
    pub(crate) weight: WeightMatrix,
    /// `[outputs]`.
    pub(crate) bias: Vec<f32>,
}

/// The product of `rows` rows of `x` with a matrix whose outputs are `parts` equal parts, of which `groups` are wanted, cut over the
/// workers by channels of a part. `then(channels, values)` gets each piece, `values` being `[groups, rows, channels.len()]`.
///
/// `scratch` needs room for the wanted outputs of all rows; `x` is `[rows, inputs]`.
#[allow(clippy::too_many_arguments, reason = "a product and where its pieces go")]
pub(crate) fn matmul(
    pass: &Pass<'_>,
    matrix: &WeightMatrix,
    parts: usize,
    groups: Range<usize>,
    rows: usize,
    x: &[f32],
    scratch: &mut [f32],
    then: impl Fn(Range<usize>, &mut [f32]) + Sync,
) {
    let channels = matrix.outputs() / parts;
    let x = &x[..rows * matrix.inputs()];
    let scratch = Shared::new(scratch, 0);
    let cost = rows * matrix.inputs() * channels * groups.len();
    pass.workers.split(channels, GRANULE, cost, |piece, range| {
        // SAFETY: one thread runs a piece, and a phase is over before the next begins.
        let memory = &mut unsafe { pass.scratches.part(0, piece..piece + 1) }[0];
        let each = rows * range.len();
        let from = groups.len() * rows * range.start;
        // SAFETY: pieces have ranges of their own, and so parts of the scratch.
        let values = unsafe { scratch.part(0, from..from + groups.len() * each) };
        if rows == 1 && range.len() == channels {
            // The groups are contiguous in the matrix and in the result: one product, which rounds its inputs once.
            let outputs = groups.start * channels..groups.end * channels;
            matrix.multiply(pass.level, Inputs { rows, x, bias: None }, outputs, values, values.len(), memory);
            return then(range, values);
        }
        for (group, values) in groups.clone().zip(values.chunks_exact_mut(each.max(1))) {
            let outputs = group * channels + range.start..group * channels + range.end;
            matrix.multiply(pass.level, Inputs { rows, x, bias: None }, outputs, values, range.len(), memory);
        }
        then(range, values);
    });
}

/// Splits `rows` rows, each worth `cost` multiplications, over the workers when there are enough for every member, so that a piece rounds
/// only its own inputs and can take several products in turn. Does nothing and returns false when products are better cut by outputs.
///
/// `work(range, memory)` gets each piece with memory of its own.
pub(crate) fn split_rows(pass: &Pass<'_>, rows: usize, cost: usize, work: impl Fn(Range<usize>, &mut Scratch) + Sync) -> bool {
    /// Fewest rows per member that keep its arithmetic busy while it reads all weights.
    const ENOUGH: usize = 16;
    /// Pieces begin at multiples of this: tiles of products take rows by fours.
    const GRANULE: usize = 4;
    if rows < ENOUGH * pass.workers.members() {
        return false;
    }
    pass.workers.split(rows, GRANULE, rows * cost, |piece, range| {
        // SAFETY: one thread runs a piece, and a phase is over before the next begins.
        let memory = &mut unsafe { pass.scratches.part(0, piece..piece + 1) }[0];
        work(range, memory);
    });
    true
}

/// The product of `rows` rows of `x` with `matrix`, cut over the workers, by rows where they are many; `then(row, outputs, values, out)` gets each
/// piece of a row, with its place in `out`.
///
/// # Shapes
/// `x` `[rows, inputs]`, `out` `[rows, outputs]`; `scratch` has room for as much as `out`.
pub(crate) fn product(
    pass: &Pass<'_>,
    matrix: &WeightMatrix,
    rows: usize,
    x: &[f32],
    scratch: &mut [f32],
    out: &mut [f32],
    then: impl Fn(usize, Range<usize>, &[f32], &mut [f32]) + Sync,
) {
    let out = Shared::new(out, matrix.outputs());
    if by_rows(pass, matrix, rows, x, scratch, |row, values| {
        let outputs = 0..values.len();
        // SAFETY: pieces have rows of their own.
        let out = unsafe { out.part(row, outputs.clone()) };
        then(row, outputs, values, out);
    }) {
        return;
    }
    matmul(pass, matrix, 1, 0..1, rows, x, scratch, |range, values| {
        for (row, values) in values.chunks_exact(range.len()).enumerate() {
            // SAFETY: pieces have outputs of their own.
            let out = unsafe { out.part(row, range.clone()) };
            then(row, range.clone(), values, out);
        }
    });
}

/// The product of `rows` rows of `x` with all of `matrix`, if [there are enough to cut them](split_rows); `then(row, values)` gets each. Otherwise does
/// nothing and returns false.
///
/// # Shapes
/// As those of [`product`].
fn by_rows(
    pass: &Pass<'_>,
    matrix: &WeightMatrix,
    rows: usize,
    x: &[f32],
    scratch: &mut [f32],
    then: impl Fn(usize, &[f32]) + Sync,
) -> bool {
    let (inputs, outputs) = (matrix.inputs(), matrix.outputs());
    let scratch = Shared::new(scratch, outputs);
    split_rows(pass, rows, inputs * outputs, |range, memory| {
        // SAFETY: pieces have rows of their own.
        let values = unsafe { scratch.part(0, range.start * outputs..range.end * outputs) };
        let inputs = Inputs { rows: range.len(), x: &x[range.start * inputs..range.end * inputs], bias: None };
        matrix.multiply(pass.level, inputs, 0..outputs, values, outputs, memory);
        range.zip(values.chunks_exact(outputs)).for_each(|(row, values)| then(row, values));
    })
}

/// `out = x Wᵀ` for the rows of the pass.
///
/// # Shapes
/// As those of [`product`].
pub(crate) fn write(pass: &Pass<'_>, matrix: &WeightMatrix, x: &[f32], scratch: &mut [f32], out: &mut [f32]) {
    product(pass, matrix, pass.rows, x, scratch, out, |_, _, values, out| out.copy_from_slice(values));
}

impl Linear {
    /// `y += x Wᵀ + bias` for as many rows as `y` has, on the calling thread.
    ///
    /// # Shapes
    /// `x` `[rows, inputs]`, `y` `[rows, outputs]`; `scratch` has room for as much as `y`.
    pub(crate) fn add_rows(&self, pass: &Pass<'_>, x: &[f32], scratch: &mut [f32], y: &mut [f32], memory: &mut Scratch) {
        let outputs = self.weight.outputs();
        let values = &mut scratch[..y.len()];
        let inputs = Inputs { rows: y.len() / outputs, x, bias: None };
        self.weight.multiply(pass.level, inputs, 0..outputs, values, outputs, memory);
        for (values, y) in values.chunks_exact(outputs).zip(y.chunks_exact_mut(outputs)) {
            gates::add_biased(pass.level, [values, &self.bias], y);
        }
    }

    /// `y = x Wᵀ + bias` for `rows` rows.
    ///
    /// # Shapes
    /// `x` `[rows, inputs]`, `y` `[rows, outputs]`; `scratch` has room for as much as `y`.
    pub(crate) fn write(&self, pass: &Pass<'_>, rows: usize, x: &[f32], scratch: &mut [f32], y: &mut [f32]) {
        product(pass, &self.weight, rows, x, scratch, y, |_, range, values, y| {
            y.iter_mut().zip(values).zip(&self.bias[range]).for_each(|((y, value), bias)| *y = value + bias);
        });
    }

    /// `y += x Wᵀ + bias` for `rows` rows.
    ///
    /// # Shapes
    /// `x` `[rows, inputs]`, `y` `[rows, outputs]`; `scratch` has room for as much as `y`.
    pub(crate) fn add_to(&self, pass: &Pass<'_>, rows: usize, x: &[f32], scratch: &mut [f32], y: &mut [f32]) {
        product(pass, &self.weight, rows, x, scratch, y, |_, range, values, y| {
            gates::add_biased(pass.level, [values, &self.bias[range]], y);
        });
    }

    /// `y += value ⊙ σ(gate)` for `rows` rows, where the first half of x Wᵀ + bias is the value and the other the gate.
    ///
    /// # Shapes
    /// `x` `[rows, inputs]`, `y` `[rows, outputs / 2]`; `scratch` has room for twice as much as `y`.
    pub(crate) fn add_gated_to(&self, pass: &Pass<'_>, rows: usize, x: &[f32], scratch: &mut [f32], y: &mut [f32]) {
        let width = self.weight.outputs() / 2;
        let y = Shared::new(y, width);
        let bias = self.bias.split_at(width);
        if by_rows(pass, &self.weight, rows, x, scratch, |row, values| {
            let (value, gate) = values.split_at(width);
            // SAFETY: pieces have rows of their own.
            let y = unsafe { y.part(row, 0..width) };
            gates::add_gated_linear(pass.level, [value, bias.0, gate, bias.1], y);
        }) {
            return;
        }
        matmul(pass, &self.weight, 2, 0..2, rows, x, scratch, |range, values| {
            let (value, gate) = values.split_at(rows * range.len());
            let bias = [&bias.0[range.clone()], &bias.1[range.clone()]];
            for (row, parts) in value.chunks_exact(range.len()).zip(gate.chunks_exact(range.len())).enumerate() {
                // SAFETY: pieces have ranges of their own.
                let y = unsafe { y.part(row, range.clone()) };
                gates::add_gated_linear(pass.level, [parts.0, bias[0], parts.1, bias[1]], y);
            }
        });
    }
}
