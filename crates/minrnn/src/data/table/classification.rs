//! Classification: one class for every sequence of a table, read from its last step.
//!
//! Where a validation or a test file is given, its sequences are that part. Otherwise those of each class, in a seeded order, are divided:
//! `train_fraction` of them to train on (at least one), the others to report and, where that is wanted, in turn to validate with. Means and
//! deviations are those of the sequences that are trained on.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use rand::RngExt;
use rand::seq::SliceRandom;

use super::categories;
use super::confusion::Confusion;
use super::example::{self, Example};
use super::layout::VALUE;
use super::measure::{Comparison, Measure};
use super::roles::{Roles, Understood};
use super::series::{Series, labels};
use super::{Chunk, Division, Frame, Names, Opened, TimeColumn, Wanted, WholeSeries, normalization, other_columns, read_table};
use crate::data::batch::{check_shape, expect_index};
use crate::data::{Batch, BatchSource, EvaluationSet, Extent, IoKind, SequenceTask, Sequences};
use crate::rng::{self, Purpose};
use crate::suggestion::suggestion;
use crate::{Error, Result, Segments};
use minrnn_model::{Classifier, Normalization, TableTask};

/// What is classified by what.
#[derive(Debug, Clone, PartialEq)]
pub struct ClassificationConfig {
    /// Columns that are read; none: all but the group and the class.
    pub columns: Vec<String>,
    /// The column with the class, the same in all rows of a sequence; empty: the one that is called class.
    pub target: String,
    /// The column that names the sequence of a row; empty: the one that is called series.
    pub group: String,
    /// How the files are read, and which part each of them is.
    pub division: Division,
    /// A model whose means and deviations stay; none: those of the training part.
    pub like: Option<Classifier>,
    /// What the division into parts is drawn from.
    pub seed: u64,
}

/// The task of classifying the sequences of a table.
#[derive(Debug, Clone)]
pub struct Classification {
    table: Arc<Table>,
    understood: Understood,
}

