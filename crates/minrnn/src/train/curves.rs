//! The loss curves of a run: train and test loss over the iterations, as SVG and PNG.

use std::path::Path;

use plotters::coord::Shift;
use plotters::prelude::*;
use plotters::style::text_anchor::{HPos, Pos, VPos};

use super::loss::Loss;
use super::metrics::Record;
use crate::Result;
use crate::plot::{COLORS, DrawResult, GRID, INK, Picture, axis_label, range_of, save, shorten, text};

/// Size of the SVG in pixels.
const SIZE: (u32, u32) = (960, 600);
/// Losses are clamped to this magnitude when drawn, so that sums and differences are finite.
const MAX_LOSS: f64 = 1e300;
/// Maximum number of points per line; more than the picture has pixels only make the file large.
const MAX_POINTS: usize = 600;

const TRAIN: RGBColor = COLORS[0];
const TEST: RGBColor = COLORS[1];

pub(crate) type Points = Vec<(f64, f64)>;

/// The labels of a picture of curves.
#[derive(Debug, Clone, Copy)]
pub struct CurveLabels<'a> {
    /// The title.
    pub title: &'a str,
    /// What is drawn.
    pub loss: Loss,
    /// Number of updates after which a second round began.
    pub refit_at: Option<u64>,
}

/// Draws the losses of `records` to `curves.svg` and `curves.png` in `directory`, replacing older ones.
///
/// Returns whether there was anything to draw, that is, a finite loss.
///
/// # Errors
/// When a file cannot be written.
pub fn draw_curves(records: &[Record], labels: CurveLabels<'_>, directory: impl AsRef<Path>) -> Result<bool> {
    let Some(curves) = Curves::new(records, labels) else { return Ok(false) };
    save(&curves, directory.as_ref(), "curves")?;
    Ok(true)
}

struct Curves {
    title: String,
    loss: Loss,
    /// For each round, all losses and their smoothed curve.
    train: [Points; 2],
    train_smooth: [Points; 2],
    test: Points,
    best: Option<(f64, f64)>,
    iterations: f64,
    losses: (f64, f64),
}

impl Curves {
    fn new(records: &[Record], labels: CurveLabels<'_>) -> Option<Self> {
        let (mut train, mut test) = ([Points::new(), Points::new()], Points::new());
        let round = |iteration: u64| usize::from(labels.refit_at.is_some_and(|at| iteration > at));
        let point = |iteration: u64, loss: f64| (iteration as f64, loss.clamp(-MAX_LOSS, MAX_LOSS));
        for record in records {
            match *record {
                Record::Train { iteration, loss, .. } if loss.is_finite() => train[round(iteration)].push(point(iteration, loss)),
                Record::Eval { iteration, test_loss, .. } if test_loss.is_finite() => test.push(point(iteration, test_loss)),
                _ => {}
            }
        }
        let best = test.iter().copied().min_by(|a, b| a.1.total_cmp(&b.1));
        let train_smooth = [0, 1].map(|round| thin(&smooth(&train[round])));
        let (train, test) = ([0, 1].map(|round| thin(&train[round])), thin(&test));
        let all = || train.iter().flatten().chain(&test);
        let iterations = all().map(|point| point.0).reduce(f64::max)?;
        let losses = range_of(all().map(|point| point.1));
        let (title, loss) = (shorten(labels.title), labels.loss);
        Some(Self { title, loss, train, train_smooth, test, best, iterations: iterations.max(1.0), losses })
    }
}

impl Picture for Curves {
    fn size(&self) -> (u32, u32) {
        SIZE
    }

