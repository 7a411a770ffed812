//! A target's picture.

use minrnn::plot::{Axis, Dot, DotGroup, Level, Panel, Series, draw_dots, draw_lines};
use minrnn::train::unscaled_accuracy;

use crate::{AtLength, Baseline, Filled, Folder, Grid, Line, Metric, Outcome, Point, Show};

/// Draws `NAME.svg` and `NAME.png`, if there is a number to draw.
///
/// # Errors
/// When they cannot be written.
pub fn draw(grid: &Grid, folder: &Folder) -> minrnn::Result<bool> {
    let (directory, name) = (folder.path(), &grid.target.name);
    let title = format!("{} (scale {})", grid.target.title, grid.scale.name());
    match grid.target.show {
        Show::Dots => {
            let metric = grid.target.metrics[0];
            draw_dots(&title, &axis(grid, metric), &dots(grid, metric), metric.limits(), directory, name)
        }
        Show::Lines => {
            let panels: Vec<Panel> = grid.target.metrics.iter().map(|&metric| panel(grid, metric)).collect();
            draw_lines(&title, &panels, directory, name)
        }
        Show::LossCurves => {
            let mut panel = curves(grid, &axis(grid, Metric::Loss), |point| Some(point.loss));
            panel.leave_out_the_fall();
            draw_lines(&title, &[panel], directory, name)
        }
        Show::AccuracyCurves => {
            let panel = Panel { y_reach: vec![0.0, 1.0], levels: levels(grid, 0), ..curves(grid, "accuracy", |point| point.accuracy) };
            draw_lines(&title, &[panel], directory, name)
        }
    }
}

/// The label of an axis for `metric`; for a loss it says which one.
fn axis(grid: &Grid, metric: Metric) -> String {
    match grid.loss.filter(|_| metric == Metric::Loss) {
        Some(loss) => format!("Test {}", loss.label()),
        None => metric.title().to_owned(),
    }
}

/// The name of the picture by length of the target `name`.
pub fn lengths_name(name: &str) -> String {
    format!("{name}-lengths")
}

/// Draws accuracy over string length, a panel for each column, where that was examined.
///
/// # Errors
/// When it cannot be written.
pub fn draw_lengths(grid: &Grid, folder: &Folder) -> minrnn::Result<bool> {
    let series = |row: usize, column: usize| {
        let outcomes: Vec<&Outcome> = grid.cells[row][column].outcomes().collect();
        let points = by_length(&outcomes);
        Series {
            label: grid.target.rows[row].label.clone(),
            points: points.iter().map(|&(length, mean, ..)| (length, mean)).collect(),
            spread: if outcomes.len() > 1 {
                points.iter().map(|&(length, _, low, high)| (length, low, high)).collect()
            } else {
                Vec::new()
            },
            ..Series::default()
        }
    };
    // Rules that know only the length, if they do better than always giving the same answer.
    let rules = |column: usize| {
        let constant = levels(grid, column).first().map_or(0.0, |level| level.y);
        let tells = move |baseline: &&Baseline| baseline.accuracy.is_some_and(|accuracy| accuracy > constant + TELLING);
        grid.baselines.get(column).into_iter().flatten().filter(tells).map(|baseline| Series {
            label: format!("rule: {}", baseline.name),
            points: baseline.lengths.iter().map(|at| (at.length as f64, at.accuracy)).collect(),
            is_reference: true,
            ..Series::default()
        })
    };
    let has_models = |column: usize| grid.cells.iter().any(|row| row[column].outcomes().any(|outcome| !outcome.lengths.is_empty()));
    let learned = |column: usize| {
        let (from, to) = (*grid.learned_lengths.get(column)?)?;
        Some((from as f64, to as f64, "trained on".to_owned()))
    };
    let panel = |(at, column): (usize, &Line)| Panel {
        levels: levels(grid, at),
        shaded: learned(at),
        x_label: "length of the string".to_owned(),
        y_label: if column.label.is_empty() { "accuracy".to_owned() } else { format!("accuracy, {}", column.label.to_lowercase()) },
        y_reach: vec![0.0, 1.0],
        series: (0..grid.target.rows.len()).map(|row| series(row, at)).chain(rules(at)).collect(),
        ..Panel::default()
    };
    let panels: Vec<Panel> = grid.target.columns.iter().enumerate().filter(|(at, _)| has_models(*at)).map(panel).collect();
    let title = format!("{} (scale {})", grid.target.title, grid.scale.name());
    draw_lines(&title, &panels, folder.path(), &lengths_name(&grid.target.name))
}

