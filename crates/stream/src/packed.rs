//! The model of a packed file; for the format see [`PackedFile`].

use alloc::{format, string::String, vec::Vec};
use core::fmt;

use minrnn_kernels::weight_matrix::{AlignedBytes, WeightMatrix};
use minrnn_model::{Calibration, Error, PackedFile, Section, TableTask, TensorEntry, WeightFormat};

use crate::source::Source;
use crate::{Model, Result};

/// The content of a packed file.
#[non_exhaustive]
pub struct PackedModel {
    /// The model.
    pub model: Model,
    /// A text model's `tokenizer.json`, as given to [`PackedModel::write`].
    pub tokenizer: Option<Vec<u8>>,
    /// The meaning of inputs and outputs, for a model trained on a table.
    pub table: Option<TableTask>,
    /// How a policy's step becomes numbers: its `task.json`, as given to [`PackedModel::write`].
    pub policy: Option<Vec<u8>>,
    /// How surprising held-out rows were, if known.
    pub surprise: Option<Calibration>,
    /// The tensors of the file, in order.
    pub tensors: Vec<TensorEntry>,
}

impl fmt::Debug for PackedModel {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { model, tokenizer, table, policy, surprise, tensors } = self;
        let [tokenizer, policy] = [tokenizer, policy].map(|bytes| bytes.as_ref().map(Vec::len));
        let mut sizes = f.debug_struct("PackedModel");
        sizes.field("model", model).field("tokenizer bytes", &tokenizer).field("has a table", &table.is_some());
        sizes.field("policy bytes", &policy).field("rows of surprise", &surprise.as_ref().map(Calibration::rows));
        sizes.field("tensors", &tensors.len()).finish()
    }
}

#[cfg(feature = "std")]
impl Model {
    /// Loads the model at `path`: a checkpoint directory, whose matrices stay f32, or a packed file.
    ///
    /// # Errors
    /// When it cannot be read, is damaged, or is not a model.
    pub fn load(path: impl AsRef<std::path::Path>) -> Result<Self> {
        let path = path.as_ref();
        if path.is_dir() {
            let (config, mut weights) = minrnn_model::read_checkpoint(path)?;
            return Self::new(&config.model, &mut weights, minrnn_model::WeightFormat::F32);
        }
        Ok(PackedModel::read(path)?.model)
    }
}

impl PackedModel {
    /// The bytes every packed model begins with.
    pub const MAGIC: [u8; 8] = PackedFile::MAGIC;

