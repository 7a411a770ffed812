//! The linear recurrence with positive coefficients and values given as logarithms: the paper's form (appendix B, after Heinsen).
//!
//! With S_t = Σ_{s≤t} ln a_s, ln h_t = S_t + ln Σ_{s≤t} e^{ln b_s − S_s}, where ln b_0 = ln h_0. Gradients use the closed forms of the
//! linear recurrence: ∂ln a_t = G_t a_t h_{t−1}, ∂ln b_t = G_t b_t.

use super::scan::{self, Outputs};
use super::{Float, scan::code};
use crate::segments::RESET;
use crate::shape::{Shape, Start, expect_len};
use alloc::{vec, vec::Vec};

/// Gradients of the log-space recurrence.
#[derive(Debug, Clone, PartialEq)]
pub struct Gradients<T> {
    /// With respect to ln a `[B, T, E]`.
    pub d_log_coeffs: Vec<T>,
    /// With respect to ln b `[B, T, E]`.
    pub d_log_values: Vec<T>,
    /// With respect to the carried state `[B, E]` (not its logarithm).
    pub d_h0: Vec<T>,
    /// With respect to the state that resets restore `[E]` (not its logarithm).
    pub d_init: Vec<T>,
}

/// A running ln Σ e^x as m + ln r, where m is the largest x.
#[derive(Clone, Copy)]
struct LogSum<T> {
    m: T,
    r: T,
}

impl<T: Float> LogSum<T> {
    fn of(x: T) -> Self {
        Self { m: x, r: T::ONE }
    }

    fn add(self, x: T) -> Self {
        if self.m == T::NEG_INFINITY {
            return Self::of(x);
        }
        let m = self.m.max(x);
        Self { m, r: self.r * (self.m - m).exp() + (x - m).exp() }
    }

    fn ln(self) -> T {
        self.m + self.r.ln()
    }
}

/// The states for ln a = `log_coeffs` and ln b = `log_values`, both `[B, T, E]`; the states of `start` are h ≥ 0.
///
/// # Panics
/// When a length does not fit `shape`.
pub fn forward<T: Float>(shape: Shape, log_coeffs: &[T], log_values: &[T], start: Start<T>) -> Outputs<T> {
    expect_len("log_coeffs", log_coeffs, shape.elements());
    expect_len("log_values", log_values, shape.elements());
    start.expect_fits(shape);
    let mut h = vec![T::ZERO; shape.elements()];
    let mut h_last = start.h0.map_or_else(|| vec![T::ZERO; shape.states()], <[T]>::to_vec);
    for b in 0..shape.batch {
        for e in 0..shape.width {
            let (mut s, mut sum) = (T::ZERO, LogSum::of(h_last[b * shape.width + e].ln()));
            for t in 0..start.segments.length(b, shape.seq_len) {
                let at = (b * shape.seq_len + t) * shape.width + e;
                if code(shape, start, b, t) == RESET {
                    (s, sum) = (T::ZERO, LogSum::of(start.init.map_or(T::ZERO, |init| init[e]).ln()));
                }
                if log_coeffs[at] == T::NEG_INFINITY {
                    // Everything before is forgotten; −∞ in S would leave −∞ + ∞ behind.
                    (s, sum) = (T::ZERO, LogSum::of(T::NEG_INFINITY));
                } else {
                    s += log_coeffs[at];
                }
                sum = sum.add(log_values[at] - s);
                h[at] = (s + sum.ln()).exp();
                h_last[b * shape.width + e] = h[at];
            }
        }
    }
    Outputs { h, h_last }
}

/// Gradients with respect to the logarithms and the states.
///
/// # Panics
/// When a length does not fit `shape`.
pub fn backward<T: Float>(
    shape: Shape,
    log_coeffs: &[T],
    log_values: &[T],
    start: Start<T>,
    h: &[T],
    d_h: Option<&[T]>,
    d_h_last: Option<&[T]>,
) -> Gradients<T> {
    let exp = |x: &[T]| x.iter().map(|x| x.exp()).collect::<Vec<T>>();
    let (coeffs, values) = (exp(log_coeffs), exp(log_values));
    let scan::Gradients { d_coeffs, d_values, d_h0, d_init } = scan::backward(shape, &coeffs, start, h, d_h, d_h_last);
    let times = |d: Vec<T>, x: Vec<T>| d.into_iter().zip(x).map(|(d, x)| d * x).collect();
    Gradients { d_log_coeffs: times(d_coeffs, coeffs), d_log_values: times(d_values, values), d_h0, d_init }
}
