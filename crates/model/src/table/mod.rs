//! What a model trained on a table needs in order to be used on another: a checkpoint's `task.json`, a packed file's section `table`.

mod category;
mod classifier;
mod forecaster;
mod history;
mod layout;
mod normalization;
mod regressor;
mod rows_per_step;
mod scaling;
mod surprise;

pub use category::{Category, MAX_CATEGORIES, UNSEEN};
pub use classifier::Classifier;
pub use forecaster::Forecaster;
pub use history::History;
pub use layout::Layout;
pub use normalization::{MAX_DEVIATIONS, Normalization};
pub use regressor::Regressor;
pub use rows_per_step::{MAX_ROWS_PER_STEP, RowsPerStep};
pub use scaling::{FILLED, MAX_REACH, Missing, Scale, Scaling, Transform};

use alloc::{format, string::String, vec::Vec};
use core::ops::Range;
use core::slice;

use serde::{Deserialize, Serialize};

use crate::{Error, Result};

/// A model's task on tables.
///
/// A task read by [`from_json`](Self::from_json) or [`from_bytes`](Self::from_bytes) has been checked. One made by hand, or read by serde
/// alone, may be inconsistent: [`expect_usable`](Self::expect_usable) makes the same checks, without which the other methods may panic.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(tag = "task", rename_all = "kebab-case")]
pub enum TableTask {
    /// A class for every sequence.
    Classify(Classifier),
    /// A number for every sequence.
    Regress(Regressor),
    /// The next values of every sequence.
    Forecast(Forecaster),
}

/// What every task has.
struct Common<'a> {
    columns: &'a [String],
    group: Option<&'a str>,
    targets: &'a [String],
    time: Option<&'a str>,
    normalization: &'a Normalization,
    missing: Missing,
    layout: Layout,
    categories: &'a [Category],
}

/// The prediction for a sequence.
#[derive(Debug, Clone, PartialEq)]
pub enum Prediction {
    /// The probability of each class.
    Classes(Vec<f64>),
    /// The values of the next steps, row-major `[H, columns, Q]`: Q quantiles of each, or only its mean; for a regressor, the sequence's
    /// number.
    Values(Vec<f64>),
}

impl TableTask {
    /// Whether `json` describes a task on tables, whatever else it contains.
    pub fn is_described_by(json: &serde_json::Value) -> bool {
        ["classify", "regress", "forecast"].map(Some).contains(&json["task"].as_str())
    }

    /// Reads the description in `json`, for a model that reads `n_inputs` numbers and predicts `n_outputs`.
    ///
    /// # Errors
    /// When it does not describe a task on tables, or describes that of another model.
    pub fn from_json(json: serde_json::Value, n_inputs: usize, n_outputs: usize) -> Result<Self> {
        Self::fitting(serde_json::from_value(json).map_err(|error| Error::Task(format!("{error}")))?, n_inputs, n_outputs)
    }

    /// Reads the description in the text `json`, for a model that reads `n_inputs` numbers and predicts `n_outputs`.
    ///
    /// # Errors
    /// As [`from_json`](Self::from_json).
    pub fn from_bytes(json: &[u8], n_inputs: usize, n_outputs: usize) -> Result<Self> {
        Self::fitting(serde_json::from_slice(json).map_err(|error| Error::Task(format!("{error}")))?, n_inputs, n_outputs)
    }

    fn fitting(task: Self, n_inputs: usize, n_outputs: usize) -> Result<Self> {
        task.expect_usable(n_inputs, n_outputs)?;
        Ok(task)
    }

