//! The public products: lengths are checked and the format is chosen.

use super::bf16::Bf16;
#[cfg(all(target_arch = "x86_64", feature = "std"))]
use super::bytes::Bytes;
use super::codec::Codec;
use super::int4::{self, Int4};
use super::int8::{self, Int8};
use super::layout::Line;
use super::multiply::Product;
use super::rows::Rows;
use super::single::F32;
use super::target::Target;
use super::{Scratch, WeightFormat, WeightMatrix};
#[cfg(all(target_arch = "x86_64", feature = "std"))]
use super::{pairs, tiles};
use crate::shape::{elements, expect_len};
use crate::simd::Level;
use alloc::vec::Vec;
use core::marker::PhantomData;
use core::ops::Range;

/// The inputs of a product.
#[derive(Debug, Clone, Copy)]
pub struct Inputs<'a> {
    /// Rows of `x`.
    pub rows: usize,
    /// `[rows, inputs]`.
    pub x: &'a [f32],
    /// `[outputs]`, all of them whatever the range; `None` is 0.
    pub bias: Option<&'a [f32]>,
}

impl WeightMatrix {
    /// `y[r, i − outputs.start] = Σ_k x[r, k] · W[i, k] + bias[i]` for the outputs `i` in `outputs`, on the calling thread.
    ///
    /// Allocates nothing once `scratch` has grown to the matrix.
    ///
    /// # Shapes
    /// `y` `[rows, outputs.len()]`, rows `y_stride` elements apart; what is between them is unchanged.
    ///
    /// # Panics
    /// When a length does not fit, the range goes past the outputs, or rows of `y` overlap.
    pub fn multiply(&self, level: Level, inputs: Inputs<'_>, outputs: Range<usize>, y: &mut [f32], y_stride: usize, scratch: &mut Scratch) {
        let Inputs { rows, x, bias } = inputs;
        let (start, end) = (outputs.start, outputs.end);
        if rows == 0 || outputs.is_empty() {
            return;
        }
        expect_rows(y, rows, outputs.len(), y_stride);
        assert!(end <= self.outputs, "outputs {start}..{end} of a matrix with {}; ask for fewer", self.outputs);
        expect_len("x", x, elements([rows, self.inputs]));
        if let Some(bias) = bias {
            expect_len("bias", bias, self.outputs);
        }
        let y = y.as_mut_ptr();
        #[cfg(all(target_arch = "x86_64", feature = "std"))]
        if self.format == WeightFormat::Bf16 && level.multiplies_bf16() {
            let (layout, lines, inputs) = (self.layout(), self.words(), self.inputs);
            let in_tiles = tiles::take(&layout);
            let step = if in_tiles { tiles::STEP } else { 1 };
            let product = pairs::Product { layout, lines, rows, inputs, x, outputs, y, y_stride, bias, step };
            let packed = &mut scratch.lines;
            // SAFETY: the CPU has the instructions of the level and those for bf16, and AMX if tiles are used; `y` holds every row.
            return unsafe { if in_tiles { tiles::run(&product, packed) } else { product.run(packed) } };
        }
        let target = Target { outputs, y, stride: y_stride, bias };
        let (layout, inputs, Scratch { rows: memory, lines: panel }) = (self.layout(), self.inputs, scratch);
        match self.format {
            WeightFormat::F32 => self.run::<F32>(level, Rows::floating::<F32>(x, rows, inputs, &layout, memory), target, panel),
            WeightFormat::Bf16 => self.run::<Bf16>(level, Rows::floating::<Bf16>(x, rows, inputs, &layout, memory), target, panel),
            #[cfg(all(target_arch = "x86_64", feature = "std"))]
            WeightFormat::Int8 if level.multiplies_int8() => {
                let rows = Rows::rounded::<Bytes<Int8>>(level, x, rows, inputs, &layout, int8::ZERO as i32, memory);
                self.run::<Bytes<Int8>>(level, rows, target, panel);
            }
            #[cfg(all(target_arch = "x86_64", feature = "std"))]
            WeightFormat::Int4 if level.multiplies_int8() => {
                let rows = Rows::rounded::<Bytes<Int4>>(level, x, rows, inputs, &layout, int4::ZERO as i32, memory);
                self.run::<Bytes<Int4>>(level, rows, target, panel);
            }
            WeightFormat::Int8 => {
                let rows = Rows::rounded::<Int8>(level, x, rows, inputs, &layout, int8::ZERO as i32, memory);
                self.run::<Int8>(level, rows, target, panel);
            }
            WeightFormat::Int4 => {
                let rows = Rows::rounded::<Int4>(level, x, rows, inputs, &layout, int4::ZERO as i32, memory);
                self.run::<Int4>(level, rows, target, panel);
            }
        }
    }

