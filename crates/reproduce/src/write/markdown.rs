//! A target's results as a page.

use std::fmt::Write;

use minrnn::train::duration;

use crate::{End, Filled, Grid, Metric, Outcome, Run, Scale, Summary, Work};

/// The page; `pictures` lie beside it as SVG.
pub fn markdown(grid: &Grid, pictures: &[String]) -> String {
    let mut page = format!("# {}\n\n{}", grid.target.title, head(grid));
    for &metric in &grid.target.metrics {
        page += &format!("\n## {}\n\n{}", metric.title(), table(grid, metric));
    }
    for name in pictures {
        page += &format!("\n![{}]({name}.svg)\n", escape(&grid.target.title));
    }
    page += &section("Beyond the published deviation", &list(&differences(grid)));
    page += &section("Runs", &runs(grid));
    page += &section("Could not be run", &list(&grid.problems()));
    page += &section("Not run", &list(&grid.reasons()));
    let settings = &grid.target.effort(grid.scale).settings;
    let settings: Vec<String> = settings.iter().map(|setting| format!("`{setting}`")).collect();
    page += &section("Settings of this scale, for every run", &settings.join(", "));
    let notes: Vec<String> = grid.target.notes.iter().chain(&grid.target.effort(grid.scale).notes).cloned().collect();
    page + &section("Notes", &list(&notes))
}

fn head(grid: &Grid) -> String {
    let (done, all) = grid.progress();
    let mut text = format!("Published: {}. Ours: `{}`", grid.target.source, grid.command);
    text += match grid.target.work {
        _ if all == 0 => ", which runs nothing here.\n",
        Work::Train => ", mean ± sample deviation over the seeds.\n",
        _ => ".\n",
    };
    if grid.scale == Scale::Smoke && all > 0 {
        text += "\n**Scale smoke: the numbers mean nothing; they show that everything runs.**\n";
    }
    if done < all {
        let _ = writeln!(text, "\n{done} of {all} runs are done.");
    }
    for origin in grid.origins() {
        let _ = writeln!(
            text,
            "\nMachine: {}; {} threads; device {}; commit {}.",
            origin.machine, origin.threads, origin.device, origin.commit
        );
    }
    text
}

/// Published and our numbers side by side; only ours in columns without a published one, only published ones where nothing is to be run.
fn table(grid: &Grid, metric: Metric) -> String {
    let target = grid.target;
    let published = |column| (0..target.rows.len()).any(|row| !grid.published(metric, row, column).text.is_empty());
    let ours = grid.iter().any(|(.., cell)| !matches!(cell, Filled::Quoted(_)));
    let mut heading = vec![String::new()];
    for (at, column) in target.columns.iter().enumerate() {
        let with = |what: &str| if column.label.is_empty() { what.to_owned() } else { format!("{}: {what}", column.label) };
        heading.extend(published(at).then(|| with("published")));
        heading.extend(ours.then(|| with("ours")));
    }
    let mut rows = Vec::new();
    for (row, line) in target.rows.iter().enumerate() {
        let mut cells = vec![line.label.clone()];
        for column in 0..target.columns.len() {
            cells.extend(published(column).then(|| grid.published(metric, row, column).text));
            cells.extend(ours.then(|| ours_text(grid, metric, row, column)));
        }
        rows.push(cells);
    }
    lines(&heading, &rows)
}

fn ours_text(grid: &Grid, metric: Metric, row: usize, column: usize) -> String {
    let cell = &grid.cells[row][column];
    let summary = grid.summary(metric, row, column);
    let runs = if let Filled::Trained(runs) = cell { runs.as_slice() } else { &[] };
    let text = summary.map(|summary| summary.text(metric.decimals(summary.mean)));
    match (text, cell) {
        // Seeds that never got there are no part of a mean.
        (Some(text), Filled::Trained(_)) if summary.is_some_and(|summary| summary.n < runs.len()) => {
            format!("{text} ({} of {} seeds)", summary.map_or(0, |summary| summary.n), runs.len())
        }
        (Some(text), _) => text,
        (None, Filled::Quoted(_) | Filled::Untimed(_)) => "not run".to_owned(),
        (None, Filled::Trained(_)) if runs.iter().any(|(_, run)| matches!(run, Run::Failed(_))) => "failed".to_owned(),
        (None, Filled::Trained(_)) if runs.iter().any(|(_, run)| matches!(run, Run::Refused(_))) => "not run".to_owned(),
        (None, Filled::Trained(_)) if metric == Metric::IterationsTo90Percent && cell.outcomes().next().is_some() => "never".to_owned(),
        (None, _) => String::new(),
    }
}

/// Sentences on the cells whose mean lies farther from the published one than its ±. Those of smoke mean nothing.
fn differences(grid: &Grid) -> Vec<String> {
    let mut found = Vec::new();
    for (row, column, _) in grid.iter().filter(|_| grid.scale != Scale::Smoke) {
        for &metric in &grid.target.metrics {
            let published = grid.published(metric, row, column);
            let (Some(ours), Some(value), Some(deviation)) = (grid.summary(metric, row, column), published.value, published.deviation)
            else {
                continue;
            };
            let difference = ours.mean - value;
            if difference.abs() > deviation {
                let decimals = metric.decimals(ours.mean);
                let (label, ours, published) = (grid.label(row, column), ours.text(decimals), published.text);
                found.push(format!("{label}: {ours} against {published}, a difference of {difference:+.decimals$}"));
            }
        }
    }
    found
}

