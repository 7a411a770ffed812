//! Sums over the rows of a matrix, in a fixed order: the last step of every gradient of a bias, gain or filter.

use burn_cubecl::tensor::CubeTensor;
use cubecl::prelude::*;

use super::tensors::{LANES, ROWS, arg, column_vector_size, cubes, dims, empty, square};

/// The sum over the rows of `partial` `[R, W]`: `[W]`.
pub(super) fn column_sums(partial: &CubeTensor) -> CubeTensor {
    let [rows, width] = dims(partial);
    let sums = empty(partial, [width]);
    let size = column_vector_size(width);
    let width = width / size;
    let groups = width.div_ceil(LANES);
    // SAFETY: the kernel stays inside both buffers.
    unsafe {
        kernel::launch_unchecked(&partial.client, cubes(groups), square(), size, arg(partial), arg(&sums), rows, width, groups);
    }
    sums
}

/// `width` is of vectors.
#[cube(launch_unchecked)]
pub(super) fn kernel<N: Size>(partial: &[Vector<f32, N>], sums: &mut [Vector<f32, N>], rows: usize, width: usize, groups: usize) {
    if CUBE_POS >= groups {
        terminate!();
    }
    let column = CUBE_POS * LANES + UNIT_POS_X as usize;
    let mut sum = Vector::<f32, N>::new(0.0f32);
    if column < width {
        let mut row = UNIT_POS_Y as usize;
        while row < rows {
            sum += partial[row * width + column];
            row += ROWS;
        }
    }
    let total = vectors_over_cube(sum);
    if UNIT_POS_Y == 0 && column < width {
        sums[column] = total;
    }
}

/// The sum of `value` over the rows of a [`ROWS`] × [`LANES`] cube, for each of its columns; whole in every unit.
#[cube]
pub(super) fn over_cube(value: f32) -> f32 {
    let mut values = Shared::<[f32]>::new_slice(comptime!(ROWS * LANES));
    let lane = UNIT_POS_X as usize;
    values[UNIT_POS_Y as usize * LANES + lane] = value;
    sync_cube();
    let mut sum = 0.0f32;
    #[unroll]
    for row in 0..ROWS {
        sum += values[row * LANES + lane];
    }
    sum
}

/// The same of vectors.
#[cube]
pub(super) fn vectors_over_cube<N: Size>(value: Vector<f32, N>) -> Vector<f32, N> {
    let mut values = Shared::<[Vector<f32, N>]>::new_slice(comptime!(ROWS * LANES));
    let lane = UNIT_POS_X as usize;
    values[UNIT_POS_Y as usize * LANES + lane] = value;
    sync_cube();
    let mut sum = Vector::<f32, N>::new(0.0f32);
    #[unroll]
    for row in 0..ROWS {
        sum += values[row * LANES + lane];
    }
    sum
}

/// The sum of `value` over the lanes of a row of a [`ROWS`] × [`LANES`] cube; whole in every unit of the row.
#[cube]
pub(super) fn over_row(value: f32) -> f32 {
    let mut values = Shared::<[f32]>::new_slice(comptime!(ROWS * LANES));
    let row = UNIT_POS_Y as usize * LANES;
    values[row + UNIT_POS_X as usize] = value;
    sync_cube();
    let mut sum = 0.0f32;
    #[unroll]
    for lane in 0..LANES {
        sum += values[row + lane];
    }
    sum
}

/// The largest `value` over the lanes of a row of a [`ROWS`] × [`LANES`] cube; in every unit of the row.
#[cube]
pub(super) fn largest_over_row(value: f32) -> f32 {
    let mut values = Shared::<[f32]>::new_slice(comptime!(ROWS * LANES));
    let row = UNIT_POS_Y as usize * LANES;
    values[row + UNIT_POS_X as usize] = value;
    sync_cube();
    let mut largest = value;
    #[unroll]
    for lane in 0..LANES {
        largest = max(largest, values[row + lane]);
    }
    largest
}
