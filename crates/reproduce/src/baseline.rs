//! Baselines without a model: a constant answer, and the best cheap rule, computed on the very batches that are scored.
//!
//! A rule that is fitted is fitted on other strings or examples, like a model, and scored on the test batches.

use std::collections::{BTreeMap, HashMap};

use minrnn::data::{Batch, EvaluationSet, IoKind, OneLength, Sequences};
use minrnn::rng::Purpose;
use minrnn::train::{Data, Experiment, Task, final_batches, scaled_accuracy};
use serde::{Deserialize, Serialize};

use crate::folder::{self, Folder};
use crate::lengths::{self, AtLength};
use crate::plan::slug;
use crate::training::{self, Options};
use crate::{Cell, Error, Host, Job, Metric, Result, Target};

/// Strings of each length from which answers are chosen.
const STRINGS: u64 = 256;
/// Strings of each length that a rule is scored on: more than for models, since a rule costs little and its curve then scatters less.
const SCORED: u64 = 1024;

/// A baseline without a model.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Baseline {
    /// Its name.
    pub name: String,
    /// Share of correct answers, if classes are predicted.
    pub accuracy: Option<f64>,
    /// The same, scaled so that guessing is 0.
    pub scaled: Option<f64>,
    /// Mean loss, if the rule has one.
    pub loss: Option<f64>,
    /// Accuracy at each string length, if the rule depends on it.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub lengths: Vec<AtLength>,
}

impl Baseline {
    /// The accuracy of guessing, by which its own was scaled; none for a rule that is always right.
    pub(crate) fn chance(&self) -> Option<f64> {
        let (accuracy, scaled) = (self.accuracy?, self.scaled?);
        // Chance and scaled accuracy play the same part in the formula, so that it gives either from the other.
        (scaled < 1.0).then(|| scaled_accuracy(accuracy, scaled))
    }

    /// Its value in a table of `metric`.
    pub fn value(&self, metric: Metric) -> Option<f64> {
        match metric {
            Metric::Accuracy => self.accuracy,
            Metric::ScaledAccuracy => self.scaled,
            Metric::AccuracyPercent => self.accuracy.map(|accuracy| 100.0 * accuracy),
            Metric::Loss => self.loss,
            _ => None,
        }
    }
}

/// Baselines with what they depend on.
#[derive(Serialize, Deserialize)]
struct Kept {
    of: serde_json::Value,
    baselines: Vec<Baseline>,
}

/// What to do about a missing text.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum MissingText {
    /// Fetch it.
    Fetched,
    /// Skip the baselines that depend on it.
    LeftOut,
}

/// The baselines of each column of `target`, stored in `folder` once computed; a column whose data are missing has none.
///
/// # Errors
/// When reading or writing fails, or the machine does.
pub fn baselines(
    folder: &Folder,
    target: &Target,
    cells: &[Cell],
    options: &Options,
    host: &mut dyn Host,
    missing_text: MissingText,
) -> Result<Vec<Vec<Baseline>>> {
    let of_column = |(at, column): (usize, &crate::Line)| {
        let training = cells.iter().filter(|cell| cell.column == at).find_map(|cell| match &cell.job {
            Job::Train(training) => Some(training),
            _ => None,
        });
        let Some(training) = training else { return Ok(Vec::new()) };
        let name = if column.label.is_empty() { "all".to_owned() } else { slug(&column.label) };
        let path = folder.baselines(target.runs.as_deref().unwrap_or(&target.name), &name);
        let mut of = description(&training::scored(training, options))?;
        if training.experiment.data.task == Task::FormalLanguage {
            // Baselines stored before lengths were examined are computed again.
            of["strings_of_a_length"] = SCORED.into();
        }
        if let Some(sha256) = options.other_text(training) {
            of["text"] = sha256.into();
        }
        let kept = match folder::read::<Kept>(&path) {
            // A damaged file is computed again.
            Err(error) if error.is_wrong_input() => None,
            kept => kept?,
        };
        if let Some(kept) = kept.filter(|kept| kept.of == of) {
            return Ok(kept.baselines);
        }
        if training.experiment.data.task == Task::Text && options.text.is_none() && missing_text == MissingText::LeftOut {
            return Ok(Vec::new());
        }
        let computed = training::with_data(training, 1, options, host).and_then(|experiment| Ok(compute(&experiment)?));
        match computed {
            Ok(baselines) => {
                folder::write(&path, &Kept { of, baselines: baselines.clone() })?;
                Ok(baselines)
            }
            // The runs themselves report what is missing.
            Err(error) if error.is_wrong_input() => Ok(Vec::new()),
            Err(error) => Err(error),
        }
    };
    target.columns.iter().enumerate().map(of_column).collect()
}

