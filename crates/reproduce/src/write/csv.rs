//! A target's results as a table with one line for each row, column and metric.

use std::collections::BTreeSet;

use minrnn::csv::quoted;

use crate::{Filled, Grid, Outcome, Run};

const HEADING: [&str; 21] = [
    "target",
    "scale",
    "row",
    "column",
    "metric",
    "published",
    "published_value",
    "published_deviation",
    "ours",
    "deviation",
    "interval",
    "verdict",
    "seeds",
    "values",
    "best_iteration",
    "iterations",
    "seconds",
    "parameters",
    "commit",
    "recorded",
    "note",
];

/// The table, including its header.
pub fn csv(grid: &Grid) -> String {
    let mut text = line(&HEADING.map(str::to_owned));
    for (row, column, cell) in grid.iter() {
        for &metric in &grid.target.metrics {
            let published = grid.published(metric, row, column);
            let (values, summary) = (grid.values(metric, row, column), grid.summary(metric, row, column));
            let number = |value: Option<f64>| value.map(|value| value.to_string()).unwrap_or_default();
            let outcomes: Vec<_> = cell.outcomes().collect();
            let each = |of: &dyn Fn(usize) -> String| (0..outcomes.len()).map(of).collect::<Vec<_>>().join(" ");
            text += &line(&[
                grid.target.name.clone(),
                grid.scale.name().to_owned(),
                grid.target.rows[row].label.clone(),
                grid.target.columns[column].label.clone(),
                metric.name().to_owned(),
                published.text,
                number(published.value),
                number(published.deviation),
                number(summary.map(|summary| summary.mean)),
                number(summary.and_then(|summary| summary.deviation)),
                number(summary.and_then(|summary| summary.reach())),
                grid.verdict(metric, row, column).map(|verdict| format!("{verdict:?}").to_lowercase()).unwrap_or_default(),
                summary.map_or(0, |summary| summary.n).to_string(),
                values.iter().map(f64::to_string).collect::<Vec<_>>().join(" "),
                each(&|at| outcomes[at].best_iteration.to_string()),
                each(&|at| outcomes[at].iterations.to_string()),
                each(&|at| format!("{:.1}", outcomes[at].seconds)),
                outcomes.first().map(|outcome| outcome.parameters.to_string()).unwrap_or_default(),
                commit(cell),
                grid.target.recorded(metric, row, column).to_owned(),
                note(cell),
            ]);
        }
    }
    for (column, line) in grid.target.columns.iter().enumerate() {
        for baseline in grid.baselines.get(column).into_iter().flatten() {
            for (&metric, value) in grid.target.metrics.iter().filter_map(|metric| Some((metric, baseline.value(*metric)?))) {
                let mut fields = vec![String::new(); HEADING.len()];
                let head = [&grid.target.name, grid.scale.name(), &baseline.name, &line.label, metric.name()].map(str::to_owned);
                fields[..head.len()].clone_from_slice(&head);
                fields[8] = value.to_string();
                fields[HEADING.len() - 1] = "uses no model".to_owned();
                text += &self::line(&fields);
            }
        }
    }
    text
}

/// The commits of all programs that made a cell, each once.
fn commit(cell: &Filled) -> String {
    match cell {
        Filled::Timed(Some(line)) => line.commit.clone(),
        cell => {
            let commits: BTreeSet<&str> = cell.outcomes().flat_map(Outcome::origins).map(|origin| origin.commit.as_str()).collect();
            commits.into_iter().collect::<Vec<_>>().join(" ")
        }
    }
}

fn note(cell: &Filled) -> String {
    match cell {
        Filled::Quoted(why) | Filled::Untimed(why) => why.clone(),
        Filled::Trained(runs) => {
            let problem = |run: &Run| match run {
                Run::Outdated(_, problem) => Some(problem.to_string()),
                run => run.not_made().map(str::to_owned),
            };
            runs.iter().find_map(|(_, run)| problem(run)).unwrap_or_default()
        }
        _ => String::new(),
    }
}

fn line(fields: &[String]) -> String {
    fields.iter().map(|field| quoted(field)).collect::<Vec<_>>().join(",") + "\n"
}

#[cfg(test)]
mod tests {
    use super::super::tests::{grid, target};
    use super::*;
    use crate::outcome::tests::outcome;
    use crate::{Origin, Stretch};

    #[test]
    fn every_row_column_and_metric_has_a_line() {
        let target = target();
        let text = csv(&grid(&target));
        let first = "t,cpu,\"minGRU, \"\"small\"\"\",one,accuracy-percent,80.0 ± 2.0,80,2,90,7.0710678118654755,63.53,undecided,2,85 95,40 40,50 50,90.0 90.0,1234,abc1234,,\n";
        let start = first.split(",63.53").next().unwrap();
        assert!(text.contains(start) && text.contains(",undecided,2,85 95,40 40,50 50,90.0 90.0,1234,abc1234,,\n"), "{text}");
        assert!(text.contains(",accuracy-percent,near 1,,,,,,,0,,,,,,,,\"the loss\nis not finite\"\n"), "{text}");
        assert!(text.contains("RWKV-5,one,accuracy-percent,50.0,50,,,,,,0,,,,,,,49.5 ± 1.0,there is no code of it here\n"), "{text}");
        assert!(text.contains("t,cpu,always the same answer,one,accuracy-percent,,,,7.14285714285714"), "{text}");
        assert_eq!(text.matches("t,cpu,").count(), 13);
    }

    #[test]
    fn the_commits_of_all_stretches_and_seeds_stand_there_once() {
        let made = |seed, commits: &[&str]| {
            let outcome = outcome(seed, 0.9);
            let mut origins = commits.iter().map(|&commit| Origin { commit: commit.to_owned(), ..outcome.origin.clone() });
            let origin = origins.next_back().unwrap();
            let stretches = origins.map(|origin| Stretch { origin, from: 0, to: 10 }).collect();
            (seed, Run::Done(Box::new(Outcome { origin, stretches, ..outcome })))
        };
        let cell = Filled::Trained(vec![made(1, &["b", "a"]), made(2, &["c"]), made(3, &["a"])]);
        assert_eq!(commit(&cell), "a b c");
    }
}
