//! A target's picture.

use minrnn::plot::{Axis, Dot, Legend, Panel, Series, draw_dots, draw_lines};

use crate::{AtLength, Filled, Folder, Grid, Line, Metric, Outcome, Point, Show};

/// Draws `NAME.svg` and `NAME.png`, where there is a number to draw.
///
/// # Errors
/// When they cannot be written.
pub fn draw(grid: &Grid, folder: &Folder) -> minrnn::Result<bool> {
    let (directory, name) = (folder.path(), &grid.target.name);
    let title = format!("{} (scale {})", grid.target.title, grid.scale.name());
    match grid.target.show {
        Show::Dots => {
            let metric = grid.target.metrics[0];
            draw_dots(&title, metric.title(), &dots(grid, metric), directory, name)
        }
        Show::Lines => {
            let panels: Vec<Panel> = grid.target.metrics.iter().map(|&metric| panel(grid, metric)).collect();
            draw_lines(&title, &panels, directory, name)
        }
        Show::LossCurves => {
            let mut panel = curves(grid, "test loss", Legend::UpperRight, |point| Some(point.loss));
            panel.leave_out_the_fall();
            draw_lines(&title, &[panel], directory, name)
        }
        Show::AccuracyCurves => {
            let panel = curves(grid, "accuracy", Legend::LowerRight, |point| point.accuracy);
            draw_lines(&title, &[panel], directory, name)
        }
    }
}

/// The name of the picture by length of the target `name`.
pub fn lengths_name(name: &str) -> String {
    format!("{name}-lengths")
}

/// Draws how accuracy depends on the length of strings, a panel for each column, where that was looked at.
///
/// # Errors
/// When it cannot be written.
pub fn draw_lengths(grid: &Grid, folder: &Folder) -> minrnn::Result<bool> {
    let series = |row: usize, column: usize| {
        let outcomes: Vec<&Outcome> = grid.cells[row][column].outcomes().collect();
        Series { label: grid.target.rows[row].label.clone(), points: mean_by_length(&outcomes), published: Vec::new() }
    };
    let panel = |(at, column): (usize, &Line)| Panel {
        x_label: "length of the string".to_owned(),
        y_label: if column.label.is_empty() { "accuracy".to_owned() } else { format!("accuracy, {}", column.label.to_lowercase()) },
        y_reach: vec![0.0, 1.0],
        legend: Legend::UpperRight,
        series: (0..grid.target.rows.len()).map(|row| series(row, at)).collect(),
        ..Panel::default()
    };
    let panels: Vec<Panel> = grid.target.columns.iter().enumerate().map(panel).collect();
    let title = format!("{} (scale {})", grid.target.title, grid.scale.name());
    draw_lines(&title, &panels, folder.path(), &lengths_name(&grid.target.name))
}

/// The mean of the seeds, at the lengths that all of them have.
fn mean_by_length(outcomes: &[&Outcome]) -> Vec<(f64, f64)> {
    let Some((first, others)) = outcomes.split_first() else { return Vec::new() };
    let mean = |at: &AtLength| {
        let of_other = |outcome: &&Outcome| outcome.lengths.iter().find(|other| other.length == at.length).map(|other| other.accuracy);
        let sum: f64 = others.iter().map(of_other).sum::<Option<f64>>()? + at.accuracy;
        Some((at.length as f64, sum / outcomes.len() as f64))
    };
    first.lengths.iter().filter_map(mean).collect()
}

/// Where ours are to be made. The published numbers of a table may be accuracies in some rows and scaled ones in others; a dot of ours is
/// on the scale of what was published.
fn dots(grid: &Grid, first: Metric) -> Vec<Dot> {
    let scaled = Metric::ScaledAccuracy;
    let dot = |row, column| {
        let has = |metric| grid.published(metric, row, column).value.is_some();
        let is_scaled = first == Metric::Accuracy && !has(first) && has(scaled);
        let metric = if is_scaled { scaled } else { first };
        let published = grid.published(metric, row, column);
        Dot {
            label: grid.label(row, column) + if is_scaled { " (scaled)" } else { "" },
            ours: grid.summary(metric, row, column).map(|summary| (summary.mean, summary.deviation)),
            published: published.value.map(|value| (value, published.deviation)),
        }
    };
    let ours = grid.iter().filter(|(_, _, cell)| !matches!(cell, Filled::Quoted(_)));
    ours.map(|(row, column, _)| dot(row, column)).collect()
}

