//! How probable a token was, and which were the likeliest.

use minrnn_model::log_sum_exp;
use minrnn_stream::{Error, Result};

/// The log-probability of one token.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Logprob {
    pub token: u32,
    /// Natural logarithm of its probability, before any setting of the sampler.
    pub logprob: f32,
    /// The likeliest tokens with their log-probabilities, the likeliest first.
    pub top: Vec<(u32, f32)>,
}

impl Logprob {
    /// The log-probability of `token` by the logits before it, with the `top` likeliest tokens.
    ///
    /// # Errors
    /// When a logit is no number.
    pub fn of(logits: &[f32], token: u32, top: usize) -> Result<Self> {
        if let Some(token) = logits.iter().position(|logit| !logit.is_finite()) {
            return Err(Error::Logit { token, value: logits[token] });
        }
        let total = log_sum_exp(logits);
        let logprob = |token: u32| (f64::from(logits[token as usize]) - total) as f32;
        let mut likeliest: Vec<u32> = (0..logits.len() as u32).collect();
        let likelier = |a: &u32, b: &u32| logits[*b as usize].total_cmp(&logits[*a as usize]).then(a.cmp(b));
        if (1..likeliest.len()).contains(&top) {
            likeliest.select_nth_unstable_by(top, likelier);
        }
        likeliest.truncate(top);
        likeliest.sort_unstable_by(likelier);
        Ok(Self { token, logprob: logprob(token), top: likeliest.into_iter().map(|token| (token, logprob(token))).collect() })
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn probabilities_add_up_to_one_and_come_in_their_order(logits in prop::collection::vec(-20.0..20f32, 1..40), top in 0..45usize) {
            let found = Logprob::of(&logits, 0, logits.len()).unwrap();
            let total: f64 = found.top.iter().map(|(_, logprob)| f64::from(*logprob).exp()).sum();
            prop_assert!((total - 1.0).abs() < 1e-5, "{total}");
            prop_assert!(found.top.is_sorted_by(|a, b| a.1 >= b.1));
            prop_assert_eq!(found.logprob, found.top.iter().find(|(token, _)| *token == 0).unwrap().1);
            let some = Logprob::of(&logits, 0, top).unwrap();
            prop_assert_eq!(some.top.as_slice(), &found.top[..top.min(logits.len())]);
        }
    }

    #[test]
    fn of_what_is_no_number_there_is_no_probability() {
        for flaw in [f32::NAN, f32::INFINITY, f32::NEG_INFINITY] {
            assert!(Logprob::of(&[0.0, flaw], 0, 1).unwrap_err().to_string().contains("token 1"));
        }
    }
}
