//! The process keeps the memory of one training iteration for the next.
//!
//! Training allocates and frees the same activations, 25 to 100 MB each, at every iteration. An allocator that hands them back to the
//! system pays for zeroed pages again each time: a third of a training step. How the allocators compare is in `benchmarks/NOTES.md`.

use mimalloc::MiMalloc;

#[global_allocator]
static GLOBAL: MiMalloc = MiMalloc;

/// Numbers of mimalloc's options (`mi_option_t` in mimalloc.h).
const ALLOW_LARGE_OS_PAGES: libmimalloc_sys::mi_option_t = libmimalloc_sys::mi_option_large_os_pages;
const PURGE_DELAY: libmimalloc_sys::mi_option_t = 15;

/// Tells the allocator to keep what is freed, and to take memory in large pages.
///
/// The environment variables `MIMALLOC_PURGE_DELAY` and `MIMALLOC_ALLOW_LARGE_OS_PAGES` take precedence if they are set.
pub fn retain_memory() {
    for (name, option, value) in [("PURGE_DELAY", PURGE_DELAY, -1), ("ALLOW_LARGE_OS_PAGES", ALLOW_LARGE_OS_PAGES, 1)] {
        if std::env::var_os(format!("MIMALLOC_{name}")).is_none() {
            // SAFETY: options are atomics of mimalloc, which is this program's allocator and has started.
            unsafe { libmimalloc_sys::mi_option_set(option, value) };
        }
    }
}

#[cfg(test)]
mod tests {
    #[test]
    fn the_purge_delay_has_the_number_we_think() {
        // The option after it has its number from the crate.
        assert_eq!(super::PURGE_DELAY, libmimalloc_sys::mi_option_use_numa_nodes - 1);
        super::retain_memory();
        // SAFETY: reads an atomic.
        assert_eq!(unsafe { libmimalloc_sys::mi_option_get(super::PURGE_DELAY) }, -1);
    }
}
