//! Bias and exact GELU on a device, plain and gated.

use burn_cubecl::tensor::CubeTensor;
use cubecl::ir::ElemType;
use cubecl::prelude::*;

use super::super::gelu::{BiasGatedGelu, BiasGelu};
use super::column_sums::{column_sums, vectors_over_cube};
use super::columns::{Columns, Sizes, first_row, place};
use super::elementary::normal;
use super::op::GpuOp;
use super::tensors::{Like, ROWS, arg, cubes, dims, elements, empty, empty_in, empty_like, format, square, vector_size};

impl GpuOp for BiasGelu {
    fn outputs_like(&self, inputs: &[Like]) -> Vec<Like> {
        vec![inputs[0].clone()]
    }

    fn forward(&self, inputs: &[CubeTensor]) -> Vec<CubeTensor> {
        let [rows, width] = dims(&inputs[0]);
        let y = empty_like(&inputs[0]);
        let size = vector_size(width);
        let vectors = rows * width / size;
        let (count, dim) = elements(vectors);
        let [x, bias] = [0, 1].map(|i: usize| arg(&inputs[i]));
        // SAFETY: the kernel stays inside the buffers.
        unsafe { forward::launch_unchecked(&y.client, count, dim, size, x, bias, arg(&y), vectors, width / size, format(y.dtype)) };
        vec![y]
    }

    fn backward(&self, inputs: &[Option<CubeTensor>], _: &[Option<CubeTensor>], d_outputs: &[Option<CubeTensor>]) -> Vec<CubeTensor> {
        let [x, bias] = [0, 1].map(|i| inputs[i].as_ref().expect("kept"));
        let d_y = d_outputs[0].as_ref().expect("the only output");
        let [rows, width] = dims(x);
        let cut = Columns::new(rows, width);
        let (d_x, sums) = (empty_like(x), empty(x, [cut.blocks, width]));
        // SAFETY: the kernel stays inside the buffers.
        unsafe {
            backward::launch_unchecked(
                &x.client,
                cubes(cut.cubes()),
                square(),
                cut.size,
                arg(x),
                arg(bias),
                arg(d_y),
                arg(&d_x),
                arg(&sums),
                cut.sizes(),
                cut.cubes(),
                format(x.dtype),
            );
        }
        vec![d_x, column_sums(&sums)]
    }
}

impl GpuOp for BiasGatedGelu {
    fn outputs_like(&self, inputs: &[Like]) -> Vec<Like> {
        let [rows, double] = inputs[0].shape.dims();
        vec![inputs[0].reshaped([rows, double / 2])]
    }

    fn forward(&self, inputs: &[CubeTensor]) -> Vec<CubeTensor> {
        let [rows, double] = dims(&inputs[0]);
        let width = double / 2;
        let y = empty_in(inputs[0].dtype, &inputs[0], [rows, width]);
        let size = vector_size(width);
        let vectors = rows * width / size;
        let (count, dim) = elements(vectors);
        let [x, scale, bias] = [0, 1, 2].map(|i| arg(&inputs[i]));
        // SAFETY: the kernel stays inside the buffers.
        unsafe {
            let (width, format) = (width / size, format(y.dtype));
            forward_gated::launch_unchecked(&y.client, count, dim, size, x, bias, scale, arg(&y), vectors, width, format);
        }
        vec![y]
    }

    fn backward(&self, inputs: &[Option<CubeTensor>], _: &[Option<CubeTensor>], d_outputs: &[Option<CubeTensor>]) -> Vec<CubeTensor> {
        let [x, scale, bias] = [0, 1, 2].map(|i| inputs[i].as_ref().expect("kept"));
        let d_y = d_outputs[0].as_ref().expect("the only output");
        let [rows, double] = dims(x);
        let width = double / 2;
        let cut = Columns::new(rows, width);
        let d_x = empty_like(x);
        let (bias_sums, scale_sums) = (empty(x, [cut.blocks, double]), empty(x, [cut.blocks, width]));
        // SAFETY: the kernel stays inside the buffers.
        unsafe {
            backward_gated::launch_unchecked(
                &x.client,
                cubes(cut.cubes()),
                square(),
                cut.size,
                arg(x),
                arg(bias),
                arg(scale),
                arg(d_y),
                arg(&d_x),
                arg(&bias_sums),
                arg(&scale_sums),
                cut.sizes(),
                cut.cubes(),
                format(x.dtype),
            );
        }
        vec![d_x, column_sums(&scale_sums), column_sums(&bias_sums)]
    }
}

/// `count` and `width` are of vectors, also in the gated form.
#[cube(launch_unchecked)]
pub(super) fn forward<A: Float, N: Size>(
    x: &[Vector<A, N>],
    bias: &[Vector<f32, N>],
    y: &mut [Vector<A, N>],
    count: usize,
    width: usize,
    #[define(A)] _format: ElemType,
) {
    if ABSOLUTE_POS >= count {
        terminate!();
    }
    let shifted = Vector::<f32, N>::cast_from(x[ABSOLUTE_POS]) + bias[ABSOLUTE_POS % width];
    let mut active = Vector::<A, N>::empty();
    #[unroll]
    for k in 0..shifted.vector_size() {
        let u = shifted.extract(k);
        active.insert(k, A::cast_from(u * normal(u).below));
    }
    y[ABSOLUTE_POS] = active;
}

