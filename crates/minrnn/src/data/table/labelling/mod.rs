//! Labelling: one class or one number for every sequence of a table, read from its last step.
//!
//! Where a validation or a test file is given, its sequences are that part. Otherwise those of each class, or all that have a number, are divided in a
//! seeded order: `train_fraction` of them to train on (at least one), the others to report and, where that is wanted, in turn to validate with. Means
//! and deviations are those of the sequences that are trained on.

mod class_weights;
mod drawn;
mod errors;
mod hits;
mod parts;

use std::collections::HashMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use minrnn_model::{Category, Classifier, Normalization, Regressor, TableTask};

pub use self::class_weights::ClassWeights;
use self::drawn::DrawnSequences;
use self::errors::{NumberErrors, median};
use self::hits::ClassHits;
use self::parts::Parts;
use super::categories;
use super::cells::{NumberName, same_number};
use super::example;
use super::label::Label;
use super::layout::VALUE;
use super::measure::Comparison;
use super::paces;
use super::roles::{Roles, Understood, together};
use super::series::{Series, labels};
use super::unseen_names::UnseenNames;
use super::{
    CHUNK_LEN, Chunk, Division, Frame, Names, Opened, TableSource, Texts, TimeColumn, Wanted, WholeSeries, normalization, other_columns,
    read_table,
};
use crate::data::batch::{check_shape, expect_index};
use crate::data::{Batch, BatchSource, EvaluationSet, Extent, IoKind, SequenceTask, Sequences};
use crate::rng::Purpose;
use crate::suggestion::suggestion;
use crate::{Error, Result};

/// What is labelled by what.
#[derive(Debug, Clone, PartialEq)]
pub struct LabellingConfig {
    /// What a label is.
    pub label: Label,
    /// Columns that are read; none: all but the group and the label.
    pub columns: Vec<String>,
    /// The column with the label, the same in all rows of a sequence; empty: the one that is called class, of a number target.
    pub target: String,
    /// The column that names the sequence of a row; empty: the one that is called series.
    pub group: String,
    /// How much sequences of each class count in training.
    pub class_weights: ClassWeights,
    /// How the files are read, and which part each of them is.
    pub division: Division,
    /// A model whose means and deviations stay; none: those of the training part.
    pub like: Option<TableTask>,
    /// What the division into parts is drawn from.
    pub seed: u64,
}

/// The task of labelling the sequences of a table.
#[derive(Debug, Clone)]
pub struct Labelling {
    table: Arc<Table>,
    understood: Understood,
    unseen: Vec<UnseenNames>,
}

/// The sequences with their labels.
#[derive(Debug, Clone)]
struct Table {
    series: Arc<[Series]>,
    labels: Arc<Labels>,
    task: TableTask,
    config: LabellingConfig,
    parts: Parts,
}

/// The label of each sequence.
#[derive(Debug)]
enum Labels {
    /// Which class of a model's.
    Classes(Vec<u32>),
    /// In the units of the table.
    Numbers(Vec<f64>),
}

/// Sequences of files with their labels.
struct Gathered {
    series: Vec<Series>,
    labels: Labels,
}

impl Gathered {
    fn new(label: Label) -> Self {
        let labels = match label {
            Label::Class => Labels::Classes(Vec::new()),
            Label::Number => Labels::Numbers(Vec::new()),
        };
        Self { series: Vec::new(), labels }
    }

    /// Adds the sequences of `frame`, whose classes must be among `names`; their places.
    fn add(&mut self, frame: &Frame, names: &[String], target: &str) -> Result<Vec<usize>> {
        let [groups, targets] = [&frame.texts[0], &frame.texts[1]];
        let first = self.series.len();
        match &mut self.labels {
            Labels::Classes(classes) => {
                let known = |name: &String| {
                    let found = class_of(name, names).map(|at| at as u32);
                    let unknown = || suggestion(name, names.iter().map(String::as_str));
                    found.ok_or_else(|| Error::Data(format!("the class '{name}' was not seen in training{}", unknown())))
                };
                let ids = targets.distinct().iter().map(known).collect::<Result<Vec<u32>>>()?;
                classes.extend(labels_by(&ids, frame, target, Label::Class)?.into_iter().map(|label| ids[label as usize]));
            }
            Labels::Numbers(numbers) => {
                let known = numbers_of(targets, target)?;
                numbers.extend(labels_by(&known, frame, target, Label::Number)?.into_iter().map(|label| known[label as usize]));
            }
        }
        self.series.extend(Series::of(frame, Some(groups))?);
        Ok((first..self.series.len()).collect())
    }

