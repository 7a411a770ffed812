//! Rotary positions (Su et al. 2021, arXiv:2104.09864): queries and keys are rotated by their position, so that their product depends only
//! on the distance.
//!
//! Channels i and i + dₕ/2 of a head are a pair (as in Llama) that is rotated by the angle m θ_i:
//!
//! ```text
//! y_i = x_i cos(m θ_i) − x_{i+dₕ/2} sin(m θ_i)      y_{i+dₕ/2} = x_{i+dₕ/2} cos(m θ_i) + x_i sin(m θ_i)      θ_i = 10 000^(−2i/dₕ)
//! ```
//! where: m is the position of the step; dₕ the width of a head, even. Rotating back by the same angle is both the inverse and the
//! gradient.

use crate::grid::SharedOut;
use crate::out::{Out, Slots};
use crate::rows;
use crate::shape::{elements, expect_len};
use crate::simd::{self, Level, Simd, WithSimd, mul_add};
use alloc::{vec, vec::Vec};

/// Base of the angles.
pub const BASE: f64 = 10_000.0;

/// Cosine and sine of an angle, computed in f64: at a position of a million, f32 would be off by a few hundredths.
pub fn cos_sin(angle: f64) -> [f32; 2] {
    [libm::cos(angle) as f32, libm::sin(angle) as f32]
}

/// The pair `[a, b]` rotated by an angle of the given cosine and sine.
#[inline(always)]
pub fn rotated([a, b]: [f32; 2], [cos, sin]: [f32; 2]) -> [f32; 2] {
    [a * cos - b * sin, b * cos + a * sin]
}

/// Which channels are rotated.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Layout {
    /// Width dₕ of a head, even.
    pub head_width: usize,
    /// Number of channels at the beginning of a row that are rotated, a whole number of heads; the others are copied.
    pub turned: usize,
    /// Number of channels in a row.
    pub width: usize,
}

impl Layout {
    fn expect_fits(&self) {
        let Self { head_width, turned, width } = *self;
        assert!(head_width.is_multiple_of(2), "rotary positions need heads of even width, found {head_width}");
        assert!(turned <= width && (turned == 0 || turned.is_multiple_of(head_width)), "whole heads turn");
    }
}

/// Rotates every row by its position.
///
/// # Shapes
/// - `x`, `y`: `[rows, width]`
/// - `places`: `[rows]`
///
/// # Panics
/// When a length does not fit, or the head width is odd.
pub fn forward(layout: Layout, x: &[f32], places: &[u32], y: Out) {
    turn(layout, x, places, 1.0, y);
}

/// The gradient of [`forward`] with respect to `x`: rotates back.
///
/// # Panics
/// As [`forward`].
pub fn backward(layout: Layout, d_y: &[f32], places: &[u32], d_x: Out) {
    turn(layout, d_y, places, -1.0, d_x);
}

fn turn(layout: Layout, x: &[f32], places: &[u32], direction: f32, y: Out) {
    layout.expect_fits();
    let (rows, width) = (places.len(), layout.width);
    expect_len("x", x, elements([rows, width]));
    y.expect_len("y", elements([rows, width]));
    if x.is_empty() {
        return;
    }
    let angles = Angles::new(if layout.turned > 0 { layout.head_width } else { 0 }, places);
    let level = Level::current();
    let y = SharedOut::new(y);
    rows::for_each_block(rows, width, 0, |range, _| {
        let at = range.start * width..range.end * width;
        // SAFETY: blocks are disjoint.
        let y = unsafe { y.slice(at.start, at.len()) };
        level.run(Turn { layout, x: &x[at], first: range.start, places, angles: &angles, direction, y });
    });
}

/// Cosines and sines of the places that occur. Rows of a batch share their places, so a table over all places between the first and
/// the last is small; if it would have more entries than there are rows, every row has its own.
struct Angles {
    half: usize,
    /// Place of the first entry; `None` when entries belong to rows.
    first: Option<u32>,
    /// `[entries, 2, dₕ/2]`: cosines, then sines.
    table: Vec<f32>,
}

impl Angles {
    fn new(head_width: usize, places: &[u32]) -> Self {
        let half = head_width / 2;
        let (first, last) = places.iter().fold((u32::MAX, 0), |(first, last), &place| (first.min(place), last.max(place)));
        let shared = !places.is_empty() && ((last - first) as usize) < places.len();
        let frequencies: Vec<f64> = (0..half).map(|i| libm::pow(BASE, -2.0 * i as f64 / head_width as f64)).collect();
        let entries = if shared { (last - first) as usize + 1 } else { places.len() };
        let mut table = vec![0.0; entries * 2 * half];
        for (i, entry) in table.chunks_exact_mut((2 * half).max(1)).enumerate() {
            let place = if shared { first + i as u32 } else { places[i] };
            let (cosines, sines) = entry.split_at_mut(half);
            for ((cosine, sine), frequency) in cosines.iter_mut().zip(sines).zip(&frequencies) {
                [*cosine, *sine] = cos_sin(f64::from(place) * frequency);
            }
        }
        Self { half, first: shared.then_some(first), table }
    }

    /// Cosines and sines of row `row`, which is at `place`.
    #[inline(always)]
    fn of(&self, row: usize, place: u32) -> (&[f32], &[f32]) {
        let entry = self.first.map_or(row, |first| (place - first) as usize);
        self.table[entry * 2 * self.half..][..2 * self.half].split_at(self.half)
    }
}

struct Turn<'a> {
    layout: Layout,
    x: &'a [f32],
    /// Number of the first row.
    first: usize,
    places: &'a [u32],
    angles: &'a Angles,
    direction: f32,
    y: Slots<'a>,
}

impl WithSimd for Turn<'_> {
    type Output = ();

    #[inline(always)]
    fn with_simd<S: Simd>(self, simd: S) {
        let Layout { head_width, turned, width } = self.layout;
        let half = self.angles.half;
        let direction = simd.splat_f32s(self.direction);
        for (i, (x, y)) in self.x.chunks_exact(width).zip(self.y.chunks_exact_mut(width)).enumerate() {
            let row = self.first + i;
            let (cosines, sines) = self.angles.of(row, self.places[row]);
            let (x_turned, x_rest) = x.split_at(turned);
            let (y_turned, y_rest) = y.split_at_mut(turned);
            for (x, y) in x_turned.chunks_exact(head_width.max(1)).zip(y_turned.chunks_exact_mut(head_width.max(1))) {
                let ((a, b), (y_a, y_b)) = (x.split_at(half), y.split_at_mut(half));
                for at in (0..half).step_by(S::F32_LANES) {
                    let (a, b) = (simd::load(simd, a, at), simd::load(simd, b, at));
                    let cosine = simd::load(simd, cosines, at);
                    let sine = simd.mul_f32s(simd::load(simd, sines, at), direction);
                    simd::store(simd, y_a, at, simd.sub_f32s(simd.mul_f32s(a, cosine), simd.mul_f32s(b, sine)));
                    simd::store(simd, y_b, at, mul_add(simd, b, cosine, simd.mul_f32s(a, sine)));
                }
            }
            for (y, &x) in y_rest.iter_mut().zip(x_rest) {
                y.write(x);
            }
        }
    }
}
