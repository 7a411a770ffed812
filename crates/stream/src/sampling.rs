//! The settings of token choice.

use alloc::{format, string::String};

use serde::{Deserialize, Serialize};

use crate::{Error, Result};

/// How the next token is chosen from the logits; see [`Sampler`](crate::Sampler) for the order in which they act.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Sampling {
    /// Divides the logits. 0 takes the likeliest token, 1 the model's own distribution. Default 1.
    pub temperature: f64,
    /// Only the `top_k` likeliest tokens are considered; 0 turns this off. Default 0.
    pub top_k: usize,
    /// Only the smallest set of likeliest tokens whose probabilities reach `top_p` is considered; 1 turns this off. Default 1.
    pub top_p: f64,
    /// Only tokens at least `min_p` times as probable as the likeliest one are considered; 0 turns this off. Default 0.
    pub min_p: f64,
    /// Divides the positive logits of recent tokens and multiplies their negative ones; 1 turns this off. Default 1.
    pub repetition_penalty: f64,
    /// Seed of the choice. Default 0.
    pub seed: u64,
}

impl Default for Sampling {
    fn default() -> Self {
        Self { temperature: 1.0, top_k: 0, top_p: 1.0, min_p: 0.0, repetition_penalty: 1.0, seed: 0 }
    }
}

impl Sampling {
    /// Always the likeliest token.
    pub fn greedy() -> Self {
        Self { temperature: 0.0, ..Self::default() }
    }

    /// Checks every setting.
    ///
    /// # Errors
    /// A sentence that names the first setting out of range.
    pub fn validate(&self) -> Result<()> {
        let check = |fits: bool, sentence: String| if fits { Ok(()) } else { Err(Error::Sampling(sentence)) };
        check(
            self.temperature.is_finite() && self.temperature >= 0.0,
            format!("temperature must be 0 (take the likeliest token) or above, found {}", self.temperature),
        )?;
        check(self.top_p > 0.0 && self.top_p <= 1.0, format!("top_p must be above 0 and at most 1 (off), found {}", self.top_p))?;
        check((0.0..=1.0).contains(&self.min_p), format!("min_p must be between 0 (off) and 1, found {}", self.min_p))?;
        check(
            (0.01..=100.0).contains(&self.repetition_penalty),
            format!("repetition_penalty must be between 0.01 and 100, with 1 for off, found {}", self.repetition_penalty),
        )
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_setting_out_of_range_is_named() {
        let refusal = |change: fn(&mut Sampling)| {
            let mut sampling = Sampling::default();
            change(&mut sampling);
            sampling.validate().unwrap_err().to_string()
        };
        Sampling::default().validate().unwrap();
        Sampling::greedy().validate().unwrap();
        assert!(refusal(|s| s.temperature = -1.0).contains("temperature"));
        assert!(refusal(|s| s.temperature = f64::NAN).contains("temperature"));
        assert!(refusal(|s| s.top_p = 0.0).contains("top_p"));
        assert!(refusal(|s| s.top_p = f64::NAN).contains("top_p"));
        assert!(refusal(|s| s.min_p = 1.5).contains("min_p"));
        assert!(refusal(|s| s.repetition_penalty = 0.0).contains("repetition_penalty"));
    }
}
