//! Norms over the last dimension on a device: a cube takes eight rows, 32 lanes each.

use burn::backend::DType;
use burn::tensor::FloatDType;
use burn_cubecl::tensor::CubeTensor;
use cubecl::ir::ElemType;
use cubecl::prelude::*;

use super::super::norm::{Kind, Normalize};
use super::column_sums::{column_sums, over_row, vectors_over_cube};
use super::columns::{Columns, Sizes, first_row, place};
use super::op::GpuOp;
use super::rows::row;
use super::tensors::{
    LANES, Like, ROWS, arg, arg_or, cubes, empty, empty_like, empty_like_in, format, len, square, vector_size, zeros, zeros_like,
};

/// Which norm a kernel is compiled for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(super) enum Norm {
    /// (x − mean) / √(variance + ε), then γ and β.
    Layer,
    /// x / max(‖x‖ / √width, floor), then 1 + γ.
    Rms,
}

/// Smallest norm a row is divided by.
const FLOOR: f32 = minrnn_kernels::rms_norm::FLOOR;

impl Normalize {
    /// Which norm, and its ε.
    fn compiled(&self) -> (Norm, f32) {
        match self.kind {
            Kind::Layer { eps } => (Norm::Layer, eps),
            Kind::Rms => (Norm::Rms, 0.0),
        }
    }
}

impl GpuOp for Normalize {
    fn outputs_like(&self, inputs: &[Like]) -> Vec<Like> {
        let x = &inputs[0];
        std::iter::once(x.cast(self.format.into())).chain(self.gives_input.then(|| x.clone())).collect()
    }

    fn forward(&self, inputs: &[CubeTensor]) -> Vec<CubeTensor> {
        norm(self.compiled(), &inputs[0], &inputs[1], inputs.get(2), self.format, self.gives_input)
    }

    fn backward(&self, inputs: &[Option<CubeTensor>], _: &[Option<CubeTensor>], d_outputs: &[Option<CubeTensor>]) -> Vec<CubeTensor> {
        let [x, gamma] = [0, 1].map(|i| inputs[i].as_ref().expect("kept"));
        let (d_x, d_gamma, d_beta) = gradients(self.compiled(), x, gamma, d_outputs);
        let has_beta = matches!(self.kind, Kind::Layer { .. });
        [d_x, d_gamma].into_iter().chain(has_beta.then_some(d_beta)).collect()
    }
}

fn norm(
    (norm, eps): (Norm, f32),
    x: &CubeTensor,
    gamma: &CubeTensor,
    beta: Option<&CubeTensor>,
    y_format: FloatDType,
    gives_input: bool,
) -> Vec<CubeTensor> {
    let width = len(gamma);
    let rows = len(x) / width;
    let y = empty_like_in(DType::from(y_format), x);
    let (count, size) = (rows.div_ceil(ROWS), vector_size(width));
    // SAFETY: the kernel stays inside the buffers.
    unsafe {
        forward::launch_unchecked(
            &x.client,
            cubes(count),
            square(),
            size,
            arg(x),
            arg(gamma),
            arg_or(beta, gamma),
            arg(&y),
            rows,
            width / size,
            eps,
            count,
            norm,
            format(y.dtype),
        );
    }
    let mut outputs = vec![y];
    outputs.extend(gives_input.then(|| x.clone()));
    outputs
}

