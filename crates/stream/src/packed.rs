//! A model in one file: configuration, tokenizer and weights in their final format, under one checksum.
//!
//! ```text
//! magic (8 bytes) | version u32 | length of the header u32 | length of the file u64 | header (JSON) |
//! tokenizer | tensor | … | tensor | CRC-32C of all before (u32)
//! ```
//!
//! Numbers are little-endian; the tokenizer and every tensor begin at a multiple of 64 bytes, with zeros between. The header lists
//! the tensors in the order of the file. Matrices are stored as products read them, so that loading is a copy; everything else is f32.

use alloc::collections::BTreeMap;
use alloc::{format, string::String, vec::Vec};

use minrnn_kernels::weight_matrix::WeightMatrix;
use serde::{Deserialize, Serialize};

use crate::checksum::crc32c;
use crate::source::Source;
use crate::{Error, Model, ModelConfig, Result, WeightFormat};

const VERSION: u32 = 1;
/// Magic, version and the two lengths.
const FRAME: usize = 24;
const CHECKSUM: usize = 4;
const ALIGNMENT: usize = 64;

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

/// A tensor of a packed file.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct TensorEntry {
    /// Its path in the model, such as `backbone.blocks.0.mixer.in_proj.weight`.
    pub name: String,
    /// Size of each dimension.
    pub shape: Vec<usize>,
    /// How its numbers are stored; everything but matrices is f32.
    pub format: WeightFormat,
    /// Bytes it takes, scales and padding of its rows included.
    pub bytes: usize,
}

#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Header {
    model: ModelConfig,
    tokenizer_bytes: Option<usize>,
    tensors: Vec<TensorEntry>,
}

impl PackedModel {
    /// The bytes every packed model begins with.
    pub const MAGIC: [u8; 8] = *b"\x89minrnn\n";
    /// Writes a model to `path`, whole or not at all; returns the tensors it stored. The tensors are taken out of `weights`.
    ///
    /// Matrices are stored in `format`; with [`WeightFormat::Int4`], embedding and head as bf16. `tokenizer` is kept as it is.
    ///
    /// # Errors
    /// When the weights are not those of such a model, or the file cannot be written.
    #[cfg(feature = "std")]
    pub fn write(
        path: impl AsRef<std::path::Path>,
        config: &ModelConfig,
        weights: &mut crate::Weights,
        format: WeightFormat,
        tokenizer: Option<&[u8]>,
    ) -> Result<Vec<TensorEntry>> {
        let mut recorder = write::Recorder::new(weights, format);
        Model::read(config, &mut recorder)?;
        let (entries, sections) = recorder.finish()?;
        crate::write_atomic(path, &encode(config, tokenizer, &entries, &sections))?;
        Ok(entries)
    }

    /// Reads the packed model at `path`.
    ///
    /// # Errors
    /// When the file cannot be read, is damaged or cut short, or is not a packed model.
    #[cfg(feature = "std")]
    pub fn read(path: impl AsRef<std::path::Path>) -> Result<Self> {
        let path = path.as_ref();
        let bytes = std::fs::read(path).map_err(|source| Error::io("read", path, source))?;
        Self::from_bytes(&bytes).map_err(|error| Error::malformed(path, format!("{error}")))
    }

    /// The packed model whose file has these bytes.
    ///
    /// # Errors
    /// When they are damaged or cut short, or not those of a packed model. Nothing is allocated by a size that has not been checked.
    pub fn from_bytes(bytes: &[u8]) -> Result<Self> {
        let header = header(bytes)?;
        let Header { model: config, tokenizer_bytes, tensors } = header.content;
        let mut sections = Sections { bytes: &bytes[..bytes.len() - CHECKSUM], at: header.end };
        let tokenizer = tokenizer_bytes.map(|len| sections.next("the tokenizer", len).map(<[u8]>::to_vec)).transpose()?;
        let mut parts = BTreeMap::new();
        for entry in &tensors {
            let part = sections.next(&entry.name, entry.bytes)?;
            if parts.insert(entry.name.as_str(), (entry, part)).is_some() {
                return damaged(format!("lists tensor '{}' twice; pack the model again", entry.name));
            }
        }
        if sections.at != sections.bytes.len() {
            let surplus = sections.bytes.len() - sections.at;
            return damaged(format!("has {surplus} bytes that its header does not account for; pack the model again"));
        }
        let mut source = Parts(parts);
        let model = Model::read(&config, &mut source)?;
        if let Some(name) = source.0.keys().next() {
            return damaged(format!("has a tensor '{name}' that is not part of its model; pack the model again"));
        }
        Ok(Self { model, tokenizer, tensors })
    }
}

