//! The optimiser's update of many parameters on a device, in a few launches.

use std::collections::BTreeMap;

use burn::backend::TensorMetadata;
use burn_cubecl::tensor::CubeTensor;
use cubecl::prelude::*;

use super::super::adamw::{AdamW, AllUpdates};
use super::op::GpuOp;
use super::tensors::{Like, UNITS, arg, cubes, empty, len, upload, upload_ints, vector_size};

/// Parameters of a launch, at most: the kernel is compiled once for each number of them.
pub(super) const TOGETHER: usize = 16;
/// Buffers that a launch takes beside four for each parameter.
const OTHERS: usize = 5;
/// Numbers of [`rates`].
const RATES: usize = 7;

/// What the kernel needs to know of a parameter's settings: the scale of its gradient, β₁, β₂, lr / (1 − β₁ᵗ), 1 / (1 − β₂ᵗ), ε, and 1 − lr · weight
/// decay.
fn rates(settings: AdamW) -> [f32; RATES] {
    let AdamW { lr, beta_1, beta_2, eps, weight_decay, time, gradient_scale } = settings;
    let correction = |beta: f64| 1.0 - beta.powf(time as f64);
    [gradient_scale, beta_1, beta_2, lr / correction(beta_1), 1.0 / correction(beta_2), eps, 1.0 - lr * weight_decay]
        .map(|rate| rate as f32)
}

impl AllUpdates {
    /// Makes the updates `group`, whose parameters have `size` numbers to a vector, with one launch; parameter and moments of each.
    fn launch(&self, group: &[usize], size: usize) -> Vec<[CubeTensor; 3]> {
        let like = &self.tensors[group[0]][0];
        // What begins within a buffer begins where a buffer may.
        let aligned = (like.client.properties().memory.alignment as usize / 4).max(size);
        let (mut places, mut first_cube, mut offset) = (Vec::new(), 0, 0);
        let mut offsets = Vec::new();
        for &i in group {
            let count = len(&self.tensors[i][0]) / size;
            places.extend([first_cube, count, offset / size]);
            offsets.push(offset);
            first_cube += count.div_ceil(UNITS);
            offset = (offset + count * size).next_multiple_of(aligned);
        }
        places.extend([first_cube, 0, 0]);
        let places: Vec<i32> = places.into_iter().map(|place| i32::try_from(place).expect("a device counts to 2^31")).collect();
        let rates: Vec<f32> = group.iter().flat_map(|&i| rates(self.settings[i])).collect();
        let outputs = [(); 3].map(|()| empty(like, [offset]));
        let inputs = [0, 1, 2, 3].map(|which: usize| {
            let mut sequence = SequenceArg::new();
            group.iter().for_each(|&i| sequence.push(arg(&self.tensors[i][which])));
            sequence
        });
        let [parameters, gradients, firsts, seconds] = inputs;
        // SAFETY: a unit works on a number of the one parameter whose cube it is in, and every output has room for all of them.
        unsafe {
            update::launch_unchecked(
                &like.client,
                cubes(first_cube),
                CubeDim::new_1d(UNITS as u32),
                size,
                parameters,
                gradients,
                firsts,
                seconds,
                arg(&outputs[0]),
                arg(&outputs[1]),
                arg(&outputs[2]),
                arg(&upload_ints(like, &places)),
                arg(&upload(like, &rates)),
                first_cube,
            );
        }
        group
            .iter()
            .zip(offsets)
            .map(|(&i, start)| {
                let shape = self.tensors[i][0].shape();
                outputs.each_ref().map(|all| {
                    let behind = offset - start - shape.num_elements();
                    let handle = all.handle.clone().offset_start(4 * start as u64).offset_end(4 * behind as u64);
                    CubeTensor::new_contiguous(like.client.clone(), like.device.clone(), shape.clone(), handle, like.dtype)
                })
            })
            .collect()
    }
}

