//! Groups of rows with a dot for each value: ours with its confidence interval, a published value as a hollow diamond, and a baseline
//! without a model as a bar.

use std::path::Path;

use plotters::coord::Shift;
use plotters::prelude::*;
use plotters::style::text_anchor::{HPos, Pos, VPos};

use super::{COLORS, DrawResult, GRID, INK, Picture, legible, range_of, save, shorten, text, ticks};
use crate::Result;

const WIDTH: i32 = 960;
const ROW_HEIGHT: i32 = 24;
/// Height of title and legend.
const HEAD_HEIGHT: i32 = 66;
/// Heights above and below the rows of a group.
const GROUP_TITLE: i32 = 24;
const AXIS_HEIGHT: i32 = 34;
/// Height of the name of what is measured, below all groups.
const FOOT_HEIGHT: i32 = 26;
/// Widths of the row labels: for a single group, and for several.
const LABEL_WIDTH: i32 = 330;
const NARROW_LABEL_WIDTH: i32 = 214;
/// Number of groups side by side.
const IN_A_ROW: usize = 3;
const GAP: i32 = 22;
/// Approximate width of a letter of the legend.
const LETTER: f64 = 7.5;

/// A row of a group.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Dot {
    /// The label of the measurement.
    pub label: String,
    /// Mean and, with several measurements, half the width of its confidence interval.
    pub ours: Option<(f64, Option<f64>)>,
    /// The published value, with its deviation.
    pub published: Option<(f64, Option<f64>)>,
    /// The value of a baseline without a model.
    pub without_model: Option<f64>,
}

impl Dot {
    fn values(&self) -> impl Iterator<Item = f64> {
        let ends = |(value, reach): (f64, Option<f64>)| [value - reach.unwrap_or(0.0), value + reach.unwrap_or(0.0)];
        self.ours.into_iter().chain(self.published).flat_map(ends).filter(|value| value.is_finite())
    }
}

/// Rows under one title.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct DotGroup {
    /// What they have in common; empty if there is only one group.
    pub title: String,
    /// The rows; groups side by side have rows with the same labels in the same order.
    pub dots: Vec<Dot>,
}

/// Draws `groups` to `name.svg` and `name.png` in `directory`, on one axis that covers all of `limits` and, if there are any, nothing
/// beyond: an interval that continues ends in an arrow head. Returns false, without drawing, if there are no values. A row without a value
/// in any group is left out.
///
/// # Errors
/// When a file cannot be written.
pub fn draw_dots(title: &str, x_label: &str, groups: &[DotGroup], limits: &[f64], directory: impl AsRef<Path>, name: &str) -> Result<bool> {
    let rows = groups.iter().map(|group| group.dots.len()).max().unwrap_or(0);
    let has_value = |row: &usize| groups.iter().filter_map(|group| group.dots.get(*row)).any(|dot| dot.values().next().is_some());
    let kept: Vec<usize> = (0..rows).filter(has_value).collect();
    if kept.is_empty() {
        return Ok(false);
    }
    let group = |group: &DotGroup| DotGroup {
        title: group.title.clone(),
        dots: kept.iter().map(|&row| group.dots.get(row).cloned().unwrap_or_default()).collect(),
    };
    let groups: Vec<DotGroup> = groups.iter().map(group).collect();
    let range = match limits {
        [] => range_of(groups.iter().flat_map(|group| &group.dots).flat_map(|dot| dot.values().chain(dot.without_model))),
        limits => range_of(limits.iter().copied()),
    };
    save(&Dots { title: shorten(title), x_label: x_label.to_owned(), groups, range }, directory.as_ref(), name)?;
    Ok(true)
}

struct Dots {
    title: String,
    x_label: String,
    groups: Vec<DotGroup>,
    range: (f64, f64),
}

impl Dots {
    fn label_width(&self) -> i32 {
        if self.groups.len() == 1 { LABEL_WIDTH } else { NARROW_LABEL_WIDTH }
    }

    fn group_height(&self) -> i32 {
        let title = if self.groups.len() == 1 { 4 } else { GROUP_TITLE };
        title + ROW_HEIGHT * self.groups[0].dots.len() as i32 + AXIS_HEIGHT
    }