    /// Writes a model to `path`, atomically, with what is needed to use it in `sections`: a [`Section::tokenizer`], a [`Section::table`], a
    /// [`Section::policy`] or a [`Section::surprise`]. Returns the tensors it stored, which are taken out of `weights`.
    ///
    /// Matrices are stored in `format`; with [`WeightFormat::Int4`], embedding and head are stored as int8; matrices applied to measured
    /// numbers as f32.
    ///
    /// The bytes are read back before they replace what is at `path`. Memory holds the model twice in `format`: first the tensors and the
    /// bytes of the file, then the bytes and what is read back from them.
    ///
    /// # Errors
    /// When the weights are not those of such a model, when [`read`](Self::read) would refuse the file (a section cannot be read, belongs to
    /// another model, is given twice, or is required but unknown; a policy lacks its section), or when the file cannot be written. What was
    /// at `path` is then unchanged. `weights` have by then lost what was taken out, usually everything: read them again before retrying.
    #[cfg(feature = "std")]
    pub fn write(
        path: impl AsRef<std::path::Path>,
        config: &minrnn_model::ModelConfig,
        weights: &mut minrnn_model::Weights,
        format: WeightFormat,
        sections: &[Section<'_>],
    ) -> Result<Vec<TensorEntry>> {
        let mut checkpoint = crate::source::Checkpoint { weights, format };
        let mut recorder = crate::source::Recorder::new(&mut checkpoint);
        Model::read(config, &mut recorder)?;
        let tensors = recorder.finish();
        weights.expect_empty()?;
        let encoded = PackedFile::encode(config, sections, &tensors);
        // The tensors' content is in the bytes of the file by now.
        let entries = tensors.into_iter().map(|(entry, _)| entry).collect();
        write_readable(path.as_ref(), &encoded)?;
        Ok(entries)
    }

    /// Rewrites the packed model at `from` to `path`, atomically, with all of its sections and its matrices rounded further, to `format`.
    /// Matrices already stored in `format` are unchanged, to the bit. Returns the tensors it stored.
    ///
    /// # Errors
    /// As [`read`](Self::read); also when a matrix is stored with fewer bits than `format` has, or as other integers, when bf16 cannot hold
    /// it, or when the file cannot be written.
    #[cfg(feature = "std")]
    pub fn repack(from: impl AsRef<std::path::Path>, path: impl AsRef<std::path::Path>, format: WeightFormat) -> Result<Vec<TensorEntry>> {
        let from = from.as_ref();
        let bytes = read_whole(from)?;
        let repacked = || -> Result<_> {
            // A model that cannot be used is not rewritten.
            Self::from_bytes(&bytes)?;
            let mut tensors = Tensors { file: PackedFile::parse(&bytes)?, matrices: Copied };
            let config = tensors.file.config().clone();
            let mut rounded = crate::source::Rounded { file: &mut tensors, format };
            let mut recorder = crate::source::Recorder::new(&mut rounded);
            Model::read(&config, &mut recorder)?;
            let stored = recorder.finish();
            let sections: Vec<Section<'_>> = tensors.file.sections().collect();
            let encoded = PackedFile::encode(&config, &sections, &stored);
            Ok((encoded, stored.into_iter().map(|(entry, _)| entry).collect()))
        };
        let (encoded, entries) = repacked().map_err(|error| Error::malformed_by(from, error))?;
        drop(bytes);
        write_readable(path.as_ref(), &encoded)?;
        Ok(entries)
    }

    /// Reads the packed model at `path`.
    ///
    /// # Errors
    /// When the file cannot be read, is damaged or cut short, or is not a packed model.
    #[cfg(feature = "std")]
    pub fn read(path: impl AsRef<std::path::Path>) -> Result<Self> {
        let path = path.as_ref();
        let bytes = read_aligned(path)?;
        Self::from_aligned(&bytes).map_err(|error| Error::malformed_by(path, error).into())
    }

    /// The configuration and weights of the packed model at `path`, as in its checkpoint.
    ///
    /// # Errors
    /// As [`read`](Self::read); also when a matrix is not stored as f32, since its original values are lost.
    #[cfg(feature = "std")]
    pub fn unpack(path: impl AsRef<std::path::Path>) -> Result<(minrnn_model::ModelConfig, minrnn_model::Weights)> {
        let path = path.as_ref();
        let bytes = read_whole(path)?;
        let unpacked = || -> Result<_> {
            let mut tensors = Tensors { file: PackedFile::parse(&bytes)?, matrices: Copied };
            let config = tensors.file.config().clone();
            let mut unpacker = crate::source::Unpacker::new(&mut tensors);
            Model::read(&config, &mut unpacker)?;
            let unpacked = unpacker.finish();
            tensors.file.expect_empty()?;
            Ok((config, minrnn_model::Weights::of(path, unpacked)))
        };
        unpacked().map_err(|error| Error::malformed_by(path, error).into())
    }

    /// Loads a packed model from the bytes of its file.
    ///
    /// # Errors
    /// When they are damaged or cut short, or not those of a packed model. No size is used for allocation before it has been checked.
    pub fn from_bytes(bytes: &[u8]) -> Result<Self> {
        Self::of(Tensors { file: PackedFile::parse(bytes)?, matrices: Copied })
    }

    /// As [`from_bytes`](Self::from_bytes), but the matrices stay in `bytes`: the model shares this memory instead of copying it.
    ///
    /// # Errors
    /// As [`from_bytes`](Self::from_bytes).
    pub fn from_aligned(bytes: &AlignedBytes) -> Result<Self> {
        Self::of(Tensors { file: PackedFile::parse(bytes)?, matrices: Shared(bytes) })
    }

    /// As [`from_aligned`](Self::from_aligned), for constants, such as a file in flash memory. Bytes that are not aligned to 64 are copied;
    /// a wrapper `#[repr(align(64))]` around `*include_bytes!(…)` aligns them.
    ///
    /// # Errors
    /// As [`from_bytes`](Self::from_bytes).
    pub fn from_constant(bytes: &'static [u8]) -> Result<Self> {
        Self::of(Tensors { file: PackedFile::parse(bytes)?, matrices: Constant })
    }

    fn of<'a, M: Matrices<'a>>(mut tensors: Tensors<'a, M>) -> Result<Self> {
        let model = Model::read(&tensors.file.config().clone(), &mut tensors)?;
        let file = tensors.file;
        file.expect_empty()?;
        let table = table_of(&model, |name| file.section(name)).or_else(|error| damaged(format!("has a section 'table': {error}")))?;
        let surprise = file.section(Section::SURPRISE).map(Calibration::from_bytes).transpose();
        let surprise = surprise.or_else(|error| damaged(format!("has a section 'surprise': {error}")))?;
        let [tokenizer, policy] = [Section::TOKENIZER, Section::POLICY].map(|name| file.section(name).map(<[u8]>::to_vec));
        if model.is_policy() && policy.is_none() {
            return damaged("is a policy without a section 'policy', which says how a step becomes numbers; pack the model again".into());
        }
        let (_, tensors) = file.into_parts();
        Ok(Self { model, tokenizer, table, policy, surprise, tensors })
    }
}

/// Writes the bytes of a packed file to `path`, whole or not at all, and none that [`PackedModel::read`] would refuse.
#[cfg(feature = "std")]
fn write_readable(path: &std::path::Path, encoded: &[u8]) -> Result<()> {
    let unreadable = |error: crate::Error| Error::malformed(path, format!("it was not written, as it could not be read again: {error}"));
    drop(PackedModel::from_bytes(encoded).map_err(unreadable)?);
    Ok(minrnn_model::write_atomic(path, encoded)?)
}

/// The task on tables among the sections, for this model.
fn table_of<'a>(model: &Model, section: impl Fn(&str) -> Option<&'a [u8]>) -> minrnn_model::Result<Option<TableTask>> {
    let Some(json) = section(Section::TABLE) else { return Ok(None) };
    TableTask::from_bytes(json, model.config().input_width, model.outputs()).map(Some)
}

