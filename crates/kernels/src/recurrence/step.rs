//! One step of a block of channels, for token-by-token inference.

use super::Cell;
use super::cells::with_formulas;
use super::formulas::Formulas;
use super::gate::Gate;
use crate::out::Out;
use crate::shape::{Gates, expect_len};
use crate::simd::{Level, Simd, WithSimd, load, store};

/// The inputs of one step, for as many channels as the state has.
#[derive(Debug, Clone, Copy)]
pub struct StepInputs<'a> {
    /// The parts of the pre-activations, each `[E]`.
    pub preact: &'a [&'a [f32]],
    /// What is added to each, `[E]`.
    pub bias: &'a [&'a [f32]],
    /// The extra input `[E]`; empty for cells without.
    pub extra: &'a [f32],
}

/// Advances the state `h` `[E]` by one step, and also writes it to `out` `[E]`. Linear recurrences take no biases.
///
/// # Panics
/// When a length does not fit that of `h`, or the number of parts or biases does not fit the cell.
pub fn step(level: Level, cell: Cell, inputs: StepInputs, h: &mut [f32], out: &mut [f32]) {
    with_formulas!(cell, formulas => run(level, formulas, inputs, h, out));
}

fn run<F: Formulas<N>, const N: usize>(level: Level, formulas: F, inputs: StepInputs, h: &mut [f32], out: &mut [f32]) {
    let StepInputs { preact, bias, extra } = inputs;
    let biases = if F::BIASED { F::PARTS } else { 0 };
    assert!(preact.len() == F::PARTS, "preact: expected {} parts, found {}; check them against the cell", F::PARTS, preact.len());
    assert!(bias.len() == biases, "bias: expected {biases} parts, found {}; check them against the cell", bias.len());
    preact.iter().for_each(|x| expect_len("preact", x, h.len()));
    bias.iter().for_each(|x| expect_len("bias", x, h.len()));
    expect_len("extra", extra, if N > F::PARTS { h.len() } else { 0 });
    expect_len("out", out, h.len());
    level.run(Step {
        formulas,
        x: core::array::from_fn(|j| if j < F::PARTS { preact[j] } else { extra }),
        bias: core::array::from_fn(|j| if j < biases { bias[j] } else { &[] }),
        h,
        out,
    });
}

struct Step<'a, F, const N: usize> {
    formulas: F,
    x: [&'a [f32]; N],
    bias: [&'a [f32]; N],
    h: &'a mut [f32],
    out: &'a mut [f32],
}

impl<F: Formulas<N>, const N: usize> WithSimd for Step<'_, F, N> {
    type Output = ();

    #[inline(always)]
    fn with_simd<S: Simd>(self, simd: S) {
        // All are cut to one length, so that the compiler checks a vector's bounds once.
        let len = self.h.len();
        let x = self.x.map(|x| &x[..len]);
        let mut bias = self.bias;
        if F::BIASED {
            bias[..F::PARTS].iter_mut().for_each(|bias| *bias = &bias[..len]);
        }
        let out = Out::new(&mut self.out[..len]).slots();
        for at in (0..len).step_by(S::F32_LANES) {
            // No `map`: if it were not inlined, it would not have this level's instructions.
            let mut inputs = [simd.splat_f32s(0.0); N];
            for (j, input) in inputs.iter_mut().enumerate() {
                *input = load(simd, x[j], at);
                if F::BIASED && j < F::PARTS {
                    *input = simd.add_f32s(*input, load(simd, bias[j], at));
                }
            }
            let next = self.formulas.gate(simd, inputs).step(simd, load(simd, self.h, at));
            store(simd, Out::new(self.h).slots(), at, next);
            store(simd, out, at, next);
        }
    }
}
