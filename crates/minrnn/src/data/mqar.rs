//! Multi-query associative recall (MQAR): key-value pairs, then every key once more, asking for its value.
//!
//! ```text
//! k₁ v₁ k₂ v₂ … k_n v_n   ·  ·  k₂ ·  k₁ ·  ·  ·  …      input, N tokens
//!                               v₂    v₁                 scored, at the step that reads the key again
//! ```
//!
//! Keys are n distinct tokens of 1 … V/2 − 1, values n distinct tokens of V/2 … V − 1. The N − 2n steps after the pairs are S = (N − 2n) /
//! 2 slots of two steps each. Key j is read again in the first step of its slot; slots are drawn one after another, without replacement,
//! slot i = 1 … S with probability
//!
//! `p_i ∝ i^(a − 1)`
//!
//! where: a = 1 is uniform, and the smaller a is, the more likely are near slots. All other steps hold random tokens or token 0. The value
//! is not shown after its key.

use rand::RngExt;
use serde::{Deserialize, Serialize};

use super::batch::check_shape;
use super::numbered_examples::NumberedExamples;
use super::{Batch, BatchSource, EvaluationSet, FixedBatches, IoKind, SequenceTask};
use crate::rng::{ChaCha8Rng, Purpose};
use crate::{Error, Result, Segments};

/// The task's settings, with the names they have in files. The defaults are the first setting of the zoology study.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct Mqar {
    /// Number of token ids V. Default 8192.
    #[serde(rename = "mqar_vocab_size")]
    pub vocab_size: usize,
    /// Steps N of a sequence, even. Default 64.
    #[serde(rename = "mqar_length")]
    pub length: usize,
    /// Number n of key-value pairs; at most a quarter of the length. Default 4.
    #[serde(rename = "mqar_pairs")]
    pub n_pairs: usize,
    /// The exponent a of the power law of slots. Default 0.01.
    #[serde(rename = "mqar_power")]
    pub power: f64,
    /// Whether steps without a query hold random tokens (which may repeat a key by accident, unscored) or token 0. Default true.
    #[serde(rename = "mqar_random_non_queries")]
    pub random_non_queries: bool,
    /// Size of the training set, from which rows are drawn with replacement; 0 for an endless set, with a new example in every row. Default
    /// 0; in files it is `train_examples`, shared by several tasks.
    #[serde(skip)]
    pub n_examples: u64,
}

impl Default for Mqar {
    fn default() -> Self {
        Self { vocab_size: 8192, length: 64, n_pairs: 4, power: 0.01, random_non_queries: true, n_examples: 0 }
    }
}

impl Mqar {
    /// Maximum number of steps of a sequence.
    const MAX_LENGTH: usize = 1 << 24;

    /// Checks that such sequences exist.
    ///
    /// # Errors
    /// [`Error::Config`] when there are too few steps or tokens for the pairs, or more steps than 2²⁴.
    pub fn validate(&self) -> Result<()> {
        let &Self { vocab_size, length, n_pairs, power, .. } = self;
        if n_pairs == 0 || !length.is_multiple_of(2) || length / 4 < n_pairs {
            return Err(Error::Config(format!(
                "mqar needs at least one pair and an even length of at least 4 steps for each, found mqar_pairs = {n_pairs} and mqar_length = \
                 {length}"
            )));
        }
        if length > Self::MAX_LENGTH {
            return Err(Error::Config(format!("mqar_length must be at most {}, found {length}", Self::MAX_LENGTH)));
        }
        // Key 0 is the blank, so there is one key fewer than there are values.
        if vocab_size / 2 <= n_pairs || vocab_size > i32::MAX as usize {
            return Err(Error::Config(format!(
                "mqar needs a vocabulary of at least {} tokens for mqar_pairs = {n_pairs} different keys and values (and one that fits 31 \
                 bits), found mqar_vocab_size = {vocab_size}",
                2 * (n_pairs + 1)
            )));
        }
        if !(power.is_finite() && power.abs() <= 100.0) {
            return Err(Error::Config(format!("mqar_power must be between -100 and 100, found {power}")));
        }
        Ok(())
    }

    /// Unnormalised probabilities of the places.
    fn weights(&self) -> Vec<f64> {
        (1..=(self.length - 2 * self.n_pairs) / 2).map(|place| (place as f64).powf(self.power - 1.0)).collect()
    }
}

