//! AMX's tile registers: whether there are any, and their shapes. They are used in assembly elsewhere.

use crate::simd::Level;
use core::arch::asm;
use core::arch::x86_64::{__cpuid, __cpuid_count};
use std::sync::OnceLock;

/// Rows of a tile register, and words of 32 bits in one of its rows.
pub(crate) const SIDE: usize = 16;

/// Whether the CPU has AMX for bf16, this process may use it, and `MINRNN_SIMD` does not hold the kernels to AVX-512. The first call asks the
/// operating system.
pub(crate) fn is_available() -> bool {
    static AVAILABLE: OnceLock<bool> = OnceLock::new();
    *AVAILABLE.get_or_init(|| {
        const BF16: u32 = 1 << 22;
        const TILE: u32 = 1 << 24;
        let has = |bits: u32| __cpuid(0).eax >= 7 && __cpuid_count(7, 0).edx & bits == bits;
        let held = std::env::var(Level::VARIABLE).is_ok_and(|level| level == "avx512");
        !held && has(BF16 | TILE) && permitted()
    })
}

/// Whether the operating system lets this process keep tiles: it must make room for 8 KiB in each thread's state.
fn permitted() -> bool {
    #[cfg(target_os = "linux")]
    {
        const ARCH_REQ_XCOMP_PERM: libc::c_int = 0x1023;
        const XFEATURE_XTILEDATA: libc::c_ulong = 18;
        // SAFETY: changes nothing but what the process may do; Linux versions that do not know the request refuse it.
        unsafe { libc::syscall(libc::SYS_arch_prctl, ARCH_REQ_XCOMP_PERM, XFEATURE_XTILEDATA) == 0 }
    }
    #[cfg(not(target_os = "linux"))]
    false
}

/// The shapes of the tile registers, as `ldtilecfg` reads them.
#[repr(C, align(64))]
pub(crate) struct Shapes {
    palette: u8,
    first_row: u8,
    reserved: [u8; 14],
    /// Bytes of a row.
    widths: [u16; 16],
    rows: [u8; 16],
}

impl Shapes {
    /// Every register has [`SIDE`] rows of [`SIDE`] words, except that those of the sums and the left side (0 to 5) have `rows` rows.
    pub(crate) const fn new(rows: usize) -> Self {
        assert!(rows > 0 && rows <= SIDE);
        let (few, all) = (rows as u8, SIDE as u8);
        Self {
            palette: 1,
            first_row: 0,
            reserved: [0; 14],
            widths: [64, 64, 64, 64, 64, 64, 64, 64, 0, 0, 0, 0, 0, 0, 0, 0],
            rows: [few, few, few, few, few, few, all, all, 0, 0, 0, 0, 0, 0, 0, 0],
        }
    }

    /// Runs `work` with registers of these shapes.
    ///
    /// # Safety
    /// [`is_available`], and `work` neither leaves the thread nor comes here again.
    #[inline(always)]
    pub(crate) unsafe fn with<R>(&self, work: impl FnOnce() -> R) -> R {
        // SAFETY: the caller's promise. Nothing else uses tiles, and none are left in use.
        unsafe { asm!("ldtilecfg [{}]", in(reg) core::ptr::from_ref(self), options(nostack, readonly, preserves_flags)) };
        let _release = Release;
        work()
    }
}

/// Gives the registers back, even if the work done with them panics: a thread that keeps them carries 8 KiB through every context switch. It exists only
/// while they are in use.
struct Release;

impl Drop for Release {
    #[inline(always)]
    fn drop(&mut self) {
        // SAFETY: there are tile registers, and they are no longer read.
        unsafe { asm!("tilerelease", options(nostack, nomem, preserves_flags)) };
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The registers' current shapes, all 0 if they are not in use.
    fn shapes_in_use() -> [u8; 64] {
        let mut shapes = [u8::MAX; 64];
        // SAFETY: there are tile registers, and room for their shapes.
        unsafe { asm!("sttilecfg [{}]", in(reg) shapes.as_mut_ptr(), options(nostack, preserves_flags)) };
        shapes
    }

    #[test]
    fn the_registers_are_given_back_also_by_a_panic() {
        if !is_available() {
            return;
        }
        assert_eq!(shapes_in_use(), [0; 64]);
        // SAFETY: they are available, and only their shapes are read.
        let within = unsafe { Shapes::new(SIDE).with(shapes_in_use) };
        assert_eq!((within[0], shapes_in_use()), (1, [0; 64]));
        // SAFETY: they are available, and nothing is done with them.
        let panicked = std::panic::catch_unwind(|| unsafe { Shapes::new(SIDE).with::<()>(|| std::panic::resume_unwind(Box::new(()))) });
        assert!(panicked.is_err());
        assert_eq!(shapes_in_use(), [0; 64]);
    }
}
