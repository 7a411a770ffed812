//! Line charts with round axis labels, as SVG in the colours of the page.

use std::fmt::Write;
use std::ops::Range;

use crate::html::escaped;
use crate::plot::{label, linear};

/// Maximum number of points of a line; a picture has no more pixels.
const MOST_POINTS: usize = 800;

/// A picture of lines.
pub(super) struct Chart {
    width: f64,
    height: f64,
    x: Range<f64>,
    y: Range<f64>,
    content: String,
}

const LEFT: f64 = 52.0;
const RIGHT: f64 = 20.0;
const TOP: f64 = 8.0;
const BOTTOM: f64 = 34.0;

impl Chart {
    /// An empty chart of `width` by `height` pixels around `x` and `y`; an empty range is widened.
    pub fn new([width, height]: [f64; 2], x: Range<f64>, y: Range<f64>) -> Self {
        let wider = |range: Range<f64>| {
            let room = if range.end > range.start { 0.0 } else { 0.5 * range.start.abs().max(1.0) };
            range.start - room..range.end + room
        };
        Self { width, height, x: wider(x), y: wider(y), content: String::new() }
    }

    fn place(&self, (x, y): (f64, f64)) -> (f64, f64) {
        let share = |value: f64, range: &Range<f64>| (value - range.start) / (range.end - range.start);
        let (width, height) = (self.width - LEFT - RIGHT, self.height - TOP - BOTTOM);
        (LEFT + width * share(x, &self.x), TOP + height * (1.0 - share(y, &self.y)))
    }

    fn path(&self, points: impl Iterator<Item = (f64, f64)>) -> String {
        let mut path = String::new();
        let mut begins = true;
        for point in points {
            if !(point.0.is_finite() && point.1.is_finite()) {
                begins = true;
                continue;
            }
            let (x, y) = self.place((point.0, point.1.clamp(self.y.start, self.y.end)));
            let _ = write!(path, "{}{x:.1} {y:.1}", if begins { 'M' } else { 'L' });
            begins = false;
        }
        path
    }

    /// A line through `points`, every n-th if there are many, interrupted at points that are not finite.
    pub fn line(&mut self, class: &str, points: &[(f64, f64)]) {
        let every = points.len().div_ceil(MOST_POINTS).max(1);
        let path = self.path(points.iter().copied().step_by(every));
        let _ = writeln!(self.content, "<path class=\"{class}\" d=\"{path}\"/>");
    }

    /// The area between two lines over the same positions: `(x, low, high)`.
    pub fn band(&mut self, points: &[(f64, f64, f64)]) {
        let there = points.iter().map(|&(x, low, _)| (x, low));
        let back = points.iter().rev().map(|&(x, _, high)| (x, high));
        let path = self.path(there.chain(back));
        if !path.is_empty() {
            let _ = writeln!(self.content, "<path class=\"band\" d=\"{path}Z\"/>");
        }
    }

    /// Dots.
    pub fn dots(&mut self, points: &[(f64, f64)]) {
        for &point in points.iter().filter(|point| point.1.is_finite()) {
            let (x, y) = self.place(point);
            let _ = writeln!(self.content, "<circle class=\"dot\" cx=\"{x:.1}\" cy=\"{y:.1}\" r=\"3\"/>");
        }
    }

    /// A vertical line.
    pub fn mark(&mut self, x: f64) {
        let (x, bottom) = self.place((x, self.y.start));
        let _ = writeln!(self.content, "<path class=\"mark\" d=\"M{x:.1} {TOP}V{bottom:.1}\"/>");
    }

    /// The SVG, with `words` as its description for those who cannot see it.
    pub fn svg(&self, x_label: &str, words: &str) -> String {
        let Self { width, height, .. } = self;
        let mut grid = String::new();
        for y in linear(self.y.start, self.y.end, 5) {
            let (_, at) = self.place((self.x.start, y));
            let _ = writeln!(grid, "<path class=\"grid\" d=\"M{LEFT} {at:.1}H{:.1}\"/>", width - RIGHT);
            let _ = writeln!(grid, "<text x=\"{:.1}\" y=\"{:.1}\" text-anchor=\"end\">{}</text>", LEFT - 6.0, at + 4.0, short(y));
        }
        for x in linear(self.x.start, self.x.end, 6) {
            let (at, _) = self.place((x, self.y.start));
            let _ = writeln!(grid, "<text x=\"{at:.1}\" y=\"{:.1}\" text-anchor=\"middle\">{}</text>", height - BOTTOM + 16.0, short(x));
        }
        let middle = 0.5 * (LEFT + width - RIGHT);
        let _ = writeln!(grid, "<text x=\"{middle:.1}\" y=\"{:.1}\" text-anchor=\"middle\">{}</text>", height - 3.0, escaped(x_label));
        format!("<svg viewBox=\"0 0 {width} {height}\" role=\"img\" aria-label=\"{}\">\n{grid}{}</svg>\n", escaped(words), self.content)
    }
}

/// A round number with a letter for thousands and millions.
fn short(value: f64) -> String {
    match value.abs() {
        size if size >= 1e6 => label(value / 1e6) + " M",
        size if size >= 1e4 => label(value / 1e3) + " k",
        _ => label(value),
    }
}

/// From the smallest to the largest of the finite numbers, with a little room.
pub(super) fn range(values: impl Iterator<Item = f64>) -> Range<f64> {
    let (low, high) = values.filter(|x| x.is_finite()).fold((f64::INFINITY, f64::NEG_INFINITY), |(low, high), x| (low.min(x), high.max(x)));
    if low > high {
        return 0.0..1.0;
    }
    let room = 0.05 * (high - low);
    low - room..high + room
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_stays_in_its_frame_and_is_cut_where_nothing_is_known() {
        let mut chart = Chart::new([200.0, 100.0], 0.0..4.0, 0.0..1.0);
        chart.line("model", &[(0.0, 0.0), (1.0, 5.0), (2.0, f64::NAN), (3.0, 0.5), (4.0, 1.0)]);
        let svg = chart.svg("step", "a <line>");
        assert!(svg.contains("d=\"M52.0 66.0L84.0 8.0M148.0 37.0L180.0 8.0\""), "{svg}");
        assert!(svg.contains("aria-label=\"a &lt;line&gt;\"") && !svg.contains("NaN"));
    }

    #[test]
    fn ranges_without_an_inside_are_drawn() {
        assert_eq!(range([f64::NAN].into_iter()), 0.0..1.0);
        let mut chart = Chart::new([200.0, 100.0], 3.0..3.0, range([2.0, 2.0].into_iter()));
        chart.line("model", &[(3.0, 2.0)]);
        assert!(!chart.svg("", "").contains("NaN") && !chart.svg("", "").contains("inf"));
        assert_eq!([short(1500.0), short(20_000.0), short(2_500_000.0), short(0.25)], ["1500", "20 k", "2.5 M", "0.25"]);
    }
}