/// The sequences with their classes.
#[derive(Debug, Clone)]
struct Table {
    series: Arc<[Series]>,
    /// The class of each sequence.
    classes: Arc<[u32]>,
    classifier: Classifier,
    task: TableTask,
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

/// Sequences of files with the classes of a model.
#[derive(Default)]
struct Gathered {
    series: Vec<Series>,
    classes: Vec<u32>,
}

impl Gathered {
    /// Adds the sequences of `frame`, whose classes must be among `names`; their places.
    fn add(&mut self, frame: &Frame, names: &[String], target: &str) -> Result<Vec<usize>> {
        let [groups, targets] = [&frame.texts[0], &frame.texts[1]];
        let known = |name: &String| {
            let found = names.iter().position(|class| class == name).map(|at| at as u32);
            let unknown = || suggestion(name, names.iter().map(String::as_str));
            found.ok_or_else(|| Error::Data(format!("the class '{name}' was not seen in training{}", unknown())))
        };
        let ids = targets.distinct().iter().map(known).collect::<Result<Vec<u32>>>()?;
        let first = self.series.len();
        self.classes.extend(labels(groups, targets, target)?.iter().map(|&label| ids[label as usize]));
        self.series.extend(Series::of(frame, Some(groups))?);
        Ok((first..self.series.len()).collect())
    }
}

impl Classification {
    /// The task on the file `path`, and on those for validation and test where there are some.
    ///
    /// # Errors
    /// When a file cannot be read, a sequence has two classes, a class is missing in training, or there are too few sequences for the parts.
    pub fn open(path: &Path, config: ClassificationConfig) -> Result<Self> {
        let opened = Opened::new(path)?;
        let (mut config, understood) = config.understood(opened.header())?;
        let mut wanted = config.wanted();
        if let Some(like) = &config.like {
            wanted.categories = Names::known(&like.columns, &like.categories);
        }
        let own = opened.read(&wanted)?;
        // What was found is named from now on.
        config.division.time = own.time().map_or(TimeColumn::None, |name| TimeColumn::Named(name.to_owned()));
        let names = classes_of(&own, &config.target).map_err(|error| error.in_file(path))?;
        // Columns that were not named are those of the training file.
        let (columns, found) = (own.names.clone(), own.categories.clone());
        let mut gathered = Gathered::default();
        let trained = gathered.add(&own, &names, &config.target).map_err(|error| error.in_file(path))?;
        let mut frames = vec![(path.to_owned(), own)];
        let mut read = |path: &Option<PathBuf>| -> Result<Option<Vec<usize>>> {
            let Some(path) = path else { return Ok(None) };
            let wanted = Wanted { categories: categories::of_file(&columns, &found), ..Wanted::named(&columns, config.texts()) };
            let frame = read_table(path, &config.division.wanted(wanted))?;
            let places = gathered.add(&frame, &names, &config.target).map_err(|error| error.in_file(path))?;
            frames.push((path.to_owned(), frame));
            Ok(Some(places))
        };
        let (validation, test) = (read(&config.division.validation)?, read(&config.division.test)?);
        let divided = || Parts::divide(&gathered.classes[..trained.len()], names.len(), config.division.train_fraction, config.seed);
        let parts = match (validation, test) {
            (None, None) => divided().halved(config.division.validates),
            (None, Some(test)) if config.division.validates => {
                let Parts { training, test: validation, .. } = divided();
                Parts { training, validation, test }
            }
            (Some(validation), None) => Parts { validation, ..divided() },
            (validation, Some(test)) => Parts { training: trained, validation: validation.unwrap_or_default(), test },
        };
        parts.expect_enough(&config).map_err(|error| error.in_file(path))?;
        let mut is_trained = vec![false; gathered.series.len()];
        parts.training.iter().for_each(|&at| is_trained[at] = true);
        let categories = match &config.like {
            Some(like) => like.categories.clone(),
            None => categories::settle(found, &mut gathered.series, |at| if is_trained[at] { usize::MAX } else { 0 }),
        };
        let rows = parts.training.iter().flat_map(|&at| gathered.series[at].steps());
        normalization::expect_known(&columns, rows.clone()).map_err(|error| error.in_file(path))?;
        let normalization = match &config.like {
            Some(like) if like.columns != columns => return Err(other_columns(&like.columns, &columns).in_file(path)),
            Some(like) => like.normalization.clone(),
            None => {
                let mut fitted = normalization::fit(columns.len(), rows).map_err(|error| error.in_file(path))?;
                categories::leave(&mut fitted, &categories);
                fitted
            }
        };
        for (path, frame) in &frames {
            normalization::expect_near(&normalization, frame).map_err(|error| error.in_file(path))?;
        }
        let Gathered { series, classes } = gathered;
        let classifier = Classifier { categories, ..config.classifier(columns, names, normalization) };
        let table = Table::new(series, classes, classifier, config, parts);
        Ok(Self { table: Arc::new(table), understood })
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
            division: Division::unseen(path, classifier.time.as_deref(), classifier.layout, classifier.missing),
            like: None,
            seed: 0,
        };
        let known = Names::known(&classifier.columns, &classifier.categories);
        let frame = read_table(path, &Wanted { categories: known, ..config.wanted() })?;
        let mut gathered = Gathered::default();
        let near = normalization::expect_near(&classifier.normalization, &frame);
        let found = near.and_then(|()| gathered.add(&frame, &classifier.classes, &classifier.target));
        let parts = Parts { test: found.map_err(|error| error.in_file(path))?, ..Parts::default() };
        let Gathered { series, classes } = gathered;
        let table = Table::new(series, classes, classifier.clone(), config, parts);
        Ok(Self { table: Arc::new(table), understood: None })
    }
}

/// Names of the classes of a training table, in order.
fn classes_of(frame: &Frame, target: &str) -> Result<Vec<String>> {
    let mut names = frame.texts[1].distinct().to_vec();
    names.sort_unstable();
    match &names[..] {
        [only] => Err(Error::Data(format!("the column '{target}' has one value, '{only}'; expected at least two classes"))),
        _ => Ok(names),
    }
}

impl ClassificationConfig {
    /// The same with the columns that `header` tells where nobody names them.
    fn understood(self, header: &[String]) -> Result<(Self, Understood)> {
        let named = |name: String| Some(name).filter(|name| !name.is_empty());
        let Division { time, layout, .. } = self.division.clone();
        let (group, target) = (named(self.group), named(self.target).into_iter().collect());
        let (roles, understood) = Roles { columns: self.columns.clone(), group, target, time, layout }.to_classify(header)?;
        let Roles { group, target, time, layout, .. } = roles;
        let division = Division { time, layout, ..self.division };
        let config = Self { group: group.unwrap_or_default(), target: target.concat(), division, ..self };
        Ok((config, understood))
    }

    /// What a trained model needs to be used on other tables.
    fn classifier(&self, columns: Vec<String>, classes: Vec<String>, normalization: Normalization) -> Classifier {
        let time = match &self.division.time {
            TimeColumn::Named(name) => Some(name.clone()),
            _ => None,
        };
        let (group, target) = (self.group.clone(), self.target.clone());
        let (layout, missing) = (self.division.layout(), self.division.missing);
        Classifier { columns, group, target, time, classes, normalization, missing, layout, categories: Vec::new() }
    }

