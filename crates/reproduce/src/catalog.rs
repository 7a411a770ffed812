//! The tables and figures: files in `experiments/`, built into the crate.
//!
//! A target is a grid. Every pair of a row and a column is one piece of work (a training with several seeds, a measurement of speed, a
//! count of parameters) or only quoted, and every metric of the target is one table over that grid, with the published numbers beside ours.
//! Settings override each other in this order: the target's, its scale's, the column's, its scale's, the row's, its scale's.

use std::collections::{BTreeMap, HashMap};

use minrnn_kernels::choices;
use serde::Deserialize;

use crate::{Error, Metric, Published, Result};

choices! {
    /// How much of an experiment is run.
    Scale, "scale" {
        /// Everything end to end in minutes; the numbers mean nothing.
        Smoke = "smoke",
        /// Sizes that run on a CPU.
        #[default]
        Cpu = "cpu",
        /// The full settings.
        Paper = "paper",
    }
}

/// The kind of work that fills a target's grid.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Work {
    /// Trainings; `base` is an experiment.
    #[default]
    Train,
    /// Measurements of speed; `base` is a bench, settings are those of the `bench` command.
    Bench,
    /// Counts of the parameters in a mixer's products with the input and with the previous state; `base` is an experiment.
    CountParameters,
    /// No work: all numbers are published ones.
    Quote,
}

/// What a target's picture shows.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Show {
    /// A dot for every row and column, with the first metric.
    #[default]
    Dots,
    /// The test loss over the iterations, a line for each row.
    LossCurves,
    /// The accuracy over the iterations, a line for each row.
    AccuracyCurves,
    /// Each metric over the columns' `x`, a line for each row.
    Lines,
}

/// A table or a figure.
#[derive(Debug, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub struct Target {
    /// The name it is requested by.
    pub name: String,
    /// Its heading.
    pub title: String,
    /// The source of the published numbers.
    pub source: String,
    /// The kind of work that fills it.
    #[serde(default)]
    pub work: Work,
    /// The experiment or bench; rows and columns may override it.
    pub base: Option<String>,
    /// Folder of its runs; targets with the same folder share runs of the same name.
    pub runs: Option<String>,
    /// The metrics, with one table each.
    pub metrics: Vec<Metric>,
    /// What its picture shows.
    #[serde(default)]
    pub show: Show,
    /// The label of x in a picture of lines.
    #[serde(default)]
    pub x_label: String,
    /// Notes below the results.
    #[serde(default)]
    pub notes: Vec<String>,
    /// Settings of every cell, `key=value`.
    #[serde(default)]
    pub settings: Vec<String>,
    #[serde(default)]
    smoke: Effort,
    #[serde(default)]
    cpu: Effort,
    #[serde(default)]
    paper: Effort,
    /// The columns.
    pub columns: Vec<Line>,
    /// The rows.
    pub rows: Vec<Line>,
}

/// The amount of work at a scale.
#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Effort {
    /// Number of trainings of each kind.
    #[serde(default)]
    pub seeds: u64,
    /// Expected time of one run on two cores; `None` if it has to be measured first.
    pub minutes: Option<f64>,
    /// Settings of every cell.
    #[serde(default)]
    pub settings: Vec<String>,
    /// Notes below the results at this scale.
    #[serde(default)]
    pub notes: Vec<String>,
    /// Selective copying: further lengths at which solved models are scored.
    #[serde(default)]
    pub longer: Vec<usize>,
}