    fn draw<'a, B: DrawingBackend + 'a>(&self, area: DrawingArea<B, Shift>, scale: i32) -> DrawResult<B> {
        let text = |size: i32, color: RGBColor| text(size * scale, color);
        let line = |color: RGBColor, width: i32| color.stroke_width((width * scale) as u32);
        area.fill(&WHITE)?;
        let mut chart = ChartBuilder::on(&area)
            .caption(&self.title, text(18, INK))
            .margin(14 * scale)
            .margin_right(28 * scale)
            .x_label_area_size(44 * scale)
            .y_label_area_size(64 * scale)
            .build_cartesian_2d(0.0..self.iterations * 1.02, self.losses.0..self.losses.1)?;
        chart
            .configure_mesh()
            .x_desc("iteration")
            .y_desc(self.loss.label())
            .x_labels(10)
            .y_labels(9)
            .x_label_formatter(&|iteration| format!("{iteration:.0}"))
            .y_label_formatter(&|loss| axis_label(*loss, self.losses.1 - self.losses.0))
            .label_style(text(13, INK))
            .axis_desc_style(text(14, INK))
            .axis_style(line(INK, 1))
            .bold_line_style(line(GRID, 1))
            .light_line_style(TRANSPARENT)
            .set_all_tick_mark_size(4 * scale)
            .draw()?;

        let legend = |color: RGBColor| {
            move |(x, y): (i32, i32)| PathElement::new([(x, y), (x + 22 * scale, y)], color.stroke_width((2 * scale) as u32))
        };
        for (at, (train, smooth)) in self.train.iter().zip(&self.train_smooth).enumerate().filter(|(_, (train, _))| !train.is_empty()) {
            chart.draw_series(LineSeries::new(train.iter().copied(), TRAIN.mix(0.25).stroke_width(scale as u32)))?;
            let drawn = chart.draw_series(LineSeries::new(smooth.iter().copied(), line(TRAIN, 2)))?;
            if at == 0 {
                drawn.label("train").legend(legend(TRAIN));
            }
        }
        if !self.test.is_empty() {
            chart.draw_series(LineSeries::new(self.test.iter().copied(), line(TEST, 2)))?.label("test").legend(legend(TEST));
        }
        if let Some(best) = self.best {
            let near_right = best.0 > 0.8 * self.iterations;
            let anchor = Pos::new(if near_right { HPos::Right } else { HPos::Center }, VPos::Bottom);
            let label = format!("best {:.3} at {}", best.1, best.0);
            chart.draw_series([Circle::new(best, 4 * scale, TEST.filled())])?;
            chart.draw_series([Text::new(label, (best.0, best.1 + 0.02 * (self.losses.1 - self.losses.0)), text(13, TEST).pos(anchor))])?;
        }
        chart
            .configure_series_labels()
            .position(SeriesLabelPosition::UpperRight)
            .background_style(WHITE.mix(0.9))
            .border_style(line(GRID, 1))
            .label_font(text(14, INK))
            .legend_area_size(30 * scale)
            .margin(12 * scale)
            .draw()?;
        area.present()
    }
}

/// For each point, the mean over a fiftieth of the points around it; over fewer near the ends, so that the curve neither lags nor leads.
pub(crate) fn smooth(points: &Points) -> Points {
    let mut sums = vec![0.0];
    sums.extend(points.iter().scan(0.0, |sum, point| {
        *sum += point.1;
        Some(*sum)
    }));
    let radius = points.len() / 100;
    let around = |at: usize| {
        let reach = radius.min(at).min(points.len() - 1 - at);
        (sums[at + reach + 1] - sums[at - reach]) / (2 * reach + 1) as f64
    };
    points.iter().enumerate().map(|(at, point)| (point.0, around(at))).collect()
}

