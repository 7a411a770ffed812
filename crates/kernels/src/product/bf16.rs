//! Products whose inputs are rounded to bf16 and whose sums stay f32.
//!
//! bf16 has f32's exponents and 8 bits of precision. A CPU with AVX512-BF16 multiplies two pairs per lane and instruction, twice as many as
//! f32. Inputs are rounded to nearest even while they are packed, so nothing is stored in bf16 between calls.

use super::{Matrix, Precision};
use crate::shape::Out;
use crate::simd::Level;

/// Whether products of the calling thread can take bf16 inputs: the CPU has AVX512-BF16, and the kernels are not held to lesser
/// instructions ([`Level::multiplies_bf16`]).
pub fn has_bf16() -> bool {
    Level::current().multiplies_bf16()
}

/// `out[i, j] = Σ_k bf16(left[i, k]) · bf16(right[k, j])`, summed in f32, on the threads of the ambient pool.
///
/// Without [`has_bf16`] it is the f32 product ([`super::on_all_threads`]).
///
/// The number of threads does not change the result. Inputs below the smallest normal f32 count as 0; inputs above the largest bf16
/// (3.39e38) become infinite; NaN stays NaN.
///
/// # Shapes
/// `left` [rows, depth], `right` [depth, columns], `out` [rows, columns], dense.
///
/// # Panics
/// When an element lies outside its slice, or `out` has another length.
pub fn on_all_threads_bf16(sizes: [usize; 3], left: Matrix<'_>, right: Matrix<'_>, out: Out) {
    super::product(Precision::Bf16, sizes, left, right, None, out);
}
