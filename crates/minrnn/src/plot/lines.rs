//! Panels of lines, two side by side, under one title.

use std::path::Path;

use plotters::coord::Shift;
use plotters::prelude::*;
use plotters::style::text_anchor::{HPos, Pos, VPos};

use super::ticks::{self, Ticked};
use super::{COLORS, DrawResult, Drawn, GRID, INK, Picture, legible, range_of, save, shorten, text};
use crate::Result;

/// Of every picture: a page is hardly wider, and text stays legible.
const WIDTH: u32 = 960;
const PANEL_HEIGHT: u32 = 400;
const ONE_PANEL_HEIGHT: u32 = 520;
const TITLE_HEIGHT: i32 = 40;
/// Height of a line of the legend that all panels share.
const LEGEND_HEIGHT: i32 = 22;
/// About the width of a letter in it.
const LETTER: i32 = 8;
/// Length of a line in it.
const LEGEND_LINE: i32 = 30;
/// The name of what was published.
const PUBLISHED: &str = "published";
/// More panels go into further rows.
const PANELS_IN_A_ROW: usize = 2;

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

/// A line with a name.
#[derive(Debug, Clone, Default)]
pub struct Series {
    /// Its name in the legend.
    pub label: String,
    /// x and y, by x.
    pub points: Vec<(f64, f64)>,
    /// x, and the least and the greatest of what the line is the mean of.
    pub spread: Vec<(f64, f64, f64)>,
    /// Values of others, drawn as diamonds in the colour of the line.
    pub published: Vec<(f64, f64)>,
}

/// A height that lines are compared with.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Level {
    /// What it is.
    pub label: String,
    /// Where it is.
    pub y: f64,
}

/// One pair of axes. Several panels have one legend together, under the title, in which a name is one line whatever panel it is in; a panel alone has its own
/// in the corner where it covers least, and so have several with more names than there are colours, unless all show the same.
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
    /// Heights to compare with, as dotted lines with their names.
    pub levels: Vec<Level>,
    /// A stretch of x with a name, such as the lengths that were trained on; shaded.
    pub shaded: Option<(f64, f64, String)>,
    /// The lines; at most ten have colours of their own, each with another dash and mark than its neighbours.
    pub series: Vec<Series>,
}

/// Draws `panels` to `name.svg` and `name.png` in `directory`; false, and nothing is drawn, where they have no point.
///
/// # Errors
/// When a file cannot be written.
pub fn draw_lines(title: &str, panels: &[Panel], directory: impl AsRef<Path>, name: &str) -> Result<bool> {
    let Some(lines) = Lines::of(title, panels) else { return Ok(false) };
    save(&lines, directory.as_ref(), name)?;
    Ok(true)
}

/// Draws `panels`; none where they have no point.
///
/// # Errors
/// When they cannot be drawn.
pub fn line_picture(title: &str, panels: &[Panel]) -> Result<Option<Drawn>> {
    Lines::of(title, panels).map(|lines| Drawn::of(&lines)).transpose()
}