/// Everything that the test batches depend on.
fn description(experiment: &Experiment) -> Result<serde_json::Value> {
    let train = &experiment.train;
    let mut data = serde_json::to_value(&experiment.data).map_err(|error| Error::from(minrnn::Error::Config(error.to_string())))?;
    data.as_object_mut().into_iter().for_each(|keys| _ = keys.remove("path"));
    let n_batches = final_batches(train, train.max_iterations, 1);
    Ok(serde_json::json!({
        "data": data, "batch_size": train.batch_size, "seq_len": train.seq_len, "seed": train.scoring_seed(), "batches": n_batches,
    }))
}

/// What a rule looks at.
struct Step<'a> {
    /// The row, up to its own end.
    row: &'a [u32],
    /// The step of the row.
    at: usize,
    /// Its index among the row's scored steps.
    place: usize,
    /// The right answer.
    target: u32,
}

/// How an answer is found.
enum Rule {
    /// The commonest answer among the steps with the same key.
    Commonest(fn(&Step) -> u64),
    /// One answer for the whole row.
    OfRow(fn(&[u32]) -> u32),
}

fn compute(experiment: &Experiment) -> minrnn::Result<Vec<Baseline>> {
    let scratch = tempfile::tempdir();
    let scratch = scratch.map_err(|source| minrnn::Error::io("create a temporary folder in", std::env::temp_dir(), source))?;
    let data = Data::make(experiment, scratch.path())?;
    let train = &experiment.train;
    let n_batches = final_batches(train, train.max_iterations, 1);
    let mut test = data.fixed_batches(experiment, n_batches, Purpose::TestData)?;
    let mut others = others(experiment, &data, n_batches)?;
    let predicts = match &data {
        Data::Text { tokenizer, .. } => IoKind::Tokens { n: tokenizer.vocab_size() },
        Data::Task(task) => task.predicts(),
    };
    let IoKind::Tokens { n } = predicts else { return of_values(experiment.data.task, &mut *others, &mut *test) };
    let same = ("always the same answer", Rule::Commonest(|_| 0));
    let rules = match experiment.data.task {
        Task::FormalLanguage => vec![same, ("the length alone", Rule::Commonest(length_and_place))],
        Task::ListOps => vec![same, ("the root operator alone", Rule::Commonest(|step| u64::from(step.row[0])))],
        Task::SelectiveCopying => vec![same, ("the sequence's commonest token", Rule::OfRow(commonest_data_token))],
        // Keys and values alternate.
        Task::Mqar => vec![same, ("one of the example's values", Rule::OfRow(|row| row[1]))],
        Task::Text => vec![same, ("the character before alone", Rule::Commonest(|step| u64::from(step.row[step.at])))],
        _ => vec![same],
    };
    let scaled = |accuracy: f64| data.chance().map(|chance| scaled_accuracy(accuracy, chance));
    let baseline = |(name, rule): &(&str, Rule)| {
        let (accuracy, loss) = match rule {
            Rule::Commonest(key) => commonest(*key, n, &mut *others, &mut *test)?,
            Rule::OfRow(answer) => (of_row(*answer, &mut *test)?, None),
        };
        let accuracy = experiment.data.task.scored_accuracy(Some(accuracy));
        Ok(Baseline { name: (*name).to_owned(), accuracy, scaled: accuracy.and_then(scaled), loss, lengths: Vec::new() })
    };
    let mut found: Vec<Baseline> = rules.iter().map(baseline).collect::<minrnn::Result<_>>()?;
    if let (Task::FormalLanguage, Some(rule)) = (experiment.data.task, found.get_mut(1)) {
        rule.lengths = by_length(experiment, n)?;
    }
    Ok(found)
}

/// The length of the string and, where several answers are scored, which one it is.
fn length_and_place(step: &Step) -> u64 {
    ((step.row.len() as u64) << 32) | step.place as u64
}