impl SequenceTask for Mqar {
    fn reads(&self) -> IoKind {
        IoKind::Tokens { n: self.vocab_size }
    }

    fn longest(&self) -> usize {
        self.length
    }

    fn training(&self, batch_size: usize, seed: u64) -> Result<Box<dyn BatchSource>> {
        Ok(Box::new(MqarBatches::new(self.clone(), batch_size, seed, Purpose::TrainData)?))
    }

    fn evaluation(&self, batch_size: usize, seed: u64, purpose: Purpose, n_batches: u64) -> Result<Box<dyn EvaluationSet>> {
        let task = Self { n_examples: 0, ..self.clone() };
        Ok(Box::new(FixedBatches::new(MqarBatches::new(task, batch_size, seed, purpose)?, n_batches)))
    }
}

/// Batches of multi-query associative recall.
#[derive(Debug, Clone)]
pub struct MqarBatches {
    task: Mqar,
    weights: Vec<f64>,
    examples: NumberedExamples,
    batch_size: usize,
}

impl MqarBatches {
    /// Sequences of `task`. For evaluation use another `purpose` (or `seed`) and wrap it in [`FixedBatches`].
    ///
    /// # Errors
    /// [`Error::Config`] when `task` is not valid, `batch_size` is 0, or a batch would be too large.
    pub fn new(task: Mqar, batch_size: usize, seed: u64, purpose: Purpose) -> Result<Self> {
        task.validate()?;
        check_shape(batch_size, task.length)?;
        let examples = NumberedExamples { n: task.n_examples, seed, purpose };
        Ok(Self { weights: task.weights(), task, examples, batch_size })
    }

    /// Writes a sequence; `targets` and `mask` are 0 before.
    fn write(&self, rng: &mut ChaCha8Rng, inputs: &mut [u32], targets: &mut [u32], mask: &mut [f32]) {
        let Mqar { vocab_size, n_pairs, random_non_queries, .. } = self.task;
        let (middle, end) = (vocab_size as u32 / 2, vocab_size as u32);
        let (keys, values) = (distinct(n_pairs, 1, middle, rng), distinct(n_pairs, middle, end, rng));
        let places = distinct_places(n_pairs, &self.weights, rng);
        if random_non_queries {
            inputs[2 * n_pairs..].fill_with(|| rng.random_range(0..end));
        }
        for (j, ((&key, &value), place)) in keys.iter().zip(&values).zip(places).enumerate() {
            inputs[2 * j..2 * j + 2].copy_from_slice(&[key, value]);
            let query = 2 * n_pairs + 2 * place;
            (inputs[query], targets[query], mask[query]) = (key, value, 1.0);
        }
    }
}

impl BatchSource for MqarBatches {
    fn batch(&mut self, iteration: u64, micro: u64) -> Result<Batch> {
        let (batch_size, seq_len) = (self.batch_size, self.task.length);
        let mut rng = self.examples.batch(iteration, micro);
        let n = batch_size * seq_len;
        let (mut inputs, mut targets, mut mask) = (vec![0; n], vec![0; n], vec![0.0; n]);
        let rows = inputs.chunks_exact_mut(seq_len).zip(targets.chunks_exact_mut(seq_len)).zip(mask.chunks_exact_mut(seq_len));
        for ((inputs, targets), mask) in rows {
            self.write(&mut self.examples.draw(&mut rng), inputs, targets, mask);
        }
        Ok(Batch { inputs: inputs.into(), targets: targets.into(), mask: Some(mask), segments: Segments::dense(), batch_size, seq_len })
    }

    fn tokens_per_batch(&self) -> usize {
        self.batch_size * self.task.length
    }
}

/// `n` different tokens of `from..to` in random order.
fn distinct(n: usize, from: u32, to: u32, rng: &mut ChaCha8Rng) -> Vec<u32> {
    let mut chosen = Vec::with_capacity(n);
    while chosen.len() < n {
        let token = rng.random_range(from..to);
        if !chosen.contains(&token) {
            chosen.push(token);
        }
    }
    chosen
}

