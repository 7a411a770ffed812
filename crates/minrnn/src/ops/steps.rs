//! Segments of a batch for the operations: one code per step, computed once per batch.

use std::sync::Arc;

use burn::tensor::{Device, Tensor, TensorData};
use minrnn_kernels::segments::{self, PADDING, RESET};

/// One code per step of a batch `[B, T]` (continues, reset before it, padding), or dense. Cheap to clone.
///
/// Created by [`Segments::steps`](crate::Segments::steps).
#[derive(Debug, Clone, Default)]
pub struct StepCodes {
    codes: Option<Arc<[i32]>>,
    seq_len: usize,
    /// The codes on a GPU.
    #[cfg(feature = "gpu")]
    uploaded: super::gpu::tensors::Uploaded,
}

impl StepCodes {
    /// Every step is real and nothing is reset.
    pub fn dense() -> Self {
        Self::default()
    }

    pub(crate) fn new(codes: Vec<i32>, seq_len: usize) -> Self {
        Self {
            codes: Some(codes.into()),
            seq_len,
            #[cfg(feature = "gpu")]
            uploaded: super::gpu::tensors::Uploaded::default(),
        }
    }

    /// Whether there are no resets and no padding.
    pub fn is_dense(&self) -> bool {
        self.codes.is_none()
    }

    /// The codes as the kernels take them.
    pub(crate) fn kernel(&self) -> segments::Segments<'_> {
        self.codes.as_deref().map_or(segments::Segments::DENSE, |codes| segments::Segments::new(codes, self.seq_len))
    }

    /// The codes on the device of `like`, copied there once.
    #[cfg(feature = "gpu")]
    pub(super) fn on_device(&self, like: &burn_cubecl::tensor::CubeTensor) -> Option<burn_cubecl::tensor::CubeTensor> {
        self.codes.as_deref().map(|codes| self.uploaded.get(like, codes))
    }

    /// Number of real steps of row `b` of `seq_len` steps.
    ///
    /// # Panics
    /// When there are codes, and they were made for another number of steps or have no such row.
    pub(crate) fn length(&self, b: usize, seq_len: usize) -> usize {
        self.kernel().length(b, seq_len)
    }

    /// The code of step `t` of row `b`.
    pub(crate) fn code(&self, b: usize, t: usize) -> i32 {
        self.codes.as_deref().map_or(segments::CONTINUE, |codes| codes[b * self.seq_len + t])
    }

    /// 1 where a row is reset, otherwise 0: `[B, T, 1]`.
    pub(crate) fn reset_mask(&self, device: &Device) -> Option<Tensor<3>> {
        self.mask(RESET, device)
    }

    /// 1 at padding, otherwise 0: `[B, T, 1]`.
    pub(crate) fn padding_mask(&self, device: &Device) -> Option<Tensor<3>> {
        self.mask(PADDING, device)
    }

    /// 1 where a row is at position 0 (at step 0 if `position` `[B, 1]` is 0, and at every reset), otherwise 0: `[B, T, 1]`.
    ///
    /// # Panics
    /// When there is no row or no step.
    pub(super) fn first_steps(&self, position: Tensor<2>, seq_len: usize) -> Tensor<3> {
        let (batch, device) = (position.dims()[0], position.device());
        let first = position.equal_scalar(0.0).float().unsqueeze_dim::<3>(2);
        let later = self.reset_mask(&device).unwrap_or_else(|| Tensor::zeros([batch, seq_len, 1], &device));
        let now = (first + later.clone().narrow(1, 0, 1)).clamp_max(1.0);
        if seq_len == 1 { now } else { Tensor::cat(vec![now, later.narrow(1, 1, seq_len - 1)], 1) }
    }

    /// The positions after `seq_len` steps from `position` `[B, 1]`: the number of steps of a row since its last reset, or added to what was
    /// carried in.
    pub(super) fn next_position(&self, position: Tensor<2>, seq_len: usize) -> Tensor<2> {
        let (batch, device) = (position.dims()[0], position.device());
        if batch == 0 {
            return position;
        }
        let row = |b: usize| {
            let length = self.length(b, seq_len);
            match (0..length).rev().find(|&t| self.code(b, t) == RESET) {
                Some(reset) => (0.0f32, (length - reset) as f32),
                None => (1.0, length as f32),
            }
        };
        let (kept, added): (Vec<f32>, Vec<f32>) = (0..batch).map(row).unzip();
        let column = |values: Vec<f32>| Tensor::<2>::from_data(TensorData::new(values, [batch, 1]), &device);
        position * column(kept) + column(added)
    }

    fn mask(&self, code: i32, device: &Device) -> Option<Tensor<3>> {
        let codes = self.codes.as_deref()?;
        if self.seq_len == 0 || !codes.contains(&code) {
            return None;
        }
        let mask: Vec<f32> = codes.iter().map(|&c| if c == code { 1.0 } else { 0.0 }).collect();
        Some(Tensor::from_data(TensorData::new(mask, [codes.len() / self.seq_len, self.seq_len, 1]), device))
    }
}
