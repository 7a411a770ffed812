//! The next values of every sequence of a table.

use super::{DataConfig, Source, TaskSpec};
use crate::data::IoKind;
use crate::data::table::{Forecasting, ForecastingConfig};
use crate::train::check::require;
use crate::{Error, Needed, Result};

/// Most steps ahead; all of them are outputs of the model.
const MAX_HORIZON: usize = 1 << 14;
/// Most steps of a season; no table that is read has more.
const MAX_SEASON: usize = 1 << 28;

pub(super) const SPEC: TaskSpec = TaskSpec {
    source: Source::Table,
    keys: |data| {
        require((1..=MAX_HORIZON).contains(&data.horizon), || {
            format!("horizon must be between 1 and {MAX_HORIZON} steps ahead, found {}", data.horizon)
        })?;
        require(data.season <= MAX_SEASON, || {
            format!("season must be at most {MAX_SEASON} steps, with 0 for the last value, found {}", data.season)
        })
    },
    steps: |_, train, _| [train.seq_len; 2],
    assumed_io: Some(|data| (data.values(), IoKind::Values { width: data.target.len().max(1) })),
    open: Some(|data, train, _| Ok(Box::new(Forecasting::open(data.table()?, data.forecasting(train.seq_len)?)?))),
    ..TaskSpec::MADE
};

impl DataConfig {
    /// What is forecast in a table, learned in windows of `seq_len` steps.
    ///
    /// # Errors
    /// When no column is named to be forecast, or one twice.
    pub fn forecasting(&self, seq_len: usize) -> Result<ForecastingConfig> {
        if self.target.is_empty() {
            return Err(Error::needed(Needed::Target, "to forecast, name the columns that are to be predicted"));
        }
        self.expect_columns_once()?;
        Ok(ForecastingConfig {
            columns: self.columns.clone(),
            target: self.target.clone(),
            group: Some(self.group.clone()).filter(|group| !group.is_empty()),
            horizon: self.horizon,
            season: self.season,
            train_fraction: self.train_fraction,
            seq_len,
        })
    }
}
