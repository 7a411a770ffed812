//! Forecasting the next values of every sequence of a table.

use serde::{Deserialize, Serialize};

use super::table::table_task_of_start;
use super::{DataConfig, Loss, Source, TableConfig, TaskSpec, has_key};
use crate::Result;
use crate::data::IoKind;
use crate::data::table::{CalendarPart, Forecasting, ForecastingConfig, ScalingChoice, TableTask, twice};
use crate::train::check::require;
use crate::train::train_config::TrainConfig;

/// Maximum number of steps ahead; all of them are outputs of the model.
const MAX_HORIZON: usize = 1 << 14;
/// Maximum number of values known ahead that are read at a step.
const MAX_LEADS: usize = 1 << 12;
/// Maximum number of steps in a season; no readable table has more.
const MAX_SEASON: usize = 1 << 28;

pub(super) const SPEC: TaskSpec = TaskSpec {
    source: Source::Table,
    reads: |data, key| data.reads_to_forecast(key) || has_key(&data.forecast, key),
    keys: |data| {
        let ForecastConfig { horizon, season, ref quantiles, .. } = data.forecast;
        require((1..=MAX_HORIZON).contains(&horizon), || {
            format!("horizon must be between 1 and {MAX_HORIZON} steps ahead, found {horizon}")
        })?;
        // The loss uses them as f32, where they must not round to 0 or 1.
        let is_level = |level: &f64| *level as f32 > 0.0 && (*level as f32) < 1.0;
        let is_rising = quantiles.windows(2).all(|pair| (pair[0] as f32) < pair[1] as f32) && quantiles.iter().all(is_level);
        require(quantiles.is_empty() || is_rising && quantiles.contains(&0.5), || {
            format!("quantiles must increase between 0 and 1, also rounded to 32 bits, and include 0.5, found {quantiles:?}")
        })?;
        let leads = data.forecast.known_ahead.len().saturating_mul(horizon);
        require(leads <= MAX_LEADS, || {
            format!("known_ahead and horizon make {leads} inputs, expected at most {MAX_LEADS}; name fewer columns or lower the horizon")
        })?;
        let twice = twice(&data.forecast.known_ahead);
        require(twice.is_none(), || format!("known_ahead names the column '{}' twice", twice.map_or("", String::as_str)))?;
        require(season <= MAX_SEASON, || format!("season must be at most {MAX_SEASON} steps, with 0 for the last value, found {season}"))
    },
    steps: |_, train, _| [train.seq_len; 2],
    loss: |data| if data.forecast.quantiles.is_empty() { Loss::SquaredError } else { Loss::Pinball },
    by_accuracy: false,
    assumed_io: Some(|data| (data.table.values(), IoKind::Values { width: data.table.target.len().max(1) })),
    open: Some(|data, train, run| {
        let like = match table_task_of_start(train, run)? {
            Some(TableTask::Forecast(like)) => Some(like),
            _ => None,
        };
        let config = ForecastingConfig { like, ..data.forecasting(train)? };
        Ok(Box::new(Forecasting::open(data.table_path()?, &config)?))
    }),
    held: DataConfig::numbers_of_tables,
    ..TaskSpec::MADE
};

/// What is forecast, and the baseline.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct ForecastConfig {
    /// Number of steps ahead. Default 1.
    pub horizon: usize,
    /// Steps in a season of the naive forecast that the model is compared with, and of the level that numbers are read relative to. Default
    /// 0: the usual one at the pace of the time column (12 months, 7 days, 24 hours, …); without a time column, or if no sequence is
    /// longer, the last value.
    pub season: usize,
    /// Parts of the calendar derived from the time column and read too: `month`, `quarter`, `day`, `weekday`, `hour`. Default none.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub calendar: Vec<CalendarPart>,
    /// Columns that are known ahead, such as prices, holidays and weather forecasts: they are read, as are their values at each of the
    /// forecast steps. Default none.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub known_ahead: Vec<String>,
    /// The level relative to which the numbers of a series are read: `auto`, `standard`, `mean`, `log` or `log1p`. Default `standard`.
    pub scaling: ScalingChoice,
    /// Levels of the quantiles predicted for every value, ascending and including 0.5, which is the point forecast. Default none: the mean.
    pub quantiles: Vec<f64>,
}

impl Default for ForecastConfig {
    fn default() -> Self {
        Self {
            horizon: 1,
            season: 0,
            calendar: Vec::new(),
            known_ahead: Vec::new(),
            scaling: ScalingChoice::default(),
            quantiles: Vec::new(),
        }
    }
}

impl DataConfig {
    /// The forecasting task on a table for a training with settings `train`.
    ///
    /// # Errors
    /// When a column is named twice or has two roles.
    pub fn forecasting(&self, train: &TrainConfig) -> Result<ForecastingConfig> {
        let TableConfig { columns, target, group, validation, test, .. } = &self.table;
        let ForecastConfig { horizon, season, calendar, known_ahead, scaling, quantiles } = self.forecast.clone();
        self.table.expect_columns_once()?;
        require(validation.is_none() || test.is_some(), || {
            "to forecast, validation needs test beside it: the rows to report come after those to choose by; give both, or test alone"
                .to_owned()
        })?;
        Ok(ForecastingConfig {
            columns: columns.clone(),
            calendar,
            known_ahead,
            target: target.clone(),
            group: Some(group.clone()).filter(|group| !group.is_empty()),
            horizon,
            season,
            scaling,
            quantiles,
            like: None,
            division: self.table.division(self.train_fraction, train),
            seq_len: train.seq_len,
        })
    }
}