    fn run<C: Codec>(&self, level: Level, rows: Rows<'_>, target: Target<'_>, panel: &mut Vec<Line>) {
        let (layout, lines, scales, format) = (self.layout(), self.words(), self.scales(), PhantomData::<C>);
        level.run(&mut Product { format, layout, lines, scales, rows, target, panel });
    }
}

/// Asserts that `y` holds `rows` rows of `width` elements, `stride` elements apart.
#[track_caller]
fn expect_rows(y: &[f32], rows: usize, width: usize, stride: usize) {
    assert!(rows == 1 || stride >= width, "y of a product: rows of {width} elements lie {stride} apart; make that at least {width}");
    let needed = (rows - 1).saturating_mul(stride).saturating_add(width);
    assert!(y.len() >= needed, "y of a product: expected at least {needed} elements, found {}; check it against the shape", y.len());
}

#[cfg(all(test, target_arch = "x86_64", feature = "std"))]
mod tests {
    use super::*;

    /// The product in pairs of integers, whatever the CPU can multiply.
    fn in_pairs<C: Codec>(matrix: &WeightMatrix, level: Level, x: &[f32], rows: usize, zero: u32) -> Vec<f32> {
        let (layout, outputs) = (matrix.layout(), matrix.outputs);
        let mut y = alloc::vec![0.0; rows * outputs];
        let mut memory = Default::default();
        let target = Target { outputs: 0..outputs, y: y.as_mut_ptr(), stride: outputs, bias: None };
        let rounded = Rows::rounded::<C>(level, x, rows, matrix.inputs, &layout, zero as i32, &mut memory);
        matrix.run::<C>(level, rounded, target, &mut Vec::new());
        y
    }

    #[test]
    fn bytes_give_the_bits_of_pairs() {
        let (outputs, inputs) = (70, 1100);
        let number = |i: usize| ((i * 2_654_435_761 % 1_000_003) as f32 - 500_001.0) / 1e5;
        let values: Vec<f32> = (0..outputs * inputs).map(number).collect();
        for rows in [1, 2, 4, 7, 13] {
            let x: Vec<f32> = (0..rows * inputs).map(|i| number(i + 17)).collect();
            for level in Level::available() {
                let of = |format| WeightMatrix::new(format, outputs, inputs, &values);
                let (int8, int4) = (of(WeightFormat::Int8), of(WeightFormat::Int4));
                let pairs = [in_pairs::<Int8>(&int8, level, &x, rows, int8::ZERO), in_pairs::<Int4>(&int4, level, &x, rows, int4::ZERO)];
                for (matrix, pairs) in [int8, int4].iter().zip(pairs) {
                    let mut y = alloc::vec![0.0; rows * outputs];
                    matrix.multiply(level, Inputs { rows, x: &x, bias: None }, 0..outputs, &mut y, outputs, &mut Scratch::default());
                    assert_eq!(y, pairs, "{} {} {rows} rows", level.name(), matrix.format.name());
                }
            }
        }
    }
}
