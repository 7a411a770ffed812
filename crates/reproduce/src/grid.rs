//! A target with the results of its cells.

use std::collections::BTreeSet;

use minrnn::train::Loss;
use minrnn_bench::Line;

use crate::{Baseline, FolderProblem, Line as TargetLine, Metric, Origin, Outcome, Published, Run, Scale, Summary, Target};

/// A target's rows and columns at a scale, filled as far as the work is done.
#[derive(Debug)]
pub struct Grid<'a> {
    /// The target.
    pub target: &'a Target,
    /// The scale.
    pub scale: Scale,
    /// The command that fills it.
    pub command: String,
    /// By row, then by column.
    pub cells: Vec<Vec<Filled>>,
    /// The variant of minGRU or minLSTM of each cell's model, if it is one: `paper` or `official`.
    pub readings: Vec<Vec<Option<&'static str>>>,
    /// The baselines without a model, for each column.
    pub baselines: Vec<Vec<Baseline>>,
    /// The lengths at which a formal language is learned, for each column; `None` for other tasks.
    pub learned_lengths: Vec<Option<(usize, usize)>>,
    /// What its trainings minimise; `None` if nothing is trained.
    pub loss: Option<Loss>,
}

/// The result of a cell.
#[derive(Debug, Clone)]
pub enum Filled {
    /// There is no result of ours, for this reason.
    Quoted(String),
    /// A training with each of several seeds.
    Trained(Vec<(u64, Run)>),
    /// A measurement, once it is made.
    Timed(Option<Box<Line>>),
    /// A measurement that is impossible, for this reason.
    Untimed(String),
    /// Parameters of a mixer.
    Counted(usize),
}

impl Filled {
    /// The results of finished trainings.
    pub fn outcomes(&self) -> impl Iterator<Item = &Outcome> {
        let runs: &[(u64, Run)] = if let Self::Trained(runs) = self { runs } else { &[] };
        runs.iter().filter_map(|(_, run)| if let Run::Done(outcome) = run { Some(&**outcome) } else { None })
    }

    /// Milliseconds of a measurement.
    fn milliseconds(&self) -> Option<f64> {
        if let Self::Timed(Some(line)) = self { Some(line.median_ms) } else { None }
    }
}

impl<'a> Grid<'a> {
    /// A grid without results.
    pub fn empty(target: &'a Target, scale: Scale, command: String) -> Self {
        let (cells, readings) = (Vec::new(), Vec::new());
        Self { target, scale, command, cells, readings, baselines: Vec::new(), learned_lengths: Vec::new(), loss: None }
    }

