//! A target's results as a page.

use std::collections::BTreeMap;
use std::fmt::Write;

use minrnn::memory::rounded;
use minrnn::train::duration;
use minrnn::words::{counted, plural};

use crate::unfinished::Begun;
use crate::{End, Filled, Grid, Metric, Origin, Outcome, Run, Scale, Summary, Verdict, Work};

/// The page; `pictures` are beside it as SVG.
pub fn markdown(grid: &Grid, pictures: &[String]) -> String {
    let mut page = format!("# {}\n\n{}", grid.target.title, head(grid));
    for &metric in &grid.target.metrics {
        page += &format!("\n## {}\n\n{}{}", metric.title(), table(grid, metric), order(grid, metric));
    }
    for name in pictures {
        page += &format!("\n![{}]({name}.svg)\n", escape(&grid.target.title));
    }
    page += &section("What differs", &list(&differences(grid)));
    page += &section("At greater lengths", &at_greater_lengths(grid));
    page += &section("Unfinished", &list(&unfinished(grid)));
    page += &section("In progress in other processes", &list(&grid.elsewhere(|_, _| true)));
    page += &section("To be redone", &list(&grid.outdated(|_, _| true)));
    page += &section("Runs", &runs(grid));
    page += &section("Runs made on several machines", &list(&stretches(grid)));
    page += &section("Could not be run", &list(&grid.problems(|_, _| true)));
    page += &section("Not run", &list(&grid.reasons()));
    let settings = &grid.target.effort(grid.scale).settings;
    let settings: Vec<String> = settings.iter().map(|setting| format!("`{setting}`")).collect();
    page += &section("Settings at this scale, unless a row has its own", &settings.join(", "));
    let notes: Vec<String> =
        grid.target.notes.iter().chain(&grid.target.effort(grid.scale).notes).cloned().chain(test_sets(grid)).collect();
    page + &section("Notes", &list(&notes))
}

fn head(grid: &Grid) -> String {
    let (done, all) = grid.progress();
    let mut text = format!("Published: {}. Ours: `{}`", grid.target.source, grid.command);
    text += match grid.target.work {
        _ if all == 0 => ", which runs nothing here.\n",
        Work::Train => ", mean ± half-width of the 95 % confidence interval over the seeds (Student's t).\n",
        _ => ".\n",
    };
    if marked(grid) {
        text += "\n✓: the interval overlaps the published number within its precision (its ±, or half a unit of its last digit). ✗: it does not. \
                 ?: one seed, or an interval wider than 0.05 (5 points for percentages).\n";
    }
    if !grid.baseline_names().is_empty() {
        text += "\nRows in italics use no model; they are computed on the batches that runs of this version are scored on.\n";
    }
    if grid.scale == Scale::Smoke && all > 0 {
        text += "\n**Scale smoke: the numbers mean nothing; they show that everything runs.**\n";
    }
    if done < all {
        let _ = writeln!(text, "\n{done} of {all} runs are done.");
    }
    let mut commits_by_place: BTreeMap<(String, usize, String), Vec<String>> = BTreeMap::new();
    for Origin { machine, threads, device, commit } in grid.origins() {
        commits_by_place.entry((machine, threads, device)).or_default().push(commit);
    }
    for ((machine, threads, device), commits) in commits_by_place {
        let (threads, told) = (counted(threads, "thread"), plural(&commits.len(), "commit"));
        let _ = writeln!(text, "\nMachine: {machine}; {threads}; device {device}; {told} {}.", commits.join(", "));
    }
    text
}

/// Whether a cell has a mark.
fn marked(grid: &Grid) -> bool {
    grid.iter().any(|(row, column, _)| grid.target.metrics.iter().any(|&metric| grid.verdict(metric, row, column).is_some()))
}

/// Published numbers, ours and recorded ones side by side; a kind that a column lacks is left out.
fn table(grid: &Grid, metric: Metric) -> String {
    let target = grid.target;
    let published = |column| (0..target.rows.len()).any(|row| !grid.published(metric, row, column).text.is_empty());
    let recorded = |column| (0..target.rows.len()).any(|row| !target.recorded(metric, row, column).is_empty());
    let ours = grid.iter().any(|(.., cell)| !matches!(cell, Filled::Quoted(_)));
    let mut heading = vec![String::new()];
    for (at, column) in target.columns.iter().enumerate() {
        let with = |what: &str| if column.label.is_empty() { what.to_owned() } else { format!("{}: {what}", column.label) };
        heading.extend(published(at).then(|| with("published")));
        heading.extend(ours.then(|| with("ours")));
        heading.extend(recorded(at).then(|| with("recorded")));
    }
    let mut rows = Vec::new();
    for (row, line) in target.rows.iter().enumerate() {
        let mut cells = vec![line.label.clone()];
        for column in 0..target.columns.len() {
            cells.extend(published(column).then(|| grid.published(metric, row, column).text));
            cells.extend(ours.then(|| ours_text(grid, metric, row, column)));
            cells.extend(recorded(column).then(|| target.recorded(metric, row, column).to_owned()));
        }
        rows.push(cells);
    }
    for name in grid.baseline_names() {
        let value = |column| grid.baseline(name, metric, column);
        if (0..target.columns.len()).all(|column| value(column).is_none()) {
            continue;
        }
        let mut cells = vec![format!("*{name}*")];
        for column in 0..target.columns.len() {
            cells.extend(published(column).then(String::new));
            let text = value(column).map_or_else(String::new, |value| format!("*{value:.*}*", metric.decimals(value)));
            cells.extend(ours.then_some(text));
            cells.extend(recorded(column).then(String::new));
        }
        rows.push(cells);
    }
    lines(&heading, &rows)
}