/// Accuracy of the rule that knows only the length and the place, at the lengths at which models are examined.
fn by_length(experiment: &Experiment, n: usize) -> minrnn::Result<Vec<AtLength>> {
    let (task, lengths) = lengths::looked_at(experiment)?;
    let seed = experiment.train.scoring_seed();
    let at_length = |length| {
        let mut others = OneLength::new(&task, length, STRINGS, seed.wrapping_add(1))?;
        let mut scored = OneLength::new(&task, length, SCORED, seed)?;
        Ok(AtLength { length, accuracy: commonest(length_and_place, n, &mut others, &mut scored)?.0 })
    };
    lengths.into_iter().map(at_length).collect()
}

/// Batches like those that are scored, to choose answers on.
fn others(experiment: &Experiment, data: &Data, n_batches: u64) -> minrnn::Result<Box<dyn EvaluationSet>> {
    Ok(match experiment.data.task {
        Task::FormalLanguage => Box::new(EveryLength::new(experiment)?),
        Task::Text => Box::new(Trained { source: data.training(experiment)?, n_batches }),
        _ => data.fixed_batches(experiment, n_batches, Purpose::ValidationData)?,
    })
}

/// Strings of every length that is scored.
struct EveryLength(Vec<OneLength>);

impl EveryLength {
    fn new(experiment: &Experiment) -> minrnn::Result<Self> {
        let task = experiment.data.formal()?.evaluation;
        // Other strings than those of the test batches.
        let seed = experiment.train.scoring_seed().wrapping_add(1);
        let of_length = |length| OneLength::new(&task, length, STRINGS, seed);
        (task.min_length..=task.max_length).map(of_length).collect::<minrnn::Result<_>>().map(Self)
    }
}

impl EvaluationSet for EveryLength {
    fn n_batches(&self) -> u64 {
        self.0.iter().map(EvaluationSet::n_batches).sum()
    }

    fn batch(&mut self, index: u64) -> minrnn::Result<Batch> {
        let of_each = self.0[0].n_batches();
        self.0[(index / of_each) as usize].batch(index % of_each)
    }
}

/// The first batches of a training.
struct Trained {
    source: Box<dyn minrnn::data::BatchSource>,
    n_batches: u64,
}

impl EvaluationSet for Trained {
    fn n_batches(&self) -> u64 {
        self.n_batches
    }

    fn batch(&mut self, index: u64) -> minrnn::Result<Batch> {
        self.source.batch(index, 0)
    }
}

/// Hands every scored step of `set` to `see`.
fn each_step(set: &mut dyn EvaluationSet, mut see: impl FnMut(&Step)) -> minrnn::Result<()> {
    for index in 0..set.n_batches() {
        let batch = set.batch(index)?;
        let (Sequences::Tokens(inputs), Sequences::Tokens(targets)) = (&batch.inputs, &batch.targets) else { continue };
        for b in 0..batch.batch_size {
            let start = b * batch.seq_len;
            let length = batch.segments.lengths().map_or(batch.seq_len, |lengths| lengths[b]);
            let row = &inputs[start..start + length];
            let scored = (0..length).filter(|at| batch.mask.as_ref().is_none_or(|mask| mask[start + at] != 0.0));
            for (place, at) in scored.enumerate() {
                see(&Step { row, at, place, target: targets[start + at] });
            }
        }
    }
    Ok(())
}

/// Accuracy and cross-entropy, on `test`, of the commonest of `n` answers for each key in `others`. Probabilities are counts plus one, normalised.
fn commonest(
    key: fn(&Step) -> u64,
    n: usize,
    others: &mut dyn EvaluationSet,
    test: &mut dyn EvaluationSet,
) -> minrnn::Result<(f64, Option<f64>)> {
    let mut counts: HashMap<u64, BTreeMap<u32, u64>> = HashMap::new();
    let mut all: BTreeMap<u32, u64> = BTreeMap::new();
    each_step(others, |step| {
        *counts.entry(key(step)).or_default().entry(step.target).or_default() += 1;
        *all.entry(step.target).or_default() += 1;
    })?;
    /// The commonest answer (of equals the smallest), how often each occurs, and their total.
    type Known<'a> = (u32, &'a BTreeMap<u32, u64>, u64);
    fn known(counts: &BTreeMap<u32, u64>) -> Known<'_> {
        let most = counts.iter().max_by_key(|&(&answer, &count)| (count, std::cmp::Reverse(answer)));
        (most.map_or(0, |(&answer, _)| answer), counts, counts.values().sum())
    }
    let of_all = known(&all);
    let of_key: HashMap<u64, Known> = counts.iter().map(|(&key, counts)| (key, known(counts))).collect();
    let (mut right, mut loss, mut scored) = (0u64, 0.0, 0u64);
    each_step(test, |step| {
        let &(answer, counts, total) = of_key.get(&key(step)).unwrap_or(&of_all);
        right += u64::from(answer == step.target);
        let count = counts.get(&step.target).copied().unwrap_or(0);
        loss -= ((count + 1) as f64 / (total as f64 + n as f64)).ln();
        scored += 1;
    })?;
    let scored = scored.max(1) as f64;
    Ok((right as f64 / scored, Some(loss / scored)))
}