fn damaged<T>(problem: String) -> Result<T> {
    Err(Error::Packed(problem))
}

fn not_finite<T>(name: &str) -> Result<T> {
    damaged(format!("has tensor '{name}' with a number that is NaN or infinite; pack a checkpoint whose weights are finite"))
}

struct ReadHeader {
    content: Header,
    /// Where it ends.
    end: usize,
}

/// Checks everything that holds for the file as a whole.
fn header(bytes: &[u8]) -> Result<ReadHeader> {
    let Some((frame, _)) = bytes.split_first_chunk::<FRAME>() else {
        return damaged(format!("has {} bytes, fewer than its first {FRAME}", bytes.len()));
    };
    if frame[..8] != PackedModel::MAGIC {
        return damaged("is none: it does not begin like one".into());
    }
    let number = |at: usize, len: usize| frame[at..at + len].iter().rev().fold(0u64, |number, &byte| number << 8 | u64::from(byte));
    let (version, header_len, file_len) = (number(8, 4), number(12, 4), number(16, 8));
    if version != u64::from(VERSION) {
        return damaged(format!("has version {version}, expected {VERSION}; use the minrnn that wrote it"));
    }
    if file_len != bytes.len() as u64 {
        let found = bytes.len();
        return damaged(format!("should have {file_len} bytes but has {found}; it was cut short or damaged, copy it again"));
    }
    let end = FRAME as u64 + header_len;
    if end + CHECKSUM as u64 > file_len {
        return damaged(format!("claims a header of {header_len} bytes in a file of {file_len}; it is damaged, copy it again"));
    }
    let (body, checksum) = bytes.split_at(bytes.len() - CHECKSUM);
    if crc32c(body).to_le_bytes() != checksum {
        return damaged("is damaged: its checksum is another one; copy it again".into());
    }
    let end = end as usize;
    match serde_json::from_slice(&bytes[FRAME..end]) {
        Ok(content) => Ok(ReadHeader { content, end }),
        Err(error) => damaged(format!("has a header that cannot be read ({error}); use the minrnn that wrote it")),
    }
}

/// The parts behind the header, one after the other.
struct Sections<'a> {
    /// All but the checksum.
    bytes: &'a [u8],
    at: usize,
}

impl<'a> Sections<'a> {
    fn next(&mut self, name: &str, len: usize) -> Result<&'a [u8]> {
        let start = self.at.next_multiple_of(ALIGNMENT);
        match start.checked_add(len).filter(|&end| end <= self.bytes.len()) {
            Some(end) => {
                self.at = end;
                Ok(&self.bytes[start..end])
            }
            None => damaged(format!("claims {len} bytes for {name}, more than it has; pack the model again")),
        }
    }
}

/// Tensors by name, taken out one by one.
struct Parts<'a>(BTreeMap<&'a str, (&'a TensorEntry, &'a [u8])>);

impl<'a> Parts<'a> {
    fn take(&mut self, name: &str, shape: &[usize]) -> Result<(&'a TensorEntry, &'a [u8])> {
        let Some((entry, bytes)) = self.0.remove(name) else {
            return damaged(format!("lacks tensor '{name}'; pack the model again"));
        };
        if entry.shape != shape {
            return damaged(format!("has tensor '{name}' with shape {:?}, expected {shape:?}; pack the model again", entry.shape));
        }
        Ok((entry, bytes))
    }
}

impl Source for Parts<'_> {
    fn vector(&mut self, name: &str, shape: &[usize]) -> Result<Vec<f32>> {
        let (entry, bytes) = self.take(name, shape)?;
        let needed = shape.iter().try_fold(4usize, |bytes, &size| bytes.checked_mul(size));
        if entry.format != WeightFormat::F32 || needed != Some(bytes.len()) {
            return damaged(format!("has tensor '{name}' as {} bytes of {}, expected {needed:?} of f32", bytes.len(), entry.format));
        }
        let values: Vec<f32> = bytes.as_chunks::<4>().0.iter().map(|bytes| f32::from_le_bytes(*bytes)).collect();
        if values.iter().any(|value| !value.is_finite()) {
            return not_finite(name);
        }
        Ok(values)
    }

    fn matrix(&mut self, name: &str, outputs: usize, inputs: usize) -> Result<WeightMatrix> {
        let (entry, bytes) = self.take(name, &[outputs, inputs])?;
        let finite = match entry.format {
            WeightFormat::F32 => bytes.as_chunks().0.iter().all(|bytes| f32::from_le_bytes(*bytes).is_finite()),
            // The upper half of an f32.
            WeightFormat::Bf16 => bytes.as_chunks().0.iter().all(|&[low, high]| f32::from_le_bytes([0, 0, low, high]).is_finite()),
            // Levels are integers; the scales are checked with the lengths.
            WeightFormat::Int8 | WeightFormat::Int4 => true,
        };
        if !finite {
            return not_finite(name);
        }
        WeightMatrix::from_bytes(entry.format.into(), outputs, inputs, bytes).map_or_else(
            || damaged(format!("has tensor '{name}' with {} bytes that are no {} matrix; pack the model again", bytes.len(), entry.format)),
            Ok,
        )
    }
}