/// A row or a column.
#[derive(Debug, Default, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub struct Line {
    /// Its heading.
    pub label: String,
    /// The experiment or bench that replaces the target's.
    pub base: Option<String>,
    /// Why its numbers are only quoted.
    pub quoted: Option<String>,
    /// Scales at which it is not run, and why.
    #[serde(default)]
    pub left_out: HashMap<Scale, String>,
    /// Number of trainings of each kind at a scale, if different from the others; a row's number overrides a column's.
    #[serde(default)]
    seeds: HashMap<Scale, u64>,
    /// Rows: the columns that it is run in at a scale, if not in all.
    #[serde(default)]
    only: HashMap<Scale, Vec<String>>,
    /// Its turn: lower numbers are done first, and a row's turn takes precedence over a column's.
    #[serde(default)]
    pub turn: u64,
    /// Rows: name of the runs, if it is not that of row and column.
    pub run: Option<String>,
    /// Rows: label of the row that relative metrics compare with.
    pub counterpart: Option<String>,
    /// Columns: their x in a picture of lines.
    pub x: Option<f64>,
    #[serde(default)]
    settings: Vec<String>,
    #[serde(default)]
    smoke: Vec<String>,
    #[serde(default)]
    cpu: Vec<String>,
    #[serde(default)]
    paper: Vec<String>,
    /// Rows: the published values of a metric, one for each column; empty if there is none.
    #[serde(default)]
    pub published: BTreeMap<Metric, Vec<String>>,
    /// Rows: our numbers that were not made by this command, which only shows them.
    #[serde(default)]
    pub recorded: BTreeMap<Metric, Vec<String>>,
}

impl Line {
    /// Why it is not run at `scale`, if it is not.
    pub fn reason_at(&self, scale: Scale) -> Option<&String> {
        self.quoted.as_ref().or_else(|| self.left_out.get(&scale))
    }

    /// Why a row is not run in the column of that label at `scale`, although it is in others.
    pub fn reason_beside(&self, scale: Scale, column: &str) -> Option<String> {
        let only = self.only.get(&scale)?;
        (!only.iter().any(|label| label == column)).then(|| format!("run only in {}", only.join(", ")))
    }

    /// Columns that a row is run in at `scale`, if not in all.
    pub fn only_at(&self, scale: Scale) -> Option<&[String]> {
        self.only.get(&scale).map(Vec::as_slice)
    }

    /// Number of trainings of each kind at `scale`, if different from the others.
    pub fn seeds_at(&self, scale: Scale) -> Option<u64> {
        self.seeds.get(&scale).copied()
    }

    /// Its settings at `scale`, in order.
    pub fn settings_at(&self, scale: Scale) -> impl Iterator<Item = &String> {
        self.settings.iter().chain(match scale {
            Scale::Smoke => &self.smoke,
            Scale::Cpu => &self.cpu,
            Scale::Paper => &self.paper,
        })
    }
}

impl Target {
    /// The amount of work at `scale`.
    pub fn effort(&self, scale: Scale) -> &Effort {
        match scale {
            Scale::Smoke => &self.smoke,
            Scale::Cpu => &self.cpu,
            Scale::Paper => &self.paper,
        }
    }

    /// The published value of `metric`; empty if there is none.
    pub fn published(&self, metric: Metric, row: usize, column: usize) -> Published {
        let texts = self.rows[row].published.get(&metric);
        texts.and_then(|texts| texts.get(column)).map(|text| Published::parse(text)).unwrap_or_default()
    }

    /// Our recorded value of `metric`; empty if there is none.
    pub fn recorded(&self, metric: Metric, row: usize, column: usize) -> &str {
        let texts = self.rows[row].recorded.get(&metric);
        texts.and_then(|texts| texts.get(column)).map_or("", String::as_str)
    }

    /// `row, column`, or only the row if there is a single column.
    pub fn label(&self, row: usize, column: usize) -> String {
        let (row, column) = (&self.rows[row].label, &self.columns[column].label);
        if self.columns.len() == 1 || column.is_empty() { row.clone() } else { format!("{row}, {column}") }
    }

    /// The row that relative metrics compare `row` with.
    pub fn counterpart(&self, row: usize) -> Option<usize> {
        let label = self.rows[row].counterpart.as_ref()?;
        self.rows.iter().position(|row| row.label == *label)
    }
}

macro_rules! built_in {
    ($($name:literal,)+) => {
        const TEXTS: &[(&str, &str)] =
            &[$(($name, include_str!(concat!("../experiments/", $name, ".toml"))),)+];
    };
}

built_in! {
    "table1",
    "table2",
    "table3",
    "table4",
    "table5",
    "table6",
    "figure1",
    "figure2",
    "figure3",
    "figure4",
    "figure5",
    "parameters",
    "xlstm-parity",
    "xlstm-mqar",
    "xlstm-nearest-neighbour",
}

