//! Panels of lines, two side by side, under one title.

mod legend;
mod style;

use std::path::Path;

use plotters::coord::Shift;
use plotters::prelude::*;
use plotters::style::text_anchor::{HPos, Pos, VPos};

use self::legend::{along, emptiest, lettering};
use self::style::{DOTS, Look, diamond};
use super::ticks::{self, Ticked};
use super::{DrawResult, Drawn, GRID, INK, Picture, legible, range_of, save, shorten, text};
use crate::Result;

/// Width of every picture: a page is hardly wider, and text stays legible.
const WIDTH: u32 = 960;
const PANEL_HEIGHT: u32 = 400;
const ONE_PANEL_HEIGHT: u32 = 520;
const TITLE_HEIGHT: i32 = 40;
/// More panels go into further rows.
const PANELS_IN_A_ROW: usize = 2;

/// The scale of an axis.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Axis {
    /// Linear.
    #[default]
    Linear,
    /// Powers of two; values must be positive.
    Log2,
    /// Powers of ten; values must be positive.
    Log10,
}

/// A named line.
#[derive(Debug, Clone, Default)]
pub struct Series {
    /// Its name in the legend.
    pub label: String,
    /// x and y, in order of x.
    pub points: Vec<(f64, f64)>,
    /// x, and the minimum and maximum of the values whose mean is the line.
    pub spread: Vec<(f64, f64, f64)>,
    /// Published values, drawn as hollow diamonds in the colour of the line.
    pub published: Vec<(f64, f64)>,
    /// Whether it is a reference for the others, like a [`Level`]: it is dotted, has no marks and does not use up a colour.
    pub is_reference: bool,
}

/// A height for comparison.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Level {
    /// Its label.
    pub label: String,
    /// Its y.
    pub y: f64,
}

/// One pair of axes. Several panels share one legend below the title, in which a name is the same line in every panel. A single panel has
/// its legend in the corner where it covers least, and so do several panels with more names than there are colours, unless all show the
/// same names.
#[derive(Debug, Clone, Default)]
pub struct Panel {
    /// The label of x, with its unit.
    pub x_label: String,
    /// The label of y, with its unit.
    pub y_label: String,
    /// The scale of x.
    pub x_axis: Axis,
    /// The scale of y.
    pub y_axis: Axis,
    /// Values of y that the axis must include.
    pub y_reach: Vec<f64>,
    /// Heights for comparison, as labelled dotted lines.
    pub levels: Vec<Level>,
    /// A shaded range of x with a label, such as the lengths that were trained on.
    pub shaded: Option<(f64, f64, String)>,
    /// The lines; up to ten have their own colours, each with a different dash and mark from its neighbours.
    pub series: Vec<Series>,
}

/// Draws `panels` to `name.svg` and `name.png` in `directory`. Returns false, without drawing, if they have no points.
///
/// # Errors
/// When a file cannot be written.
pub fn draw_lines(title: &str, panels: &[Panel], directory: impl AsRef<Path>, name: &str) -> Result<bool> {
    let Some(lines) = Lines::of(title, panels) else { return Ok(false) };
    save(&lines, directory.as_ref(), name)?;
    Ok(true)
}

/// Draws `panels`; `None` if they have no points.
///
/// # Errors
/// When they cannot be drawn.
pub fn line_picture(title: &str, panels: &[Panel]) -> Result<Option<Drawn>> {
    Lines::of(title, panels).map(|lines| Drawn::of(&lines)).transpose()
}

/// The panel in drawing coordinates, without points that cannot be drawn; `None` if no point is left.
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
        is_reference: series.is_reference,
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

/// Two significant digits of a number below 100; of others all digits before the point.
fn rounded(value: f64) -> String {
    let decimals = (1.0 - value.abs().max(1e-9).log10().floor()).clamp(0.0, 6.0) as usize;
    let text = format!("{value:.decimals$}");
    if text.contains('.') { text.trim_end_matches('0').trim_end_matches('.').to_owned() } else { text }
}

type Chart<'c, B> = ChartContext<'c, B, Cartesian2d<Ticked, Ticked>>;

/// The ranges of a panel in drawing coordinates, and its size.
#[derive(Debug, Clone, Copy)]
struct Frame {
    x: (f64, f64),
    y: (f64, f64),
    scale: i32,
}

impl Frame {
    fn line(self, color: RGBColor, width: i32) -> ShapeStyle {
        color.stroke_width((width * self.scale) as u32)
    }
}

