//! Flags of `minrnn train` that say what is learned from a table or from recorded episodes; each is also a key of `[data]`.

use std::path::PathBuf;

use clap::ValueEnum;
use minrnn::data::table::{CalendarPart, LayoutChoice, Missing};
use minrnn::train::{DataConfig, Task, readable};

use crate::failure::WrongInput;

/// What is learned from a file that is no text.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum FileTask {
    /// The class of every sequence
    Classify,
    /// A number for every sequence
    Regress,
    /// The next values of every sequence
    Forecast,
    /// The action at every step of recorded episodes, from a file of trajectories
    Policy,
}

/// What is done with a number that is missing.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum HowMissing {
    /// Refuse it
    Error,
    /// Read the last known one instead
    ForwardFill,
    /// The same, and tell the model that it is missing
    Mask,
}

/// How the series of a table lie.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum HowLaid {
    /// A row for each step
    Long,
    /// A row for each series, with a column for each step
    WideSeries,
    /// A row for each time, with a column for each series
    WideColumns,
}

/// To be flattened into the arguments of a command.
#[derive(clap::Args)]
#[command(next_help_heading = "Tables")]
pub struct TaskArgs {
    /// What to learn from the table or the recorded episodes in --data
    #[arg(long, value_name = "TASK")]
    task: Option<FileTask>,
    /// The column with the class or the number of a sequence, or the columns to forecast, separated by commas [default: the one called class; to
    /// forecast, y or value]
    #[arg(long, value_name = "COLUMNS", value_delimiter = ',')]
    target: Vec<String>,
    /// The column with the name of each row's sequence [default: the one called series or, to forecast, unique_id; to forecast without one but with
    /// --target, the table is one sequence]
    #[arg(long, value_name = "COLUMN")]
    group: Option<String>,
    /// The column with the time of each row [default: the one called ds, date, time, timestamp or datetime; to forecast also
    /// the only column with dates, whatever its name; without one, rows are in order]
    #[arg(long, value_name = "COLUMN")]
    time: Option<String>,
    /// How the series are laid out in the table [default: a row for each step, unless its columns clearly show another layout]
    #[arg(long, value_name = "LAYOUT")]
    layout: Option<HowLaid>,
    /// What to do with a missing number: an empty cell, NaN, NA, null, none or ? [default: error]
    #[arg(long, value_name = "HOW")]
    missing: Option<HowMissing>,
    /// Columns to read, of numbers or of at most 64 different names, separated by commas [default: classify: all others; forecast: the target]
    #[arg(long, value_name = "COLUMNS", value_delimiter = ',')]
    columns: Vec<String>,
    /// Weight of each class in training: balanced, or weights such as worn=5,broken=20 (for a name with a comma, use --set
    /// 'class_weights=["worn, badly=5"]') [default: all the same]
    #[arg(long, value_name = "WEIGHTS", value_delimiter = ',')]
    class_weights: Vec<String>,
    /// Forecast this many steps ahead [default: 1]
    #[arg(long, value_name = "N")]
    horizon: Option<usize>,
    /// Steps in a season: forecasts are compared with the values one season earlier [default: what is usual for the interval between the times, such
    /// as 12 months or 24 hours; without times, the last value]
    #[arg(long, value_name = "N")]
    season: Option<usize>,
    /// Also read these parts of the calendar from the time column: month, quarter, day, weekday, hour
    #[arg(long, value_name = "PARTS", value_delimiter = ',')]
    calendar: Vec<CalendarPart>,
    /// Columns that are known ahead, such as prices or holidays, separated by commas; predict reads their future values from --future FILE
    #[arg(long, value_name = "COLUMNS", value_delimiter = ',')]
    known_ahead: Vec<String>,
    /// Forecast these quantiles of every value, in increasing order and including 0.5 [default: 0.1,0.5,0.9]
    #[arg(long, value_name = "LEVELS", value_delimiter = ',')]
    quantiles: Vec<f64>,
    /// A table to score at the end and never train on; for forecasts, what follows the sequences of --data [default: a part of --data]
    #[arg(long, value_name = "FILE")]
    test: Option<PathBuf>,
    /// A table to choose the best checkpoint by, with train.keep = best [default: a part of --data]
    #[arg(long, value_name = "FILE")]
    validation: Option<PathBuf>,
}

