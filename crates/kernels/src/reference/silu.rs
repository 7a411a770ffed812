//! SiLU.

use super::{Float, sigmoid};
use alloc::vec::Vec;

/// x σ(x).
pub fn silu<T: Float>(x: T) -> T {
    x * sigmoid(x)
}

/// σ(x) (1 + x (1 − σ(x))), the derivative of [`silu`].
pub fn slope<T: Float>(x: T) -> T {
    sigmoid(x) * (T::ONE + x * sigmoid(-x))
}

/// y; as [`crate::silu::forward`].
pub fn forward<T: Float>(x: &[T]) -> Vec<T> {
    x.iter().map(|&x| silu(x)).collect()
}

/// d_x; as [`crate::silu::backward`] for one reader.
pub fn backward<T: Float>(x: &[T], d_y: &[T]) -> Vec<T> {
    x.iter().zip(d_y).map(|(&x, &d)| d * slope(x)).collect()
}
