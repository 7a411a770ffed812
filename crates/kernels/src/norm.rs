//! Rows divided by their spread: what LayerNorm, RMSNorm and the head norm share.
//!
//! With u = (x − c) / r, where c is 0 or the mean and r the spread of a part of a row, s the gain and δ = d_y:
//!
//! ```text
//! y = s ⊙ u + shift        d_x = (s δ − [mean(s δ)] − u mean(s δ u)) / r;   d_s = Σ δ u;   d_shift = Σ δ      (sums over rows)
//! ```
//!
//! Numbers whose squares overflow give NaN, never a silent zero: if the sum of squares of a part is not finite, all of its outputs and all
//! of its d_x are NaN, as if one of its numbers were NaN.
//!
//! The term in brackets is present if c is the mean. Only x is kept from the forward pass: c and r are recomputed while the row is in the
//! nearest cache.

use crate::grid::SharedOut;
use crate::out::{Out, Slots};
use crate::rows::{self, load_or};
use crate::shape::{elements, expect_len};
use crate::simd::{self, Level, Simd, WithSimd, add_to, load, mul_add, plus};
use core::ops::Range;

/// How a part of a row is measured.
pub(crate) trait Norm: Copy + Send + Sync {
    /// Whether the mean is subtracted first.
    const CENTRED: bool;
    /// Whether the gain is 1 + the stored number and there is no shift; otherwise the gain is the stored number and there is a shift.
    const AROUND_ONE: bool;

    /// Measures a part of a row.
    fn measure<S: Simd>(self, simd: S, part: &[f32]) -> Measure;
}

/// What a part of a row is divided by.
pub(crate) struct Measure {
    /// c.
    pub centre: f32,
    /// 1 / r.
    pub inverse: f32,
    /// Whether r is a constant and not a function of the row.
    pub constant: bool,
}

/// What is normalised: rows of `parts` parts, each by itself.
#[derive(Clone, Copy)]
pub(crate) struct Inputs<'a> {
    pub rows: usize,
    pub parts: usize,
    /// `[rows, width]`.
    pub x: &'a [f32],
    /// `[width]`, as it is stored.
    pub gain: &'a [f32],
}

impl Inputs<'_> {
    fn check(&self) {
        let (parts, width) = (self.parts, self.gain.len());
        assert!(parts > 0 && width.is_multiple_of(parts), "{parts} heads do not divide a width of {width}");
        expect_len("x", self.x, elements([self.rows, width]));
    }
}

/// y `[rows, width]`; `shift` `[width]` if the norm has one.
pub(crate) fn forward(norm: impl Norm, inputs: Inputs, shift: &[f32], y: Out) {
    inputs.check();
    let width = inputs.gain.len();
    y.expect_len("y", elements([inputs.rows, width]));
    let (level, y) = (Level::current(), SharedOut::new(y));
    rows::for_each_block(inputs.rows, width, 0, |rows, _| {
        // SAFETY: blocks have rows of their own.
        let y = unsafe { y.slice(rows.start * width, rows.len() * width) };
        level.run(Forward { norm, inputs, rows, shift, y });
    });
}

/// Gradients, given `d_y` `[rows, width]`; `d_residual`, the gradient that reaches `x` by another path, is added to `d_x`. `d_shift` is
/// given if the norm has a shift.
pub(crate) fn backward(
    norm: impl Norm,
    inputs: Inputs,
    d_y: &[f32],
    d_residual: Option<&[f32]>,
    d_x: Out,
    d_gain: Out,
    d_shift: Option<Out>,
) {
    inputs.check();
    let width = inputs.gain.len();
    expect_len("d_y", d_y, elements([inputs.rows, width]));
    d_residual.inspect(|d| expect_len("d_residual", d, elements([inputs.rows, width])));
    d_x.expect_len("d_x", elements([inputs.rows, width]));
    d_gain.expect_len("the gradient of the gain", width);
    d_shift.iter().for_each(|d| d.expect_len("the gradient of the shift", width));
    let (level, d_x) = (Level::current(), SharedOut::new(d_x));
    let sums = if d_shift.is_some() { 2 * width } else { width };
    let partial = rows::for_each_block(inputs.rows, width, sums, |rows, sums| {
        // SAFETY: blocks have rows of their own.
        let d_x = unsafe { d_x.slice(rows.start * width, rows.len() * width) };
        level.run(Backward { norm, inputs, rows, d_y, d_residual, d_x, sums });
    });
    rows::combine(&partial, sums, 0, d_gain);
    if let Some(d_shift) = d_shift {
        rows::combine(&partial, sums, width, d_shift);
    }
}

