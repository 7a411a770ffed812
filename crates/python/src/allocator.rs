//! Makes the system's allocator keep the memory of one training iteration for the next, as the binary's allocator does: pages handed back to the system
//! would have to be zeroed again every time. For glibc only.

/// Allocations up to this size are kept when freed: the most that glibc accepts.
#[cfg(all(target_os = "linux", target_env = "gnu"))]
const KEPT: libc::c_int = 32 << 20;

/// Keeps freed memory until it is [`released`](release).
pub(crate) fn retain() {
    #[cfg(all(target_os = "linux", target_env = "gnu"))]
    // SAFETY: both calls set a number under a lock of glibc's own.
    unsafe {
        libc::mallopt(libc::M_MMAP_THRESHOLD, KEPT);
        libc::mallopt(libc::M_TRIM_THRESHOLD, libc::c_int::MAX);
    }
}

/// Hands unused memory back to the system.
pub(crate) fn release() {
    #[cfg(all(target_os = "linux", target_env = "gnu"))]
    // SAFETY: it takes the same locks as every allocation.
    unsafe {
        libc::malloc_trim(0);
    }
}
