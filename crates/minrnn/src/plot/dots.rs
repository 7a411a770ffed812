//! One row for each value: a dot with its deviation, and a published value as a hollow diamond.

use std::path::Path;

use plotters::coord::Shift;
use plotters::prelude::*;
use plotters::style::text_anchor::{HPos, Pos, VPos};

use super::{COLORS, DrawResult, GRID, INK, Picture, axis_label, range_of, save, shorten, text};
use crate::Result;

const WIDTH: u32 = 960;
const ROW_HEIGHT: u32 = 24;
/// Title, legend and axis.
const FRAME_HEIGHT: u32 = 130;
const LABEL_WIDTH: i32 = 330;
const TITLE_HEIGHT: i32 = 62;

/// A row of the picture.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Dot {
    /// What was measured.
    pub label: String,
    /// Mean and, with several measurements, their deviation.
    pub ours: Option<(f64, Option<f64>)>,
    /// What others published, with their deviation.
    pub published: Option<(f64, Option<f64>)>,
}

impl Dot {
    fn values(&self) -> impl Iterator<Item = f64> {
        let ends = |(value, deviation): (f64, Option<f64>)| [value - deviation.unwrap_or(0.0), value + deviation.unwrap_or(0.0)];
        self.ours.into_iter().chain(self.published).flat_map(ends).filter(|value| value.is_finite())
    }
}

/// Draws `dots` to `name.svg` and `name.png` in `directory`; false, and nothing is drawn, where none has a value.
///
/// # Errors
/// When a file cannot be written.
pub fn draw_dots(title: &str, x_label: &str, dots: &[Dot], directory: impl AsRef<Path>, name: &str) -> Result<bool> {
    let dots: Vec<Dot> = dots.iter().filter(|dot| dot.values().next().is_some()).cloned().collect();
    if dots.is_empty() {
        return Ok(false);
    }
    save(&Dots { title: shorten(title), x_label: x_label.to_owned(), dots }, directory.as_ref(), name)?;
    Ok(true)
}

struct Dots {
    title: String,
    x_label: String,
    dots: Vec<Dot>,
}

impl Picture for Dots {
    fn size(&self) -> (u32, u32) {
        (WIDTH, FRAME_HEIGHT + ROW_HEIGHT * self.dots.len() as u32)
    }

    fn draw<'a, B: DrawingBackend + 'a>(&self, area: DrawingArea<B, Shift>, scale: i32) -> DrawResult<B> {
        area.fill(&WHITE)?;
        let (head, body) = area.split_vertically(TITLE_HEIGHT * scale);
        let (ours, published) = (COLORS[0], COLORS[1]);
        head.draw(&Text::new(self.title.clone(), (16 * scale, 12 * scale), text(18 * scale, INK)))?;
        let diamond = |center: (i32, i32)| {
            let reach = 6 * scale;
            let (x, y) = center;
            [(x - reach, y), (x, y - reach), (x + reach, y), (x, y + reach), (x - reach, y)]
        };
        let outline = |width: i32| published.stroke_width((width * scale) as u32);
        // A legend only where there are two kinds to tell apart.
        if self.dots.iter().any(|dot| dot.published.is_some()) {
            let legend_y = 46 * scale;
            let beside = text(13 * scale, INK).pos(Pos::new(HPos::Left, VPos::Center));
            head.draw(&Circle::new((LABEL_WIDTH * scale, legend_y), 4 * scale, ours.filled()))?;
            head.draw(&Text::new("ours", ((LABEL_WIDTH + 12) * scale, legend_y), beside.clone()))?;
            head.draw(&PathElement::new(diamond(((LABEL_WIDTH + 80) * scale, legend_y)), outline(2)))?;
            head.draw(&Text::new("published", ((LABEL_WIDTH + 94) * scale, legend_y), beside))?;
        }

        let n = self.dots.len();
        let (low, high) = range_of(self.dots.iter().flat_map(Dot::values));
        let mut chart = ChartBuilder::on(&body)
            .margin(6 * scale)
            .margin_right(28 * scale)
            .x_label_area_size(44 * scale)
            .y_label_area_size(LABEL_WIDTH * scale)
            .build_cartesian_2d(low..high, 0.0..n as f64)?;
        chart
            .configure_mesh()
            .disable_y_mesh()
            .y_labels(0)
            .x_labels(9)
            .x_desc(self.x_label.clone())
            .x_label_formatter(&|value| axis_label(*value, high - low))
            .label_style(text(13 * scale, INK))
            .axis_desc_style(text(14 * scale, INK))
            .axis_style(INK.stroke_width(scale as u32))
            .bold_line_style(GRID.stroke_width(scale as u32))
            .light_line_style(TRANSPARENT)
            .set_all_tick_mark_size(4 * scale)
            .draw()?;
        let label_style = text(13 * scale, INK).pos(Pos::new(HPos::Right, VPos::Center));
        for (row, dot) in self.dots.iter().enumerate() {
            let y = n as f64 - row as f64 - 0.5;
            let left = chart.backend_coord(&(low, y));
            area.draw(&Text::new(dot.label.clone(), (left.0 - 10 * scale, left.1), label_style.clone()))?;
            let band = |(value, deviation): (f64, Option<f64>), width: i32, color: RGBColor| {
                let reach = deviation.unwrap_or(0.0);
                PathElement::new(vec![(value - reach, y), (value + reach, y)], color.stroke_width((width * scale) as u32))
            };
            if let Some(value) = dot.published.filter(|(value, _)| value.is_finite()) {
                chart.draw_series([band(value, 1, published)])?;
                let center = EmptyElement::at((value.0, y));
                chart.draw_series([center + PathElement::new(diamond((0, 0)), outline(2))])?;
            }
            if let Some(value) = dot.ours.filter(|(value, _)| value.is_finite()) {
                chart.draw_series([band(value, 2, ours)])?;
                chart.draw_series([Circle::new((value.0, y), 4 * scale, ours.filled())])?;
            }
        }
        area.present()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_row_has_a_label_and_rows_without_values_are_left_out() {
        let directory = tempfile::tempdir().unwrap();
        let dot = |label: &str, ours, published| Dot { label: label.to_owned(), ours, published };
        let dots = [
            dot("minGRU, 3 layers", Some((99.5, Some(0.2))), Some((99.5, Some(0.2)))),
            dot("S4", None, Some((18.3, None))),
            dot("nothing", None, None),
            dot("not a number", Some((f64::NAN, None)), None),
        ];
        assert!(draw_dots("Table 2", "accuracy (%)", &dots, directory.path(), "table2").unwrap());
        let svg = std::fs::read_to_string(directory.path().join("table2.svg")).unwrap();
        assert!(["minGRU, 3 layers", "S4", "accuracy (%)", "published"].iter().all(|part| svg.contains(part)));
        assert!(!svg.contains("nothing") && !svg.contains("not a number"));
        assert!(draw_dots("Ours alone", "loss", &[dot("minGRU", Some((0.1, None)), None)], directory.path(), "table2").unwrap());
        let svg = std::fs::read_to_string(directory.path().join("table2.svg")).unwrap();
        assert!(svg.contains("minGRU") && !svg.contains("published"));
        assert!(!draw_dots("", "", &dots[2..], directory.path(), "none").unwrap());
        assert_eq!(std::fs::read_dir(directory.path()).unwrap().count(), 2);
    }
}
