//! Bias, dropout and residual on a device, with the masks of the CPU kernel: Threefry-2x32 of the key and the element's index.

use burn::backend::DType;
use burn_cubecl::kernel::cast;
use burn_cubecl::tensor::CubeTensor;
use cubecl::ir::ElemType;
use cubecl::prelude::*;

use super::super::dropout::{Dropout, Op};
use super::column_sums::{column_sums, vectors_over_cube};
use super::columns::{Columns, Sizes, first_row, place};
use super::op::GpuOp;
use super::tensors::{Like, ROWS, arg, arg_or, cubes, dims, elements, empty, empty_like_in, format, square, vector_size};

/// What a kernel is compiled for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(super) struct Plan {
    pub drops: bool,
    pub bias: bool,
    pub residual: bool,
}

/// Key and threshold of a mask, and the factor of what it keeps.
#[derive(CubeType, CubeLaunch, Clone, Copy)]
#[expand(derive(Clone, Copy))]
pub(super) struct Mask {
    pub key_low: u32,
    pub key_high: u32,
    pub threshold: u32,
    pub scale: f32,
}

fn mask(dropout: Dropout) -> MaskLaunch {
    let Dropout { probability, key } = dropout;
    let threshold = (f64::from(probability) * 4_294_967_296.0) as u32;
    MaskLaunch::new(key as u32, (key >> 32) as u32, threshold, 1.0 / (1.0 - probability))
}

impl Op {
    fn plan(&self) -> Plan {
        Plan { drops: self.dropout.probability > 0.0, bias: self.bias.is_some(), residual: self.residual.is_some() }
    }
}

impl GpuOp for Op {
    fn outputs_like(&self, inputs: &[Like]) -> Vec<Like> {
        // Where there is a residual, the sum is in its format.
        vec![inputs[0].cast(inputs[self.residual.unwrap_or(0)].dtype)]
    }

    fn forward(&self, inputs: &[CubeTensor]) -> Vec<CubeTensor> {
        let x = &inputs[0];
        let [rows, width] = dims(x);
        let y = empty_like_in(inputs[self.residual.unwrap_or(0)].dtype, x);
        let size = vector_size(width);
        let vectors = rows * width / size;
        let (count, dim) = elements(vectors);
        let bias = arg_or(self.bias.map(|i| &inputs[i]), x);
        let residual = arg_or(self.residual.map(|i| &inputs[i]), x);
        // SAFETY: the kernel stays inside the buffers; those it has no use for stand in for absent ones.
        unsafe {
            forward::launch_unchecked(
                &x.client,
                count,
                dim,
                size,
                arg(x),
                bias,
                residual,
                arg(&y),
                vectors,
                width / size,
                mask(self.dropout),
                self.plan(),
                format(x.dtype),
                format(y.dtype),
            );
        }
        vec![y]
    }

    fn backward(&self, _: &[Option<CubeTensor>], _: &[Option<CubeTensor>], d_outputs: &[Option<CubeTensor>]) -> Vec<CubeTensor> {
        let d_y = d_outputs[0].as_ref().expect("the only output");
        let [rows, width] = dims(d_y);
        let plan = self.plan();
        let x_dtype = DType::from(self.format);
        let mut d_inputs = Vec::with_capacity(3);
        if plan.drops || plan.bias {
            let cut = Columns::new(rows, width);
            let (d_x, sums) = (empty_like_in(x_dtype, d_y), empty(d_y, [cut.blocks, width]));
            // SAFETY: `d_x` is as large as `d_y`, and every block of rows has a row of `sums`.
            unsafe {
                backward::launch_unchecked(
                    &d_y.client,
                    cubes(cut.cubes()),
                    square(),
                    cut.size,
                    arg(d_y),
                    arg(&d_x),
                    arg(&sums),
                    cut.sizes(),
                    cut.cubes(),
                    mask(self.dropout),
                    plan,
                    format(x_dtype),
                    format(d_y.dtype),
                );
            }
            d_inputs.push(d_x);
            d_inputs.extend(self.bias.map(|_| column_sums(&sums)));
        } else {
            d_inputs.push(cast(d_y.clone(), x_dtype));
        }
        d_inputs.extend(self.residual.map(|_| d_y.clone()));
        d_inputs
    }
}