    /// The kind of each of the first `n` sequences for a division that has all kinds in all parts, and how many kinds there are.
    fn kinds(&self, n: usize, n_classes: usize) -> (Vec<u32>, usize) {
        match &self.labels {
            Labels::Classes(classes) => (classes[..n].to_vec(), n_classes),
            Labels::Numbers(_) => (vec![0; n], 1),
        }
    }
}

/// Which of `classes` is called `name`; another format may write the same number in another way.
fn class_of(name: &str, classes: &[String]) -> Option<usize> {
    classes.iter().position(|class| class == name).or_else(|| same_number(name, classes))
}

/// Which of the different labels of `frame` each sequence has; labels that mean the same, as 1 and 1.0 do, are one.
///
/// # Errors
/// When a sequence has more than one.
fn labels_by<T: PartialEq>(meanings: &[T], frame: &Frame, target: &str, label: Label) -> Result<Vec<u32>> {
    labels(&frame.texts[0], &frame.texts[1], target, label, |a, b| meanings[a as usize] == meanings[b as usize])
}

/// The numbers that the different labels of the column `target` are.
fn numbers_of(targets: &Texts, target: &str) -> Result<Vec<f64>> {
    targets.distinct().iter().map(|text| number(text, target)).collect()
}

fn number(text: &str, target: &str) -> Result<f64> {
    let is_usable = |x: &f64| x.abs() <= f64::from(f32::MAX);
    text.parse().ok().filter(is_usable).ok_or_else(|| {
        Error::Data(format!("the column '{target}' holds '{text}', expected a finite number for each sequence; is it the right column?"))
    })
}

impl Labelling {
    /// The task on the file `path`, and on those for validation and test where there are some.
    ///
    /// # Errors
    /// When a file cannot be read, a sequence has two labels, a class is missing in training, or there are too few sequences for the parts.
    pub fn open(path: &Path, config: LabellingConfig) -> Result<Self> {
        let opened = Opened::new(path)?;
        let (mut config, understood) = config.understood(opened.header())?;
        let mut wanted = config.wanted();
        if let Some(like) = &config.like {
            wanted.categories = Names::known(like.columns(), like.categories());
        }
        let own = opened.read(&wanted)?;
        // What was found is named from now on.
        config.division.time = own.time().map_or(TimeColumn::None, |name| TimeColumn::Named(name.to_owned()));
        let names = match config.label {
            Label::Class => classes_of(&own, &config.target).map_err(|error| error.in_file(path))?,
            Label::Number => Vec::new(),
        };
        config.class_weights.of(&names, |_| 1)?;
        // Columns that were not named are those of the training file.
        let (columns, found) = (own.names.clone(), own.categories.clone());
        let mut gathered = Gathered::new(config.label);
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
        let (kinds, n_kinds) = gathered.kinds(trained.len(), names.len());
        let divided = || Parts::divide(&kinds, n_kinds, config.division.train_fraction, config.seed);
        let parts = match (validation, test) {
            (None, None) => divided().halved(config.division.validates),
            (None, Some(test)) if config.division.validates => {
                let Parts { training, test: validation, .. } = divided();
                Parts { training, validation, test }
            }
            (Some(validation), None) => Parts { validation, ..divided() },
            (validation, Some(test)) => Parts { training: trained, validation: validation.unwrap_or_default(), test },
        };
        parts.expect_enough(&config.division, n_kinds).map_err(|error| error.in_file(path))?;
        let mut is_trained = vec![false; gathered.series.len()];
        parts.training.iter().for_each(|&at| is_trained[at] = true);
        let categories = match &config.like {
            Some(like) => like.categories().to_vec(),
            None => categories::settle(found, &mut gathered.series, |at| if is_trained[at] { usize::MAX } else { 0 })?,
        };
        let rows = parts.training.iter().flat_map(|&at| gathered.series[at].steps());
        normalization::expect_known(&columns, rows.clone()).map_err(|error| error.in_file(path))?;
        let normalization = match &config.like {
            Some(like) if like.columns() != columns => return Err(other_columns(like.columns(), &columns).in_file(path)),
            Some(like) => like.normalization().clone(),
            None => {
                let mut fitted = normalization::fit(columns.len(), rows).map_err(|error| error.in_file(path))?;
                categories::leave(&mut fitted, &categories);
                fitted
            }
        };
        for (path, frame) in &frames {
            normalization::expect_near(&normalization, frame).map_err(|error| error.in_file(path))?;
        }
        let Gathered { series, labels } = gathered;
        let task = match &labels {
            Labels::Classes(_) => TableTask::Classify(config.classifier(columns, names, normalization, categories)),
            Labels::Numbers(numbers) => {
                let of_target = target_normalization(numbers, &parts.training, &config).map_err(|error| error.in_file(path))?;
                let of_target = (of_target, median(numbers, &parts.training));
                TableTask::Regress(config.regressor(columns, of_target, normalization, categories))
            }
        };
        let understood = together([understood, written_twice(task.classes()), paces::gaps(&series, &task)]);
        let table = Table { series: series.into(), labels: Arc::new(labels), task, config, parts };
        Ok(Self { table: Arc::new(table), understood, unseen: Vec::new() })
    }

