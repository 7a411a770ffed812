//! The system's allocator behind a question, for tests of what is allocated and of what happens where memory is short.

use std::alloc::{GlobalAlloc, Layout, System};

/// Asks whether an allocation of so many bytes is granted.
pub struct Asking(pub fn(usize) -> bool);

// SAFETY: the system's allocator does the work, where it is done.
unsafe impl GlobalAlloc for Asking {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        if !(self.0)(layout.size()) {
            return std::ptr::null_mut();
        }
        // SAFETY: the caller's promise.
        unsafe { System.alloc(layout) }
    }

    unsafe fn dealloc(&self, pointer: *mut u8, layout: Layout) {
        // SAFETY: the caller's promise.
        unsafe { System.dealloc(pointer, layout) }
    }
}
