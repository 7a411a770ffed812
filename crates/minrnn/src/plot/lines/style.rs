//! The style of a line: its colour, dashes and marks.

use plotters::prelude::*;

use crate::plot::{COLORS, INK};

/// Lengths of dashes and of the gaps between them; without a gap the line is solid. Neighbours differ, so that they can be distinguished in
/// grey.
const DASHES: [(i32, i32); 4] = [(1, 0), (9, 4), (3, 3), (14, 3)];
/// Number of marks on a line, enough to identify it.
const MARKS: usize = 6;

/// The dots of levels and references.
pub(super) const DOTS: (i32, i32) = (2, 4);

/// What a line looks like.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Look {
    /// The line of that number: a colour, a dash and a mark.
    Line(usize),
    /// Dotted, in the colour of text, without marks.
    Reference,
}

impl Look {
    pub(super) fn color(self) -> RGBColor {
        match self {
            Self::Line(at) => COLORS[at % COLORS.len()],
            Self::Reference => INK,
        }
    }

    /// Width in pixels of scale 1.
    pub(super) fn width(self) -> i32 {
        match self {
            Self::Line(_) => 2,
            Self::Reference => 1,
        }
    }

    /// The dash and the gap after it, in pixels of scale 1; without a gap the line is solid.
    pub(super) fn dash(self) -> (i32, i32) {
        match self {
            Self::Line(at) => DASHES[at % DASHES.len()],
            Self::Reference => DOTS,
        }
    }

    /// The points of a line that are marked: all if they are few, otherwise some, at different places for each line.
    pub(super) fn marked(self, points: &[(f64, f64)]) -> Vec<(f64, f64)> {
        let Self::Line(at) = self else { return Vec::new() };
        if points.len() <= 12 {
            return points.to_vec();
        }
        let every = points.len() / MARKS;
        points.iter().skip(at * every / 3 % every).step_by(every).copied().collect()
    }

    /// The strokes of the mark around a centre.
    pub(super) fn mark(self, (x, y): (i32, i32), scale: i32) -> Vec<Vec<(i32, i32)>> {
        let Self::Line(at) = self else { return Vec::new() };
        let place = |&(right, down): &(i32, i32)| (x + right * scale, y + down * scale);
        let path = |points: &[(i32, i32)]| points.iter().map(place).collect::<Vec<_>>();
        match at % 6 {
            0 => vec![path(&[(-3, -1), (-1, -3), (1, -3), (3, -1), (3, 1), (1, 3), (-1, 3), (-3, 1), (-3, -1)])],
            1 => vec![path(&[(-3, -3), (3, -3), (3, 3), (-3, 3), (-3, -3)])],
            2 => vec![path(&[(0, -4), (4, 3), (-4, 3), (0, -4)])],
            3 => vec![path(&[(-3, -3), (3, 3)]), path(&[(-3, 3), (3, -3)])],
            4 => vec![path(&[(0, 4), (4, -3), (-4, -3), (0, 4)])],
            _ => vec![path(&[(-4, 0), (4, 0)]), path(&[(0, -4), (0, 4)])],
        }
    }

    /// A piece of the line of that length with its mark, as shown in legends.
    pub(super) fn sample(self, (x, y): (i32, i32), whole: i32, scale: i32) -> Vec<PathElement<(i32, i32)>> {
        let style = self.color().stroke_width((self.width() * scale) as u32);
        let (length, gap) = self.dash();
        let dash = if gap == 0 { whole } else { length };
        let dashes = (0..whole).step_by((dash + gap) as usize).map(|from| {
            let to = (from + dash).min(whole);
            vec![(x + from * scale, y), (x + to * scale, y)]
        });
        dashes.chain(self.mark((x + whole / 2 * scale, y), scale)).map(|path| PathElement::new(path, style)).collect()
    }
}

/// The mark of a published value, hollow, so that several in one place are all visible.
pub(super) fn diamond((x, y): (i32, i32), color: RGBColor, scale: i32) -> PathElement<(i32, i32)> {
    let reach = 6 * scale;
    let corners = [(x, y - reach), (x + reach, y), (x, y + reach), (x - reach, y), (x, y - reach)];
    PathElement::new(corners, color.stroke_width((2 * scale) as u32))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn neighbouring_lines_differ_in_dash_and_mark() {
        for at in 0..12 {
            let (line, next) = (Look::Line(at), Look::Line(at + 1));
            assert!(line.dash() != next.dash() && line.mark((0, 0), 1) != next.mark((0, 0), 1));
            assert!(line.color() != Look::Reference.color() && line.dash() != Look::Reference.dash());
        }
        let points: Vec<(f64, f64)> = (0..1000).map(|x| (f64::from(x), 0.0)).collect();
        let marked = |at: usize, points: &[(f64, f64)]| Look::Line(at).marked(points);
        assert!((MARKS..=MARKS + 1).contains(&marked(0, &points).len()) && marked(0, &points) != marked(1, &points));
        assert_eq!(marked(3, &points[..12]).len(), 12);
        assert!(Look::Reference.marked(&points).is_empty());
    }
}
