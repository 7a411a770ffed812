//! Classification: one class for every sequence of a table, read from its last step.
//!
//! The sequences of each class, in a seeded order, are divided: `train_fraction` of them to train on (at least one), the others in turn to
//! report and to validate with. Means and deviations are those of the sequences that are trained on.

use std::path::Path;
use std::sync::Arc;

use rand::RngExt;
use rand::seq::SliceRandom;

use super::measure::{Comparison, Measure};
use super::series::{Series, labels};
use super::{Chunk, Frame, Numbers, Wanted, WholeSeries, normalization, read_table};
use crate::data::batch::{check_shape, expect_index};
use crate::data::{Batch, BatchSource, EvaluationSet, IoKind, SequenceTask, Sequences};
use crate::rng::{self, Purpose};
use crate::suggestion::suggestion;
use crate::{Error, Result, Segments};
use minrnn_model::{Classifier, Normalization, TableTask};

/// What is classified by what.
#[derive(Debug, Clone, PartialEq)]
pub struct ClassificationConfig {
    /// Columns that are read; none: all but the group and the class.
    pub columns: Vec<String>,
    /// The column with the class, the same in all rows of a sequence.
    pub target: String,
    /// The column that names the sequence of a row.
    pub group: String,
    /// Share of the sequences that is trained on.
    pub train_fraction: f64,
    /// What the division into parts is drawn from.
    pub seed: u64,
}

/// The task of classifying the sequences of a table.
#[derive(Debug, Clone)]
pub struct Classification {
    table: Arc<Table>,
}

/// The sequences with their classes.
#[derive(Debug)]
struct Table {
    series: Vec<Series>,
    /// The class of each sequence.
    classes: Vec<u32>,
    normalization: Normalization,
    /// Names of the classes.
    names: Vec<String>,
    /// Names of the columns that are read.
    columns: Vec<String>,
    config: ClassificationConfig,
    parts: Parts,
}

/// Which sequences are for what.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
struct Parts {
    training: Vec<usize>,
    validation: Vec<usize>,
    test: Vec<usize>,
}

impl Classification {
    /// The task on the file `path`.
    ///
    /// # Errors
    /// When the file cannot be read, a sequence has two classes, or there are too few sequences for the parts.
    pub fn open(path: &Path, config: ClassificationConfig) -> Result<Self> {
        let frame = read_table(path, &config.wanted())?;
        Self::new(frame, config).map_err(|error| error.in_file(path))
    }

    /// The task on a table.
    ///
    /// # Errors
    /// As [`open`](Self::open).
    pub(super) fn new(frame: Frame, config: ClassificationConfig) -> Result<Self> {
        let [groups, targets] = [&frame.texts[0], &frame.texts[1]];
        let labels = labels(groups, targets, &config.target)?;
        let series = Series::of(&frame, Some(groups))?;
        let mut names = targets.distinct().to_vec();
        names.sort_unstable();
        let class = |&label: &u32| names.binary_search(&targets.distinct()[label as usize]).expect("every label is a class") as u32;
        let classes: Vec<u32> = labels.iter().map(class).collect();
        if names.len() < 2 {
            let (column, only) = (&config.target, &names[0]);
            return Err(Error::Data(format!("the column '{column}' has one value, '{only}'; expected at least two classes")));
        }
        let parts = Parts::divide(&classes, names.len(), config.train_fraction, config.seed)?;
        let training = parts.training.iter().flat_map(|&at| series[at].steps());
        let normalization = normalization::fit(frame.names.len(), training)?;
        normalization::expect_near(&normalization, &frame)?;
        let table = Table { series, classes, normalization, names, columns: frame.names, config, parts };
        Ok(Self { table: Arc::new(table) })
    }

    /// The task of a trained model on another table, all of which is to be scored.
    ///
    /// # Errors
    /// When the file cannot be read, or has a class that the model does not know.
    pub fn unseen(path: &Path, classifier: &Classifier) -> Result<Self> {
        let config = ClassificationConfig {
            columns: classifier.columns.clone(),
            target: classifier.target.clone(),
            group: classifier.group.clone(),
            train_fraction: 1.0,
            seed: 0,
        };
        let frame = read_table(path, &config.wanted())?;
        Self::known(&frame, config, classifier).map_err(|error| error.in_file(path))
    }

