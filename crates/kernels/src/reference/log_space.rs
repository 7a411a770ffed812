//! The linear recurrence with positive coefficients and values given as logarithms: the paper's form (Feng et al. 2024, appendix B, after
//! Heinsen 2023). Its gradients are those of the linear recurrence.
//!
//! With S_t = Σ_{s≤t} ln a_s, ln h_t = S_t + ln Σ_{s≤t} e^{ln b_s − S_s}, where ln b_0 = ln h_0.

use super::Float;
use super::scan::{Outputs, code};
use crate::segments::RESET;
use crate::shape::{Shape, expect_len};
use crate::start::Start;
use alloc::vec;

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
                    // Everything before is forgotten; with −∞ in S, later steps would compute −∞ + ∞.
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