#[cfg(feature = "std")]
mod write {
    use super::{
        ALIGNMENT, CHECKSUM, FRAME, Header, ModelConfig, PackedModel, Result, Source, TensorEntry, VERSION, WeightFormat, WeightMatrix,
        crc32c,
    };
    use crate::Weights;
    use crate::source::Checkpoint;

    /// Tensors of a checkpoint, remembered as they are asked for.
    pub(super) struct Recorder<'a> {
        checkpoint: Checkpoint<'a>,
        entries: Vec<TensorEntry>,
        sections: Vec<Vec<u8>>,
    }

    impl<'a> Recorder<'a> {
        pub(super) fn new(weights: &'a mut Weights, format: WeightFormat) -> Self {
            Self { checkpoint: Checkpoint { weights, format }, entries: Vec::new(), sections: Vec::new() }
        }

        fn add(&mut self, name: &str, shape: &[usize], format: WeightFormat, bytes: Vec<u8>) {
            self.entries.push(TensorEntry { name: name.to_owned(), shape: shape.to_vec(), format, bytes: bytes.len() });
            self.sections.push(bytes);
        }

        pub(super) fn finish(self) -> Result<(Vec<TensorEntry>, Vec<Vec<u8>>)> {
            self.checkpoint.weights.expect_empty()?;
            Ok((self.entries, self.sections))
        }
    }

    impl Source for Recorder<'_> {
        fn vector(&mut self, name: &str, shape: &[usize]) -> Result<Vec<f32>> {
            let values = self.checkpoint.vector(name, shape)?;
            self.add(name, shape, WeightFormat::F32, values.iter().flat_map(|value| value.to_le_bytes()).collect());
            Ok(values)
        }

        fn matrix(&mut self, name: &str, outputs: usize, inputs: usize) -> Result<WeightMatrix> {
            let matrix = self.checkpoint.matrix(name, outputs, inputs)?;
            self.add(name, &[outputs, inputs], self.checkpoint.format_of(name), matrix.to_bytes());
            Ok(matrix)
        }
    }

    /// The whole file.
    pub(super) fn encode(config: &ModelConfig, tokenizer: Option<&[u8]>, entries: &[TensorEntry], sections: &[Vec<u8>]) -> Vec<u8> {
        let header = Header { model: config.clone(), tokenizer_bytes: tokenizer.map(<[u8]>::len), tensors: entries.to_vec() };
        let header = serde_json::to_vec(&header).expect("numbers and names serialise");
        let sections = || tokenizer.into_iter().chain(sections.iter().map(Vec::as_slice));
        // Room for all of it at once: a list that grows would be there twice, and beside the sections.
        let room = sections().fold(FRAME + header.len(), |end, section| end.next_multiple_of(ALIGNMENT) + section.len()) + CHECKSUM;
        let mut bytes = Vec::with_capacity(room);
        bytes.resize(FRAME, 0);
        bytes.extend(&header);
        for section in sections() {
            bytes.resize(bytes.len().next_multiple_of(ALIGNMENT), 0);
            bytes.extend(section);
        }
        let file_len = (bytes.len() + CHECKSUM) as u64;
        bytes[..8].copy_from_slice(&PackedModel::MAGIC);
        bytes[8..12].copy_from_slice(&VERSION.to_le_bytes());
        bytes[12..16].copy_from_slice(&(header.len() as u32).to_le_bytes());
        bytes[16..24].copy_from_slice(&file_len.to_le_bytes());
        bytes.extend(crc32c(&bytes).to_le_bytes());
        bytes
    }
}

#[cfg(feature = "std")]
use write::encode;
