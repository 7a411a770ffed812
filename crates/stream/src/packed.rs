//! The model of a packed file: [`PackedFile`] has the format.

use alloc::{format, string::String, vec::Vec};

use minrnn_kernels::weight_matrix::WeightMatrix;
#[cfg(feature = "std")]
use minrnn_model::Section;
use minrnn_model::{Error, PackedFile, TensorEntry, WeightFormat};

use crate::source::Source;
use crate::{Model, Result};

/// What a packed file holds.
#[derive(Debug)]
pub struct PackedModel {
    /// The model.
    pub model: Model,
    /// `tokenizer.json` of a model that reads text, as it was given to [`PackedModel::write`].
    pub tokenizer: Option<Vec<u8>>,
    /// The tensors of the file, in its order.
    pub tensors: Vec<TensorEntry>,
}

impl PackedModel {
    /// The bytes every packed model begins with.
    pub const MAGIC: [u8; 8] = PackedFile::MAGIC;

    /// Writes a model to `path`, whole or not at all; returns the tensors it stored. The tensors are taken out of `weights`.
    ///
    /// Matrices are stored in `format`; with [`WeightFormat::Int4`], embedding and head as bf16. `tokenizer` is kept as it is.
    ///
    /// # Errors
    /// When the weights are not those of such a model, or the file cannot be written.
    #[cfg(feature = "std")]
    pub fn write(
        path: impl AsRef<std::path::Path>,
        config: &minrnn_model::ModelConfig,
        weights: &mut minrnn_model::Weights,
        format: WeightFormat,
        tokenizer: Option<&[u8]>,
    ) -> Result<Vec<TensorEntry>> {
        let mut recorder = crate::source::Recorder::new(weights, format);
        Model::read(config, &mut recorder)?;
        let tensors = recorder.finish()?;
        let sections: Vec<Section<'_>> = tokenizer.into_iter().map(Section::tokenizer).collect();
        minrnn_model::write_atomic(path, &PackedFile::encode(config, &sections, &tensors))?;
        Ok(tensors.into_iter().map(|(entry, _)| entry).collect())
    }

    /// Reads the packed model at `path`.
    ///
    /// # Errors
    /// When the file cannot be read, is damaged or cut short, or is not a packed model.
    #[cfg(feature = "std")]
    pub fn read(path: impl AsRef<std::path::Path>) -> Result<Self> {
        let path = path.as_ref();
        let bytes = std::fs::read(path).map_err(|source| Error::io("read", path, source))?;
        Self::from_bytes(&bytes).map_err(|error| Error::malformed(path, format!("{error}")).into())
    }

    /// The packed model whose file has these bytes.
    ///
    /// # Errors
    /// When they are damaged or cut short, or not those of a packed model. Nothing is allocated by a size that has not been checked.
    pub fn from_bytes(bytes: &[u8]) -> Result<Self> {
        let mut file = PackedFile::parse(bytes)?;
        let model = Model::read(&file.config.clone(), &mut file)?;
        file.expect_empty()?;
        let tokenizer = file.section(minrnn_model::Section::TOKENIZER).map(<[u8]>::to_vec);
        Ok(Self { model, tokenizer, tensors: file.entries })
    }
}

fn damaged<T>(problem: String) -> Result<T> {
    Err(Error::Packed(problem).into())
}

fn not_finite<T>(name: &str) -> Result<T> {
    damaged(format!("has tensor '{name}' with a number that is NaN or infinite; pack a checkpoint whose weights are finite"))
}

impl Source for PackedFile<'_> {
    fn vector(&mut self, name: &str, shape: &[usize]) -> Result<Vec<f32>> {
        let (format, bytes) = self.take(name, shape)?;
        let needed = shape.iter().try_fold(4usize, |bytes, &size| bytes.checked_mul(size));
        if format != WeightFormat::F32 || needed != Some(bytes.len()) {
            return damaged(format!("has tensor '{name}' as {} bytes of {format}, expected {needed:?} of f32", bytes.len()));
        }
        let values: Vec<f32> = bytes.as_chunks::<4>().0.iter().map(|bytes| f32::from_le_bytes(*bytes)).collect();
        if values.iter().any(|value| !value.is_finite()) {
            return not_finite(name);
        }
        Ok(values)
    }

    fn matrix(&mut self, name: &str, outputs: usize, inputs: usize) -> Result<WeightMatrix> {
        let (format, bytes) = self.take(name, &[outputs, inputs])?;
        let finite = match format {
            WeightFormat::F32 => bytes.as_chunks().0.iter().all(|bytes| f32::from_le_bytes(*bytes).is_finite()),
            // The upper half of an f32.
            WeightFormat::Bf16 => bytes.as_chunks().0.iter().all(|&[low, high]| f32::from_le_bytes([0, 0, low, high]).is_finite()),
            // Levels are integers; the scales are checked with the lengths.
            WeightFormat::Int8 | WeightFormat::Int4 => true,
        };
        if !finite {
            return not_finite(name);
        }
        WeightMatrix::from_bytes(format, outputs, inputs, bytes).map_or_else(
            || damaged(format!("has tensor '{name}' with {} bytes that are no {format} matrix; pack the model again", bytes.len())),
            Ok,
        )
    }
}
