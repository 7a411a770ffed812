//! Predictions as a table: one row for each sequence with its likeliest class and all probabilities or with its number, or one row for each step ahead
//! of each sequence.

use std::sync::atomic::{AtomicBool, Ordering};

use minrnn::data::table::{Prediction, Series, TableLimit, TableTask, output_names};
use minrnn_model::likeliest;
use minrnn_serve::Accept;

use crate::cells::{Cell, Written};
use crate::free_name::free_name;

/// Refuses to predict for `series` what has more cells, or repeats more of their names, than `limit` allows a table: a few bytes of a table may ask
/// for many rows.
///
/// # Errors
/// With what it would have, what it may, and what to do.
pub fn expect_room(task: &TableTask, series: &[Series], limit: TableLimit) -> minrnn::Result<()> {
    let rows = if let TableTask::Forecast(forecaster) = task { forecaster.horizon } else { 1 };
    let names = series.iter().map(|series| series.name.len()).sum::<usize>();
    limit.expect_answerable(series.len(), rows, header(task).len(), names)
}

/// What was predicted, whose rows are made as they are written.
pub struct Predicted<'a> {
    task: &'a TableTask,
    series: &'a [Series],
    predictions: &'a [Prediction],
}

impl<'a> Predicted<'a> {
    /// What was predicted for each of `series`.
    pub fn of(task: &'a TableTask, series: &'a [Series], predictions: &'a [Prediction]) -> Self {
        Self { task, series, predictions }
    }

    /// As CSV with the header as the first line, or as JSON with an object for each row; `None` if `stop` was raised before the end.
    pub fn written(&self, accept: Accept, stop: &AtomicBool) -> Option<String> {
        let mut written = Written::new(header(self.task), accept);
        let places: Vec<usize> = output_names(self.task).into_iter().map(|(_, place)| place).collect();
        for (series, prediction) in self.series.iter().zip(self.predictions) {
            if stop.load(Ordering::Relaxed) {
                return None;
            }
            self.write(series, prediction, &places, &mut written);
        }
        Some(written.end())
    }

    /// Appends the rows of one of the series; numbers of forecasts are at `places`.
    fn write(&self, series: &Series, prediction: &Prediction, places: &[usize], written: &mut Written) {
        match (self.task, prediction) {
            (TableTask::Classify(classifier), Prediction::Classes(shares)) => {
                let cells = [series.name.clone(), classifier.classes[likeliest(shares)].clone()].map(Cell::Text);
                written.push(cells.into_iter().chain(shares.iter().copied().map(Cell::Rounded)).collect());
            }
            (TableTask::Regress(_), Prediction::Values(values)) => {
                written.push(vec![Cell::Text(series.name.clone()), Cell::Number(values[0])]);
            }
            (TableTask::Forecast(forecaster), Prediction::Values(values)) => {
                let times = series.next_times(forecaster.horizon).unwrap_or_default();
                for (ahead, values) in values.chunks_exact(forecaster.target.len() * forecaster.n_quantiles()).enumerate() {
                    let name = forecaster.group.as_ref().map(|_| Cell::Text(series.name.clone()));
                    // The time step of a series with a single row is not known.
                    let time = forecaster.time.as_ref().map(|_| Cell::Text(times.get(ahead).cloned().unwrap_or_default()));
                    let values = places.iter().map(|&place| Cell::Number(values[place]));
                    written.push(name.into_iter().chain(time).chain([Cell::Step(ahead + 1)]).chain(values).collect());
                }
            }
            _ => unreachable!("a task gives predictions of its kind"),
        }
    }
}

fn header(task: &TableTask) -> Vec<String> {
    let numbers = output_names(task).into_iter().map(|(name, _)| name);
    match task {
        TableTask::Classify(classifier) => [&classifier.group, &classifier.target].into_iter().cloned().chain(numbers).collect(),
        TableTask::Regress(regressor) => [regressor.group.clone()].into_iter().chain(numbers).collect(),
        TableTask::Forecast(forecaster) => {
            let mut header: Vec<String> = forecaster.group.iter().chain(&forecaster.time).cloned().collect();
            let at = header.len();
            header.extend(numbers);
            header.insert(at, free_name("step".to_owned(), "_ahead", &header));
            header
        }
    }
}
