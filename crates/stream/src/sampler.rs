//! Choosing a token from logits.

use alloc::{format, vec::Vec};
use core::cmp::Ordering;

use minrnn_model::likeliest;
use rand_chacha::ChaCha8Rng;
use rand_chacha::rand_core::{Rng, SeedableRng};
use serde::{Deserialize, Serialize};

use crate::rng;
use crate::{Error, Result, Sampling};

/// Chooses tokens by [`Sampling`]; the same settings, logits and number of earlier draws give the same token.
///
/// The settings apply in the usual order: repetition penalty, temperature, top-k, top-p (on what top-k left, renormalised), min-p; then one
/// token is drawn. Ties go to the lower token id. The most likely token is always kept.
///
/// Serialised, it is its settings and the number of draws; a deserialised sampler continues where the other stopped.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(try_from = "Saved", into = "Saved")]
pub struct Sampler {
    sampling: Sampling,
    draws: u64,
    generator: ChaCha8Rng,
    /// Memory of a draw.
    choices: Vec<Choice>,
    penalised: Vec<u32>,
}

#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Saved {
    sampling: Sampling,
    draws: u64,
}

impl TryFrom<Saved> for Sampler {
    type Error = Error;

    fn try_from(saved: Saved) -> Result<Self> {
        let mut sampler = Self::new(saved.sampling)?;
        sampler.draws = saved.draws;
        // A draw takes one 64-bit number, which is two words of the generator.
        sampler.generator.set_word_pos(2 * u128::from(saved.draws));
        Ok(sampler)
    }
}

impl From<Sampler> for Saved {
    fn from(sampler: Sampler) -> Self {
        Self { sampling: sampler.sampling, draws: sampler.draws }
    }
}

#[derive(Debug, Clone, Copy)]
struct Choice {
    token: u32,
    logit: f32,
    weight: f64,
}

impl Sampler {
    /// A new sampler.
    ///
    /// # Errors
    /// When a setting is out of range.
    pub fn new(sampling: Sampling) -> Result<Self> {
        sampling.validate()?;
        let generator = ChaCha8Rng::seed_from_u64(sampling.seed);
        Ok(Self { sampling, draws: 0, generator, choices: Vec::new(), penalised: Vec::new() })
    }

    /// The sampler of row `row` among several texts continued with the same settings: each draws from its own generator, named by seed and
    /// row.
    ///
    /// # Errors
    /// When a setting is out of range.
    pub fn of_row(sampling: &Sampling, row: usize) -> Result<Self> {
        let seed = rng::key(sampling.seed, rng::SAMPLING, row as u64);
        Self::new(Sampling { seed, ..sampling.clone() })
    }

    /// The settings.
    pub fn sampling(&self) -> &Sampling {
        &self.sampling
    }

    /// Changes the settings. A different seed restarts the generator; with the same seed the draws continue.
    ///
    /// # Errors
    /// When a setting is out of range; nothing is then changed.
    pub fn set_sampling(&mut self, sampling: Sampling) -> Result<()> {
        sampling.validate()?;
        if sampling.seed != self.sampling.seed {
            (self.generator, self.draws) = (ChaCha8Rng::seed_from_u64(sampling.seed), 0);
        }
        self.sampling = sampling;
        Ok(())
    }

    /// Chooses one of `logits.len()` tokens. A logit of −∞ masks its token. Nothing is allocated once there has been a choice from as many
    /// tokens.
    ///
    /// `recent` holds the tokens the repetition penalty applies to, in any order; ids outside the vocabulary are ignored. The penalty is
    /// written into `logits`.
    ///
    /// # Errors
    /// When a logit is NaN or +∞, when there is no token to choose from, or when there is not enough memory.
    pub fn sample(&mut self, logits: &mut [f32], recent: &[u32]) -> Result<u32> {
        check(logits)?;
        self.reserve(logits.len(), recent.len())?;
        self.penalise(logits, recent);
        let best = arg_max(logits)?;
        if self.is_greedy() {
            return Ok(best);
        }
        self.choose_among(logits, f64::from(logits[best as usize]));
        let drawn = self.uniform();
        let choices = &self.choices;
        let total: f64 = choices.iter().map(|choice| choice.weight).sum();
        let mut left = drawn * total;
        for choice in choices {
            left -= choice.weight;
            if left < 0.0 {
                return Ok(choice.token);
            }
        }
        // Rounding left a remainder after all weights: the sum ends at the last token with a weight above 0.
        Ok(choices.iter().rev().find(|choice| choice.weight > 0.0).map_or(best, |choice| choice.token))
    }