    fn texts(&self) -> Vec<String> {
        vec![self.group.clone(), self.target.clone()]
    }

    fn wanted(&self) -> Wanted {
        self.division.wanted(match self.columns.is_empty() {
            // A wide table has one column of numbers.
            true if !self.division.layout().is_long() => Wanted::named(&[VALUE.to_owned()], self.texts()),
            true => Wanted { texts: self.texts(), ..Wanted::default() },
            false => Wanted { categories: categories::open(&self.columns, &[]), ..Wanted::named(&self.columns, self.texts()) },
        })
    }
}

impl Parts {
    /// Those of each class in a seeded order, the first ones to train on.
    fn divide(classes: &[u32], n_classes: usize, train_fraction: f64, seed: u64) -> Self {
        let mut rng = rng::stream(seed, Purpose::Order, 0);
        let mut parts = Self::default();
        for class in 0..n_classes {
            let mut of_class: Vec<usize> = (0..classes.len()).filter(|&at| classes[at] as usize == class).collect();
            of_class.shuffle(&mut rng);
            let n_training = ((of_class.len() as f64 * train_fraction).round() as usize).max(1).min(of_class.len());
            parts.training.extend(&of_class[..n_training]);
            parts.test.extend(&of_class[n_training..]);
        }
        parts
    }

    /// With every other one of those that are held out to validate, where that is wanted.
    fn halved(mut self, validates: bool) -> Self {
        if validates {
            let held_out = std::mem::take(&mut self.test);
            for (at, series) in held_out.into_iter().enumerate() {
                (if at % 2 == 0 { &mut self.test } else { &mut self.validation }).push(series);
            }
        }
        self
    }