fn ours_text(grid: &Grid, metric: Metric, row: usize, column: usize) -> String {
    let cell = &grid.cells[row][column];
    let summary = grid.summary(metric, row, column);
    let runs = if let Filled::Trained(runs) = cell { runs.as_slice() } else { &[] };
    let mark = grid.verdict(metric, row, column).map_or_else(String::new, |verdict| format!(" {}", verdict.mark()));
    let text = summary.map(|summary| summary.text(metric.decimals(summary.mean)) + &mark);
    let any = |is: fn(&Run) -> bool| runs.iter().any(|(_, run)| is(run));
    match (text, cell) {
        // Seeds that never got there are not part of the mean.
        (Some(text), Filled::Trained(_)) if summary.is_some_and(|summary| summary.n < runs.len()) => {
            format!("{text} ({} of {} seeds)", summary.map_or(0, |summary| summary.n), runs.len())
        }
        (Some(text), _) => text,
        (None, Filled::Quoted(_) | Filled::Untimed(_)) => "not run".to_owned(),
        (None, Filled::Trained(_)) if any(|run| matches!(run, Run::Failed(_))) => "failed".to_owned(),
        (None, Filled::Trained(_)) if any(|run| matches!(run, Run::Begun(_))) => {
            let share = |(_, run): &(u64, Run)| match run {
                Run::Begun(begun) => Some(100 * begun.iterations / begun.of.max(1)),
                _ => None,
            };
            format!("{} % done", runs.iter().filter_map(share).max().unwrap_or(0))
        }
        (None, Filled::Trained(_)) if any(|run| matches!(run, Run::Elsewhere)) => "in progress".to_owned(),
        (None, Filled::Trained(_)) if any(|run| matches!(run, Run::Outdated(..))) => "to be redone".to_owned(),
        (None, Filled::Trained(_)) if any(|run| matches!(run, Run::Refused(_))) => "not run".to_owned(),
        (None, Filled::Trained(_)) if metric == Metric::IterationsTo90Percent && cell.outcomes().next().is_some() => "never".to_owned(),
        (None, Filled::Trained(_)) if cell.outcomes().next().is_none() => "not yet run".to_owned(),
        (None, _) => String::new(),
    }
}

/// What the runs say about the order of the rows.
fn order(grid: &Grid, metric: Metric) -> String {
    let Some(order) = grid.order(metric) else { return String::new() };
    format!(
        "\n**Published order: {}.** Of the {} pairs of rows in a column whose published numbers differ, ours keep the order of {}, break that \
         of {}, and leave {} undecided. Kept: ours differ in the same direction, beyond the 95 % interval of their difference. Broken: ours differ in the \
         other direction, by more than chance alone would cause in 5 % of such tables (Holm's correction for the number of pairs). Undecided: neither, or \
         fewer than two seeds of either row.\n",
        order.verdict(),
        order.pairs(),
        order.kept,
        order.broken,
        order.undecided,
    )
}

/// Sentences about the cells that differ from what was published.
fn differences(grid: &Grid) -> Vec<String> {
    let mut found = Vec::new();
    for (row, column, _) in grid.iter() {
        for &metric in &grid.target.metrics {
            let published = grid.published(metric, row, column);
            let (Some(Verdict::Differs), Some(ours), Some(value)) =
                (grid.verdict(metric, row, column), grid.summary(metric, row, column), published.value)
            else {
                continue;
            };
            let decimals = metric.decimals(ours.mean);
            let (difference, label, ours) = (ours.mean - value, grid.label(row, column), ours.text(decimals));
            found.push(format!("{label}: {ours} against {}, a difference of {difference:+.decimals$}", published.text));
        }
    }
    found
}

