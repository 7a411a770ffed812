//! Segments of a batch as the operations take them: one code per step, made once per batch.

use std::sync::Arc;

use burn::tensor::{Device, Tensor, TensorData};
use minrnn_kernels::segments::{self, PADDING, RESET};

/// One code per step of a batch `[B, T]` (continues, reset before it, padding), or dense. Cheap to clone.
///
/// Made by [`Segments::steps`](crate::Segments::steps).
#[derive(Debug, Clone, Default)]
pub struct StepCodes {
    codes: Option<Arc<[i32]>>,
    seq_len: usize,
    /// The codes on a GPU.
    #[cfg(feature = "gpu")]
    uploaded: super::gpu::Uploaded,
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
            uploaded: super::gpu::Uploaded::default(),
        }
    }

    /// True when there is nothing to honour.
    pub fn is_dense(&self) -> bool {
        self.codes.is_none()
    }

    /// True when some step is padding.
    pub fn has_padding(&self) -> bool {
        self.codes.as_deref().is_some_and(|codes| codes.contains(&PADDING))
    }

    /// As the kernels take it.
    pub(crate) fn kernel(&self) -> segments::Segments<'_> {
        self.codes.as_deref().map_or(segments::Segments::DENSE, |codes| segments::Segments::new(codes, self.seq_len))
    }

    /// The codes on the device of `like`, copied there once.
    #[cfg(feature = "gpu")]
    pub(super) fn on_device(&self, like: &burn_cubecl::tensor::CubeTensor) -> Option<burn_cubecl::tensor::CubeTensor> {
        self.codes.as_deref().map(|codes| self.uploaded.get(like, codes))
    }

    /// The code of step `t` of row `b`.
    pub(crate) fn code(&self, b: usize, t: usize) -> i32 {
        self.codes.as_deref().map_or(segments::CONTINUE, |codes| codes[b * self.seq_len + t])
    }

    /// 1 where a row is reset, else 0: `[B, T, 1]`.
    pub(crate) fn reset_mask(&self, device: &Device) -> Option<Tensor<3>> {
        self.mask(RESET, device)
    }

    /// 1 at padding, else 0: `[B, T, 1]`.
    pub(crate) fn padding_mask(&self, device: &Device) -> Option<Tensor<3>> {
        self.mask(PADDING, device)
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
