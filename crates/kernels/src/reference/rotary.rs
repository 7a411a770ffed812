//! Rotary positions, channel by channel. For the equations see [`crate::rotary`].

use super::Float;
use crate::rotary::{BASE, Layout};
use alloc::vec::Vec;

/// y `[rows, width]`; as [`crate::rotary::forward`].
pub fn forward<T: Float>(layout: Layout, x: &[T], places: &[u32]) -> Vec<T> {
    turn(layout, x, places, 1.0)
}

/// d_x `[rows, width]`; as [`crate::rotary::backward`].
pub fn backward<T: Float>(layout: Layout, d_y: &[T], places: &[u32]) -> Vec<T> {
    turn(layout, d_y, places, -1.0)
}

fn turn<T: Float>(layout: Layout, x: &[T], places: &[u32], direction: f64) -> Vec<T> {
    let Layout { head_width, turned, width } = layout;
    let half = head_width / 2;
    let value = |at: usize| {
        let (row, c) = (at / width, at % width);
        if c >= turned {
            return x[at];
        }
        let i = c % head_width;
        let angle = f64::from(places[row]) * libm::pow(BASE, -2.0 * (i % half) as f64 / head_width as f64);
        let (cosine, sine) = (T::from_f64(libm::cos(angle)), T::from_f64(direction * libm::sin(angle)));
        if i < half { x[at] * cosine - x[at + half] * sine } else { x[at] * cosine + x[at - half] * sine }
    };
    (0..x.len()).map(value).collect()
}
