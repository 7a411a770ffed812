//! Memory for a host without shared memory, such as a browser.

use std::alloc::{Layout, alloc, dealloc};

/// Every buffer is aligned for any number.
const ALIGNMENT: usize = 16;

/// `len` bytes of memory, or null.
#[unsafe(no_mangle)]
pub extern "C" fn minrnn_alloc(len: usize) -> *mut u8 {
    match Layout::from_size_align(len.max(1), ALIGNMENT) {
        // SAFETY: the size is not 0.
        Ok(layout) => unsafe { alloc(layout) },
        Err(_) => std::ptr::null_mut(),
    }
}

/// Frees the `len` bytes of memory at `memory`.
///
/// # Safety
/// They must come from [`minrnn_alloc`] and not have been freed.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn minrnn_dealloc(memory: *mut u8, len: usize) {
    if let (false, Ok(layout)) = (memory.is_null(), Layout::from_size_align(len.max(1), ALIGNMENT)) {
        // SAFETY: the caller's promise.
        unsafe { dealloc(memory, layout) }
    }
}