    fn expect_enough(&self, config: &ClassificationConfig) -> Result<()> {
        let config = &config.division;
        let lacks_validation = config.validates && self.validation.is_empty();
        if !self.test.is_empty() && !lacks_validation {
            return Ok(());
        }
        let (fraction, held_out) = (config.train_fraction, self.validation.len() + self.test.len());
        let expected = if config.validates { "at least 2: one to validate and one to test with" } else { "at least 1 to test with" };
        Err(Error::Data(format!(
            "with train_fraction = {fraction}, {held_out} of its {} sequences are held out, expected {expected}; give more sequences or lower \
             train_fraction",
            self.training.len() + held_out
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
    fn new(series: Vec<Series>, classes: Vec<u32>, classifier: Classifier, config: ClassificationConfig, parts: Parts) -> Self {
        let task = TableTask::Classify(classifier.clone());
        Self { series: series.into(), classes: classes.into(), classifier, task, config, parts }
    }

    fn names(&self) -> &[String] {
        &self.classifier.classes
    }

    /// How the sequences of the part for `purpose` lie in batches of `batch_size`.
    fn whole(&self, purpose: Purpose, batch_size: usize) -> WholeSeries {
        let mut lengths = vec![0; self.series.len()];
        self.parts.of(purpose).iter().for_each(|&at| lengths[at] = self.series[at].len());
        WholeSeries::new(lengths, batch_size, CHUNK_LEN)
    }

    /// A batch whose rows read these steps of sequences; the class stands at the last step of a sequence.
    fn batch(&self, chunk: Chunk) -> Batch {
        let (width, batch_size, seq_len) = (self.task.n_inputs(), chunk.rows.len(), chunk.seq_len);
        let n = batch_size * seq_len;
        let (mut inputs, mut targets, mut mask) = (vec![0.0; n * width], vec![0; n], vec![0.0; n]);
        for (series, step, place) in chunk.places() {
            self.task.show(self.series[series].recent(step, self.task.reach()), &mut inputs[place * width..][..width]);
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
        IoKind::Values { width: self.table.task.n_inputs() }
    }

    fn predicts(&self) -> IoKind {
        IoKind::Tokens { n: self.table.names().len() }
    }

    fn longest(&self) -> usize {
        self.table.series.iter().map(Series::len).max().unwrap_or(0)
    }

    fn extent(&self) -> Option<Extent> {
        let table = &self.table;
        let steps = table.parts.training.iter().map(|&at| table.series[at].len()).sum::<usize>();
        let length = steps.div_ceil(table.parts.training.len().max(1));
        Some(Extent { steps, length, in_windows: false, least_updates: LEAST_UPDATES })
    }

    fn has_parts(&self) -> bool {
        true
    }

    fn table_task(&self) -> Option<TableTask> {
        Some(self.table.task.clone())
    }

    fn description(&self) -> Option<serde_json::Value> {
        serde_json::to_value(&self.table.task).ok()
    }

    fn training(&self, batch_size: usize, seed: u64) -> Result<Box<dyn BatchSource>> {
        check_shape(batch_size, self.longest())?;
        Ok(Box::new(RandomSeries { table: Arc::clone(&self.table), batch_size, seed }))
    }

    fn evaluation(&self, batch_size: usize, _seed: u64, purpose: Purpose, _n_batches: u64) -> Result<Box<dyn EvaluationSet>> {
        check_shape(batch_size, CHUNK_LEN)?;
        let table = Arc::clone(&self.table);
        let whole = table.whole(purpose, batch_size);
        Ok(Box::new(ClassEvaluation { table, whole }))
    }

    fn comparison(&self, purpose: Purpose) -> Option<Box<dyn Comparison>> {
        let table = &self.table;
        let test = table.parts.of(purpose);
        // A table that was not trained on tells itself which class is the most frequent.
        let training = if table.parts.training.is_empty() { test } else { &table.parts.training[..] };
        let mut counts = vec![0u64; table.names().len()];
        training.iter().for_each(|&at| counts[table.classes[at] as usize] += 1);
        // Of equally frequent ones the last.
        let majority = (0..counts.len()).max_by_key(|&class| counts[class])?;
        let (confusion, table) = (Confusion::new(table.names().to_vec()), Arc::clone(table));
        Some(Box::new(ClassHits { confusion, majority, table, purpose, whole: None, misses: Vec::new(), probabilities: Vec::new() }))
    }

    fn all(&self) -> Option<Box<dyn SequenceTask>> {
        let mut table = Table::clone(&self.table);
        let Parts { training, validation, test } = &mut table.parts;
        let before = training.len();
        training.append(validation);
        if table.config.division.test.is_none() {
            training.append(test);
        }
        let is_more = training.len() > before;
        is_more.then(|| Box::new(Self { table: Arc::new(table), understood: None }) as Box<dyn SequenceTask>)
    }

    fn understood(&self) -> Option<&str> {
        self.understood.as_deref()
    }

    fn has_test_file(&self) -> bool {
        self.table.config.division.test.is_some()
    }
}

/// Steps of an evaluation batch.
const CHUNK_LEN: usize = 512;
/// Updates that a few dozen sequences need.
const LEAST_UPDATES: u64 = 600;

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

/// Counts which classes are taken for which.
struct ClassHits {
    confusion: Confusion,
    /// The most frequent class in training.
    majority: usize,
    table: Arc<Table>,
    purpose: Purpose,
    /// How the sequences lie in the batches.
    whole: Option<WholeSeries>,
    /// The surest misses.
    misses: Vec<Miss>,
    probabilities: Vec<f64>,
}

/// A sequence that was taken for another class.
struct Miss {
    series: usize,
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
                self.misses.push(Miss { series, predicted, probability });
            }
        }
        self.misses.sort_by(|a, b| b.probability.total_cmp(&a.probability));
        self.misses.truncate(example::MOST);
    }

    fn examples(&self) -> Vec<Example> {
        let names = self.confusion.names();
        let of = |miss: &Miss| {
            let series = &self.table.series[miss.series];
            let every = series.len().div_ceil(example::MOST_STEPS).max(1);
            Example::Classified {
                name: series.name.clone(),
                class: names[self.table.classes[miss.series] as usize].clone(),
                predicted: names[miss.predicted].clone(),
                probability: miss.probability,
                values: series.steps().step_by(every).filter_map(|step| step.first().copied()).collect(),
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
        vec![Measure::of_share("accuracy", [right, confusion.n()], &baseline, only_one)]
    }

    fn confusion(&self) -> Option<&Confusion> {
        Some(&self.confusion)
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn every_sequence_is_in_one_part_and_every_class_is_trained_on(
            classes in prop::collection::vec(0..3u32, 6..60), train_fraction in 0.3..0.8f64, seed: u64, validates: bool,
        ) {
            let parts = Parts::divide(&classes, 3, train_fraction, seed).halved(validates);
            let mut all: Vec<usize> = [&parts.training, &parts.validation, &parts.test].into_iter().flatten().copied().collect();
            all.sort_unstable();
            prop_assert_eq!(all, (0..classes.len()).collect::<Vec<_>>());
            prop_assert!(!validates || parts.test.len() - parts.validation.len() <= 1);
            prop_assert!(validates || parts.validation.is_empty());
            for class in &classes {
                prop_assert!(parts.training.iter().any(|&at| classes[at] == *class));
            }
            prop_assert_eq!(&parts, &Parts::divide(&classes, 3, train_fraction, seed).halved(validates));
        }
    }
}
