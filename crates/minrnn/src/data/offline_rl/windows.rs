//! Windows of K steps, cut from trajectories at random (Chen et al. 2021, arXiv:2106.01345, §3).
//!
//! A trajectory is drawn with probability proportional to its length and a start uniformly within it: every step is equally likely as a
//! start. A window that reaches the end of its trajectory is shorter than K and padded on the left with rows in which the observation is 0
//! *before* normalisation, the action −10, return and time 0. Padded steps are not scored.

use std::sync::Arc;

use minrnn_kernels::choices;
use rand::RngExt;

use super::encoding::StepEncoding;
use super::trajectories::Trajectories;
use crate::data::batch::check_shape;
use crate::data::{Batch, BatchSource, Sequences};
use crate::rng::{Purpose, substream};
use crate::{Error, Result, Segments};

/// The action of padded steps, and the one before the first step of a window.
const NO_ACTION: f32 = -10.0;

choices! {
    /// How a model treats the padding before a short window.
    LeftPadding, "left_padding" {
        /// It reads it like any step, as recurrent models did in the published experiments.
        #[default]
        Seen = "seen",
        /// It is reset after it, so that nothing depends on it, as with attention there.
        Cut = "cut",
    }
}

impl LeftPadding {
    /// The segments of rows that begin with the given numbers of padded steps.
    pub fn segments(self, padded: &[usize]) -> Segments {
        if self == Self::Seen || padded.iter().all(|&n| n == 0) {
            return Segments::dense();
        }
        Segments::dense().with_resets(padded.iter().map(|&n| if n > 0 { vec![n] } else { Vec::new() }).collect())
    }
}

/// Batches of windows, drawn afresh for every iteration.
#[derive(Debug, Clone)]
pub struct TrajectoryWindows {
    trajectories: Arc<Trajectories>,
    encoding: Arc<StepEncoding>,
    /// The trajectories to draw from, each with the number of steps up to its end.
    part: Vec<(usize, usize)>,
    context: usize,
    padding: LeftPadding,
    batch_size: usize,
    seed: u64,
    purpose: Purpose,
}

impl TrajectoryWindows {
    /// Windows of `context` steps from the trajectories whose indices are in `part`.
    ///
    /// # Errors
    /// When there is no trajectory to draw from, the encoding belongs to other data, or a batch would be too large.
    ///
    /// # Panics
    /// When `part` has an index that does not exist.
    pub fn new(
        trajectories: Arc<Trajectories>,
        encoding: Arc<StepEncoding>,
        part: &[usize],
        context: usize,
        batch_size: usize,
        seed: u64,
        purpose: Purpose,
    ) -> Result<Self> {
        let widths = trajectories.widths();
        check_shape(batch_size, context)?;
        check_shape(batch_size * context, encoding.width())?;
        if widths != [encoding.observation_width(), encoding.action_width] {
            return Err(Error::Data(format!(
                "expected trajectories with observations and actions of {} and {} numbers, found {widths:?}",
                encoding.observation_width(),
                encoding.action_width
            )));
        }
        if part.is_empty() {
            return Err(Error::Data("there is no trajectory to cut windows from".into()));
        }
        let mut total = 0;
        let ends = part.iter().map(|&index| {
            total += trajectories.get(index).n_steps();
            (index, total)
        });
        let part = ends.collect();
        Ok(Self { trajectories, encoding, part, context, padding: LeftPadding::default(), batch_size, seed, purpose })
    }

    /// The same with a different treatment of padding.
    pub fn with_padding(self, padding: LeftPadding) -> Self {
        Self { padding, ..self }
    }

    /// Writes the window of trajectory `index` that starts at step `start`; returns the number of padded steps.
    fn write(&self, index: usize, start: usize, inputs: &mut [f32], targets: &mut [f32]) -> usize {
        let Self { encoding, context, .. } = self;
        let (episode, width) = (self.trajectories.get(index), encoding.width());
        let (observation, action) = (encoding.observation_width(), encoding.action_width);
        let n_steps = (episode.n_steps() - start).min(*context);
        let padded = context - n_steps;
        let none = vec![NO_ACTION; action];
        for row in inputs[..padded * width].chunks_exact_mut(width) {
            encoding.write(row, 0.0, &vec![0.0; observation], &none, 0);
        }
        let to_go = episode.returns_to_go();
        let rows = inputs[padded * width..].chunks_exact_mut(width);
        for (t, row) in (start..start + n_steps).zip(rows) {
            let previous = if t == start { &none } else { &episode.actions[(t - 1) * action..t * action] };
            encoding.write(row, to_go[t], &episode.observations[t * observation..][..observation], previous, t);
        }
        targets[padded * action..].copy_from_slice(&episode.actions[start * action..(start + n_steps) * action]);
        padded
    }
}

