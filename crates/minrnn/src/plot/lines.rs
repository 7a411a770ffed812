//! Panels of lines, three side by side, under one title.

use std::path::Path;

use plotters::coord::Shift;
use plotters::prelude::*;
use plotters::style::text_anchor::{HPos, Pos, VPos};

use super::{COLORS, DrawResult, GRID, INK, Picture, axis_label, range_of, save, shorten, text};
use crate::Result;

const PANEL_WIDTH: u32 = 640;
const ONE_PANEL_WIDTH: u32 = 960;
const PANEL_HEIGHT: u32 = 520;
const TITLE_HEIGHT: i32 = 40;
/// Height of a legend that all panels share.
const LEGEND_HEIGHT: i32 = 26;
/// Length of a line in it.
const LEGEND_LINE: i32 = 22;
/// More panels go into further rows.
const PANELS_IN_A_ROW: usize = 3;

/// How an axis is divided.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Axis {
    /// Evenly.
    #[default]
    Linear,
    /// By powers of two; values must be positive.
    Log2,
    /// By powers of ten; values must be positive.
    Log10,
}

/// The corner of the legend; panels that show the same lines have one legend together, under the title.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Legend {
    /// For lines that rise late.
    #[default]
    UpperLeft,
    /// For lines that fall.
    UpperRight,
    /// For lines that rise early.
    LowerRight,
}

/// A line with a name.
#[derive(Debug, Clone, Default)]
pub struct Series {
    /// Its name in the legend.
    pub label: String,
    /// x and y, by x.
    pub points: Vec<(f64, f64)>,
    /// Values of others, drawn as hollow circles in the colour of the line.
    pub published: Vec<(f64, f64)>,
}

/// One pair of axes.
#[derive(Debug, Clone, Default)]
pub struct Panel {
    /// What x is, with its unit.
    pub x_label: String,
    /// What y is, with its unit.
    pub y_label: String,
    /// How x is divided.
    pub x_axis: Axis,
    /// How y is divided.
    pub y_axis: Axis,
    /// Values of y that the axis reaches to, whatever the points are.
    pub y_reach: Vec<f64>,
    /// Where the legend is.
    pub legend: Legend,
    /// The lines; at most ten have colours of their own.
    pub series: Vec<Series>,
}

/// Draws `panels` to `name.svg` and `name.png` in `directory`; false, and nothing is drawn, where they have no point.
///
/// # Errors
/// When a file cannot be written.
pub fn draw_lines(title: &str, panels: &[Panel], directory: impl AsRef<Path>, name: &str) -> Result<bool> {
    let panels: Vec<Panel> = panels.iter().filter_map(drawable).collect();
    if panels.is_empty() {
        return Ok(false);
    }
    save(&Lines { title: shorten(title), panels }, directory.as_ref(), name)?;
    Ok(true)
}

/// The panel in the coordinates it is drawn in, without points that cannot be; none where no point is left.
fn drawable(panel: &Panel) -> Option<Panel> {
    let map = |points: &[(f64, f64)]| {
        let mapped = points.iter().map(|&(x, y)| (panel.x_axis.position(x), panel.y_axis.position(y)));
        mapped.filter(|(x, y)| x.is_finite() && y.is_finite()).collect::<Vec<_>>()
    };
    let series = panel.series.iter().map(|series| Series {
        label: series.label.clone(),
        points: map(&series.points),
        published: map(&series.published),
    });
    let series: Vec<Series> = series.filter(|series| !series.points.is_empty() || !series.published.is_empty()).collect();
    (!series.is_empty()).then(|| Panel { series, ..panel.clone() })
}

impl Axis {
    fn position(self, value: f64) -> f64 {
        match self {
            Self::Linear => value,
            Self::Log2 => value.log2(),
            Self::Log10 => value.log10(),
        }
    }

    fn label(self, position: f64, range: f64) -> String {
        match self {
            Self::Linear => axis_label(position, range),
            Self::Log2 => rounded(position.exp2()),
            Self::Log10 => rounded(10f64.powf(position)),
        }
    }

