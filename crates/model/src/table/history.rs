//! The last rows of a series.

use alloc::vec::Vec;

/// The last rows of a series, as many as its numbers are read relative to; the oldest are dropped as new ones come, a step at a time.
#[derive(Debug, Clone)]
pub struct History {
    /// Row-major, the rows that are kept last; some that are not are before them.
    rows: Vec<f64>,
    width: usize,
    reach: usize,
    rows_per_step: usize,
}

impl PartialEq for History {
    fn eq(&self, other: &Self) -> bool {
        (self.width, self.reach, self.rows_per_step) == (other.width, other.reach, other.rows_per_step) && self.rows() == other.rows()
    }
}

impl History {
    /// An empty history of rows of `width` numbers, keeping up to `reach` rows.
    pub fn new(width: usize, reach: usize) -> Self {
        Self::of_steps(width, reach, 1)
    }

    /// The same where `rows_per_step` rows are a step: the first row that is kept is always the first of a step. Up to `reach` rows are
    /// kept, rounded up to whole steps.
    pub fn of_steps(width: usize, reach: usize, rows_per_step: usize) -> Self {
        let rows_per_step = rows_per_step.max(1);
        let reach = reach.max(1).checked_next_multiple_of(rows_per_step).unwrap_or(reach);
        Self { rows: Vec::new(), width, reach, rows_per_step }
    }

    /// This history after earlier `rows`, its [last ones](Self::rows) of before, if they are valid.
    pub fn after(self, rows: &[f64]) -> Option<Self> {
        let is_whole = rows.len().is_multiple_of(self.width.max(1)) && rows.len() / self.width.max(1) <= self.reach;
        (is_whole && rows.iter().all(|x| !x.is_infinite())).then(|| Self { rows: rows.to_vec(), ..self })
    }

    /// How many of the last rows belong to a step that has not all of its rows yet.
    pub fn pending(&self) -> usize {
        self.rows.len() / self.width.max(1) % self.rows_per_step
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

    /// The last rows `[n, width]`, at most `reach` of them and beginning with the first row of a step, newest last.
    pub fn rows(&self) -> &[f64] {
        let dropped = self.rows.len().saturating_sub(self.kept()) / self.width.max(1);
        &self.rows[dropped.next_multiple_of(self.rows_per_step) * self.width..]
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
            let short = History::new(width, reach).after(long.rows()).unwrap();
            assert_eq!(short, long);
            assert_ne!(short, History::new(width, reach));
        }
        // More rows than can ever come.
        let mut endless = History::new(2, usize::MAX);
        (0..9).for_each(|_| endless.push(&[1.0, 2.0]));
        assert_eq!(endless.rows().len(), 18);
    }
}