impl BatchSource for TrajectoryWindows {
    fn batch(&mut self, iteration: u64, micro: u64) -> Result<Batch> {
        let (batch_size, seq_len) = (self.batch_size, self.context);
        let (width, action) = (self.encoding.width(), self.encoding.action_width);
        let mut rng = substream(self.seed, self.purpose, iteration, micro);
        let mut inputs = vec![0.0; batch_size * seq_len * width];
        let mut targets = vec![0.0; batch_size * seq_len * action];
        let mut mask = vec![1.0; batch_size * seq_len];
        let mut padded = Vec::with_capacity(batch_size);
        let n_steps = self.part.last().expect("checked when it was made").1;
        for b in 0..batch_size {
            let at = rng.random_range(0..n_steps as u64) as usize;
            let place = self.part.partition_point(|&(_, end)| end <= at);
            let before = place.checked_sub(1).map_or(0, |before| self.part[before].1);
            let (inputs, targets) =
                (&mut inputs[b * seq_len * width..][..seq_len * width], &mut targets[b * seq_len * action..][..seq_len * action]);
            let n = self.write(self.part[place].0, at - before, inputs, targets);
            mask[b * seq_len..][..n].fill(0.0);
            padded.push(n);
        }
        Ok(Batch {
            inputs: Sequences::Values { values: inputs, width },
            targets: Sequences::Values { values: targets, width: action },
            mask: Some(mask),
            segments: self.padding.segments(&padded),
            batch_size,
            seq_len,
        })
    }

    fn tokens_per_batch(&self) -> usize {
        self.batch_size * self.context
    }
}

#[cfg(test)]
mod tests {
    use super::super::{Ending, Trajectory};
    use super::*;

    /// Episode i of `lengths` has observation 10 i + t, action i / 10 + t / 100 and reward 1 at step t.
    fn windows(lengths: &[usize], context: usize, batch_size: usize) -> TrajectoryWindows {
        let mut trajectories = Trajectories::new(1, 1).unwrap();
        for (i, &n_steps) in lengths.iter().enumerate() {
            let observations: Vec<f32> = (0..n_steps).map(|t| (10 * i + t) as f32).collect();
            let actions: Vec<f32> = (0..n_steps).map(|t| i as f32 / 10.0 + t as f32 / 100.0).collect();
            let rewards = vec![1.0; n_steps];
            let episode = Trajectory { observations: &observations, actions: &actions, rewards: &rewards, ending: Ending::Timeout };
            trajectories.push(episode).unwrap();
        }
        let encoding = StepEncoding { mean: vec![2.0], deviation: vec![4.0], action_width: 1, return_scale: 10.0, best_return: None };
        let part: Vec<usize> = (0..lengths.len()).collect();
        TrajectoryWindows::new(trajectories.into(), encoding.into(), &part, context, batch_size, 1, Purpose::TrainData).unwrap()
    }

    #[test]
    fn a_whole_window_has_returns_of_the_whole_trajectory() {
        let windows = windows(&[7], 3, 1);
        let (mut inputs, mut targets) = ([0.0; 12], [0.0; 3]);
        assert_eq!(windows.write(0, 2, &mut inputs, &mut targets), 0);
        #[rustfmt::skip]
        assert_eq!(inputs, [
            0.5, 0.0, -10.0, 0.002,
            0.4, 0.25, 0.02, 0.003,
            0.3, 0.5, 0.03, 0.004,
        ]);
        assert_eq!(targets, [0.02, 0.03, 0.04]);
    }

    #[test]
    fn a_short_window_is_padded_on_the_left() {
        let windows = windows(&[7], 3, 1);
        let (mut inputs, mut targets) = ([0.0; 12], [9.0; 3]);
        assert_eq!(windows.write(0, 6, &mut inputs, &mut targets), 2);
        let padding = [0.0, -0.5, -10.0, 0.0];
        assert_eq!(inputs[..8], [padding, padding].concat()[..]);
        assert_eq!(inputs[8..], [0.1, 1.0, -10.0, 0.006]);
        assert_eq!(targets[2], 0.06);
    }

    #[test]
    fn every_step_is_a_start_equally_often() {
        let mut windows = windows(&[1, 9, 10], 2, 2000);
        let batch = windows.batch(0, 0).unwrap();
        let mut counts = [0_i32; 3];
        for (b, row) in batch.inputs.values().chunks_exact(8).enumerate() {
            let padded = batch.mask.as_ref().unwrap()[2 * b] == 0.0;
            // The observation 10 i + t of the last step.
            counts[((row[5] * 4.0 + 2.0) / 10.0) as usize] += 1;
            assert_eq!(padded, row[2] == -10.0 && row[0] == 0.0, "{row:?}");
        }
        // 100, 900 and 1000 expected, with deviations of at most 23.
        assert!(counts[0].abs_diff(100) < 50 && counts[1].abs_diff(900) < 110 && counts[2].abs_diff(1000) < 110, "{counts:?}");
    }

    #[test]
    fn the_same_iteration_gives_the_same_windows_and_padding_may_be_cut_off() {
        let mut seen = windows(&[4, 2], 5, 8);
        let mut cut = seen.clone().with_padding(LeftPadding::Cut);
        let (seen, again, cut) = (seen.batch(3, 0).unwrap(), seen.batch(3, 0).unwrap(), cut.batch(3, 0).unwrap());
        assert_eq!(seen, again);
        assert!(seen.segments.is_dense());
        assert_eq!(seen.inputs, cut.inputs);
        let mask = cut.mask.unwrap();
        for (b, resets) in cut.segments.resets().unwrap().iter().enumerate() {
            assert_eq!(resets[..], [mask[5 * b..5 * b + 5].iter().filter(|&&m| m == 0.0).count()]);
        }
    }
}
