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
    /// A file of ours (checkpoint, run directory, session, verify case) is damaged or belongs to something else.
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
    /// The loss or a gradient stopped being a number.
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
    /// The model files reader or the sampler refused its input.
    #[error(transparent)]
    Stream(#[from] minrnn_stream::Error),
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

    /// The same about what is now, or was to be, at `to` where it names something at or below `from`.
    pub(crate) fn moved(mut self, from: &Path, to: &Path) -> Self {
        let path = match &mut self {
            Self::Io { path, .. } | Self::Malformed { path, .. } => Some(path),
            Self::Stream(error) => error.path_mut(),
            _ => None,
        };
        if let Some(path) = path
            && let Ok(below) = path.strip_prefix(from)
        {
            *path = if below.as_os_str().is_empty() { to.to_owned() } else { to.join(below) };
        }
        self
    }

    /// True where the caller's input is at fault (exit code 2), false where the run itself failed (exit code 1).
    pub fn is_wrong_input(&self) -> bool {
        match self {
            Self::NonFinite { .. } | Self::Output { .. } | Self::Stream(minrnn_stream::Error::Logit { .. }) => false,
            // A path that cannot be right is; a full disk or a missing permission is not.
            Self::Io { source, .. } | Self::Stream(minrnn_stream::Error::Io { source, .. }) => {
                matches!(
                    source.kind(),
                    ErrorKind::NotFound
                        | ErrorKind::AlreadyExists
                        | ErrorKind::IsADirectory
                        | ErrorKind::NotADirectory
                        | ErrorKind::InvalidInput
                        | ErrorKind::InvalidFilename
                ) || is_loop(source.kind())
            }
            _ => true,
        }
    }
}

/// Whether symbolic links lead to themselves. The kind has a name, but none that may be written.
fn is_loop(kind: ErrorKind) -> bool {
    format!("{kind:?}") == "FilesystemLoop"
}

#[cfg(test)]
mod tests {
    use super::*;

    #[cfg(unix)]
    #[test]
    fn a_symbolic_link_to_itself_is_wrong_input() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("loop");
        std::os::unix::fs::symlink(&path, &path).unwrap();
        let source = std::fs::read(&path).unwrap_err();
        assert!(Error::io("read", &path, source).is_wrong_input());
    }

    #[test]
    fn an_error_about_something_moved_names_it_where_it_is_to_be() {
        let missing = |path: &str| Error::from(minrnn_stream::Error::io("read", path, ErrorKind::NotFound.into()));
        let told = |path: &str| missing(path).moved(Path::new("a/.writing-x"), Path::new("b/model")).to_string();
        assert_eq!(told("a/.writing-x/config.json"), "could not read 'b/model/config.json': entity not found");
        assert_eq!(told("a/.writing-x"), "could not read 'b/model': entity not found");
        assert_eq!(told("a/other"), "could not read 'a/other': entity not found");
        assert_eq!(Error::Data("x".to_owned()).moved(Path::new("a"), Path::new("b")).to_string(), "x");
    }

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
            assert_eq!(Error::from(minrnn_stream::Error::io("write", "file", kind.into())).is_wrong_input(), expected, "{kind:?}");
        }
        assert!(Error::malformed("file", "is damaged").is_wrong_input());
        assert!(!Error::Output { what: "the text".to_owned(), value: f64::NAN }.is_wrong_input());
        assert!(!Error::NonFinite { iteration: 0, tensor: "the loss".to_owned(), value: f64::NAN }.is_wrong_input());
    }
}
