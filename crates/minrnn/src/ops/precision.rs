//! The number format of matrix products, and of activations between them.

use std::cell::Cell;
use std::thread::LocalKey;

use burn::tensor::{Device, FloatDType};

pub use minrnn_kernels::matmul::Precision;

use super::fused::is_on_gpu;
#[cfg(feature = "gpu")]
use super::gpu::formats::works_in_bf16;

thread_local!(static CURRENT: Cell<Precision> = const { Cell::new(Precision::F32) });
thread_local!(static ACTIVATIONS: Cell<Option<FloatDType>> = const { Cell::new(None) });

/// Runs `work` with the matmuls it calls on this thread, and their backward passes, in `precision`. Everything else stays f32.
pub fn with_precision<R>(precision: Precision, work: impl FnOnce() -> R) -> R {
    scoped(&CURRENT, precision, work)
}

/// Runs `work` with activations in `format` on GPUs, whatever the precision and whether or not the device has matrix units for it: on
/// devices without bf16, f16 can test that a model's operations accept each other's formats.
pub fn with_activations<R>(format: FloatDType, work: impl FnOnce() -> R) -> R {
    scoped(&ACTIVATIONS, Some(format), work)
}

/// Runs `work` with another value of a setting of this thread.
fn scoped<T: Copy + 'static, R>(setting: &'static LocalKey<Cell<T>>, value: T, work: impl FnOnce() -> R) -> R {
    struct Restore<T: Copy + 'static>(&'static LocalKey<Cell<T>>, T);
    impl<T: Copy + 'static> Drop for Restore<T> {
        fn drop(&mut self) {
            self.0.set(self.1);
        }
    }
    let _restore = Restore(setting, setting.replace(value));
    work()
}

/// The format of activations passed only between operations with kernels, on `device` in the current precision: bf16 on GPUs that store and
/// multiply it, and f32 elsewhere.
pub fn activation_format(device: &Device) -> FloatDType {
    match ACTIVATIONS.get() {
        _ if !is_on_gpu(device) => FloatDType::F32,
        Some(format) => format,
        None if current() == Precision::Bf16 && works_in_bf16(device) => FloatDType::BF16,
        None => FloatDType::F32,
    }
}

#[cfg(not(feature = "gpu"))]
fn works_in_bf16(_: &Device) -> bool {
    false
}

/// The precision of products called now.
pub(super) fn current() -> Precision {
    CURRENT.get()
}