/// The accuracy of solved models at lengths beyond that of their training.
fn at_greater_lengths(grid: &Grid) -> String {
    let lengths = &grid.target.effort(grid.scale).longer;
    let mut rows = Vec::new();
    for (row, column, cell) in grid.iter() {
        let of_length = |length: usize| {
            let at = |outcome: &Outcome| outcome.longer.iter().find(|at| at.length == length).map(|at| 100.0 * at.accuracy);
            Summary::of(&cell.outcomes().filter_map(at).collect::<Vec<_>>())
        };
        if let Some(n) = lengths.iter().filter_map(|&length| of_length(length)).map(|summary| summary.n).max() {
            let text = |&length: &usize| of_length(length).map_or_else(String::new, |summary| summary.text(1));
            rows.push([grid.label(row, column), n.to_string()].into_iter().chain(lengths.iter().map(text)).collect());
        }
    }
    let heading: Vec<String> =
        ["solved models, accuracy in %".to_owned(), "seeds".to_owned()].into_iter().chain(lengths.iter().map(usize::to_string)).collect();
    if rows.is_empty() { String::new() } else { lines(&heading, &rows) }
}

/// Every run with its cell and seed.
fn each_run<'g>(grid: &'g Grid) -> impl Iterator<Item = (String, &'g Run)> {
    grid.iter().flat_map(move |(row, column, cell)| {
        let runs: &[(u64, Run)] = if let Filled::Trained(runs) = cell { runs } else { &[] };
        runs.iter().map(move |(seed, run)| (format!("{}, seed {seed}", grid.label(row, column)), run))
    })
}

/// The progress of each unfinished run.
fn unfinished(grid: &Grid) -> Vec<String> {
    let sentence = |(label, run): (String, &Run)| {
        let Run::Begun(begun) = run else { return None };
        let Begun { iterations, of, seconds, .. } = &**begun;
        let best = begun.best().map_or_else(String::new, |best| {
            let found = best.accuracy.map_or_else(|| format!("loss {:.4}", best.loss), |accuracy| format!("accuracy {accuracy:.3}"));
            format!("; best on the validation batches so far: {found}, after {}", best.iteration)
        });
        let kept = match begun.left_out_bytes {
            Some(bytes) => format!(
                "; its checkpoint of {} is not kept here (larger than 5 MB, or of a text), so it can only be continued where it was started",
                rounded(bytes.into())
            ),
            None => String::new(),
        };
        Some(format!("{label}: {iterations} of {of} updates in {}{best}{kept}", duration(*seconds)))
    };
    each_run(grid).filter_map(sentence).collect()
}

/// Which machines made the updates of runs that more than one worked on.
fn stretches(grid: &Grid) -> Vec<String> {
    let sentence = |(label, run): (String, &Run)| {
        let stretches = match run {
            Run::Done(outcome) => &outcome.stretches,
            Run::Begun(begun) => &begun.stretches,
            _ => return None,
        };
        let mut end = 0;
        let mut text = |stretch: &crate::Stretch| {
            let crate::Stretch { origin, from, to } = stretch;
            // Older versions did not record updates between the last copy and a kill.
            let gap = if *from > end { format!("{end} to {from} on a machine that was not recorded; ") } else { String::new() };
            end = *to;
            format!("{gap}{from} to {to} on {} ({}, commit {})", origin.machine, counted(origin.threads, "thread"), origin.commit)
        };
        (stretches.len() > 1).then(|| format!("{label}: updates {}", stretches.iter().map(&mut text).collect::<Vec<_>>().join("; ")))
    };
    each_run(grid).filter_map(sentence).collect()
}

/// A note on the batches that runs are scored on.
fn test_sets(grid: &Grid) -> Option<String> {
    let outcomes = || grid.iter().flat_map(|(_, _, cell)| cell.outcomes());
    let own = outcomes().filter(|outcome| outcome.eval_seed.is_none()).count();
    match (own, outcomes().count()) {
        (_, 0) => None,
        (0, _) => Some("Every seed and every row is scored on the same test batches.".to_owned()),
        (own, all) => Some(format!("{own} of {all} runs are of an older version, which drew new test batches for every seed.")),
    }
}