/// Gradients of x, γ and β; the last means nothing for [`Norm::Rms`].
fn gradients(
    (norm, eps): (Norm, f32),
    x: &CubeTensor,
    gamma: &CubeTensor,
    d_outputs: &[Option<CubeTensor>],
) -> (CubeTensor, CubeTensor, CubeTensor) {
    let width = len(gamma);
    let rows = len(x) / width;
    let d_residual = d_outputs.get(1).and_then(Option::as_ref);
    let Some(d_y) = d_outputs[0].as_ref() else {
        let d_x = d_residual.cloned().unwrap_or_else(|| zeros_like(x));
        return (d_x, zeros(x, [width]), zeros(x, [width]));
    };
    let d_x = empty_like(x);
    let statistics = empty(x, [rows, 2]);
    let (count, size) = (rows.div_ceil(ROWS), vector_size(width));
    let columns = Columns::new(rows, width);
    let [d_gamma, d_beta] = [(); 2].map(|()| empty(x, [columns.blocks, width]));
    // SAFETY: the kernels stay inside the buffers.
    unsafe {
        backward::launch_unchecked(
            &x.client,
            cubes(count),
            square(),
            size,
            arg(x),
            arg(gamma),
            arg(d_y),
            arg_or(d_residual, x),
            arg(&d_x),
            arg(&statistics),
            rows,
            width / size,
            eps,
            count,
            d_residual.is_some(),
            norm,
            format(d_y.dtype),
        );
        parameters::launch_unchecked(
            &x.client,
            cubes(columns.cubes()),
            square(),
            columns.size,
            arg(x),
            arg(d_y),
            arg(&statistics),
            arg(&d_gamma),
            arg(&d_beta),
            columns.sizes(),
            columns.cubes(),
            format(d_y.dtype),
        );
    }
    (d_x, column_sums(&d_gamma), column_sums(&d_beta))
}

/// Mean and 1 / deviation of a row.
#[derive(CubeType, Clone, Copy)]
#[expand(derive(Clone, Copy))]
struct Statistics {
    mean: f32,
    inverse: f32,
    /// 0 where the norm is at its floor and so a constant, else 1.
    varies: f32,
}

/// Of a row of `n` numbers, which are `width` vectors.
#[cube]
fn statistics_of<N: Size>(x: &[Vector<f32, N>], from: usize, width: usize, n: f32, eps: f32, #[comptime] norm: Norm) -> Statistics {
    let mut mean = 0.0f32;
    if comptime!(norm == Norm::Layer) {
        let mut sum = 0.0f32;
        let mut column = UNIT_POS_X as usize;
        while column < width {
            let values = x[from + column];
            #[unroll]
            for k in 0..values.vector_size() {
                sum += values.extract(k);
            }
            column += LANES;
        }
        mean = over_row(sum) / n;
    }
    let mut squares = 0.0f32;
    let mut column = UNIT_POS_X as usize;
    while column < width {
        let values = x[from + column];
        #[unroll]
        for k in 0..values.vector_size() {
            let centred = values.extract(k) - mean;
            squares += centred * centred;
        }
        column += LANES;
    }
    let total = over_row(squares);
    if comptime!(norm == Norm::Layer) {
        Statistics { mean, inverse: 1.0 / (total / n + eps).sqrt(), varies: 1.0f32.runtime() }
    } else {
        let length = total.sqrt();
        Statistics { mean, inverse: n.sqrt() / max(length, FLOOR), varies: select(length > FLOOR, 1.0f32, 0.0f32) }
    }
}

/// γ of a column as it multiplies.
#[cube]
fn gain(gamma: f32, #[comptime] norm: Norm) -> f32 {
    if comptime!(norm == Norm::Layer) { gamma } else { 1.0 + gamma }
}

/// The numbers of a row of `width` vectors.
#[cube]
fn numbers<N: Size>(x: &[Vector<f32, N>], width: usize) -> f32 {
    f32::cast_from(width * x[0].vector_size())
}

/// `width` is of vectors, also in the backward pass.
#[cube(launch_unchecked)]
#[allow(clippy::too_many_arguments, reason = "buffers of a kernel")]
pub(super) fn forward<A: Float, N: Size>(
    x: &[Vector<f32, N>],
    gamma: &[Vector<f32, N>],
    beta: &[Vector<f32, N>],
    y: &mut [Vector<A, N>],
    rows: usize,
    width: usize,
    eps: f32,
    cubes: usize,
    #[comptime] norm: Norm,
    #[define(A)] _format: ElemType,
) {
    if CUBE_POS >= cubes {
        terminate!();
    }
    let row = row(rows, width);
    let from = row.from;
    let statistics = statistics_of(x, from, width, numbers(x, width), eps, norm);
    if row.live {
        let mut column = UNIT_POS_X as usize;
        while column < width {
            let values = x[from + column];
            let gains = gamma[column];
            let mut normal = Vector::<A, N>::empty();
            #[unroll]
            for k in 0..values.vector_size() {
                let mut value = (values.extract(k) - statistics.mean) * statistics.inverse * gain(gains.extract(k), norm);
                if comptime!(norm == Norm::Layer) {
                    value += beta[column].extract(k);
                }
                normal.insert(k, A::cast_from(value));
            }
            y[from + column] = normal;
            column += LANES;
        }
    }
}