    /// The task of a trained model on another table, all of which is to be scored.
    ///
    /// # Errors
    /// When the file cannot be read, has a class that the model does not know, or the model labels no sequences.
    pub fn unseen(path: &Path, task: &TableTask) -> Result<Self> {
        let config = LabellingConfig::trained(path, task)?;
        let frame = config.read_like(task, TableSource::File(path))?;
        let mut gathered = Gathered::new(config.label);
        let near = normalization::expect_near(task.normalization(), &frame);
        let found = near.and_then(|()| gathered.add(&frame, task.classes(), &config.target));
        let parts = Parts { test: found.map_err(|error| error.in_file(path))?, ..Parts::default() };
        let Gathered { series, labels } = gathered;
        let understood = paces::gaps(&series, task);
        let table = Table { series: series.into(), labels: Arc::new(labels), task: task.clone(), config, parts };
        Ok(Self { table: Arc::new(table), understood, unseen: frame.unseen })
    }
}

/// The label of each sequence of `table`, in the order in which [`read_series_from`](super::read_series_from) has them: a class that the model of `task`
/// knows as that calls it, and any other label as it stands there.
///
/// # Errors
/// When the table cannot be read, a sequence has two labels, or the model labels no sequences.
pub fn read_labels(task: &TableTask, table: TableSource<'_>) -> Result<Vec<String>> {
    let path = table.path();
    let config = LabellingConfig::trained(path, task)?;
    let frame = config.read_like(task, table)?;
    let (targets, classes) = (&frame.texts[1], task.classes());
    let names: Vec<&str> =
        targets.distinct().iter().map(|found| class_of(found, classes).map_or(found.as_str(), |at| classes[at].as_str())).collect();
    let found = match config.label {
        Label::Class => labels_by(&names, &frame, &config.target, config.label),
        Label::Number => numbers_of(targets, &config.target).and_then(|known| labels_by(&known, &frame, &config.target, config.label)),
    };
    Ok(found.map_err(|error| error.in_file(path))?.into_iter().map(|label| names[label as usize].to_owned()).collect())
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

/// That two of `classes` are one number, if so, as a sentence: codes such as 1.1 and 1.10 are not meant so, 1 and 1.0 most likely are.
fn written_twice(classes: &[String]) -> Understood {
    let mut known = HashMap::new();
    let mut same = classes.iter().filter_map(|name| Some((known.insert(NumberName::of(name)?, name)?, name)));
    let (first, second) = same.next()?;
    Some(format!("the classes '{first}' and '{second}' are one number, and two classes; if they are meant to be one, write it in one way"))
}

/// Mean and deviation of the numbers of the sequences `training`.
fn target_normalization(numbers: &[f64], training: &[usize], config: &LabellingConfig) -> Result<Normalization> {
    if let Some(TableTask::Regress(like)) = &config.like {
        return Ok(like.target_normalization.clone());
    }
    let trained: Vec<f64> = training.iter().map(|&at| numbers[at]).collect();
    if trained.iter().all(|x| *x == trained[0]) {
        let (target, only) = (&config.target, trained[0]);
        return Err(Error::Data(format!("the column '{target}' has one value in what is trained on, {only}; expected at least two")));
    }
    normalization::fit(1, trained.chunks_exact(1))
}

impl LabellingConfig {
    /// What a trained model reads of the table `path`, all of which is to be scored.
    ///
    /// # Errors
    /// When the model labels no sequences.
    fn trained(path: &Path, task: &TableTask) -> Result<Self> {
        let label = match task {
            TableTask::Classify(_) => Label::Class,
            TableTask::Regress(_) => Label::Number,
            TableTask::Forecast(_) => return Err(Error::Config("the model forecasts and gives sequences no labels".to_owned())),
        };
        Ok(Self {
            label,
            columns: task.columns().to_vec(),
            target: task.targets()[0].clone(),
            group: task.group().unwrap_or_default().to_owned(),
            class_weights: ClassWeights::Equal,
            division: Division::unseen(path, task.time(), task.layout(), task.missing()),
            like: None,
            seed: 0,
        })
    }

    /// The columns of `table` that the model of `task` reads, and its labels.
    fn read_like(&self, task: &TableTask, table: TableSource<'_>) -> Result<Frame> {
        let known = Names::known(task.columns(), task.categories());
        table.open()?.read(&Wanted { categories: known, ..self.wanted() })
    }

    /// The same with the columns that `header` tells where nobody names them.
    fn understood(self, header: &[String]) -> Result<(Self, Understood)> {
        let named = |name: String| Some(name).filter(|name| !name.is_empty());
        let Division { time, layout, .. } = self.division.clone();
        let (group, target) = (named(self.group), named(self.target).into_iter().collect());
        let (roles, understood) = Roles { columns: self.columns.clone(), group, target, time, layout }.to_label(header, self.label)?;
        let Roles { group, target, time, layout, .. } = roles;
        let division = Division { time, layout, ..self.division };
        let config = Self { group: group.unwrap_or_default(), target: target.concat(), division, ..self };
        Ok((config, understood))
    }

    fn time(&self) -> Option<String> {
        match &self.division.time {
            TimeColumn::Named(name) => Some(name.clone()),
            _ => None,
        }
    }

    /// What a trained model needs to be used on other tables.
    fn classifier(
        &self,
        columns: Vec<String>,
        classes: Vec<String>,
        normalization: Normalization,
        categories: Vec<Category>,
    ) -> Classifier {
        let (group, target, time) = (self.group.clone(), self.target.clone(), self.time());
        let (layout, missing) = (self.division.layout(), self.division.missing);
        Classifier { columns, group, target, time, classes, normalization, missing, layout, categories }
    }

    /// The same where it predicts a number.
    fn regressor(
        &self,
        columns: Vec<String>,
        (target_normalization, target_median): (Normalization, Option<f64>),
        normalization: Normalization,
        categories: Vec<Category>,
    ) -> Regressor {
        let (group, target, time) = (self.group.clone(), self.target.clone(), self.time());
        let (layout, missing) = (self.division.layout(), self.division.missing);
        Regressor { columns, group, target, time, target_normalization, target_median, normalization, missing, layout, categories }
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

impl Table {
    /// How the sequences of the part for `purpose` lie in batches of `batch_size`.
    fn whole(&self, purpose: Purpose, batch_size: usize) -> WholeSeries {
        let mut lengths = vec![0; self.series.len()];
        self.parts.of(purpose).iter().for_each(|&at| lengths[at] = self.series[at].len());
        WholeSeries::new(lengths, batch_size, CHUNK_LEN)
    }

    /// What is shown of a sequence: the first column that is read and holds no names, else the first one, with its name.
    fn shown(&self, series: usize) -> (String, Vec<f64>) {
        let (columns, categories) = (self.task.columns(), self.task.categories());
        let holds_names = |column: usize| categories.iter().any(|category| category.column == column);
        let column = (0..columns.len()).find(|&column| !holds_names(column)).unwrap_or(0);
        (columns[column].clone(), example::values_of(&self.series[series], column))
    }

    /// A batch whose rows read these steps of sequences; the label stands at the last step of a sequence.
    fn batch(&self, chunk: Chunk) -> Batch {
        let (width, batch_size, seq_len) = (self.task.n_inputs(), chunk.rows.len(), chunk.seq_len);
        let n = batch_size * seq_len;
        let (mut inputs, mut mask) = (vec![0.0; n * width], vec![0.0; n]);
        let mut last = Vec::new();
        for (series, step, place) in chunk.places() {
            self.task.show(self.series[series].recent(step, self.task.reach()), &mut inputs[place * width..][..width]);
            if step + 1 == self.series[series].len() {
                mask[place] = 1.0;
                last.push((series, place));
            }
        }
        let targets = match (&*self.labels, &self.task) {
            (Labels::Classes(classes), _) => {
                let mut targets = vec![0; n];
                last.into_iter().for_each(|(series, place)| targets[place] = classes[series]);
                Sequences::Tokens(targets)
            }
            (Labels::Numbers(numbers), TableTask::Regress(regressor)) => {
                let (scale, mut values) = (regressor.target_scale(), vec![0.0; n]);
                last.into_iter().for_each(|(series, place)| values[place] = scale.apply(numbers[series]));
                Sequences::Values { values, width: 1 }
            }
            (Labels::Numbers(_), _) => unreachable!("numbers are those of a regression"),
        };
        Batch {
            inputs: Sequences::Values { values: inputs, width },
            targets,
            mask: Some(mask),
            segments: chunk.segments,
            batch_size,
            seq_len,
        }
    }
}

impl SequenceTask for Labelling {
    fn reads(&self) -> IoKind {
        IoKind::Values { width: self.table.task.n_inputs() }
    }

    fn predicts(&self) -> IoKind {
        match &*self.table.labels {
            Labels::Classes(_) => IoKind::Tokens { n: self.table.task.classes().len() },
            Labels::Numbers(_) => IoKind::Values { width: 1 },
        }
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
        Ok(Box::new(DrawnSequences::new(Arc::clone(&self.table), batch_size, seed)?))
    }

    fn evaluation(&self, batch_size: usize, _seed: u64, purpose: Purpose, _n_batches: u64) -> Result<Box<dyn EvaluationSet>> {
        check_shape(batch_size, CHUNK_LEN)?;
        let table = Arc::clone(&self.table);
        let whole = table.whole(purpose, batch_size);
        Ok(Box::new(LabelEvaluation { table, whole }))
    }

    fn comparison(&self, purpose: Purpose) -> Option<Box<dyn Comparison>> {
        let table = Arc::clone(&self.table);
        match &*self.table.labels {
            Labels::Classes(_) => Some(Box::new(ClassHits::new(table, purpose)?)),
            Labels::Numbers(_) => Some(Box::new(NumberErrors::new(table, purpose)?)),
        }
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
        is_more.then(|| Box::new(Self { table: Arc::new(table), understood: None, unseen: Vec::new() }) as Box<dyn SequenceTask>)
    }

    fn understood(&self) -> Option<&str> {
        self.understood.as_deref()
    }

    fn unseen_names(&self) -> &[UnseenNames] {
        &self.unseen
    }

    fn has_test_file(&self) -> bool {
        self.table.config.division.test.is_some()
    }
}

/// Updates that a few dozen sequences need.
const LEAST_UPDATES: u64 = 600;

/// Every sequence of a part once.
struct LabelEvaluation {
    table: Arc<Table>,
    whole: WholeSeries,
}

impl EvaluationSet for LabelEvaluation {
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
