//! Flags of `minrnn train` that say what is learned from a table or from recorded episodes; each is also a key of `[data]`.

use std::path::PathBuf;

use clap::ValueEnum;
use minrnn::data::table::{CalendarPart, LayoutChoice, Missing};
use minrnn::train::{DataConfig, Task, readable};

use crate::failure::WrongInput;

/// What is learned from a file that is not text.
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

/// What is done with a missing number.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum HowMissing {
    /// Refuse it
    Error,
    /// Read the last known one instead
    ForwardFill,
    /// The same, and tell the model that it is missing
    Mask,
}

/// How the series of a table are laid out.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum HowLaid {
    /// What the columns show
    Auto,
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
    /// The column with the class or the number of a sequence, or the columns to forecast, separated by commas [default: the one called class, for a
    /// number else target; to forecast, y or value]
    #[arg(long, value_name = "COLUMNS", value_delimiter = ',')]
    target: Vec<String>,
    /// The column with the name of each row's sequence [default: the one called series or, to forecast, unique_id; without one, a forecast with
    /// --target takes the table as one sequence]
    #[arg(long, value_name = "COLUMN")]
    group: Option<String>,
    /// The column with the time of each row [default: the one called ds, date, time, timestamp or datetime; to forecast also
    /// the only column with dates, whatever its name; without one, rows are in order]
    #[arg(long, value_name = "COLUMN")]
    time: Option<String>,
    /// How the series are laid out in the table [default: a row for each step, unless its columns clearly show another layout]
    #[arg(long, value_name = "LAYOUT")]
    layout: Option<HowLaid>,
    /// What to do with a missing number: an empty cell, NaN, NA, N/A, null, none or ? [default: error]
    #[arg(long, value_name = "HOW")]
    missing: Option<HowMissing>,
    /// Columns to read, with numbers or at most 64 different names, separated by commas [default: all others; to forecast, the target]
    #[arg(long, value_name = "COLUMNS", value_delimiter = ',')]
    columns: Vec<String>,
    /// Weight of each class in training: balanced, or weights such as worn=5,broken=20 (for a name with a comma, use --set
    /// 'class_weights=["worn, badly=5"]') [default: all the same]
    #[arg(long, value_name = "WEIGHTS", allow_hyphen_values = true, value_delimiter = ',')]
    class_weights: Vec<String>,
    /// Forecast this many steps ahead [default: 1]
    #[arg(long, value_name = "N", allow_negative_numbers = true)]
    horizon: Option<usize>,
    /// Steps in a season: forecasts are compared with the values one season earlier [default: what is usual for the interval between the times, such
    /// as 12 months or 24 hours; without times, or if no sequence is longer, the last value]
    #[arg(long, value_name = "N", allow_negative_numbers = true)]
    season: Option<usize>,
    /// Also read these parts of the calendar from the time column: month, quarter, day, weekday, hour
    #[arg(long, value_name = "PARTS", value_delimiter = ',')]
    calendar: Vec<CalendarPart>,
    /// Columns that are known ahead, such as prices or holidays, separated by commas; predict reads their future values from --future FILE
    #[arg(long, value_name = "COLUMNS", value_delimiter = ',')]
    known_ahead: Vec<String>,
    /// Forecast these quantiles of every value, in increasing order and including 0.5 [default: 0.1,0.5,0.9]
    #[arg(long, value_name = "LEVELS", allow_hyphen_values = true, value_delimiter = ',')]
    quantiles: Vec<f64>,
    /// A table to score at the end and never train on; for forecasts, what follows the sequences of --data [default: a part of --data]
    #[arg(long, value_name = "FILE")]
    test: Option<PathBuf>,
    /// A table to choose the best checkpoint by [default: the last one is kept, or with train.keep = best a part of --data chooses]
    #[arg(long, value_name = "FILE")]
    validation: Option<PathBuf>,
}

