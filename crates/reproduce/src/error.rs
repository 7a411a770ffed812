//! Errors.

use std::path::{Path, PathBuf};

/// Shorthand for results of this crate.
pub type Result<T, E = Error> = std::result::Result<T, E>;

/// Everything that can go wrong.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// A folder of results, or a run in it, belongs to something else.
    #[error("'{}': {problem}", path.display())]
    Folder {
        /// The folder or the file.
        path: PathBuf,
        /// What is wrong with it.
        problem: FolderProblem,
    },
    /// A target is malformed.
    #[error("{target}: {problem}")]
    Target {
        /// Its name, row and column.
        target: String,
        /// What is wrong with it.
        problem: String,
    },
    /// The host failed.
    #[error("{sentence}")]
    Host {
        /// Its message.
        sentence: String,
        /// Whether its input is at fault rather than the machine.
        is_wrong_input: bool,
    },
    /// A training or a file failed.
    #[error(transparent)]
    Library(#[from] minrnn::Error),
}

/// Why a folder cannot be used.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum FolderProblem {
    /// It has a format that this version does not write.
    #[error("the results were written by another version of minrnn (format {found}, this one writes {own})")]
    OtherFormat {
        /// The folder's format.
        found: u32,
        /// The format that this version writes.
        own: u32,
    },
    /// It has another scale.
    #[error("the folder holds results of scale {found}, but scale {wanted} was requested")]
    OtherScale {
        /// The folder's scale.
        found: String,
        /// The requested scale.
        wanted: &'static str,
    },
    /// It contains files that are not results.
    #[error("expected results or an empty folder, found '{0}'")]
    OtherFiles(String),
    /// A run in it has other settings.
    #[error("it holds a run with other settings ({found}; requested: {wanted}); remove it")]
    OtherSettings {
        /// The settings that differ.
        found: String,
        /// Their current values.
        wanted: String,
    },
    /// A result in it has no settings beside it.
    #[error("its settings are unknown (experiment.toml is missing) and may differ from those requested; remove it")]
    NoSettings,
    /// The settings beside a result in it, or of an unfinished run, cannot be read: they are damaged, too long, not text, or from another version.
    #[error("its settings cannot be read (experiment.toml: {0}); remove it")]
    UnreadableSettings(String),
    /// Its best checkpoint is the untrained model, which only older versions accepted.
    #[error("its best checkpoint is the untrained model, which no longer counts")]
    Untrained,
}

impl Error {
    /// An [`Error::Folder`] for `path`.
    pub(crate) fn folder(path: impl AsRef<Path>, problem: FolderProblem) -> Self {
        Self::Folder { path: path.as_ref().to_owned(), problem }
    }

    /// Whether the request is at fault rather than the machine.
    pub fn is_wrong_input(&self) -> bool {
        match self {
            Self::Folder { .. } => true,
            Self::Target { .. } => false,
            Self::Host { is_wrong_input, .. } => *is_wrong_input,
            Self::Library(error) => error.is_wrong_input(),
        }
    }
}

impl From<minrnn_model::Error> for Error {
    fn from(error: minrnn_model::Error) -> Self {
        Self::Library(error.into())
    }
}
