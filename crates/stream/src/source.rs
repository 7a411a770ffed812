//! Where a model's tensors come from, each by its name.

use alloc::{format, string::String, vec, vec::Vec};

use minrnn_kernels::weight_matrix::WeightMatrix;

use crate::Result;
use crate::linear::Linear;
#[cfg(feature = "std")]
use minrnn_model::Error;

/// Named tensors, taken one by one with the shape that the configuration implies.
pub(crate) trait Source {
    /// Whether there is such a tensor, not taken yet.
    fn has(&self, name: &str) -> bool;

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
    fn has(&self, name: &str) -> bool {
        self.source.has(name)
    }

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
    pub(crate) weights: &'a mut minrnn_model::Weights,
    pub(crate) format: minrnn_model::WeightFormat,
}

#[cfg(feature = "std")]
impl Checkpoint<'_> {
    /// The format of a matrix: 4 bits are too few for the rows that tokens begin and end with, and these are few. What meets measured numbers
    /// stays f32, as products with other formats round these.
    pub(crate) fn format_of(&self, name: &str) -> minrnn_model::WeightFormat {
        use minrnn_model::WeightFormat::{Bf16, F32, Int4};
        match (self.format, name) {
            (_, "input.weight" | "to_go.weight" | "observation.weight" | "action.weight") => F32,
            (Int4, "embedding.weight" | "positions.weight" | "times.weight" | "head.weight") => Bf16,
            (format, _) => format,
        }
    }
}

#[cfg(feature = "std")]
impl Source for Checkpoint<'_> {
    fn has(&self, name: &str) -> bool {
        self.weights.get(name).is_some()
    }

    fn vector(&mut self, name: &str, shape: &[usize]) -> Result<Vec<f32>> {
        Ok(self.weights.take(name, shape)?)
    }

    fn matrix(&mut self, name: &str, outputs: usize, inputs: usize) -> Result<WeightMatrix> {
        let values = self.weights.take(name, &[outputs, inputs])?;
        let format = self.format_of(name);
        if format == minrnn_model::WeightFormat::Bf16 && values.iter().any(|value| value.abs().to_bits() > LARGEST_BF16) {
            let problem = format!("tensor '{name}' has a number that bf16 cannot hold; store the weights as f32");
            return Err(Error::malformed(self.weights.path(), problem).into());
        }
        Ok(WeightMatrix::new(format, outputs, inputs, &values))
    }
}

/// Tensors of a checkpoint, stored in a format and remembered as they are asked for.
#[cfg(feature = "std")]
pub(crate) struct Recorder<'a> {
    checkpoint: Checkpoint<'a>,
    tensors: Vec<(minrnn_model::TensorEntry, Vec<u8>)>,
}

#[cfg(feature = "std")]
impl<'a> Recorder<'a> {
    pub(crate) fn new(weights: &'a mut minrnn_model::Weights, format: minrnn_model::WeightFormat) -> Self {
        Self { checkpoint: Checkpoint { weights, format }, tensors: Vec::new() }
    }

    fn add(&mut self, name: &str, shape: &[usize], format: minrnn_model::WeightFormat, bytes: Vec<u8>) {
        let entry = minrnn_model::TensorEntry { name: name.to_owned(), shape: shape.to_vec(), format, bytes: bytes.len() };
        self.tensors.push((entry, bytes));
    }

    /// What was asked for, once nothing is left.
    pub(crate) fn finish(self) -> Result<Vec<(minrnn_model::TensorEntry, Vec<u8>)>> {
        self.checkpoint.weights.expect_empty()?;
        Ok(self.tensors)
    }
}

#[cfg(feature = "std")]
impl Source for Recorder<'_> {
    fn has(&self, name: &str) -> bool {
        self.checkpoint.has(name)
    }

    fn vector(&mut self, name: &str, shape: &[usize]) -> Result<Vec<f32>> {
        let values = self.checkpoint.vector(name, shape)?;
        self.add(name, shape, minrnn_model::WeightFormat::F32, values.iter().flat_map(|value| value.to_le_bytes()).collect());
        Ok(values)
    }

    fn matrix(&mut self, name: &str, outputs: usize, inputs: usize) -> Result<WeightMatrix> {
        let matrix = self.checkpoint.matrix(name, outputs, inputs)?;
        self.add(name, &[outputs, inputs], self.checkpoint.format_of(name), matrix.to_bytes());
        Ok(matrix)
    }
}

/// Tensors of a packed file whose matrices are f32, remembered as a checkpoint has them.
#[cfg(feature = "std")]
pub(crate) struct Unpacker<'a> {
    file: &'a mut dyn Source,
    tensors: Vec<(String, minrnn_model::Tensor)>,
}

#[cfg(feature = "std")]
impl<'a> Unpacker<'a> {
    pub(crate) fn new(file: &'a mut dyn Source) -> Self {
        Self { file, tensors: Vec::new() }
    }

    pub(crate) fn finish(self) -> Vec<(String, minrnn_model::Tensor)> {
        self.tensors
    }
}

#[cfg(feature = "std")]
impl Source for Unpacker<'_> {
    fn has(&self, name: &str) -> bool {
        self.file.has(name)
    }

    fn vector(&mut self, name: &str, shape: &[usize]) -> Result<Vec<f32>> {
        let values = self.file.vector(name, shape)?;
        self.tensors.push((name.to_owned(), minrnn_model::Tensor { shape: shape.to_vec(), data: values.clone() }));
        Ok(values)
    }

    fn matrix(&mut self, name: &str, outputs: usize, inputs: usize) -> Result<WeightMatrix> {
        let matrix = self.file.matrix(name, outputs, inputs)?;
        if matrix.format() != minrnn_model::WeightFormat::F32 {
            let format = matrix.format();
            let problem =
                format!("stores tensor '{name}' as {format}, and the numbers it was rounded from are gone; give the run or checkpoint");
            return Err(Error::Packed(problem).into());
        }
        let mut data = vec![0.0; outputs * inputs];
        data.chunks_exact_mut(inputs).enumerate().for_each(|(i, row)| matrix.row(i, row));
        self.tensors.push((name.to_owned(), minrnn_model::Tensor { shape: vec![outputs, inputs], data }));
        Ok(matrix)
    }
}
