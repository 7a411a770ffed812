//! The library's error type; every message is a sentence that names the thing, what was expected, what was found and what to do.

use std::path::{Path, PathBuf};

use minrnn_model::first_few;
use minrnn_stream::is_wrong_path;

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
        /// The operating system's error.
        source: std::io::Error,
    },
    /// A setting is unknown, out of range, or contradicts another one.
    #[error("{0}")]
    Config(String),
    /// The data cannot be used: empty, too short, not text, a symbol outside the vocabulary.
    #[error("{0}")]
    Data(String),
    /// The shape of a tensor or batch does not fit.
    #[error("{0}")]
    Shape(String),
    /// A file that minrnn wrote (checkpoint, run directory, session, verify case) is damaged or is not of the expected format.
    #[error("'{}': {problem}", path.display())]
    Malformed {
        /// The offending file or directory.
        path: PathBuf,
        /// What is wrong with it and what to do.
        problem: String,
        /// The underlying error, if the problem was found by code that reads such bytes from any source.
        source: Option<Box<dyn std::error::Error + Send + Sync>>,
    },
    /// A required setting without a default is missing.
    #[error("{sentence}")]
    Needed {
        /// What is missing.
        what: Needed,
        /// What it is needed for.
        sentence: String,
    },
    /// A setting differs from the one that a run began with.
    #[error("{0}")]
    MustStay(String),
    /// Data were given to an experiment that does not read any.
    #[error("data do not fit this experiment, which makes its own data; leave them out")]
    DataNotRead,
    /// A run directory, or a file in it, cannot be used as requested.
    #[error("'{}': {problem}", path.display())]
    Run {
        /// The directory or the file.
        path: PathBuf,
        /// What is wrong with it.
        problem: RunProblem,
    },
    /// There is no such device.
    #[error(transparent)]
    Device(#[from] DeviceProblem),
    /// The settings need more memory than there is, which is found before anything begins: wrong input.
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
    /// Another process of the same training failed.
    #[error("on process {rank} of {size}, counted from 0: {sentence}")]
    Elsewhere {
        /// Its rank, from 0.
        rank: usize,
        /// The number of processes.
        size: usize,
        /// Its error message.
        sentence: String,
        /// Whether its input was at fault.
        is_wrong_input: bool,
    },
    /// A trained model's output is not finite.
    #[error(
        "the model's output for {what} is not finite ({value}); its weights are damaged or its training went wrong: take another checkpoint, \
         or retrain it with a lower learning rate"
    )]
    Output {
        /// Its input: "the sequence 'm3'", "the text".
        what: String,
        /// The offending value.
        value: f64,
    },
    /// A model's configuration or file was refused. An unreadable file is [`Error::Io`] and a damaged one [`Error::Malformed`], unless its
    /// tensors or its packed sections are at fault.
    #[error(transparent)]
    Model(minrnn_model::Error),
    /// The inference runtime or the sampler refused its input.
    #[error(transparent)]
    Runtime(minrnn_stream::Error),
}

/// Something that a caller must provide; user interfaces say how.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum Needed {
    /// A text or a table, `data.path`.
    File,
    /// The folder of a task's files, `data.path`.
    Folder,
    /// The columns to predict, `data.target`.
    Target,
    /// The target columns, or `data.layout = wide-columns`, with which each column is a series.
    TargetOrLayout,
    /// What to learn from a table, `data.task`.
    TableTask,
    /// The column that names sequences, `data.group`.
    Group,
    /// The model that receives another library's recurrent layers.
    Into,
    /// A table of future rows, which follow the existing ones.
    RowsToCome,
    /// A key of a model's configuration that the weights file does not determine.
    ModelKey(String),
}

