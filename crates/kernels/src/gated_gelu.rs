//! Gated GELU: y = GELU(gate) ⊙ value ⊙ scale, the rows of x + bias being [value | gate] or [gate | value].
//!
//! Backward, with δ = d_y and the slope GELU' = Φ + gate φ:
//!
//! ```text
//! d_value = δ scale GELU(gate);   d_gate = δ scale value GELU'(gate);   d_bias = Σ [d_value | d_gate];   d_scale = Σ δ value GELU(gate)
//! ```

use crate::gelu::{biased, gelu};
use crate::grid::SharedOut;
use crate::rows::{self, accumulate};
use crate::shape::{Out, elements, expect_len};
use crate::simd::{self, Level, Simd, WithSimd};

/// Which half of a row is the gate.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Halves {
    /// [value | gate].
    ValueGate,
    /// [gate | value].
    GateValue,
}

impl Halves {
    /// Value and gate of a row, or of anything else cut likewise.
    #[inline(always)]
    fn split<T>(self, row: [T; 2]) -> [T; 2] {
        let [first, second] = row;
        match self {
            Self::ValueGate => [first, second],
            Self::GateValue => [second, first],
        }
    }
}

/// y = GELU(gate) ⊙ value ⊙ scale.
///
/// # Shapes
/// - `x`: `[rows, 2 · width]`, rows as `halves` says
/// - `bias`: `[2 · width]`, added to `x`; `None` is 0
/// - `scale`: `[width]`; `None` is 1
/// - `y`: `[rows, width]`
///
/// # Panics
/// When a length does not fit.
pub fn forward(rows: usize, width: usize, halves: Halves, x: &[f32], bias: Option<&[f32]>, scale: Option<&[f32]>, y: Out) {
    check(rows, width, x, bias, scale);
    expect_len("y", y, elements([rows, width]));
    let level = Level::current();
    let y = SharedOut::new(y);
    rows::for_each_block(rows, width, 0, |range, _| {
        // SAFETY: blocks are disjoint.
        let y = unsafe { y.slice(range.start * width, range.len() * width) };
        level.run(Forward { width, halves, x: &x[range.start * 2 * width..range.end * 2 * width], bias, scale, y });
    });
}

/// Gradients of [`forward`] with respect to `x`, `bias` and `scale`.
///
/// # Shapes
/// - `x`, `d_x`: `[rows, 2 · width]`
/// - `bias`, `d_bias`: `[2 · width]`
/// - `d_y`: `[rows, width]`
/// - `scale`, `d_scale`: `[width]`
///
/// # Panics
/// When a length does not fit.
#[allow(clippy::too_many_arguments, reason = "the kernels' flat convention: inputs, then outputs")]
pub fn backward(
    rows: usize,
    width: usize,
    halves: Halves,
    x: &[f32],
    bias: Option<&[f32]>,
    scale: Option<&[f32]>,
    d_y: &[f32],
    d_x: Out,
    d_bias: Option<Out>,
    d_scale: Option<Out>,
) {
    check(rows, width, x, bias, scale);
    expect_len("d_y", d_y, elements([rows, width]));
    expect_len("d_x", d_x, elements([rows, 2, width]));
    if let Some(d_scale) = &d_scale {
        expect_len("d_scale", d_scale, width);
    }
    if let Some(d_bias) = &d_bias {
        expect_len("d_bias", d_bias, elements([2, width]));
    }
    let level = Level::current();
    let d_x = SharedOut::new(d_x);
    let partial = rows::for_each_block(rows, width, 3 * width, |range, sums| {
        let at = range.start * 2 * width..range.end * 2 * width;
        // SAFETY: blocks are disjoint.
        let d_x = unsafe { d_x.slice(at.start, at.len()) };
        let d_y = &d_y[range.start * width..range.end * width];
        level.run(Backward { width, halves, x: &x[at], bias, scale, d_y, d_x, sums });
    });
    if let Some(d_scale) = d_scale {
        rows::combine(&partial, 3 * width, 2 * width, d_scale);
    }
    if let Some(d_bias) = d_bias {
        rows::combine(&partial, 3 * width, 0, d_bias);
    }
}