/// Mean and 1 / √(variance + ε) of the part.
#[derive(Clone, Copy)]
pub(crate) struct Standard<const AROUND_ONE: bool> {
    pub eps: f32,
}

impl<const AROUND_ONE: bool> Norm for Standard<AROUND_ONE> {
    const CENTRED: bool = true;
    const AROUND_ONE: bool = AROUND_ONE;

    #[inline(always)]
    fn measure<S: Simd>(self, simd: S, part: &[f32]) -> Measure {
        let n = part.len() as f32;
        let centre = sum::<S, false>(simd, part, 0.0) / n;
        let variance = sum::<S, true>(simd, part, centre) / n;
        Measure { centre, inverse: inverse_root(variance, self.eps), constant: false }
    }
}

/// `inverse`, that of a length or spread computed from `squares`, or NaN if these are not finite: 1 / ∞ is 0, and everything it multiplies would
/// silently become 0.
#[inline(always)]
pub(crate) fn of_finite(squares: f32, inverse: f32) -> f32 {
    if squares.is_finite() { inverse } else { f32::NAN }
}

/// 1 / √(`squares` + `eps`), NaN if `squares` is not finite: the factor that gives a row, a head or a key a length or spread of 1.
#[inline(always)]
pub fn inverse_root(squares: f32, eps: f32) -> f32 {
    of_finite(squares, 1.0 / simd::sqrt(squares + eps))
}

/// Σ (x − `centre`), or Σ (x − `centre`)².
#[inline(always)]
pub(crate) fn sum<S: Simd, const SQUARES: bool>(simd: S, row: &[f32], centre: f32) -> f32 {
    let lanes = S::F32_LANES;
    let whole = row.len() / (4 * lanes) * (4 * lanes);
    let mut sums = [simd.splat_f32s(0.0); 4];
    let c = simd.splat_f32s(centre);
    for at in (0..whole).step_by(4 * lanes) {
        for (k, sum) in sums.iter_mut().enumerate() {
            let d = simd.sub_f32s(load(simd, row, at + k * lanes), c);
            *sum = if SQUARES { mul_add(simd, d, d, *sum) } else { simd.add_f32s(*sum, d) };
        }
    }
    for at in (whole..row.len()).step_by(lanes) {
        // Lanes past the end must be 0 after the subtraction.
        let x = if centre == 0.0 { load(simd, row, at) } else { load_or(simd, row, at, centre) };
        let d = simd.sub_f32s(x, c);
        sums[0] = if SQUARES { mul_add(simd, d, d, sums[0]) } else { simd.add_f32s(sums[0], d) };
    }
    let [a, b, c, d] = sums;
    simd.reduce_sum_f32s(simd.add_f32s(simd.add_f32s(a, b), simd.add_f32s(c, d)))
}

struct Forward<'a, N> {
    norm: N,
    inputs: Inputs<'a>,
    rows: Range<usize>,
    shift: &'a [f32],
    y: Slots<'a>,
}

