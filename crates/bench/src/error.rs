//! Errors of measurements.

use minrnn::memory::rounded;
use minrnn_model::WeightFormat;

/// Shorthand for results of this crate.
pub type Result<T, E = Error> = std::result::Result<T, E>;

/// Why a measurement cannot be made.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// Not enough memory for what it keeps at once; both in bytes.
    #[error(
        "this measurement needs about {} of memory, but {} are available; lower the batch size, the length or the widths",
        rounded(*.needed), rounded(*.available)
    )]
    Memory {
        /// An estimate of what it keeps.
        needed: u128,
        /// What is available to this process.
        available: u128,
    },
    /// The recurrence is too wide relative to the model.
    #[error("a recurrence of width {d_hidden} is more than {most} times as wide as a model of width {d_model}")]
    Widths {
        /// D.
        d_model: usize,
        /// E.
        d_hidden: usize,
        /// The maximum ratio.
        most: usize,
    },
    /// Training does not support this number format.
    #[error("{0} is a format of weights for inference; training has f32 and bf16")]
    WeightsOnly(WeightFormat),
    /// The device has no tasks to record.
    #[error("a step is cut into tasks on the CPU")]
    OnlyOnCpu,
    /// The threads did not start.
    #[error("cannot start {threads} threads: {problem}")]
    Threads {
        /// The number requested.
        threads: usize,
        /// The system's error.
        problem: String,
    },
    /// The device failed during the measurement.
    #[error("{device} failed: {problem}")]
    Device {
        /// The name it reports.
        device: String,
        /// The driver's error.
        problem: String,
    },
    /// The temporary file of a model's weights could not be made.
    #[error("could not create a temporary file: {0}")]
    Scratch(#[source] std::io::Error),
    /// The model cannot be built or run.
    #[error(transparent)]
    Model(#[from] minrnn::Error),
}

impl Error {
    /// Whether the request is at fault rather than the machine.
    pub fn is_wrong_input(&self) -> bool {
        match self {
            Self::Memory { .. } | Self::Widths { .. } | Self::WeightsOnly(_) | Self::OnlyOnCpu => true,
            Self::Threads { .. } | Self::Device { .. } | Self::Scratch(_) => false,
            Self::Model(error) => error.is_wrong_input(),
        }
    }
}

impl From<minrnn_model::Error> for Error {
    fn from(error: minrnn_model::Error) -> Self {
        Self::Model(error.into())
    }
}

impl From<minrnn_stream::Error> for Error {
    fn from(error: minrnn_stream::Error) -> Self {
        Self::Model(error.into())
    }
}
