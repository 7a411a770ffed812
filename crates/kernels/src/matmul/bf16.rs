//! Products whose inputs are rounded to bf16 and whose sums stay f32.
//!
//! bf16 has f32's exponents and 8 bits of precision. A CPU with AVX512-BF16 multiplies two pairs per lane and instruction. AMD's CPUs do so
//! in the time of one pair of f32; Intel's take four times as long, but also have AMX, which multiplies tiles of 16 × 16 numbers and is
//! used if the operating system lets the process have it. Inputs are rounded to nearest even while they are packed, so nothing is stored in
//! bf16 between calls. Inputs below the smallest normal f32 count as 0, those above the largest bf16 (3.39e38) become infinite, and NaN
//! stays NaN. Results do not depend on the number of threads.

use crate::simd::Level;

/// Whether products on the calling thread can use bf16 inputs: the CPU has AVX512-BF16, and kernels are not restricted to older
/// instructions ([`Level::multiplies_bf16`]).
pub fn has_bf16() -> bool {
    Level::current().multiplies_bf16()
}

/// Whether these products run in AMX tiles: [`has_bf16`], the CPU has them, the operating system lets this process use them (asked once,
/// and only on Linux), and `MINRNN_SIMD` is not `avx512`, which restricts kernels to AVX-512. AMX takes sums in another order.
pub fn has_tiles() -> bool {
    #[cfg(all(target_arch = "x86_64", feature = "std"))]
    return has_bf16() && crate::amx::is_available();
    #[cfg(not(all(target_arch = "x86_64", feature = "std")))]
    false
}
