//! The tile registers of AMX: whether there are any, and their shapes. What is done with them is where it is done, in assembly.

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
        // SAFETY: changes nothing but what the process may do; kernels that do not know the request refuse it.
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
    /// Every register has [`SIDE`] rows of [`SIDE`] words, those of sums and of a left side (0 to 5) `rows` rows.
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
        unsafe {
            asm!("ldtilecfg [{}]", in(reg) core::ptr::from_ref(self), options(nostack, readonly, preserves_flags));
            let result = work();
            asm!("tilerelease", options(nostack, nomem, preserves_flags));
            result
        }
    }
}
