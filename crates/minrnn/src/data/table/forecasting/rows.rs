//! Every row of a table beside its forecast.

use minrnn_model::{Forecaster, TableTask};

use super::super::notes::of_rows;
use super::super::series::Series;
use super::super::{TableSource, UnseenNames, leads};
use super::{Bounds, Forecasting, Table};
use crate::Result;

/// The rows of a table for a trained forecaster, sequence by sequence.
#[derive(Debug)]
pub struct ForecastRows {
    table: std::sync::Arc<Table>,
    unseen: Vec<UnseenNames>,
}

/// A row beside its forecast.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct ForecastRow {
    /// The values of the targets, NaN where missing.
    pub values: Vec<f64>,
    /// Their forecast from the previous step; `None` at the first step of a sequence.
    pub expected: Option<Vec<f64>>,
    /// How surprising the values are, in nats ([`Forecaster::surprise`]); `None` where that is undefined, such as at the beginning of a
    /// sequence.
    pub surprise: Option<f64>,
}

impl ForecastRows {
    /// The rows of `table`, with their following values, for the model of `forecaster`.
    ///
    /// # Errors
    /// When the table cannot be read, lacks a column, or has a number far from everything trained on.
    pub fn read(table: TableSource<'_>, forecaster: &Forecaster) -> Result<Self> {
        let bounds = |series: &Series| Bounds { training: 0, validation: 0, test: series.len() };
        let Forecasting { table, unseen, .. } = Forecasting::of_trained(table, forecaster, bounds, |_, _| Ok(()))?;
        Ok(Self { table, unseen })
    }

    /// Notes about the table, as sentences: which names training never saw, where steps are longer than usual, which sequences have a single row,
    /// and what is assumed about columns that are known ahead.
    pub fn notes(&self) -> Vec<String> {
        let table = &self.table;
        let mut notes = of_rows(&table.task, &table.series, &self.unseen);
        notes.extend(table.single_rows(["is not judged, as nothing is before it", "are not judged, as nothing is before them"]));
        let ahead = leads::farthest(&table.forecaster.columns);
        if ahead > 1 {
            notes.push(format!(
                "the model reads what is known {ahead} steps ahead: beyond the last row of a sequence, it is taken to stay as it is in that row"
            ));
        }
        notes
    }

    /// The task of the model that they are read for.
    pub(crate) fn task(&self) -> &TableTask {
        &self.table.task
    }

    /// The sequences; the columns that are read come first in each step.
    pub fn series(&self) -> &[Series] {
        &self.table.series
    }

    /// What the model reads at `steps` of sequence `series`, `[T, n_inputs]`.
    pub(crate) fn inputs(&self, series: usize, steps: std::ops::Range<usize>) -> Vec<f32> {
        let (width, mut kept) = (self.table.n_inputs(), Vec::new());
        let mut inputs = vec![0.0; steps.len() * width];
        steps.zip(inputs.chunks_exact_mut(width)).for_each(|(step, inputs)| self.table.fill_inputs(series, step, &mut kept, inputs));
        inputs
    }

    /// The row at `step` of sequence `series`; `outputs` are the model's at the step before.
    pub(crate) fn row(&self, series: usize, step: usize, outputs: Option<&[f32]>) -> ForecastRow {
        let table = &self.table;
        let of = table.series[series].row(step);
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