    /// Whether the likeliest token is chosen, without a draw.
    fn is_greedy(&self) -> bool {
        self.sampling.temperature == 0.0 || self.sampling.top_k == 1
    }

    /// Makes room for what a choice needs.
    fn reserve(&mut self, choices: usize, recent: usize) -> Result<()> {
        let choices = if self.is_greedy() { 0 } else { choices };
        self.choices.clear();
        self.penalised.clear();
        let reserved = self.choices.try_reserve(choices).and_then(|()| self.penalised.try_reserve(recent));
        reserved
            .map_err(|_| Error::Memory(format!("memory cannot hold {choices} tokens to choose from and {recent} recent ones; give fewer")))
    }

    fn penalise(&mut self, logits: &mut [f32], recent: &[u32]) {
        let penalty = self.sampling.repetition_penalty;
        if penalty == 1.0 {
            return;
        }
        let tokens = &mut self.penalised;
        tokens.clear();
        tokens.extend_from_slice(recent);
        tokens.sort_unstable();
        tokens.dedup();
        for &mut token in tokens {
            let Some(logit) = logits.get_mut(token as usize).filter(|logit| logit.is_finite()) else { continue };
            let value = f64::from(*logit);
            let penalised = if value > 0.0 { value / penalty } else { value * penalty };
            *logit = penalised.clamp(f64::from(f32::MIN), f64::from(f32::MAX)) as f32;
        }
    }

    /// The tokens left to draw from, with weights relative to the likeliest one (weight 1).
    fn choose_among(&mut self, logits: &[f32], best: f64) {
        let Sampling { temperature, top_k, top_p, min_p, .. } = self.sampling;
        let choices = &mut self.choices;
        choices.clear();
        let weighed = logits.iter().enumerate().map(|(token, &logit)| Choice {
            token: token as u32,
            logit,
            weight: exp((f64::from(logit) - best) / temperature),
        });
        choices.extend(weighed.filter(|choice| choice.weight > 0.0));
        if top_k != 0 && top_k < choices.len() {
            choices.select_nth_unstable_by(top_k, likeliest_first);
            choices.truncate(top_k);
        }
        // The order of the draw must not depend on the selection algorithm.
        choices.sort_unstable_by(likeliest_first);
        if top_p < 1.0 {
            let enough = top_p * choices.iter().map(|choice| choice.weight).sum::<f64>();
            let mut sum = 0.0;
            let keep = choices.iter().take_while(|choice| {
                let open = sum < enough;
                sum += choice.weight;
                open
            });
            let keep = keep.count().max(1);
            choices.truncate(keep);
        }
        choices.retain(|choice| choice.weight >= min_p);
    }

    /// A number in [0, 1) with 53 random bits.
    fn uniform(&mut self) -> f64 {
        self.draws = self.draws.wrapping_add(1);
        (self.generator.next_u64() >> 11) as f64 * (1.0 / (1u64 << 53) as f64)
    }
}

#[cfg(feature = "std")]
fn exp(x: f64) -> f64 {
    x.exp()
}

#[cfg(not(feature = "std"))]
fn exp(x: f64) -> f64 {
    libm::exp(x)
}

fn check(logits: &[f32]) -> Result<()> {
    match logits.iter().position(|logit| logit.is_nan() || *logit == f32::INFINITY) {
        None => Ok(()),
        Some(token) => Err(Error::Logit { token, value: logits[token] }),
    }
}

fn arg_max(logits: &[f32]) -> Result<u32> {
    let best = likeliest(logits);
    match logits.get(best) {
        Some(&logit) if logit > f32::NEG_INFINITY => Ok(best as u32),
        _ => Err(Error::Sampling(format!("there is no token to choose from: all {} logits are masked", logits.len()))),
    }
}