    fn range(self, positions: impl Iterator<Item = f64>) -> (f64, f64) {
        match self {
            Self::Linear => range_of(positions),
            _ => {
                let (low, high) = positions.fold((f64::INFINITY, f64::NEG_INFINITY), |(low, high), at| (low.min(at), high.max(at)));
                (low - 0.15, high + 0.15)
            }
        }
    }
}

/// Two significant digits of a number below 100, all digits before the point of others.
fn rounded(value: f64) -> String {
    let decimals = (1.0 - value.abs().max(1e-9).log10().floor()).clamp(0.0, 6.0) as usize;
    let text = format!("{value:.decimals$}");
    if text.contains('.') { text.trim_end_matches('0').trim_end_matches('.').to_owned() } else { text }
}

struct Lines {
    title: String,
    panels: Vec<Panel>,
}

impl Lines {
    /// Rows and columns of panels.
    fn layout(&self) -> (usize, usize) {
        (self.panels.len().div_ceil(PANELS_IN_A_ROW), self.panels.len().min(PANELS_IN_A_ROW))
    }

    fn head_height(&self) -> i32 {
        TITLE_HEIGHT + if self.has_one_legend() { LEGEND_HEIGHT } else { 0 }
    }

    /// Whether the panels show the same lines, so that one legend serves all.
    fn has_one_legend(&self) -> bool {
        let labels = |panel: &Panel| panel.series.iter().map(|series| series.label.clone()).collect::<Vec<_>>();
        self.panels.len() > 1 && self.panels.iter().all(|panel| labels(panel) == labels(&self.panels[0]))
    }

    /// The lines' names beside each other under the title.
    fn draw_legend<B: DrawingBackend>(&self, head: &DrawingArea<B, Shift>, scale: i32) -> DrawResult<B> {
        let style = text(13 * scale, INK).pos(Pos::new(HPos::Left, VPos::Center));
        let (mut x, y) = (16 * scale, (TITLE_HEIGHT + LEGEND_HEIGHT / 2) * scale);
        let name = |label: &str, x: &mut i32| -> DrawResult<B> {
            *x += (LEGEND_LINE + 8) * scale;
            head.draw(&Text::new(label.to_owned(), (*x, y), style.clone()))?;
            *x += head.estimate_text_size(label, &style)?.0 as i32 + 20 * scale;
            Ok(())
        };
        for (series, color) in self.panels[0].series.iter().zip(COLORS.iter().cycle()) {
            let line = color.stroke_width((2 * scale) as u32);
            head.draw(&PathElement::new([(x, y), (x + LEGEND_LINE * scale, y)], line))?;
            name(&series.label, &mut x)?;
        }
        if self.panels.iter().any(Panel::has_published) {
            head.draw(&Circle::new((x + LEGEND_LINE / 2 * scale, y), 5 * scale, INK.stroke_width((2 * scale) as u32)))?;
            name("published", &mut x)?;
        }
        Ok(())
    }
}

impl Picture for Lines {
    fn size(&self) -> (u32, u32) {
        let (rows, columns) = self.layout();
        let width = if columns == 1 { ONE_PANEL_WIDTH } else { PANEL_WIDTH * columns as u32 };
        (width, self.head_height() as u32 + PANEL_HEIGHT * rows as u32)
    }

    fn draw<'a, B: DrawingBackend + 'a>(&self, area: DrawingArea<B, Shift>, scale: i32) -> DrawResult<B> {
        area.fill(&WHITE)?;
        let (head, body) = area.split_vertically(self.head_height() * scale);
        head.draw(&Text::new(self.title.clone(), (16 * scale, 14 * scale), text(18 * scale, INK)))?;
        let one_legend = self.has_one_legend();
        if one_legend {
            self.draw_legend(&head, scale)?;
        }
        for (panel, area) in self.panels.iter().zip(body.split_evenly(self.layout())) {
            panel.draw(&area, scale, !one_legend)?;
        }
        area.present()
    }
}

