//! One error type for the library; every message is a sentence that names the thing, what was expected, what was found and what to do.

use std::io::ErrorKind;
use std::path::{Path, PathBuf};

/// Shorthand for results of this library.
pub type Result<T, E = Error> = std::result::Result<T, E>;

/// Everything that can go wrong in the library.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// Reading or writing a file failed.
    #[error("could not {action} '{}': {source}", path.display())]
    Io {
        /// What was attempted, as a verb phrase ("read the text file").
        action: &'static str,
        /// The file or directory.
        path: PathBuf,
        /// The operating system's answer.
        source: std::io::Error,
    },
    /// A setting is unknown, out of range, or contradicts another one.
    #[error("{0}")]
    Config(String),
    /// The data cannot be used: empty, too short, not text, a symbol outside the vocabulary.
    #[error("{0}")]
    Data(String),
    /// A tensor or batch has a shape that does not fit.
    #[error("{0}")]
    Shape(String),
    /// A file that minrnn wrote (checkpoint, run directory, session, verify case) is damaged or belongs to something else.
    #[error("'{}': {problem}", path.display())]
    Malformed {
        /// The offending file or directory.
        path: PathBuf,
        /// What is wrong with it and what to do.
        problem: String,
    },
    /// More memory is needed than there is.
    #[error("{0}")]
    Memory(String),
    /// Training diverged: the loss or a gradient is NaN or infinite.
    #[error(
        "iteration {iteration}: {tensor} is not finite ({value}); resume from the last checkpoint with a lower learning rate or clip norm"
    )]
    NonFinite {
        /// Training iteration, counted from 0.
        iteration: u64,
        /// "the loss", "the test loss", or "the gradient of `parameter path`".
        tensor: String,
        /// The offending value.
        value: f64,
    },
    /// A trained model gave something that is no number.
    #[error(
        "the model's output for {what} is not finite ({value}); its weights are damaged or its training went wrong: take another checkpoint, \
         or train it anew with a lower learning rate"
    )]
    Output {
        /// What it read: "the sequence 'm3'", "the text".
        what: String,
        /// The offending value.
        value: f64,
    },
    /// A configuration or a file of a model was refused.
    #[error(transparent)]
    Model(#[from] minrnn_model::Error),
    /// The inference runtime or the sampler refused its input.
    #[error(transparent)]
    Runtime(minrnn_stream::Error),
}

impl From<minrnn_stream::Error> for Error {
    fn from(error: minrnn_stream::Error) -> Self {
        match error {
            minrnn_stream::Error::Model(error) => Self::Model(error),
            error => Self::Runtime(error),
        }
    }
}

impl Error {
    /// An [`Error::Io`] for `path`; `action` is a verb phrase such as "read the text file".
    pub fn io(action: &'static str, path: impl AsRef<Path>, source: std::io::Error) -> Self {
        Self::Io { action, path: path.as_ref().to_owned(), source }
    }

    /// An [`Error::Malformed`] for `path`.
    pub fn malformed(path: impl AsRef<Path>, problem: impl Into<String>) -> Self {
        Self::Malformed { path: path.as_ref().to_owned(), problem: problem.into() }
    }

    /// True where the caller's input is at fault (exit code 2), false where the run itself failed (exit code 1).
    pub fn is_wrong_input(&self) -> bool {
        match self {
            Self::NonFinite { .. } | Self::Output { .. } | Self::Runtime(minrnn_stream::Error::Logit { .. }) => false,
            // A path that cannot be right is; a full disk or a missing permission is not.
            Self::Io { source, .. } | Self::Model(minrnn_model::Error::Io { source, .. }) => matches!(
                source.kind(),
                ErrorKind::NotFound
                    | ErrorKind::AlreadyExists
                    | ErrorKind::IsADirectory
                    | ErrorKind::NotADirectory
                    | ErrorKind::InvalidInput
                    | ErrorKind::InvalidFilename
            ),
            _ => true,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_wrong_path_is_wrong_input_and_a_refusing_disk_is_not() {
        for (kind, expected) in [
            (ErrorKind::NotFound, true),
            (ErrorKind::IsADirectory, true),
            (ErrorKind::PermissionDenied, false),
            (ErrorKind::StorageFull, false),
            (ErrorKind::ReadOnlyFilesystem, false),
        ] {
            assert_eq!(Error::io("read", "file", kind.into()).is_wrong_input(), expected, "{kind:?}");
            assert_eq!(Error::from(minrnn_model::Error::io("write", "file", kind.into())).is_wrong_input(), expected, "{kind:?}");
        }
        assert!(Error::malformed("file", "is damaged").is_wrong_input());
        assert!(!Error::Output { what: "the text".to_owned(), value: f64::NAN }.is_wrong_input());
        assert!(!Error::NonFinite { iteration: 0, tensor: "the loss".to_owned(), value: f64::NAN }.is_wrong_input());
    }
}