/// Accuracy of one answer for each row.
fn of_row(answer: fn(&[u32]) -> u32, test: &mut dyn EvaluationSet) -> minrnn::Result<f64> {
    let (mut right, mut scored) = (0u64, 0u64);
    // A row's steps are consecutive.
    let mut known: Option<u32> = None;
    each_step(test, |step| {
        if step.place == 0 {
            known = None;
        }
        right += u64::from(*known.get_or_insert_with(|| answer(step.row)) == step.target);
        scored += 1;
    })?;
    Ok(right as f64 / scored.max(1) as f64)
}

/// The token that occurs most often in a row of selective copying, neither noise nor marker: those are the most frequent ids and the last one.
fn commonest_data_token(row: &[u32]) -> u32 {
    let marker = row.last().copied().unwrap_or_default();
    let mut counts: BTreeMap<u32, usize> = BTreeMap::new();
    row.iter().filter(|&&id| id != marker).for_each(|&id| *counts.entry(id).or_default() += 1);
    // Ids are noise, marker and data; noise is the first or the last of all.
    let noise = if marker == 0 { counts.keys().last() } else { counts.keys().next() }.copied();
    let data = counts.iter().filter(|&(&id, _)| Some(id) != noise);
    data.max_by_key(|&(&id, &count)| (count, std::cmp::Reverse(id))).map_or(0, |(&id, _)| id)
}

/// Mean squared errors of always predicting the mean and, for nearest-neighbour search, of the mean of the values so far.
fn of_values(task: Task, others: &mut dyn EvaluationSet, test: &mut dyn EvaluationSet) -> minrnn::Result<Vec<Baseline>> {
    let (mut sum, mut n) = (0.0, 0u64);
    each_value(others, |_, _, _, target| {
        sum += f64::from(target);
        n += 1;
    })?;
    let mean = sum / n.max(1) as f64;
    let (mut constant, mut so_far, mut n) = (0.0, 0.0, 0u64);
    let mut running = 0.0;
    each_value(test, |row, width, at, target| {
        constant += (f64::from(target) - mean).powi(2);
        if task == Task::NearestNeighbour {
            // A step's last number is its value; that of the first step, the key, is no candidate.
            let value = |at: usize| f64::from(row[at * width + width - 1]);
            running = if at == 1 { value(1) } else { running + value(at) };
            so_far += (f64::from(target) - running / at as f64).powi(2);
        }
        n += 1;
    })?;
    let baseline = |name: &str, sum: f64| Baseline {
        name: name.to_owned(),
        accuracy: None,
        scaled: None,
        loss: Some(sum / n.max(1) as f64),
        lengths: Vec::new(),
    };
    let mut found = vec![baseline("always the same number", constant)];
    found.extend((task == Task::NearestNeighbour).then(|| baseline("the mean of the values so far", so_far)));
    Ok(found)
}