impl<N: Norm> WithSimd for Forward<'_, N> {
    type Output = ();

    #[inline(always)]
    fn with_simd<S: Simd>(self, simd: S) {
        let Inputs { parts, x, gain, .. } = self.inputs;
        let width = gain.len() / parts;
        let x = &x[self.rows.start * gain.len()..self.rows.end * gain.len()];
        for (i, (x, y)) in x.chunks_exact(width).zip(self.y.chunks_exact_mut(width)).enumerate() {
            let own = i % parts * width..(i % parts + 1) * width;
            let gain = &gain[own.clone()];
            let shift = if N::AROUND_ONE { &[] } else { &self.shift[own] };
            let Measure { centre, inverse, .. } = self.norm.measure(simd, x);
            let (centre, inverse) = (simd.splat_f32s(centre), simd.splat_f32s(inverse));
            for at in (0..width).step_by(S::F32_LANES) {
                let u = simd.mul_f32s(simd.sub_f32s(load(simd, x, at), centre), inverse);
                let shift = if N::AROUND_ONE { u } else { load(simd, shift, at) };
                simd::store(simd, y, at, mul_add(simd, u, load(simd, gain, at), shift));
            }
        }
    }
}

/// s δ.
#[inline(always)]
fn scaled<S: Simd, N: Norm>(simd: S, d: S::f32s, gain: S::f32s) -> S::f32s {
    mul_add(simd, d, gain, if N::AROUND_ONE { d } else { simd.splat_f32s(0.0) })
}

struct Backward<'a, N> {
    norm: N,
    inputs: Inputs<'a>,
    rows: Range<usize>,
    d_y: &'a [f32],
    d_residual: Option<&'a [f32]>,
    d_x: Slots<'a>,
    /// Of the gain, then of the shift.
    sums: &'a mut [f32],
}

impl<N: Norm> WithSimd for Backward<'_, N> {
    type Output = ();

    #[inline(always)]
    fn with_simd<S: Simd>(self, simd: S) {
        let Inputs { parts, x, gain, .. } = self.inputs;
        let all = self.rows.start * gain.len()..self.rows.end * gain.len();
        let width = gain.len() / parts;
        let (d_gain, d_shift) = self.sums.split_at_mut(gain.len());
        let rows = x[all.clone()].chunks_exact(width).zip(self.d_y[all.clone()].chunks_exact(width)).zip(self.d_x.chunks_exact_mut(width));
        for (i, ((x, d_y), d_x)) in rows.enumerate() {
            let d_residual = self.d_residual.map(|d| &d[all.start + i * width..][..width]);
            let own = i % parts * width..(i % parts + 1) * width;
            let (gain, d_gain) = (&gain[own.clone()], &mut d_gain[own.clone()]);
            let d_shift = if N::AROUND_ONE { &mut [] } else { &mut d_shift[own] };
            let Measure { centre, inverse, constant } = self.norm.measure(simd, x);
            let (centre, inverse) = (simd.splat_f32s(centre), simd.splat_f32s(inverse));
            let (mut mean, mut along) = (simd.splat_f32s(0.0), simd.splat_f32s(0.0));
            for at in (0..width).step_by(S::F32_LANES) {
                let u = simd.mul_f32s(simd.sub_f32s(load(simd, x, at), centre), inverse);
                let d = load(simd, d_y, at);
                let scaled = scaled::<S, N>(simd, d, load(simd, gain, at));
                mean = simd.add_f32s(mean, scaled);
                along = mul_add(simd, scaled, u, along);
                add_to(simd, d_gain, at, simd.mul_f32s(d, u));
                if !N::AROUND_ONE {
                    add_to(simd, d_shift, at, d);
                }
            }
            let mean = simd.splat_f32s(if N::CENTRED { simd.reduce_sum_f32s(mean) / width as f32 } else { 0.0 });
            let along = simd.splat_f32s(if constant { 0.0 } else { simd.reduce_sum_f32s(along) / width as f32 });
            for at in (0..width).step_by(S::F32_LANES) {
                let u = simd.mul_f32s(simd.sub_f32s(load(simd, x, at), centre), inverse);
                let scaled = scaled::<S, N>(simd, load(simd, d_y, at), load(simd, gain, at));
                let d = simd.sub_f32s(simd.sub_f32s(scaled, mean), simd.mul_f32s(u, along));
                simd::store(simd, d_x, at, plus(simd, simd.mul_f32s(d, inverse), d_residual, at));
            }
        }
    }
}
