//! Masked softmax cross-entropy.

use std::sync::Arc;

use burn::backend::flex::FlexTensor;
use burn::tensor::{Int, Tensor, TensorData, activation};
use minrnn_kernels::cross_entropy as kernel;

use super::flex::{dims, outputs, scalar, shape, slice};
use super::fused::{FusedOp, Keeps, has_kernels, input, output, run};
#[cfg(feature = "gpu")]
use super::gpu::GpuOp;

/// Σ mask · (−ln softmax(logits)_target) / Σ mask, in nats; 0 where the mask is all zero.
///
/// # Shapes
/// * `logits` `[N, V]`, `targets` N class numbers, `mask` N weights (absent: all 1) → `[1]`
///
/// # Panics
/// When the lengths do not fit or a scored target is not below V.
pub fn cross_entropy(logits: Tensor<2>, targets: Arc<[i32]>, mask: Option<Arc<[f32]>>) -> Tensor<1> {
    if has_kernels(&logits) {
        return output(run(Op::new(targets, mask), vec![input(logits)]).pop());
    }
    composed(logits, &targets, mask.as_deref())
}

/// The same by tensor operations.
pub(super) fn composed(logits: Tensor<2>, targets: &[i32], mask: Option<&[f32]>) -> Tensor<1> {
    let rows = targets.len();
    let device = logits.device();
    let targets = Tensor::<2, Int>::from_data(TensorData::new(targets.to_vec(), [rows, 1]), &device);
    let nll = -activation::log_softmax(logits, 1).gather(1, targets).reshape([rows]);
    match mask {
        None => nll.mean(),
        Some(mask) => {
            let total: f64 = mask.iter().map(|&w| f64::from(w)).sum();
            let mask = Tensor::<1>::from_data(TensorData::new(mask.to_vec(), [rows]), &device);
            (nll * mask).sum() / total.max(f64::from(f32::MIN_POSITIVE))
        }
    }
}

#[derive(Debug)]
pub(super) struct Op {
    pub(super) targets: Arc<[i32]>,
    pub(super) mask: Option<Arc<[f32]>>,
    /// The targets on a GPU.
    #[cfg(feature = "gpu")]
    pub(super) uploaded: super::gpu::Uploaded,
}

impl Op {
    fn new(targets: Arc<[i32]>, mask: Option<Arc<[f32]>>) -> Self {
        Self {
            targets,
            mask,
            #[cfg(feature = "gpu")]
            uploaded: super::gpu::Uploaded::default(),
        }
    }

    pub(super) fn total_weight(&self) -> f64 {
        self.mask.as_deref().map_or(self.targets.len() as f64, |mask| mask.iter().map(|&w| f64::from(w)).sum())
    }
}

impl FusedOp for Op {
    fn keeps(&self) -> Keeps {
        Keeps { inputs: vec![0], outputs: vec![] }
    }

    #[cfg(feature = "gpu")]
    fn gpu(&self) -> Option<&dyn GpuOp> {
        Some(self)
    }

    fn forward(&self, inputs: &[FlexTensor]) -> Vec<FlexTensor> {
        let [rows, classes] = dims(&inputs[0]);
        let (sum, weight) = kernel::forward(rows, classes, slice(&inputs[0]), &self.targets, self.mask.as_deref());
        vec![scalar(if weight > 0.0 { (sum / weight) as f32 } else { 0.0 })]
    }

    fn backward(&self, inputs: &[Option<FlexTensor>], _: &[Option<FlexTensor>], d_outputs: &[Option<FlexTensor>]) -> Vec<FlexTensor> {
        let logits = inputs[0].as_ref().expect("kept");
        let d_loss = slice(d_outputs[0].as_ref().expect("the only output"))[0];
        let [rows, classes] = dims(logits);
        let weight = self.total_weight();
        let scale = if weight > 0.0 { (f64::from(d_loss) / weight) as f32 } else { 0.0 };
        outputs([shape(logits)], |[d_logits]| {
            kernel::backward(rows, classes, slice(logits), &self.targets, self.mask.as_deref(), scale, d_logits);
        })
    }
}