struct Lines {
    title: String,
    panels: Vec<Panel>,
}

impl Lines {
    /// From the `panels` that have a point; `None` if none has.
    fn of(title: &str, panels: &[Panel]) -> Option<Self> {
        let panels: Vec<Panel> = panels.iter().filter_map(drawable).collect();
        (!panels.is_empty()).then(|| Self { title: shorten(title), panels })
    }

    /// Numbers of rows and columns of panels.
    fn layout(&self) -> (usize, usize) {
        (self.panels.len().div_ceil(PANELS_IN_A_ROW), self.panels.len().min(PANELS_IN_A_ROW))
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
            let number = |(at, series): (usize, &Series)| series.look(if one_legend { place(series) } else { at });
            let looks: Vec<Look> = panel.series.iter().enumerate().map(number).collect();
            panel.draw(&area, scale, &looks, !one_legend)?;
        }
        area.present()
    }
}

impl Panel {
    /// Removes the losses of the first iterations, next to which those to be compared would look equal: those more than half above the
    /// minimum. A panel with few other points is left unchanged.
    pub fn leave_out_the_fall(&mut self) {
        let all = || self.series.iter().flat_map(|series| &series.points);
        let least = all().map(|point| point.1).fold(f64::INFINITY, f64::min);
        if all().filter(|point| point.1 <= 1.5 * least).count() > 2 * self.series.len() {
            for series in &mut self.series {
                series.points.retain(|point| point.1 <= 1.5 * least);
                // Their spreads are removed with them.
                let points = &series.points;
                series.spread.retain(|spread| points.iter().any(|point| point.0 == spread.0));
            }
        }
    }

    /// Draws the panel with the given looks of its lines.
    fn draw<B: DrawingBackend>(&self, area: &DrawingArea<B, Shift>, scale: i32, looks: &[Look], with_legend: bool) -> DrawResult<B> {
        let frame = self.frame(scale);
        let (x, y) = (frame.x, frame.y);
        let mut chart = ChartBuilder::on(area)
            .margin(10 * scale)
            .margin_right(24 * scale)
            .x_label_area_size(44 * scale)
            .y_label_area_size(70 * scale)
            .build_cartesian_2d(
                Ticked { range: x.0..x.1, ticks: self.x_axis.ticks(x, 8) },
                Ticked { range: y.0..y.1, ticks: self.y_axis.ticks(y, 8) },
            )?;
        self.draw_shade(&mut chart, frame)?;
        self.draw_mesh(&mut chart, frame)?;
        for (_, y) in self.placed_levels() {
            chart.draw_series(DashedLineSeries::new([(x.0, y), (x.1, y)], DOTS.0 * scale, DOTS.1 * scale, frame.line(INK, 1)))?;
        }
        for (&look, series) in looks.iter().zip(&self.series) {
            series.draw(&mut chart, look, frame)?;
        }
        let mut taken = self.taken(area, &chart, frame);
        // Drawn over the lines, which would make them illegible.
        self.label_levels(area, &chart, frame, &mut taken)?;
        if with_legend {
            self.draw_legend(area, &chart, &taken, scale)?;
        }
        Ok(())
    }

    fn frame(&self, scale: i32) -> Frame {
        let all = || self.series.iter().flat_map(|series| series.points.iter().chain(&series.published));
        let spread = self.series.iter().flat_map(|series| &series.spread).flat_map(|&(_, low, high)| [low, high]);
        let levels = self.placed_levels().map(|(_, y)| y);
        let y_reach = self.y_reach.iter().map(|&y| self.y_axis.position(y)).chain(levels).chain(spread);
        Frame { x: self.x_axis.range(all().map(|point| point.0)), y: self.y_axis.range(all().map(|point| point.1).chain(y_reach)), scale }
    }

    /// The levels that have a position on the axis, with that position.
    fn placed_levels(&self) -> impl Iterator<Item = (&Level, f64)> {
        self.levels.iter().map(|level| (level, self.y_axis.position(level.y))).filter(|(_, y)| y.is_finite())
    }

    /// The part of the shaded range inside the frame, with its name.
    fn placed_shade(&self, frame: Frame) -> Option<(f64, f64, &str)> {
        let (from, to, name) = self.shaded.as_ref()?;
        let (from, to) = (self.x_axis.position(*from).max(frame.x.0), self.x_axis.position(*to).min(frame.x.1));
        (from < to).then_some((from, to, name))
    }