    /// Checks everything that the methods rely on, for a model that reads `n_inputs` numbers and predicts `n_outputs`.
    ///
    /// # Errors
    /// When it was made by hand from parts that do not fit together, or is the task of another model.
    pub fn expect_usable(&self, n_inputs: usize, n_outputs: usize) -> Result<()> {
        let refused = |problem: String| Err(Error::Task(problem));
        let (columns, normalization) = (self.columns(), self.normalization());
        if columns.is_empty() {
            return refused("it reads no column, expected at least one".into());
        }
        if let Some(twice) = twice(columns) {
            return refused(format!("it reads the column '{twice}' twice"));
        }
        let fit_columns = |known: &Normalization| known.is_usable() && known.width() == columns.len();
        let is_usable = self.scaling().is_usable(columns.len())
            && fit_columns(normalization)
            && fit_columns(self.of_table())
            && category::are_usable(self.categories(), columns.len())
            && self.several_rows().is_none_or(|several| several.is_usable(columns.len()));
        if !is_usable || self.n_inputs() != n_inputs {
            return refused(format!("expected the columns, means and deviations of {n_inputs} inputs"));
        }
        let fits = match self {
            Self::Classify(classifier) => classifier.classes.len() == n_outputs,
            Self::Regress(regressor) => regressor.fits(n_outputs),
            Self::Forecast(forecaster) => forecaster.fits(n_outputs),
        };
        if fits { Ok(()) } else { refused(format!("expected what {n_outputs} outputs stand for")) }
    }

