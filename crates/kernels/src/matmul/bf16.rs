//! Products whose inputs are rounded to bf16 and whose sums stay f32.
//!
//! bf16 has f32's exponents and 8 bits of precision. A CPU with AVX512-BF16 multiplies two pairs per lane and instruction, AMD's in the time of one pair
//! of f32. Intel's takes four times that, but the same CPUs have AMX, which multiplies tiles of 16 × 16 numbers: it is used where the operating
//! system lets a process have it. Inputs are rounded to nearest even while they are packed, so nothing is stored in bf16 between calls.
//! Those below the smallest normal f32 count as 0, those above the largest bf16 (3.39e38) become infinite, NaN stays NaN. The number of threads
//! does not change a result.

use crate::simd::Level;

/// Whether products of the calling thread can take bf16 inputs: the CPU has AVX512-BF16, and the kernels are not held to lesser
/// instructions ([`Level::multiplies_bf16`]).
pub fn has_bf16() -> bool {
    Level::current().multiplies_bf16()
}

/// Whether these products run in the tiles of AMX: [`has_bf16`], the CPU has them, the operating system lets this process use them (it is asked once,
/// and only Linux is), and `MINRNN_SIMD` is not `avx512`, which holds the kernels to AVX-512. Sums are then taken in another order.
pub fn has_tiles() -> bool {
    #[cfg(all(target_arch = "x86_64", feature = "std"))]
    return has_bf16() && crate::amx::is_available();
    #[cfg(not(all(target_arch = "x86_64", feature = "std")))]
    false
}