    fn has(&self, part: impl Fn(&Dot) -> bool) -> bool {
        self.groups.iter().flat_map(|group| &group.dots).any(part)
    }
}

/// Draws with lengths in pixels of scale 1 on an area of any scale.
struct Pen<'p, B: DrawingBackend> {
    area: &'p DrawingArea<B, Shift>,
    scale: i32,
}

impl<B: DrawingBackend> Pen<'_, B> {
    fn at(&self, (x, y): (f64, f64)) -> (i32, i32) {
        let scaled = |length: f64| (length * f64::from(self.scale)).round() as i32;
        (scaled(x), scaled(y))
    }

    fn line(&self, points: &[(f64, f64)], color: RGBColor, width: i32) -> DrawResult<B> {
        let points: Vec<(i32, i32)> = points.iter().map(|&point| self.at(point)).collect();
        self.area.draw(&PathElement::new(points, color.stroke_width((width * self.scale) as u32)))
    }

    fn words(&self, words: &str, at: (f64, f64), size: i32, anchor: Pos) -> DrawResult<B> {
        // The middle of a line of text is above that of its lower-case letters.
        let at = (at.0, at.1 + 2.0);
        self.area.draw(&Text::new(legible(words), self.at(at), text(size * self.scale, INK).pos(anchor)))
    }

    fn circle(&self, at: (f64, f64)) -> DrawResult<B> {
        self.area.draw(&Circle::new(self.at(at), 4 * self.scale, COLORS[0].filled()))
    }

    fn diamond(&self, (x, y): (f64, f64)) -> DrawResult<B> {
        self.line(&[(x - 6.0, y), (x, y - 6.0), (x + 6.0, y), (x, y + 6.0), (x - 6.0, y)], COLORS[1], 2)
    }

    /// Shows that a line continues beyond the end of the axis at `x`, to the right if `sign` is 1, to the left if it is -1.
    fn arrow_head(&self, (x, y): (f64, f64), sign: f64, color: RGBColor, width: i32) -> DrawResult<B> {
        let [base, tip] = [3.0, 8.0].map(|beyond| x + sign * beyond);
        self.line(&[(base, y - 5.0), (tip, y), (base, y + 5.0)], color, width)
    }

    /// The mark of a baseline without a model.
    fn bar(&self, (x, y): (f64, f64)) -> DrawResult<B> {
        self.line(&[(x, y - 9.0), (x, y + 9.0)], INK, 2)
    }
}

const LEFT: Pos = Pos { h_pos: HPos::Left, v_pos: VPos::Center };
const RIGHT: Pos = Pos { h_pos: HPos::Right, v_pos: VPos::Center };
const CENTER: Pos = Pos { h_pos: HPos::Center, v_pos: VPos::Center };

impl Picture for Dots {
    fn size(&self) -> (u32, u32) {
        let rows = self.groups.len().div_ceil(IN_A_ROW) as i32;
        (WIDTH as u32, (HEAD_HEIGHT + rows * self.group_height() + FOOT_HEIGHT) as u32)
    }

    fn draw<'a, B: DrawingBackend + 'a>(&self, area: DrawingArea<B, Shift>, scale: i32) -> DrawResult<B> {
        area.fill(&WHITE)?;
        let pen = Pen { area: &area, scale };
        pen.words(&self.title, (16.0, 22.0), 18, LEFT)?;
        let label_width = f64::from(self.label_width());
        self.draw_legend(&pen, (label_width, 48.0))?;
        let columns = self.groups.len().min(IN_A_ROW);
        let width = (f64::from(WIDTH) - label_width - 16.0) / columns as f64 - f64::from(GAP);
        for (at, group) in self.groups.iter().enumerate() {
            let left = label_width + (at % IN_A_ROW) as f64 * (width + f64::from(GAP));
            let top = f64::from(HEAD_HEIGHT) + (at / IN_A_ROW) as f64 * f64::from(self.group_height());
            self.draw_group(&pen, group, (left, top), width, at % IN_A_ROW == 0)?;
        }
        let middle = (label_width + f64::from(WIDTH)) / 2.0;
        pen.words(&self.x_label, (middle, f64::from(self.size().1 as i32 - FOOT_HEIGHT / 2)), 14, CENTER)?;
        area.present()
    }
}