    fn known(frame: &Frame, config: ClassificationConfig, classifier: &Classifier) -> Result<Self> {
        let [groups, targets] = [&frame.texts[0], &frame.texts[1]];
        let known = |name: &String| {
            let found = classifier.classes.iter().position(|class| class == name).map(|at| at as u32);
            let unknown = || suggestion(name, classifier.classes.iter().map(String::as_str));
            found.ok_or_else(|| Error::Data(format!("the class '{name}' was not seen in training{}", unknown())))
        };
        normalization::expect_near(&classifier.normalization, frame)?;
        let ids = targets.distinct().iter().map(known).collect::<Result<Vec<u32>>>()?;
        let classes: Vec<u32> = labels(groups, targets, &config.target)?.iter().map(|&label| ids[label as usize]).collect();
        let series = Series::of(frame, Some(groups))?;
        let parts = Parts { test: (0..series.len()).collect(), ..Parts::default() };
        let (normalization, names) = (classifier.normalization.clone(), classifier.classes.clone());
        let table = Table { series, classes, normalization, names, columns: classifier.columns.clone(), config, parts };
        Ok(Self { table: Arc::new(table) })
    }
}

impl ClassificationConfig {
    fn wanted(&self) -> Wanted {
        let texts = vec![self.group.clone(), self.target.clone()];
        if self.columns.is_empty() { Wanted { numbers: Numbers::AllOthers, texts } } else { Wanted::named(&self.columns, texts) }
    }
}

impl Parts {
    fn divide(classes: &[u32], n_classes: usize, train_fraction: f64, seed: u64) -> Result<Self> {
        let mut rng = rng::stream(seed, Purpose::Order, 0);
        let mut parts = Self::default();
        for class in 0..n_classes {
            let mut of_class: Vec<usize> = (0..classes.len()).filter(|&at| classes[at] as usize == class).collect();
            of_class.shuffle(&mut rng);
            let n_training = ((of_class.len() as f64 * train_fraction).round() as usize).max(1).min(of_class.len());
            parts.training.extend(&of_class[..n_training]);
            for &at in &of_class[n_training..] {
                let part = if parts.test.len() <= parts.validation.len() { &mut parts.test } else { &mut parts.validation };
                part.push(at);
            }
        }
        if !parts.validation.is_empty() {
            return Ok(parts);
        }
        let held_out = parts.test.len();
        Err(Error::Data(format!(
            "with train_fraction = {train_fraction}, {held_out} of its {} sequences are held out, expected at least 2: one to validate and one to \
             test with; give more sequences or lower train_fraction",
            classes.len()
        )))
    }

    fn of(&self, purpose: Purpose) -> &[usize] {
        match purpose {
            Purpose::TrainData => &self.training,
            Purpose::ValidationData => &self.validation,
            _ => &self.test,
        }
    }
}

impl Table {
    fn fill(&self, series: usize, t: usize, out: &mut [f32]) {
        for (column, (out, &x)) in out.iter_mut().zip(self.series[series].step(t)).enumerate() {
            *out = self.normalization.apply(column, x);
        }
    }

    /// A batch whose rows read these steps of sequences; the class stands at the last step of a sequence.
    fn batch(&self, chunk: Chunk) -> Batch {
        let (width, batch_size, seq_len) = (self.columns.len(), chunk.rows.len(), chunk.seq_len);
        let n = batch_size * seq_len;
        let (mut inputs, mut targets, mut mask) = (vec![0.0; n * width], vec![0; n], vec![0.0; n]);
        for (series, step, place) in chunk.places() {
            self.fill(series, step, &mut inputs[place * width..][..width]);
            if step + 1 == self.series[series].len() {
                targets[place] = self.classes[series];
                mask[place] = 1.0;
            }
        }
        Batch {
            inputs: Sequences::Values { values: inputs, width },
            targets: Sequences::Tokens(targets),
            mask: Some(mask),
            segments: chunk.segments,
            batch_size,
            seq_len,
        }
    }
}

impl SequenceTask for Classification {
    fn reads(&self) -> IoKind {
        IoKind::Values { width: self.table.columns.len() }
    }

    fn predicts(&self) -> IoKind {
        IoKind::Tokens { n: self.table.names.len() }
    }

    fn longest(&self) -> usize {
        self.table.series.iter().map(Series::len).max().unwrap_or(0)
    }

    fn has_parts(&self) -> bool {
        true
    }

    fn description(&self) -> Option<serde_json::Value> {
        let table = &self.table;
        let classifier = Classifier {
            columns: table.columns.clone(),
            group: table.config.group.clone(),
            target: table.config.target.clone(),
            classes: table.names.clone(),
            normalization: table.normalization.clone(),
        };
        serde_json::to_value(TableTask::Classify(classifier)).ok()
    }

    fn training(&self, batch_size: usize, seed: u64) -> Result<Box<dyn BatchSource>> {
        check_shape(batch_size, self.longest())?;
        Ok(Box::new(RandomSeries { table: Arc::clone(&self.table), batch_size, seed }))
    }

    fn evaluation(&self, batch_size: usize, _seed: u64, purpose: Purpose, _n_batches: u64) -> Result<Box<dyn EvaluationSet>> {
        check_shape(batch_size, CHUNK_LEN)?;
        let table = Arc::clone(&self.table);
        let mut lengths = vec![0; table.series.len()];
        table.parts.of(purpose).iter().for_each(|&at| lengths[at] = table.series[at].len());
        Ok(Box::new(ClassEvaluation { table, whole: WholeSeries::new(lengths, batch_size, CHUNK_LEN) }))
    }

