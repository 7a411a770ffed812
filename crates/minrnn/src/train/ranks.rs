//! The processes of one training, each with a rank, and the exchange of numbers between them.
//!
//! An implementation only moves numbers; what is done with them is in [`Group`](super::Group). Sums over micro-steps and ranks follow one
//! binary tree, so their bits do not depend on how the micro-steps are distributed, as long as both numbers are powers of two.

/// The processes of one training. Every method except [`rank`](Self::rank) and [`size`](Self::size) is called by all of them, in the same
/// order, and returns once all have called it. A process that cannot continue ends all of them.
pub trait Ranks: Send + Sync {
    /// The number of this process, from 0.
    fn rank(&self) -> usize;

    /// The number of processes.
    fn size(&self) -> usize;

    /// Sends the i-th of [`size`](Self::size) equal pieces of `given` to rank i; `taken`, of the same length, receives each rank's piece
    /// for this one, in order of rank.
    fn exchange(&self, given: &[f32], taken: &mut [f32]);

    /// Fills `all` with the numbers of every rank, equally many from each, in order of rank.
    fn collect(&self, own: &[f32], all: &mut [f32]);

    /// As `collect`, but only for the first rank; `all` is empty on the others.
    fn collect_first(&self, own: &[f32], all: &mut [f32]);

    /// The bytes of every rank, any number from each, in order of rank.
    fn gather(&self, own: &[u8]) -> Vec<Vec<u8>>;

    /// Ends this process with the exit code `code`, and all others of the training, on whatever machine.
    fn abort(&self, code: u8) -> !;
}

/// A single process.
#[derive(Debug, Clone, Copy, Default)]
pub struct Alone;

impl Ranks for Alone {
    fn rank(&self) -> usize {
        0
    }

    fn size(&self) -> usize {
        1
    }

    fn exchange(&self, given: &[f32], taken: &mut [f32]) {
        taken.copy_from_slice(given);
    }

    fn collect(&self, own: &[f32], all: &mut [f32]) {
        all.copy_from_slice(own);
    }

    fn collect_first(&self, own: &[f32], all: &mut [f32]) {
        all.copy_from_slice(own);
    }

    fn gather(&self, own: &[u8]) -> Vec<Vec<u8>> {
        vec![own.to_vec()]
    }

    fn abort(&self, code: u8) -> ! {
        std::process::exit(code.into())
    }
}

/// Sums that are added in a binary tree over their order: 0 + 1, 2 + 3, then these two, and so on; what is left over at the end is added from the
/// smallest part to the largest. It holds one part for each one bit in the number of items so far, so at most ⌊log2 n⌋ + 1 for n items.
#[derive(Debug)]
pub(super) struct TreeSum<T> {
    /// Sums of 2^level items each, the largest first.
    parts: Vec<(u32, T)>,
}

impl<T> TreeSum<T> {
    pub fn new() -> Self {
        Self { parts: Vec::new() }
    }

    /// Adds the next item; `add` adds the second to the first.
    pub fn push(&mut self, next: T, add: impl Fn(T, T) -> T) {
        let (mut level, mut sum) = (0, next);
        while let Some((_, before)) = self.parts.pop_if(|(of, _)| *of == level) {
            (level, sum) = (level + 1, add(before, sum));
        }
        self.parts.push((level, sum));
    }

    /// The sum of all items; `None` if there were none.
    pub fn total(self, add: impl Fn(T, T) -> T) -> Option<T> {
        self.parts.into_iter().map(|(_, sum)| sum).rev().reduce(|after, before| add(before, after))
    }
}

/// Adds `n` equal pieces of `values` in the order of [`TreeSum`], into the first piece.
///
/// # Panics
/// When there are no pieces, or they are not equal.
pub(super) fn sum_pieces(values: &mut [f32], n: usize) -> &[f32] {
    let len = values.len() / n;
    assert_eq!(values.len(), n * len, "the pieces must be equal");
    let mut step = 1;
    while step < n {
        for first in (0..n - step).step_by(2 * step) {
            let (sums, others) = values.split_at_mut((first + step) * len);
            let sum = &mut sums[first * len..(first + 1) * len];
            sum.iter_mut().zip(&others[..len]).for_each(|(sum, other)| *sum += other);
        }
        step *= 2;
    }
    &values[..len]
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The sum as a formula.
    fn written(n: usize) -> String {
        let mut sum = TreeSum::new();
        let add = |a: String, b: String| format!("({a}{b})");
        (0..n).for_each(|i| sum.push(i.to_string(), add));
        sum.total(add).unwrap_or_default()
    }

    #[test]
    fn sums_are_added_in_a_binary_tree() {
        let expected = ["", "0", "(01)", "((01)2)", "((01)(23))", "(((01)(23))4)", "(((01)(23))(45))", "(((01)(23))((45)6))"];
        for (n, expected) in expected.into_iter().enumerate() {
            assert_eq!(written(n), expected);
        }
    }

    #[test]
    fn no_more_sums_are_held_than_the_number_has_bits() {
        let mut sum = TreeSum::new();
        for i in 0..1000u64 {
            sum.push(i, |a, b| a + b);
            assert_eq!(sum.parts.len() as u32, (i + 1).count_ones());
        }
        assert_eq!(sum.total(|a, b| a + b), Some(499_500));
    }

    #[test]
    fn pieces_are_added_in_the_same_tree_as_single_sums() {
        let value = |i: usize, at: usize| ((i * 7919 + at * 104_729) % 1000) as f32 * 1e-3 + 1e4f32.powi((i % 3) as i32 - 1);
        for n in 1..=17 {
            let mut pieces: Vec<f32> = (0..n).flat_map(|i| (0..5).map(move |at| value(i, at))).collect();
            let found = sum_pieces(&mut pieces, n).to_vec();
            for (at, found) in found.into_iter().enumerate() {
                let mut sum = TreeSum::new();
                (0..n).for_each(|i| sum.push(value(i, at), |a, b| a + b));
                assert_eq!(sum.total(|a, b| a + b).unwrap().to_bits(), found.to_bits(), "{n} pieces");
            }
        }
    }

    #[test]
    fn shares_of_a_power_of_two_are_parts_of_the_same_tree() {
        let value = |i: usize| 1.0 / (3 + i * i % 17) as f32;
        let sum_of = |of: std::ops::Range<usize>| {
            let mut sum = TreeSum::new();
            of.for_each(|i| sum.push(value(i), |a, b| a + b));
            sum.total(|a, b| a + b).unwrap()
        };
        for micro_steps in [1, 2, 4, 8, 16, 64] {
            for ranks in [1, 2, 4, 8, 16, 64].into_iter().filter(|&ranks| ranks <= micro_steps) {
                let share = micro_steps / ranks;
                let mut sums: Vec<f32> = (0..ranks).map(|rank| sum_of(rank * share..(rank + 1) * share)).collect();
                assert_eq!(sum_pieces(&mut sums, ranks)[0].to_bits(), sum_of(0..micro_steps).to_bits(), "{micro_steps} over {ranks}");
            }
        }
    }
}