/// Other names of targets.
const ALIASES: [(&str, &str); 1] = [("shakespeare", "figure2")];

/// The names of all targets, and `all`.
pub fn names() -> impl Iterator<Item = &'static str> {
    TEXTS.iter().map(|(name, _)| *name).chain(ALIASES.map(|(alias, _)| alias)).chain(["all"])
}

/// Every target in the order of the list.
///
/// # Errors
/// When a file is malformed, which a test rules out.
pub fn all() -> Result<Vec<Target>> {
    TEXTS.iter().map(|(name, text)| parse(name, text)).collect()
}

/// The target of that name or alias; `None` for an unknown one.
///
/// # Errors
/// As [`all`].
pub fn find(name: &str) -> Result<Option<Target>> {
    let name = ALIASES.iter().find(|(alias, _)| *alias == name).map_or(name, |(_, name)| name);
    TEXTS.iter().find(|(known, _)| *known == name).map(|(name, text)| parse(name, text)).transpose()
}

fn parse(name: &str, text: &str) -> Result<Target> {
    toml::from_str(text).map_err(|error| Error::Target { target: name.to_owned(), problem: error.to_string() })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Job, plan};
    use minrnn::train::Experiment;

    #[test]
    fn every_target_is_whole() {
        for ((name, _), target) in TEXTS.iter().zip(all().unwrap()) {
            assert_eq!(target.name, *name);
            assert!(target.title.len() > 10 && target.source.len() > 5 && !target.metrics.is_empty(), "{name}");
            assert!(!target.rows.is_empty() && !target.columns.is_empty(), "{name}");
            for (at, row) in target.rows.iter().enumerate() {
                for (metric, numbers) in row.published.iter().chain(&row.recorded) {
                    assert!(target.metrics.contains(metric), "{name}, {}: {metric:?} is not shown", row.label);
                    assert_eq!(numbers.len(), target.columns.len(), "{name}, {}: numbers", row.label);
                }
                assert_eq!(row.counterpart.is_some(), target.counterpart(at).is_some(), "{name}, {}: counterpart", row.label);
                assert!(!row.label.contains(['|', '\n']), "{name}: {}", row.label);
            }
            if target.work != Work::Quote && target.work != Work::CountParameters {
                for &scale in Scale::ALL {
                    assert!(target.effort(scale).seeds > 0, "{name}: seeds at {}", scale.name());
                }
                assert!(target.smoke.minutes.is_some() && target.cpu.minutes.is_some(), "{name}: expected minutes");
            }
            if target.show == Show::Lines {
                assert!(target.columns.iter().all(|column| column.x.is_some()), "{name}: x of columns");
            }
        }
    }

    #[test]
    fn every_cell_has_settings_that_fit_and_runs_of_one_name_are_one_run() {
        for &scale in Scale::ALL {
            let mut runs = HashMap::new();
            for target in all().unwrap() {
                for cell in plan(&target, scale).unwrap_or_else(|error| panic!("{} at {}: {error:#}", target.name, scale.name())) {
                    match cell.job {
                        Job::Train(training) => {
                            // Tables that share a run describe it differently.
                            let settings = Experiment { description: String::new(), ..training.experiment };
                            let first = runs.entry(training.id.clone()).or_insert_with(|| settings.clone());
                            assert_eq!(*first, settings, "{}: two experiments at {}", training.id, scale.name());
                        }
                        Job::Bench(_) | Job::CountParameters(_) | Job::Quote(_) => {}
                    }
                }
            }
        }
    }

    #[test]
    fn names_and_aliases_are_found() {
        assert_eq!(find("table1").unwrap().unwrap().name, "table1");
        assert_eq!(find("shakespeare").unwrap().unwrap().name, "figure2");
        assert!(find("table9").unwrap().is_none());
        assert!(names().any(|name| name == "all"));
    }

    #[test]
    fn the_published_numbers_of_table_1_are_the_papers() {
        let table = find("table1").unwrap().unwrap();
        let at = |row, column| table.published(Metric::AccuracyPercent, row, column).value;
        assert_eq!((at(0, 0), at(0, 2), at(1, 1)), (Some(37.6), Some(96.0), Some(96.8)));
    }
}