fn damaged<T>(problem: String) -> Result<T> {
    Err(Error::Packed(problem).into())
}

fn not_finite<T>(name: &str) -> Result<T> {
    damaged(format!("has tensor '{name}' with a number that is NaN or infinite; pack a checkpoint whose weights are finite"))
}

/// The tensors of a file, and what becomes of its matrices.
struct Tensors<'a, M> {
    file: PackedFile<'a>,
    matrices: M,
}

/// Makes matrices from the bytes of a file; `None` if the bytes are not a matrix.
trait Matrices<'a> {
    fn matrix(&self, format: WeightFormat, sizes: [usize; 2], bytes: &'a [u8]) -> Option<WeightMatrix>;
}

/// Matrices get memory of their own.
struct Copied;

impl<'a> Matrices<'a> for Copied {
    fn matrix(&self, format: WeightFormat, [outputs, inputs]: [usize; 2], bytes: &'a [u8]) -> Option<WeightMatrix> {
        WeightMatrix::from_bytes(format, outputs, inputs, bytes)
    }
}

/// Matrices stay where they are in the file's memory.
struct Shared<'a>(&'a AlignedBytes);

impl<'a> Matrices<'a> for Shared<'a> {
    fn matrix(&self, format: WeightFormat, [outputs, inputs]: [usize; 2], bytes: &'a [u8]) -> Option<WeightMatrix> {
        // The bytes are a part of the file.
        let start = bytes.as_ptr().addr().checked_sub(self.0.as_ptr().addr())?;
        WeightMatrix::from_shared(format, outputs, inputs, self.0, start..start + bytes.len())
    }
}

