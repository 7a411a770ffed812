//! Where a model's tensors come from, each by its name.

use alloc::{format, string::String, vec, vec::Vec};

use minrnn_kernels::weight_matrix::WeightMatrix;

#[cfg(feature = "std")]
use crate::Error;
use crate::Result;
use crate::linear::Linear;

/// Named tensors, taken one by one with the shape that the configuration implies.
pub(crate) trait Source {
    /// A tensor that stays f32: biases, norms, filters, initial states.
    fn vector(&mut self, name: &str, shape: &[usize]) -> Result<Vec<f32>>;

    /// A weight matrix `[outputs, inputs]`.
    fn matrix(&mut self, name: &str, outputs: usize, inputs: usize) -> Result<WeightMatrix>;

    /// A matrix `[outputs, inputs]` and its bias.
    fn linear(&mut self, name: &str, outputs: usize, inputs: usize) -> Result<Linear> {
        Ok(Linear { weight: self.matrix(&join(name, "weight"), outputs, inputs)?, bias: self.vector(&join(name, "bias"), &[outputs])? })
    }

    /// A matrix `[outputs, inputs]` without a bias.
    fn linear_without_bias(&mut self, name: &str, outputs: usize, inputs: usize) -> Result<Linear> {
        Ok(Linear { weight: self.matrix(&join(name, "weight"), outputs, inputs)?, bias: vec![0.0; outputs] })
    }
}

/// The path of a part.
pub(crate) fn join(name: &str, part: &str) -> String {
    format!("{name}.{part}")
}

/// Counts the trainable parameters that are taken; running statistics are none.
pub(crate) struct Counted<'a> {
    source: &'a mut dyn Source,
    pub(crate) parameters: usize,
}

impl<'a> Counted<'a> {
    pub(crate) fn new(source: &'a mut dyn Source) -> Self {
        Self { source, parameters: 0 }
    }
}

impl Source for Counted<'_> {
    fn vector(&mut self, name: &str, shape: &[usize]) -> Result<Vec<f32>> {
        let values = self.source.vector(name, shape)?;
        if !name.contains("running_") {
            self.parameters += values.len();
        }
        Ok(values)
    }

    fn matrix(&mut self, name: &str, outputs: usize, inputs: usize) -> Result<WeightMatrix> {
        let matrix = self.source.matrix(name, outputs, inputs)?;
        self.parameters += outputs * inputs;
        Ok(matrix)
    }
}

/// The bits of the largest f32 that a bf16 rounds to a finite number.
#[cfg(feature = "std")]
const LARGEST_BF16: u32 = 0x7f7f_7fff;

/// Tensors of a checkpoint, stored in a format as they are read.
#[cfg(feature = "std")]
pub(crate) struct Checkpoint<'a> {
    pub(crate) weights: &'a mut crate::Weights,
    pub(crate) format: crate::WeightFormat,
}

#[cfg(feature = "std")]
impl Checkpoint<'_> {
    /// The format of a matrix: 4 bits are too few for the rows that tokens begin and end with, and these are few.
    pub(crate) fn format_of(&self, name: &str) -> crate::WeightFormat {
        use crate::WeightFormat::{Bf16, Int4};
        match self.format {
            Int4 if matches!(name, "embedding.weight" | "head.weight") => Bf16,
            format => format,
        }
    }
}

#[cfg(feature = "std")]
impl Source for Checkpoint<'_> {
    fn vector(&mut self, name: &str, shape: &[usize]) -> Result<Vec<f32>> {
        self.weights.take(name, shape)
    }

    fn matrix(&mut self, name: &str, outputs: usize, inputs: usize) -> Result<WeightMatrix> {
        let values = self.weights.take(name, &[outputs, inputs])?;
        let format = self.format_of(name);
        if format == crate::WeightFormat::Bf16 && values.iter().any(|value| value.abs().to_bits() > LARGEST_BF16) {
            let problem = format!("tensor '{name}' has a number that bf16 cannot hold; store the weights as f32");
            return Err(Error::malformed(self.weights.path(), problem));
        }
        Ok(WeightMatrix::new(format.into(), outputs, inputs, &values))
    }
}
