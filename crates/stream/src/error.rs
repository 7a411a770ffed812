//! Errors of running models.

use alloc::string::String;

/// Shorthand for results of this crate.
pub type Result<T, E = Error> = core::result::Result<T, E>;

/// Everything that can go wrong when a model is run.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// The model's configuration or its files.
    #[error(transparent)]
    Model(#[from] minrnn_model::Error),
    /// The runtime does not run such a model.
    #[error("{0}")]
    Unsupported(String),
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
    /// A model gave a logit that is no number.
    #[error("the logit of token {token} is {value}, expected a number; the model's weights or its state are damaged")]
    Logit {
        /// The token.
        token: usize,
        /// Its logit.
        value: f32,
    },
    /// Tokens, logits or rows that do not fit the state or the model they are given to.
    #[error("{0}")]
    Input(String),
    /// A saved state that is damaged or belongs to another model.
    #[error("the saved state {0}")]
    State(String),
}