/// How much better a rule must do than always giving the same answer to be drawn beside it.
const TELLING: f64 = 0.02;

/// The accuracy of always giving the same answer, as a level.
fn levels(grid: &Grid, column: usize) -> Vec<Level> {
    let first = grid.baselines.get(column).and_then(|baselines| baselines.first());
    first.and_then(|baseline| Some(Level { label: baseline.name.clone(), y: baseline.accuracy? })).into_iter().collect()
}

/// Length, mean, least and greatest accuracy of the seeds, at the lengths that all of them have.
fn by_length(outcomes: &[&Outcome]) -> Vec<(f64, f64, f64, f64)> {
    let Some((first, others)) = outcomes.split_first() else { return Vec::new() };
    let mean = |at: &AtLength| {
        let of_other = |outcome: &&Outcome| outcome.lengths.iter().find(|other| other.length == at.length).map(|other| other.accuracy);
        let mut accuracies: Vec<f64> = others.iter().map(of_other).collect::<Option<_>>()?;
        accuracies.push(at.accuracy);
        let (low, high) = accuracies.iter().fold((f64::INFINITY, 0.0), |(low, high): (f64, f64), &x| (low.min(x), high.max(x)));
        Some((at.length as f64, accuracies.iter().sum::<f64>() / accuracies.len() as f64, low, high))
    };
    first.lengths.iter().filter_map(mean).collect()
}

/// The dots of all cells, grouped by column if there are many; a published number is shown only where ours is or will be made. Accuracies are
/// plain: published scaled ones are converted back with the accuracy of guessing.
fn dots(grid: &Grid, metric: Metric) -> Vec<DotGroup> {
    let columns = &grid.target.columns;
    let chance = |column: usize| {
        let learned = grid.cells.iter().flat_map(|row| row[column].outcomes()).find_map(|outcome| outcome.chance);
        learned.or_else(|| grid.baselines.get(column)?.iter().find_map(Baseline::chance))
    };
    let dot = |row: usize, column: usize, label: String| {
        let published = grid.published(metric, row, column);
        let plain = published.value.map(|value| (value, published.deviation));
        let scaled = || {
            let chance = chance(column).filter(|_| metric == Metric::Accuracy)?;
            let scaled = grid.published(Metric::ScaledAccuracy, row, column);
            let spread = |deviation: f64| deviation * (1.0 - chance);
            Some((unscaled_accuracy(scaled.value?, chance), scaled.deviation.map(spread)))
        };
        let without_model = grid.baselines.get(column).into_iter().flatten().filter_map(|baseline| baseline.value(metric));
        let is_drawn = !matches!(grid.cells[row][column], Filled::Quoted(_));
        Dot {
            label,
            ours: grid.summary(metric, row, column).map(|summary| (summary.mean, summary.reach())),
            published: if is_drawn { plain.or_else(scaled) } else { None },
            without_model: if is_drawn {
                without_model.reduce(|a, b| if metric == Metric::Loss { a.min(b) } else { a.max(b) })
            } else {
                None
            },
        }
    };
    let rows = 0..grid.target.rows.len();
    // A few dots are listed below each other.
    let n_dots = rows.len() * columns.len();
    if columns.len() == 1 || n_dots <= MOST_BELOW_EACH_OTHER {
        let cells = rows.flat_map(|row| (0..columns.len()).map(move |column| (row, column)));
        let dots = cells.map(|(row, column)| dot(row, column, grid.label(row, column))).collect();
        return vec![DotGroup { title: String::new(), dots }];
    }
    let group = |(at, column): (usize, &Line)| DotGroup {
        title: column.label.clone(),
        dots: rows.clone().map(|row| dot(row, at, grid.target.rows[row].label.clone())).collect(),
    };
    let has_dots = |group: &DotGroup| group.dots.iter().any(|dot| dot.ours.is_some() || dot.published.is_some());
    columns.iter().enumerate().map(group).filter(has_dots).collect()
}

/// More dots than these are grouped by their columns.
const MOST_BELOW_EACH_OTHER: usize = 12;

