//! The data of a run that has begun, as its model received them, even if the tables have changed since.

use std::borrow::Cow;
use std::path::{Path, PathBuf};

use minrnn_model::{CheckpointFiles, Forecaster, Layout};

use super::kept_digest::is_unchanged;
use super::{Data, sequence_task};
use crate::Result;
use crate::checkpoint::load_table_task;
use crate::data::SequenceTask;
use crate::data::table::{Forecasting, TableTask, TimeColumn};
use crate::train::data_config::Task;
use crate::train::experiment::Experiment;
use crate::train::run_dir::{Pointer, checkpoint};

impl Data {
    /// The forecasts that the run in the directory `run` was trained on; `None` if its table has been removed or replaced.
    ///
    /// # Errors
    /// When the experiment is not a forecast, or its table cannot be read.
    pub fn learned_forecasts(experiment: &Experiment, run: &Path) -> Result<Option<Forecasting>> {
        let begun = begun_forecaster(experiment, run);
        let experiment = begun.as_ref().map_or(Cow::Borrowed(experiment), |begun| in_order_of(begun, experiment));
        let (data, train) = (&experiment.data, &experiment.train);
        let Some(path) = data.path.as_deref() else { return Ok(None) };
        let others = [&data.table.validation, &data.table.test].into_iter().flatten().map(PathBuf::as_path);
        let is_there = std::iter::once(path).chain(others).all(Path::is_file);
        if !is_there || !is_unchanged(&experiment, run)? {
            return Ok(None);
        }
        Forecasting::open(path, &data.forecasting(train)?).map(Some)
    }
}

/// The task, other than plain text, of the run in the directory `run`, which has begun: with the row order and the season that its model was
/// given, if none is asked for, and rows as it read them.
pub(super) fn begun_task(experiment: &Experiment, run: &Path) -> Result<Option<Box<dyn SequenceTask>>> {
    let Some(begun) = begun_forecaster(experiment, run) else { return sequence_task(&with_steps_of(experiment, run), run) };
    let mut experiment = in_order_of(&begun, experiment);
    let task = sequence_task(&experiment, run)?;
    let found = task.as_ref().and_then(|task| task.table_task());
    let (Some(TableTask::Forecast(found)), 0) = (found, experiment.data.forecast.season) else { return Ok(task) };
    // 0 would infer the season again, and 1 also means the last value.
    let [begun, found] = [begun.season, found.season].map(|season| season.max(1));
    if begun == found {
        return Ok(task);
    }
    experiment.to_mut().data.forecast.season = begun;
    sequence_task(&experiment, run)
}

/// `experiment` with single rows as steps if the run has a checkpoint and does not say otherwise: since there have been steps of several rows, a run
/// records them before its first checkpoint.
fn with_steps_of<'a>(experiment: &'a Experiment, run: &Path) -> Cow<'a, Experiment> {
    let mut experiment = Cow::Borrowed(experiment);
    let labels = [Task::Classify, Task::Regress].contains(&experiment.data.task);
    if labels && experiment.data.table.rows_per_step == 0 && !matches!(checkpoint(run, Pointer::Last), Ok(None)) {
        experiment.to_mut().data.table.rows_per_step = 1;
    }
    experiment
}

/// `experiment` with rows in file order if `begun` found no times in it: older versions did not find dates stored as text in every format.
fn in_order_of<'a>(begun: &Forecaster, experiment: &'a Experiment) -> Cow<'a, Experiment> {
    let mut experiment = Cow::Borrowed(experiment);
    if begun.time.is_none() && begun.layout == Layout::Long && TimeColumn::of_setting(&experiment.data.table.time) == TimeColumn::Found {
        experiment.to_mut().data.table.time = String::new();
    }
    experiment
}

/// What the model of the run's last checkpoint forecasts. A damaged one counts as none: whoever needs it will report it, and the run's other checkpoints can
/// still be used.
fn begun_forecaster(experiment: &Experiment, run: &Path) -> Option<Forecaster> {
    if experiment.data.task != Task::Forecast {
        return None;
    }
    let last = checkpoint(run, Pointer::Last).ok()??;
    let config = CheckpointFiles::open(&last).ok()?.config().ok()?;
    match load_table_task(&last, &config.model).ok()?? {
        TableTask::Forecast(begun) => Some(begun),
        _ => None,
    }
}