/// The panel in the coordinates it is drawn in, without points that cannot be; none where no point is left.
fn drawable(panel: &Panel) -> Option<Panel> {
    let map = |points: &[(f64, f64)]| {
        let mapped = points.iter().map(|&(x, y)| (panel.x_axis.position(x), panel.y_axis.position(y)));
        mapped.filter(|(x, y)| x.is_finite() && y.is_finite()).collect::<Vec<_>>()
    };
    let spread = |points: &[(f64, f64, f64)]| {
        let place = |&(x, low, high): &(f64, f64, f64)| (panel.x_axis.position(x), panel.y_axis.position(low), panel.y_axis.position(high));
        points.iter().map(place).filter(|(x, low, high)| [x, low, high].iter().all(|at| at.is_finite())).collect::<Vec<_>>()
    };
    let series = panel.series.iter().map(|series| Series {
        label: legible(&series.label),
        points: map(&series.points),
        spread: spread(&series.spread),
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

    fn label(self, position: f64) -> String {
        match self {
            Self::Linear => ticks::label(position),
            Self::Log2 => rounded(position.exp2()),
            Self::Log10 => rounded(10f64.powf(position)),
        }
    }

    /// The positions that have a label.
    fn ticks(self, (low, high): (f64, f64), most: usize) -> Vec<f64> {
        match self {
            Self::Linear => ticks::linear(low, high, most),
            Self::Log2 => ticks::powers_of_two(low, high, most),
            Self::Log10 => ticks::decades(low, high),
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
    /// Of those of `panels` that have a point; none where none has.
    fn of(title: &str, panels: &[Panel]) -> Option<Self> {
        let panels: Vec<Panel> = panels.iter().filter_map(drawable).collect();
        (!panels.is_empty()).then(|| Self { title: shorten(title), panels })
    }

    /// Rows and columns of panels.
    fn layout(&self) -> (usize, usize) {
        (self.panels.len().div_ceil(PANELS_IN_A_ROW), self.panels.len().min(PANELS_IN_A_ROW))
    }

    fn head_height(&self) -> i32 {
        TITLE_HEIGHT + if self.has_one_legend() { LEGEND_HEIGHT * self.legend().len() as i32 + 4 } else { 0 }
    }

    /// The entries of the legend by line, each with its place from the left: the names of the series, then what was published.
    fn legend(&self) -> Vec<Vec<(i32, String)>> {
        let mut names: Vec<String> = self.names().into_iter().map(str::to_owned).collect();
        names.extend(self.panels.iter().any(Panel::has_published).then(|| PUBLISHED.to_owned()));
        let (mut lines, mut x) = (vec![Vec::new()], 16);
        for name in names {
            let width = LEGEND_LINE + 8 + LETTER * name.chars().count() as i32 + 16;
            if x + width > WIDTH as i32 && x > 16 {
                lines.push(Vec::new());
                x = 16;
            }
            lines.last_mut().expect("there is a line").push((x, name));
            x += width;
        }
        lines
    }

    /// The names of all lines, each once, those of the panel with most of them first.
    fn names(&self) -> Vec<&str> {
        // Of equals the first.
        let fullest = self.panels.iter().rev().max_by_key(|panel| panel.series.len());
        let mut names = Vec::new();
        for series in fullest.into_iter().chain(&self.panels).flat_map(|panel| &panel.series) {
            if !names.contains(&series.label.as_str()) {
                names.push(&series.label);
            }
        }
        names
    }

    /// Whether one legend serves all panels: every name has a colour of its own, or all panels show the same lines, or some of them.
    fn has_one_legend(&self) -> bool {
        let names = self.names().len();
        self.panels.len() > 1 && (names <= COLORS.len() || self.panels.iter().any(|panel| panel.series.len() == names))
    }

    /// The lines' names beside each other under the title.
    fn draw_legend<B: DrawingBackend>(&self, head: &DrawingArea<B, Shift>, scale: i32) -> DrawResult<B> {
        let style = text(13 * scale, INK).pos(Pos::new(HPos::Left, VPos::Center));
        let n_series = self.names().len();
        let mut at = 0;
        for (row, entries) in self.legend().into_iter().enumerate() {
            let y = (TITLE_HEIGHT + LEGEND_HEIGHT * row as i32 + LEGEND_HEIGHT / 2) * scale;
            for (x, name) in entries {
                let x = x * scale;
                if at < n_series {
                    sample(at, (x, y), scale).iter().try_for_each(|path| head.draw(path))?;
                } else {
                    head.draw(&Polygon::new(diamond((x + LEGEND_LINE / 2 * scale, y), scale), INK.filled()))?;
                }
                head.draw(&Text::new(name, (x + (LEGEND_LINE + 8) * scale, y), style.clone()))?;
                at += 1;
            }
        }
        Ok(())
    }
}

impl Picture for Lines {
    fn size(&self) -> (u32, u32) {
        let (rows, columns) = self.layout();
        let height = if columns == 1 { ONE_PANEL_HEIGHT } else { PANEL_HEIGHT };
        (WIDTH, self.head_height() as u32 + height * rows as u32)
    }

    fn draw<'a, B: DrawingBackend + 'a>(&self, area: DrawingArea<B, Shift>, scale: i32) -> DrawResult<B> {
        area.fill(&WHITE)?;
        let (head, body) = area.split_vertically(self.head_height() * scale);
        head.draw(&Text::new(self.title.clone(), (16 * scale, 14 * scale), text(18 * scale, INK)))?;
        let one_legend = self.has_one_legend();
        if one_legend {
            self.draw_legend(&head, scale)?;
        }
        let names = self.names();
        for (panel, area) in self.panels.iter().zip(body.split_evenly(self.layout())) {
            let place = |series: &Series| names.iter().position(|name| *name == series.label).unwrap_or(0);
            let styles: Vec<usize> = if one_legend { panel.series.iter().map(place).collect() } else { (0..panel.series.len()).collect() };
            panel.draw(&area, scale, &styles, !one_legend)?;
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

    /// Draws it with its lines in the colours, dashes and marks of those numbers.
    fn draw<B: DrawingBackend>(&self, area: &DrawingArea<B, Shift>, scale: i32, styles: &[usize], with_legend: bool) -> DrawResult<B> {
        let all = || self.series.iter().flat_map(|series| series.points.iter().chain(&series.published));
        let levels = || self.levels.iter().map(|level| self.y_axis.position(level.y)).filter(|y| y.is_finite());
        let spread = || self.series.iter().flat_map(|series| &series.spread);
        let y_reach = self.y_reach.iter().map(|&y| self.y_axis.position(y)).chain(levels());
        let y_reach = y_reach.chain(spread().flat_map(|&(_, low, high)| [low, high]));
        let (x, y) = (self.x_axis.range(all().map(|point| point.0)), self.y_axis.range(all().map(|point| point.1).chain(y_reach)));
        let line = |color: RGBColor, width: i32| color.stroke_width((width * scale) as u32);
        let (x_ticks, y_ticks) = (self.x_axis.ticks(x, 8), self.y_axis.ticks(y, 8));
        let mut chart = ChartBuilder::on(area)
            .margin(10 * scale)
            .margin_right(24 * scale)
            .x_label_area_size(44 * scale)
            .y_label_area_size(70 * scale)
            .build_cartesian_2d(Ticked { range: x.0..x.1, ticks: x_ticks }, Ticked { range: y.0..y.1, ticks: y_ticks })?;
        if let Some((from, to, name)) = &self.shaded {
            let (from, to) = (self.x_axis.position(*from).max(x.0), self.x_axis.position(*to).min(x.1));
            if from < to {
                chart.draw_series([Rectangle::new([(from, y.0), (to, y.1)], GRID.mix(0.55).filled())])?;
                let style = text(12 * scale, INK).pos(Pos::new(HPos::Left, VPos::Top));
                chart.draw_series([EmptyElement::at((from, y.1)) + Text::new(name.clone(), (4 * scale, 4 * scale), style)])?;
            }
        }
        chart
            .configure_mesh()
            .x_desc(self.x_label.clone())
            .y_desc(self.y_label.clone())
            .x_label_formatter(&|at| self.x_axis.label(*at))
            .y_label_formatter(&|at| self.y_axis.label(*at))
            .label_style(text(13 * scale, INK))
            .axis_desc_style(text(14 * scale, INK))
            .axis_style(line(INK, 1))
            .bold_line_style(line(GRID, 1))
            .light_line_style(TRANSPARENT)
            .set_all_tick_mark_size(4 * scale)
            .draw()?;
        for y in levels() {
            chart.draw_series(DashedLineSeries::new([(x.0, y), (x.1, y)], 2 * scale, 4 * scale, line(INK, 1)))?;
        }
        for (&at, series) in styles.iter().zip(&self.series) {
            let color = color(at);
            if series.spread.len() > 1 {
                let above = series.spread.iter().map(|&(x, _, high)| (x, high));
                let below = series.spread.iter().rev().map(|&(x, low, _)| (x, low));
                chart.draw_series([Polygon::new(above.chain(below).collect::<Vec<_>>(), color.mix(0.14).filled())])?;
            }
            let points = series.points.iter().copied();
            match DASHES[at % DASHES.len()] {
                (_, 0) => chart.draw_series(LineSeries::new(points, line(color, 2)))?,
                (length, gap) => chart.draw_series(DashedLineSeries::new(points, length * scale, gap * scale, line(color, 2)))?,
            };
            for place in marked(at, &series.points) {
                for path in mark(at, (0, 0), scale) {
                    chart.draw_series([EmptyElement::at(place) + PathElement::new(path, line(color, 2))])?;
                }
            }
            let published = series.published.iter();
            chart.draw_series(published.map(|&at| EmptyElement::at(at) + Polygon::new(diamond((0, 0), scale), color.filled())))?;
        }
        // Above the lines, which would make them illegible.
        for (level, y) in self.levels.iter().zip(levels()) {
            let style = text(12 * scale, INK).pos(Pos::new(HPos::Right, VPos::Bottom));
            let label = legible(&level.label);
            let (width, height) = area.estimate_text_size(&label, &style)?;
            let (right, bottom) = (-4 * scale, -2 * scale);
            let behind = Rectangle::new([(right - width as i32, bottom - height as i32), (right, bottom)], WHITE.mix(0.8).filled());
            chart.draw_series([EmptyElement::at((x.1, y)) + behind + Text::new(label, (right, bottom), style)])?;
        }
        if !with_legend {
            return Ok(());
        }
        let (whole, inner) = (area.get_pixel_range(), chart.plotting_area().get_pixel_range());
        let place = |range: &std::ops::Range<i32>, start: i32| (range.start - start, range.end - start);
        let pixel = |point: (f64, f64)| {
            let (right, down) = chart.backend_coord(&point);
            (right - whole.0.start, down - whole.1.start)
        };
        let mut taken: Vec<(i32, i32)> =
            self.series.iter().flat_map(|series| along(&series.points).chain(series.published.clone())).map(pixel).collect();
        for (level, y) in self.levels.iter().zip(levels()) {
            let (right, down) = pixel((x.1, y));
            taken.extend((0..level.label.chars().count() as i32).map(|letter| (right - letter * LETTER * scale, down - 6 * scale)));
        }
        if let Some((from, _, name)) = &self.shaded {
            let (left, down) = pixel((self.x_axis.position(*from).max(x.0), y.1));
            taken.extend((0..name.chars().count() as i32).map(|letter| (left + letter * LETTER * scale, down + 10 * scale)));
        }
        self.draw_legend(area, place(&inner.0, whole.0.start), place(&inner.1, whole.1.start), &taken, scale)
    }

    /// The names of the lines in the corner of the panel, whose pixels are given, that has the fewest pixels of `taken`.
    fn draw_legend<B: DrawingBackend>(
        &self,
        area: &DrawingArea<B, Shift>,
        across: (i32, i32),
        down: (i32, i32),
        taken: &[(i32, i32)],
        scale: i32,
    ) -> DrawResult<B> {
        let style = text(13 * scale, INK).pos(Pos::new(HPos::Left, VPos::Center));
        let mut names: Vec<&str> = self.series.iter().map(|series| series.label.as_str()).collect();
        names.extend(self.has_published().then_some(PUBLISHED));
        let mut widest = 0;
        for name in &names {
            widest = widest.max(area.estimate_text_size(name, &style)?.0 as i32);
        }
        let (width, height) = (widest + (LEGEND_LINE + 24) * scale, (20 * names.len() as i32 + 8) * scale);
        let (x, y) = emptiest_corner(taken, (width, height), across, down, 8 * scale);
        let corners = [(x, y), (x + width, y + height)];
        area.draw(&Rectangle::new(corners, WHITE.mix(0.85).filled()))?;
        area.draw(&Rectangle::new(corners, GRID.stroke_width(scale as u32)))?;
        for (at, name) in names.iter().enumerate() {
            let place = (x + 8 * scale, y + (20 * at as i32 + 14) * scale);
            if at < self.series.len() {
                sample(at, place, scale).iter().try_for_each(|path| area.draw(path))?;
            } else {
                area.draw(&Polygon::new(diamond((place.0 + LEGEND_LINE / 2 * scale, place.1), scale), INK.filled()))?;
            }
            area.draw(&Text::new((*name).to_owned(), (place.0 + (LEGEND_LINE + 8) * scale, place.1), style.clone()))?;
        }
        Ok(())
    }
}

/// The points of a line and others between them, close enough to tell what the line goes through.
fn along(points: &[(f64, f64)]) -> impl Iterator<Item = (f64, f64)> {
    const BETWEEN: i32 = 16;
    let between = |pair: &[(f64, f64)]| {
        let ((x0, y0), (x1, y1)) = (pair[0], pair[1]);
        (1..=BETWEEN).map(move |step| {
            let share = f64::from(step) / f64::from(BETWEEN);
            (x0 + share * (x1 - x0), y0 + share * (y1 - y0))
        })
    };
    points.first().copied().into_iter().chain(points.windows(2).flat_map(between))
}

/// Where the upper left of a box goes, `margin` inside of the given pixels, to have the fewest of `taken` in it; of equals the first of upper
/// right, lower right, upper left and lower left.
fn emptiest_corner(
    taken: &[(i32, i32)],
    (width, height): (i32, i32),
    (left, right): (i32, i32),
    (top, bottom): (i32, i32),
    margin: i32,
) -> (i32, i32) {
    let (far_left, far_right) = (left + margin, right - margin - width);
    let (high, low) = (top + margin, bottom - margin - height);
    let inside = |x: i32, y: i32| taken.iter().filter(|at| (x..x + width).contains(&at.0) && (y..y + height).contains(&at.1)).count();
    let corners = [(far_right, high), (far_right, low), (far_left, high), (far_left, low)];
    corners.into_iter().min_by_key(|&(x, y)| inside(x, y)).expect("there are four")
}

/// Lengths of dashes and of the gaps between them; without a gap the line is whole. Neighbours differ, so that they are told apart in grey.
const DASHES: [(i32, i32); 4] = [(1, 0), (9, 4), (3, 3), (14, 3)];
/// Marks on a line, so many that each line shows which it is.
const MARKS: usize = 6;

/// The points of a line that have its mark: all of few, some of many, at other places for each line.
fn marked(at: usize, points: &[(f64, f64)]) -> Vec<(f64, f64)> {
    if points.len() <= 12 {
        return points.to_vec();
    }
    let every = points.len() / MARKS;
    points.iter().skip(at * every / 3 % every).step_by(every).copied().collect()
}

/// The strokes of the mark of line `at` around `center`.
fn mark(at: usize, (x, y): (i32, i32), scale: i32) -> Vec<Vec<(i32, i32)>> {
    let place = |&(right, down): &(i32, i32)| (x + right * scale, y + down * scale);
    let path = |points: &[(i32, i32)]| points.iter().map(place).collect::<Vec<_>>();
    match at % 6 {
        0 => vec![path(&[(-3, -1), (-1, -3), (1, -3), (3, -1), (3, 1), (1, 3), (-1, 3), (-3, 1), (-3, -1)])],
        1 => vec![path(&[(-3, -3), (3, -3), (3, 3), (-3, 3), (-3, -3)])],
        2 => vec![path(&[(0, -4), (4, 3), (-4, 3), (0, -4)])],
        3 => vec![path(&[(-3, -3), (3, 3)]), path(&[(-3, 3), (3, -3)])],
        4 => vec![path(&[(0, -5), (4, 0), (0, 5), (-4, 0), (0, -5)])],
        _ => vec![path(&[(-4, 0), (4, 0)]), path(&[(0, -4), (0, 4)])],
    }
}

/// The color of line `at`.
fn color(at: usize) -> RGBColor {
    COLORS[at % COLORS.len()]
}

/// The corners of the mark of what was published, around `center`.
fn diamond((x, y): (i32, i32), scale: i32) -> Vec<(i32, i32)> {
    let reach = 6 * scale;
    vec![(x, y - reach), (x + reach, y), (x, y + reach), (x - reach, y)]
}

/// A piece of line `at` with its mark, as legends show it.
fn sample(at: usize, (x, y): (i32, i32), scale: i32) -> Vec<PathElement<(i32, i32)>> {
    let style = color(at).stroke_width((2 * scale) as u32);
    let (length, gap) = DASHES[at % DASHES.len()];
    let dash = if gap == 0 { LEGEND_LINE } else { length };
    let dashes = (0..LEGEND_LINE).step_by((dash + gap) as usize).map(|from| {
        let to = (from + dash).min(LEGEND_LINE);
        vec![(x + from * scale, y), (x + to * scale, y)]
    });
    dashes.chain(mark(at, (x + LEGEND_LINE / 2 * scale, y), scale)).map(|path| PathElement::new(path, style)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn panel() -> Panel {
        let series = |label: &str, rate: f64| Series {
            label: label.to_owned(),
            points: (6..13).map(|power| (f64::from(1 << power), rate * f64::from(1 << power))).collect(),
            published: vec![(512.0, 3.0)],
            ..Series::default()
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
        assert_eq!(png[16..24], [0, 0, 7, 128, 0, 0, 3, 164], "1920 by 932");
        assert_eq!(svg.matches("minGRU").count(), 1, "one legend for both");
        let mut panels = vec![panel(); 4];
        panels[3].series.remove(0);
        assert_eq!(Lines { title: String::new(), panels }.size(), (960, 866));
        let series = (0..20).map(|at| Series { label: format!("model number {at}"), ..panel().series[0].clone() }).collect();
        let many = Panel { series, ..panel() };
        let picture = Lines { title: String::new(), panels: vec![many.clone(), many] };
        let legend = picture.legend();
        assert_eq!((legend.iter().map(Vec::len).sum::<usize>(), picture.size().1), (21, 40 + 4 + 22 * legend.len() as u32 + 400));
        assert!(legend.len() > 3 && legend.iter().flatten().all(|(x, _)| *x < 900), "{legend:?}");
        assert_eq!(std::fs::read_dir(directory.path()).unwrap().count(), 2);
    }

    #[test]
    fn a_name_with_control_characters_leaves_the_svg_well_formed() {
        let series = vec![Series { label: "a\u{1}\u{ffff}<&=r1\n".to_owned(), ..panel().series[0].clone() }];
        let drawn = line_picture("\u{1b}[31m", &[Panel { series, ..panel() }]).unwrap().unwrap();
        assert!(drawn.svg.chars().all(|c| c == '\n' || !c.is_control() && c != '\u{ffff}'), "{}", drawn.svg);
        assert!(drawn.svg.contains("a  &lt;&amp;=r1"), "{}", drawn.svg);
    }

    #[test]
    fn a_name_is_one_line_in_all_panels() {
        let (whole, mut first, mut second) = (panel(), panel(), panel());
        first.series.pop();
        second.series.remove(0);
        let lines = |panels: &[&Panel]| Lines { title: String::new(), panels: panels.iter().map(|&panel| panel.clone()).collect() };
        for panels in [[&whole, &first].as_slice(), &[&first, &whole], &[&second, &whole], &[&first, &second]] {
            let lines = lines(panels);
            assert!(lines.has_one_legend());
            assert_eq!(lines.names(), ["minGRU", "GRU & co"]);
        }
        assert!(!lines(&[&whole]).has_one_legend());
        // More names than colours, and no panel with all of them.
        let series = (0..COLORS.len()).map(|at| Series { label: format!("model {at}"), ..whole.series[0].clone() }).collect();
        let many = Panel { series, ..panel() };
        assert!(!lines(&[&many, &whole]).has_one_legend() && lines(&[&many, &many]).has_one_legend());

        let directory = tempfile::tempdir().unwrap();
        draw_lines("", &[whole, second], directory.path(), "p").unwrap();
        let svg = std::fs::read_to_string(directory.path().join("p.svg")).unwrap();
        // In both panels, and in the legend; that of the first line in one panel.
        let strokes = |at: usize| {
            let RGBColor(red, green, blue) = color(at);
            svg.matches(&format!("#{red:02X}{green:02X}{blue:02X}")).count()
        };
        assert!(strokes(1) > strokes(0) && strokes(0) > 0 && strokes(2) == 0, "{} and {}", strokes(0), strokes(1));
    }

    #[test]
    fn a_legend_goes_where_it_covers_least() {
        let place = |taken: &[(i32, i32)]| emptiest_corner(taken, (20, 10), (100, 200), (0, 100), 5);
        assert_eq!(place(&[]), (175, 5));
        assert_eq!(place(&[(180, 10)]), (175, 85));
        assert_eq!(place(&[(180, 10), (190, 90)]), (105, 5));
        assert_eq!(place(&[(180, 10), (190, 90), (110, 7)]), (105, 85));
        assert_eq!(place(&[(180, 10), (190, 90), (110, 7), (110, 90), (111, 90)]), (175, 5));
        let line: Vec<(f64, f64)> = along(&[(0.0, 0.0), (16.0, 32.0)]).collect();
        assert_eq!((line.len(), line[0], line[8], line[16]), (17, (0.0, 0.0), (8.0, 16.0), (16.0, 32.0)));
        assert_eq!(along(&[]).count(), 0);
    }

    #[test]
    fn points_without_a_place_are_left_out_and_a_picture_without_points_is_not_drawn() {
        let directory = tempfile::tempdir().unwrap();
        let with = |points: Vec<(f64, f64)>| {
            let series = Series { label: "x".to_owned(), points, ..Series::default() };
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
            ["0.8", "0.2"].map(|label| svg.contains(&format!("\n{label}\n")))
        };
        assert_eq!((labels("own", vec![]), labels("whole", vec![0.0, 1.0])), ([false; 2], [true; 2]));
    }

    #[test]
    fn levels_and_what_is_shaded_have_their_names() {
        let directory = tempfile::tempdir().unwrap();
        let levels = vec![Level { label: "always the same".to_owned(), y: 0.1 }];
        let series =
            vec![Series { points: vec![(1.0, 0.9), (256.0, 0.4)], spread: vec![(1.0, 0.8, 1.0), (256.0, 0.2, 0.6)], ..Series::default() }];
        let panel = Panel { levels, shaded: Some((1.0, 40.0, "trained on".to_owned())), series, ..Panel::default() };
        assert!(draw_lines("", &[panel], directory.path(), "levels").unwrap());
        let svg = std::fs::read_to_string(directory.path().join("levels.svg")).unwrap();
        assert!(svg.contains("always the same") && svg.contains("trained on") && svg.contains("<polygon"), "{svg}");
    }

    #[test]
    fn neighbouring_lines_differ_in_dash_and_mark() {
        for at in 0..12 {
            assert!(DASHES[at % DASHES.len()] != DASHES[(at + 1) % DASHES.len()] && mark(at, (0, 0), 1) != mark(at + 1, (0, 0), 1));
        }
        let points: Vec<(f64, f64)> = (0..1000).map(|x| (f64::from(x), 0.0)).collect();
        assert!((MARKS..=MARKS + 1).contains(&marked(0, &points).len()) && marked(0, &points) != marked(1, &points));
        assert_eq!(marked(3, &points[..12]).len(), 12);
    }

    #[test]
    fn labels_of_logarithmic_axes_are_short() {
        assert_eq!([4096.0, 31.62, 3.162, 0.0316].map(rounded), ["4096", "32", "3.2", "0.032"]);
        assert_eq!([10.0, 1.0, 100.0].map(rounded), ["10", "1", "100"]);
    }
}