/// d_x, and mean and 1 / deviation of every row for the gradients of the parameters.
#[cube(launch_unchecked)]
#[allow(clippy::too_many_arguments, reason = "buffers of a kernel")]
pub(super) fn backward<A: Float, N: Size>(
    x: &[Vector<f32, N>],
    gamma: &[Vector<f32, N>],
    d_y: &[Vector<A, N>],
    d_residual: &[Vector<f32, N>],
    d_x: &mut [Vector<f32, N>],
    rows_statistics: &mut [f32],
    rows: usize,
    width: usize,
    eps: f32,
    cubes: usize,
    #[comptime] residual: bool,
    #[comptime] norm: Norm,
    #[define(A)] _format: ElemType,
) {
    if CUBE_POS >= cubes {
        terminate!();
    }
    let row = row(rows, width);
    let from = row.from;
    let n = numbers(x, width);
    let statistics = statistics_of(x, from, width, n, eps, norm);
    let mut sum = 0.0f32;
    let mut along = 0.0f32;
    let mut column = UNIT_POS_X as usize;
    while column < width {
        let values = x[from + column];
        let arriving = Vector::<f32, N>::cast_from(d_y[from + column]);
        let gains = gamma[column];
        #[unroll]
        for k in 0..values.vector_size() {
            let d = arriving.extract(k) * gain(gains.extract(k), norm);
            sum += d;
            along += d * (values.extract(k) - statistics.mean) * statistics.inverse;
        }
        column += LANES;
    }
    let mut mean = 0.0f32;
    if comptime!(norm == Norm::Layer) {
        mean = over_row(sum) / n;
    }
    let slope = over_row(along) / n * statistics.varies;
    if row.live {
        let mut column = UNIT_POS_X as usize;
        while column < width {
            let at = from + column;
            let values = x[at];
            let arriving = Vector::<f32, N>::cast_from(d_y[at]);
            let gains = gamma[column];
            let mut d_values = Vector::<f32, N>::empty();
            #[unroll]
            for k in 0..values.vector_size() {
                let d = arriving.extract(k) * gain(gains.extract(k), norm);
                let normal = (values.extract(k) - statistics.mean) * statistics.inverse;
                d_values.insert(k, (d - mean - normal * slope) * statistics.inverse);
            }
            if comptime!(residual) {
                d_values += d_residual[at];
            }
            d_x[at] = d_values;
            column += LANES;
        }
        if UNIT_POS_X == 0 {
            rows_statistics[2 * row.number] = statistics.mean;
            rows_statistics[2 * row.number + 1] = statistics.inverse;
        }
    }
}

/// Over blocks of rows the sums of d_y times the normalised x, and of d_y: `[blocks, width]` each.
#[cube(launch_unchecked)]
#[allow(clippy::too_many_arguments, reason = "buffers of a kernel")]
pub(super) fn parameters<A: Float, N: Size>(
    x: &[Vector<f32, N>],
    d_y: &[Vector<A, N>],
    rows_statistics: &[f32],
    d_gamma: &mut [Vector<f32, N>],
    d_beta: &mut [Vector<f32, N>],
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
    let mut gamma_sum = Vector::<f32, N>::new(0.0f32);
    let mut beta_sum = Vector::<f32, N>::new(0.0f32);
    if column < width {
        let mut row = first_row(&place, &sizes);
        while row < place.end {
            let at = row * width + column;
            let d = Vector::<f32, N>::cast_from(d_y[at]);
            let mean = Vector::<f32, N>::new(rows_statistics[2 * row]);
            let inverse = Vector::<f32, N>::new(rows_statistics[2 * row + 1]);
            gamma_sum += d * (x[at] - mean) * inverse;
            beta_sum += d;
            row += ROWS;
        }
    }
    let gamma_total = vectors_over_cube(gamma_sum);
    let beta_total = vectors_over_cube(beta_sum);
    if UNIT_POS_Y == 0 && column < width {
        d_gamma[place.block * width + column] = gamma_total;
        d_beta[place.block * width + column] = beta_total;
    }
}
