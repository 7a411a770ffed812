//! Sequences of any length, read from their first step in chunks; the state is carried from chunk to chunk.
//!
//! The sequences, longest first, form groups of B rows. A group is read to the end of its longest row; then the rows are reset.

use std::ops::Range;

use crate::Segments;

/// Maximum number of steps of each sequence in one evaluation batch.
pub(crate) const CHUNK_LEN: usize = 512;

/// How sequences of given lengths are read.
#[derive(Debug, Clone)]
pub struct WholeSeries {
    lengths: Vec<usize>,
    /// Sequences, the longest first.
    order: Vec<usize>,
    batch_size: usize,
    chunk_len: usize,
    /// The group and the first step of each chunk.
    chunks: Vec<(usize, usize)>,
}

/// A chunk of a group.
#[derive(Debug, Clone, PartialEq)]
pub struct Chunk {
    /// For each row, which sequence it reads and which of its steps; `None` for a row that has ended.
    pub rows: Vec<Option<(usize, Range<usize>)>>,
    /// Steps of the longest row.
    pub seq_len: usize,
    /// Lengths of the rows, and their resets at the start of a group.
    pub segments: Segments,
}

impl WholeSeries {
    /// Reads sequences of these lengths, except those of length 0, in at most `batch_size` rows and `chunk_len` steps at a time.
    ///
    /// # Panics
    /// When `batch_size` or `chunk_len` is 0.
    pub fn new(lengths: Vec<usize>, batch_size: usize, chunk_len: usize) -> Self {
        assert!(batch_size > 0 && chunk_len > 0, "a chunk has rows and steps");
        let mut order: Vec<usize> = (0..lengths.len()).filter(|&at| lengths[at] > 0).collect();
        order.sort_by_key(|&at| std::cmp::Reverse(lengths[at]));
        let batch_size = batch_size.min(order.len()).max(1);
        let steps_of = |bunch: usize| (0..lengths[order[bunch * batch_size]]).step_by(chunk_len);
        let chunks = (0..order.len().div_ceil(batch_size)).flat_map(|bunch| steps_of(bunch).map(move |start| (bunch, start))).collect();
        Self { lengths, order, batch_size, chunk_len, chunks }
    }

    /// Number of rows B of every chunk.
    pub fn batch_size(&self) -> usize {
        self.batch_size
    }

    /// Number of chunks.
    pub fn n_chunks(&self) -> usize {
        self.chunks.len()
    }

    /// Chunk `index`.
    ///
    /// # Panics
    /// When there is no such chunk.
    pub fn chunk(&self, index: usize) -> Chunk {
        let (bunch, start) = self.chunks[index];
        let row = |row: usize| {
            let series = *self.order.get(bunch * self.batch_size + row)?;
            let end = self.lengths[series].min(start + self.chunk_len);
            (start < end).then_some((series, start..end))
        };
        let rows: Vec<_> = (0..self.batch_size).map(row).collect();
        let lengths: Vec<usize> = rows.iter().map(|row| row.as_ref().map_or(0, |(_, steps)| steps.len())).collect();
        let seq_len = lengths.iter().copied().max().unwrap_or(0);
        let mut segments = Segments::from_lengths(lengths);
        if start == 0 {
            segments = segments.with_resets(vec![vec![0]; self.batch_size]);
        }
        Chunk { rows, seq_len, segments }
    }
}

impl Chunk {
    /// The position of every step of every row in a batch of this chunk: (sequence, its step, index in `[B, T]`).
    pub fn places(&self) -> impl Iterator<Item = (usize, usize, usize)> {
        let row = |(row, found): (usize, &Option<(usize, Range<usize>)>)| {
            let (series, steps) = found.clone()?;
            let first = row * self.seq_len;
            Some(steps.enumerate().map(move |(at, step)| (series, step, first + at)))
        };
        self.rows.iter().enumerate().filter_map(row).flatten()
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn bunches_go_on_until_their_longest_row_ends() {
        let whole = WholeSeries::new(vec![2, 5, 0, 3], 2, 2);
        let chunks: Vec<Chunk> = (0..whole.n_chunks()).map(|index| whole.chunk(index)).collect();
        let rows: Vec<_> = chunks.iter().map(|chunk| chunk.rows.clone()).collect();
        assert_eq!(
            rows,
            [
                vec![Some((1, 0..2)), Some((3, 0..2))],
                vec![Some((1, 2..4)), Some((3, 2..3))],
                vec![Some((1, 4..5)), None],
                vec![Some((0, 0..2)), None],
            ]
        );
        let starts: Vec<bool> = chunks.iter().map(|chunk| chunk.segments.resets().is_some()).collect();
        assert_eq!(starts, [true, false, false, true]);
        assert_eq!(chunks[2].segments.lengths().unwrap(), [1, 0]);
    }

    proptest! {
        #[test]
        fn every_step_is_read_once_and_in_order(lengths in prop::collection::vec(0..30usize, 0..12), batch_size in 1..5usize, chunk_len in 1..9usize) {
            let whole = WholeSeries::new(lengths.clone(), batch_size, chunk_len);
            let mut next = vec![0; lengths.len()];
            for index in 0..whole.n_chunks() {
                let chunk = whole.chunk(index);
                prop_assert!(chunk.segments.codes(whole.batch_size(), chunk.seq_len).is_ok());
                for (series, step, place) in chunk.places() {
                    prop_assert_eq!(step, next[series]);
                    prop_assert!(place < whole.batch_size() * chunk.seq_len);
                    next[series] += 1;
                }
            }
            prop_assert_eq!(next, lengths);
        }
    }
}
