//! Sequences with their labels, and batches of them.

use std::sync::Arc;

use minrnn_model::TableTask;

use super::super::example;
use super::super::series::Series;
use super::super::{CHUNK_LEN, Chunk, WholeSeries};
use super::config::LabellingConfig;
use super::parts::Parts;
use crate::data::{Batch, Sequences};
use crate::rng::Purpose;

/// The sequences with their labels.
#[derive(Debug, Clone)]
pub(super) struct Table {
    pub series: Arc<[Series]>,
    pub labels: Arc<Labels>,
    pub task: TableTask,
    pub config: LabellingConfig,
    pub parts: Parts,
}

/// The label of each sequence.
#[derive(Debug)]
pub(super) enum Labels {
    /// The index of the class in the model.
    Classes(Vec<u32>),
    /// In the units of the table.
    Numbers(Vec<f64>),
}

impl Table {
    /// Steps in which the model reads sequence `series`.
    pub fn steps(&self, series: usize) -> usize {
        self.series[series].steps_of(&self.task)
    }

    /// How the sequences of the part for `purpose` are arranged in batches of `batch_size`.
    pub fn whole(&self, purpose: Purpose, batch_size: usize) -> WholeSeries {
        let mut lengths = vec![0; self.series.len()];
        self.parts.of(purpose).iter().for_each(|&at| lengths[at] = self.steps(at));
        WholeSeries::new(lengths, batch_size, CHUNK_LEN)
    }

    /// What is shown of a sequence: the first column that is read as numbers, otherwise the first column, with its name.
    pub fn shown(&self, series: usize) -> (String, Vec<f64>) {
        let (columns, categories) = (self.task.columns(), self.task.categories());
        let holds_names = |column: usize| categories.iter().any(|category| category.column == column);
        let column = (0..columns.len()).find(|&column| !holds_names(column)).unwrap_or(0);
        (columns[column].clone(), example::values_of(&self.series[series], column))
    }

    /// A batch whose rows read these steps of sequences; the label is at the last step of a sequence.
    pub fn batch(&self, chunk: Chunk) -> Batch {
        let (width, batch_size, seq_len) = (self.task.n_inputs(), chunk.rows.len(), chunk.seq_len);
        let n = batch_size * seq_len;
        let (mut inputs, mut mask) = (vec![0.0; n * width], vec![0.0; n]);
        let mut last = Vec::new();
        for (series, step, place) in chunk.places() {
            self.series[series].show(&self.task, step, &mut inputs[place * width..][..width]);
            if step + 1 == self.steps(series) {
                mask[place] = 1.0;
                last.push((series, place));
            }
        }
        let targets = match (&*self.labels, &self.task) {
            (Labels::Classes(classes), _) => {
                let mut targets = vec![0; n];
                last.into_iter().for_each(|(series, place)| targets[place] = classes[series]);
                Sequences::Tokens(targets)
            }
            (Labels::Numbers(numbers), TableTask::Regress(regressor)) => {
                let (scale, mut values) = (regressor.target_scale(), vec![0.0; n]);
                last.into_iter().for_each(|(series, place)| values[place] = scale.apply(numbers[series]));
                Sequences::Values { values, width: 1 }
            }
            (Labels::Numbers(_), _) => unreachable!("numbers are those of a regression"),
        };
        Batch {
            inputs: Sequences::Values { values: inputs, width },
            targets,
            mask: Some(mask),
            segments: chunk.segments,
            batch_size,
            seq_len,
        }
    }
}
