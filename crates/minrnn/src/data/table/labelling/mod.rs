//! Labelling: one class or one number for every sequence of a table, read from its last step.
//!
//! The sequences of a validation or test file form that part. Without such files the sequences of each class, or all that have a number,
//! are split in a seeded order: `train_fraction` of them for training (at least one), the others for the report and, if wanted, alternately
//! for validation. Means and deviations are those of the training sequences.

mod class_weights;
mod config;
mod drawn;
mod errors;
mod evaluation;
mod gathering;
mod hits;
mod long;
mod opening;
mod parts;
mod table;

use std::sync::Arc;

use minrnn_model::TableTask;

pub use self::class_weights::ClassWeights;
pub use self::config::LabellingConfig;
use self::drawn::DrawnSequences;
use self::errors::NumberErrors;
use self::evaluation::LabelEvaluation;
use self::hits::ClassHits;
pub use self::opening::read_labels;
use self::parts::Parts;
use self::table::{Labels, Table};
use super::CHUNK_LEN;
use super::measure::Comparison;
use super::roles::Understood;
use super::unseen_names::UnseenNames;
use crate::Result;
use crate::data::batch::check_shape;
use crate::data::{BatchSource, EvaluationSet, Extent, IoKind, SequenceTask};
use crate::rng::Purpose;

/// The task of labelling a table's sequences.
#[derive(Debug, Clone)]
pub struct Labelling {
    table: Arc<Table>,
    understood: Understood,
    unseen: Vec<UnseenNames>,
}

/// Minimum number of updates, which a few dozen sequences need.
const LEAST_UPDATES: u64 = 600;

impl SequenceTask for Labelling {
    fn reads(&self) -> IoKind {
        IoKind::Values { width: self.table.task.n_inputs() }
    }

    fn predicts(&self) -> IoKind {
        match &*self.table.labels {
            Labels::Classes(_) => IoKind::Tokens { n: self.table.task.classes().len() },
            Labels::Numbers(_) => IoKind::Values { width: 1 },
        }
    }

    fn longest(&self) -> usize {
        (0..self.table.series.len()).map(|at| self.table.steps(at)).max().unwrap_or(0)
    }

    fn extent(&self) -> Option<Extent> {
        let table = &self.table;
        let Parts { training, validation, test } = &table.parts;
        let steps = training.iter().map(|&at| table.steps(at)).sum::<usize>();
        let length = steps.div_ceil(training.len().max(1));
        // A test file is never learned from.
        let test = if self.has_test_file() { &[][..] } else { test };
        let longest = training.iter().chain(validation).chain(test).map(|&at| table.steps(at)).max().unwrap_or(0);
        Some(Extent { steps, length, longest, in_windows: false, least_updates: LEAST_UPDATES })
    }

    fn has_parts(&self) -> bool {
        true
    }

    fn table_task(&self) -> Option<TableTask> {
        Some(self.table.task.clone())
    }

    fn training(&self, batch_size: usize, seed: u64) -> Result<Box<dyn BatchSource>> {
        check_shape(batch_size, self.longest())?;
        Ok(Box::new(DrawnSequences::new(Arc::clone(&self.table), batch_size, seed)?))
    }

    fn evaluation(&self, batch_size: usize, _seed: u64, purpose: Purpose, _n_batches: u64) -> Result<Box<dyn EvaluationSet>> {
        check_shape(batch_size, CHUNK_LEN)?;
        let table = Arc::clone(&self.table);
        let whole = table.whole(purpose, batch_size);
        Ok(Box::new(LabelEvaluation { table, whole }))
    }

    fn comparison(&self, purpose: Purpose) -> Option<Box<dyn Comparison>> {
        let table = Arc::clone(&self.table);
        match &*self.table.labels {
            Labels::Classes(_) => Some(Box::new(ClassHits::new(table, purpose)?)),
            Labels::Numbers(_) => Some(Box::new(NumberErrors::new(table, purpose)?)),
        }
    }

    fn all(&self) -> Option<Box<dyn SequenceTask>> {
        let mut table = Table::clone(&self.table);
        let Parts { training, validation, test } = &mut table.parts;
        let before = training.len();
        training.append(validation);
        if table.config.division.test.is_none() {
            training.append(test);
        }
        let is_more = training.len() > before;
        is_more.then(|| Box::new(Self { table: Arc::new(table), understood: None, unseen: Vec::new() }) as Box<dyn SequenceTask>)
    }

    fn understood(&self) -> Option<&str> {
        self.understood.as_deref()
    }

    fn unseen_names(&self) -> &[UnseenNames] {
        &self.unseen
    }

    fn has_test_file(&self) -> bool {
        self.table.config.division.test.is_some()
    }
}
