//! The number format of matrix products.

use std::cell::Cell;

use burn::tensor::{Device, FloatDType};

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

/// The format of activations that only operations with kernels see, on `device` in the current precision: bf16 on graphics processors
/// that store and multiply it, and f32 elsewhere.
pub fn activation_format(device: &Device) -> FloatDType {
    #[cfg(feature = "gpu")]
    if current() == Precision::Bf16 && super::gpu::works_in_bf16(device) {
        return FloatDType::BF16;
    }
    let _ = device;
    FloatDType::F32
}

/// The precision of products called now.
pub(super) fn current() -> Precision {
    CURRENT.get()
}
