//! Predictions as a table: one row for each sequence with its likeliest class and all probabilities or with its number, or one row for each step ahead
//! of each sequence.

use minrnn::data::table::{Prediction, Series, TableTask, output_names};
use minrnn_model::likeliest;
use serde_json::Value;

use crate::cells::{self, Cell, object, write_line};
use crate::free_name::free_name;

/// Names of columns, and rows of as many cells.
pub struct Predicted {
    header: Vec<String>,
    rows: Vec<Vec<Cell>>,
}

impl Predicted {
    /// What was predicted for each of `series`.
    pub fn of(task: &TableTask, series: &[Series], predictions: &[Prediction]) -> Self {
        let header = header(task);
        let mut rows = Vec::new();
        for (series, prediction) in series.iter().zip(predictions) {
            match (task, prediction) {
                (TableTask::Classify(classifier), Prediction::Classes(shares)) => {
                    let cells = [series.name.clone(), classifier.classes[likeliest(shares)].clone()].map(Cell::Text);
                    rows.push(cells.into_iter().chain(shares.iter().copied().map(Cell::Rounded)).collect());
                }
                (TableTask::Regress(_), Prediction::Values(values)) => {
                    rows.push(vec![Cell::Text(series.name.clone()), Cell::Number(values[0])]);
                }
                (TableTask::Forecast(forecaster), Prediction::Values(values)) => {
                    let places: Vec<usize> = forecaster.value_names().into_iter().map(|(_, place)| place).collect();
                    let times = series.next_times(forecaster.horizon).unwrap_or_default();
                    for (ahead, values) in values.chunks_exact(forecaster.target.len() * forecaster.n_quantiles()).enumerate() {
                        let name = forecaster.group.as_ref().map(|_| Cell::Text(series.name.clone()));
                        // The time step of a series with a single row is not known.
                        let time = forecaster.time.as_ref().map(|_| Cell::Text(times.get(ahead).cloned().unwrap_or_default()));
                        let values = places.iter().map(|&place| Cell::Number(values[place]));
                        rows.push(name.into_iter().chain(time).chain([Cell::Step(ahead + 1)]).chain(values).collect());
                    }
                }
                _ => unreachable!("a task gives predictions of its kind"),
            }
        }
        Self { header, rows }
    }

    /// With the header as the first line.
    pub fn to_csv(&self) -> String {
        let mut table = cells::header(&self.header);
        self.rows.iter().for_each(|row| write_line(row, &mut table));
        table
    }

    /// An object for each row.
    pub fn into_json(self) -> Value {
        let Self { header, rows } = self;
        rows.into_iter().map(|row| object(&header, row)).collect()
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
