//! Errors of configurations and model files.

use alloc::string::String;
#[cfg(feature = "std")]
use alloc::vec::Vec;
#[cfg(feature = "std")]
use std::path::{Path, PathBuf};

/// Shorthand for results of this crate.
pub type Result<T, E = Error> = core::result::Result<T, E>;

/// Everything that can go wrong when a model is described, read or written.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// Reading or writing a file failed.
    #[cfg(feature = "std")]
    #[error("could not {action} '{}': {source}", path.display())]
    Io {
        /// What was attempted, as a verb phrase.
        action: &'static str,
        /// The file or directory.
        path: PathBuf,
        /// The operating system's error.
        source: std::io::Error,
    },
    /// A setting is out of range or contradicts another one.
    #[error("{0}")]
    Config(String),
    /// A name is not one of a setting's alternatives.
    #[error(transparent)]
    UnknownChoice(#[from] minrnn_kernels::choice::UnknownChoice),
    /// A packed model is damaged or of another version, or lacks something its model needs.
    #[error("the packed model {0}")]
    Packed(String),
    /// The description of a task cannot be read, or belongs to another model.
    #[error("the description of the task cannot be used: {0}")]
    Task(String),
    /// A row of a table has a number that the model cannot read.
    #[error("{0}")]
    Row(String),
    /// A text or a token id is not in the vocabulary.
    #[error("{0}")]
    Text(String),
    /// A vocabulary is damaged or of an unknown kind.
    #[error("the tokenizer {0}")]
    Tokenizer(String),
    /// A file is damaged or is not of the expected format.
    #[cfg(feature = "std")]
    #[error("'{}': {problem}", path.display())]
    Malformed {
        /// The offending file.
        path: PathBuf,
        /// What is wrong with it and what to do.
        problem: String,
        /// The underlying error, if the problem was found by code that reads such bytes from any source.
        source: Option<Box<dyn std::error::Error + Send + Sync>>,
    },
    /// A weights file has fewer or more bytes than its header describes.
    #[cfg(feature = "std")]
    #[error("'{}' should have {expected} bytes by its header but has {found}; it was cut short or damaged, copy it again", path.display())]
    WrongLength {
        /// The weights file.
        path: PathBuf,
        /// Bytes the header accounts for.
        expected: u64,
        /// Bytes the file has.
        found: u64,
    },
    /// The header of a weights file cannot be read or contradicts itself.
    #[cfg(feature = "std")]
    #[error("'{}': the header is damaged ({problem}); expected a safetensors file", path.display())]
    DamagedHeader {
        /// The weights file.
        path: PathBuf,
        /// What is wrong with it.
        problem: String,
    },
    /// A tensor is stored in a type that is not supported.
    #[cfg(feature = "std")]
    #[error("'{}': tensor '{tensor}' has type {found}, expected F32; store it as 32-bit floats", path.display())]
    WrongType {
        /// The weights file.
        path: PathBuf,
        /// The tensor's name.
        tensor: String,
        /// The type it has.
        found: String,
    },
    /// A weights file lacks a tensor.
    #[cfg(feature = "std")]
    #[error("'{}': tensor '{tensor}' is missing{}; the file belongs to another model or version", path.display(), wanted(expected.as_deref(), nearest.as_deref()))]
    MissingTensor {
        /// The weights file.
        path: PathBuf,
        /// The missing tensor's name.
        tensor: String,
        /// The shape it should have, if known.
        expected: Option<Vec<usize>>,
        /// The most similar name among the file's tensors that have not been read.
        nearest: Option<String>,
    },
    /// A weights file has a tensor that nothing asked for.
    #[cfg(feature = "std")]
    #[error("'{}': tensor '{tensor}' is not part of this model; the file belongs to another model or version", path.display())]
    UnexpectedTensor {
        /// The weights file.
        path: PathBuf,
        /// The surplus tensor's name.
        tensor: String,
    },
    /// A tensor's shape is not the one implied by the model's configuration.
    #[cfg(feature = "std")]
    #[error("'{}': tensor '{tensor}' has shape {found:?}, expected {expected:?}; the file belongs to another model", path.display())]
    WrongShape {
        /// The weights file.
        path: PathBuf,
        /// The tensor's name.
        tensor: String,
        /// The shape the model expects.
        expected: Vec<usize>,
        /// The shape in the file.
        found: Vec<usize>,
    },
    /// The number of values does not match a tensor's shape.
    #[cfg(feature = "std")]
    #[error("a tensor of shape {shape:?} has {found} values, expected as many as the product of its sizes")]
    WrongCount {
        /// Its shape.
        shape: Vec<usize>,
        /// The number of values.
        found: usize,
    },
    /// A weight is NaN or infinite.
    #[cfg(feature = "std")]
    #[error(
        "'{}': tensor '{tensor}' holds {found} at position {position}, expected finite numbers; the file is damaged or its training \
         diverged, take an earlier checkpoint", path.display()
    )]
    NotFinite {
        /// The weights file.
        path: PathBuf,
        /// The tensor's name.
        tensor: String,
        /// The position of the first such number in the tensor, row by row from 0.
        position: usize,
        /// The number.
        found: f32,
    },
}

/// What a missing tensor should have been, and what the file has.
#[cfg(feature = "std")]
fn wanted(expected: Option<&[usize]>, nearest: Option<&str>) -> String {
    let expected = expected.map(|shape| alloc::format!(", expected with shape {shape:?}")).unwrap_or_default();
    expected + &nearest.map(|name| alloc::format!("; the most similar name in the file is '{name}'")).unwrap_or_default()
}

#[cfg(feature = "std")]
impl Error {
    /// An [`Error::Io`] for `path`.
    pub fn io(action: &'static str, path: impl AsRef<Path>, source: std::io::Error) -> Self {
        Self::Io { action, path: path.as_ref().to_owned(), source }
    }

    /// The file or directory the error is about, if any.
    pub fn path_mut(&mut self) -> Option<&mut PathBuf> {
        match self {
            Self::Io { path, .. }
            | Self::Malformed { path, .. }
            | Self::WrongLength { path, .. }
            | Self::DamagedHeader { path, .. }
            | Self::WrongType { path, .. }
            | Self::MissingTensor { path, .. }
            | Self::UnexpectedTensor { path, .. }
            | Self::WrongShape { path, .. }
            | Self::NotFinite { path, .. } => Some(path),
            _ => None,
        }
    }

    /// An [`Error::Malformed`] for `path`.
    pub fn malformed(path: impl AsRef<Path>, problem: impl Into<String>) -> Self {
        Self::Malformed { path: path.as_ref().to_owned(), problem: problem.into(), source: None }
    }

    /// An [`Error::Malformed`] for `path`, with `source` as the problem.
    pub fn malformed_by(path: impl AsRef<Path>, source: impl std::error::Error + Send + Sync + 'static) -> Self {
        Self::Malformed { path: path.as_ref().to_owned(), problem: alloc::format!("{source}"), source: Some(Box::new(source)) }
    }
}