impl GpuOp for AllUpdates {
    /// Parameter and moments of each.
    fn outputs_like(&self, _: &[Like]) -> Vec<Like> {
        self.tensors.iter().flat_map(|[parameter, ..]| vec![Like::of(parameter); 3]).collect()
    }

    /// The tensors are the operation's own.
    fn forward(&self, _: &[CubeTensor]) -> Vec<CubeTensor> {
        let most = self.tensors[0][0].client.properties().hardware.max_bindings as usize;
        let together = (most.saturating_sub(OTHERS) / 4).clamp(1, TOGETHER);
        let mut alike: BTreeMap<usize, Vec<usize>> = BTreeMap::new();
        for (i, [parameter, ..]) in self.tensors.iter().enumerate() {
            alike.entry(vector_size(len(parameter))).or_default().push(i);
        }
        let mut made = vec![None; self.tensors.len()];
        for (size, indices) in alike {
            for group in indices.chunks(together) {
                group.iter().zip(self.launch(group, size)).for_each(|(&i, updated)| made[i] = Some(updated));
            }
        }
        made.into_iter().flat_map(|updated| updated.expect("every parameter is in a group")).collect()
    }

    fn backward(&self, _: &[Option<CubeTensor>], _: &[Option<CubeTensor>], _: &[Option<CubeTensor>]) -> Vec<CubeTensor> {
        unreachable!("an update is made below autodiff")
    }
}

/// `places` has three numbers of each parameter: its first cube, its vectors, and where its outputs begin; behind the last one the number of all cubes.
#[cube(launch_unchecked)]
#[allow(clippy::too_many_arguments, reason = "buffers of a kernel")]
pub(super) fn update<N: Size>(
    parameters: &Sequence<Box<[Vector<f32, N>]>>,
    gradients: &Sequence<Box<[Vector<f32, N>]>>,
    firsts: &Sequence<Box<[Vector<f32, N>]>>,
    seconds: &Sequence<Box<[Vector<f32, N>]>>,
    updated: &mut [Vector<f32, N>],
    next_first: &mut [Vector<f32, N>],
    next_second: &mut [Vector<f32, N>],
    places: &[i32],
    rates: &[f32],
    cubes: usize,
) {
    if CUBE_POS >= cubes {
        terminate!();
    }
    #[unroll]
    for which in 0..comptime![parameters.len()] {
        let first_cube = places[3 * which] as usize;
        let count = places[3 * which + 1] as usize;
        if CUBE_POS >= first_cube && CUBE_POS < places[3 * which + 3] as usize {
            let at = (CUBE_POS - first_cube) * UNITS + UNIT_POS as usize;
            if at < count {
                let values = parameters.index(which)[at];
                let slopes = gradients.index(which)[at];
                let means = firsts.index(which)[at];
                let squares = seconds.index(which)[at];
                let mut new_values = Vector::<f32, N>::empty();
                let mut new_means = Vector::<f32, N>::empty();
                let mut new_squares = Vector::<f32, N>::empty();
                let scale = rates[RATES * which];
                let beta_1 = rates[RATES * which + 1];
                let beta_2 = rates[RATES * which + 2];
                let step = rates[RATES * which + 3];
                let correction = rates[RATES * which + 4];
                let eps = rates[RATES * which + 5];
                let decay = rates[RATES * which + 6];
                #[unroll]
                for k in 0..values.vector_size() {
                    let g = slopes.extract(k) * scale;
                    let m = fma(beta_1, means.extract(k), (1.0 - beta_1) * g);
                    let v = fma(beta_2, squares.extract(k), (1.0 - beta_2) * g * g);
                    let divisor = (v * correction).sqrt() + eps;
                    new_values.insert(k, values.extract(k) * decay - step * m / divisor);
                    new_means.insert(k, m);
                    new_squares.insert(k, v);
                }
                let out = places[3 * which + 2] as usize + at;
                updated[out] = new_values;
                next_first[out] = new_means;
                next_second[out] = new_squares;
            }
        }
    }
}
