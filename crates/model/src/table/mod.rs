//! What a model that was trained on a table needs in order to be used on another: `task.json` of its checkpoint, the section `table` of its
//! packed file.

mod category;
mod classifier;
mod forecaster;
mod history;
mod layout;
mod normalization;
mod regressor;
mod scaling;
mod surprise;

pub use category::{Category, MAX_CATEGORIES, UNSEEN};
pub use classifier::Classifier;
pub use forecaster::Forecaster;
pub use history::History;
pub use layout::Layout;
pub use normalization::{MAX_DEVIATIONS, Normalization};
pub use regressor::Regressor;
pub use scaling::{FILLED, MAX_REACH, Missing, Scale, Scaling, Transform};

use alloc::{format, string::String, vec::Vec};

use serde::{Deserialize, Serialize};

use crate::{Error, Result};

/// A model's task on tables.
///
/// One that was read by [`from_json`](Self::from_json) or [`from_bytes`](Self::from_bytes) is checked. What was made by hand, or read by serde alone, may
/// have anything in it: [`expect_usable`](Self::expect_usable) makes the same checks, without which the other methods may panic.
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

/// What is predicted for a sequence.
#[derive(Debug, Clone, PartialEq)]
pub enum Prediction {
    /// The probability of each class.
    Classes(Vec<f64>),
    /// The values of the next steps, row-major `[H, columns, Q]`: Q quantiles of each, or its mean alone; of a sequence's number, that one.
    Values(Vec<f64>),
}

impl TableTask {
    /// Whether `json` describes a task on tables, whatever else is in it.
    pub fn is_described_by(json: &serde_json::Value) -> bool {
        ["classify", "regress", "forecast"].map(Some).contains(&json["task"].as_str())
    }

    /// Reads the description in `json`, for a model that reads `n_inputs` numbers and predicts `n_outputs`.
    ///
    /// # Errors
    /// When it is no description of a table's task, or one of another model.
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
    /// When it is made by hand of parts that do not fit together, or is the task of another model.
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
            && category::are_usable(self.categories(), columns.len());
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

    /// What numbers are seen relative to.
    pub fn scaling(&self) -> &Scaling {
        match self {
            Self::Forecast(forecaster) => &forecaster.scaling,
            Self::Classify(_) | Self::Regress(_) => &Scaling::Standard,
        }
    }

    /// Rows of a sequence, the present one among them, that decide what the model reads at a step.
    pub fn reach(&self) -> usize {
        self.scaling().reach().max(if self.missing().is_error() { 1 } else { FILLED })
    }

    /// Bytes of the rows that a session keeps to read the next one; 0 where a row alone decides.
    pub fn history_bytes(&self) -> usize {
        // A history moves its rows once they are twice as many.
        if self.reach() > 1 { 2 * self.reach() * self.columns().len() * size_of::<f64>() } else { 0 }
    }

    /// What is done with numbers that are missing.
    pub fn missing(&self) -> Missing {
        match self {
            Self::Classify(classifier) => classifier.missing,
            Self::Regress(regressor) => regressor.missing,
            Self::Forecast(forecaster) => forecaster.missing,
        }
    }

    /// How the series lie in a table that does not have the columns that are read.
    pub fn layout(&self) -> Layout {
        match self {
            Self::Classify(classifier) => classifier.layout,
            Self::Regress(regressor) => regressor.layout,
            Self::Forecast(forecaster) => forecaster.layout,
        }
    }

    /// Those of the columns that hold names.
    pub fn categories(&self) -> &[Category] {
        match self {
            Self::Classify(classifier) => &classifier.categories,
            Self::Regress(regressor) => &regressor.categories,
            Self::Forecast(forecaster) => &forecaster.categories,
        }
    }

    /// Of each column the category, where it holds names.
    fn kinds(&self) -> impl Iterator<Item = Option<&Category>> {
        let mut categories = self.categories().iter().peekable();
        (0..self.columns().len()).map(move |column| categories.next_if(|category| category.column == column))
    }

    /// Numbers that the model reads of a column that is `category`, and those that tell what is missing.
    fn inputs_of(&self, category: Option<&Category>) -> [usize; 2] {
        [category.map_or(self.scaling().inputs_per_column(), |category| category.values.len()), self.missing().inputs_per_column()]
    }