/// At most [`MAX_POINTS`] points: means of equally many neighbours, with the first and last point unchanged.
fn thin(points: &Points) -> Points {
    if points.len() <= MAX_POINTS {
        return points.clone();
    }
    let mean = |chunk: &[(f64, f64)]| {
        let n = chunk.len() as f64;
        (chunk.iter().map(|point| point.0).sum::<f64>() / n, chunk.iter().map(|point| point.1).sum::<f64>() / n)
    };
    let inner = &points[1..points.len() - 1];
    let chunks = inner.chunks(inner.len().div_ceil(MAX_POINTS - 2)).map(mean);
    std::iter::once(points[0]).chain(chunks).chain(points.last().copied()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn train(iteration: u64, loss: f64) -> Record {
        Record::Train { iteration, loss, lr: 1e-3, grad_norm: 1.0, tokens_per_s: 1.0 }
    }

    fn eval(iteration: u64, test_loss: f64) -> Record {
        Record::Eval { iteration, train_loss: None, test_loss, test_accuracy: None }
    }

    fn labels(title: &str) -> CurveLabels<'_> {
        CurveLabels { title, loss: Loss::PerToken, refit_at: None }
    }

    #[test]
    fn rounds_are_smoothed_apart() {
        let records: Vec<Record> = (1..=200).map(|at| train(at, if at <= 100 { 1.0 } else { 2.0 })).collect();
        let curves = Curves::new(&records, CurveLabels { refit_at: Some(100), ..labels("") }).unwrap();
        assert!(curves.train_smooth[0].iter().all(|point| point.1 == 1.0) && curves.train_smooth[1].iter().all(|point| point.1 == 2.0));
    }

    /// A run such as the Shakespeare one: fast fall, slow fall, then overfitting.
    fn run(iterations: u64) -> Vec<Record> {
        let mut records = vec![eval(0, 4.17)];
        for iteration in 1..=iterations {
            let at = iteration as f64;
            let noise = ((at * 12.9898).sin() * 43758.5453).fract() * 0.05;
            records.push(train(iteration, 1.15 + 3.0 * (-at / 60.0).exp() + 0.4 * (-at / 400.0).exp() + noise));
            if iteration % 25 == 0 {
                records.push(eval(iteration, 1.45 + 2.7 * (-at / 60.0).exp() + 0.3 * (-at / 300.0).exp() + at / 8000.0));
            }
        }
        records
    }

    #[test]
    fn both_pictures_are_drawn_with_axes_legend_and_best_point() {
        let directory = tempfile::tempdir().unwrap();
        assert!(draw_curves(&run(1500), labels("Character-level Shakespeare with minGRU"), directory.path()).unwrap());
        let svg = std::fs::read_to_string(directory.path().join("curves.svg")).unwrap();
        for part in ["Character-level Shakespeare", "iteration", "loss (nats per token)", "train", "test", "best 1.5", "Verdana"] {
            assert!(svg.contains(part), "{part}");
        }
        let png = std::fs::read(directory.path().join("curves.png")).unwrap();
        assert_eq!(png[..8], *b"\x89PNG\r\n\x1a\n");
        assert_eq!(png[16..24], [0, 0, 7, 128, 0, 0, 4, 176], "1920 by 1200");
        assert_eq!(std::fs::read_dir(directory.path()).unwrap().count(), 2);
    }

    #[test]
    fn a_long_run_makes_a_small_file() {
        let directory = tempfile::tempdir().unwrap();
        draw_curves(&run(20_000), labels(""), directory.path()).unwrap();
        assert!(std::fs::metadata(directory.path().join("curves.svg")).unwrap().len() < 100_000);
    }

    #[test]
    fn any_handful_of_records_can_be_drawn() {
        let directory = tempfile::tempdir().unwrap();
        let drawn = |records: &[Record]| draw_curves(records, labels("a & b < c > \"d\"\n日本"), directory.path()).unwrap();
        assert!(!drawn(&[]));
        assert!(!drawn(&[train(1, f64::NAN), eval(1, f64::INFINITY)]));
        assert!(drawn(&[train(1, 2.0)]));
        assert!(drawn(&[eval(0, 2.0)]));
        assert!(drawn(&[eval(0, 0.0), eval(1, 0.0)]));
        assert!(drawn(&[train(1, 1e30), train(2, 1e-30), eval(2, f64::NAN)]));
        assert!(drawn(&[train(u64::MAX, -1.0)]));
        assert!(drawn(&[train(1, 1e308), train(2, -1e308)]));
        assert!(drawn(&[eval(0, f64::MIN), train(1, f64::MAX), eval(u64::MAX, f64::MAX), eval(u64::MAX, f64::MIN_POSITIVE)]));
        assert!(drawn(&[train(u64::MAX, f64::MAX), train(u64::MAX - 1, f64::MAX)]));
    }

    #[test]
    fn a_directory_that_cannot_be_written_is_named() {
        let refused = draw_curves(&run(10), labels(""), "/nonexistent").unwrap_err().to_string();
        assert!(refused.starts_with("could not write '/nonexistent/curves.svg'"), "{refused}");
    }

    #[test]
    fn smoothing_neither_lags_nor_leads() {
        let line: Points = (0..1000).map(|at| (f64::from(at), 3.0 * f64::from(at))).collect();
        assert!(smooth(&line).iter().zip(&line).all(|(smooth, point)| (smooth.1 - point.1).abs() < 1e-9));
        assert!(smooth(&Points::new()).is_empty());
    }

    #[test]
    fn thinning_keeps_the_ends_and_the_mean() {
        let points: Points = (0..10_000).map(|at| (f64::from(at), f64::from(at % 7))).collect();
        let thinned = thin(&points);
        assert!(thinned.len() <= MAX_POINTS && thinned[0] == points[0] && thinned.last() == points.last());
        assert!((thinned.iter().map(|point| point.1).sum::<f64>() / thinned.len() as f64 - 3.0).abs() < 0.1);
    }
}