    fn draw_shade<B: DrawingBackend>(&self, chart: &mut Chart<B>, frame: Frame) -> DrawResult<B> {
        if let Some((from, to, name)) = self.placed_shade(frame) {
            let (y, scale) = (frame.y, frame.scale);
            chart.draw_series([Rectangle::new([(from, y.0), (to, y.1)], GRID.mix(0.55).filled())])?;
            let style = text(12 * scale, INK).pos(Pos::new(HPos::Left, VPos::Top));
            chart.draw_series([EmptyElement::at((from, y.1)) + Text::new(name.to_owned(), (4 * scale, 4 * scale), style)])?;
        }
        Ok(())
    }

    fn draw_mesh<B: DrawingBackend>(&self, chart: &mut Chart<B>, frame: Frame) -> DrawResult<B> {
        chart
            .configure_mesh()
            .x_desc(self.x_label.clone())
            .y_desc(self.y_label.clone())
            .x_label_formatter(&|at| self.x_axis.label(*at))
            .y_label_formatter(&|at| self.y_axis.label(*at))
            .label_style(text(13 * frame.scale, INK))
            .axis_desc_style(text(14 * frame.scale, INK))
            .axis_style(frame.line(INK, 1))
            .bold_line_style(frame.line(GRID, 1))
            .light_line_style(TRANSPARENT)
            .set_all_tick_mark_size(4 * frame.scale)
            .draw()
    }

    /// The pixels of `area` that are covered by lines, published values and the name of the shaded range.
    fn taken<B: DrawingBackend>(&self, area: &DrawingArea<B, Shift>, chart: &Chart<B>, frame: Frame) -> Vec<(i32, i32)> {
        let points = self.series.iter().flat_map(|series| along(&series.points).chain(series.published.iter().copied()));
        let mut taken: Vec<(i32, i32)> = points.map(|point| pixel(area, chart, point)).collect();
        if let Some((from, _, name)) = self.placed_shade(frame) {
            let (left, top) = pixel(area, chart, (from, frame.y.1));
            taken.extend(lettering(name, (left, top + 10 * frame.scale), frame.scale));
        }
        taken
    }

    /// Writes the names of the levels above them, each on the side where it covers less of `taken`, and adds it to `taken`.
    fn label_levels<B: DrawingBackend>(
        &self,
        area: &DrawingArea<B, Shift>,
        chart: &Chart<B>,
        frame: Frame,
        taken: &mut Vec<(i32, i32)>,
    ) -> DrawResult<B> {
        let scale = frame.scale;
        let style = text(12 * scale, INK).pos(Pos::new(HPos::Left, VPos::Bottom));
        for (level, y) in self.placed_levels() {
            let label = legible(&level.label);
            let (width, height) = area.estimate_text_size(&label, &style)?;
            let (width, height) = (width as i32, height as i32);
            let ((left, at), (right, _)) = (pixel(area, chart, (frame.x.0, y)), pixel(area, chart, (frame.x.1, y)));
            let (bottom, gap) = (at - 2 * scale, 4 * scale);
            let top = bottom - height;
            let (x, _) = emptiest(taken, (width, height), &[(right - gap - width, top), (left + gap, top)]);
            area.draw(&Rectangle::new([(x, top), (x + width, bottom)], WHITE.mix(0.8).filled()))?;
            taken.extend(lettering(&label, (x, bottom - height / 2), scale));
            area.draw(&Text::new(label, (x, bottom), style.clone()))?;
        }
        Ok(())
    }
}

/// The pixel of `point` in `chart`, which is on `area`.
fn pixel<B: DrawingBackend>(area: &DrawingArea<B, Shift>, chart: &Chart<B>, point: (f64, f64)) -> (i32, i32) {
    let ((across, down), (x, y)) = (area.get_pixel_range(), chart.backend_coord(&point));
    (x - across.start, y - down.start)
}

impl Series {
    /// Its look if it is line number `at`.
    fn look(&self, at: usize) -> Look {
        if self.is_reference { Look::Reference } else { Look::Line(at) }
    }