    /// Means and deviations of the columns that are read, in the units of the table.
    pub fn of_table(&self) -> &Normalization {
        match self {
            Self::Forecast(Forecaster { of_table: Some(of_table), .. }) => of_table,
            _ => self.normalization(),
        }
    }

    /// Numbers that the model reads at a step.
    pub fn n_inputs(&self) -> usize {
        self.kinds()
            .map(|category| self.inputs_of(category))
            .fold(0, |sum, [numbers, flags]| sum.saturating_add(numbers).saturating_add(flags))
    }

    /// Numbers that the model gives after a step: one for each class, that of the sequence, or those of all steps ahead.
    pub fn n_outputs(&self) -> usize {
        match self {
            Self::Forecast(forecaster) => forecaster.horizon.saturating_mul(self.numbers_per_step()),
            Self::Classify(_) | Self::Regress(_) => self.numbers_per_step(),
        }
    }

    /// Checks that this is the task of a model that reads `n_inputs` numbers and predicts `n_outputs`, by these numbers alone, which allocates nothing;
    /// [`expect_usable`](Self::expect_usable) looks at all of it.
    ///
    /// # Errors
    /// When it is that of another model.
    pub fn expect_fits(&self, n_inputs: usize, n_outputs: usize) -> Result<()> {
        let (inputs, outputs) = (self.n_inputs(), self.n_outputs());
        if (inputs, outputs) == (n_inputs, n_outputs) {
            return Ok(());
        }
        Err(Error::Task(format!(
            "it is that of a model with {inputs} inputs and {outputs} outputs, found one with {n_inputs} and {n_outputs}; take the task of this model"
        )))
    }

    /// Numbers that are predicted for each step ahead, or of all classes.
    pub fn numbers_per_step(&self) -> usize {
        match self {
            Self::Classify(classifier) => classifier.classes.len(),
            Self::Regress(_) => 1,
            Self::Forecast(forecaster) => forecaster.target.len() * forecaster.n_quantiles(),
        }
    }

    /// Writes what the model reads at a step, `[n_inputs]`: the numbers of each column in turn, of one that holds names a 1 at that of the row. `recent` are the rows `[n, columns]` up to that
    /// step, the present one last; more than [`reach`](Self::reach) of them change nothing, fewer are those of a sequence that has just begun. So the
    /// present row alone is enough only where [`reach`](Self::reach) is 1, and that its numbers can be read is not checked here
    /// ([`expect_readable`](Self::expect_readable)): `TableSessions` of `minrnn-stream` see to both.
    ///
    /// # Panics
    /// When `recent` has no row, or not whole ones, or `inputs` has another length.
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
            // The last that is known at a step, which is that of the step itself but where it is missing.
            let known = |t: usize| {
                let steps = (t + 1).saturating_sub(FILLED).max(oldest)..=t;
                steps.rev().map(|t| recent[t * width + column]).find(|x| !x.is_nan())
            };
            let (numbers, is_missing) = inputs.split_at_mut(n_numbers);
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
    pub fn columns(&self) -> &[String] {
        match self {
            Self::Classify(classifier) => &classifier.columns,
            Self::Regress(regressor) => &regressor.columns,
            Self::Forecast(forecaster) => &forecaster.columns,
        }
    }

    /// The column that names the sequence of a row, where there is one.
    pub fn group(&self) -> Option<&str> {
        match self {
            Self::Classify(classifier) => Some(&classifier.group),
            Self::Regress(regressor) => Some(&regressor.group),
            Self::Forecast(forecaster) => forecaster.group.as_deref(),
        }
    }

    /// The column that tells when a row was, where there is one.
    pub fn time(&self) -> Option<&str> {
        match self {
            Self::Classify(classifier) => classifier.time.as_deref(),
            Self::Regress(regressor) => regressor.time.as_deref(),
            Self::Forecast(forecaster) => forecaster.time.as_deref(),
        }
    }

    /// The columns with what is predicted: the class or number of a sequence, or the values that are forecast.
    pub fn targets(&self) -> &[String] {
        match self {
            Self::Classify(classifier) => core::slice::from_ref(&classifier.target),
            Self::Regress(regressor) => core::slice::from_ref(&regressor.target),
            Self::Forecast(forecaster) => &forecaster.target,
        }
    }

    /// Names of the classes, in the order of the model's outputs; none where numbers are predicted.
    pub fn classes(&self) -> &[String] {
        match self {
            Self::Classify(classifier) => &classifier.classes,
            Self::Regress(_) | Self::Forecast(_) => &[],
        }
    }