/// Why a run directory cannot be used.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum RunProblem {
    /// The run to be resumed does not exist.
    #[error("there is no run directory to resume")]
    Missing,
    /// The run to be resumed has not done anything yet, and no experiment is given.
    #[error("there is no run to resume in it: it was stopped before training began; start it again with the same command")]
    NotBegun,
    /// What is to be resumed is not a run.
    #[error("expected a run to resume, found other files such as '{0}'")]
    NotARun(String),
    /// Another process holds its lock.
    #[error("another process is training in this directory; wait for it to end")]
    InUse,
    /// A new run was requested in the directory of an existing one.
    #[error("it already holds a run")]
    HoldsRun,
    /// A new run was requested in a directory with other files.
    #[error("expected a new or an empty directory for the run, found '{0}' in it")]
    HoldsFiles(String),
    /// The first process of a training was given a directory that it reads only beside another process.
    #[error("the first process of a training writes to it, and this one has not made or opened it; make or open the run directory")]
    NotOpened,
    /// A checkpoint was copied away from the data it needs.
    #[error("it lies outside its run, whose data is needed")]
    OutsideRun,
    /// The file names a checkpoint that does not exist.
    #[error("it names '{}', which is gone; write the name of an existing checkpoint into it", .0.display())]
    CheckpointGone(PathBuf),
    /// The text or the table has changed.
    #[error("the {0} has changed since this run began")]
    Changed(&'static str),
    /// One of these files is not what the run began with, and its digests do not tell which.
    #[error("one of {} has changed since this run began, or was not part of it", listed(.0))]
    SomeChanged(Vec<PathBuf>),
    /// The files of a task have changed.
    #[error("the data are not those that the run began with; put these back")]
    OtherData,
    /// Another program wrote to the log of a running run.
    #[error(
        "another program replaced or changed the log while the run was writing it, and lines may be lost; leave it alone, put back what \
         you can, and resume the run"
    )]
    LogReplaced,
}

/// The names of `files`, in quotation marks.
fn listed(files: &[PathBuf]) -> String {
    first_few(files.len(), files.iter().map(|file| format!("'{}'", file.display())))
}

