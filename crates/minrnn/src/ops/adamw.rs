//! The optimiser's update, and the sum of squares that clipping needs; nothing here is differentiable.

use burn::backend::DispatchTensor;
use burn::backend::flex::FlexTensor;
use burn::tensor::Tensor;
#[cfg(feature = "gpu")]
use burn_cubecl::tensor::CubeTensor;
use minrnn_kernels::adamw as kernel;
pub use minrnn_kernels::adamw::AdamW;

use super::flex::{outputs, shape, slice, with_values};
use super::fused::{FusedOp, Keeps, input, is_on_cpu, output, run};
#[cfg(feature = "gpu")]
use super::gpu::{
    op::GpuOp,
    tensors::{len, on_gpu},
};
use super::shapes::expect_shape;

/// First and second moment of a parameter, flat.
#[derive(Debug, Clone)]
pub struct Moments {
    /// m.
    pub first: Tensor<1>,
    /// v.
    pub second: Tensor<1>,
}

/// A flat parameter to be updated: settings, values, gradient and moments.
pub type ToUpdate = (AdamW, Tensor<1>, Tensor<1>, Moments);

/// One AdamW update of a flat parameter; see [`AdamW`] for the formula.
///
/// # Panics
/// When the lengths differ.
pub fn adamw(settings: AdamW, parameter: Tensor<1>, gradient: Tensor<1>, moments: Moments) -> (Tensor<1>, Moments) {
    let len = parameter.dims();
    for (name, tensor) in [("gradient", &gradient), ("moments.first", &moments.first), ("moments.second", &moments.second)] {
        expect_shape("adamw", name, tensor, len);
    }
    if is_on_cpu(&parameter.device()) {
        let inputs = vec![input(parameter), input(gradient), input(moments.first), input(moments.second)];
        return updated(&mut run(Update(settings), inputs).into_iter());
    }
    let update = [(settings, parameter, gradient, moments)];
    if let Some(mut together) = adamw_together(&update) {
        return together.swap_remove(0);
    }
    let [(settings, parameter, gradient, moments)] = update;
    composed(settings, parameter, gradient, moments)
}

/// Updates several parameters on a GPU in a few launches; `None` elsewhere, where updating each by itself is as good.
///
/// # Panics
/// When the lengths of one of them differ.
#[cfg(feature = "gpu")]
pub fn adamw_together(updates: &[ToUpdate]) -> Option<Vec<(Tensor<1>, Moments)>> {
    let (_, first, ..) = updates.first()?;
    let all = AllUpdates::of(updates)?;
    let mut outputs = run(all, vec![input(first.clone())]).into_iter();
    Some(updates.iter().map(|_| updated(&mut outputs)).collect())
}

/// Updates several parameters on a GPU in a few launches; `None` elsewhere, where updating each by itself is as good.
#[cfg(not(feature = "gpu"))]
pub fn adamw_together(_: &[ToUpdate]) -> Option<Vec<(Tensor<1>, Moments)>> {
    None
}

/// A parameter and its moments, from the next three of `outputs`.
fn updated(outputs: &mut impl Iterator<Item = DispatchTensor>) -> (Tensor<1>, Moments) {
    let mut next = || output(outputs.next());
    (next(), Moments { first: next(), second: next() })
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

/// Σ x² of every tensor, in f64 on the CPU; not finite if an element is not. All must be on one device.
pub fn sums_of_squares(tensors: &[&Tensor<1>]) -> Vec<f64> {
    #[cfg(feature = "gpu")]
    if let Some(on_gpu) = super::gpu::sums_of_squares::all_on_gpu(tensors) {
        return super::gpu::sums_of_squares::sums_of_squares(&on_gpu);
    }
    tensors.iter().map(|x| with_values(x, kernel::sum_of_squares)).collect()
}

#[derive(Debug)]
pub(super) struct Update(pub(super) AdamW);

impl FusedOp for Update {
    fn keeps(&self) -> Keeps {
        Keeps::default()
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

/// Updates of flat parameters that are all on one GPU: settings, and parameter, gradient and moments of each.
#[cfg(feature = "gpu")]
#[derive(Debug)]
pub(super) struct AllUpdates {
    pub(super) settings: Vec<AdamW>,
    pub(super) tensors: Vec<[CubeTensor; 4]>,
}

#[cfg(feature = "gpu")]
impl AllUpdates {
    /// These updates; `None` if a tensor is elsewhere or empty.
    fn of(updates: &[ToUpdate]) -> Option<Self> {
        let on_device = |tensor: &Tensor<1>| on_gpu(tensor.clone()).filter(|tensor| len(tensor) > 0);
        let tensors = updates
            .iter()
            .map(|(_, parameter, gradient, moments)| {
                let tensors = [parameter, gradient, &moments.first, &moments.second];
                assert!(tensors.iter().all(|tensor| tensor.dims() == parameter.dims()), "parameter, gradient and moments have one length");
                let [parameter, gradient, first, second] = tensors.map(on_device);
                Some([parameter?, gradient?, first?, second?])
            })
            .collect::<Option<Vec<_>>>()?;
        Some(Self { settings: updates.iter().map(|&(settings, ..)| settings).collect(), tensors })
    }
}

#[cfg(feature = "gpu")]
impl FusedOp for AllUpdates {
    fn keeps(&self) -> Keeps {
        Keeps::default()
    }

    fn gpu(&self) -> Option<&dyn GpuOp> {
        Some(self)
    }

    fn forward(&self, _: &[FlexTensor]) -> Vec<FlexTensor> {
        unreachable!("made only of tensors on a device")
    }

    fn backward(&self, _: &[Option<FlexTensor>], _: &[Option<FlexTensor>], _: &[Option<FlexTensor>]) -> Vec<FlexTensor> {
        unreachable!("an update is made below autodiff")
    }
}