    /// Means and deviations of the columns that are read.
    pub fn normalization(&self) -> &Normalization {
        match self {
            Self::Classify(classifier) => &classifier.normalization,
            Self::Regress(regressor) => &regressor.normalization,
            Self::Forecast(forecaster) => &forecaster.normalization,
        }
    }

    /// The meaning of the model's outputs after a step: the probability of each class, the number of the sequence, or the values of the next steps in
    /// the table's units, quantiles in rising order. `recent` are the rows that [`show`](Self::show) was given there: the present one alone is enough
    /// only where [`reach`](Self::reach) is 1.
    ///
    /// # Panics
    /// When `outputs` are not [`n_outputs`](Self::n_outputs) numbers, `recent` does not have whole rows, or it has none and numbers are seen relative
    /// to a level.
    pub fn prediction(&self, recent: &[f64], outputs: &[f32]) -> Prediction {
        let mut numbers = Vec::new();
        self.predict_into(recent, outputs, &mut numbers);
        match self {
            Self::Classify(_) => Prediction::Classes(numbers),
            Self::Regress(_) | Self::Forecast(_) => Prediction::Values(numbers),
        }
    }

    /// Replaces `numbers` by those of [`prediction`](Self::prediction); nothing is allocated where it has room for them.
    ///
    /// # Panics
    /// As [`prediction`](Self::prediction).
    pub fn predict_into(&self, recent: &[f64], outputs: &[f32], numbers: &mut Vec<f64>) {
        numbers.clear();
        self.extend_predictions(recent, outputs, numbers);
    }

    /// Adds the numbers of [`prediction`](Self::prediction) to `numbers`.
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

    /// Checks that the model can read a row, one number for each column in the units of the table: finite numbers at most
    /// [`MAX_DEVIATIONS`] deviations from the mean of the table, none below 0 where logarithms are read, or NaN where numbers may be missing; of a
    /// column that holds names the number of one of them, or [`UNSEEN`].
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
                        category.told()
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
mod tests {
    use super::*;
    use alloc::string::ToString;
    use alloc::vec;

    fn classifier() -> TableTask {
        TableTask::Classify(Classifier {
            columns: vec!["x".into(), "y".into()],
            group: "machine".into(),
            target: "state".into(),
            time: None,
            classes: vec!["good".into(), "worn".into(), "broken".into()],
            normalization: Normalization { mean: vec![1.0, -2.0], deviation: vec![0.5, 4.0] },
            missing: Missing::Error,
            layout: Layout::Long,
            categories: Vec::new(),
        })
    }

    fn regressor() -> TableTask {
        let TableTask::Classify(Classifier { columns, group, normalization, .. }) = classifier() else { panic!() };
        TableTask::Regress(Regressor {
            columns,
            group,
            target: "life".into(),
            time: None,
            normalization,
            target_normalization: Normalization { mean: vec![100.0], deviation: vec![20.0] },
            target_median: Some(90.0),
            missing: Missing::Error,
            layout: Layout::Long,
            categories: Vec::new(),
        })
    }

    #[test]
    fn a_number_of_a_sequence_is_in_the_units_of_the_table() {
        let task = regressor();
        assert_eq!((task.n_inputs(), task.numbers_per_step(), task.targets(), task.group()), (2, 1, &["life".into()][..], Some("machine")));
        assert_eq!(task.prediction(&[1.0, 2.0], &[-1.5]), Prediction::Values(vec![70.0]));
        let json = serde_json::to_string(&task).unwrap();
        assert!(TableTask::is_described_by(&serde_json::from_str(&json).unwrap()));
        assert_eq!(TableTask::from_bytes(json.as_bytes(), 2, 1).unwrap(), task);
        // Files of before lack it.
        assert!(TableTask::from_bytes(json.replace(",\"target_median\":90.0", "").as_bytes(), 2, 1).is_ok_and(|before| before != task));
        assert!(TableTask::from_bytes(json.as_bytes(), 2, 2).is_err() && TableTask::from_bytes(json.as_bytes(), 1, 1).is_err());
        for (from, to) in [("[20.0]", "[0.0]"), ("[20.0]", "[20.0,1.0]"), ("[100.0]", "[]"), ("\"life\"", "\"x\""), ("regress", "guess")] {
            assert!(json.contains(from), "{json}");
            assert!(TableTask::from_bytes(json.replace(from, to).as_bytes(), 2, 1).is_err(), "{from} {to}");
        }
    }

