//! What a model reads at every step.

use alloc::vec::Vec;
use core::fmt;

/// What each step of a model's sequences consists of.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Reads {
    /// A token.
    Tokens {
        /// The size of the vocabulary, V.
        vocab: usize,
    },
    /// Numbers.
    Values {
        /// The number of values in a step, F.
        width: usize,
    },
}

impl fmt::Display for Reads {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Tokens { vocab } => write!(f, "tokens below {vocab}"),
            Self::Values { width: 1 } => write!(f, "a number at each step"),
            Self::Values { width } => write!(f, "{width} numbers at each step"),
        }
    }
}

/// Steps to read, one after the other.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Steps<'a> {
    /// `[T]`.
    Tokens(&'a [u32]),
    /// `[T, width]`, a whole number of steps.
    Values { values: &'a [f32], width: usize },
}

impl<'a> Steps<'a> {
    /// T.
    pub(crate) fn len(&self) -> usize {
        match self {
            Self::Tokens(tokens) => tokens.len(),
            Self::Values { values, width } => values.len() / width,
        }
    }

    /// The `len` steps from `start` on.
    pub(crate) fn part(&self, start: usize, len: usize) -> Self {
        match *self {
            Self::Tokens(tokens) => Self::Tokens(&tokens[start..start + len]),
            Self::Values { values, width } => Self::Values { values: &values[start * width..(start + len) * width], width },
        }
    }
}

/// What a pass reads, the steps of one session after those of another.
#[derive(Debug, Clone, Default)]
pub(crate) struct Input {
    pub(crate) tokens: Vec<u32>,
    /// `[steps, F]`.
    pub(crate) values: Vec<f32>,
}

impl Input {
    pub(crate) fn clear(&mut self) {
        self.tokens.clear();
        self.values.clear();
    }

    pub(crate) fn push(&mut self, steps: Steps<'_>) {
        match steps {
            Steps::Tokens(tokens) => self.tokens.extend_from_slice(tokens),
            Steps::Values { values, .. } => self.values.extend_from_slice(values),
        }
    }
}
