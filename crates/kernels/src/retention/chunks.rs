//! Where chunks begin and end: at most [`CHUNK`] steps, none of them past a reset or in padding.

use super::CHUNK;
use crate::segments::{RESET, Segments};

/// Some steps of a row.
pub(super) struct Chunk {
    pub(super) first: usize,
    pub(super) len: usize,
    /// Whether a reset comes before the first.
    pub(super) reset: bool,
    /// The position of the first.
    pub(super) position: f64,
}

/// The chunks of row `b`, whose first step has this position if no reset comes before it.
pub(super) fn chunks<'a>(seq_len: usize, segments: Segments<'a>, b: usize, first_position: f64) -> impl Iterator<Item = Chunk> + 'a {
    let (length, codes) = (segments.length(b, seq_len), segments.row(b, seq_len));
    let (mut first, mut position) = (0, first_position);
    core::iter::from_fn(move || {
        if first == length {
            return None;
        }
        let is_reset = |t: usize| codes.is_some_and(|codes| codes[t] == RESET);
        let end = (first + 1..length.min(first + CHUNK)).find(|&t| is_reset(t)).unwrap_or(length.min(first + CHUNK));
        if is_reset(first) {
            position = 0.0;
        }
        let chunk = Chunk { first, len: end - first, reset: is_reset(first), position };
        position += (end - first) as f64;
        first = end;
        Some(chunk)
    })
}
