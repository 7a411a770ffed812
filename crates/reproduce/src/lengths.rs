//! The accuracy of a formal language by string length.

use std::path::Path;
use std::sync::atomic::AtomicBool;

use minrnn::data::FormalTask;
use minrnn::rng::Purpose;
use minrnn::train::{Data, Experiment, Task, evaluate, evaluate_length};
use serde::{Deserialize, Serialize};

use crate::share::share;

/// Number of lengths examined, evenly spaced.
const N_LENGTHS: usize = 32;
/// Strings of each length.
const STRINGS: u64 = 32;

/// The share of correct answers at one string length.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct AtLength {
    /// Length of the strings or sequences.
    pub length: usize,
    /// 0 to 1.
    #[serde(deserialize_with = "share")]
    pub accuracy: f64,
}

/// The task of `experiment`, a formal language, without its limits, and the lengths at which its models are examined: up to twice the
/// longest strings that they are scored on, if they can read such long ones.
///
/// # Errors
/// When the settings do not fit together.
pub fn looked_at(experiment: &Experiment) -> minrnn::Result<(FormalTask, Vec<usize>)> {
    let mut longer = experiment.clone();
    longer.data.formal_language.eval_min_length = 1;
    longer.data.formal_language.eval_max_length *= 2;
    if longer.validate().is_err() {
        longer.data.formal_language.eval_max_length = experiment.data.formal_language.eval_max_length;
    }
    let (task, longest) = (longer.data.formal()?.evaluation, longer.data.formal_language.eval_max_length);
    let mut lengths: Vec<usize> = (1..=longest).rev().step_by(longest.div_ceil(N_LENGTHS)).collect();
    lengths.reverse();
    Ok((task, lengths))
}

/// The accuracy of `checkpoint` at the [examined lengths](looked_at); empty if the task is not a formal language. `None` if `stop` was
/// raised before the end.
///
/// # Errors
/// When the checkpoint cannot be read.
pub fn by_length(experiment: &Experiment, checkpoint: &Path, stop: &AtomicBool) -> minrnn::Result<Option<Vec<AtLength>>> {
    if experiment.data.task != Task::FormalLanguage {
        return Ok(Some(Vec::new()));
    }
    let (task, lengths) = looked_at(experiment)?;
    let model = minrnn::checkpoint::load_model(checkpoint, &experiment.train.device.open()?)?.model;
    let mut found = Vec::new();
    for length in lengths {
        let Some(score) = evaluate_length(&model, &task, length, STRINGS, experiment.train.scoring_seed(), stop)? else { return Ok(None) };
        found.push(AtLength { length, accuracy: score.evaluation.accuracy.unwrap_or(0.0) });
    }
    Ok(Some(found))
}

/// Batches of each length of [`longer`].
const LONGER_BATCHES: u64 = 50;

/// The accuracy of `checkpoint`, a model of selective copying, on sequences of each of `lengths`, which are longer than it was trained on.
/// `None` if `stop` was raised before the end.
///
/// # Errors
/// When the checkpoint cannot be read, or a length does not fit the task.
pub fn longer(experiment: &Experiment, checkpoint: &Path, lengths: &[usize], stop: &AtomicBool) -> minrnn::Result<Option<Vec<AtLength>>> {
    let mut found = Vec::new();
    for &length in lengths {
        let mut longer = experiment.clone();
        longer.data.copying.length = length;
        longer.validate()?;
        let model = minrnn::checkpoint::load_model(checkpoint, &experiment.train.device.open()?)?.model;
        let mut batches = Data::make(&longer, Path::new("."))?.fixed_batches(&longer, LONGER_BATCHES, Purpose::TestData)?;
        let Some(evaluation) = evaluate(&model, &mut *batches, stop)? else { return Ok(None) };
        found.push(AtLength { length, accuracy: evaluation.accuracy.unwrap_or(0.0) });
    }
    Ok(Some(found))
}