    /// What the task has in common with all others.
    #[inline]
    fn common(&self) -> Common<'_> {
        match self {
            Self::Classify(Classifier { columns, group, target, time, normalization, missing, layout, categories, .. })
            | Self::Regress(Regressor { columns, group, target, time, normalization, missing, layout, categories, .. }) => Common {
                columns,
                group: Some(group),
                targets: slice::from_ref(target),
                time: time.as_deref(),
                normalization,
                missing: *missing,
                layout: *layout,
                categories,
            },
            Self::Forecast(Forecaster { columns, group, target, time, normalization, missing, layout, categories, .. }) => Common {
                columns,
                group: group.as_deref(),
                targets: target,
                time: time.as_deref(),
                normalization,
                missing: *missing,
                layout: *layout,
                categories,
            },
        }
    }

    /// What numbers are read relative to.
    pub fn scaling(&self) -> &Scaling {
        match self {
            Self::Forecast(forecaster) => &forecaster.scaling,
            Self::Classify(_) | Self::Regress(_) => &Scaling::Standard,
        }
    }

    /// Number of rows of a sequence, including the present one, that determine the model's input at a step.
    pub fn reach(&self) -> usize {
        match self.rows_per_step() {
            1 => self.scaling().reach().max(if self.missing().is_error() { 1 } else { FILLED }),
            n if self.missing().is_error() => n,
            n => n + RowsPerStep::looked_up(n),
        }
    }

    /// How the model reads several rows as one step; `None` if every row is a step.
    pub fn several_rows(&self) -> Option<&RowsPerStep> {
        match self {
            Self::Classify(classifier) => classifier.rows_per_step.as_ref(),
            Self::Regress(regressor) => regressor.rows_per_step.as_ref(),
            Self::Forecast(_) => None,
        }
    }

    /// Rows that the model reads as one step, counted from a sequence's first row; its last step may have fewer.
    pub fn rows_per_step(&self) -> usize {
        self.several_rows().map_or(1, |several| several.n)
    }

    /// Steps of a sequence of `rows` rows.
    pub fn steps(&self, rows: usize) -> usize {
        rows.div_ceil(self.rows_per_step())
    }

    /// The rows of a sequence of `rows` rows that determine the model's input at its step `step`, from 0: those that [`show`](Self::show)
    /// is given.
    pub fn rows_of_step(&self, step: usize, rows: usize) -> Range<usize> {
        let n = self.rows_per_step();
        let first = step.saturating_mul(n);
        first.saturating_sub(self.reach() - n)..first.saturating_add(n).min(rows)
    }

    /// Whether earlier rows of a sequence, or its last row, decide how the next one is seen, so that a session keeps them.
    pub fn looks_back(&self) -> bool {
        self.reach() > 1 || !self.scaling().is_standard()
    }

    /// How many numbers of a forecast a session keeps to tell how surprising its next row is
    /// ([`Forecaster::outputs_of_surprise`]); 0 for tasks that do not tell it.
    pub fn outputs_of_surprise(&self) -> usize {
        match self {
            Self::Forecast(forecaster) => forecaster.outputs_of_surprise(),
            Self::Classify(_) | Self::Regress(_) => 0,
        }
    }

    /// Bytes that a session keeps in addition to the model's state: the rows that it [looks back on](Self::looks_back), and the forecast of
    /// the next one.
    pub fn session_bytes(&self) -> usize {
        // A history moves its rows only once it holds twice as many.
        let rows = if self.looks_back() { 2 * self.reach() * self.columns().len() } else { 0 };
        rows * size_of::<f64>() + self.outputs_of_surprise() * size_of::<f32>()
    }

    /// How missing numbers are treated.
    #[inline]
    pub fn missing(&self) -> Missing {
        self.common().missing
    }

    /// The layout of the series in a table that does not have the columns that are read.
    #[inline]
    pub fn layout(&self) -> Layout {
        self.common().layout
    }

    /// Those of the columns that hold names.
    #[inline]
    pub fn categories(&self) -> &[Category] {
        self.common().categories
    }

    /// For each column, its category if it holds names.
    fn kinds(&self) -> impl Iterator<Item = Option<&Category>> {
        let mut categories = self.categories().iter().peekable();
        (0..self.columns().len()).map(move |column| categories.next_if(|category| category.column == column))
    }

    /// How many numbers the model reads of a column with this `category`, and how many tell what is missing.
    fn inputs_of(&self, category: Option<&Category>) -> [usize; 2] {
        let of_numbers = if self.several_rows().is_some() { RowsPerStep::INPUTS } else { self.scaling().inputs_per_column() };
        [category.map_or(of_numbers, |category| category.values.len()), self.missing().inputs_per_column()]
    }

    /// Means and standard deviations of the columns that are read, in the units of the table.
    pub fn of_table(&self) -> &Normalization {
        match self {
            Self::Forecast(Forecaster { of_table: Some(of_table), .. }) => of_table,
            _ => self.normalization(),
        }
    }

    /// Number of the model's inputs at a step.
    pub fn n_inputs(&self) -> usize {
        self.kinds()
            .map(|category| self.inputs_of(category))
            .fold(0, |sum, [numbers, flags]| sum.saturating_add(numbers).saturating_add(flags))
    }

    /// Number of the model's outputs after a step: one for each class, the number of the sequence, or the values of all steps ahead.
    pub fn n_outputs(&self) -> usize {
        match self {
            Self::Forecast(forecaster) => forecaster.horizon.saturating_mul(self.numbers_per_step()),
            Self::Classify(_) | Self::Regress(_) => self.numbers_per_step(),
        }
    }

    /// Checks that this is the task of a model that reads `n_inputs` numbers and predicts `n_outputs`, by these two numbers alone, without
    /// allocating; [`expect_usable`](Self::expect_usable) checks everything.
    ///
    /// # Errors
    /// When it is the task of another model.
    pub fn expect_fits(&self, n_inputs: usize, n_outputs: usize) -> Result<()> {
        let (inputs, outputs) = (self.n_inputs(), self.n_outputs());
        if (inputs, outputs) == (n_inputs, n_outputs) {
            return Ok(());
        }
        Err(Error::Task(format!(
            "it is that of a model with {inputs} inputs and {outputs} outputs, found one with {n_inputs} and {n_outputs}; take the task of this model"
        )))
    }

    /// Numbers predicted for each step ahead, or for all classes.
    pub fn numbers_per_step(&self) -> usize {
        match self {
            Self::Classify(classifier) => classifier.classes.len(),
            Self::Regress(_) => 1,
            Self::Forecast(forecaster) => forecaster.target.len() * forecaster.n_quantiles(),
        }
    }

    /// Writes the model's input at a step, `[n_inputs]`: the numbers of each column in turn; for a column of names, a 1 at the row's name
    /// (of [several rows](RowsPerStep), what is read of them, and the shares of names).
    /// `recent` are the rows `[n, columns]` up to that step, the present one last; rows beyond the last [`reach`](Self::reach) make no
    /// difference, and with fewer the sequence has just begun. So the present row alone is enough only if [`reach`](Self::reach) is 1. If
    /// [several rows](Self::rows_per_step) are a step, the first of `recent` is the first of a step, and the last step may be incomplete. That
    /// its numbers can be read is not checked here ([`expect_readable`](Self::expect_readable)); `TableSessions` of `minrnn-stream` take
    /// care of both.
    ///
    /// # Panics
    /// When `recent` has no row or an incomplete one, or `inputs` has the wrong length.
    pub fn show(&self, recent: &[f64], inputs: &mut [f32]) {
        assert_eq!(inputs.len(), self.n_inputs(), "a number for each input");
        let (width, scaling) = (self.columns().len(), self.scaling());
        assert!(!recent.is_empty(), "expected at least one row of {width} numbers, found none");
        expect_whole(recent, width);
        let last = recent.len() / width - 1;
        let oldest = (last + 1).saturating_sub(self.reach());
        let mut rest = inputs;
        for (column, category) in self.kinds().enumerate() {
            let [n_numbers, n_flags] = self.inputs_of(category);
            let inputs = rest.split_off_mut(..n_numbers + n_flags).expect("there is an input for each");
            // The last number known at a step, which is the step's own unless that is missing.
            let known = |t: usize| {
                let steps = (t + 1).saturating_sub(FILLED).max(oldest)..=t;
                steps.rev().map(|t| recent[t * width + column]).find(|x| !x.is_nan())
            };
            let (numbers, is_missing) = inputs.split_at_mut(n_numbers);
            if let Some(several) = self.several_rows() {
                several.show((column, category), recent, width, numbers, is_missing);
                continue;
            }
            if category.is_some() {
                let found = known(last);
                numbers.iter_mut().enumerate().for_each(|(name, x)| *x = f32::from(u8::from(found == Some(name as f64))));
            } else {
                let scale = scaling::scale(scaling, self.normalization(), [column; 2], recent, width, self.of_table());
                let lags = [0].iter().chain(scaling.lags());
                numbers.iter_mut().zip(lags).for_each(|(x, &lag)| *x = known(last.saturating_sub(lag)).map_or(0.0, |x| scale.apply(x)));
            }
            is_missing.fill(f32::from(u8::from(recent[last * width + column].is_nan())));
        }
    }

    /// The columns that are read, in the order of the model's inputs.
    #[inline]
    pub fn columns(&self) -> &[String] {
        self.common().columns
    }

    /// The column that names the sequence of a row, if any.
    #[inline]
    pub fn group(&self) -> Option<&str> {
        self.common().group
    }

    /// The column with the time of a row, if any.
    #[inline]
    pub fn time(&self) -> Option<&str> {
        self.common().time
    }

    /// The predicted columns: the class or number of a sequence, or the values that are forecast.
    #[inline]
    pub fn targets(&self) -> &[String] {
        self.common().targets
    }

    /// Names of the classes, in the order of the model's outputs; empty if numbers are predicted.
    pub fn classes(&self) -> &[String] {
        match self {
            Self::Classify(classifier) => &classifier.classes,
            Self::Regress(_) | Self::Forecast(_) => &[],
        }
    }

    /// Means and standard deviations of the columns that are read.
    #[inline]
    pub fn normalization(&self) -> &Normalization {
        self.common().normalization
    }

    /// The meaning of the model's outputs after a step: the probability of each class, the number of the sequence, or the values of the
    /// next steps in the table's units, with ascending quantiles. `recent` are the rows that [`show`](Self::show) was given at that step:
    /// the present one alone is enough only if [`reach`](Self::reach) is 1.
    ///
    /// # Panics
    /// When `outputs` does not have [`n_outputs`](Self::n_outputs) numbers, `recent` has an incomplete row, or it is empty and numbers are
    /// relative to a level.
    pub fn prediction(&self, recent: &[f64], outputs: &[f32]) -> Prediction {
        let mut numbers = Vec::new();
        self.predict_into(recent, outputs, &mut numbers);
        match self {
            Self::Classify(_) => Prediction::Classes(numbers),
            Self::Regress(_) | Self::Forecast(_) => Prediction::Values(numbers),
        }
    }

    /// Replaces `numbers` by those of [`prediction`](Self::prediction); nothing is allocated if they fit.
    ///
    /// # Panics
    /// As [`prediction`](Self::prediction).
    pub fn predict_into(&self, recent: &[f64], outputs: &[f32], numbers: &mut Vec<f64>) {
        numbers.clear();
        self.extend_predictions(recent, outputs, numbers);
    }

    /// Appends the numbers of [`prediction`](Self::prediction) to `numbers`.
    ///
    /// # Panics
    /// As [`prediction`](Self::prediction).
    pub fn extend_predictions(&self, recent: &[f64], outputs: &[f32], numbers: &mut Vec<f64>) {
        let (expected, found, first) = (self.n_outputs(), outputs.len(), numbers.len());
        assert!(found == expected, "expected the {expected} outputs of a step, found {found}; is this the task of that model?");
        expect_whole(recent, self.columns().len());
        numbers.resize(first + outputs.len(), 0.0);
        match self {
            Self::Classify(_) => classifier::softmax(outputs, &mut numbers[first..]),
            Self::Regress(regressor) => regressor.restore(outputs, &mut numbers[first..]),
            Self::Forecast(forecaster) => forecaster.restore(recent, outputs, &mut numbers[first..]),
        }
    }

    /// Checks that the model can read a row, one number for each column in the units of the table: finite, at most [`MAX_DEVIATIONS`]
    /// standard deviations from the mean of the table, not below 0 if its logarithm is read, or NaN if numbers may be missing; for a column
    /// of names the code of one of them, or [`UNSEEN`].
    ///
    /// # Errors
    /// A sentence that names the column.
    pub fn expect_readable(&self, values: &[f64]) -> Result<()> {
        let (columns, of_table, may_miss) = (self.columns(), self.of_table(), !self.missing().is_error());
        if values.len() != columns.len() {
            let (found, expected) = (values.len(), columns.len());
            return Err(Error::Row(format!("a row has {found} numbers, expected {expected}, one for each column that is read")));
        }
        for ((column, &x), category) in values.iter().enumerate().zip(self.kinds()) {
            let name = &columns[column];
            if x.is_infinite() || x.is_nan() && !may_miss {
                return Err(Error::Row(format!("column '{name}': found {x}, expected a finite number")));
            }
            if let Some(category) = category {
                if !x.is_nan() && !category.reads(x) {
                    return Err(Error::Row(format!(
                        "column '{name}': found {x:?}, expected the number of a name ({}), or {UNSEEN} for one that training never saw",
                        category.describe()
                    )));
                }
                continue;
            }
            if !x.is_nan() && !of_table.is_near(column, x) {
                return Err(Error::Row(format!(
                    "column '{name}': {x:?} lies {:.3e} deviations from the mean {} of the table that was trained on, expected at most \
                     {MAX_DEVIATIONS:e}",
                    of_table.distance(column, x),
                    of_table.mean[column]
                )));
            }
            if !self.scaling().transform(column).reads(x) {
                return Err(Error::Row(format!(
                    "column '{name}': found {x:?}, of which the model, which reads logarithms, has none; expected 0 or more"
                )));
            }
        }
        Ok(())
    }
}

/// Checks that `recent` are rows of `width` numbers: the last one is read from its end.
fn expect_whole(recent: &[f64], width: usize) {
    assert!(recent.len().is_multiple_of(width), "expected whole rows of {width} numbers, found {} numbers", recent.len());
}

/// The first name that is among `names` for the second time.
fn twice(names: &[String]) -> Option<&String> {
    let mut sorted: Vec<&String> = names.iter().collect();
    sorted.sort_unstable();
    sorted.windows(2).find(|pair| pair[0] == pair[1]).map(|pair| pair[1])
}

#[cfg(test)]
mod tests;