/// `n` different places, drawn one after the other with probabilities proportional to `weights`.
fn distinct_places(n: usize, weights: &[f64], rng: &mut ChaCha8Rng) -> Vec<usize> {
    let mut left: Vec<(usize, f64)> = weights.iter().copied().enumerate().collect();
    let draw = |_| {
        let mut at = rng.random::<f64>() * left.iter().map(|(_, weight)| weight).sum::<f64>();
        // Rounding may leave a little beyond the last place.
        let drawn = left.iter().position(|(_, weight)| {
            at -= weight;
            at < 0.0
        });
        left.remove(drawn.unwrap_or(left.len() - 1)).0
    };
    (0..n).map(draw).collect()
}

#[cfg(test)]
mod tests {
    use std::collections::{BTreeMap, BTreeSet};

    use proptest::prelude::*;

    use super::*;
    use crate::rng;

    fn source(task: &Mqar, batch_size: usize) -> MqarBatches {
        MqarBatches::new(task.clone(), batch_size, 42, Purpose::TrainData).unwrap()
    }

    /// Reads the pairs of a row and checks at every scored step that the target is the value of the key read there.
    fn check_row(task: &Mqar, inputs: &[u32], targets: &[u32], mask: &[f32]) {
        let middle = task.vocab_size as u32 / 2;
        let pairs = inputs[..2 * task.n_pairs].chunks_exact(2);
        let value_of: BTreeMap<u32, u32> = pairs.map(|pair| (pair[0], pair[1])).collect();
        let values: BTreeSet<u32> = value_of.values().copied().collect();
        assert_eq!((value_of.len(), values.len()), (task.n_pairs, task.n_pairs), "no key and no value twice");
        assert!(value_of.keys().all(|key| (1..middle).contains(key)));
        assert!(values.iter().all(|value| (middle..task.vocab_size as u32).contains(value)));
        let mut asked = BTreeSet::new();
        for (step, (input, target)) in inputs.iter().zip(targets).enumerate() {
            if mask[step] == 1.0 {
                assert!(step >= 2 * task.n_pairs && step.is_multiple_of(2) && asked.insert(*input));
                assert_eq!(value_of[input], *target);
            } else {
                assert_eq!((mask[step], *target), (0.0, 0));
            }
        }
        assert!(asked.iter().eq(value_of.keys()), "every key is asked for once");
    }

    #[test]
    fn a_short_sequence_reads_as_in_the_module_text() {
        let task = Mqar { vocab_size: 6, length: 8, n_pairs: 2, random_non_queries: false, ..Mqar::default() };
        let batch = source(&task, 1).batch(0, 0).unwrap();
        let (inputs, targets) = (batch.inputs.tokens(), batch.targets.tokens());
        // Keys 1 and 2, two of the values 3, 4, 5, and both places taken.
        let (pairs, queries) = inputs.split_at(4);
        assert_eq!(BTreeSet::from([pairs[0], pairs[2]]), BTreeSet::from([1, 2]));
        assert_eq!((queries[1], queries[3], batch.mask.unwrap()), (0, 0, vec![0.0, 0.0, 0.0, 0.0, 1.0, 0.0, 1.0, 0.0]));
        let value = |key| if pairs[0] == key { pairs[1] } else { pairs[3] };
        assert_eq!(targets[4..], [value(queries[0]), 0, value(queries[2]), 0]);
    }

    #[test]
    fn places_follow_the_power_law() {
        let task = Mqar::default();
        let weights = task.weights();
        assert_eq!(weights.len(), 28);
        assert!((weights[6] / weights[0] - 7_f64.powf(-0.99)).abs() < 1e-12);
        let total: f64 = weights.iter().sum();
        let (mut rng, mut first) = (rng::stream(1, Purpose::TrainData, 0), [0u32; 28]);
        for _ in 0..40_000 {
            first[distinct_places(4, &weights, &mut rng)[0]] += 1;
        }
        for (place, weight) in weights.iter().enumerate() {
            let (p, found) = (weight / total, f64::from(first[place]) / 40_000.0);
            // Five standard deviations.
            assert!((found - p).abs() < 5.0 * (p * (1.0 - p) / 40_000.0).sqrt(), "place {place}: {found}, expected {p}");
        }
    }