/// Why a device cannot be opened.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum DeviceProblem {
    /// The program lacks the feature of that name.
    #[error("this program was built without {0}; build it with the feature {0}")]
    NotBuilt(&'static str),
    /// There is no device of its kind.
    #[error("no {0} device was found; install the GPU driver, or compute on cpu")]
    NoneFound(&'static str),
    /// There are fewer devices of its kind.
    #[error("there is no {choice}: the machine has {count} of {kind}, counted from 0")]
    TooFew {
        /// The requested device.
        choice: String,
        /// Its kind.
        kind: &'static str,
        /// Number of such devices.
        count: usize,
    },
}

impl From<minrnn_model::Error> for Error {
    fn from(error: minrnn_model::Error) -> Self {
        match error {
            minrnn_model::Error::Text(problem) | minrnn_model::Error::Row(problem) => Self::Data(problem),
            minrnn_model::Error::Io { action, path, source } => Self::Io { action, path, source },
            minrnn_model::Error::Malformed { path, problem, source } => Self::Malformed { path, problem, source },
            error => Self::Model(error),
        }
    }
}

impl From<minrnn_stream::Error> for Error {
    fn from(error: minrnn_stream::Error) -> Self {
        match error {
            minrnn_stream::Error::Model(error) => error.into(),
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
        Self::Malformed { path: path.as_ref().to_owned(), problem: problem.into(), source: None }
    }

    /// The same error, naming the file whose content is wrong.
    pub(crate) fn in_file(self, path: &Path) -> Self {
        match self {
            Self::Data(problem) => Self::malformed(path, problem),
            other => other,
        }
    }

    /// An [`Error::Needed`].
    pub(crate) fn needed(what: Needed, sentence: impl Into<String>) -> Self {
        Self::Needed { what, sentence: sentence.into() }
    }

    /// An [`Error::Run`] for `path`.
    pub(crate) fn run(path: impl AsRef<Path>, problem: RunProblem) -> Self {
        Self::Run { path: path.as_ref().to_owned(), problem }
    }

    /// The same error with paths at or below `from` moved to `to`.
    pub(crate) fn moved(mut self, from: &Path, to: &Path) -> Self {
        let path = match &mut self {
            Self::Io { path, .. } | Self::Malformed { path, .. } => Some(path),
            Self::Model(error) => error.path_mut(),
            _ => None,
        };
        if let Some(path) = path
            && let Ok(below) = path.strip_prefix(from)
        {
            *path = if below.as_os_str().is_empty() { to.to_owned() } else { to.join(below) };
        }
        self
    }

    /// Whether the caller's input is at fault (exit code 2) or the run itself failed (exit code 1).
    pub fn is_wrong_input(&self) -> bool {
        match self {
            Self::NonFinite { .. } | Self::Output { .. } => false,
            Self::Runtime(error) => error.is_wrong_input(),
            Self::Elsewhere { is_wrong_input, .. } => *is_wrong_input,
            Self::Io { source, .. } => is_wrong_path(source),
            // The settings ask for more than there is: this is known beforehand, and settings that fit are named.
            Self::Memory(_) => true,
            Self::Config(_)
            | Self::Data(_)
            | Self::Shape(_)
            | Self::Malformed { .. }
            | Self::Needed { .. }
            | Self::MustStay(_)
            | Self::DataNotRead
            | Self::Run { .. }
            | Self::Device(_)
            | Self::Model(_) => true,
        }
    }
}

/// Checks that a trained model's `numbers` for the input `what` are finite.
///
/// # Errors
/// [`Error::Output`] with the first that is not.
pub fn expect_output(what: impl FnOnce() -> String, numbers: impl IntoIterator<Item = f64>) -> Result<()> {
    match numbers.into_iter().find(|number| !number.is_finite()) {
        None => Ok(()),
        Some(value) => Err(Error::Output { what: what(), value }),
    }
}

#[cfg(test)]
mod tests {
    use std::io::ErrorKind;

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
    fn a_file_that_cannot_be_read_or_is_damaged_is_one_variant_whoever_read_it() {
        let missing = || minrnn_model::Error::io("read", "file", ErrorKind::NotFound.into());
        for error in [Error::from(missing()), minrnn_stream::Error::from(missing()).into()] {
            assert!(matches!(&error, Error::Io { action: "read", .. }), "{error:?}");
            assert_eq!(error.to_string(), missing().to_string());
        }
        let damaged = || minrnn_model::Error::malformed_by("file", std::io::Error::other("its header is damaged"));
        for error in [Error::from(damaged()), minrnn_stream::Error::from(damaged()).into()] {
            assert!(matches!(&error, Error::Malformed { .. }), "{error:?}");
            assert_eq!(error.to_string(), damaged().to_string());
            assert!(std::error::Error::source(&error).is_some_and(|source| source.is::<std::io::Error>()), "{error:?}");
        }
    }

    #[test]
    fn an_error_about_something_moved_names_it_where_it_is_to_be() {
        let missing = |path: &str| Error::from(minrnn_model::Error::io("read", path, ErrorKind::NotFound.into()));
        let told = |path: &str| missing(path).moved(Path::new("a/.writing-x"), Path::new("b/model")).to_string();
        assert_eq!(told("a/.writing-x/config.json"), "could not read 'b/model/config.json': entity not found");
        assert_eq!(told("a/.writing-x"), "could not read 'b/model': entity not found");
        assert_eq!(told("a/other"), "could not read 'a/other': entity not found");
        assert_eq!(Error::Data("x".to_owned()).moved(Path::new("a"), Path::new("b")).to_string(), "x");
    }

    #[test]
    fn a_wrong_path_is_wrong_input_and_a_disk_or_memory_that_refuses_is_not() {
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
        assert!(Error::from(minrnn_stream::Error::Input("no row 3".to_owned())).is_wrong_input());
        assert!(!Error::from(minrnn_stream::Error::Memory("memory cannot hold 3 sessions".to_owned())).is_wrong_input());
        assert!(Error::Memory("training needs about 3 GiB of memory".to_owned()).is_wrong_input(), "it was told before anything began");
        assert!(!Error::Output { what: "the text".to_owned(), value: f64::NAN }.is_wrong_input());
        assert!(!Error::NonFinite { iteration: 0, tensor: "the loss".to_owned(), value: f64::NAN }.is_wrong_input());
    }
}
