//! Recorded episodes on their way to a file.

use std::path::PathBuf;

use minrnn::data::offline_rl::{Ending, Trajectories};
use minrnn::output::{expect_harmless, expect_replaceable};
use pyo3::prelude::*;
use serde_json::json;

use crate::arrays::{self, Array};
use crate::failure::{Failure, Result, apart};

/// Writes episodes to a file that ``task = policy`` learns from. They are given one after the other, a row for every step; a row whose terminal or timeout is
/// not 0 is the last of its episode, and rows after the last such row are left out. Returns a summary as JSON.
#[pyfunction]
pub(crate) fn write_trajectories(
    py: Python<'_>,
    path: PathBuf,
    observations: &Bound<'_, PyAny>,
    actions: &Bound<'_, PyAny>,
    rewards: &Bound<'_, PyAny>,
    terminals: &Bound<'_, PyAny>,
    timeouts: &Bound<'_, PyAny>,
) -> Result<String> {
    let rewards = column(rewards, "rewards", None)?;
    let n_steps = rewards.len();
    let (observation_width, observations) = matrix(observations, "observations", n_steps)?;
    let (action_width, actions) = matrix(actions, "actions", n_steps)?;
    let terminals = column(terminals, "terminals", Some(n_steps))?;
    let timeouts = column(timeouts, "timeouts", Some(n_steps))?;
    let written = apart(py, || -> minrnn::Result<_> {
        expect_harmless(&path, [])?;
        expect_replaceable(&path, "a file of trajectories", |start| start.starts_with(&Trajectories::MAGIC))?;
        let endings = terminals.iter().zip(&timeouts).map(|(&terminal, &timeout)| Ending::of(terminal != 0.0, timeout != 0.0));
        let trajectories = Trajectories::from_rows([observation_width, action_width], observations, actions, rewards, endings)?;
        if trajectories.is_empty() {
            let sentence = format!("none of {n_steps} steps ends an episode; the last one of each has a terminal or a timeout of 1");
            return Err(minrnn::Error::Data(sentence));
        }
        trajectories.write(&path)?;
        Ok(trajectories)
    })??;
    let told = json!({
        "path": path.to_string_lossy(), "episodes": written.len(), "steps": written.n_steps(), "mean_return": written.mean_return(),
        "best_return": written.best_return(),
    });
    Ok(told.to_string())
}

/// A number for every step.
fn column(any: &Bound<'_, PyAny>, what: &str, n_steps: Option<usize>) -> Result<Vec<f32>> {
    let Array { shape, values } = finite(any, what)?;
    match (&shape[..], n_steps) {
        (&[found], None) if found > 0 => Ok(values),
        (&[found], Some(n_steps)) if found == n_steps => Ok(values),
        _ => {
            let expected = n_steps.map_or("at least one step".into(), |n_steps| format!("the {n_steps} steps of the rewards"));
            Err(Failure::input(format!("{what}: expected a number for each of {expected}, found an array of shape {shape:?}")))
        }
    }
}

/// A row for every step, and its width.
fn matrix(any: &Bound<'_, PyAny>, what: &str, n_steps: usize) -> Result<(usize, Vec<f32>)> {
    let Array { shape, values } = finite(any, what)?;
    match shape[..] {
        [found, width] if found == n_steps && width > 0 => Ok((width, values)),
        _ => Err(Failure::input(format!("{what}: expected a row for each of {n_steps} steps, found an array of shape {shape:?}"))),
    }
}

fn finite(any: &Bound<'_, PyAny>, what: &str) -> Result<Array<f32>> {
    let array = arrays::read::<f32>(any, what)?;
    match array.values.iter().position(|value| !value.is_finite()) {
        Some(at) => Err(Failure::input(format!("{what}: number {at} is {}, expected a finite one", array.values[at]))),
        None => Ok(array),
    }
}
