//! Settings for choosing tokens.

use alloc::{format, string::String};

use serde::{Deserialize, Serialize};

use crate::{Error, Result};

/// How the next token is chosen from the logits; for the order in which settings apply see [`Sampler`](crate::Sampler).
///
/// When deserialised, missing settings get their defaults, and a setting out of range is refused.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(try_from = "Unchecked")]
pub struct Sampling {
    /// Divides the logits. 0 takes the most likely token, 1 keeps the model's own distribution. Default 1.
    pub temperature: f64,
    /// Only the `top_k` most likely tokens are considered; 0 turns this off. Default 0.
    pub top_k: usize,
    /// Only the smallest set of most likely tokens whose probabilities reach `top_p` is considered; 1 turns this off. Default 1.
    pub top_p: f64,
    /// Only tokens at least `min_p` times as probable as the most likely one are considered; 0 turns this off. Default 0.
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

/// What is read, before it is checked.
#[derive(Deserialize)]
#[serde(default, deny_unknown_fields)]
struct Unchecked {
    temperature: f64,
    top_k: usize,
    top_p: f64,
    min_p: f64,
    repetition_penalty: f64,
    seed: u64,
}

impl Default for Unchecked {
    fn default() -> Self {
        let Sampling { temperature, top_k, top_p, min_p, repetition_penalty, seed } = Sampling::default();
        Self { temperature, top_k, top_p, min_p, repetition_penalty, seed }
    }
}

impl TryFrom<Unchecked> for Sampling {
    type Error = Error;

    fn try_from(Unchecked { temperature, top_k, top_p, min_p, repetition_penalty, seed }: Unchecked) -> Result<Self> {
        let sampling = Self { temperature, top_k, top_p, min_p, repetition_penalty, seed };
        sampling.validate()?;
        Ok(sampling)
    }
}

impl Sampling {
    /// Always the most likely token.
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
            format!("temperature must be 0 (take the likeliest token) or above, found {:?}", self.temperature),
        )?;
        check(self.top_p > 0.0 && self.top_p <= 1.0, format!("top_p must be above 0 and at most 1 (off), found {:?}", self.top_p))?;
        check((0.0..=1.0).contains(&self.min_p), format!("min_p must be between 0 (off) and 1, found {:?}", self.min_p))?;
        check(
            (0.01..=100.0).contains(&self.repetition_penalty),
            format!("repetition_penalty must be between 0.01 and 100, with 1 for off, found {:?}", self.repetition_penalty),
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

    #[test]
    fn saved_settings_out_of_range_are_refused_by_name() {
        let read = |json: &str| serde_json::from_str::<Sampling>(json);
        for (json, name) in [
            (r#"{"temperature": -1.0}"#, "temperature"),
            (r#"{"top_p": 0.0}"#, "top_p"),
            (r#"{"min_p": 1.5}"#, "min_p"),
            (r#"{"repetition_penalty": 1e9}"#, "repetition_penalty"),
            (r#"{"top_q": 1.0}"#, "top_q"),
        ] {
            let refused = read(json).unwrap_err().to_string();
            assert!(refused.contains(name), "{refused}");
        }
        assert_eq!(read("{}").unwrap(), Sampling::default());
        let saved = Sampling { top_k: 7, seed: 3, ..Sampling::greedy() };
        assert_eq!(read(&serde_json::to_string(&saved).unwrap()).unwrap(), saved);
    }
}
