//! Masked softmax cross-entropy.

use std::sync::Arc;

use burn::backend::flex::FlexTensor;
use burn::tensor::{Int, Tensor, TensorData, activation};
use minrnn_kernels::cross_entropy as kernel;

use super::flex::{dims, outputs, scalar, shape, slice};
use super::fused::{FusedOp, Keeps, has_kernels, input, output, run};
#[cfg(feature = "gpu")]
use super::gpu::op::GpuOp;
use super::shapes::expect_count;
use super::weighted_mean::weighted_mean;

/// Σ mask · (−ln softmax(logits)_target) / Σ mask, in nats; 0 if the weights sum to 0. A NaN weight propagates.
///
/// # Shapes
/// * `logits` `[N, V]`, `targets` N class numbers, `mask` N weights (if absent: all 1) → `[1]`
///
/// # Panics
/// When the lengths do not fit or a scored target is V or more.
pub fn cross_entropy(logits: Tensor<2>, targets: Arc<[i32]>, mask: Option<Arc<[f32]>>) -> Tensor<1> {
    let [rows, _] = logits.dims();
    expect_count("cross_entropy", "targets", targets.len(), rows);
    if let Some(mask) = &mask {
        expect_count("cross_entropy", "weights in mask", mask.len(), rows);
    }
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
            weighted_mean((nll * mask).sum(), total)
        }
    }
}

#[derive(Debug)]
pub(super) struct Op {
    pub(super) targets: Arc<[i32]>,
    pub(super) mask: Option<Arc<[f32]>>,
    /// The targets on a GPU.
    #[cfg(feature = "gpu")]
    pub(super) uploaded: super::gpu::tensors::Uploaded,
}

impl Op {
    fn new(targets: Arc<[i32]>, mask: Option<Arc<[f32]>>) -> Self {
        Self {
            targets,
            mask,
            #[cfg(feature = "gpu")]
            uploaded: super::gpu::tensors::Uploaded::default(),
        }
    }

    fn total_weight(&self) -> f64 {
        self.mask.as_deref().map_or(self.targets.len() as f64, |mask| mask.iter().map(|&w| f64::from(w)).sum())
    }

    /// `number` divided by the sum of the weights; 0 if the sum is 0.
    pub(super) fn by_weight(&self, number: f64) -> f32 {
        by_weight(number, self.total_weight())
    }
}

fn by_weight(number: f64, weight: f64) -> f32 {
    if weight == 0.0 { 0.0 } else { (number / weight) as f32 }
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
        vec![scalar(by_weight(sum, weight))]
    }

    fn backward(&self, inputs: &[Option<FlexTensor>], _: &[Option<FlexTensor>], d_outputs: &[Option<FlexTensor>]) -> Vec<FlexTensor> {
        let logits = inputs[0].as_ref().expect("kept");
        let d_loss = slice(d_outputs[0].as_ref().expect("the only output"))[0];
        let [rows, classes] = dims(logits);
        let scale = self.by_weight(f64::from(d_loss));
        outputs([shape(logits)], |[d_logits]| {
            kernel::backward(rows, classes, slice(logits), &self.targets, self.mask.as_deref(), scale, d_logits);
        })
    }
}