    #[test]
    fn a_place_is_drawn_from_those_that_are_left() {
        // Probabilities 4 : 2 : 1, so (first, second) has probability p_i p_j / (1 − p_i).
        let (weights, mut rng) = ([4.0, 2.0, 1.0], rng::stream(2, Purpose::TrainData, 0));
        let mut counts = BTreeMap::new();
        for _ in 0..40_000 {
            *counts.entry(distinct_places(2, &weights, &mut rng)).or_insert(0u32) += 1;
        }
        for (i, j, p) in
            [(0, 1, 8.0 / 21.0), (0, 2, 4.0 / 21.0), (1, 0, 8.0 / 35.0), (1, 2, 2.0 / 35.0), (2, 0, 2.0 / 21.0), (2, 1, 1.0 / 21.0)]
        {
            let found = f64::from(counts[&vec![i, j]]) / 40_000.0;
            assert!((found - p).abs() < 0.0125, "({i}, {j}): {found}, expected {p}");
        }
        assert_eq!(counts.len(), 6);
    }

    #[test]
    fn the_steps_between_are_random_or_blank() {
        let task = Mqar { vocab_size: 64, ..Mqar::default() };
        let between = |random_non_queries| {
            let batch = source(&Mqar { random_non_queries, ..task.clone() }, 64).batch(0, 0).unwrap();
            let (inputs, mask) = (batch.inputs.tokens(), batch.mask.as_ref().unwrap());
            (0..inputs.len()).filter(|&i| i % 64 >= 8 && mask[i] == 0.0).map(|i| inputs[i]).collect::<Vec<_>>()
        };
        assert!(between(false).iter().all(|&token| token == 0));
        let random = between(true);
        let mean = random.iter().map(|&token| f64::from(token)).sum::<f64>() / random.len() as f64;
        assert_eq!(random.iter().collect::<BTreeSet<_>>().len(), 64);
        assert!((mean - 31.5).abs() < 1.6, "{mean}");
    }

    #[test]
    fn a_fixed_set_holds_so_many_examples() {
        let task = Mqar { n_examples: 3, ..Mqar::default() };
        let rows_of = |batch: Batch| batch.inputs.tokens().chunks_exact(64).map(<[u32]>::to_vec).collect::<BTreeSet<_>>();
        let rows = |task: &Mqar| (0..4).flat_map(|at| rows_of(source(task, 16).batch(at, 0).unwrap())).collect::<BTreeSet<_>>();
        assert_eq!(rows(&task).len(), 3);
        assert_eq!(rows(&Mqar::default()).len(), 64);
        // No scored example is trained on.
        let scored = rows_of(task.evaluation(16, 42, Purpose::ValidationData, 1).unwrap().batch(0).unwrap());
        assert_eq!((scored.len(), scored.intersection(&rows(&task)).count()), (16, 0));
    }

    #[test]
    fn impossible_tasks_are_refused() {
        let refused = |task: Mqar| MqarBatches::new(task, 1, 0, Purpose::TrainData).unwrap_err().to_string();
        for (length, n_pairs) in [(64, 0), (63, 4), (64, 17)] {
            assert!(refused(Mqar { length, n_pairs, ..Mqar::default() }).contains(&format!("mqar_pairs = {n_pairs} and mqar_length")));
        }
        for length in [(1 << 24) + 2, (usize::MAX >> 1) - 1, usize::MAX - 1] {
            let expected = format!("mqar_length must be at most 16777216, found {length}");
            assert_eq!(refused(Mqar { length, ..Mqar::default() }), expected);
        }
        assert!(refused(Mqar { vocab_size: 9, ..Mqar::default() }).contains("at least 10 tokens"));
        assert!(refused(Mqar { power: f64::NAN, ..Mqar::default() }).contains("mqar_power"));
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(64))]

        #[test]
        fn every_label_is_the_value_of_its_key(n_pairs in 1_usize..20, more in 0_usize..40, spare in 0_usize..9, random_non_queries: bool, at: u64) {
            let (length, vocab_size) = (4 * n_pairs + 2 * more, 2 * (n_pairs + 1) + spare);
            let task = Mqar { vocab_size, length, n_pairs, random_non_queries, ..Mqar::default() };
            let mut source = source(&task, 3);
            let batch = source.batch(at, 1).unwrap();
            prop_assert_eq!(&source.batch(at, 1).unwrap(), &batch);
            prop_assert!(batch.inputs.tokens().iter().all(|&id| (id as usize) < vocab_size));
            let mask = batch.mask.as_ref().unwrap();
            for row in 0..3 {
                let row = row * length..(row + 1) * length;
                check_row(&task, &batch.inputs.tokens()[row.clone()], &batch.targets.tokens()[row.clone()], &mask[row]);
            }
        }
    }
}
