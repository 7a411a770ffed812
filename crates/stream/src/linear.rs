//! Weight matrices and the products with them.

use alloc::vec::Vec;
use core::ops::Range;

use minrnn_kernels::product::{self, Into};
use minrnn_kernels::simd::Level;

use crate::WeightFormat;
use crate::pass::Pass;

/// Outputs that one piece of a product is cut at.
pub(crate) const GRANULE: usize = 32;

/// A weight matrix `[outputs, inputs]`, stored for products with rows of inputs.
#[derive(Debug, Clone)]
pub(crate) struct Matrix {
    outputs: usize,
    inputs: usize,
    transposed: Vec<f32>,
}

impl Matrix {
    /// The matrix of `values` `[outputs, inputs]`, stored in `format`.
    pub(crate) fn new(format: WeightFormat, values: &[f32], outputs: usize, inputs: usize) -> Self {
        let _ = format;
        Self { outputs, inputs, transposed: product::transposed(values, outputs, inputs) }
    }

    /// Width of a result.
    pub(crate) fn outputs(&self) -> usize {
        self.outputs
    }

    /// Width of what it is multiplied with.
    pub(crate) fn inputs(&self) -> usize {
        self.inputs
    }

    /// The bytes of a stored matrix of this format and size; `None` beyond what memory can hold.
    pub(crate) fn byte_len(_format: WeightFormat, outputs: usize, inputs: usize) -> Option<usize> {
        outputs.checked_mul(inputs)?.checked_mul(4)
    }

    pub(crate) fn from_bytes(format: WeightFormat, bytes: &[u8], outputs: usize, inputs: usize) -> Option<Self> {
        if bytes.len() != Self::byte_len(format, outputs, inputs)? {
            return None;
        }
        let values: Vec<f32> = bytes.as_chunks::<4>().0.iter().map(|bytes| f32::from_le_bytes(*bytes)).collect();
        Some(Self::new(format, &values, outputs, inputs))
    }

    pub(crate) fn to_bytes(&self) -> Vec<u8> {
        product::transposed(&self.transposed, self.inputs, self.outputs).iter().flat_map(|value| value.to_le_bytes()).collect()
    }

    /// Row `index` as numbers, `[inputs]`.
    pub(crate) fn row(&self, index: usize, out: &mut [f32]) {
        for (i, out) in out.iter_mut().enumerate() {
            *out = self.transposed[i * self.outputs + index];
        }
    }

    /// `out[n, o] = Σ_i x[n, i] · matrix[o, i]` for the outputs `range`, on the calling thread.
    ///
    /// # Shapes
    /// `x` `[rows, inputs]`, `out` `[rows, range.len()]`, both dense.
    fn multiply(&self, level: Level, rows: usize, x: &[f32], range: Range<usize>, out: &mut [f32]) {
        let right = product::Matrix::new(&self.transposed[range.start..], self.outputs);
        let left = product::Matrix::new(x, self.inputs);
        product::multiply(level, [rows, self.inputs, range.len()], left, right, Into::Store, out, range.len());
    }
}

/// A matrix and what is added to its product.
#[derive(Debug, Clone)]
pub(crate) struct Linear {
    pub(crate) weight: Matrix,
    /// `[outputs]`.
    pub(crate) bias: Vec<f32>,
}

/// A matrix that the members of a crew write together, each its own columns.
#[derive(Clone, Copy)]
pub(crate) struct Shared<'a> {
    start: *mut f32,
    len: usize,
    stride: usize,
    _values: core::marker::PhantomData<&'a mut [f32]>,
}

// SAFETY: access needs unsafe code, whose author promises that nobody else uses the part.
unsafe impl Send for Shared<'_> {}
// SAFETY: as above.
unsafe impl Sync for Shared<'_> {}

impl<'a> Shared<'a> {
    /// `values` as rows of `stride` elements.
    pub(crate) fn new(values: &'a mut [f32], stride: usize) -> Self {
        Self { start: values.as_mut_ptr(), len: values.len(), stride, _values: core::marker::PhantomData }
    }

    /// The elements `columns` of row `row`.
    ///
    /// # Safety
    /// No other slice that overlaps them may be in use.
    #[inline(always)]
    #[expect(clippy::mut_from_ref, reason = "parts of different members do not overlap")]
    pub(crate) unsafe fn part(&self, row: usize, columns: Range<usize>) -> &mut [f32] {
        let at = row * self.stride + columns.start;
        assert!(columns.start <= columns.end && at + columns.len() <= self.len, "a part outside its matrix");
        // SAFETY: in range by the assertion, alone by the caller's promise.
        unsafe { core::slice::from_raw_parts_mut(self.start.add(at), columns.len()) }
    }
}

/// The product of `rows` rows of `x` with a matrix whose outputs are `parts` equal parts, of which `groups` are wanted, cut over the
/// crew by channels of a part. `then(channels, values)` gets each piece, `values` being `[groups, rows, channels.len()]`.
///
/// `scratch` needs room for the wanted outputs of all rows; `x` is `[rows, inputs]`.
#[allow(clippy::too_many_arguments, reason = "a product and where its pieces go")]
pub(crate) fn product(
    pass: &Pass<'_>,
    matrix: &Matrix,
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
    pass.crew.split(channels, GRANULE, cost, |range| {
        let each = rows * range.len();
        let from = groups.len() * rows * range.start;
        // SAFETY: pieces have ranges of their own, and so parts of the scratch.
        let values = unsafe { scratch.part(0, from..from + groups.len() * each) };
        for (group, values) in groups.clone().zip(values.chunks_exact_mut(each.max(1))) {
            matrix.multiply(pass.level, rows, x, group * channels + range.start..group * channels + range.end, values);
        }
        then(range, values);
    });
}

impl Linear {
    /// `y += x Wᵀ + bias` for `rows` rows.
    ///
    /// # Shapes
    /// `x` `[rows, inputs]`, `y` `[rows, outputs]`; `scratch` has room for as much as `y`.
    pub(crate) fn add_to(&self, pass: &Pass<'_>, rows: usize, x: &[f32], scratch: &mut [f32], y: &mut [f32]) {
        let y = Shared::new(y, self.weight.outputs());
        product(pass, &self.weight, 1, 0..1, rows, x, scratch, |range, values| {
            for (row, values) in values.chunks_exact(range.len()).enumerate() {
                // SAFETY: pieces have ranges of their own.
                let y = unsafe { y.part(row, range.clone()) };
                crate::gates::add_biased(pass.level, values, &self.bias[range.clone()], y);
            }
        });
    }
}
