//! Functions of one number.

use cubecl::prelude::*;

/// 1 / x of an x from 2⁻¹⁰⁰ to 2¹⁰⁰, to its last bit or two.
///
/// An exact division is a branch on some devices, and none of a kernel's loads are moved to the front of one.
#[cube]
pub(super) fn reciprocal(x: f32) -> f32 {
    let root = x.inverse_sqrt();
    let near = root * root;
    fma(fma(-x, near, 1.0f32), near, near)
}

/// σ(x) and 1 − σ(x), both to their own last bits.
#[derive(CubeType, Clone, Copy)]
#[expand(derive(Clone, Copy))]
pub(super) struct Sigmoid {
    pub value: f32,
    pub rest: f32,
}

#[cube]
pub(super) fn sigmoid(x: f32) -> Sigmoid {
    let e = (-x.abs()).exp();
    let near = reciprocal(1.0 + e);
    let far = e * near;
    let not_negative = x >= 0.0;
    Sigmoid { value: select(not_negative, near, far), rest: select(not_negative, far, near) }
}

/// σ(min(x, 0)).
#[cube]
pub(super) fn positive_sigmoid(x: f32) -> f32 {
    let e = min(x, 0.0f32).exp();
    e * reciprocal(1.0 + e)
}

/// The hyperbolic tangent; never overflows.
#[cube]
pub(super) fn tanh(x: f32) -> f32 {
    let e = (x.abs() * -2.0f32).exp();
    let size = (1.0 - e) * reciprocal(1.0 + e);
    select(x >= 0.0, size, -size)
}

/// ln(1 + e^x), to its own last bits also where it is small.
#[cube]
pub(super) fn softplus(x: f32) -> f32 {
    // ln(1 + e) = 2 artanh(s) with s = e / (2 + e) ≤ 1/3: the logarithm of devices is only good to an absolute error near 1.
    let e = (-x.abs()).exp();
    let s = e * reciprocal(2.0 + e);
    let q = s * s;
    let series = fma(
        q,
        fma(q, fma(q, fma(q, fma(q, fma(q, 1.0f32 / 13.0, 1.0f32 / 11.0), 1.0f32 / 9.0), 1.0f32 / 7.0), 0.2f32), 1.0f32 / 3.0),
        1.0f32,
    );
    max(x, 0.0f32) + 2.0 * s * series
}

/// Φ(u), the normal distribution function, and its density.
#[derive(CubeType, Clone, Copy)]
#[expand(derive(Clone, Copy))]
pub(super) struct Normal {
    pub below: f32,
    pub density: f32,
}

/// By the rational approximation 7.1.26 of Abramowitz and Stegun, whose error is at most 1.5e−7.
#[cube]
pub(super) fn normal(u: f32) -> Normal {
    let bell = (u * u * -0.5f32).exp();
    // Further out both are at their ends.
    let t = reciprocal(fma(0.231_641_9f32, min(u.abs(), 1e6f32), 1.0f32));
    let polynomial = t * fma(t, fma(t, fma(t, fma(t, 1.061_405_4f32, -1.453_152f32), 1.421_413_7f32), -0.284_496_74f32), 0.254_829_6f32);
    let tail = polynomial * bell * 0.5f32;
    Normal { below: select(u >= 0.0, 1.0 - tail, tail), density: bell * 0.398_942_3 }
}