/// A metric over the columns' x.
fn panel(grid: &Grid, metric: Metric) -> Panel {
    let columns = || grid.target.columns.iter().enumerate().filter_map(|(at, column)| Some((at, column.x?)));
    let series = |row: usize| Series {
        label: grid.target.rows[row].label.clone(),
        points: columns().filter_map(|(at, x)| Some((x, grid.summary(metric, row, at)?.mean))).collect(),
        published: columns().filter_map(|(at, x)| Some((x, grid.published(metric, row, at).value?))).collect(),
        ..Series::default()
    };
    let y_axis = if metric == Metric::TimeSavedPercent { Axis::Linear } else { Axis::Log10 };
    Panel {
        x_label: grid.target.x_label.clone(),
        y_label: axis(grid, metric),
        x_axis: Axis::Log2,
        y_axis,
        series: (0..grid.target.rows.len()).map(series).collect(),
        ..Panel::default()
    }
}

/// The evaluations of each row over the iterations: the mean of the seeds.
fn curves(grid: &Grid, y_label: &str, value: impl Fn(&Point) -> Option<f64>) -> Panel {
    // The best loss and where it was reached.
    let published = |row: usize| {
        let value = |metric| (0..grid.target.columns.len()).find_map(|column| grid.published(metric, row, column).value);
        value(Metric::BestIteration).zip(value(Metric::Loss)).into_iter().collect()
    };
    let series = |row: usize| {
        let outcomes: Vec<&Outcome> = grid.cells[row].iter().flat_map(|cell| cell.outcomes()).collect();
        let points = curve(&outcomes, &value);
        Series {
            label: grid.target.rows[row].label.clone(),
            points: points.iter().map(|&(iteration, mean, ..)| (iteration, mean)).collect(),
            spread: if outcomes.len() > 1 {
                points.iter().map(|&(iteration, _, low, high)| (iteration, low, high)).collect()
            } else {
                Vec::new()
            },
            published: published(row),
            ..Series::default()
        }
    };
    Panel {
        x_label: "iteration".to_owned(),
        y_label: y_label.to_owned(),
        series: (0..grid.target.rows.len()).map(series).collect(),
        ..Panel::default()
    }
}