/// Hands every scored number to `see`: its row of inputs, their width, the step and the number.
fn each_value(set: &mut dyn EvaluationSet, mut see: impl FnMut(&[f32], usize, usize, f32)) -> minrnn::Result<()> {
    for index in 0..set.n_batches() {
        let batch = set.batch(index)?;
        let (Sequences::Values { values: inputs, width }, Sequences::Values { values: targets, width: 1 }) =
            (&batch.inputs, &batch.targets)
        else {
            continue;
        };
        for b in 0..batch.batch_size {
            let (start, row) = (b * batch.seq_len, &inputs[b * batch.seq_len * width..][..batch.seq_len * width]);
            let scored = (0..batch.seq_len).filter(|at| batch.mask.as_ref().is_none_or(|mask| mask[start + at] != 0.0));
            scored.for_each(|at| see(row, *width, at, targets[start + at]));
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(base: &str, settings: &[&str]) -> Vec<Baseline> {
        let settings: Vec<String> = settings.iter().map(|&setting| setting.to_owned()).collect();
        let mut experiment = Experiment::load(base, &settings).unwrap();
        let folder = tempfile::tempdir().unwrap();
        if experiment.data.task == Task::ListOps {
            experiment.data.path = Some(folder.path().to_owned());
        }
        compute(&experiment).unwrap()
    }

    fn accuracies(base: &str, settings: &[&str]) -> Vec<f64> {
        of(base, settings).iter().map(|baseline| baseline.accuracy.unwrap()).collect()
    }

    fn near(found: &[f64], expected: &[f64]) {
        assert!(found.len() == expected.len() && found.iter().zip(expected).all(|(a, b)| (a - b).abs() < 0.02), "{found:?}, {expected:?}");
    }

    #[test]
    fn formal_languages_are_guessed_by_their_classes_and_some_by_the_length() {
        let lengths = ["batch_size=64", "max_iterations=200", "eval_min_length=40", "eval_max_length=80"];
        let of = |language: &str| accuracies("formal-language-paper", &[&[language][..], &lengths].concat());
        near(&of("language=cycle-navigation"), &[0.2, 0.2]);
        near(&of("language=even-pairs"), &[0.5, 0.5]);
        // Sorted digits change about every tenth of the string, give or take the square root of its length.
        let sorted = of("language=bucket-sort");
        assert!((sorted[0] - 0.1).abs() < 0.02 && sorted[1] > 0.5, "{sorted:?}");
        // The commonest count depends on little but the length.
        let count = of("language=majority-count");
        assert!(count[1] > count[0] && count[1] > 0.4, "{count:?}");

        // The longer a string, the better its length tells where one digit of the sorted string gives way to the next.
        let settings = ["language=bucket-sort", "max_iterations=20", "eval_min_length=40", "eval_max_length=80"];
        let found = super::tests::of("formal-language-paper", &settings);
        let [same, length] = &found[..] else { panic!("{found:?}") };
        let at = |wanted: usize| length.lengths.iter().find(|at| at.length == wanted).unwrap().accuracy;
        assert!(same.lengths.is_empty() && length.lengths.len() == 32 && length.lengths.is_sorted_by_key(|at| at.length));
        assert!(at(160) > at(10) && at(160) > 0.6, "{:?}", length.lengths);
    }

    #[test]
    fn copying_and_recall_have_rules_that_know_a_little() {
        let copying = accuracies("selective-copying", &["copy_length=64", "copy_tokens=1", "max_iterations=50"]);
        // One token in the sequence: the commonest is the answer.
        near(&copying, &[1.0 / 14.0, 1.0]);
        let recall = accuracies("mqar", &["mqar_vocab_size=64", "max_iterations=50", "accumulation=1"]);
        near(&recall, &[1.0 / 32.0, 0.25]);
        for row in [[15, 15, 3, 15, 4, 3, 0, 0, 0], [0, 0, 3, 0, 4, 3, 15, 15, 15]] {
            assert_eq!(commonest_data_token(&row), 3);
        }
    }

    #[test]
    fn expressions_are_told_by_their_root_more_often_than_by_chance() {
        let settings = ["listops_max_length=60", "listops_train=64", "listops_eval=1000", "batch_size=8"];
        let found = of("listops", &settings);
        let [same, root] = &found[..] else { panic!("{found:?}") };
        assert_eq!(root.name, "the root operator alone");
        assert!(same.accuracy.unwrap() < 0.25 && root.accuracy.unwrap() > same.accuracy.unwrap() + 0.1, "{found:?}");
        assert!(root.loss.unwrap() < same.loss.unwrap());
    }

    #[test]
    fn numbers_are_answered_by_their_mean() {
        let found = of("nearest-neighbour", &["batch_size=64", "max_iterations=50"]);
        let losses: Vec<f64> = found.iter().map(|baseline| baseline.loss.unwrap()).collect();
        // The variance of a uniform number between 0 and 1 is a twelfth; with a single candidate the answer is certain.
        assert!((losses[0] - 1.0 / 12.0).abs() < 0.003 && losses[1] < losses[0] - 0.005, "{losses:?}");
        assert!(found.iter().all(|baseline| baseline.accuracy.is_none()));
    }
}
