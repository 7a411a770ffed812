//! The number format of matrix products.

use std::cell::Cell;

pub use minrnn_kernels::product::Precision;

thread_local!(static CURRENT: Cell<Precision> = const { Cell::new(Precision::F32) });

/// Runs `work` with the products it calls on this thread, and their backward passes, in `precision`. Everything else stays f32.
pub fn with_precision<R>(precision: Precision, work: impl FnOnce() -> R) -> R {
    struct Restore(Precision);
    impl Drop for Restore {
        fn drop(&mut self) {
            CURRENT.set(self.0);
        }
    }
    let _restore = Restore(CURRENT.replace(precision));
    work()
}

/// The precision of products called now.
pub(super) fn current() -> Precision {
    CURRENT.get()
}
