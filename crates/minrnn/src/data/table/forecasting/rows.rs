//! Every row of a table beside what was forecast for it.

use std::path::Path;

use minrnn_model::Forecaster;

use super::super::leads;
use super::super::series::Series;
use super::{Bounds, Forecasting, Table};
use crate::Result;

/// The rows of a table for a trained model that forecasts them, those of each sequence one after the other.
#[derive(Debug)]
pub struct ForecastRows {
    table: std::sync::Arc<Table>,
}

/// A row beside its forecast.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct ForecastRow {
    /// The values of the targets, NaN where one is missing.
    pub values: Vec<f64>,
    /// What the step before let expect of them; none at the first step of a sequence.
    pub expected: Option<Vec<f64>>,
    /// How surprising the values are, in nats ([`Forecaster::surprise`]); none where that cannot be told, such as at the beginning of a sequence.
    pub surprise: Option<f64>,
}

impl ForecastRows {
    /// The rows of the table `path`, with the values to come, for the model of `forecaster`.
    ///
    /// # Errors
    /// When the file cannot be read, lacks a column, or has a number far from all that was trained on.
    pub fn open(path: &Path, forecaster: &Forecaster) -> Result<Self> {
        let bounds = |series: &Series| Bounds { training: 0, validation: 0, test: series.len() };
        let Forecasting { table, .. } = Forecasting::of_trained(path, forecaster, bounds, |_, _| Ok(()))?;
        Ok(Self { table })
    }

    /// Steps ahead of a row that the model wants to know something of, at most. Behind the last row of a sequence nothing is known, and its values are
    /// taken to stay.
    pub fn known_ahead(&self) -> usize {
        leads::farthest(&self.table.forecaster.columns)
    }

    /// The sequences; the columns that are read stand first in each step.
    pub fn series(&self) -> &[Series] {
        &self.table.series
    }

    /// What the model reads at the steps `steps` of sequence `series`, `[T, n_inputs]`.
    pub(crate) fn inputs(&self, series: usize, steps: std::ops::Range<usize>) -> Vec<f32> {
        let (width, mut kept) = (self.table.n_inputs(), Vec::new());
        let mut inputs = vec![0.0; steps.len() * width];
        steps.zip(inputs.chunks_exact_mut(width)).for_each(|(step, inputs)| self.table.fill_inputs(series, step, &mut kept, inputs));
        inputs
    }

    /// The row of step `step` of sequence `series`, `outputs` being those of the model at the step before.
    pub(crate) fn row(&self, series: usize, step: usize, outputs: Option<&[f32]>) -> ForecastRow {
        let table = &self.table;
        let of = table.series[series].step(step);
        let values: Vec<f64> = table.predicted.iter().map(|&column| of[column]).collect();
        let Some(outputs) = outputs else { return ForecastRow { values, ..ForecastRow::default() } };
        let (mut kept, mut numbers) = (Vec::new(), Vec::new());
        let (recent, forecaster) = (table.recent(series, step - 1, &mut kept), &table.forecaster);
        table.task.predict_into(recent, outputs, &mut numbers);
        let first = numbers.chunks_exact(forecaster.n_quantiles()).take(values.len());
        let expected = first.map(|quantiles| quantiles[forecaster.point()]).collect();
        let surprise = forecaster.surprise(recent, outputs, &values);
        ForecastRow { values, expected: Some(expected), surprise }
    }
}
