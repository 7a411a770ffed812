//! Errors of running a model.

use alloc::string::String;
use core::any::Any;

/// Shorthand for results of this crate.
pub type Result<T, E = Error> = core::result::Result<T, E>;

/// Everything that can go wrong when a model is run.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// The model's configuration or its files are wrong.
    #[error(transparent)]
    Model(#[from] minrnn_model::Error),
    /// A setting of the sampler is out of range, or leaves no token to choose.
    #[error("{0}")]
    Sampling(String),
    /// A token that the model does not know.
    #[error("token id {token} is not known to the model, expected one below {vocab_size}")]
    UnknownToken {
        /// The token.
        token: u32,
        /// Number of tokens the model knows.
        vocab_size: usize,
    },
    /// Tokens given to a model that reads values, or values to one that reads tokens.
    #[error("the model reads {expected}, found {found}")]
    Reads {
        /// What the model reads.
        expected: crate::Reads,
        /// What it was given.
        found: &'static str,
    },
    /// The model does not support this.
    #[error("{0}")]
    Kind(&'static str),
    /// A number to be read is not finite.
    #[error("number {column} of step {step} in sequence {sequence} is {value}, expected a finite number (all counted from 0)")]
    NotFinite {
        /// The sequence among those given; 0 when there is one step for each session.
        sequence: usize,
        /// The step in the sequence.
        step: usize,
        /// The number in the step.
        column: usize,
        /// The number.
        value: f32,
    },
    /// A model gave a logit that is NaN or infinite.
    #[error("the logit of token {token} is {value}, expected a number; the model's weights or its state are damaged")]
    Logit {
        /// The token.
        token: usize,
        /// Its logit.
        value: f32,
    },
    /// A model's prediction is not finite.
    #[error("the model predicts {value} for row {row}, which is no number; train it anew, and begin the row anew")]
    Prediction {
        /// The session whose row of a table was read.
        row: usize,
        /// The number.
        value: f64,
    },
    /// Steps, outputs or rows do not fit the state or the model.
    #[error("{0}")]
    Input(String),
    /// A saved state is damaged or belongs to another model, or a state cannot be saved.
    #[error("the saved state {0}")]
    State(String),
    /// There is not enough memory for what was asked for.
    #[error("{0}")]
    Memory(String),
}

/// The kind of an error. Bindings map each kind to a status or a class; the enum is deliberately exhaustive, so that the compiler tells
/// them of a new one.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ErrorKind {
    /// A file could not be read or written.
    File,
    /// A model or its sections are damaged or not supported by this library, or its prediction is not finite.
    Model,
    /// A number, token, text, row or setting is not valid.
    Input,
    /// The model does not support this.
    Kind,
    /// A saved state is damaged or belongs to another model, or a state is not finite.
    State,
    /// Not enough memory.
    Memory,
}

impl Error {
    /// The kind of the error.
    pub fn kind(&self) -> ErrorKind {
        match self {
            #[cfg(feature = "std")]
            Self::Model(minrnn_model::Error::Io { .. }) => ErrorKind::File,
            Self::Model(minrnn_model::Error::Text(_) | minrnn_model::Error::Row(_)) => ErrorKind::Input,
            Self::Model(_) | Self::Prediction { .. } => ErrorKind::Model,
            Self::Reads { .. } | Self::Kind(_) => ErrorKind::Kind,
            Self::State(_) | Self::Logit { .. } => ErrorKind::State,
            Self::Memory(_) => ErrorKind::Memory,
            Self::Sampling(_) | Self::UnknownToken { .. } | Self::NotFinite { .. } | Self::Input(_) => ErrorKind::Input,
        }
    }

    /// True if the caller's input is at fault, a state to save or restore included; false if a prediction is not finite, memory is short, or the machine
    /// failed.
    pub fn is_wrong_input(&self) -> bool {
        match self {
            #[cfg(feature = "std")]
            Self::Model(minrnn_model::Error::Io { source, .. }) => is_wrong_path(source),
            Self::Logit { .. } | Self::Prediction { .. } => false,
            // The same request may succeed on a machine with more memory, or with less to do.
            Self::Memory(_) => false,
            Self::Model(_)
            | Self::Sampling(_)
            | Self::UnknownToken { .. }
            | Self::Reads { .. }
            | Self::Kind(_)
            | Self::NotFinite { .. }
            | Self::Input(_)
            | Self::State(_) => true,
        }
    }
}

/// Whether a file could not be read or written because its path is wrong, rather than because of a full disk or missing permission.
#[cfg(feature = "std")]
pub fn is_wrong_path(error: &std::io::Error) -> bool {
    use std::io::ErrorKind;
    let kind = error.kind();
    matches!(
        kind,
        ErrorKind::NotFound
            | ErrorKind::AlreadyExists
            | ErrorKind::IsADirectory
            | ErrorKind::NotADirectory
            | ErrorKind::InvalidInput
            | ErrorKind::InvalidFilename
    ) || is_loop(kind)
}

/// Whether symbolic links form a loop. The variant of this kind is unstable, so code cannot name it.
#[cfg(feature = "std")]
fn is_loop(kind: std::io::ErrorKind) -> bool {
    alloc::format!("{kind:?}") == "FilesystemLoop"
}

/// The message of a caught panic, for bindings to report.
pub fn panic_words(panic: &(dyn Any + Send)) -> &str {
    panic.downcast_ref::<String>().map(String::as_str).or(panic.downcast_ref::<&str>().copied()).unwrap_or("no words")
}
