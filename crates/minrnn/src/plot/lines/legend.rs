//! The legend: below the title for several panels together, or inside a panel where it covers least.

use plotters::coord::Shift;
use plotters::prelude::*;
use plotters::style::text_anchor::{HPos, Pos, VPos};

use super::style::{Look, diamond};
use super::{Chart, Lines, Panel, Series, TITLE_HEIGHT, WIDTH};
use crate::plot::{COLORS, DrawResult, GRID, INK, text};

/// Line height of the legend that all panels share.
const LEGEND_HEIGHT: i32 = 22;
/// Approximate width of a letter in it.
const LETTER: i32 = 8;
/// Length of a line in it.
const LEGEND_LINE: i32 = 30;
/// The name of published values.
const PUBLISHED: &str = "published";

impl Lines {
    pub(super) fn head_height(&self) -> i32 {
        TITLE_HEIGHT + if self.has_one_legend() { LEGEND_HEIGHT * self.legend().len() as i32 + 4 } else { 0 }
    }

    /// The entries of the legend by line, each with its offset from the left: the names of the series, then published values.
    pub(super) fn legend(&self) -> Vec<Vec<(i32, String)>> {
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

    /// The names of all lines, each once, starting with those of the panel with the most; then those of references, which take no colour.
    pub(super) fn names(&self) -> Vec<&str> {
        // The first of equals.
        let fullest = self.panels.iter().rev().max_by_key(|panel| panel.series.len());
        let mut names = Vec::new();
        for is_reference in [false, true] {
            let series = fullest.into_iter().chain(&self.panels).flat_map(|panel| &panel.series);
            for series in series.filter(|series| series.is_reference == is_reference) {
                if !names.contains(&series.label.as_str()) {
                    names.push(&series.label);
                }
            }
        }
        names
    }

    /// Whether one legend serves all panels: every name has its own colour, or one panel shows all the lines of the others.
    pub(super) fn has_one_legend(&self) -> bool {
        let names = self.names().len();
        self.panels.len() > 1 && (names <= COLORS.len() || self.panels.iter().any(|panel| panel.series.len() == names))
    }

    /// The series of that name, in any panel.
    fn named<'a>(&'a self, name: &'a str) -> impl Iterator<Item = &'a Series> {
        self.panels.iter().flat_map(|panel| &panel.series).filter(move |series| series.label == name)
    }

    /// The lines' names beside each other under the title.
    pub(super) fn draw_legend<B: DrawingBackend>(&self, head: &DrawingArea<B, Shift>, scale: i32) -> DrawResult<B> {
        let style = text(13 * scale, INK).pos(Pos::new(HPos::Left, VPos::Center));
        let n_series = self.names().len();
        let mut at = 0;
        for (row, entries) in self.legend().into_iter().enumerate() {
            let y = (TITLE_HEIGHT + LEGEND_HEIGHT * row as i32 + LEGEND_HEIGHT / 2) * scale;
            for (x, name) in entries {
                let x = x * scale;
                let of_series = (at < n_series).then(|| {
                    let look = self.named(&name).next().map_or(Look::Line(at), |series| series.look(at));
                    (look, self.named(&name).any(Series::has_line))
                });
                entry(of_series, (x, y), scale).iter().try_for_each(|path| head.draw(path))?;
                head.draw(&Text::new(name, (x + (LEGEND_LINE + 8) * scale, y), style.clone()))?;
                at += 1;
            }
        }
        Ok(())
    }
}

impl Panel {
    fn has_published(&self) -> bool {
        self.series.iter().any(|series| !series.published.is_empty())
    }