/// Iteration, mean, least and greatest value of the seeds. A training that ended earlier keeps its last value.
fn curve(outcomes: &[&Outcome], value: &impl Fn(&Point) -> Option<f64>) -> Vec<(f64, f64, f64, f64)> {
    let mut iterations: Vec<u64> = outcomes.iter().flat_map(|outcome| outcome.curve.iter().map(|point| point.iteration)).collect();
    iterations.sort_unstable();
    iterations.dedup();
    let at = |outcome: &Outcome, iteration| value(outcome.curve.iter().rfind(|point| point.iteration <= iteration)?);
    let mean = |iteration: u64| {
        let values: Vec<f64> = outcomes.iter().filter_map(|outcome| at(outcome, iteration)).collect();
        let (low, high) = values.iter().fold((f64::INFINITY, f64::NEG_INFINITY), |(low, high), &value| (low.min(value), high.max(value)));
        (!values.is_empty()).then(|| (iteration as f64, values.iter().sum::<f64>() / values.len() as f64, low, high))
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
        let found = curve(&[&first, &second], &|point: &Point| point.accuracy);
        let expected = [(0.0, 0.1, 0.1, 0.1), (20.0, 0.6, 0.6, 0.6), (40.0, 0.7, 0.6, 0.8)];
        let near = |a: f64, b: f64| (a - b).abs() < 1e-12;
        assert!(found.iter().zip(expected).all(|(a, b)| a.0 == b.0 && near(a.1, b.1) && near(a.2, b.2) && near(a.3, b.3)), "{found:?}");
        assert_eq!(found.len(), 3);
    }

    #[test]
    fn accuracies_by_length_are_means_over_seeds() {
        let (first, mut second) = (outcome(1, 0.5), outcome(2, 1.0));
        assert_eq!(by_length(&[&first, &second]), [(8.0, 1.0, 1.0, 1.0), (16.0, 0.75, 0.5, 1.0)]);
        second.lengths.pop();
        assert_eq!(by_length(&[&first, &second]), [(8.0, 1.0, 1.0, 1.0)]);
        assert!(by_length(&[]).is_empty());
    }

    #[test]
    fn a_rule_by_length_is_drawn_where_it_tells_more_than_always_the_same_answer() {
        let text = "name = \"t\"\ntitle = \"A table\"\nsource = \"A paper\"\nmetrics = [\"accuracy\"]\n[[columns]]\nlabel = \"Bucket sort\"\n\
                    [[rows]]\nlabel = \"LSTM\"\n";
        let target: crate::Target = toml::from_str(text).unwrap();
        let scratch = tempfile::tempdir().unwrap();
        let folder = Folder::open(scratch.path(), crate::Scale::Cpu).unwrap();
        let is_drawn = |accuracy: f64, runs: Vec<(u64, crate::Run)>| {
            let lengths = [(8, 0.4), (16, accuracy)].map(|(length, accuracy)| AtLength { length, accuracy }).to_vec();
            let rule = |name: &str, accuracy: f64, lengths: Vec<AtLength>| Baseline {
                name: name.to_owned(),
                accuracy: Some(accuracy),
                scaled: None,
                loss: None,
                lengths,
            };
            let baselines = vec![vec![rule("always the same answer", 0.1, Vec::new()), rule("the length alone", accuracy, lengths)]];
            let cells = vec![vec![Filled::Trained(runs)]];
            let grid = Grid { cells, baselines, learned_lengths: vec![None], ..Grid::empty(&target, crate::Scale::Cpu, String::new()) };
            let drawn = draw_lengths(&grid, &folder).unwrap();
            drawn.then(|| std::fs::read_to_string(folder.file("t-lengths", "svg")).unwrap().contains("rule: the length alone"))
        };
        let done = || vec![(1, crate::Run::Done(Box::new(outcome(1, 0.5))))];
        assert_eq!(is_drawn(0.75, done()), Some(true));
        assert_eq!(is_drawn(0.11, done()), Some(false));
        assert_eq!(is_drawn(0.75, vec![(1, crate::Run::Open)]), None, "no model is compared with it");
    }

    #[test]
    fn a_published_loss_is_drawn_where_nothing_was_run_too() {
        let text = "name = \"t\"\ntitle = \"A figure\"\nsource = \"A paper\"\nmetrics = [\"loss\", \"best-iteration\"]\n\
                    show = \"loss-curves\"\n[[columns]]\nlabel = \"\"\n[[rows]]\nlabel = \"Mamba\"\npublished.loss = [\"1.575\"]\n\
                    published.best-iteration = [\"400\"]\n";
        let target: crate::Target = toml::from_str(text).unwrap();
        let cells = vec![vec![Filled::Trained(vec![(1, crate::Run::Open)])]];
        let grid = Grid { cells, ..Grid::empty(&target, crate::Scale::Cpu, String::new()) };
        let panel = curves(&grid, "loss", |point| Some(point.loss));
        assert!(panel.series[0].points.is_empty());
        assert_eq!(panel.series[0].published, [(400.0, 1.575)]);
        let scratch = tempfile::tempdir().unwrap();
        let folder = Folder::open(scratch.path(), crate::Scale::Cpu).unwrap();
        assert!(draw(&grid, &folder).unwrap());
        assert!(std::fs::read_to_string(folder.file("t", "svg")).unwrap().contains("Mamba"));
    }

    #[test]
    fn the_axis_of_a_loss_says_which_one_it_is() {
        let target = super::super::tests::target();
        let grid = Grid { loss: Some(minrnn::train::Loss::SquaredError), ..Grid::empty(&target, crate::Scale::Cpu, String::new()) };
        assert_eq!(axis(&grid, Metric::Loss), "Test mean squared error");
        assert_eq!(axis(&grid, Metric::Accuracy), Metric::Accuracy.title());
    }

    #[test]
    fn scaled_numbers_are_put_back_on_the_scale_of_plain_ones() {
        let text = "name = \"t\"\ntitle = \"A table\"\nsource = \"A paper\"\nmetrics = [\"accuracy\", \"scaled-accuracy\"]\n[[columns]]\n\
                    label = \"\"\n[[rows]]\nlabel = \"LSTM\"\npublished.scaled-accuracy = [\"0.5\"]\n";
        let target: crate::Target = toml::from_str(text).unwrap();
        let runs = vec![(1, crate::Run::Done(Box::new(outcome(1, 0.9))))];
        let grid = Grid { cells: vec![vec![Filled::Trained(runs)]], ..Grid::empty(&target, crate::Scale::Cpu, String::new()) };
        // Guessing is right in a fifth: 0.2 + 0.5 · 0.8.
        let (published, _) = dots(&grid, Metric::Accuracy)[0].dots[0].published.unwrap();
        assert!((published - 0.6).abs() < 1e-12);
    }
}