/// d_x, and over blocks of rows its sums.
#[cube(launch_unchecked)]
#[allow(clippy::too_many_arguments, reason = "buffers of a kernel")]
pub(super) fn backward<A: Float, N: Size>(
    x: &[Vector<A, N>],
    bias: &[Vector<f32, N>],
    d_y: &[Vector<A, N>],
    d_x: &mut [Vector<A, N>],
    sums: &mut [Vector<f32, N>],
    sizes: Sizes,
    cubes: usize,
    #[define(A)] _format: ElemType,
) {
    if CUBE_POS >= cubes {
        terminate!();
    }
    let place = place(&sizes);
    let width = sizes.width;
    let column = place.column;
    let mut sum = Vector::<f32, N>::new(0.0f32);
    if column < width {
        let shift = bias[column];
        let mut row = first_row(&place, &sizes);
        while row < place.end {
            let at = row * width + column;
            let shifted = Vector::<f32, N>::cast_from(x[at]) + shift;
            let mut slopes = Vector::<f32, N>::empty();
            #[unroll]
            for k in 0..shifted.vector_size() {
                let u = shifted.extract(k);
                let normal = normal(u);
                slopes.insert(k, fma(u, normal.density, normal.below));
            }
            let d = Vector::<f32, N>::cast_from(d_y[at]) * slopes;
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

#[cube(launch_unchecked)]
pub(super) fn forward_gated<A: Float, N: Size>(
    x: &[Vector<A, N>],
    bias: &[Vector<f32, N>],
    scale: &[Vector<f32, N>],
    y: &mut [Vector<A, N>],
    count: usize,
    width: usize,
    #[define(A)] _format: ElemType,
) {
    if ABSOLUTE_POS >= count {
        terminate!();
    }
    let column = ABSOLUTE_POS % width;
    let at = ABSOLUTE_POS / width * 2 * width + column;
    let value = Vector::<f32, N>::cast_from(x[at]) + bias[column];
    let gates = Vector::<f32, N>::cast_from(x[at + width]) + bias[width + column];
    let scaled = scale[column] * value;
    let mut active = Vector::<A, N>::empty();
    #[unroll]
    for k in 0..gates.vector_size() {
        let gate = gates.extract(k);
        active.insert(k, A::cast_from(scaled.extract(k) * gate * normal(gate).below));
    }
    y[ABSOLUTE_POS] = active;
}

/// d_x, and over blocks of rows its sums and those of the gradient of the scale.
#[cube(launch_unchecked)]
#[allow(clippy::too_many_arguments, reason = "buffers of a kernel")]
pub(super) fn backward_gated<A: Float, N: Size>(
    x: &[Vector<A, N>],
    bias: &[Vector<f32, N>],
    scale: &[Vector<f32, N>],
    d_y: &[Vector<A, N>],
    d_x: &mut [Vector<A, N>],
    bias_sums: &mut [Vector<f32, N>],
    scale_sums: &mut [Vector<f32, N>],
    sizes: Sizes,
    cubes: usize,
    #[define(A)] _format: ElemType,
) {
    if CUBE_POS >= cubes {
        terminate!();
    }
    let place = place(&sizes);
    let width = sizes.width;
    let column = place.column;
    let mut value_sum = Vector::<f32, N>::new(0.0f32);
    let mut gate_sum = Vector::<f32, N>::new(0.0f32);
    let mut scale_sum = Vector::<f32, N>::new(0.0f32);
    if column < width {
        let factor = scale[column];
        let mut row = first_row(&place, &sizes);
        while row < place.end {
            let at = row * 2 * width + column;
            let value = Vector::<f32, N>::cast_from(x[at]) + bias[column];
            let gates = Vector::<f32, N>::cast_from(x[at + width]) + bias[width + column];
            let mut active = Vector::<f32, N>::empty();
            let mut slopes = Vector::<f32, N>::empty();
            #[unroll]
            for k in 0..gates.vector_size() {
                let gate = gates.extract(k);
                let normal = normal(gate);
                active.insert(k, gate * normal.below);
                slopes.insert(k, fma(gate, normal.density, normal.below));
            }
            let d = Vector::<f32, N>::cast_from(d_y[row * width + column]);
            let scaled = d * factor;
            let d_value = scaled * active;
            let d_gate = scaled * value * slopes;
            d_x[at] = Vector::<A, N>::cast_from(d_value);
            d_x[at + width] = Vector::<A, N>::cast_from(d_gate);
            value_sum += d_value;
            gate_sum += d_gate;
            scale_sum += d * value * active;
            row += ROWS;
        }
    }
    let value_total = vectors_over_cube(value_sum);
    let gate_total = vectors_over_cube(gate_sum);
    let scale_total = vectors_over_cube(scale_sum);
    if UNIT_POS_Y == 0 && column < width {
        bias_sums[place.block * 2 * width + column] = value_total;
        bias_sums[place.block * 2 * width + width + column] = gate_total;
        scale_sums[place.block * width + column] = scale_total;
    }
}
