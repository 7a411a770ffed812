//! Errors of predicted numbers of sequences.

use std::sync::Arc;

use minrnn_model::{Regressor, TableTask};

use super::super::WholeSeries;
use super::super::example::{self, Example};
use super::super::measure::{Cases, Comparison, Measure, MeasureKind};
use super::table::{Labels, Table};
use crate::data::Batch;
use crate::rng::Purpose;
use crate::statistics::median;

/// The name of the baseline if the training data are known.
const OF_TRAINING: &str = "median of training";

/// Collects absolute errors.
pub(super) struct NumberErrors {
    /// The constant with the smallest absolute errors on the training numbers or, if an older model did not store it, on the scored ones.
    median: f64,
    /// What it is the median of.
    baseline: &'static str,
    table: Arc<Table>,
    purpose: Purpose,
    /// How the sequences are laid out in the batches.
    whole: Option<WholeSeries>,
    found: Vec<Found>,
    numbers: Vec<f64>,
}

/// The prediction for a sequence.
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
    /// For the part for `purpose`, initially empty; `None` if there are no numbers.
    pub fn new(table: Arc<Table>, purpose: Purpose) -> Option<Self> {
        let Labels::Numbers(numbers) = &*table.labels else { return None };
        let (median, baseline) = match (&table.parts.training[..], &table.task) {
            ([], TableTask::Regress(Regressor { target_median: Some(median), .. })) => (*median, OF_TRAINING),
            // The training numbers are not known: no constant does better on the scored ones than their median.
            ([], _) => (median_at(numbers, table.parts.of(purpose))?, "median of what is scored"),
            (training, _) => (median_at(numbers, training)?, OF_TRAINING),
        };
        Some(Self { median, baseline, table, purpose, whole: None, found: Vec::new(), numbers: Vec::new() })
    }
}

/// The median of `numbers` at the indices `of`; `None` if there are none.
pub(super) fn median_at(numbers: &[f64], of: &[usize]) -> Option<f64> {
    median(of.iter().map(|&at| numbers[at]))
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
        let target = &self.table.task.targets()[0];
        vec![Measure::of_errors(MeasureKind::AbsoluteError, target, Cases::Sequences, &pairs, self.baseline)]
    }

    fn examples(&self) -> Vec<Example> {
        let mut worst = self.found.clone();
        worst.sort_by(|a, b| b.error().total_cmp(&a.error()));
        worst.truncate(example::MOST);
        let of = |found: Found| {
            let (column, values) = self.table.shown(found.series);
            Example::Measured {
                name: self.table.series[found.series].name.clone(),
                number: found.number,
                predicted: found.predicted,
                column,
                values,
            }
        };
        worst.into_iter().map(of).collect()
    }
}