    fn forecaster() -> TableTask {
        let target_normalization = Normalization { mean: vec![10.0, 20.0], deviation: vec![2.0, 3.0] };
        let normalization = Normalization { mean: vec![0.0], deviation: vec![1.0] };
        let (columns, target) = (vec!["a".into()], vec!["a".into(), "b".into()]);
        TableTask::Forecast(Forecaster {
            columns,
            group: None,
            target,
            time: None,
            horizon: 2,
            season: 0,
            normalization,
            target_normalization,
            scaling: Scaling::Standard,
            missing: Missing::Error,
            layout: Layout::Long,
            categories: Vec::new(),
            of_table: None,
            quantiles: Vec::new(),
        })
    }

    #[test]
    fn a_description_is_read_back_for_its_own_model_and_refused_for_others() {
        for (task, [inputs, outputs]) in [(classifier(), [2, 3]), (forecaster(), [1, 4])] {
            let json = serde_json::to_vec(&task).unwrap();
            assert_eq!(TableTask::from_bytes(&json, inputs, outputs).unwrap(), task);
            for [inputs, outputs] in [[inputs + 1, outputs], [inputs, outputs + 1], [0, 0], [usize::MAX; 2]] {
                let refused = TableTask::from_bytes(&json, inputs, outputs).unwrap_err().to_string();
                assert!(refused.contains("cannot be used: expected"), "{refused}");
            }
        }
        let change = |from: &str, to: &str| {
            let json = serde_json::to_string(&classifier()).unwrap();
            assert!(json.contains(from));
            TableTask::from_bytes(json.replace(from, to).as_bytes(), 2, 3).unwrap_err().to_string()
        };
        assert!(change(r#""y""#, r#""x""#).contains("the column 'x' twice"));
        assert!(change("0.5", "0.0").contains("deviations of 2 inputs"));
        assert!(change("[0.5,", "[").contains("deviations of 2 inputs"));
        assert!(change("classify", "guess").contains("guess"));
        assert!(TableTask::from_bytes(b"{", 2, 3).unwrap_err().to_string().contains("cannot be used"));
    }

    #[test]
    fn every_task_on_tables_is_described_as_one() {
        for task in [classifier(), regressor(), forecaster()] {
            assert!(TableTask::is_described_by(&serde_json::to_value(&task).unwrap()), "{task:?}");
        }
        for other in [serde_json::json!({"task": "policy"}), serde_json::json!({"task": 1}), serde_json::json!([]), serde_json::json!({})] {
            assert!(!TableTask::is_described_by(&other), "{other}");
        }
    }

    #[test]
    fn a_task_made_by_hand_of_parts_that_do_not_fit_is_refused() {
        let (TableTask::Classify(mut unscaled), TableTask::Regress(mut untold)) = (classifier(), regressor()) else { panic!() };
        unscaled.normalization.deviation.pop();
        untold.target_normalization.mean.clear();
        let TableTask::Forecast(of_levels) = of_levels() else { panic!() };
        // Its level is that of no column that is read, or has no mean of the table to begin with.
        let (mut unread, mut unknown) = (of_levels.clone(), of_levels);
        unread.target = vec!["b".into()];
        unknown.of_table = None;
        let tasks = [TableTask::Classify(unscaled), TableTask::Regress(untold), TableTask::Forecast(unread), TableTask::Forecast(unknown)];
        for task in tasks {
            let refused = task.expect_usable(task.n_inputs(), task.n_outputs()).unwrap_err().to_string();
            assert!(refused.contains("cannot be used: expected"), "{refused}");
        }
    }

    #[test]
    fn outputs_become_shares_or_numbers_in_the_units_of_the_table() {
        let Prediction::Classes(shares) = classifier().prediction(&[], &[0.0, core::f32::consts::LN_2, f32::NEG_INFINITY]) else {
            panic!()
        };
        assert!((shares[0] - 1.0 / 3.0).abs() < 1e-7 && (shares[1] - 2.0 / 3.0).abs() < 1e-7 && shares[2] == 0.0, "{shares:?}");
        assert_eq!(forecaster().prediction(&[], &[0.0, 1.0, -1.0, 2.0]), Prediction::Values(vec![10.0, 23.0, 8.0, 26.0]));
        let mut numbers = vec![7.0; 9];
        forecaster().predict_into(&[], &[0.0; 4], &mut numbers);
        assert_eq!(numbers, [10.0, 20.0, 10.0, 20.0]);
    }

    #[test]
    fn a_task_fits_a_model_of_its_inputs_and_outputs_and_no_other() {
        for (task, inputs, outputs) in [(classifier(), 2, 3), (regressor(), 2, 1), (forecaster(), 1, 4), (of_levels(), 3, 6)] {
            assert_eq!((task.n_inputs(), task.n_outputs()), (inputs, outputs));
            task.expect_fits(inputs, outputs).unwrap();
            for (other_inputs, other_outputs) in [(inputs + 1, outputs), (inputs, outputs + 1), (outputs, inputs)] {
                let refused = task.expect_fits(other_inputs, other_outputs).unwrap_err().to_string();
                let words =
                    format!("{inputs} inputs and {outputs} outputs, found one with {other_inputs} and {other_outputs}; take the task");
                assert!(refused.contains(&words), "{refused}");
            }
        }
    }

    #[test]
    #[should_panic(expected = "expected the 3 outputs of a step, found 2")]
    fn outputs_of_another_model_have_no_classes() {
        classifier().prediction(&[1.0, 2.0], &[0.0, 1.0]);
    }

    #[test]
    #[should_panic(expected = "expected the 6 outputs of a step, found 7")]
    fn outputs_of_another_model_are_no_forecast() {
        of_levels().prediction(&[6.0, 10.0], &[0.0; 7]);
    }

    #[test]
    #[should_panic(expected = "expected whole rows of 2 numbers, found 3 numbers")]
    fn a_row_that_is_not_whole_is_not_shown_as_the_one_before() {
        classifier().show(&[1.0, 2.0, 3.0], &mut [0.0; 2]);
    }

    #[test]
    #[should_panic(expected = "expected whole rows of 2 numbers, found 3 numbers")]
    fn nothing_is_predicted_after_a_row_that_is_not_whole() {
        regressor().prediction(&[1.0, 2.0, 3.0], &[0.0]);
    }

    #[test]
    #[should_panic(expected = "expected at least one row of 2 numbers, found none")]
    fn nothing_is_shown_without_a_row() {
        classifier().show(&[], &mut [0.0; 2]);
    }

    #[test]
    fn numbers_far_from_their_mean_are_told_apart() {
        let task = classifier();
        let near = |x| task.normalization().is_near(0, x);
        assert!(near(1.0) && near(5e5) && !near(6e5) && !near(f64::NAN) && !near(f64::INFINITY));
        let refused = task.expect_readable(&[6e5, 0.0]).unwrap_err().to_string();
        assert!(refused.ends_with("of the table that was trained on, expected at most 1e6"), "{refused}");
        assert_eq!(task.normalization().apply(1, 2.0), 1.0);
        assert_eq!(task.normalization().restore(1, 1.0), 2.0);
        assert_eq!((task.columns().len(), task.group(), forecaster().group()), (2, Some("machine"), None));
    }

    fn of_levels() -> TableTask {
        let TableTask::Forecast(forecaster) = forecaster() else { panic!() };
        TableTask::Forecast(Forecaster {
            target: vec!["a".into()],
            normalization: Normalization { mean: vec![0.0], deviation: vec![0.5] },
            target_normalization: Normalization { mean: vec![0.0], deviation: vec![0.25] },
            scaling: Scaling::Level { transforms: vec![Transform::Identity], span: 2, lags: vec![1, 3] },
            of_table: Some(Normalization { mean: vec![8.0], deviation: vec![3.0] }),
            quantiles: vec![0.1, 0.5, 0.9],
            ..forecaster
        })
    }

    #[test]
    fn numbers_are_seen_relative_to_the_level_of_their_own_series() {
        let task = of_levels();
        assert_eq!((task.reach(), task.n_inputs()), (4, 3));
        let mut inputs = [0.0; 3];
        // The level is the mean of 6 and 10, and so is the unit; the number of three steps before is not there yet.
        task.show(&[2.0, 6.0, 10.0], &mut inputs);
        assert_eq!(inputs, [0.5, -0.5, -1.5]);
        task.show(&[1e9, 4.0, 2.0, 6.0, 10.0], &mut inputs);
        assert_eq!(inputs, [0.5, -0.5, -1.0]);
        // Quantiles that cross are put in order: 8 + 8 · x / 4.
        let Prediction::Values(values) = task.prediction(&[6.0, 10.0], &[0.0, -1.0, 1.0, 2.0, 3.0, 2.5]) else { panic!() };
        assert_eq!(values, [6.0, 8.0, 10.0, 12.0, 13.0, 14.0]);
        let TableTask::Forecast(forecaster) = &task else { panic!() };
        let names = ["a", "a q0.1", "a q0.9"].map(str::to_string).into_iter().zip([1, 0, 2]);
        assert_eq!(forecaster.value_names(), names.collect::<Vec<_>>());
        // Of a series that is 0 so far.
        task.show(&[0.0, 0.0], &mut inputs);
        assert_eq!(inputs, [0.0; 3]);
    }

    #[test]
    fn a_missing_number_is_the_last_that_is_known_and_can_be_told_from_it() {
        let TableTask::Forecast(forecaster) = of_levels() else { panic!() };
        let of = |missing| TableTask::Forecast(Forecaster { missing, ..forecaster.clone() });
        let (filled, masked) = (of(Missing::ForwardFill), of(Missing::Mask));
        assert_eq!((filled.reach(), filled.n_inputs(), masked.n_inputs()), (FILLED, 3, 4));
        let rows = [2.0, 6.0, f64::NAN, 10.0, f64::NAN];
        let [mut inputs, mut with_mask] = [[0.0; 3], [0.0; 3]].map(|inputs| inputs.to_vec());
        with_mask.push(0.0);
        // The level of the last two rows is 10, and so is the unit.
        filled.show(&rows, &mut inputs);
        assert_eq!(inputs, [0.0, 0.0, -0.8]);
        masked.show(&rows, &mut with_mask);
        assert_eq!(with_mask, [0.0, 0.0, -0.8, 1.0]);
        masked.show(&rows[..4], &mut with_mask);
        assert_eq!(with_mask, [0.0, -0.8, -1.6, 0.0]);
        // Of a series of which nothing is known, forecasts are those of the mean of the table.
        filled.show(&[f64::NAN], &mut inputs);
        assert_eq!(inputs, [0.0; 3]);
        assert_eq!(filled.prediction(&[f64::NAN], &[0.0; 6]), Prediction::Values(vec![8.0; 6]));
        let TableTask::Classify(classifier) = classifier() else { panic!() };
        let task = TableTask::Classify(Classifier { missing: Missing::Mask, ..classifier });
        let mut inputs = [7.0; 4];
        task.show(&[2.0, f64::NAN, f64::NAN, 2.0], &mut inputs);
        assert_eq!(inputs, [2.0, 1.0, 1.0, 0.0]);
    }

    #[test]
    fn a_gap_at_the_end_leaves_the_level_where_it_was() {
        let TableTask::Forecast(forecaster) = of_levels() else { panic!() };
        let forecaster = Forecaster { missing: Missing::ForwardFill, ..forecaster };
        let level = |gap: usize| {
            let rows = [&[2.0, 60.0, 100.0][..], &vec![f64::NAN; gap][..]].concat();
            let Scale { center, unit, .. } = forecaster.target_scale(0, &rows);
            (center, unit * 4.0, forecaster.knows(0, &rows))
        };
        assert_eq!((level(0), level(1)), ((80.0, 80.0, true), (100.0, 100.0, true)));
        for gap in 2..FILLED - 1 {
            assert_eq!(level(gap), (80.0, 80.0, true), "{gap}");
        }
        assert_eq!(level(FILLED - 1), (100.0, 100.0, true));
        assert_eq!(level(FILLED), (8.0, 1.0, false));
        // What is not read is not said to be unknown.
        let other = Forecaster { target: vec!["b".into()], scaling: Scaling::Standard, ..forecaster };
        assert!(other.knows(0, &[f64::NAN]));
    }

    #[test]
    fn a_column_of_names_is_an_input_for_each() {
        let category = |column, values: &[&str]| Category { column, values: values.iter().map(ToString::to_string).collect() };
        let TableTask::Classify(classifier) = classifier() else { panic!() };
        let task = TableTask::Classify(Classifier { categories: vec![category(1, &["north", "south", "west"])], ..classifier });
        assert_eq!((task.columns().len(), task.n_inputs()), (2, 4));
        let shown = |task: &TableTask, rows: &[f64]| {
            let mut inputs = vec![7.0; task.n_inputs()];
            task.show(rows, &mut inputs);
            inputs
        };
        assert_eq!(shown(&task, &[2.0, 2.0]), [2.0, 0.0, 0.0, 1.0]);
        assert_eq!(shown(&task, &[2.0, UNSEEN]), [2.0, 0.0, 0.0, 0.0]);
        // With a level too it is read as it is, and what is missing is the last that is known.
        let TableTask::Forecast(forecaster) = of_levels() else { panic!() };
        let task = TableTask::Forecast(Forecaster {
            columns: vec!["kind".into(), "a".into()],
            normalization: Normalization { mean: vec![0.0; 2], deviation: vec![1.0, 0.5] },
            of_table: Some(Normalization { mean: vec![0.0, 8.0], deviation: vec![1.0, 3.0] }),
            scaling: Scaling::Level { transforms: vec![Transform::Identity; 2], span: 2, lags: vec![1] },
            categories: vec![category(0, &["feast", "work"])],
            missing: Missing::Mask,
            ..forecaster
        });
        assert_eq!(task.n_inputs(), 6);
        assert_eq!(shown(&task, &[1.0, 6.0, f64::NAN, 10.0]), [0.0, 1.0, 1.0, 0.5, -0.5, 0.0]);
        // It is read back, files of before are without it, and what makes no sense is refused.
        let json = serde_json::to_string(&task).unwrap();
        assert_eq!(TableTask::from_bytes(json.as_bytes(), 6, 6).unwrap(), task);
        let before = serde_json::to_string(&of_levels()).unwrap();
        assert!(!before.contains("categories") && !before.contains("layout"), "files of before stay as they are");
        for (from, to) in [
            ("\"column\":0", "\"column\":2"),
            ("\"column\":0", "\"column\":1"),
            ("\"feast\",", "\"work\","),
            ("\"feast\",", ""),
            ("[\"feast\",\"work\"]", "[]"),
        ] {
            assert!(json.contains(from), "{json}");
            assert!(TableTask::from_bytes(json.replace(from, to).as_bytes(), 6, 6).is_err(), "{from} {to}");
        }
    }

    #[test]
    fn a_description_with_levels_is_read_back_and_refused_where_it_makes_no_sense() {
        let json = serde_json::to_string(&of_levels()).unwrap();
        assert_eq!(TableTask::from_bytes(json.as_bytes(), 3, 6).unwrap(), of_levels());
        assert!(!serde_json::to_string(&forecaster()).unwrap().contains("scaling"), "files of before stay as they are");
        for (from, to) in [
            ("\"span\":2", "\"span\":0"),
            ("[1,3]", "[0,3]"),
            ("[1,3]", "[1,65536]"),
            ("[0.1,0.5,0.9]", "[0.1,0.6,0.9]"),
            ("[0.1,0.5,0.9]", "[0.5,0.5,0.9]"),
            ("[0.1,0.5,0.9]", "[0.5,0.9,1.0]"),
            ("\"target\":[\"a\"]", "\"target\":[\"b\"]"),
        ] {
            assert!(json.contains(from), "{json}");
            let refused = TableTask::from_bytes(json.replace(from, to).as_bytes(), 3, 6).unwrap_err().to_string();
            assert!(refused.contains("cannot be used"), "{refused}");
        }
    }

    #[test]
    fn a_task_without_columns_is_none() {
        let none = r#"{"task": "classify", "columns": [], "group": "id", "target": "class", "classes": ["a", "b"], "normalization": {"mean": [], "deviation": []}}"#;
        let refused = TableTask::from_bytes(none.as_bytes(), 0, 2).unwrap_err().to_string();
        assert!(refused.contains("it reads no column, expected at least one"), "{refused}");
    }

    #[test]
    fn a_number_that_stands_for_no_name_is_refused() {
        let TableTask::Classify(classifier) = classifier() else { panic!() };
        let category = Category { column: 1, values: (1..=10).map(|name| name.to_string()).collect() };
        assert_eq!(
            ["1", "10", " 10\t", "11", "1 0", "", " "].map(|name| category.code(name)),
            [0.0, 9.0, 9.0, UNSEEN, UNSEEN, UNSEEN, UNSEEN]
        );
        let mut task = Classifier { categories: vec![category], ..classifier };
        let read = |task: &Classifier, code: f64| TableTask::Classify(task.clone()).expect_readable(&[1.0, code]);
        assert!([-0.0, 0.0, 9.0, UNSEEN].iter().all(|&code| read(&task, code).is_ok()));
        for code in [10.0, 0.5, -2.0, 1e300, f64::INFINITY, f64::NAN] {
            let refused = read(&task, code).unwrap_err().to_string();
            assert!(refused.contains(&format!("column 'y': found {code:?}, expected")), "{refused}");
        }
        let refused = read(&task, 10.0).unwrap_err().to_string();
        assert!(refused.contains("(0 is '1', 1 is '2', ") && refused.contains("7 is '8' and 2 more), or -1 for one"), "{refused}");
        task.missing = Missing::Mask;
        assert!(read(&task, f64::NAN).is_ok() && read(&task, 0.5).is_err());
    }

    #[test]
    fn a_row_below_0_has_no_logarithm() {
        let TableTask::Forecast(mut forecaster) = of_levels() else { panic!() };
        forecaster.scaling = Scaling::Level { transforms: vec![Transform::Log { floor: 4.0 }], span: 2, lags: vec![1] };
        let task = TableTask::Forecast(forecaster);
        assert!([0.0, 1e-9, 3.0].iter().all(|&x| task.expect_readable(&[x]).is_ok()));
        let refused = task.expect_readable(&[-0.5]).unwrap_err().to_string();
        assert!(refused.contains("found -0.5, of which the model, which reads logarithms, has none"), "{refused}");
        // 0 is taken for the least of training, and what is less than that for itself.
        let transform = Transform::Log { floor: 4.0 };
        assert_eq!([0.0, 4.0, 1.0].map(|x| transform.apply(x)), [libm::log(4.0), libm::log(4.0), 0.0]);
        assert!(transform.apply(f64::NAN).is_nan());
    }

    proptest::proptest! {
        #[test]
        fn a_history_with_gaps_shows_what_the_whole_series_shows(
            rows in proptest::collection::vec(proptest::option::weighted(0.05, 0.1..100.0f64), 1..300), span in 1..100usize, lag in 1..100usize,
        ) {
            let TableTask::Forecast(mut forecaster) = of_levels() else { panic!() };
            forecaster.scaling = Scaling::Level { transforms: vec![Transform::Identity], span, lags: vec![lag] };
            forecaster.missing = Missing::Mask;
            let task = TableTask::Forecast(forecaster.clone());
            let rows: Vec<f64> = rows.into_iter().map(|row| row.unwrap_or(f64::NAN)).collect();
            let mut history = History::new(1, task.reach());
            for (t, row) in rows.iter().enumerate() {
                history.push(&[*row]);
                let [mut from_history, mut from_series] = [[0.0; 3]; 2];
                task.show(history.rows(), &mut from_history);
                task.show(&rows[..=t], &mut from_series);
                proptest::prop_assert_eq!(from_history, from_series);
                proptest::prop_assert_eq!(forecaster.target_scale(0, history.rows()), forecaster.target_scale(0, &rows[..=t]));
                proptest::prop_assert_eq!(forecaster.knows(0, history.rows()), forecaster.knows(0, &rows[..=t]));
            }
        }

        #[test]
        fn a_history_shows_what_the_whole_series_shows(
            rows in proptest::collection::vec(0.1..100.0f64, 1..40), span in 1..6usize, lag in 1..7usize, which in 0..3usize, reach in 0..9usize,
        ) {
            let TableTask::Forecast(mut forecaster) = of_levels() else { panic!() };
            let transform = [Transform::Identity, Transform::Log { floor: 0.01 }, Transform::Log1p][which];
            forecaster.scaling = Scaling::Level { transforms: vec![transform], span, lags: vec![lag] };
            let task = TableTask::Forecast(forecaster.clone());
            let mut history = History::new(1, task.reach() + reach);
            for (t, row) in rows.iter().enumerate() {
                history.push(&[7.0]);
                history.pop();
                history.push(&[*row]);
                let [mut from_history, mut from_series] = [[0.0; 2]; 2];
                task.show(history.rows(), &mut from_history);
                task.show(&rows[..=t], &mut from_series);
                proptest::prop_assert_eq!(from_history, from_series);
                let scale = forecaster.target_scale(0, history.rows());
                let back = scale.restore(scale.apply(*row));
                proptest::prop_assert!((back - row).abs() < 1e-4 * (1.0 + row + scale.center.abs()), "{} {}", back, row);
                let again = History::of_rows(history.rows(), 1, task.reach() + reach).unwrap();
                proptest::prop_assert_eq!(again.rows(), history.rows());
            }
        }
    }
}
