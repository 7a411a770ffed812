//! What training minimises, in words.

use crate::numbers::significant;

/// What training minimises, the mean over what is predicted.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Loss {
    /// The cross-entropy of the tokens of a text, in nats.
    PerToken,
    /// The cross-entropy of the answers, in nats.
    PerAnswer,
    /// The squared error of numbers.
    SquaredError,
    /// The pinball loss of quantiles ([`pinball`](crate::ops::pinball)).
    Pinball,
}

impl Loss {
    /// Its name; the cross-entropies are the loss.
    pub fn name(self) -> &'static str {
        match self {
            Self::PerToken | Self::PerAnswer => "loss",
            Self::SquaredError => "mean squared error",
            Self::Pinball => "pinball loss",
        }
    }

    /// Its name with its unit, such as `loss (nats per token)`.
    pub fn label(self) -> &'static str {
        match self {
            Self::PerToken => "loss (nats per token)",
            Self::PerAnswer => "loss (nats per answer)",
            Self::SquaredError | Self::Pinball => self.name(),
        }
    }

    /// Whether it is a cross-entropy, in nats.
    pub fn is_in_nats(self) -> bool {
        matches!(self, Self::PerToken | Self::PerAnswer)
    }

    /// A value of it after its name: nats with four decimals, others with five significant digits.
    pub fn shown(self, value: f64) -> String {
        if self.is_in_nats() { format!("{} {value:.4}", self.name()) } else { format!("{} {}", self.name(), significant(value)) }
    }
}
