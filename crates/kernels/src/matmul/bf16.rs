//! Products whose inputs are rounded to bf16 and whose sums stay f32.
//!
//! bf16 has f32's exponents and 8 bits of precision. A CPU with AVX512-BF16 multiplies two pairs per lane and instruction, twice as many as
//! f32. Inputs are rounded to nearest even while they are packed, so nothing is stored in bf16 between calls. Those below the smallest normal
//! f32 count as 0, those above the largest bf16 (3.39e38) become infinite, NaN stays NaN. The number of threads does not change a result.

use crate::simd::Level;

/// Whether products of the calling thread can take bf16 inputs: the CPU has AVX512-BF16, and the kernels are not held to lesser
/// instructions ([`Level::multiplies_bf16`]).
pub fn has_bf16() -> bool {
    Level::current().multiplies_bf16()
}
