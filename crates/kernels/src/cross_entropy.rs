//! Softmax cross-entropy with a mask: the sum over rows of mask · (ln Σ e^logit − logit of the target).
//!
//! Backward: d_logits = scale · mask · (softmax(logits) − onehot(target)). The forward pass stores nothing: the sum of exponentials is
//! recomputed, so probabilities are never stored. Rows whose mask is 0 are not read: their logits may be NaN and their target anything.

use crate::grid::SharedOut;
use crate::out::{Out, Slots};
use crate::rows::{self, load_or};
use crate::shape::{elements, expect_len};
use crate::simd::{self, Level, Simd, WithSimd};
use alloc::vec;
use core::mem::MaybeUninit;

/// (Σ mask · nll, Σ mask), in nats, summed in f64 in row order.
///
/// # Shapes
/// - `logits`: `[rows, classes]`
/// - `targets`: `[rows]`, classes from 0
/// - `mask`: `[rows]`, weights of the rows; `None` is 1
///
/// A NaN among the logits of a row that counts makes the sum NaN.
///
/// # Panics
/// When a length does not fit or the target of a row that counts is not in `0..classes`.
pub fn forward(rows: usize, classes: usize, logits: &[f32], targets: &[i32], mask: Option<&[f32]>) -> (f64, f64) {
    check(rows, classes, logits, targets, mask);
    let level = Level::current();
    let mut losses = vec![MaybeUninit::new(0.0); rows];
    let shared = SharedOut::of(&mut losses);
    rows::for_each_block(rows, classes, 0, |range, _| {
        // SAFETY: blocks are disjoint.
        let losses = unsafe { shared.slice(range.start, range.len()) };
        let logits = &logits[range.start * classes..range.end * classes];
        level.run(Forward { classes, logits, targets: &targets[range.clone()], mask: mask.map(|mask| &mask[range]), losses });
    });
    let (mut loss, mut weight) = (0.0, 0.0);
    for (row, nll) in losses.iter().enumerate() {
        let w = mask.map_or(1.0, |mask| f64::from(mask[row]));
        if w != 0.0 {
            // SAFETY: initialised with 0 above.
            loss += w * unsafe { nll.assume_init() };
            weight += w;
        }
    }
    (loss, weight)
}

/// Gradient of `scale · Σ mask · nll` with respect to the logits; for a mean over rows, `scale` is the upstream gradient / Σ mask.
///
/// # Shapes
/// - `logits`, `d_logits`: `[rows, classes]`
/// - `targets`, `mask`: `[rows]`
///
/// # Panics
/// When a length does not fit or the target of a row that counts is not in `0..classes`.
pub fn backward(rows: usize, classes: usize, logits: &[f32], targets: &[i32], mask: Option<&[f32]>, scale: f32, d_logits: Out) {
    check(rows, classes, logits, targets, mask);
    d_logits.expect_len("d_logits", elements([rows, classes]));
    let level = Level::current();
    let d_logits = SharedOut::new(d_logits);
    rows::for_each_block(rows, classes, 0, |range, _| {
        let at = range.start * classes..range.end * classes;
        // SAFETY: blocks are disjoint.
        let d_logits = unsafe { d_logits.slice(at.start, at.len()) };
        let (targets, mask) = (&targets[range.clone()], mask.map(|mask| &mask[range]));
        level.run(Backward { classes, logits: &logits[at], targets, mask, scale, d_logits });
    });
}

fn check(rows: usize, classes: usize, logits: &[f32], targets: &[i32], mask: Option<&[f32]>) {
    expect_len("logits", logits, elements([rows, classes]));
    expect_len("targets", targets, rows);
    if let Some(mask) = mask {
        expect_len("mask", mask, rows);
    }
    for (row, &target) in targets.iter().enumerate() {
        let counts = mask.is_none_or(|mask| mask[row] != 0.0);
        let known = usize::try_from(target).is_ok_and(|target| target < classes);
        assert!(known || !counts, "targets: expected a class in 0..{classes}, found {target} in row {row}; mask the row or correct it");
    }
}

/// Largest logit of a row (a NaN may be passed over: it still reaches the sum of exponentials).
#[inline(always)]
fn largest<S: Simd>(simd: S, row: &[f32]) -> f32 {
    let mut most = simd.splat_f32s(f32::NEG_INFINITY);
    for at in (0..row.len()).step_by(S::F32_LANES) {
        most = simd.max_f32s(load_or(simd, row, at, f32::NEG_INFINITY), most);
    }
    simd.reduce_max_f32s(most)
}

struct Forward<'a> {
    classes: usize,
    logits: &'a [f32],
    targets: &'a [i32],
    mask: Option<&'a [f32]>,
    losses: &'a mut [MaybeUninit<f64>],
}

impl WithSimd for Forward<'_> {
    type Output = ();

    #[inline(always)]
    fn with_simd<S: Simd>(self, simd: S) {
        for (i, row) in self.logits.chunks_exact(self.classes).enumerate() {
            if self.mask.is_some_and(|mask| mask[i] == 0.0) {
                continue;
            }
            let most = largest(simd, row);
            let center = simd.splat_f32s(most);
            let mut sum = simd.splat_f32s(0.0);
            for at in (0..row.len()).step_by(S::F32_LANES) {
                let x = load_or(simd, row, at, f32::NEG_INFINITY);
                sum = simd.add_f32s(sum, simd::exp(simd, simd.sub_f32s(x, center)));
            }
            let margin = f64::from(most) - f64::from(row[self.targets[i] as usize]);
            self.losses[i].write(libm::log(f64::from(simd.reduce_sum_f32s(sum))) + margin);
        }
    }
}

struct Backward<'a> {
    classes: usize,
    logits: &'a [f32],
    targets: &'a [i32],
    mask: Option<&'a [f32]>,
    scale: f32,
    d_logits: Slots<'a>,
}

impl WithSimd for Backward<'_> {
    type Output = ();

    #[inline(always)]
    fn with_simd<S: Simd>(self, simd: S) {
        let rows = self.logits.chunks_exact(self.classes).zip(self.d_logits.chunks_exact_mut(self.classes));
        for (i, (row, d_row)) in rows.enumerate() {
            let weight = self.mask.map_or(1.0, |mask| mask[i]);
            if weight == 0.0 {
                d_row.fill(MaybeUninit::new(0.0));
                continue;
            }
            let center = simd.splat_f32s(largest(simd, row));
            let mut sum = simd.splat_f32s(0.0);
            for at in (0..row.len()).step_by(S::F32_LANES) {
                let x = load_or(simd, row, at, f32::NEG_INFINITY);
                let e = simd::exp(simd, simd.sub_f32s(x, center));
                sum = simd.add_f32s(sum, e);
                simd::store(simd, d_row, at, e);
            }
            let weight = weight * self.scale;
            let factor = simd.splat_f32s(weight / simd.reduce_sum_f32s(sum));
            // SAFETY: every element was stored above.
            let d_row = unsafe { core::slice::from_raw_parts_mut(d_row.as_mut_ptr().cast::<f32>(), d_row.len()) };
            rows::scale(simd, d_row, factor);
            d_row[self.targets[i] as usize] -= weight;
        }
    }
}