impl From<FileTask> for Task {
    fn from(task: FileTask) -> Self {
        match task {
            FileTask::Classify => Self::Classify,
            FileTask::Regress => Self::Regress,
            FileTask::Forecast => Self::Forecast,
            FileTask::Policy => Self::Policy,
        }
    }
}

impl TaskArgs {
    /// The built-in experiment of the task, which has its name.
    pub fn experiment(&self) -> Option<&'static str> {
        self.task.map(|task| Task::from(task).name())
    }

    /// Whether a table to validate with is given.
    pub fn validates(&self) -> bool {
        self.validation.is_some()
    }

    /// All flags, and whether each is given.
    fn flags(&self) -> [(&'static str, bool); 15] {
        [
            ("--task", self.task.is_some()),
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
        ]
    }

    /// The flags that are given, each with the key of `[data]` that it stands for.
    fn given(&self) -> impl Iterator<Item = (&'static str, String)> {
        self.flags().into_iter().filter(|(_, is_given)| *is_given).map(|(flag, _)| (flag, key_of(flag)))
    }

    /// Refuses a flag beside one of `settings` for the same key, since one would override the other.
    pub fn expect_said_once(&self, settings: &[String]) -> Result<(), WrongInput> {
        let keys = || settings.iter().filter_map(|setting| setting.split_once('=')).map(|(key, _)| key.trim());
        let is_set = |own: &str| keys().any(|key| key.strip_prefix("data.").unwrap_or(key) == own);
        let twice = self.given().find(|(_, key)| is_set(key));
        twice.map_or(Ok(()), |(flag, key)| Err(WrongInput(format!("{flag} and --set {key} are both given; leave one of them out"))))
    }

    /// Refuses a flag that is for another task than `task`.
    fn expect_flags_of(&self, task: Task) -> Result<(), WrongInput> {
        let mut given = self.given().filter(|(flag, _)| *flag != "--task");
        if !task.reads_table() {
            let refused = |flag| WrongInput(format!("{flag} is for tables; add --task classify, regress or forecast"));
            return given.next().map_or(Ok(()), |(flag, _)| Err(refused(flag)));
        }
        let other = given.find_map(|(flag, key)| Some((flag, DataConfig::readers(&key))).filter(|(_, readers)| !readers.contains(&task)));
        let Some((flag, readers)) = other else { return Ok(()) };
        let readers: Vec<&str> = readers.into_iter().map(Task::name).collect();
        Err(WrongInput(format!("{flag} is for --task {}; leave it out, or choose that task", readers.join(" or "))))
    }

    /// Replaces settings of `data` with those that are given.
    pub fn apply(&self, data: &mut DataConfig) -> anyhow::Result<()> {
        data.task = self.task.map_or(data.task, Task::from);
        self.expect_flags_of(data.task)?;
        if !data.task.reads_table() {
            return Ok(());
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
                HowLaid::Auto => LayoutChoice::Auto,
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

/// The key of `[data]` that `flag` stands for.
fn key_of(flag: &str) -> String {
    flag.trim_start_matches('-').replace('-', "_")
}

#[cfg(test)]
mod tests {
    use clap::{Args, Command, FromArgMatches};

    use super::*;

    #[test]
    fn every_flag_is_listed_and_stands_for_a_key_of_tables() {
        let command = TaskArgs::augment_args(Command::new("train"));
        let known: Vec<String> = command.get_arguments().filter_map(|flag| Some(format!("--{}", flag.get_long()?))).collect();
        let args = TaskArgs::from_arg_matches(&command.get_matches_from(["train"])).unwrap();
        assert_eq!(known, args.flags().map(|(flag, _)| flag));
        for (flag, _) in args.flags().into_iter().skip(1) {
            let readers = DataConfig::readers(&key_of(flag));
            assert!(readers.iter().all(|task| task.reads_table()), "{flag}: {readers:?}");
        }
    }

    #[test]
    fn tasks_have_the_names_that_the_library_has_for_them() {
        for &task in FileTask::value_variants() {
            assert_eq!(task.to_possible_value().unwrap().get_name(), Task::from(task).name());
        }
    }
}
