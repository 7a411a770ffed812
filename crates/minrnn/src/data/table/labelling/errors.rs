//! How far the numbers of sequences are from those that are predicted.

use std::sync::Arc;

use super::super::WholeSeries;
use super::super::example::{self, Example};
use super::super::measure::{Cases, Comparison, Measure};
use super::{Labels, Table};
use crate::data::Batch;
use crate::rng::Purpose;

/// Collects absolute errors.
pub(super) struct NumberErrors {
    /// The median of the numbers in training: the constant with the smallest absolute errors.
    median: f64,
    table: Arc<Table>,
    purpose: Purpose,
    /// How the sequences lie in the batches.
    whole: Option<WholeSeries>,
    found: Vec<Found>,
    numbers: Vec<f64>,
}

/// What was predicted for a sequence.
#[derive(Clone, Copy)]
struct Found {
    series: usize,
    number: f64,
    predicted: f64,
}

impl Found {
    fn error(&self) -> f64 {
        (self.predicted - self.number).abs()
    }
}

impl NumberErrors {
    /// Of the part for `purpose`, of which nothing is known yet; none where there are no numbers.
    pub fn new(table: Arc<Table>, purpose: Purpose) -> Option<Self> {
        let Labels::Numbers(numbers) = &*table.labels else { return None };
        let test = table.parts.of(purpose);
        // A table that was not trained on tells itself what lies in the middle.
        let training = if table.parts.training.is_empty() { test } else { &table.parts.training[..] };
        let mut sorted: Vec<f64> = training.iter().map(|&at| numbers[at]).collect();
        sorted.sort_unstable_by(f64::total_cmp);
        let (low, high) = (sorted.get(sorted.len().saturating_sub(1) / 2)?, sorted.get(sorted.len() / 2)?);
        let median = 0.5 * low + 0.5 * high;
        Some(Self { median, table, purpose, whole: None, found: Vec::new(), numbers: Vec::new() })
    }
}

impl Comparison for NumberErrors {
    fn add(&mut self, index: u64, batch: &Batch, outputs: &[f32]) {
        let table = Arc::clone(&self.table);
        let Labels::Numbers(numbers) = &*table.labels else { return };
        let chunk = self.whole.get_or_insert_with(|| table.whole(self.purpose, batch.batch_size)).chunk(index as usize);
        for (series, _, place) in chunk.places().filter(|&(.., place)| batch.mask.as_ref().is_none_or(|mask| mask[place] != 0.0)) {
            table.task.predict_into(&[], &outputs[place..=place], &mut self.numbers);
            self.found.push(Found { series, number: numbers[series], predicted: self.numbers[0] });
        }
    }

    fn measures(&self) -> Vec<Measure> {
        let pairs: Vec<[f64; 2]> = self.found.iter().map(|found| [found.error(), (self.median - found.number).abs()]).collect();
        let name = format!("mean absolute error of {}", self.table.task.targets()[0]);
        vec![Measure::of_errors(name, Cases::Sequences, &pairs, "median of training")]
    }

    fn examples(&self) -> Vec<Example> {
        let mut worst = self.found.clone();
        worst.sort_by(|a, b| b.error().total_cmp(&a.error()));
        worst.truncate(example::MOST);
        let of = |found: Found| {
            let series = &self.table.series[found.series];
            Example::Measured {
                name: series.name.clone(),
                number: found.number,
                predicted: found.predicted,
                values: example::values_of(series),
            }
        };
        worst.into_iter().map(of).collect()
    }
}