impl Dots {
    /// Each kind of mark that occurs, with its name.
    fn draw_legend<B: DrawingBackend>(&self, pen: &Pen<B>, (mut x, y): (f64, f64)) -> DrawResult<B> {
        let published = self.has(|dot| dot.published.is_some());
        let without_model = self.has(|dot| dot.without_model.is_some());
        // A legend only if there are kinds to distinguish.
        if !published && !without_model {
            return Ok(());
        }
        if self.has(|dot| dot.ours.is_some()) {
            let has_spread = self.has(|dot| dot.ours.is_some_and(|(_, reach)| reach.is_some()));
            let name = if has_spread { "ours, 95 % interval" } else { "ours" };
            if has_spread {
                pen.line(&[(x - 9.0, y), (x + 9.0, y)], COLORS[0], 2)?;
            }
            pen.circle((x, y))?;
            pen.words(name, (x + 15.0, y), 13, LEFT)?;
            x += 15.0 + LETTER * name.chars().count() as f64 + 30.0;
        }
        if published {
            pen.diamond((x, y))?;
            pen.words("published", (x + 14.0, y), 13, LEFT)?;
            x += 14.0 + LETTER * 9.0 + 30.0;
        }
        if without_model {
            pen.bar((x, y))?;
            pen.words("best answer without a model", (x + 10.0, y), 13, LEFT)?;
        }
        Ok(())
    }