    fn comparison(&self, purpose: Purpose) -> Option<Box<dyn Comparison>> {
        let table = &self.table;
        let share =
            |class: u32, part: &[usize]| part.iter().filter(|&&at| table.classes[at] == class).count() as f64 / part.len().max(1) as f64;
        let test = table.parts.of(purpose);
        // A table that was not trained on tells itself which class is the most frequent.
        let training = if table.parts.training.is_empty() { test } else { &table.parts.training[..] };
        let majority = (0..table.names.len() as u32).max_by(|&a, &b| share(a, training).total_cmp(&share(b, training)))?;
        let baseline_name = format!("always '{}'", table.names[majority as usize]);
        Some(Box::new(ClassHits { n_classes: table.names.len(), right: 0, n: 0, baseline: share(majority, test), baseline_name }))
    }
}

/// Steps of an evaluation batch.
const CHUNK_LEN: usize = 512;

/// Sequences to train on, drawn at random.
struct RandomSeries {
    table: Arc<Table>,
    batch_size: usize,
    seed: u64,
}

impl BatchSource for RandomSeries {
    fn batch(&mut self, iteration: u64, micro: u64) -> Result<Batch> {
        let mut rng = rng::substream(self.seed, Purpose::TrainData, iteration, micro);
        let training = &self.table.parts.training;
        let drawn: Vec<usize> = (0..self.batch_size).map(|_| training[rng.random_range(0..training.len() as u64) as usize]).collect();
        let lengths: Vec<usize> = drawn.iter().map(|&at| self.table.series[at].len()).collect();
        let rows = drawn.iter().zip(&lengths).map(|(&at, &length)| Some((at, 0..length))).collect();
        let seq_len = lengths.iter().copied().max().unwrap_or(0);
        Ok(self.table.batch(Chunk { rows, seq_len, segments: Segments::from_lengths(lengths) }))
    }

    fn tokens_per_batch(&self) -> usize {
        let training = &self.table.parts.training;
        let steps: usize = training.iter().map(|&at| self.table.series[at].len()).sum();
        self.batch_size * steps.div_ceil(training.len().max(1))
    }
}

/// Every sequence of a part once.
struct ClassEvaluation {
    table: Arc<Table>,
    whole: WholeSeries,
}

impl EvaluationSet for ClassEvaluation {
    fn n_batches(&self) -> u64 {
        self.whole.n_chunks() as u64
    }

    fn batch(&mut self, index: u64) -> Result<Batch> {
        expect_index(index, self.n_batches())?;
        Ok(self.table.batch(self.whole.chunk(index as usize)))
    }

    fn carries_state(&self) -> bool {
        true
    }
}

/// Counts right classes.
struct ClassHits {
    n_classes: usize,
    right: u64,
    n: u64,
    baseline: f64,
    baseline_name: String,
}

impl Comparison for ClassHits {
    fn add(&mut self, batch: &Batch, outputs: &[f32]) {
        for (place, (logits, &class)) in outputs.chunks_exact(self.n_classes).zip(batch.targets.tokens()).enumerate() {
            if batch.mask.as_ref().is_none_or(|mask| mask[place] != 0.0) {
                let of_class = logits[class as usize];
                self.right += u64::from(logits.iter().enumerate().all(|(other, &logit)| other == class as usize || logit < of_class));
                self.n += 1;
            }
        }
    }

    fn measures(&self) -> Vec<Measure> {
        vec![Measure {
            name: format!("accuracy of {} sequences", self.n),
            found: self.right as f64 / self.n.max(1) as f64,
            baseline: self.baseline,
            baseline_name: self.baseline_name.clone(),
            is_gain: true,
        }]
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn every_sequence_is_in_one_part_and_every_class_is_trained_on(
            classes in prop::collection::vec(0..3u32, 6..60), train_fraction in 0.3..0.8f64, seed: u64,
        ) {
            if let Ok(parts) = Parts::divide(&classes, 3, train_fraction, seed) {
                let mut all: Vec<usize> = [&parts.training, &parts.validation, &parts.test].into_iter().flatten().copied().collect();
                all.sort_unstable();
                prop_assert_eq!(all, (0..classes.len()).collect::<Vec<_>>());
                prop_assert!(!parts.test.is_empty() && parts.test.len() - parts.validation.len() <= 1);
                for class in &classes {
                    prop_assert!(parts.training.iter().any(|&at| classes[at] == *class));
                }
                prop_assert_eq!(&parts, &Parts::divide(&classes, 3, train_fraction, seed).unwrap());
            }
        }
    }
}