/// A metric over the columns.
fn panel(grid: &Grid, metric: Metric) -> Panel {
    let columns = || grid.target.columns.iter().enumerate().filter_map(|(at, column)| Some((at, column.x?)));
    let series = |row: usize| Series {
        label: grid.target.rows[row].label.clone(),
        points: columns().filter_map(|(at, x)| Some((x, grid.summary(metric, row, at)?.mean))).collect(),
        published: columns().filter_map(|(at, x)| Some((x, grid.published(metric, row, at).value?))).collect(),
    };
    let y_axis = if metric == Metric::TimeSavedPercent { Axis::Linear } else { Axis::Log10 };
    Panel {
        x_label: grid.target.x_label.clone(),
        y_label: metric.title().to_owned(),
        x_axis: Axis::Log2,
        y_axis,
        y_reach: Vec::new(),
        legend: Legend::UpperLeft,
        series: (0..grid.target.rows.len()).map(series).collect(),
    }
}

/// What the evaluations of each row showed, by iteration: the mean of the seeds that got that far.
fn curves(grid: &Grid, y_label: &str, legend: Legend, value: impl Fn(&Point) -> Option<f64>) -> Panel {
    // The best loss and where it was reached.
    let published = |row: usize| {
        let value = |metric| (0..grid.target.columns.len()).find_map(|column| grid.published(metric, row, column).value);
        value(Metric::BestIteration).zip(value(Metric::Loss)).into_iter().collect()
    };
    let series = |row: usize| {
        let outcomes: Vec<&Outcome> = grid.cells[row].iter().flat_map(|cell| cell.outcomes()).collect();
        Series { label: grid.target.rows[row].label.clone(), points: mean_curve(&outcomes, &value), published: published(row) }
    };
    Panel {
        x_label: "iteration".to_owned(),
        y_label: y_label.to_owned(),
        legend,
        series: (0..grid.target.rows.len()).map(series).collect(),
        ..Panel::default()
    }
}

/// A training that stopped because it was solved stays where it was.
fn mean_curve(outcomes: &[&Outcome], value: &impl Fn(&Point) -> Option<f64>) -> Vec<(f64, f64)> {
    let mut iterations: Vec<u64> = outcomes.iter().flat_map(|outcome| outcome.curve.iter().map(|point| point.iteration)).collect();
    iterations.sort_unstable();
    iterations.dedup();
    let at = |outcome: &Outcome, iteration| value(outcome.curve.iter().rfind(|point| point.iteration <= iteration)?);
    let mean = |iteration: u64| {
        let values: Vec<f64> = outcomes.iter().filter_map(|outcome| at(outcome, iteration)).collect();
        (!values.is_empty()).then(|| (iteration as f64, values.iter().sum::<f64>() / values.len() as f64))
    };
    iterations.into_iter().filter_map(mean).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::outcome::tests::outcome;

    #[test]
    fn curves_are_means_over_seeds_and_solved_ones_stay() {
        let (first, mut second) = (outcome(1, 0.8), outcome(2, 0.9));
        second.curve.truncate(2);
        let curve = mean_curve(&[&first, &second], &|point: &Point| point.accuracy);
        let expected = [(0.0, 0.1), (20.0, 0.6), (40.0, 0.7)];
        assert!(curve.iter().zip(expected).all(|(found, expected)| found.0 == expected.0 && (found.1 - expected.1).abs() < 1e-12));
        assert_eq!(curve.len(), 3);
    }

    #[test]
    fn accuracies_by_length_are_means_over_seeds() {
        let (first, mut second) = (outcome(1, 0.5), outcome(2, 1.0));
        assert_eq!(mean_by_length(&[&first, &second]), [(8.0, 1.0), (16.0, 0.75)]);
        second.lengths.pop();
        assert_eq!(mean_by_length(&[&first, &second]), [(8.0, 1.0)]);
        assert!(mean_by_length(&[]).is_empty());
    }
}
