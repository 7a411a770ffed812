//! The last rows of a series.

use alloc::vec::Vec;

/// The last rows of a series, as many as its numbers are read relative to; the oldest are dropped as new ones come.
#[derive(Debug, Clone)]
pub struct History {
    /// Row-major, the rows that are kept last; some that are not are before them.
    rows: Vec<f64>,
    width: usize,
    reach: usize,
}

impl PartialEq for History {
    fn eq(&self, other: &Self) -> bool {
        (self.width, self.reach) == (other.width, other.reach) && self.rows() == other.rows()
    }
}

impl History {
    /// An empty history of rows of `width` numbers, keeping up to `reach` rows.
    pub fn new(width: usize, reach: usize) -> Self {
        Self { rows: Vec::new(), width, reach: reach.max(1) }
    }

    /// A history of earlier rows, if they are valid.
    pub fn of_rows(rows: &[f64], width: usize, reach: usize) -> Option<Self> {
        let is_whole = rows.len().is_multiple_of(width.max(1)) && rows.len() / width.max(1) <= reach;
        (is_whole && rows.iter().all(|x| !x.is_infinite())).then(|| Self { rows: rows.to_vec(), width, reach: reach.max(1) })
    }

    /// Adds `row`, the newest.
    ///
    /// # Panics
    /// When its width differs.
    pub fn push(&mut self, row: &[f64]) {
        assert_eq!(row.len(), self.width, "a row has as many numbers as those before");
        // The rows that are kept are moved only once in `reach` steps.
        let (kept, most) = (self.kept(), self.kept().saturating_mul(2));
        if self.rows.len() >= most {
            let first = self.rows.len() - kept;
            self.rows.copy_within(first.., 0);
            self.rows.truncate(kept);
        }
        let (held, needed) = (self.rows.len(), self.rows.len() + self.width);
        if needed > self.rows.capacity() {
            // Twice as much, but no more than is ever held.
            self.rows.reserve_exact(held.saturating_mul(2).min(most).max(needed) - held);
        }
        self.rows.extend_from_slice(row);
    }

    /// Removes the newest row, once.
    pub fn pop(&mut self) {
        self.rows.truncate(self.rows.len().saturating_sub(self.width));
    }

    /// The last rows `[n, width]`, at most `reach` of them, newest last.
    pub fn rows(&self) -> &[f64] {
        &self.rows[self.rows.len().saturating_sub(self.kept())..]
    }

    /// Most numbers that are kept.
    fn kept(&self) -> usize {
        self.reach.saturating_mul(self.width)
    }

    /// Its size in bytes.
    pub fn bytes(&self) -> usize {
        self.rows.capacity() * size_of::<f64>()
    }

    /// Forgets everything.
    pub fn clear(&mut self) {
        self.rows.clear();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn it_is_the_rows_that_are_kept_in_twice_their_room() {
        for (width, reach) in [(1, 1), (1, 5), (3, 7)] {
            let (mut long, mut all) = (History::new(width, reach), Vec::new());
            for at in 0..40 * width {
                all.push(at as f64);
                if all.len().is_multiple_of(width) {
                    long.push(&all[all.len() - width..]);
                    assert_eq!(long.rows(), &all[all.len().saturating_sub(reach * width)..]);
                    assert!(long.bytes() <= 2 * reach * width * size_of::<f64>());
                }
            }
            let short = History::of_rows(long.rows(), width, reach).unwrap();
            assert_eq!(short, long);
            assert_ne!(short, History::new(width, reach));
        }
        // More rows than can ever come.
        let mut endless = History::new(2, usize::MAX);
        (0..9).for_each(|_| endless.push(&[1.0, 2.0]));
        assert_eq!(endless.rows().len(), 18);
    }
}