    /// The names of the lines in the corner of `chart`, which is on `area`, with the fewest pixels of `taken`.
    pub(super) fn draw_legend<B: DrawingBackend>(
        &self,
        area: &DrawingArea<B, Shift>,
        chart: &Chart<B>,
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
        let (whole, inner) = (area.get_pixel_range(), chart.plotting_area().get_pixel_range());
        let place = |range: std::ops::Range<i32>, start: i32| (range.start - start, range.end - start);
        let corners = corners((width, height), place(inner.0, whole.0.start), place(inner.1, whole.1.start), 8 * scale);
        let (x, y) = emptiest(taken, (width, height), &corners);
        let corners = [(x, y), (x + width, y + height)];
        area.draw(&Rectangle::new(corners, WHITE.mix(0.85).filled()))?;
        area.draw(&Rectangle::new(corners, GRID.stroke_width(scale as u32)))?;
        for (at, name) in names.iter().enumerate() {
            let place = (x + 8 * scale, y + (20 * at as i32 + 14) * scale);
            let of_series = self.series.get(at).map(|series| (series.look(at), series.has_line()));
            entry(of_series, place, scale).iter().try_for_each(|path| area.draw(path))?;
            area.draw(&Text::new((*name).to_owned(), (place.0 + (LEGEND_LINE + 8) * scale, place.1), style.clone()))?;
        }
        Ok(())
    }
}

impl Series {
    /// Whether it has more than published values.
    fn has_line(&self) -> bool {
        !self.points.is_empty()
    }
}

/// The sample before a name: a piece of its line or, without a line, its diamond; for published values, a diamond without a line's colour.
fn entry(of_series: Option<(Look, bool)>, (x, y): (i32, i32), scale: i32) -> Vec<PathElement<(i32, i32)>> {
    let middle = (x + LEGEND_LINE / 2 * scale, y);
    match of_series {
        Some((look, true)) => look.sample((x, y), LEGEND_LINE, scale),
        Some((look, false)) => vec![diamond(middle, look.color(), scale)],
        None => vec![diamond(middle, INK, scale)],
    }
}

/// The points of a line and others between them, close enough together to find what the line covers.
pub(super) fn along(points: &[(f64, f64)]) -> impl Iterator<Item = (f64, f64)> {
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

/// The approximate positions of the letters of `words`, which begin at `x` with their middle at `y`.
pub(super) fn lettering(words: &str, (x, y): (i32, i32), scale: i32) -> impl Iterator<Item = (i32, i32)> {
    (0..words.chars().count() as i32).map(move |letter| (x + letter * LETTER * scale, y))
}

/// The upper left points of a box of that size placed in the corners of the given pixel ranges, `margin` inside: upper right, lower right, upper
/// left and lower left.
fn corners((width, height): (i32, i32), (left, right): (i32, i32), (top, bottom): (i32, i32), margin: i32) -> [(i32, i32); 4] {
    let (far_left, far_right) = (left + margin, right - margin - width);
    let (high, low) = (top + margin, bottom - margin - height);
    [(far_right, high), (far_right, low), (far_left, high), (far_left, low)]
}

/// The first of `places` for the upper left of a box of that size with the fewest of `taken` in the box.
pub(super) fn emptiest(taken: &[(i32, i32)], (width, height): (i32, i32), places: &[(i32, i32)]) -> (i32, i32) {
    let inside = |x: i32, y: i32| taken.iter().filter(|at| (x..x + width).contains(&at.0) && (y..y + height).contains(&at.1)).count();
    places.iter().copied().min_by_key(|&(x, y)| inside(x, y)).expect("there is a place")
}

#[cfg(test)]
mod tests {
    use super::super::tests::panel;
    use super::*;
    use crate::plot::draw_lines;

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
        // In both panels and in the legend; the first line's colour in one panel.
        let strokes = |at: usize| {
            let RGBColor(red, green, blue) = Look::Line(at).color();
            svg.matches(&format!("#{red:02X}{green:02X}{blue:02X}")).count()
        };
        assert!(strokes(1) > strokes(0) && strokes(0) > 0 && strokes(2) == 0, "{} and {}", strokes(0), strokes(1));
    }

    #[test]
    fn what_was_only_published_has_its_diamond_in_the_legend() {
        let paths = |of_series| entry(of_series, (0, 0), 1).len();
        assert!(paths(Some((Look::Line(1), true))) > 1 && paths(Some((Look::Line(1), false))) == 1 && paths(None) == 1);
        let mut only_published = panel();
        only_published.series[0].points.clear();
        let svgs = [vec![only_published.clone()], vec![only_published; 2]].map(|panels| {
            let directory = tempfile::tempdir().unwrap();
            assert!(draw_lines("", &panels, directory.path(), "p").unwrap());
            std::fs::read_to_string(directory.path().join("p.svg")).unwrap()
        });
        assert!(svgs.iter().all(|svg| svg.contains("minGRU") && svg.contains("published")));
    }

    #[test]
    fn a_legend_goes_where_it_covers_least() {
        let place = |taken: &[(i32, i32)]| emptiest(taken, (20, 10), &corners((20, 10), (100, 200), (0, 100), 5));
        assert_eq!(place(&[]), (175, 5));
        assert_eq!(place(&[(180, 10)]), (175, 85));
        assert_eq!(place(&[(180, 10), (190, 90)]), (105, 5));
        assert_eq!(place(&[(180, 10), (190, 90), (110, 7)]), (105, 85));
        assert_eq!(place(&[(180, 10), (190, 90), (110, 7), (110, 90), (111, 90)]), (175, 5));
        let line: Vec<(f64, f64)> = along(&[(0.0, 0.0), (16.0, 32.0)]).collect();
        assert_eq!((line.len(), line[0], line[8], line[16]), (17, (0.0, 0.0), (8.0, 16.0), (16.0, 32.0)));
        assert_eq!(along(&[]).count(), 0);
    }
}
