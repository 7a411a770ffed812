//! Highway output, beyond the paper: y = s ⊙ (value + value_bias) + (1 − s) ⊙ x with s = σ(gate + gate_bias).
//!
//! Backward, with δ = d_y: d_value = s δ, d_x = (1 − s) δ, d_gate = δ (value − x) s (1 − s), biases the sums over rows.

use crate::gelu::biased;
use crate::grid::SharedOut;
use crate::rows::{self, accumulate};
use crate::shape::{Out, elements, expect_len};
use crate::simd::{self, Level, Simd, WithSimd, exp_neg_abs};

/// What is mixed, all `[rows, width]`, the biases `[width]`; a bias that is `None` is 0.
#[derive(Debug, Clone, Copy)]
pub struct Inputs<'a> {
    /// Pre-activation of the share s.
    pub gate: &'a [f32],
    /// Added to `gate`.
    pub gate_bias: Option<&'a [f32]>,
    /// What s lets in.
    pub value: &'a [f32],
    /// Added to `value`.
    pub value_bias: Option<&'a [f32]>,
    /// What 1 − s keeps.
    pub x: &'a [f32],
}

/// Where [`backward`] writes its gradients, in the shapes of [`Inputs`].
#[derive(Debug)]
pub struct Gradients<'a> {
    /// Of the gate.
    pub gate: Out<'a>,
    /// Of its bias, where wanted.
    pub gate_bias: Option<Out<'a>>,
    /// Of the value.
    pub value: Out<'a>,
    /// Of its bias, where wanted.
    pub value_bias: Option<Out<'a>>,
    /// Of x.
    pub x: Out<'a>,
}

impl<'a> Inputs<'a> {
    fn check(&self, rows: usize, width: usize) {
        for (name, part) in [("gate", self.gate), ("value", self.value), ("x", self.x)] {
            expect_len(name, part, elements([rows, width]));
        }
        self.gate_bias.inspect(|bias| expect_len("gate_bias", bias, width));
        self.value_bias.inspect(|bias| expect_len("value_bias", bias, width));
    }

    fn part(&self, at: core::ops::Range<usize>) -> Self {
        Self { gate: &self.gate[at.clone()], value: &self.value[at.clone()], x: &self.x[at], ..*self }
    }
}

/// Writes the mixture to `y` `[rows, width]`.
///
/// # Panics
/// When a length does not fit.
pub fn forward(rows: usize, width: usize, inputs: Inputs, y: Out) {
    inputs.check(rows, width);
    expect_len("y", y, elements([rows, width]));
    let (level, y) = (Level::current(), SharedOut::new(y));
    rows::for_each_block(rows, width, 0, |range, _| {
        let at = range.start * width..range.end * width;
        // SAFETY: blocks are disjoint.
        let y = unsafe { y.slice(at.start, at.len()) };
        level.run(Forward { width, inputs: inputs.part(at), y });
    });
}

/// Gradients of [`forward`], given `d_y` `[rows, width]`.
///
/// # Panics
/// When a length does not fit.
pub fn backward(rows: usize, width: usize, inputs: Inputs, d_y: &[f32], d: Gradients) {
    inputs.check(rows, width);
    expect_len("d_y", d_y, elements([rows, width]));
    for (name, out) in [("d_gate", &d.gate), ("d_value", &d.value), ("d_x", &d.x)] {
        expect_len(name, out, elements([rows, width]));
    }
    let level = Level::current();
    let outputs = [d.gate, d.value, d.x].map(SharedOut::new);
    let sums = rows::for_each_block(rows, width, 2 * width, |range, sums| {
        let at = range.start * width..range.end * width;
        // SAFETY: blocks are disjoint.
        let d = outputs.map(|out| unsafe { out.slice(at.start, at.len()) });
        level.run(Backward { width, inputs: inputs.part(at.clone()), d_y: &d_y[at], d, sums });
    });
    for (name, i, out) in [("d_gate_bias", 0, d.gate_bias), ("d_value_bias", 1, d.value_bias)] {
        if let Some(out) = out {
            expect_len(name, out, width);
            rows::combine(&sums, 2 * width, i * width, out);
        }
    }
}

/// s and 1 − s, both exact where they are small.
#[inline(always)]
fn shares<S: Simd>(simd: S, gate: S::f32s) -> [S::f32s; 2] {
    let one = simd.splat_f32s(1.0);
    let e = exp_neg_abs(simd, gate);
    let large = simd.div_f32s(one, simd.add_f32s(one, e));
    let small = simd.mul_f32s(e, large);
    let negative = simd.less_than_f32s(gate, simd.splat_f32s(0.0));
    [simd.select_f32s(negative, small, large), simd.select_f32s(negative, large, small)]
}

struct Forward<'a> {
    width: usize,
    inputs: Inputs<'a>,
    y: Out<'a>,
}

impl WithSimd for Forward<'_> {
    type Output = ();

    #[inline(always)]
    fn with_simd<S: Simd>(self, simd: S) {
        let Self { width, inputs, y } = self;
        for first in (0..y.len()).step_by(width) {
            let row = first..first + width;
            let (gate, value, x, y) = (&inputs.gate[row.clone()], &inputs.value[row.clone()], &inputs.x[row.clone()], &mut y[row]);
            for at in (0..width).step_by(S::F32_LANES) {
                let [share, rest] = shares(simd, biased(simd, gate, inputs.gate_bias, at));
                let kept = simd.mul_f32s(rest, simd::load(simd, x, at));
                simd::store(simd, y, at, simd.mul_add_e_f32s(share, biased(simd, value, inputs.value_bias, at), kept));
            }
        }
    }
}

struct Backward<'a> {
    width: usize,
    inputs: Inputs<'a>,
    d_y: &'a [f32],
    /// Of gate, value and x.
    d: [Out<'a>; 3],
    /// `[2, width]`: of the gradients of gate and value.
    sums: &'a mut [f32],
}

impl WithSimd for Backward<'_> {
    type Output = ();

    #[inline(always)]
    fn with_simd<S: Simd>(self, simd: S) {
        let Self { width, inputs, d_y, d: [d_gate, d_value, d_x], sums } = self;
        let (gate_sums, value_sums) = sums.split_at_mut(width);
        for first in (0..d_y.len()).step_by(width) {
            let row = first..first + width;
            let (gate, value, x, d_y) = (&inputs.gate[row.clone()], &inputs.value[row.clone()], &inputs.x[row.clone()], &d_y[row.clone()]);
            for at in (0..width).step_by(S::F32_LANES) {
                let [share, rest] = shares(simd, biased(simd, gate, inputs.gate_bias, at));
                let difference = simd.sub_f32s(biased(simd, value, inputs.value_bias, at), simd::load(simd, x, at));
                let d = simd::load(simd, d_y, at);
                let through = simd.mul_f32s(share, d);
                let of_gate = simd.mul_f32s(simd.mul_f32s(through, rest), difference);
                simd::store(simd, &mut d_gate[row.clone()], at, of_gate);
                simd::store(simd, &mut d_value[row.clone()], at, through);
                simd::store(simd, &mut d_x[row.clone()], at, simd.mul_f32s(rest, d));
                accumulate(simd, gate_sums, at, of_gate);
                accumulate(simd, value_sums, at, through);
            }
        }
    }
}
