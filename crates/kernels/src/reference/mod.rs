//! Short sequential versions of the kernels, generic over f32 and f64: the reference for tests of the fast ones.
//!
//! Arguments are in the kernels' order; results are returned as vectors.

pub mod adamw;
pub mod attention;
pub mod bf16;
pub mod block_diagonal;
pub mod conv;
pub mod cross_entropy;
pub mod delta;
pub mod dropout;
pub mod gated_gelu;
pub mod gelu;
pub mod gru;
pub mod head_norm;
pub mod highway;
pub mod layer_norm;
pub mod log_space;
pub mod lstm;
pub mod m_lstm;
pub mod matmul;
pub mod prefix_softmax;
pub mod recurrence;
pub mod retention;
pub mod rms_norm;
pub mod rotary;
pub mod rwkv4;
pub mod s_lstm;
pub mod scan;
pub mod selective_scan;
pub mod silu;
pub mod skip_gate;
pub mod state_space;
pub mod swi_glu;
pub mod weight_matrix;

use crate::shape::Candidate;
use alloc::{vec, vec::Vec};
use core::fmt::Debug;
use core::ops::{Add, AddAssign, Div, Mul, MulAssign, Neg, Sub, SubAssign};

/// f32 or f64.
pub trait Float:
    Copy
    + Debug
    + Default
    + PartialOrd
    + Add<Output = Self>
    + Sub<Output = Self>
    + Mul<Output = Self>
    + Div<Output = Self>
    + Neg<Output = Self>
    + AddAssign
    + SubAssign
    + MulAssign
{
    /// 0.
    const ZERO: Self;
    /// 1.
    const ONE: Self;
    /// −∞.
    const NEG_INFINITY: Self;
    /// The nearest value of this type.
    fn from_f64(x: f64) -> Self;
    /// This value as f64.
    fn to_f64(self) -> f64;
    /// e^x.
    fn exp(self) -> Self;
    /// Natural logarithm.
    fn ln(self) -> Self;
    /// ln(1 + x).
    fn ln_1p(self) -> Self;
    /// Hyperbolic tangent.
    fn tanh(self) -> Self;
    /// Square root.
    fn sqrt(self) -> Self;
    /// The error function.
    fn erf(self) -> Self;
    /// |x|.
    fn abs(self) -> Self;
    /// The larger one.
    fn max(self, other: Self) -> Self;
}

macro_rules! float {
    ($type:ty, $exp:ident, $ln:ident, $ln_1p:ident, $tanh:ident, $sqrt:ident, $erf:ident, $abs:ident, $max:ident) => {
        impl Float for $type {
            const ZERO: Self = 0.0;
            const ONE: Self = 1.0;
            const NEG_INFINITY: Self = <$type>::NEG_INFINITY;
            fn from_f64(x: f64) -> Self {
                x as $type
            }
            fn to_f64(self) -> f64 {
                self.into()
            }
            fn exp(self) -> Self {
                libm::$exp(self)
            }
            fn ln(self) -> Self {
                libm::$ln(self)
            }
            fn ln_1p(self) -> Self {
                libm::$ln_1p(self)
            }
            fn tanh(self) -> Self {
                libm::$tanh(self)
            }
            #[allow(clippy::disallowed_methods, reason = "no vector code is near")]
            fn sqrt(self) -> Self {
                libm::$sqrt(self)
            }
            fn erf(self) -> Self {
                libm::$erf(self)
            }
            fn abs(self) -> Self {
                libm::$abs(self)
            }
            fn max(self, other: Self) -> Self {
                libm::$max(self, other)
            }
        }
    };
}
float!(f32, expf, logf, log1pf, tanhf, sqrtf, erff, fabsf, fmaxf);
float!(f64, exp, log, log1p, tanh, sqrt, erf, fabs, fmax);

/// σ(x) = 1 / (1 + e^−x), without overflow.
pub fn sigmoid<T: Float>(x: T) -> T {
    if x < T::ZERO {
        let e = x.exp();
        e / (T::ONE + e)
    } else {
        T::ONE / (T::ONE + (-x).exp())
    }
}

/// sp(x) = ln(1 + e^x), without overflow.
pub fn softplus<T: Float>(x: T) -> T {
    if x > T::ZERO { x + (-x).exp().ln_1p() } else { x.exp().ln_1p() }
}

/// `length`, computed from `squares`, or NaN if these are not finite, as in the kernels.
fn of_finite<T: Float>(squares: T, length: T) -> T {
    if squares.to_f64().is_finite() { length } else { T::from_f64(f64::NAN) }
}

/// Adds the bias to every row of `x`, whose rows have `row` elements.
fn with_bias<T: Float>(x: &[T], row: usize, bias: Option<&[T]>) -> Vec<T> {
    let bias = |i: usize| bias.map_or(T::ZERO, |bias| bias[i % row]);
    x.iter().enumerate().map(|(i, &x)| x + bias(i)).collect()
}

/// Column sums of `x`, whose rows have `row` elements.
fn column_sums<T: Float>(x: &[T], row: usize) -> Vec<T> {
    let mut sums = vec![T::ZERO; row];
    for row in x.chunks_exact(row.max(1)) {
        sums.iter_mut().zip(row).for_each(|(sum, &x)| *sum += x);
    }
    sums
}

impl Candidate {
    /// h̃ of the pre-activation `v`.
    pub fn value<T: Float>(self, v: T) -> T {
        match self {
            Candidate::Positive if v < T::ZERO => sigmoid(v),
            Candidate::Positive => v + T::from_f64(0.5),
            Candidate::Identity => v,
            Candidate::Tanh => v.tanh(),
        }
    }

    /// dh̃/dv.
    pub fn slope<T: Float>(self, v: T) -> T {
        match self {
            Candidate::Positive if v < T::ZERO => sigmoid(v) * sigmoid(-v),
            Candidate::Positive | Candidate::Identity => T::ONE,
            Candidate::Tanh => T::ONE - v.tanh() * v.tanh(),
        }
    }
}
