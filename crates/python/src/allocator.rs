//! The system's allocator keeps the memory of one training iteration for the next, as the binary's own does: handed back to the system, its pages would have
//! to be zeroed again every time. Only the C library of GNU is told so.

/// Allocations up to this size are kept when they are freed: the most that the library takes.
#[cfg(all(target_os = "linux", target_env = "gnu"))]
const KEPT: libc::c_int = 32 << 20;

/// Memory is kept, until it is [`released`](release).
pub(crate) fn retain() {
    #[cfg(all(target_os = "linux", target_env = "gnu"))]
    // SAFETY: both set a number under a lock of the library's own.
    unsafe {
        libc::mallopt(libc::M_MMAP_THRESHOLD, KEPT);
        libc::mallopt(libc::M_TRIM_THRESHOLD, libc::c_int::MAX);
    }
}

/// Hands back what nothing uses.
pub(crate) fn release() {
    #[cfg(all(target_os = "linux", target_env = "gnu"))]
    // SAFETY: it takes the locks that every allocation takes.
    unsafe {
        libc::malloc_trim(0);
    }
}
