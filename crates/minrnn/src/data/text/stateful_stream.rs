//! The text read in order, with the state carried from window to window: training of unbounded length.
//!
//! The rows of a batch read adjacent lanes of equal length, of which there are `L`. Window `w` of training is window `w mod W` of pass `⌊w
//! / W⌋`; a lane has `W` whole windows, `W = ⌊(N − 1) / (L · T)⌋`. Every row is reset at the start of each pass. The tokens left over by
//! the lanes (fewer than `L · T`) are at the end of the text in pass 0; later passes shift the lanes by a random part of them, so that no
//! text is left out for good and windows start at different positions.
//!
//! The `A` micro-steps of an update read either one after another, `A` windows of the same `L = B` lanes, or side by side, one window of
//! `L = A · B` lanes, `B` for each micro-step.

use rand::RngExt;

use super::super::batch::check_shape;
use super::super::{Batch, BatchSource, Carry};
use super::{TextPart, read_windows, restart};
use crate::rng::{self, Purpose};
use crate::{Error, Result, Segments};

/// Batches of `B` adjacent lanes, each continuing where the last batch ended.
#[derive(Debug, Clone)]
pub struct StatefulStream {
    part: TextPart,
    batch_size: usize,
    seq_len: usize,
    accumulation: u64,
    seed: u64,
    /// Micro-steps that read side by side: 1, or `accumulation`.
    abreast: u64,
}

impl StatefulStream {
    /// Lanes of `part` in windows of `seq_len`, `accumulation` of which an update reads one after another. `seed` shifts the later passes.
    ///
    /// # Errors
    /// [`Error::Config`] when a size is 0 or the batch too large, [`Error::Data`] when the part has no whole window for
    /// every lane (`L · T + 1` tokens).
    pub fn new(part: TextPart, batch_size: usize, seq_len: usize, accumulation: u64, seed: u64) -> Result<Self> {
        Self::of_lanes(part, batch_size, seq_len, accumulation, seed, 1)
    }

    /// The same, but each micro-step of an update has its own `batch_size` lanes.
    ///
    /// # Errors
    /// As [`new`](Self::new).
    pub fn side_by_side(part: TextPart, batch_size: usize, seq_len: usize, accumulation: u64, seed: u64) -> Result<Self> {
        Self::of_lanes(part, batch_size, seq_len, accumulation, seed, accumulation)
    }

    fn of_lanes(part: TextPart, batch_size: usize, seq_len: usize, accumulation: u64, seed: u64, abreast: u64) -> Result<Self> {
        let tokens = check_shape(batch_size, seq_len)? as u64;
        if accumulation == 0 {
            return Err(Error::Config("accumulation must be at least 1, found 0".into()));
        }
        let lanes = abreast.saturating_mul(batch_size as u64);
        let purpose = format!("one window of seq_len {seq_len} in each of {lanes} lanes");
        let remedy = if abreast == 1 { "or lower seq_len or batch_size" } else { "or lower seq_len, batch_size or accumulation" };
        part.expect_len(tokens.saturating_mul(abreast).saturating_add(1), &purpose, remedy)?;
        Ok(Self { part, batch_size, seq_len, accumulation, seed, abreast })
    }

    /// Tokens of a window of all lanes.
    fn breadth(&self) -> u64 {
        self.abreast * (self.batch_size * self.seq_len) as u64
    }

    /// Number of windows `W` in a pass, after which all rows are reset.
    pub fn windows_per_pass(&self) -> u64 {
        (self.part.len() - 1) / self.breadth()
    }

    fn lanes_start(&self, pass: u64) -> u64 {
        let left_over = self.part.len() - 1 - self.windows_per_pass() * self.breadth();
        if pass == 0 { 0 } else { rng::stream(self.seed, Purpose::Order, pass).random_range(0..=left_over) }
    }
}

impl BatchSource for StatefulStream {
    fn batch(&mut self, iteration: u64, micro: u64) -> Result<Batch> {
        let (per_pass, seq_len) = (self.windows_per_pass(), self.seq_len as u64);
        let position = u128::from(iteration) * u128::from(self.accumulation / self.abreast) + u128::from(micro / self.abreast);
        let (pass, window) = ((position / u128::from(per_pass)) as u64, (position % u128::from(per_pass)) as u64);
        let start = self.lanes_start(pass) + window * seq_len;
        let first_lane = micro % self.abreast * self.batch_size as u64;
        let offsets = (0..self.batch_size).map(|row| start + (first_lane + row as u64) * per_pass * seq_len);
        let (inputs, targets) = read_windows(&self.part, offsets, self.seq_len)?;
        let segments = if window == 0 { restart(self.batch_size) } else { Segments::dense() };
        Ok(Batch {
            inputs: inputs.into(),
            targets: targets.into(),
            mask: None,
            segments,
            batch_size: self.batch_size,
            seq_len: self.seq_len,
        })
    }

