//! A model's inputs and targets, as tensors.

use std::sync::Arc;

use burn::tensor::{Device, Int, Tensor};

use crate::ops::expect_count;

/// The inputs of a model.
#[derive(Debug, Clone)]
pub enum Inputs {
    /// Token ids `[B, T]`.
    Tokens(Tensor<2, Int>),
    /// Numbers `[B, T, F]`.
    Values(Tensor<3>),
}

impl Inputs {
    /// Number of rows B and number of steps T.
    pub fn dims(&self) -> [usize; 2] {
        match self {
            Self::Tokens(tokens) => tokens.dims(),
            Self::Values(values) => {
                let [batch, seq_len, _] = values.dims();
                [batch, seq_len]
            }
        }
    }

    /// Their device.
    pub fn device(&self) -> Device {
        match self {
            Self::Tokens(tokens) => tokens.device(),
            Self::Values(values) => values.device(),
        }
    }
}

impl From<Tensor<2, Int>> for Inputs {
    fn from(tokens: Tensor<2, Int>) -> Self {
        Self::Tokens(tokens)
    }
}

impl From<Tensor<3>> for Inputs {
    fn from(values: Tensor<3>) -> Self {
        Self::Values(values)
    }
}

/// The targets of a model; shared, since a loss keeps them for its gradient.
#[derive(Debug, Clone)]
pub enum Targets {
    /// B·T classes.
    Classes(Arc<[i32]>),
    /// B·T·F numbers; NaN where missing.
    Values(Arc<[f32]>),
    /// Numbers as in `Values`, with Q quantiles predicted for each.
    Quantiles {
        /// B·T·F numbers; NaN where missing.
        values: Arc<[f32]>,
        /// Q levels between 0 and 1.
        levels: Arc<[f32]>,
    },
}

impl Targets {
    /// Refuses targets that do not fit `n_steps` predictions of `n_outputs` classes or numbers.
    ///
    /// # Panics
    /// When they do not.
    #[track_caller]
    pub(super) fn expect_fits(&self, n_steps: usize, n_outputs: usize) {
        let (what, found, expected) = match self {
            Self::Classes(classes) => ("targets", classes.len(), n_steps),
            Self::Values(values) => ("targets", values.len(), n_steps * n_outputs),
            Self::Quantiles { values, levels } => ("quantiles of targets", values.len() * levels.len(), n_steps * n_outputs),
        };
        expect_count("loss", what, found, expected);
    }
}

impl From<Vec<i32>> for Targets {
    fn from(classes: Vec<i32>) -> Self {
        Self::Classes(classes.into())
    }
}

impl From<Arc<[i32]>> for Targets {
    fn from(classes: Arc<[i32]>) -> Self {
        Self::Classes(classes)
    }
}