/// How each training went, over its seeds.
fn runs(grid: &Grid) -> String {
    let heading = ["run", "seeds", "best at iteration", "iterations", "ended", "parameters", "time of a run"].map(str::to_owned);
    let mut rows = Vec::new();
    for (row, column, cell) in grid.iter() {
        let outcomes: Vec<&Outcome> = cell.outcomes().collect();
        let Some(first) = outcomes.first() else { continue };
        let mean = |of: &dyn Fn(&Outcome) -> f64| Summary::of(&outcomes.iter().map(|outcome| of(outcome)).collect::<Vec<_>>());
        let rounded = |of: &dyn Fn(&Outcome) -> f64| mean(of).map_or_else(String::new, |summary| summary.text(0));
        let seconds = mean(&|outcome| outcome.seconds).map_or(0.0, |summary| summary.mean);
        rows.push(vec![
            grid.label(row, column),
            outcomes.len().to_string(),
            rounded(&|outcome| outcome.best_iteration as f64),
            rounded(&|outcome| outcome.iterations as f64),
            endings(&outcomes),
            first.parameters.to_string(),
            duration(seconds),
        ]);
    }
    if rows.is_empty() { String::new() } else { lines(&heading, &rows) }
}

/// `solved 2 ×, all iterations`.
fn endings(outcomes: &[&Outcome]) -> String {
    let kinds = [(End::Solved, "solved"), (End::EarlyStopped, "no more gain"), (End::Finished, "all iterations")];
    let count = |end: End| outcomes.iter().filter(|outcome| outcome.end == end).count();
    let text = |(end, words): (End, &str)| match count(end) {
        0 => None,
        n if n == outcomes.len() => Some(words.to_owned()),
        n => Some(format!("{words} {n} ×")),
    };
    kinds.into_iter().filter_map(text).collect::<Vec<_>>().join(", ")
}

fn section(title: &str, body: &str) -> String {
    if body.is_empty() { String::new() } else { format!("\n## {title}\n\n{}\n", body.trim_end()) }
}

fn list(items: &[String]) -> String {
    items.iter().map(|item| format!("- {}\n", one_line(item))).collect()
}

fn lines(heading: &[String], rows: &[Vec<String>]) -> String {
    let line = |cells: &[String]| format!("| {} |\n", cells.iter().map(|cell| escape(cell)).collect::<Vec<_>>().join(" | "));
    let rule = format!("|{}\n", "---|".repeat(heading.len()));
    line(heading) + &rule + &rows.iter().map(|row| line(row)).collect::<String>()
}

/// Text that stays in its cell.
fn escape(text: &str) -> String {
    one_line(text).replace('|', "\\|")
}

fn one_line(text: &str) -> String {
    text.split_whitespace().collect::<Vec<_>>().join(" ")
}

#[cfg(test)]
mod tests {
    use super::super::tests::{grid, target};
    use super::*;

    #[test]
    fn a_page_shows_both_numbers_and_how_they_were_made() {
        let target = target();
        let page = markdown(&grid(&target), &["t".to_owned(), "t-lengths".to_owned()]);
        for part in [
            "# A table\n\nPublished: A paper, Table 9. Ours: `minrnn reproduce t --scale cpu`, mean ± sample deviation over the seeds.",
            "2 of 4 runs are done.",
            "Machine: box, 2 cores; 2 threads; device cpu; commit abc1234.",
            "|  | one: published | one: ours | two \\| 2: published | two \\| 2: ours |\n|---|---|---|---|---|\n",
            "| minGRU, \"small\" | 80.0 ± 2.0 | 90.0 ± 7.1 | near 1 | failed |",
            "| RWKV-5 | 50.0 | not run |  | not run |",
            "## Iteration of the best checkpoint\n\n|  | one: ours |",
            "![A table](t.svg)",
            "![A table](t-lengths.svg)",
            "- minGRU, \"small\", one: 90.0 ± 7.1 against 80.0 ± 2.0, a difference of +10.0",
            "| minGRU, \"small\", one | 2 | 40 ± 0 | 50 ± 0 | solved | 1234 | 1 min 30 s |",
            "- minGRU, \"small\", two | 2 (seed 1): the loss is not finite",
            "- RWKV-5: there is no code of it here",
            "`d_model=8`",
            "- A note.",
        ] {
            assert!(page.contains(part), "expected {part:?} in:\n{page}");
        }
        assert!(!page.contains("smoke"));
    }

    #[test]
    fn smoke_says_that_it_means_nothing_and_claims_no_difference() {
        let target = target();
        let page = markdown(&Grid { scale: Scale::Smoke, ..grid(&target) }, &[]);
        assert!(page.contains("the numbers mean nothing") && !page.contains("Beyond") && !page.contains("svg"));
    }

    #[test]
    fn what_is_only_quoted_has_no_column_of_ours() {
        let target = target();
        let quoted = || Filled::Quoted(String::new());
        let page = markdown(&Grid { cells: vec![vec![quoted(), quoted()], vec![quoted(), quoted()]], ..grid(&target) }, &[]);
        assert!(page.contains("|  | one: published | two \\| 2: published |") && page.contains("runs nothing here"), "{page}");
    }
}
