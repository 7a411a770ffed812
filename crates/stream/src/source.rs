//! The source of a model's tensors, by name.

use alloc::{format, string::String, vec, vec::Vec};

use minrnn_kernels::weight_matrix::WeightMatrix;

use crate::Result;
use crate::linear::Linear;
#[cfg(feature = "std")]
use minrnn_model::{Error, WeightFormat};

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

/// The bits of the largest f32 that a bf16 rounds to a finite number.
#[cfg(feature = "std")]
const LARGEST_BF16: u32 = 0x7f7f_7fff;

/// The format of matrix `name` in a model stored in `format`: 4 bits are too few for embeddings, positions and the head, and 8 lose them
/// nothing. Matrices applied to measured numbers stay f32, as products in other formats round their inputs.
#[cfg(feature = "std")]
fn format_of(format: WeightFormat, name: &str) -> WeightFormat {
    match (format, name) {
        (_, "input.weight" | "to_go.weight" | "observation.weight" | "action.weight") => WeightFormat::F32,
        (WeightFormat::Int4, "embedding.weight" | "positions.weight" | "times.weight" | "head.weight") => WeightFormat::Int8,
        (format, _) => format,
    }
}

/// Whether bf16, if that is `format`, would make one of `values` infinite.
#[cfg(feature = "std")]
fn is_too_large(format: WeightFormat, values: &[f32]) -> bool {
    format == WeightFormat::Bf16 && values.iter().any(|value| value.abs().to_bits() > LARGEST_BF16)
}

/// Refuses a matrix whose numbers from before it was rounded to `format` would be needed.
#[cfg(feature = "std")]
fn rounded<T>(name: &str, format: WeightFormat) -> Result<T> {
    let problem = format!("stores tensor '{name}' as {format}, and the numbers it was rounded from are gone; give the run or checkpoint");
    Err(Error::Packed(problem).into())
}

#[cfg(feature = "std")]
fn values_of(matrix: &WeightMatrix) -> Vec<f32> {
    let inputs = matrix.inputs();
    let mut values = vec![0.0; matrix.outputs() * inputs];
    (0..matrix.outputs()).for_each(|i| matrix.row(i, &mut values[i * inputs..][..inputs]));
    values
}

/// Tensors of a checkpoint, stored in a format as they are read.
#[cfg(feature = "std")]
pub(crate) struct Checkpoint<'a> {
    pub(crate) weights: &'a mut minrnn_model::Weights,
    pub(crate) format: WeightFormat,
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
        let format = format_of(self.format, name);
        if is_too_large(format, &values) {
            let problem = format!("tensor '{name}' has a number that bf16 cannot hold; store the weights as f32");
            return Err(Error::malformed(self.weights.path(), problem).into());
        }
        Ok(WeightMatrix::new(format, outputs, inputs, &values))
    }
}

/// Tensors of a packed file whose matrices are rounded further, to a format; those already stored in it stay as they are.
#[cfg(feature = "std")]
pub(crate) struct Rounded<'a> {
    pub(crate) file: &'a mut dyn Source,
    pub(crate) format: WeightFormat,
}

#[cfg(feature = "std")]
impl Source for Rounded<'_> {
    fn has(&self, name: &str) -> bool {
        self.file.has(name)
    }

    fn vector(&mut self, name: &str, shape: &[usize]) -> Result<Vec<f32>> {
        self.file.vector(name, shape)
    }

    fn matrix(&mut self, name: &str, outputs: usize, inputs: usize) -> Result<WeightMatrix> {
        use WeightFormat::{Bf16, F32, Int4, Int8};
        let matrix = self.file.matrix(name, outputs, inputs)?;
        let wanted = format_of(self.format, name);
        match (matrix.format(), wanted) {
            (stored, wanted) if stored == wanted => Ok(matrix),
            // Integers are not rounded to other integers: the levels do not coincide.
            (F32, _) | (Bf16, Int8 | Int4) => {
                let values = values_of(&matrix);
                if is_too_large(wanted, &values) {
                    let problem = format!("has tensor '{name}' with a number that bf16 cannot hold; store the weights as f32");
                    return Err(Error::Packed(problem).into());
                }
                Ok(WeightMatrix::new(wanted, outputs, inputs, &values))
            }
            (stored, _) => rounded(name, stored),
        }
    }
}

/// Tensors recorded as they are asked for, as a packed file stores them.
#[cfg(feature = "std")]
pub(crate) struct Recorder<'a> {
    source: &'a mut dyn Source,
    tensors: Vec<(minrnn_model::TensorEntry, Vec<u8>)>,
}

#[cfg(feature = "std")]
impl<'a> Recorder<'a> {
    pub(crate) fn new(source: &'a mut dyn Source) -> Self {
        Self { source, tensors: Vec::new() }
    }

    fn add(&mut self, name: &str, shape: &[usize], format: WeightFormat, bytes: Vec<u8>) {
        let entry = minrnn_model::TensorEntry { name: name.to_owned(), shape: shape.to_vec(), format, bytes: bytes.len() };
        self.tensors.push((entry, bytes));
    }

    /// What was asked for.
    pub(crate) fn finish(self) -> Vec<(minrnn_model::TensorEntry, Vec<u8>)> {
        self.tensors
    }
}

#[cfg(feature = "std")]
impl Source for Recorder<'_> {
    fn has(&self, name: &str) -> bool {
        self.source.has(name)
    }

    fn vector(&mut self, name: &str, shape: &[usize]) -> Result<Vec<f32>> {
        let values = self.source.vector(name, shape)?;
        self.add(name, shape, WeightFormat::F32, values.iter().flat_map(|value| value.to_le_bytes()).collect());
        Ok(values)
    }

    fn matrix(&mut self, name: &str, outputs: usize, inputs: usize) -> Result<WeightMatrix> {
        let matrix = self.source.matrix(name, outputs, inputs)?;
        self.add(name, &[outputs, inputs], matrix.format(), matrix.to_bytes());
        Ok(matrix)
    }
}

/// Tensors of a packed file whose matrices are f32, recorded as a checkpoint stores them.
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
        self.tensors.push((name.to_owned(), minrnn_model::Tensor::new(shape.to_vec(), values.clone())?));
        Ok(values)
    }

    fn matrix(&mut self, name: &str, outputs: usize, inputs: usize) -> Result<WeightMatrix> {
        let matrix = self.file.matrix(name, outputs, inputs)?;
        if matrix.format() != WeightFormat::F32 {
            return rounded(name, matrix.format());
        }
        let data = values_of(&matrix);
        self.tensors.push((name.to_owned(), minrnn_model::Tensor::new(vec![outputs, inputs], data)?));
        Ok(matrix)
    }
}