/// Matrices stay where they are, in a constant.
struct Constant;

impl Matrices<'static> for Constant {
    fn matrix(&self, format: WeightFormat, [outputs, inputs]: [usize; 2], bytes: &'static [u8]) -> Option<WeightMatrix> {
        WeightMatrix::from_constant(format, outputs, inputs, bytes)
    }
}

/// Reads the file at `path` for [`PackedModel::from_aligned`].
///
/// # Errors
/// When the file cannot be read, or memory cannot hold it.
#[cfg(feature = "std")]
pub fn read_aligned(path: impl AsRef<std::path::Path>) -> Result<AlignedBytes> {
    let path = path.as_ref();
    Ok(aligned(Content::open(path)?).map_err(|source| Error::io("read", path, source))?)
}

#[cfg(feature = "std")]
fn aligned(Content { mut bytes, known }: Content) -> std::io::Result<AlignedBytes> {
    use std::io::Read;

    let len = usize::try_from(known).map_err(|_| std::io::Error::from(std::io::ErrorKind::OutOfMemory))?;
    let known = AlignedBytes::filled_by(len, |out| bytes.read_exact(out))?;
    let mut rest = Vec::new();
    bytes.read_to_end(&mut rest)?;
    // A pipe, or a file that grew.
    Ok(if rest.is_empty() { known } else { AlignedBytes::copied(&[&*known, &rest].concat())? })
}

/// The bytes of the packed model at `path`.
#[cfg(feature = "std")]
fn read_whole(path: &std::path::Path) -> Result<Vec<u8>> {
    use std::io::Read;

    let mut bytes = Vec::new();
    Content::open(path)?.bytes.read_to_end(&mut bytes).map_err(|source| Error::io("read", path, source))?;
    Ok(bytes)
}

/// What is read of a packed model: as many bytes as it claims to have, and one more if there are any.
#[cfg(feature = "std")]
struct Content {
    bytes: std::io::Take<std::io::Chain<std::io::Cursor<Vec<u8>>, std::fs::File>>,
    /// How many of them are known to exist: all of a regular file, none of a pipe.
    known: u64,
}

#[cfg(feature = "std")]
impl Content {
    /// Opens `path`, and refuses it unless it begins as a packed model of its length: anything else may not fit into memory, or may have
    /// no end.
    fn open(path: &std::path::Path) -> Result<Self> {
        use std::io::Read;

        let io = |source| Error::io("read", path, source);
        let mut file = std::fs::File::open(path).map_err(io)?;
        let about = file.metadata().map_err(io)?;
        // A pipe cannot be read twice, so these bytes are kept.
        let mut beginning = Vec::new();
        file.by_ref().take(PackedFile::FRAME as u64).read_to_end(&mut beginning).map_err(io)?;
        let (known, length) = match about.is_file() {
            true => (about.len(), PackedFile::expect_frame(&beginning, about.len()).map(|()| about.len())),
            false => (0, PackedFile::claimed_length(&beginning)),
        };
        let length = length.map_err(|error| Error::malformed_by(path, error))?;
        Ok(Self { bytes: std::io::Cursor::new(beginning).chain(file).take(length.saturating_add(1)), known })
    }
}

impl<'a, M: Matrices<'a>> Source for Tensors<'a, M> {
    fn has(&self, name: &str) -> bool {
        self.file.entries().iter().any(|entry| entry.name == name)
    }

    fn vector(&mut self, name: &str, shape: &[usize]) -> Result<Vec<f32>> {
        let (format, bytes) = self.file.take(name, shape)?;
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
        let (format, bytes) = self.file.take(name, &[outputs, inputs])?;
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
        self.matrices.matrix(format, [outputs, inputs], bytes).map_or_else(
            || damaged(format!("has tensor '{name}' with {} bytes that are no {format} matrix; pack the model again", bytes.len())),
            Ok,
        )
    }
}