/// How each training went, over its seeds.
fn runs(grid: &Grid) -> String {
    let with_readings = grid.readings.iter().flatten().any(Option::is_some);
    let mut heading = vec!["run".to_owned()];
    heading.extend(with_readings.then(|| "preset".to_owned()));
    heading.extend(["seeds", "best at iteration", "iterations", "ended", "parameters", "time per run"].map(str::to_owned));
    let mut rows = Vec::new();
    for (row, column, cell) in grid.iter() {
        let outcomes: Vec<&Outcome> = cell.outcomes().collect();
        let Some(first) = outcomes.first() else { continue };
        let range = |of: &dyn Fn(&Outcome) -> u64| {
            let of_each = || outcomes.iter().map(|outcome| of(outcome));
            let (least, most) = (of_each().min().unwrap_or(0), of_each().max().unwrap_or(0));
            if least == most { most.to_string() } else { format!("{least} to {most}") }
        };
        let seconds = outcomes.iter().map(|outcome| outcome.seconds).sum::<f64>() / outcomes.len() as f64;
        let mut cells = vec![grid.label(row, column)];
        cells.extend(with_readings.then(|| grid.reading(row, column).unwrap_or("").to_owned()));
        cells.extend([
            outcomes.len().to_string(),
            range(&|outcome| outcome.best_iteration),
            range(&|outcome| outcome.iterations),
            endings(&outcomes),
            first.parameters.to_string(),
            duration(seconds),
        ]);
        rows.push(cells);
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
            "# A table\n\nPublished: A paper, Table 9. Ours: `minrnn reproduce t --scale cpu`, mean ± half-width of the 95 % confidence interval",
            "3 of 8 runs are done.",
            "Machine: box, 2 cores; 2 threads; device cpu; commit abc1234.",
            "|  | one: published | one: ours | one: recorded | two \\| 2: published | two \\| 2: ours |\n|---|---|---|---|---|---|\n",
            // Two seeds scatter too much to say anything.
            "| minGRU, \"small\" | 80.0 ± 2.0 | 90.0 ± 63.5 ? |  | near 1 | failed |",
            "| RWKV-5 | 50.0 | not run | 49.5 ± 1.0 |  | not run |",
            "| minLSTM | 70.0 | 40 % done |  | 90.0 | 80.0 ? (1 of 2 seeds) |",
            "| *always the same answer* |  | *7.1* |  |  |  |",
            "**Published order: undecided.** Of the 1 pairs",
            "## Iteration of the best checkpoint\n\n|  | one: ours |",
            "![A table](t.svg)",
            "![A table](t-lengths.svg)",
            "- minLSTM, one, seed 1: 40 of 100 updates in 1 min 30 s; best on the validation batches so far: accuracy 0.600, after 20",
            "- minLSTM, two | 2 10.0: made with lr = 1; requested: lr = 2",
            "- minLSTM, two | 2, seed 1: updates 0 to 30 on old box (1 thread, commit abc1234); 30 to 32 on a machine that was not \
             recorded; 32 to 50 on box",
            "| minGRU, \"small\", one | paper | 2 | 40 | 50 | solved | 1234 | 1 min 30 s |",
            "- minGRU, \"small\", two | 2 (seed 1): the loss is not finite",
            "- RWKV-5: there is no code of it here",
            "`d_model=8`",
            "- A note.",
            "- Every seed and every row is scored on the same test batches.",
        ] {
            assert!(page.contains(part), "expected {part:?} in:\n{page}");
        }
        assert!(!page.contains("smoke") && !page.contains("What differs"));
    }

    #[test]
    fn what_differs_is_listed_with_its_difference() {
        let target = target();
        let mut grid = grid(&target);
        let runs = [0.5, 0.5].map(|accuracy| (1, Run::Done(Box::new(crate::outcome::tests::outcome(1, accuracy)))));
        grid.cells[0][0] = Filled::Trained(runs.to_vec());
        let page = markdown(&grid, &[]);
        assert!(
            page.contains("50.0 ± 0.0 ✗")
                && page.contains("- minGRU, \"small\", one: 50.0 ± 0.0 against 80.0 ± 2.0, a difference of -30.0"),
            "{page}"
        );
    }

    #[test]
    fn smoke_says_that_it_means_nothing_and_claims_no_difference() {
        let target = target();
        let page = markdown(&Grid { scale: Scale::Smoke, ..grid(&target) }, &[]);
        assert!(page.contains("the numbers mean nothing") && !page.contains('✗') && !page.contains("order:") && !page.contains("svg"));
    }

    #[test]
    fn a_machine_is_named_once_with_all_commits_of_its_runs() {
        let target = target();
        let mut grid = grid(&target);
        let Filled::Trained(runs) = &mut grid.cells[0][0] else { unreachable!() };
        let Run::Done(outcome) = &mut runs[1].1 else { unreachable!() };
        outcome.origin.commit = "def5678".to_owned();
        let page = markdown(&grid, &[]);
        assert!(page.contains("Machine: box, 2 cores; 2 threads; device cpu; commits abc1234, def5678.\n"), "{page}");
        assert_eq!(page.matches("Machine: box, 2 cores;").count(), 1, "{page}");
    }

    #[test]
    fn what_is_only_quoted_has_a_column_of_ours_where_one_is_recorded() {
        let target = target();
        let quoted = || Filled::Quoted(String::new());
        let cells = (0..3).map(|_| vec![quoted(), quoted()]).collect();
        let page = markdown(&Grid { cells, baselines: Vec::new(), ..grid(&target) }, &[]);
        assert!(
            page.contains("|  | one: published | one: recorded | two \\| 2: published |") && page.contains("runs nothing here"),
            "{page}"
        );
    }
}