    /// The variant of a cell's model.
    pub fn reading(&self, row: usize, column: usize) -> Option<&'static str> {
        *self.readings.get(row)?.get(column)?
    }

    /// The names of baselines, each once.
    pub fn baseline_names(&self) -> Vec<&str> {
        let mut names: Vec<&str> = Vec::new();
        for baseline in self.baselines.iter().flatten() {
            if !names.contains(&baseline.name.as_str()) {
                names.push(&baseline.name);
            }
        }
        names
    }

    /// The value of the baseline `name` in a column.
    pub fn baseline(&self, name: &str, metric: Metric, column: usize) -> Option<f64> {
        self.baselines.get(column)?.iter().find(|baseline| baseline.name == name)?.value(metric)
    }

    /// Every row and column with its cell.
    pub fn iter(&self) -> impl Iterator<Item = (usize, usize, &Filled)> {
        let rows = self.cells.iter().enumerate();
        rows.flat_map(|(row, cells)| cells.iter().enumerate().map(move |(column, cell)| (row, column, cell)))
    }

    /// Our values, one for each seed that has one.
    pub fn values(&self, metric: Metric, row: usize, column: usize) -> Vec<f64> {
        let cell = &self.cells[row][column];
        let counterpart = self.target.counterpart(row).map(|row| &self.cells[row][column]);
        match cell {
            Filled::Trained(_) => cell.outcomes().filter_map(|outcome| Self::value_of(metric, outcome)).collect(),
            Filled::Timed(Some(line)) => {
                let others = counterpart.and_then(Filled::milliseconds);
                let value = match metric {
                    Metric::Milliseconds => Some(line.median_ms),
                    Metric::MillisecondsPerStep => Some(line.median_ms / line.seq_len as f64),
                    Metric::Mebibytes => Some(line.peak_mib),
                    Metric::SpeedUp => others.map(|others| others / line.median_ms),
                    Metric::TimeSavedPercent => others.map(|others| 100.0 * (1.0 - line.median_ms / others)),
                    _ => None,
                };
                value.into_iter().collect()
            }
            Filled::Counted(own) => match counterpart {
                Some(Filled::Counted(others)) if metric == Metric::ParameterPercent => vec![100.0 * *own as f64 / *others as f64],
                _ => Vec::new(),
            },
            _ => Vec::new(),
        }
    }

    /// The value of a training.
    pub fn value_of(metric: Metric, outcome: &Outcome) -> Option<f64> {
        match metric {
            Metric::Accuracy => outcome.accuracy,
            Metric::ScaledAccuracy => outcome.scaled_accuracy(),
            Metric::AccuracyPercent => outcome.accuracy.map(|accuracy| 100.0 * accuracy),
            Metric::Loss => Some(outcome.loss),
            Metric::BestIteration => Some(outcome.best_iteration as f64),
            Metric::IterationsTo90Percent => outcome.iterations_to(0.9).map(|iteration| iteration as f64),
            _ => None,
        }
    }

    /// Mean and deviation of our values.
    pub fn summary(&self, metric: Metric, row: usize, column: usize) -> Option<Summary> {
        Summary::of(&self.values(metric, row, column))
    }

    /// The published value.
    pub fn published(&self, metric: Metric, row: usize, column: usize) -> Published {
        self.target.published(metric, row, column)
    }

    /// `row, column`, or only the row if there is a single column.
    pub fn label(&self, row: usize, column: usize) -> String {
        self.target.label(row, column)
    }

    /// The machines and programs of the results.
    pub fn origins(&self) -> BTreeSet<Origin> {
        let of_cell = |cell: &Filled| -> Vec<Origin> {
            match cell {
                Filled::Timed(Some(line)) => {
                    let device = if line.on_processor() { "cpu".to_owned() } else { line.machine.clone() };
                    vec![Origin { machine: line.machine.clone(), threads: line.threads, device, commit: line.commit.clone() }]
                }
                Filled::Trained(runs) => runs.iter().flat_map(|(_, run)| run.origins()).collect(),
                _ => Vec::new(),
            }
        };
        self.iter().flat_map(|(_, _, cell)| of_cell(cell)).collect()
    }

    /// Sentences about what could not be run, each with the cells it concerns, among those selected by `is_among` (row, column).
    pub fn problems(&self, is_among: impl Fn(usize, usize) -> bool) -> Vec<String> {
        let mut found: Vec<(String, Vec<String>)> = Vec::new();
        let mut note = |what: String, sentence: &String| match found.iter_mut().find(|(known, _)| known == sentence) {
            Some((_, cells)) => cells.push(what),
            None => found.push((sentence.clone(), vec![what])),
        };
        for (row, column, cell) in self.iter().filter(|&(row, column, _)| is_among(row, column)) {
            let label = self.label(row, column);
            match cell {
                Filled::Untimed(sentence) => note(label, sentence),
                Filled::Trained(runs) => {
                    for (seed, run) in runs {
                        if let Run::Failed(sentence) | Run::Refused(sentence) = run {
                            note(format!("{label} (seed {seed})"), sentence);
                        }
                    }
                }
                _ => {}
            }
        }
        found.into_iter().map(|(sentence, cells)| format!("{}: {sentence}", cells.join("; "))).collect()
    }

    /// The runs that other processes are working on, in the cells selected by `is_among` (row, column).
    pub fn elsewhere(&self, is_among: impl Fn(usize, usize) -> bool) -> Vec<String> {
        let mut found = Vec::new();
        for (row, column, cell) in self.iter().filter(|&(row, column, _)| is_among(row, column)) {
            let Filled::Trained(runs) = cell else { continue };
            let elsewhere = runs.iter().filter(|(_, run)| matches!(run, Run::Elsewhere));
            found.extend(elsewhere.map(|(seed, _)| format!("{} (seed {seed})", self.label(row, column))));
        }
        found
    }

    /// Sentences about what must be redone, each with its cells and their values, among those selected by `is_among` (row, column).
    pub fn outdated(&self, is_among: impl Fn(usize, usize) -> bool) -> Vec<String> {
        /// Cells with what each of their runs found.
        type Cells = Vec<(String, Vec<String>)>;

        let metric = self.target.metrics[0];
        let mut found: Vec<(String, Cells)> = Vec::new();
        for (row, column, cell) in self.iter().filter(|&(row, column, _)| is_among(row, column)) {
            let Filled::Trained(runs) = cell else { continue };
            for (_, run) in runs {
                let Run::Outdated(outcome, problem) = run else { continue };
                let why = match problem {
                    FolderProblem::OtherSettings { found, wanted } => format!("made with {found}; requested: {wanted}"),
                    problem => problem.to_string(),
                };
                let value = Self::value_of(metric, outcome).map_or_else(String::new, |value| format!("{value:.*}", metric.decimals(value)));
                let at = found.iter().position(|(known, _)| *known == why).unwrap_or_else(|| {
                    found.push((why, Vec::new()));
                    found.len() - 1
                });
                let (cells, label) = (&mut found[at].1, self.label(row, column));
                match cells.iter_mut().find(|(known, _)| *known == label) {
                    Some((_, values)) => values.push(value),
                    None => cells.push((label, vec![value])),
                }
            }
        }
        let cells =
            |cells: Cells| cells.into_iter().map(|(label, values)| format!("{label} {}", values.join(", "))).collect::<Vec<_>>().join("; ");
        found.into_iter().map(|(why, of)| format!("{}: {why}", cells(of))).collect()
    }

    /// Why we have no result: each reason with its rows or columns.
    pub fn reasons(&self) -> Vec<String> {
        let lines = self.target.rows.iter().chain(&self.target.columns);
        let mut found: Vec<(&str, Vec<&str>)> = Vec::new();
        for line in lines {
            let Some(why) = line.reason_at(self.scale) else { continue };
            match found.iter_mut().find(|(known, _)| known == why) {
                Some((_, labels)) => labels.push(&line.label),
                None => found.push((why, vec![&line.label])),
            }
        }
        let beside = |row: &TargetLine| Some(format!("{}: only in {}", row.label, row.only_at(self.scale)?.join(", ")));
        let found = found.into_iter().map(|(why, labels)| format!("{}: {why}", labels.join(", ")));
        found.chain(self.target.rows.iter().filter_map(beside)).collect()
    }

    /// Number of pieces of work done, and in total.
    pub fn progress(&self) -> (usize, usize) {
        let of_cell = |cell: &Filled| match cell {
            Filled::Quoted(_) => (0, 0),
            Filled::Trained(runs) => (cell.outcomes().count(), runs.len()),
            Filled::Timed(line) => (usize::from(line.is_some()), 1),
            Filled::Untimed(_) => (0, 1),
            Filled::Counted(_) => (1, 1),
        };
        self.iter().map(|(_, _, cell)| of_cell(cell)).fold((0, 0), |sum, cell| (sum.0 + cell.0, sum.1 + cell.1))
    }
}