    fn draw_group<B: DrawingBackend>(
        &self,
        pen: &Pen<B>,
        group: &DotGroup,
        (left, top): (f64, f64),
        width: f64,
        with_labels: bool,
    ) -> DrawResult<B> {
        let (low, high) = self.range;
        let x = |value: f64| left + width * ((value - low) / (high - low)).clamp(0.0, 1.0);
        let first = top + if self.groups.len() == 1 { 4.0 } else { f64::from(GROUP_TITLE) };
        let bottom = first + f64::from(ROW_HEIGHT) * group.dots.len() as f64;
        pen.words(&group.title, (left, top + 10.0), 14, LEFT)?;
        let most = if self.groups.len() == 1 { 9 } else { 6 };
        for tick in ticks::linear(low, high, most) {
            pen.line(&[(x(tick), first), (x(tick), bottom)], GRID, 1)?;
            pen.line(&[(x(tick), bottom), (x(tick), bottom + 4.0)], INK, 1)?;
            pen.words(&ticks::label(tick), (x(tick), bottom + 14.0), 12, CENTER)?;
        }
        pen.line(&[(left, bottom), (left + width, bottom)], INK, 1)?;
        for (row, dot) in group.dots.iter().enumerate() {
            let y = first + f64::from(ROW_HEIGHT) * (row as f64 + 0.5);
            if with_labels {
                pen.words(&dot.label, (left - 12.0, y), 13, RIGHT)?;
            }
            if let Some(value) = dot.without_model.filter(|value| value.is_finite()) {
                pen.bar((x(value), y))?;
            }
            let interval = |(value, reach): (f64, Option<f64>), color: RGBColor, stroke: i32| -> DrawResult<B> {
                let [from, to] = [-1.0, 1.0].map(|sign| value + sign * reach.unwrap_or(0.0));
                pen.line(&[(x(from), y), (x(to), y)], color, stroke)?;
                // Not if it is beyond only by rounding.
                let trace = 1e-9 * (high - low);
                if from < low - trace {
                    pen.arrow_head((left, y), -1.0, color, stroke)?;
                }
                if to > high + trace {
                    pen.arrow_head((left + width, y), 1.0, color, stroke)?;
                }
                Ok(())
            };
            if let Some(value) = dot.published.filter(|(value, _)| value.is_finite()) {
                interval(value, COLORS[1], 1)?;
                pen.diamond((x(value.0), y))?;
            }
            if let Some(value) = dot.ours.filter(|(value, _)| value.is_finite()) {
                interval(value, COLORS[0], 2)?;
                pen.circle((x(value.0), y))?;
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn dot(label: &str, ours: Option<(f64, Option<f64>)>, published: Option<(f64, Option<f64>)>) -> Dot {
        Dot { label: label.to_owned(), ours, published, without_model: None }
    }

    fn group(dots: &[Dot]) -> DotGroup {
        DotGroup { title: String::new(), dots: dots.to_vec() }
    }

    fn svg(directory: &Path, name: &str) -> String {
        std::fs::read_to_string(directory.join(name).with_extension("svg")).unwrap()
    }

    #[test]
    fn every_row_has_a_label_and_rows_without_values_are_left_out() {
        let directory = tempfile::tempdir().unwrap();
        let dots = [
            dot("minGRU, 3 layers", Some((99.5, Some(0.2))), Some((99.5, Some(0.2)))),
            dot("S4", None, Some((18.3, None))),
            dot("nothing", None, None),
            dot("not a number", Some((f64::NAN, None)), None),
        ];
        assert!(draw_dots("Table 2", "accuracy (%)", &[group(&dots)], &[], directory.path(), "table2").unwrap());
        let drawn = svg(directory.path(), "table2");
        assert!(["minGRU, 3 layers", "S4", "accuracy (%)", "published", "95 % interval"].iter().all(|part| drawn.contains(part)));
        assert!(!drawn.contains("nothing") && !drawn.contains("not a number") && !drawn.contains("without a model"));
        assert!(draw_dots("Ours", "loss", &[group(&[dot("minGRU", Some((0.1, None)), None)])], &[], directory.path(), "table2").unwrap());
        let drawn = svg(directory.path(), "table2");
        assert!(drawn.contains("minGRU") && !drawn.contains("published"));
        // Nothing is named that is not drawn.
        assert!(draw_dots("Theirs", "loss", &[group(&[dot("S4", None, Some((0.1, None)))])], &[], directory.path(), "table2").unwrap());
        let drawn = svg(directory.path(), "table2");
        assert!(drawn.contains("published") && !drawn.contains("ours"), "{drawn}");
        assert!(!draw_dots("", "", &[group(&dots[2..])], &[], directory.path(), "none").unwrap());
        assert!(!draw_dots("", "", &[], &[], directory.path(), "none").unwrap());
        assert_eq!(std::fs::read_dir(directory.path()).unwrap().count(), 2);
    }

    #[test]
    fn an_interval_that_goes_on_beyond_the_axis_ends_in_an_arrow_head() {
        let directory = tempfile::tempdir().unwrap();
        let lines = |reach: f64| {
            let dots = [dot("GRU", Some((0.5, Some(reach))), None)];
            assert!(draw_dots("Parity", "accuracy", &[group(&dots)], &[0.0, 1.0], directory.path(), "t").unwrap());
            svg(directory.path(), "t").matches("<polyline").count()
        };
        // The axis extends from 0 to a little above 1.
        let inside = lines(0.4);
        assert_eq!([lines(0.51), lines(0.9)], [inside + 1, inside + 2]);
    }

    #[test]
    fn groups_share_the_names_of_their_rows_and_one_axis() {
        let directory = tempfile::tempdir().unwrap();
        let of = |title: &str, value| DotGroup {
            title: title.to_owned(),
            dots: vec![dot("LSTM", Some((value, None)), None), Dot { without_model: Some(0.1), ..dot("minLSTM", None, Some((0.9, None))) }],
        };
        let groups: Vec<DotGroup> = ["Bucket sort", "Parity", "Majority", "Set"].iter().map(|title| of(title, 0.4)).collect();
        assert!(draw_dots("Table 5", "accuracy", &groups, &[0.0, 1.0], directory.path(), "t").unwrap());
        let drawn = svg(directory.path(), "t");
        // Two rows of groups, each with its labels once.
        assert_eq!(drawn.matches("\nminLSTM\n").count(), 2, "{drawn}");
        assert!(["Bucket sort", "Set", "\n0.2\n", "\n1\n", "best answer without a model"].iter().all(|part| drawn.contains(part)));
        assert!(drawn.contains("width=\"960\""));
    }
}
