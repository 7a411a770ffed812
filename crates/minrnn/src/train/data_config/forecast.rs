//! The next values of every sequence of a table.

use serde::{Deserialize, Serialize};

use super::{DataConfig, Source, TableConfig, TaskSpec};
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
        let ForecastConfig { horizon, season } = data.forecast;
        require((1..=MAX_HORIZON).contains(&horizon), || {
            format!("horizon must be between 1 and {MAX_HORIZON} steps ahead, found {horizon}")
        })?;
        require(season <= MAX_SEASON, || format!("season must be at most {MAX_SEASON} steps, with 0 for the last value, found {season}"))
    },
    steps: |_, train, _| [train.seq_len; 2],
    assumed_io: Some(|data| (data.table.values(), IoKind::Values { width: data.table.target.len().max(1) })),
    open: Some(|data, train, _| Ok(Box::new(Forecasting::open(data.table_path()?, data.forecasting(train.seq_len)?)?))),
    held: DataConfig::numbers_of_text,
    ..TaskSpec::MADE
};

/// What is forecast, and what it is compared with.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct ForecastConfig {
    /// How many steps ahead are predicted. Default 1.
    pub horizon: usize,
    /// Steps of a season of the naive forecast that the model is compared with. Default 0: the last value.
    pub season: usize,
}

impl Default for ForecastConfig {
    fn default() -> Self {
        Self { horizon: 1, season: 0 }
    }
}

impl DataConfig {
    /// What is forecast in a table, learned in windows of `seq_len` steps.
    ///
    /// # Errors
    /// When no column is named to be forecast, or one twice.
    pub fn forecasting(&self, seq_len: usize) -> Result<ForecastingConfig> {
        let (TableConfig { columns, target, group }, ForecastConfig { horizon, season }) = (&self.table, self.forecast);
        if target.is_empty() {
            return Err(Error::needed(Needed::Target, "to forecast, name the columns that are to be predicted"));
        }
        self.table.expect_columns_once()?;
        Ok(ForecastingConfig {
            columns: columns.clone(),
            target: target.clone(),
            group: Some(group.clone()).filter(|group| !group.is_empty()),
            horizon,
            season,
            train_fraction: self.train_fraction,
            seq_len,
        })
    }
}
