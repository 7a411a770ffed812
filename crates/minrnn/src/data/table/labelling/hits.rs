//! Number of correctly classified sequences.

use std::sync::Arc;

use super::super::WholeSeries;
use super::super::confusion::Confusion;
use super::super::example::{self, Example};
use super::super::measure::{Comparison, Measure};
use super::table::{Labels, Table};
use crate::data::Batch;
use crate::rng::Purpose;

/// Counts which classes are predicted for which.
pub(super) struct ClassHits {
    confusion: Confusion,
    /// The most frequent class in training.
    majority: usize,
    table: Arc<Table>,
    purpose: Purpose,
    /// How the sequences are laid out in the batches.
    whole: Option<WholeSeries>,
    /// The most confident misclassifications.
    misses: Vec<Miss>,
    probabilities: Vec<f64>,
}

impl ClassHits {
    /// For the part for `purpose`, initially empty; `None` if there are no classes.
    pub fn new(table: Arc<Table>, purpose: Purpose) -> Option<Self> {
        let Labels::Classes(classes) = &*table.labels else { return None };
        let names = table.task.classes().to_vec();
        let test = table.parts.of(purpose);
        // For a table that was not trained on, the table itself determines the most frequent class.
        let training = if table.parts.training.is_empty() { test } else { &table.parts.training[..] };
        let mut counts = vec![0u64; names.len()];
        training.iter().for_each(|&at| counts[classes[at] as usize] += 1);
        // The last of equally frequent classes.
        let majority = (0..counts.len()).max_by_key(|&class| counts[class])?;
        let confusion = Confusion::new(names);
        Some(Self { confusion, majority, table, purpose, whole: None, misses: Vec::new(), probabilities: Vec::new() })
    }
}

/// A misclassified sequence.
struct Miss {
    series: usize,
    class: usize,
    predicted: usize,
    probability: f64,
}

impl Comparison for ClassHits {
    fn add(&mut self, index: u64, batch: &Batch, outputs: &[f32]) {
        let table = Arc::clone(&self.table);
        let chunk = self.whole.get_or_insert_with(|| table.whole(self.purpose, batch.batch_size)).chunk(index as usize);
        let n_classes = self.confusion.names().len();
        for (series, _, place) in chunk.places().filter(|&(.., place)| batch.mask.as_ref().is_none_or(|mask| mask[place] != 0.0)) {
            let (logits, class) = (&outputs[place * n_classes..][..n_classes], batch.targets.tokens()[place] as usize);
            let predicted = self.confusion.add(class, logits);
            if predicted != class {
                table.task.predict_into(&[], logits, &mut self.probabilities);
                let probability = self.probabilities[predicted];
                self.misses.push(Miss { series, class, predicted, probability });
            }
        }
        self.misses.sort_by(|a, b| b.probability.total_cmp(&a.probability));
        self.misses.truncate(example::MOST);
    }

    fn examples(&self) -> Vec<Example> {
        let names = self.confusion.names();
        let of = |miss: &Miss| {
            let (column, values) = self.table.shown(miss.series);
            Example::Classified {
                name: self.table.series[miss.series].name.clone(),
                class: names[miss.class].clone(),
                predicted: names[miss.predicted].clone(),
                probability: miss.probability,
                column,
                values,
            }
        };
        self.misses.iter().map(of).collect()
    }

    fn measures(&self) -> Vec<Measure> {
        let (confusion, majority) = (&self.confusion, self.majority);
        let frequent = confusion.n_of(majority);
        let (right, right_of_frequent) = (confusion.right(), confusion.count(majority, majority));
        let baseline = format!("always '{}'", confusion.names()[majority]);
        let only_one = [right - right_of_frequent, frequent - right_of_frequent];
        vec![Measure::of_accuracy([right, confusion.n()], &baseline, only_one)]
    }

    fn confusion(&self) -> Option<&Confusion> {
        Some(&self.confusion)
    }
}