/// The factor of element `i`: 0 where dropped, 1 / (1 − p) where kept.
#[cube]
fn factor(i: usize, mask: &Mask) -> f32 {
    let i = i as u32;
    let counter = i / 32 * 16 + i % 16;
    let words = threefry(counter, mask);
    let word = select(i & 16 == 0, words.a, words.b);
    select(word < mask.threshold, 0.0f32, mask.scale)
}

/// The factors of the elements of vector `i`.
#[cube]
fn factors<N: Size>(i: usize, mask: &Mask) -> Vector<f32, N> {
    let mut factors = Vector::<f32, N>::empty();
    let size = factors.vector_size();
    #[unroll]
    for k in 0..size {
        factors.insert(k, factor(i * size + k, mask));
    }
    factors
}

#[derive(CubeType, Clone, Copy)]
#[expand(derive(Clone, Copy))]
struct Words {
    a: u32,
    b: u32,
}

/// Threefry-2x32-13 of a counter below 2³².
#[cube]
fn threefry(counter: u32, mask: &Mask) -> Words {
    let k0 = mask.key_low;
    let k1 = mask.key_high;
    let k2 = 0x1bd1_1bdau32 ^ k0 ^ k1;
    let x = Words { a: counter + k0, b: k1 };
    let x = round(round(round(round(x, 13u32), 15u32), 26u32), 6u32);
    let x = Words { a: x.a + k1, b: x.b + k2 + 1 };
    let x = round(round(round(round(x, 17u32), 29u32), 16u32), 24u32);
    let x = Words { a: x.a + k2, b: x.b + k0 + 2 };
    let x = round(round(round(round(x, 13u32), 15u32), 26u32), 6u32);
    let x = Words { a: x.a + k0, b: x.b + k1 + 3 };
    round(x, 17u32)
}

#[cube]
fn round(x: Words, #[comptime] rotation: u32) -> Words {
    let a = x.a + x.b;
    let turned = (x.b << rotation) | (x.b >> comptime!(32 - rotation));
    Words { a, b: turned ^ a }
}

/// `count` and `width` are of vectors.
#[cube(launch_unchecked)]
#[allow(clippy::too_many_arguments, reason = "buffers of a kernel")]
pub(super) fn forward<A: Float, Y: Float, N: Size>(
    x: &[Vector<A, N>],
    bias: &[Vector<f32, N>],
    residual: &[Vector<Y, N>],
    y: &mut [Vector<Y, N>],
    count: usize,
    width: usize,
    mask: Mask,
    #[comptime] plan: Plan,
    #[define(A)] _format: ElemType,
    #[define(Y)] _sum_format: ElemType,
) {
    if ABSOLUTE_POS >= count {
        terminate!();
    }
    let mut value = Vector::<f32, N>::cast_from(x[ABSOLUTE_POS]);
    if comptime!(plan.bias) {
        value += bias[ABSOLUTE_POS % width];
    }
    if comptime!(plan.drops) {
        value *= factors::<N>(ABSOLUTE_POS, &mask);
    }
    if comptime!(plan.residual) {
        value += Vector::<f32, N>::cast_from(residual[ABSOLUTE_POS]);
    }
    y[ABSOLUTE_POS] = Vector::<Y, N>::cast_from(value);
}

/// d_x, and over blocks of rows its sums.
#[cube(launch_unchecked)]
#[allow(clippy::too_many_arguments, reason = "buffers of a kernel")]
pub(super) fn backward<A: Float, Y: Float, N: Size>(
    d_y: &[Vector<Y, N>],
    d_x: &mut [Vector<A, N>],
    sums: &mut [Vector<f32, N>],
    sizes: Sizes,
    cubes: usize,
    mask: Mask,
    #[comptime] plan: Plan,
    #[define(A)] _format: ElemType,
    #[define(Y)] _sum_format: ElemType,
) {
    if CUBE_POS >= cubes {
        terminate!();
    }
    let place = place(&sizes);
    let width = sizes.width;
    let column = place.column;
    let mut sum = Vector::<f32, N>::new(0.0f32);
    if column < width {
        let mut row = first_row(&place, &sizes);
        while row < place.end {
            let at = row * width + column;
            let mut d = Vector::<f32, N>::cast_from(d_y[at]);
            if comptime!(plan.drops) {
                d *= factors::<N>(at, &mask);
            }
            d_x[at] = Vector::<A, N>::cast_from(d);
            sum += d;
            row += ROWS;
        }
    }
    let total = vectors_over_cube(sum);
    if UNIT_POS_Y == 0 && column < width {
        sums[place.block * width + column] = total;
    }
}