fn likeliest_first(a: &Choice, b: &Choice) -> Ordering {
    // Different logits may have the same weight.
    b.logit.partial_cmp(&a.logit).unwrap_or(Ordering::Equal).then(a.token.cmp(&b.token))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn sampler(sampling: Sampling) -> Sampler {
        Sampler::new(sampling).unwrap()
    }

    fn shares(sampling: Sampling, logits: &[f32], draws: usize) -> Vec<f64> {
        let mut sampler = sampler(sampling);
        let mut counts = vec![0.0; logits.len()];
        for _ in 0..draws {
            counts[sampler.sample(&mut logits.to_vec(), &[]).unwrap() as usize] += 1.0 / draws as f64;
        }
        counts
    }

    #[test]
    fn the_likeliest_token_stays_where_weights_are_too_close_to_tell_apart() {
        let close = [0.0, 1e-30, 2e-30];
        for sampling in [Sampling { top_k: 2, ..Sampling::default() }, Sampling { top_p: 0.5, ..Sampling::default() }] {
            let shares = shares(sampling, &close, 300);
            assert!(shares[2] > 0.3 && shares[0] == 0.0, "{shares:?}");
        }
        let hot = Sampling { top_k: 2, temperature: 1e17, ..Sampling::default() };
        assert_eq!(shares(hot, &[0.0, 0.5, 1.0], 300)[0], 0.0);
    }

    fn any_sampling() -> impl Strategy<Value = Sampling> {
        (0.0..3.0f64, 0..20usize, 0.01..1.0f64, 0.0..1.0f64, 0.5..2.0f64, any::<u64>()).prop_map(
            |(temperature, top_k, top_p, min_p, repetition_penalty, seed)| Sampling {
                temperature,
                top_k,
                top_p,
                min_p,
                repetition_penalty,
                seed,
            },
        )
    }

    proptest! {
        #[test]
        fn a_masked_token_is_never_chosen(
            sampling in any_sampling(),
            logits in prop::collection::vec(prop::option::of(-30.0..30f32), 1..40),
            recent in prop::collection::vec(0..50u32, 0..10),
        ) {
            let logits: Vec<f32> = logits.into_iter().map(|logit| logit.unwrap_or(f32::NEG_INFINITY)).collect();
            let mut sampler = sampler(sampling);
            for _ in 0..20 {
                match sampler.sample(&mut logits.clone(), &recent) {
                    Ok(token) => prop_assert!(logits[token as usize].is_finite()),
                    Err(_) => prop_assert!(logits.iter().all(|logit| *logit == f32::NEG_INFINITY)),
                }
            }
        }

        #[test]
        fn top_k_of_one_equals_temperature_zero(logits in prop::collection::vec(-5.0..5f32, 1..40), seed: u64) {
            let mut one = sampler(Sampling { top_k: 1, seed, ..Default::default() });
            let mut greedy = sampler(Sampling::greedy());
            prop_assert_eq!(one.sample(&mut logits.clone(), &[]).unwrap(), greedy.sample(&mut logits.clone(), &[]).unwrap());
        }

        #[test]
        fn top_k_chooses_among_the_k_likeliest(logits in prop::collection::vec(-5.0..5f32, 1..40), top_k in 1..10usize, seed: u64) {
            let mut sampler = sampler(Sampling { top_k, seed, ..Default::default() });
            let token = sampler.sample(&mut logits.clone(), &[]).unwrap();
            let better = logits.iter().filter(|logit| **logit > logits[token as usize]).count();
            prop_assert!(better < top_k);
        }

        #[test]
        fn a_restored_sampler_continues_the_same_tokens(sampling in any_sampling(), before in 0..20usize) {
            let logits: Vec<f32> = (0..30).map(|token| (token as f32 * 0.7).sin()).collect();
            let mut original = sampler(sampling);
            for _ in 0..before {
                original.sample(&mut logits.clone(), &[]).unwrap();
            }
            let mut restored: Sampler = serde_json::from_str(&serde_json::to_string(&original).unwrap()).unwrap();
            for _ in 0..20 {
                prop_assert_eq!(original.sample(&mut logits.clone(), &[]).unwrap(), restored.sample(&mut logits.clone(), &[]).unwrap());
            }
        }
    }

    #[test]
    fn draws_follow_the_softmax() {
        let logits = [0.5f32, -1.0, 2.0, 0.0];
        let weights: Vec<f64> = logits.iter().map(|&logit| (f64::from(logit) / 0.8).exp()).collect();
        let total: f64 = weights.iter().sum();
        let found = shares(Sampling { temperature: 0.8, seed: 3, ..Default::default() }, &logits, 40_000);
        for (share, weight) in found.iter().zip(&weights) {
            let expected = weight / total;
            // Four standard deviations.
            assert!((share - expected).abs() < 4.0 * (expected * (1.0 - expected) / 40_000.0).sqrt(), "{share} {expected}");
        }
    }

    #[test]
    fn top_p_keeps_the_smallest_set_that_reaches_it() {
        let logits = [0.5f32.ln(), 0.3f32.ln(), 0.15f32.ln(), 0.05f32.ln()];
        let kept = |top_p| shares(Sampling { top_p, ..Default::default() }, &logits, 2_000).iter().filter(|share| **share > 0.0).count();
        assert_eq!([kept(0.4), kept(0.6), kept(0.9), kept(1.0)], [1, 2, 3, 4]);
    }

    #[test]
    fn min_p_is_relative_to_the_likeliest_token() {
        let logits = [0.5f32.ln(), 0.3f32.ln(), 0.15f32.ln(), 0.05f32.ln()];
        let kept = |min_p| shares(Sampling { min_p, ..Default::default() }, &logits, 2_000).iter().filter(|share| **share > 0.0).count();
        assert_eq!([kept(0.05), kept(0.2), kept(0.5), kept(1.0)], [4, 3, 2, 1]);
    }

    #[test]
    fn the_repetition_penalty_acts_once_per_token_and_on_either_sign() {
        let mut greedy = sampler(Sampling { repetition_penalty: 2.0, ..Sampling::greedy() });
        let mut logits = [1.0, 1.5, -1.0];
        assert_eq!(greedy.sample(&mut logits, &[1, 1, 2, 99]).unwrap(), 0);
        assert_eq!(logits, [1.0, 0.75, -2.0]);
    }

    #[test]
    fn extreme_temperatures_stay_finite() {
        let mut logits = [3.0e38f32, -3.0e38, 2.9e38];
        assert_eq!(sampler(Sampling { temperature: 1e-300, ..Default::default() }).sample(&mut logits, &[]).unwrap(), 0);
        let mut hot = sampler(Sampling { temperature: 1e300, ..Default::default() });
        let seen: std::collections::BTreeSet<u32> = (0..100).map(|_| hot.sample(&mut logits, &[]).unwrap()).collect();
        assert_eq!(seen.len(), 3);
    }

    #[test]
    fn logits_that_are_not_numbers_are_refused() {
        let mut sampler = sampler(Sampling::default());
        let mut refusal = |logits: &mut [f32]| sampler.sample(logits, &[]).unwrap_err().to_string();
        assert!(refusal(&mut [0.0, f32::NAN]).contains("token 1 is NaN"));
        assert!(refusal(&mut [f32::INFINITY]).contains("token 0 is inf"));
        assert!(refusal(&mut [f32::NEG_INFINITY; 2]).contains("all 2 logits are masked"));
        assert!(refusal(&mut []).contains("no token"));
    }

    #[test]
    fn a_saved_sampler_with_bad_settings_is_refused() {
        let text = r#"{"sampling": {"temperature": -1.0}, "draws": 0}"#;
        assert!(serde_json::from_str::<Sampler>(text).unwrap_err().to_string().contains("temperature"));
        let late = r#"{"sampling": {}, "draws": 18446744073709551614}"#;
        serde_json::from_str::<Sampler>(late).unwrap().sample(&mut [0.0, 0.1], &[]).unwrap();
    }
}
