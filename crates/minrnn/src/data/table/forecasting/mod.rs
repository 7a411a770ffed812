//! Forecasting: at every step the next `horizon` values of some columns, from everything read before.
//!
//! The model reads numbers `x[t]` and predicts, all at once, `y[t + 1] … y[t + H]`:
//!
//! ```text
//! time      0 ──────────────── training ──── validation ──── n
//! part      training           validation    test
//! scored    t + 1 < training   t ≥ training − 1, t + H < validation   …
//! ```
//!
//! where: H is the horizon, n the length of a sequence. Rows of a validation or test file follow those of the training file in the sequence
//! of the same name; its other sequences belong to that part from their first step on. Without such files the parts are taken from the end
//! of every sequence that has room for them ([`parts`]). A step is scored in a part if what it predicts lies there, so nothing scored was
//! trained on; near the end of the training part, values beyond it are missing. Normalisation is determined by the training parts alone. In
//! validation and testing a sequence is read from its first step on: the history before a part is context.

mod backtest;
mod config;
mod errors;
mod evaluation;
mod examples;
mod learned;
mod opening;
mod parts;
mod rows;
mod scaling;
mod spreads;
mod table;
mod windows;

use std::sync::Arc;

use minrnn_model::TableTask;

pub use self::backtest::{Backtest, BacktestErrors, Origin, Origins, TooShort};
pub use self::config::ForecastingConfig;
use self::errors::ForecastErrors;
use self::evaluation::{ForecastEvaluation, whole};
use self::parts::{Bounds, Part};
pub use self::rows::{ForecastRow, ForecastRows};
pub use self::scaling::ScalingChoice;
pub use self::spreads::Spreads;
use self::table::Table;
use self::windows::ForecastWindows;
use super::measure::Comparison;
use super::roles::Understood;
use super::series::Series;
use super::unseen_names::UnseenNames;
use super::{CHUNK_LEN, WholeSeries};
use crate::data::batch::check_shape;
use crate::data::{BatchSource, EvaluationSet, Extent, IoKind, SequenceTask};
use crate::rng::Purpose;
use crate::{Error, Result};

/// The task of forecasting a table's sequences.
#[derive(Debug, Clone)]
pub struct Forecasting {
    table: Arc<Table>,
    understood: Understood,
    unseen: Vec<UnseenNames>,
    /// A sentence that says why no training should begin with it, if so: the season is too long for the training data, or columns are known ahead but
    /// have no place in future rows.
    unfit: Option<String>,
}

/// Minimum number of updates, which a short series needs.
const LEAST_UPDATES: u64 = 100;

/// The part that is scored for `purpose`.
fn part(purpose: Purpose) -> Part {
    match purpose {
        Purpose::TrainData => Part::Training,
        Purpose::ValidationData => Part::Validation,
        _ => Part::Test,
    }
}

impl SequenceTask for Forecasting {
    fn reads(&self) -> IoKind {
        IoKind::Values { width: self.table.n_inputs() }
    }

    fn predicts(&self) -> IoKind {
        IoKind::Values { width: self.table.n_outputs() }
    }

    fn longest(&self) -> usize {
        self.table.series.iter().map(Series::len).max().unwrap_or(0)
    }

    fn extent(&self) -> Option<Extent> {
        let trained = |at: usize| self.table.scored(at, Part::Training).len();
        let lengths = (0..self.table.series.len()).map(trained).filter(|&length| length > 0);
        let (n, steps, longest) = lengths.fold((0, 0, 0), |(n, steps, longest), length| (n + 1, steps + length, length.max(longest)));
        Some(Extent { steps, length: steps.div_ceil(n.max(1)), longest, in_windows: true, least_updates: LEAST_UPDATES })
    }

    fn has_parts(&self) -> bool {
        true
    }

    fn table_task(&self) -> Option<TableTask> {
        Some(self.table.task.clone())
    }

    fn training(&self, batch_size: usize, seed: u64) -> Result<Box<dyn BatchSource>> {
        Ok(Box::new(ForecastWindows::new(Arc::clone(&self.table), batch_size, seed)?))
    }

    fn evaluation(&self, batch_size: usize, _seed: u64, purpose: Purpose, _n_batches: u64) -> Result<Box<dyn EvaluationSet>> {
        check_shape(batch_size, CHUNK_LEN)?;
        let (table, part) = (Arc::clone(&self.table), part(purpose));
        let whole = whole(&table, |series| table.followed(series, part), batch_size);
        Ok(Box::new(ForecastEvaluation { table, part, whole, stride: 1 }))
    }

    fn comparison(&self, purpose: Purpose) -> Option<Box<dyn Comparison>> {
        Some(Box::new(ForecastErrors::new(Arc::clone(&self.table), part(purpose))))
    }

    fn all(&self) -> Option<Box<dyn SequenceTask>> {
        let bounds: Vec<Bounds> = self.table.bounds.iter().map(|bounds| bounds.trained_to(self.table.end_of_all(bounds))).collect();
        let is_more = bounds != self.table.bounds;
        is_more.then(|| {
            let table = Arc::new(Table { bounds, ..Table::clone(&self.table) });
            Box::new(Self { table, understood: None, unseen: Vec::new(), unfit: None }) as Box<dyn SequenceTask>
        })
    }

    fn expect_to_begin(&self) -> Result<()> {
        self.unfit.as_ref().map_or(Ok(()), |sentence| Err(Error::Config(sentence.clone())))
    }

    fn understood(&self) -> Option<&str> {
        self.understood.as_deref()
    }

    fn unseen_names(&self) -> &[UnseenNames] {
        &self.unseen
    }

    fn has_test_file(&self) -> bool {
        self.table.has_test_file
    }
}
