//! Batches as tensors.

use std::sync::Arc;

use burn::tensor::{Device, Tensor, TensorData};

use super::differentiate::MicroBatch;
use crate::Result;
use crate::data::{Batch, Sequences};
use crate::model::{Inputs, Targets};

impl MicroBatch {
    /// `batch` on `device`.
    ///
    /// # Errors
    /// When it is inconsistent ([`Batch::check`]).
    pub fn new(batch: &Batch, device: &Device) -> Result<Self> {
        batch.check()?;
        let (b, t) = (batch.batch_size, batch.seq_len);
        let inputs = match &batch.inputs {
            Sequences::Tokens(tokens) => {
                let tokens: Vec<i64> = tokens.iter().map(|&id| i64::from(id)).collect();
                Inputs::Tokens(Tensor::from_data(TensorData::new(tokens, [b, t]), device))
            }
            Sequences::Values { values, width } | Sequences::Quantiles { values, width, .. } => {
                Inputs::Values(Tensor::from_data(TensorData::new(values.clone(), [b, t, *width]), device))
            }
        };
        let targets = match &batch.targets {
            Sequences::Tokens(classes) => Targets::Classes(classes.iter().map(|&class| class as i32).collect()),
            Sequences::Values { values, .. } => Targets::Values(Arc::from(values.as_slice())),
            Sequences::Quantiles { values, levels, .. } => {
                Targets::Quantiles { values: Arc::from(values.as_slice()), levels: levels.clone() }
            }
        };
        Ok(Self { inputs, targets, mask: batch.mask.as_deref().map(Into::into), steps: batch.segments.steps(b, t)? })
    }
}