    /// Draws the spread, the line with its marks, and the published values.
    fn draw<B: DrawingBackend>(&self, chart: &mut Chart<B>, look: Look, frame: Frame) -> DrawResult<B> {
        let (color, scale) = (look.color(), frame.scale);
        let stroke = frame.line(color, look.width());
        if self.spread.len() > 1 {
            let above = self.spread.iter().map(|&(x, _, high)| (x, high));
            let below = self.spread.iter().rev().map(|&(x, low, _)| (x, low));
            chart.draw_series([Polygon::new(above.chain(below).collect::<Vec<_>>(), color.mix(0.14).filled())])?;
        }
        let points = self.points.iter().copied();
        match look.dash() {
            (_, 0) => chart.draw_series(LineSeries::new(points, stroke))?,
            (length, gap) => chart.draw_series(DashedLineSeries::new(points, length * scale, gap * scale, stroke))?,
        };
        for place in look.marked(&self.points) {
            for path in look.mark((0, 0), scale) {
                chart.draw_series([EmptyElement::at(place) + PathElement::new(path, stroke)])?;
            }
        }
        chart.draw_series(self.published.iter().map(|&at| EmptyElement::at(at) + diamond((0, 0), color, scale)))?;
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    pub fn panel() -> Panel {
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
    fn a_reference_comes_last_in_the_legend_and_takes_no_colour() {
        let reference = Series { label: "no model".to_owned(), is_reference: true, published: vec![], ..panel().series[0].clone() };
        let mut panels = [panel(), panel()];
        panels[0].series.insert(0, reference.clone());
        let lines = Lines { title: String::new(), panels: panels.to_vec() };
        assert_eq!(lines.names(), ["minGRU", "GRU & co", "no model"]);
        let directory = tempfile::tempdir().unwrap();
        draw_lines("", &panels, directory.path(), "p").unwrap();
        let svg = std::fs::read_to_string(directory.path().join("p.svg")).unwrap();
        let strokes = |RGBColor(red, green, blue): RGBColor| svg.matches(&format!("stroke=\"#{red:02X}{green:02X}{blue:02X}\"")).count();
        // In the legend and the first panel; the third colour is left for a third line.
        assert!(svg.contains("no model") && strokes(Look::Line(1).color()) > 0 && strokes(Look::Line(2).color()) == 0);
        panels[0].series[0].is_reference = false;
        assert_eq!(Lines { title: String::new(), panels: panels.to_vec() }.names(), ["no model", "minGRU", "GRU & co"]);
    }

    #[test]
    fn the_fall_is_left_out_unless_little_else_is_there() {
        let of = |losses: &[f64]| {
            let points: Vec<(f64, f64)> = losses.iter().enumerate().map(|(at, &loss)| (at as f64, loss)).collect();
            let spread = points.iter().map(|&(at, loss)| (at, loss - 0.5, loss + 0.5)).collect();
            let mut panel = Panel { series: vec![Series { points, spread, ..Series::default() }], ..Panel::default() };
            panel.leave_out_the_fall();
            let series = &panel.series[0];
            assert!(series.spread.iter().map(|spread| spread.0).eq(series.points.iter().map(|point| point.0)));
            series.points.clone()
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
    fn the_name_of_a_level_stands_at_the_side_where_fewer_lines_are() {
        let left_of_name = |points: Vec<(f64, f64)>| {
            let directory = tempfile::tempdir().unwrap();
            let levels = vec![Level { label: "always the same".to_owned(), y: 0.1 }];
            let series = vec![Series { points, ..Series::default() }];
            let panel = Panel { levels, y_reach: vec![0.0, 1.0], series, ..Panel::default() };
            draw_lines("", &[panel], directory.path(), "p").unwrap();
            let svg = std::fs::read_to_string(directory.path().join("p.svg")).unwrap();
            let before = svg.split("always the same").next().unwrap();
            let number = before.rsplit(" x=\"").next().unwrap().split('"').next().unwrap();
            number.parse::<i32>().unwrap()
        };
        let half = WIDTH as i32 / 2;
        // A line that settles just above the level, and one that begins there.
        let (falling, rising) = (vec![(0.0, 0.9), (20.0, 0.11), (100.0, 0.11)], vec![(0.0, 0.11), (80.0, 0.11), (100.0, 0.9)]);
        assert!(left_of_name(falling) < half);
        assert!(left_of_name(rising) > half);
        assert!(left_of_name(vec![(0.0, 0.9), (100.0, 0.9)]) > half);
    }

    #[test]
    fn labels_of_logarithmic_axes_are_short() {
        assert_eq!([4096.0, 31.62, 3.162, 0.0316].map(rounded), ["4096", "32", "3.2", "0.032"]);
        assert_eq!([10.0, 1.0, 100.0].map(rounded), ["10", "1", "100"]);
    }
}
