//! From files to sequences with their labels and parts.

use std::collections::HashMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use minrnn_model::{Normalization, TableTask};

use super::super::known_names::{KnownNames, NumberName};
use super::super::label::Label;
use super::super::paces;
use super::super::roles::{Understood, together};
use super::super::series::Series;
use super::super::{Frame, Names, Opened, TableSource, TimeColumn, Wanted, categories, normalization, other_columns, read_table};
use super::Labelling;
use super::config::LabellingConfig;
use super::errors::median_at;
use super::gathering::{Gathered, labels_by, numbers_of};
use super::long::{self, usual_rows_per_step};
use super::parts::Parts;
use super::table::{Labels, Table};
use crate::{Error, Result};

impl Labelling {
    /// The task on the file `path`, and on those for validation and test, if any.
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
        // From here on, columns that were found are treated as named.
        config.division.time = own.time().map_or(TimeColumn::None, |name| TimeColumn::Named(name.to_owned()));
        let names = match config.label {
            Label::Class => classes_of(&own, &config.target).map_err(|error| error.in_file(path))?,
            Label::Number => Vec::new(),
        };
        config.class_weights.of(&names, |_| 1)?;
        // Columns that were not named are taken from the training file.
        let (columns, found) = (own.names.clone(), own.categories.clone());
        let mut gathered = Gathered::new(config.label);
        let trained = gathered.add(&own, &names, &config.target).map_err(|error| error.in_file(path))?;
        let mut frames = vec![(path.to_owned(), own)];
        let mut read = |path: &Option<PathBuf>| -> Result<Option<Vec<usize>>> {
            let Some(path) = path else { return Ok(None) };
            let wanted = Wanted { categories: categories::of_file(&columns, &found), ..Wanted::named(&columns, config.texts()) };
            let frame = read_table(path, &config.read_so(wanted))?;
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
        let rows = parts.training.iter().flat_map(|&at| gathered.series[at].rows());
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
        let sequences = parts.training.iter().map(|&at| &series[at]);
        let (rows_per_step, of_length) = rows_per_step(&config, sequences.clone());
        let several = match config.like.as_ref().and_then(TableTask::several_rows) {
            Some(like) => Some(like.clone()),
            None => long::fit(rows_per_step, columns.len(), &categories, sequences).map_err(|error| error.in_file(path))?,
        };
        let kinds = (categories, several);
        let task = match &labels {
            Labels::Classes(_) => TableTask::Classify(config.classifier(columns, names, normalization, kinds)),
            Labels::Numbers(numbers) => {
                let of_target = target_normalization(numbers, &parts.training, &config).map_err(|error| error.in_file(path))?;
                let of_target = (of_target, median_at(numbers, &parts.training));
                TableTask::Regress(config.regressor(columns, of_target, normalization, kinds))
            }
        };
        let (alone, twice, gaps) = (loneliness(&series), written_twice(task.classes()), paces::gaps(&series, &task));
        let understood = together([understood, of_length, alone, twice, gaps]);
        let table = Table { series: series.into(), labels: Arc::new(labels), task, config, parts };
        Ok(Self { table: Arc::new(table), understood, unseen: Vec::new() })
    }

    /// The task of a trained model on another table, all of it for scoring.
    ///
    /// # Errors
    /// When the file cannot be read, has a class unknown to the model, or the model does not label sequences.
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

/// The label of each sequence of `table`, in the order of [`read_series_from`](crate::data::table::read_series_from): classes known to the
/// model of `task` under its name for them, any other label as written in the table.
///
/// # Errors
/// When the table cannot be read, a sequence has two labels, or the model does not label sequences.
pub fn read_labels(task: &TableTask, table: TableSource<'_>) -> Result<Vec<String>> {
    let path = table.path();
    let config = LabellingConfig::trained(path, task)?;
    let frame = config.read_like(task, table)?;
    let (targets, classes) = (&frame.texts[1], task.classes());
    let known = KnownNames::of_values(classes.iter().map(String::as_str));
    let names: Vec<&str> =
        targets.distinct().iter().map(|found| known.find(found).map_or(found.as_str(), |at| classes[at].as_str())).collect();
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

/// A sentence if two of `classes` are the same number: 1 and 1.0 are most likely one class, codes such as 1.1 and 1.10 are not.
fn written_twice(classes: &[String]) -> Understood {
    let mut known = HashMap::new();
    let mut same = classes.iter().filter_map(|name| Some((known.insert(NumberName::of(name)?, name)?, name)));
    let (first, second) = same.next()?;
    Some(format!("the classes '{first}' and '{second}' are one number, and two classes; if they are meant to be one, write it in one way"))
}

/// A sentence if most of `series` have a single row, which tells that their rows may belong to fewer of them.
fn loneliness(series: &[Series]) -> Understood {
    let n = series.iter().filter(|series| series.len() == 1).count();
    (2 * n > series.len()).then(|| {
        format!("{n} of {} sequences have a single row: if some belong together, name the column that tells so as group", series.len())
    })
}

/// How many rows of the `sequences` trained on are a step, with a sentence if their length decided it.
fn rows_per_step<'a>(config: &LabellingConfig, sequences: impl Iterator<Item = &'a Series>) -> (usize, Understood) {
    match (&config.like, config.rows_per_step) {
        (Some(like), _) => (like.rows_per_step(), None),
        (None, 0) => {
            let usual = usual_rows_per_step(sequences);
            let said = || {
                format!(
                    "the sequences are long: {usual} rows are read as one step, by their mean, deviation and change (rows_per_step = 1 reads every row)"
                )
            };
            (usual, (usual > 1).then(said))
        }
        (None, wanted) => (wanted, None),
    }
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
