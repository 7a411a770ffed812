//! The linear recurrence h_t = a_t h_{t−1} + b_t, step by step.
//!
//! After a reset before t, h_{t−1} is the initial state; a padding step keeps the state and outputs 0.

use super::Float;
use crate::segments::{CONTINUE, PADDING, RESET};
use crate::shape::{Shape, expect_len};
use crate::start::Start;
use alloc::{vec, vec::Vec};

/// The outputs of a recurrence.
#[derive(Debug, Clone, PartialEq)]
pub struct Outputs<T> {
    /// Every state `[B, T, E]`, 0 at padding.
    pub h: Vec<T>,
    /// The state at each row's end `[B, E]`.
    pub h_last: Vec<T>,
}

/// Gradients of the linear recurrence.
#[derive(Debug, Clone, PartialEq)]
pub struct Gradients<T> {
    /// With respect to a `[B, T, E]`.
    pub d_coeffs: Vec<T>,
    /// With respect to b `[B, T, E]`.
    pub d_values: Vec<T>,
    /// With respect to the carried state `[B, E]`.
    pub d_h0: Vec<T>,
    /// With respect to the state that resets restore `[E]`.
    pub d_init: Vec<T>,
}

/// The code of step `t` of row `b`.
pub fn code<T>(shape: Shape, start: Start<T>, b: usize, t: usize) -> i32 {
    start.segments.row(b, shape.seq_len).map_or(CONTINUE, |row| row[t])
}

/// h_{t−1} as step `t` of row `b` sees it, channel `e`.
pub fn state_before<T: Float>(shape: Shape, start: Start<T>, h: &[T], b: usize, t: usize, e: usize) -> T {
    if code(shape, start, b, t) == RESET {
        start.init.map_or(T::ZERO, |init| init[e])
    } else if t == 0 {
        start.h0.map_or(T::ZERO, |h0| h0[b * shape.width + e])
    } else {
        h[(b * shape.seq_len + t - 1) * shape.width + e]
    }
}

/// h_t = a_t h_{t−1} + b_t with a = `coeffs`, b = `values`, both `[B, T, E]`.
///
/// # Panics
/// When a length does not fit `shape`.
pub fn forward<T: Float>(shape: Shape, coeffs: &[T], values: &[T], start: Start<T>) -> Outputs<T> {
    expect_len("coeffs", coeffs, shape.elements());
    expect_len("values", values, shape.elements());
    start.expect_fits(shape);
    let mut h = vec![T::ZERO; shape.elements()];
    let mut h_last = start.h0.map_or_else(|| vec![T::ZERO; shape.states()], <[T]>::to_vec);
    for b in 0..shape.batch {
        for t in 0..start.segments.length(b, shape.seq_len) {
            for e in 0..shape.width {
                let at = (b * shape.seq_len + t) * shape.width + e;
                h[at] = coeffs[at] * state_before(shape, start, &h, b, t, e) + values[at];
                h_last[b * shape.width + e] = h[at];
            }
        }
    }
    Outputs { h, h_last }
}

/// G_t = ∂L/∂h_t + a_{t+1} G_{t+1} backwards; then ∂a_t = G_t h_{t−1}, ∂b_t = G_t. A gradient that is `None` is 0.
///
/// # Panics
/// When a length does not fit `shape`.
pub fn backward<T: Float>(shape: Shape, coeffs: &[T], start: Start<T>, h: &[T], d_h: Option<&[T]>, d_h_last: Option<&[T]>) -> Gradients<T> {
    expect_len("coeffs", coeffs, shape.elements());
    expect_len("h", h, shape.elements());
    start.expect_fits(shape);
    let zeros = |n| vec![T::ZERO; n];
    let (mut d_coeffs, mut d_values, mut d_init) = (zeros(shape.elements()), zeros(shape.elements()), zeros(shape.width));
    // What flows into the state before the current step; at the end, into h0.
    let mut carry = d_h_last.map_or_else(|| zeros(shape.states()), <[T]>::to_vec);
    for b in 0..shape.batch {
        for t in (0..shape.seq_len).rev() {
            let code = code(shape, start, b, t);
            for (e, d_init) in d_init.iter_mut().enumerate() {
                let (at, state) = ((b * shape.seq_len + t) * shape.width + e, b * shape.width + e);
                if code == PADDING {
                    continue;
                }
                let total = d_h.map_or(T::ZERO, |d_h| d_h[at]) + carry[state];
                d_coeffs[at] = total * state_before(shape, start, h, b, t, e);
                d_values[at] = total;
                carry[state] = coeffs[at] * total;
                if code == RESET {
                    *d_init += carry[state];
                    carry[state] = T::ZERO;
                }
            }
        }
    }
    Gradients { d_coeffs, d_values, d_h0: carry, d_init }
}
