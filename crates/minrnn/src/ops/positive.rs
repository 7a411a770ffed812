//! The positive function of the log-space form, element-wise.

#[cfg(feature = "gpu")]
use burn::backend::flex::FlexTensor;
use burn::tensor::{Tensor, activation};

#[cfg(feature = "gpu")]
use super::fused::{FusedOp, Keeps, input, is_on_gpu, output, run};
#[cfg(feature = "gpu")]
use super::gpu::op::GpuOp;

/// g(v) = v + ½ for v ≥ 0, σ(v) below (Feng et al. 2024, arXiv:2410.01201, appendix B.3).
///
/// # Shapes
/// * `v` `[E]` → `[E]`
pub fn positive(v: Tensor<1>) -> Tensor<1> {
    #[cfg(feature = "gpu")]
    if is_on_gpu(&v.device()) && v.shape().num_elements() > 0 {
        return output(run(Positive, vec![input(v)]).pop());
    }
    composed(v)
}

pub(super) fn composed<const D: usize>(v: Tensor<D>) -> Tensor<D> {
    let not_negative = v.clone().greater_equal_scalar(0.0);
    activation::sigmoid(v.clone()).mask_where(not_negative, v + 0.5)
}

/// Input v; composed on the CPU.
#[cfg(feature = "gpu")]
#[derive(Debug)]
pub(super) struct Positive;

#[cfg(feature = "gpu")]
impl FusedOp for Positive {
    fn keeps(&self) -> Keeps {
        Keeps { inputs: vec![0], outputs: vec![] }
    }

    fn gpu(&self) -> Option<&dyn GpuOp> {
        Some(self)
    }

    fn forward(&self, _: &[FlexTensor]) -> Vec<FlexTensor> {
        unreachable!("made only of tensors on a device")
    }

    fn backward(&self, _: &[Option<FlexTensor>], _: &[Option<FlexTensor>], _: &[Option<FlexTensor>]) -> Vec<FlexTensor> {
        unreachable!("made only of tensors on a device")
    }
}

#[cfg(test)]
mod tests {
    use burn::tensor::Device;

    use super::*;

    #[test]
    fn it_goes_through_one_half_with_slope_one_and_stays_positive() {
        let v = Tensor::<1>::from_data([-30.0, -1.0, 0.0, 2.0], &Device::flex().autodiff()).require_grad();
        let y = positive(v.clone());
        let gradients = y.clone().sum().backward();
        let values: Vec<f32> = y.into_data().try_to_vec().unwrap();
        assert_eq!(values[2..], [0.5, 2.5]);
        assert!(values[0] > 0.0 && (values[1] - 0.268_941_43).abs() < 1e-6, "{values:?}");
        let slopes: Vec<f32> = v.grad(&gradients).unwrap().into_data().try_to_vec().unwrap();
        assert_eq!(slopes[2..], [1.0, 1.0]);
        assert!(slopes[0] > 0.0 && (slopes[1] - 0.196_611_93).abs() < 1e-6, "{slopes:?}");
    }
}