fn check(rows: usize, width: usize, x: &[f32], bias: Option<&[f32]>, scale: Option<&[f32]>) {
    expect_len("x", x, elements([rows, 2, width]));
    if let Some(scale) = scale {
        expect_len("scale", scale, width);
    }
    if let Some(bias) = bias {
        expect_len("bias", bias, elements([2, width]));
    }
}

/// `value ⊙ scale[at..]`, or `value` where there is no scale.
#[inline(always)]
fn times<S: Simd>(simd: S, value: S::f32s, scale: Option<&[f32]>, at: usize) -> S::f32s {
    match scale {
        Some(scale) => simd.mul_f32s(value, simd::load(simd, scale, at)),
        None => value,
    }
}

struct Forward<'a> {
    width: usize,
    halves: Halves,
    x: &'a [f32],
    bias: Option<&'a [f32]>,
    scale: Option<&'a [f32]>,
    y: Out<'a>,
}

impl WithSimd for Forward<'_> {
    type Output = ();

    #[inline(always)]
    fn with_simd<S: Simd>(self, simd: S) {
        let width = self.width;
        let [value_bias, gate_bias] = self.halves.split([self.bias.map(|b| &b[..width]), self.bias.map(|b| &b[width..])]);
        for (x, y) in self.x.chunks_exact(2 * width).zip(self.y.chunks_exact_mut(width)) {
            let [value_row, gate_row] = self.halves.split(x.split_at(width).into());
            for at in (0..width).step_by(S::F32_LANES) {
                let value = biased(simd, value_row, value_bias, at);
                let (active, _) = gelu(simd, biased(simd, gate_row, gate_bias, at));
                let scaled = times(simd, value, self.scale, at);
                simd::store(simd, y, at, simd.mul_f32s(active, scaled));
            }
        }
    }
}

struct Backward<'a> {
    width: usize,
    halves: Halves,
    x: &'a [f32],
    bias: Option<&'a [f32]>,
    scale: Option<&'a [f32]>,
    d_y: &'a [f32],
    d_x: Out<'a>,
    /// `[3, width]`: of both halves of d_x, and of d_scale.
    sums: &'a mut [f32],
}

impl WithSimd for Backward<'_> {
    type Output = ();

    #[inline(always)]
    fn with_simd<S: Simd>(self, simd: S) {
        let width = self.width;
        let [value_bias, gate_bias] = self.halves.split([self.bias.map(|b| &b[..width]), self.bias.map(|b| &b[width..])]);
        let (bias_sums, scale_sums) = self.sums.split_at_mut(2 * width);
        let [value_sums, gate_sums] = self.halves.split(bias_sums.split_at_mut(width).into());
        let rows = self.x.chunks_exact(2 * width).zip(self.d_y.chunks_exact(width)).zip(self.d_x.chunks_exact_mut(2 * width));
        for ((x, d_y), d_x) in rows {
            let [value_row, gate_row] = self.halves.split(x.split_at(width).into());
            let [d_value_row, d_gate_row] = self.halves.split(d_x.split_at_mut(width).into());
            for at in (0..width).step_by(S::F32_LANES) {
                let value = biased(simd, value_row, value_bias, at);
                let (active, slope) = gelu(simd, biased(simd, gate_row, gate_bias, at));
                let d = simd::load(simd, d_y, at);
                let scaled = times(simd, d, self.scale, at);
                let d_value = simd.mul_f32s(scaled, active);
                let d_gate = simd.mul_f32s(simd.mul_f32s(scaled, value), slope);
                simd::store(simd, d_value_row, at, d_value);
                simd::store(simd, d_gate_row, at, d_gate);
                accumulate(simd, value_sums, at, d_value);
                accumulate(simd, gate_sums, at, d_gate);
                accumulate(simd, scale_sums, at, simd.mul_f32s(d, simd.mul_f32s(value, active)));
            }
        }
    }
}