impl TaskArgs {
    /// The built-in experiment of the task.
    pub fn experiment(&self) -> Option<&'static str> {
        self.task.map(|task| match task {
            FileTask::Classify => "classify",
            FileTask::Regress => "regress",
            FileTask::Forecast => "forecast",
            FileTask::Policy => "policy",
        })
    }

    /// Puts what is given in place of `data`'s own.
    pub fn apply(&self, data: &mut DataConfig) -> anyhow::Result<()> {
        match self.task {
            Some(FileTask::Classify) => data.task = Task::Classify,
            Some(FileTask::Regress) => data.task = Task::Regress,
            Some(FileTask::Forecast) => data.task = Task::Forecast,
            Some(FileTask::Policy) => data.task = Task::Policy,
            None => {}
        }
        if !data.task.reads_table() {
            let given = [
                ("--target", !self.target.is_empty()),
                ("--group", self.group.is_some()),
                ("--time", self.time.is_some()),
                ("--layout", self.layout.is_some()),
                ("--missing", self.missing.is_some()),
                ("--columns", !self.columns.is_empty()),
                ("--class-weights", !self.class_weights.is_empty()),
                ("--horizon", self.horizon.is_some()),
                ("--season", self.season.is_some()),
                ("--calendar", !self.calendar.is_empty()),
                ("--known-ahead", !self.known_ahead.is_empty()),
                ("--quantiles", !self.quantiles.is_empty()),
                ("--test", self.test.is_some()),
                ("--validation", self.validation.is_some()),
            ];
            return match given.iter().find(|(_, is_given)| *is_given) {
                Some((flag, _)) => Err(WrongInput(format!("{flag} is for tables; add --task classify, regress or forecast")).into()),
                None => Ok(()),
            };
        }
        let belong = [
            ("--class-weights", !self.class_weights.is_empty(), Task::Classify, "classify"),
            ("--horizon", self.horizon.is_some(), Task::Forecast, "forecast"),
            ("--season", self.season.is_some(), Task::Forecast, "forecast"),
            ("--calendar", !self.calendar.is_empty(), Task::Forecast, "forecast"),
            ("--known-ahead", !self.known_ahead.is_empty(), Task::Forecast, "forecast"),
            ("--quantiles", !self.quantiles.is_empty(), Task::Forecast, "forecast"),
        ];
        if let Some((flag, _, _, task)) = belong.iter().find(|(_, is_given, task, _)| *is_given && *task != data.task) {
            return Err(WrongInput(format!("{flag} is for --task {task}; leave it out, or choose that task")).into());
        }
        if !self.target.is_empty() {
            data.table.target.clone_from(&self.target);
        }
        if !self.columns.is_empty() {
            data.table.columns.clone_from(&self.columns);
        }
        if !self.class_weights.is_empty() {
            data.table.class_weights.clone_from(&self.class_weights);
        }
        if let Some(layout) = self.layout {
            data.table.layout = match layout {
                HowLaid::Long => LayoutChoice::Long,
                HowLaid::WideSeries => LayoutChoice::WideSeries,
                HowLaid::WideColumns => LayoutChoice::WideColumns,
            };
        }
        if let Some(missing) = self.missing {
            data.table.missing = match missing {
                HowMissing::Error => Missing::Error,
                HowMissing::ForwardFill => Missing::ForwardFill,
                HowMissing::Mask => Missing::Mask,
            };
        }
        if let Some(time) = &self.time {
            data.table.time.clone_from(time);
        }
        if let Some(group) = &self.group {
            data.table.group.clone_from(group);
        }
        if !self.calendar.is_empty() {
            data.forecast.calendar.clone_from(&self.calendar);
        }
        if !self.known_ahead.is_empty() {
            data.forecast.known_ahead.clone_from(&self.known_ahead);
        }
        if !self.quantiles.is_empty() {
            data.forecast.quantiles.clone_from(&self.quantiles);
        }
        for (given, path) in [(&self.test, &mut data.table.test), (&self.validation, &mut data.table.validation)] {
            if let Some(given) = given {
                *path = Some(readable(given)?);
            }
        }
        data.forecast.horizon = self.horizon.unwrap_or(data.forecast.horizon);
        data.forecast.season = self.season.unwrap_or(data.forecast.season);
        Ok(())
    }
}