impl Panel {
    /// Takes away the losses of the first iterations, next to which those that are compared would look equal: more than half above the
    /// least. A panel of few others stays as it is.
    pub fn leave_out_the_fall(&mut self) {
        let all = || self.series.iter().flat_map(|series| &series.points);
        let least = all().map(|point| point.1).fold(f64::INFINITY, f64::min);
        if all().filter(|point| point.1 <= 1.5 * least).count() > 2 * self.series.len() {
            self.series.iter_mut().for_each(|series| series.points.retain(|point| point.1 <= 1.5 * least));
        }
    }

    fn has_published(&self) -> bool {
        self.series.iter().any(|series| !series.published.is_empty())
    }

    fn draw<B: DrawingBackend>(&self, area: &DrawingArea<B, Shift>, scale: i32, with_legend: bool) -> DrawResult<B> {
        let all = || self.series.iter().flat_map(|series| series.points.iter().chain(&series.published));
        let y_reach = self.y_reach.iter().map(|&y| self.y_axis.position(y));
        let (x, y) = (self.x_axis.range(all().map(|point| point.0)), self.y_axis.range(all().map(|point| point.1).chain(y_reach)));
        let line = |color: RGBColor, width: i32| color.stroke_width((width * scale) as u32);
        let mut chart = ChartBuilder::on(area)
            .margin(10 * scale)
            .margin_right(24 * scale)
            .x_label_area_size(44 * scale)
            .y_label_area_size(70 * scale)
            .build_cartesian_2d(x.0..x.1, y.0..y.1)?;
        chart
            .configure_mesh()
            .x_desc(self.x_label.clone())
            .y_desc(self.y_label.clone())
            .x_labels(8)
            .y_labels(9)
            .x_label_formatter(&|at| self.x_axis.label(*at, x.1 - x.0))
            .y_label_formatter(&|at| self.y_axis.label(*at, y.1 - y.0))
            .label_style(text(13 * scale, INK))
            .axis_desc_style(text(14 * scale, INK))
            .axis_style(line(INK, 1))
            .bold_line_style(line(GRID, 1))
            .light_line_style(TRANSPARENT)
            .set_all_tick_mark_size(4 * scale)
            .draw()?;
        for (series, &color) in self.series.iter().zip(COLORS.iter().cycle()) {
            let width = (2 * scale) as u32;
            chart
                .draw_series(LineSeries::new(series.points.iter().copied(), line(color, 2)))?
                .label(series.label.clone())
                .legend(move |(x, y)| PathElement::new([(x, y), (x + 22 * scale, y)], color.stroke_width(width)));
            // A line through few points shows where they are.
            if series.points.len() <= 12 {
                chart.draw_series(series.points.iter().map(|&at| Circle::new(at, 3 * scale, color.filled())))?;
            }
            chart.draw_series(series.published.iter().map(|&at| Circle::new(at, 5 * scale, line(color, 2))))?;
        }
        if !with_legend {
            return Ok(());
        }
        if self.has_published() {
            let outline = line(INK, 2);
            chart
                .draw_series(std::iter::empty::<Circle<(f64, f64), i32>>())?
                .label("published")
                .legend(move |(x, y)| Circle::new((x + 11 * scale, y), 5 * scale, outline));
        }
        chart
            .configure_series_labels()
            .position(match self.legend {
                Legend::UpperLeft => SeriesLabelPosition::UpperLeft,
                Legend::UpperRight => SeriesLabelPosition::UpperRight,
                Legend::LowerRight => SeriesLabelPosition::LowerRight,
            })
            .background_style(WHITE.mix(0.85))
            .border_style(line(GRID, 1))
            .label_font(text(13 * scale, INK))
            .legend_area_size(30 * scale)
            .margin(8 * scale)
            .draw()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn panel() -> Panel {
        let series = |label: &str, rate: f64| Series {
            label: label.to_owned(),
            points: (6..13).map(|power| (f64::from(1 << power), rate * f64::from(1 << power))).collect(),
            published: vec![(512.0, 3.0)],
        };
        let (x_label, y_label) = ("length T".to_owned(), "time (ms)".to_owned());
        let series = vec![series("minGRU", 0.1), series("GRU & co", 1.0)];
        Panel { x_label, y_label, x_axis: Axis::Log2, y_axis: Axis::Log10, series, ..Panel::default() }
    }

    #[test]
    fn panels_have_axes_lines_and_a_legend() {
        let directory = tempfile::tempdir().unwrap();
        assert!(draw_lines("Training time", &[panel(), panel()], directory.path(), "figure1").unwrap());
        let svg = std::fs::read_to_string(directory.path().join("figure1.svg")).unwrap();
        for part in ["Training time", "length T", "time (ms)", "minGRU", "GRU &amp; co", "published", "4096"] {
            assert!(svg.contains(part), "{part}");
        }
        let png = std::fs::read(directory.path().join("figure1.png")).unwrap();
        assert_eq!(png[16..24], [0, 0, 10, 0, 0, 0, 4, 148], "2560 by 1172");
        assert_eq!(svg.matches("minGRU").count(), 1, "one legend for both");
        let mut panels = vec![panel(); 4];
        panels[3].series.pop();
        assert_eq!(Lines { title: String::new(), panels }.size(), (1920, 1080));
        assert_eq!(std::fs::read_dir(directory.path()).unwrap().count(), 2);
    }

    #[test]
    fn points_without_a_place_are_left_out_and_a_picture_without_points_is_not_drawn() {
        let directory = tempfile::tempdir().unwrap();
        let with = |points: Vec<(f64, f64)>| {
            let series = Series { label: "x".to_owned(), points, published: Vec::new() };
            draw_lines("", &[Panel { series: vec![series], ..panel() }], directory.path(), "p").unwrap()
        };
        assert!(!with(vec![]) && !with(vec![(0.0, 1.0), (1.0, f64::NAN)]));
        assert_eq!(std::fs::read_dir(directory.path()).unwrap().count(), 0);
        assert!(with(vec![(1.0, 1.0)]) && with(vec![(0.0, 1.0), (2.0, 1e-9)]));
    }

    #[test]
    fn the_fall_is_left_out_unless_little_else_is_there() {
        let of = |losses: &[f64]| {
            let points = losses.iter().enumerate().map(|(at, &loss)| (at as f64, loss)).collect();
            let mut panel = Panel { series: vec![Series { points, ..Series::default() }], ..Panel::default() };
            panel.leave_out_the_fall();
            panel.series[0].points.clone()
        };
        assert_eq!(of(&[4.0, 2.0, 1.5, 1.2, 1.0, 1.1]), [(2.0, 1.5), (3.0, 1.2), (4.0, 1.0), (5.0, 1.1)]);
        assert_eq!(of(&[4.0, 2.0, 1.2, 1.0]).len(), 4);
        assert!(of(&[]).is_empty());
    }

    #[test]
    fn an_axis_reaches_to_where_it_is_asked_to() {
        let directory = tempfile::tempdir().unwrap();
        let series = vec![Series { points: vec![(0.0, 0.5), (100.0, 0.5)], ..Series::default() }];
        let labels = |name: &str, y_reach| {
            draw_lines("", &[Panel { series: series.clone(), y_reach, ..Panel::default() }], directory.path(), name).unwrap();
            let svg = std::fs::read_to_string(directory.path().join(name).with_extension("svg")).unwrap();
            ["0.8", "0.2"].map(|label| svg.contains(&format!("\n{label}\n")) || svg.contains(&format!("\n{label}0\n")))
        };
        assert_eq!((labels("own", vec![]), labels("whole", vec![0.0, 1.0])), ([false; 2], [true; 2]));
    }

    #[test]
    fn labels_of_logarithmic_axes_are_short() {
        assert_eq!([4096.0, 31.62, 3.162, 0.0316].map(rounded), ["4096", "32", "3.2", "0.032"]);
        assert_eq!([10.0, 1.0, 100.0].map(rounded), ["10", "1", "100"]);
    }
}
