//! Errors as Python's exceptions: what kind of mistake it was, and the library's sentence.

use std::any::Any;
use std::panic::{AssertUnwindSafe, catch_unwind};

use minrnn_stream::{Error, ErrorKind, panic_words};
use pyo3::prelude::*;

/// Shorthand for results of this crate.
pub(crate) type Result<T, E = Failure> = std::result::Result<T, E>;

/// The kind of mistake: the names of the classes in `minrnn.errors`.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Mistake {
    File,
    Model,
    Input,
    Kind,
    State,
    Busy,
    Training,
    Memory,
    Internal,
}

impl Mistake {
    fn class(self) -> &'static str {
        match self {
            Self::File => "FileError",
            Self::Model => "ModelError",
            Self::Input => "InputError",
            Self::Kind => "KindError",
            Self::State => "StateError",
            Self::Busy => "BusyError",
            Self::Training => "TrainingError",
            Self::Memory => "OutOfMemoryError",
            Self::Internal => "InternalError",
        }
    }
}

/// A refusal.
#[derive(Debug)]
pub(crate) enum Failure {
    /// Raised here.
    Said(Mistake, String),
    /// Raised by Python.
    Raised(PyErr),
}

impl Failure {
    pub fn new(mistake: Mistake, sentence: impl Into<String>) -> Self {
        Self::Said(mistake, sentence.into())
    }

    /// An argument is not valid.
    pub fn input(sentence: impl Into<String>) -> Self {
        Self::new(Mistake::Input, sentence)
    }
}

impl From<PyErr> for Failure {
    fn from(error: PyErr) -> Self {
        Self::Raised(error)
    }
}

impl From<ErrorKind> for Mistake {
    fn from(kind: ErrorKind) -> Self {
        match kind {
            ErrorKind::File => Self::File,
            ErrorKind::Model => Self::Model,
            ErrorKind::Input => Self::Input,
            ErrorKind::Kind => Self::Kind,
            ErrorKind::State => Self::State,
            ErrorKind::Memory => Self::Memory,
        }
    }
}

impl From<Error> for Failure {
    fn from(error: Error) -> Self {
        Self::new(mistake_of(&error), error.to_string())
    }
}

/// The kind of an error of the runtime; a prediction that is not finite is a mistake in training, as it is for a whole table.
fn mistake_of(error: &Error) -> Mistake {
    if let Error::Prediction { .. } = error { Mistake::Training } else { error.kind().into() }
}

impl From<minrnn_model::Error> for Failure {
    fn from(error: minrnn_model::Error) -> Self {
        Error::from(error).into()
    }
}

impl From<minrnn::Error> for Failure {
    fn from(error: minrnn::Error) -> Self {
        use minrnn::{Error, RunProblem};
        let mistake = match &error {
            Error::Io { .. } => Mistake::File,
            Error::Run { problem: RunProblem::CheckpointGone(_), .. } => Mistake::File,
            Error::Malformed { .. } | Error::Model(_) => Mistake::Model,
            Error::Runtime(error) => mistake_of(error),
            Error::NonFinite { .. } | Error::Output { .. } => Mistake::Training,
            Error::Memory(_) => Mistake::Memory,
            _ => Mistake::Input,
        };
        let hint = hint(&error);
        Self::new(mistake, error.to_string() + &hint)
    }
}

/// What to do about the error, in Python's terms.
fn hint(error: &minrnn::Error) -> String {
    use minrnn::{Error, Needed, RunProblem};
    match error {
        Error::Needed { what, .. } => match what {
            Needed::File | Needed::Folder => "; give it as data".to_owned(),
            Needed::Target => "; name columns by the setting target".to_owned(),
            Needed::TargetOrLayout => "; give the setting target, or layout=\"wide-columns\"".to_owned(),
            Needed::TableTask => "; name the experiment: classify, regress or forecast, or text to learn its characters".to_owned(),
            Needed::Group => "; name it by the setting group".to_owned(),
            Needed::Into => " by into".to_owned(),
            Needed::ModelKey(key) => format!("; give {key} in settings"),
            _ => String::new(),
        },
        Error::MustStay(_) => ", or train in another directory (out)".to_owned(),
        Error::Run { problem, .. } => match problem {
            RunProblem::Missing => "; leave resume out to start a new run",
            RunProblem::NotBegun => ", without resume",
            RunProblem::NotARun(_) => "; give the run's directory as out",
            RunProblem::InUse => ", or choose another directory (out)",
            RunProblem::HoldsRun => "; continue that one with resume=True, or choose another directory (out)",
            RunProblem::HoldsFiles(_) | RunProblem::Changed(_) | RunProblem::SomeChanged(_) | RunProblem::OtherData => {
                "; choose another directory (out)"
            }
            _ => "",
        }
        .to_owned(),
        _ => String::new(),
    }
}

impl From<Failure> for PyErr {
    fn from(failure: Failure) -> Self {
        match failure {
            Failure::Raised(error) => error,
            Failure::Said(mistake, sentence) => Python::attach(|py| {
                let class = py.import("minrnn.errors").and_then(|errors| errors.getattr(mistake.class()));
                class.and_then(|class| class.call1((sentence,))).map_or_else(|error| error, PyErr::from_value)
            }),
        }
    }
}

/// Runs `work` while other threads of Python may run; a panic in it becomes an exception.
pub(crate) fn computed<T: Send>(py: Python<'_>, work: impl FnOnce() -> minrnn_stream::Result<T> + Send) -> Result<T> {
    Ok(apart(py, work)??)
}

/// The same for work with errors of its own.
pub(crate) fn apart<T: Send>(py: Python<'_>, work: impl FnOnce() -> T + Send) -> Result<T> {
    // What a panic may leave half done is behind a lock, which is then poisoned.
    py.detach(|| catch_unwind(AssertUnwindSafe(work))).map_err(|panic| panicked(&*panic))
}

/// A panic as a failure.
pub(crate) fn panicked(panic: &(dyn Any + Send)) -> Failure {
    let words = panic_words(panic);
    Failure::new(Mistake::Internal, format!("the library failed inside ({words}); please report this, and go on with a new session"))
}

/// Checks that memory can hold `len` elements of `T`, before anything relies on it.
pub(crate) fn expect_room<T>(len: Option<usize>) -> Result<usize> {
    // Small allocations need not be tried first.
    const SMALL: usize = 1 << 16;
    match len {
        Some(len) if len <= SMALL || Vec::<T>::new().try_reserve_exact(len).is_ok() => Ok(len),
        _ => Err(Failure::new(Mistake::Memory, "memory cannot hold the outputs; read fewer steps at once")),
    }
}
