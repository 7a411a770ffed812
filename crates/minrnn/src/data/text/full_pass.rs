//! The deterministic score of a text: every prediction once, in consecutive windows.

use super::super::batch::{check_shape, expect_index};
use super::super::{Batch, EvaluationSet};
use super::{TextPart, restart};
use crate::{Result, Segments};

/// All `N − 1` predictions of a part, in non-overlapping windows of `T`; a short last window is padded, with lengths and a mask. A batch
/// has up to `B` windows, the last batch as many as are left.
#[derive(Debug, Clone)]
pub struct FullPass {
    part: TextPart,
    batch_size: usize,
    seq_len: usize,
    carried: bool,
}

impl FullPass {
    /// Every window starts from the initial state.
    ///
    /// # Errors
    /// [`crate::Error::Config`] when a size is 0 or the batch too large, [`crate::Error::Data`] when the part has fewer
    /// than 2 tokens, so that there is nothing to predict.
    pub fn new(part: TextPart, batch_size: usize, seq_len: usize) -> Result<Self> {
        check_shape(batch_size, seq_len)?;
        part.expect_len(2, "a prediction", "or move train_fraction")?;
        Ok(Self { part, batch_size, seq_len, carried: false })
    }

    /// One row that carries its state from window to window, so every prediction sees the whole text before it. The loss is lower than with
    /// [`FullPass::new`], and not comparable with it.
    ///
    /// # Errors
    /// As [`FullPass::new`].
    pub fn carried(part: TextPart, seq_len: usize) -> Result<Self> {
        Ok(Self { carried: true, ..Self::new(part, 1, seq_len)? })
    }

    /// Number of predictions, `N − 1`.
    pub fn n_predictions(&self) -> u64 {
        self.part.len() - 1
    }

    /// Number of windows; the last one is short if `T` does not divide the number of predictions.
    pub fn n_windows(&self) -> u64 {
        self.n_predictions().div_ceil(self.seq_len as u64)
    }
}

impl EvaluationSet for FullPass {
    fn n_batches(&self) -> u64 {
        self.n_windows().div_ceil(self.batch_size as u64)
    }

    fn batch(&mut self, index: u64) -> Result<Batch> {
        expect_index(index, self.n_batches())?;
        let seq_len = self.seq_len;
        let first = index * self.batch_size as u64;
        let rows = (self.n_windows() - first).min(self.batch_size as u64) as usize;
        let (mut inputs, mut targets) = (vec![0; rows * seq_len], vec![0; rows * seq_len]);
        let mut lengths = Vec::with_capacity(rows);
        let mut window = vec![0; seq_len + 1];
        for (row, (inputs, targets)) in inputs.chunks_exact_mut(seq_len).zip(targets.chunks_exact_mut(seq_len)).enumerate() {
            let offset = (first + row as u64) * seq_len as u64;
            let n = (self.n_predictions() - offset).min(seq_len as u64) as usize;
            self.part.read(offset, &mut window[..=n])?;
            inputs[..n].copy_from_slice(&window[..n]);
            targets[..n].copy_from_slice(&window[1..=n]);
            lengths.push(n);
        }
        let padded = lengths.iter().any(|&n| n < seq_len);
        let mask = padded.then(|| lengths.iter().flat_map(|&n| (0..seq_len).map(move |t| f32::from(t < n))).collect());
        let mut segments = if padded { Segments::from_lengths(lengths) } else { Segments::dense() };
        if self.carried && index == 0 {
            segments = match segments.lengths() {
                Some(lengths) => Segments::from_lengths(lengths.to_vec()).with_resets(vec![vec![0]; rows]),
                None => restart(rows),
            };
        }
        Ok(Batch { inputs: inputs.into(), targets: targets.into(), mask, segments, batch_size: rows, seq_len })
    }

    fn carries_state(&self) -> bool {
        self.carried
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::super::super::TokenWriter;
    use super::super::TextData;
    use super::super::tests::counting;
    use super::*;

    #[test]
    fn tiny_shakespeare_has_435_whole_windows_and_a_short_one_of_179() {
        let dir = tempfile::tempdir().unwrap();
        let mut writer = TokenWriter::create(dir.path().join("t"), 65).unwrap();
        writer.push(&(0..1_115_394).map(|i| i % 65).collect::<Vec<u32>>()).unwrap();
        let data = TextData::new(writer.finish([0; 32]).unwrap(), 0.9).unwrap();
        let mut pass = FullPass::new(data.test().clone(), 64, 256).unwrap();
        assert_eq!((data.train().len(), data.test().len()), (1_003_854, 111_540));
        assert_eq!((pass.n_windows(), pass.n_predictions()), (436, 111_360 + 179));
        assert_eq!(pass.n_batches(), 7);
        let scored: Vec<usize> = (0..7).map(|i| pass.batch(i).unwrap().n_scored()).collect();
        assert_eq!(scored.iter().sum::<usize>(), 111_539);
        let last = pass.batch(6).unwrap();
        assert_eq!(last.batch_size, 436 - 6 * 64);
        assert_eq!(last.segments.lengths().unwrap().last(), Some(&179));
        assert!(pass.batch(0).unwrap().mask.is_none());
        assert!(pass.batch(7).unwrap_err().to_string().contains("7 batches"));
    }

    #[test]
    fn the_carried_pass_is_reset_at_its_start_only() {
        let mut pass = FullPass::carried(TextPart::whole(counting(8)), 3).unwrap();
        assert!(pass.carries_state());
        assert_eq!(pass.batch(0).unwrap().segments, restart(1));
        assert!(pass.batch(1).unwrap().segments.is_dense());
        assert_eq!(pass.batch(2).unwrap().segments, Segments::from_lengths(vec![1]));
        let mut short = FullPass::carried(TextPart::whole(counting(2)), 3).unwrap();
        assert_eq!(short.batch(0).unwrap().segments.codes(1, 3).unwrap().unwrap(), [1, 2, 2]);
    }

    #[test]
    fn a_part_with_nothing_to_predict_is_refused() {
        let data = TextData::new(counting(5), 1.0).unwrap();
        let message = FullPass::new(data.test().clone(), 2, 3).unwrap_err().to_string();
        assert!(message.contains("test part") && message.contains("0 tokens"), "{message}");
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(64))]

        #[test]
        fn every_prediction_is_scored_once(n in 2_u32..120, batch_size in 1_usize..5, seq_len in 1_usize..20) {
            let mut pass = FullPass::new(TextPart::whole(counting(n)), batch_size, seq_len).unwrap();
            let mut seen = Vec::new();
            for index in 0..pass.n_batches() {
                let batch = pass.batch(index).unwrap();
                prop_assert!(batch.segments.codes(batch.batch_size, batch.seq_len).is_ok());
                for i in 0..batch.batch_size * batch.seq_len {
                    if batch.mask.as_ref().is_none_or(|mask| mask[i] == 1.0) {
                        prop_assert_eq!(batch.targets.tokens()[i], batch.inputs.tokens()[i] + 1);
                        seen.push(batch.inputs.tokens()[i]);
                    }
                }
            }
            prop_assert!(seen.into_iter().eq(0..n - 1));
        }
    }
}
