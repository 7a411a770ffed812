//! The optimiser's update, and the sum of squares that clipping needs; nothing here is differentiable.

use burn::backend::flex::FlexTensor;
use burn::tensor::Tensor;
use minrnn_kernels::adamw as kernel;
pub use minrnn_kernels::adamw::AdamW;

use super::flex::{outputs, shape, slice, with_values};
use super::fused::{FusedOp, Keeps, has_kernels, input, output, run};
#[cfg(feature = "gpu")]
use super::gpu::GpuOp;

/// First and second moment of a parameter, flat.
#[derive(Debug, Clone)]
pub struct Moments {
    /// m.
    pub first: Tensor<1>,
    /// v.
    pub second: Tensor<1>,
}

/// One AdamW update of a flat parameter; see [`AdamW`] for the formula.
///
/// # Panics
/// When the lengths differ.
pub fn adamw(settings: AdamW, parameter: Tensor<1>, gradient: Tensor<1>, moments: Moments) -> (Tensor<1>, Moments) {
    if !has_kernels(&parameter) {
        return composed(settings, parameter, gradient, moments);
    }
    let inputs = vec![input(parameter), input(gradient), input(moments.first), input(moments.second)];
    let mut outputs = run(Update(settings), inputs).into_iter();
    (output(outputs.next()), Moments { first: output(outputs.next()), second: output(outputs.next()) })
}

pub(super) fn composed(settings: AdamW, parameter: Tensor<1>, gradient: Tensor<1>, moments: Moments) -> (Tensor<1>, Moments) {
    let AdamW { lr, beta_1, beta_2, eps, weight_decay, time, gradient_scale } = settings;
    let gradient = gradient * gradient_scale;
    let first = moments.first * beta_1 + gradient.clone() * (1.0 - beta_1);
    let second = moments.second * beta_2 + gradient.clone() * gradient * (1.0 - beta_2);
    let correction = |beta: f64| 1.0 - beta.powf(time as f64);
    let divisor = (second.clone() / correction(beta_2)).sqrt() + eps;
    let updated = parameter * (1.0 - lr * weight_decay) - first.clone() * (lr / correction(beta_1)) / divisor;
    (updated, Moments { first, second })
}

/// Σ x² of every tensor, in f64 on the CPU; not finite when an element is not. All lie on one device.
pub fn sums_of_squares(tensors: &[&Tensor<1>]) -> Vec<f64> {
    #[cfg(feature = "gpu")]
    if let Some(on_gpu) = super::gpu::all_on_gpu(tensors) {
        return super::gpu::sums_of_squares(&on_gpu);
    }
    tensors.iter().map(|x| with_values(x, kernel::sum_of_squares)).collect()
}

#[derive(Debug)]
pub(super) struct Update(pub(super) AdamW);

impl FusedOp for Update {
    fn keeps(&self) -> Keeps {
        Keeps::default()
    }

    #[cfg(feature = "gpu")]
    fn gpu(&self) -> Option<&dyn GpuOp> {
        Some(self)
    }

    fn forward(&self, inputs: &[FlexTensor]) -> Vec<FlexTensor> {
        let [parameter, gradient, first, second] = [0, 1, 2, 3].map(|i: usize| slice(&inputs[i]));
        outputs([(); 3].map(|()| shape(&inputs[0])), |[updated, first_out, second_out]| {
            self.0.update(parameter, gradient, [first, second], updated, [first_out, second_out]);
        })
    }

    fn backward(&self, _: &[Option<FlexTensor>], _: &[Option<FlexTensor>], _: &[Option<FlexTensor>]) -> Vec<FlexTensor> {
        unreachable!("an update is made below autodiff")
    }
}
