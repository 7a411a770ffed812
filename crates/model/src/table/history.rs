//! The last rows of a series.

use alloc::vec::Vec;

/// As many rows of a series as its numbers are seen relative to; the oldest go as new ones come.
#[derive(Debug, Clone, PartialEq)]
pub struct History {
    /// Row-major, the rows that are kept last; some that are not are before them.
    rows: Vec<f64>,
    width: usize,
    reach: usize,
}

impl History {
    /// Of no row yet, of `width` numbers each, to keep `reach`.
    pub fn new(width: usize, reach: usize) -> Self {
        Self { rows: Vec::new(), width, reach: reach.max(1) }
    }

    /// The rows of before, if they are such.
    pub fn of_rows(rows: &[f64], width: usize, reach: usize) -> Option<Self> {
        let is_whole = rows.len().is_multiple_of(width.max(1)) && rows.len() / width.max(1) <= reach;
        (is_whole && rows.iter().all(|x| !x.is_infinite())).then(|| Self { rows: rows.to_vec(), width, reach: reach.max(1) })
    }

    /// Adds `row`, the newest.
    ///
    /// # Panics
    /// When it has another width.
    pub fn push(&mut self, row: &[f64]) {
        assert_eq!(row.len(), self.width, "a row has as many numbers as those before");
        // Rows that are kept move once in `reach` steps.
        if self.rows.len() >= 2 * self.reach * self.width {
            let kept = self.reach * self.width;
            let first = self.rows.len() - kept;
            self.rows.copy_within(first.., 0);
            self.rows.truncate(kept);
        }
        self.rows.extend_from_slice(row);
    }

    /// Takes the newest row away again, once.
    pub fn pop(&mut self) {
        self.rows.truncate(self.rows.len().saturating_sub(self.width));
    }

    /// The last rows `[n, width]`, at most `reach` of them, the newest at the end.
    pub fn rows(&self) -> &[f64] {
        &self.rows[self.rows.len().saturating_sub(self.reach * self.width)..]
    }

    /// Bytes it takes.
    pub fn bytes(&self) -> usize {
        self.rows.capacity() * size_of::<f64>()
    }

    /// Forgets all.
    pub fn clear(&mut self) {
        self.rows.clear();
    }
}