    fn carry(&self) -> Carry {
        if self.abreast == 1 { Carry::ToNextBatch } else { Carry::ToNextUpdate }
    }

    fn tokens_per_batch(&self) -> usize {
        self.batch_size * self.seq_len
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::super::tests::counting;
    use super::*;

    fn stream(n: u32, batch_size: usize, seq_len: usize, accumulation: u64) -> Result<StatefulStream> {
        StatefulStream::new(TextPart::whole(counting(n)), batch_size, seq_len, accumulation, 1)
    }

    #[test]
    fn rows_read_their_own_lanes_in_order() {
        let mut source = stream(13, 2, 3, 1).unwrap();
        assert_eq!(source.windows_per_pass(), 2);
        let (first, second) = (source.batch(0, 0).unwrap(), source.batch(1, 0).unwrap());
        assert_eq!(first.inputs.tokens(), [0, 1, 2, 6, 7, 8]);
        assert_eq!(first.targets.tokens(), [1, 2, 3, 7, 8, 9]);
        assert_eq!(first.segments, Segments::dense().with_resets(vec![vec![0], vec![0]]));
        assert_eq!(second.inputs.tokens(), [3, 4, 5, 9, 10, 11]);
        assert!(second.segments.is_dense());
        assert_eq!(source.batch(2, 0).unwrap(), first);
    }

    #[test]
    fn micro_steps_continue_the_lanes() {
        let (mut one, mut three) = (stream(500, 4, 5, 1).unwrap(), stream(500, 4, 5, 3).unwrap());
        for i in 0..60 {
            assert_eq!(one.batch(i, 0).unwrap(), three.batch(i / 3, i % 3).unwrap());
        }
        three.batch(u64::MAX, 2).unwrap();
    }

    #[test]
    fn micro_steps_side_by_side_are_parts_of_a_larger_batch() {
        let mut whole = stream(500, 12, 5, 1).unwrap();
        let mut parts = StatefulStream::side_by_side(TextPart::whole(counting(500)), 4, 5, 3, 1).unwrap();
        assert_eq!((whole.carry(), parts.carry()), (Carry::ToNextBatch, Carry::ToNextUpdate));
        for i in 0..30 {
            let whole = whole.batch(i, 0).unwrap();
            for micro in 0..3 {
                let part = parts.batch(i, micro).unwrap();
                let rows = micro as usize * 20..(micro as usize + 1) * 20;
                assert_eq!(
                    (part.inputs.tokens(), part.targets.tokens()),
                    (&whole.inputs.tokens()[rows.clone()], &whole.targets.tokens()[rows])
                );
                assert_eq!(part.segments.is_dense(), whole.segments.is_dense());
            }
        }
        parts.batch(u64::MAX, 2).unwrap();
        let message = StatefulStream::side_by_side(TextPart::whole(counting(60)), 4, 5, 3, 1).unwrap_err().to_string();
        assert!(message.contains("12 lanes") && message.contains("accumulation"), "{message}");
    }

    #[test]
    fn a_text_without_a_window_for_every_lane_is_refused() {
        stream(25, 4, 6, 1).unwrap();
        let message = stream(24, 4, 6, 1).unwrap_err().to_string();
        assert!(message.contains("has 24 tokens") && message.contains("at least 25") && message.contains("4 lanes"), "{message}");
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(64))]

        #[test]
        fn a_pass_covers_every_token_of_the_lanes_once(batch_size in 1_usize..6, seq_len in 1_usize..9, extra in 0_u32..60) {
            let n = (batch_size * seq_len) as u32 + 1 + extra;
            let mut source = stream(n, batch_size, seq_len, 1).unwrap();
            let per_pass = source.windows_per_pass();
            for pass in 0..3 {
                let mut seen = Vec::new();
                let mut last: Option<Batch> = None;
                for window in 0..per_pass {
                    let batch = source.batch(pass * per_pass + window, 0).unwrap();
                    prop_assert_eq!(batch.segments.is_dense(), window != 0);
                    if let Some(last) = last {
                        for row in 0..batch_size {
                            prop_assert_eq!(batch.inputs.tokens()[row * seq_len], last.targets.tokens()[(row + 1) * seq_len - 1]);
                        }
                    }
                    prop_assert!(batch.inputs.tokens().iter().zip(batch.targets.tokens()).all(|(x, y)| *y == x + 1));
                    seen.extend_from_slice(batch.inputs.tokens());
                    last = Some(batch);
                }
                seen.sort_unstable();
                let start = seen[0];
                prop_assert!(pass != 0 || start == 0);
                prop_assert!(seen.iter().copied().eq(start..start + seen.len() as u32));
                prop_assert!(n - 1 - (seen.len() as u32) < (batch_size * seq_len) as u32);
            }
        }
    }
}
