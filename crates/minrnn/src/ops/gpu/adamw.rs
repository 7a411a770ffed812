//! The optimiser's update on a device.

use burn_cubecl::tensor::CubeTensor;
use cubecl::prelude::*;

use super::super::adamw::{AdamW, Update};
use super::GpuOp;
use super::tensors::{Like, arg, elements, empty_like, len, vector_size};

/// The numbers of an update.
#[derive(CubeType, CubeLaunch, Clone, Copy)]
#[expand(derive(Clone, Copy))]
struct Rates {
    gradient_scale: f32,
    beta_1: f32,
    beta_2: f32,
    /// lr / (1 − β₁ᵗ).
    step: f32,
    /// 1 / (1 − β₂ᵗ).
    correction: f32,
    eps: f32,
    /// 1 − lr · weight decay.
    decay: f32,
}

fn rates(settings: AdamW) -> RatesLaunch {
    let AdamW { lr, beta_1, beta_2, eps, weight_decay, time, gradient_scale } = settings;
    let correction = |beta: f64| 1.0 - beta.powf(time as f64);
    RatesLaunch::new(
        gradient_scale as f32,
        beta_1 as f32,
        beta_2 as f32,
        (lr / correction(beta_1)) as f32,
        (1.0 / correction(beta_2)) as f32,
        eps as f32,
        (1.0 - lr * weight_decay) as f32,
    )
}

impl GpuOp for Update {
    fn outputs_like(&self, inputs: &[Like]) -> Vec<Like> {
        vec![inputs[0].clone(); 3]
    }

    fn forward(&self, inputs: &[CubeTensor]) -> Vec<CubeTensor> {
        let outputs: [CubeTensor; 3] = std::array::from_fn(|_| empty_like(&inputs[0]));
        let size = vector_size(len(&inputs[0]));
        let count = len(&inputs[0]) / size;
        let (grid, dim) = elements(count);
        let [parameter, gradient, first, second] = [0, 1, 2, 3].map(|i| arg(&inputs[i]));
        let [updated, next_first, next_second] = [0, 1, 2].map(|i| arg(&outputs[i]));
        // SAFETY: the kernel stays inside the buffers.
        unsafe {
            update::launch_unchecked(
                &inputs[0].client,
                grid,
                dim,
                size,
                parameter,
                gradient,
                first,
                second,
                updated,
                next_first,
                next_second,
                count,
                rates(self.0),
            );
        }
        outputs.into()
    }

    fn backward(&self, _: &[Option<CubeTensor>], _: &[Option<CubeTensor>], _: &[Option<CubeTensor>]) -> Vec<CubeTensor> {
        unreachable!("an update is made below autodiff")
    }
}

/// `count` is of vectors.
#[cube(launch_unchecked)]
#[allow(clippy::too_many_arguments, reason = "buffers of a kernel")]
fn update<N: Size>(
    parameter: &[Vector<f32, N>],
    gradient: &[Vector<f32, N>],
    first: &[Vector<f32, N>],
    second: &[Vector<f32, N>],
    updated: &mut [Vector<f32, N>],
    next_first: &mut [Vector<f32, N>],
    next_second: &mut [Vector<f32, N>],
    count: usize,
    rates: Rates,
) {
    if ABSOLUTE_POS >= count {
        terminate!();
    }
    let parameters = parameter[ABSOLUTE_POS];
    let gradients = gradient[ABSOLUTE_POS];
    let firsts = first[ABSOLUTE_POS];
    let seconds = second[ABSOLUTE_POS];
    let mut values = Vector::<f32, N>::empty();
    let mut means = Vector::<f32, N>::empty();
    let mut squares = Vector::<f32, N>::empty();
    #[unroll]
    for k in 0..parameters.vector_size() {
        let g = gradients.extract(k) * rates.gradient_scale;
        let m = fma(rates.beta_1, firsts.extract(k), (1.0 - rates.beta_1) * g);
        let v = fma(rates.beta_2, seconds.extract(k), (1.0 - rates.beta_2) * g * g);
        let divisor = (v * rates.correction).sqrt() + rates.eps;
        values.insert(k, parameters.extract(k) * rates.decay - rates.step * m / divisor);
        means.insert(k, m);
        squares.insert(k, v);
    }
    updated[ABSOLUTE_POS] = values;
    next_first[ABSOLUTE_POS] = means;
    next_second[ABSOLUTE_POS] = squares;
}
