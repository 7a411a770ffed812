//! Imitating recorded actions as a task.

use std::sync::Arc;

use super::encoding::StepEncoding;
use super::trajectories::Trajectories;
use super::windows::{LeftPadding, TrajectoryWindows};
use crate::data::{BatchSource, EvaluationSet, FixedBatches, IoKind, SequenceTask};
use crate::rng::Purpose;
use crate::{Error, Result};

/// One in this many trajectories is held out for scoring.
const HELD_OUT: usize = 20;
/// Bounds of the largest return as the policy reads it, so that the squares of its sums are finite 32-bit floats, and not 0.
const LEAST_READ: f64 = 1e-9;
const MOST_READ: f64 = 1e9;

/// Windows of `context` steps as inputs, the recorded action at every step as target.
///
/// The inputs hold the previous action of each step, never the one to be predicted: any model of values can be trained on it, and
/// [`Decision`](crate::model::Decision) turns it into the tokens of the Decision Transformer.
#[derive(Debug, Clone)]
pub struct OfflineRl {
    trajectories: Arc<Trajectories>,
    encoding: Arc<StepEncoding>,
    context: usize,
    padding: LeftPadding,
    understood: Option<String>,
}

impl OfflineRl {
    /// The task on `trajectories`, with returns divided by `return_scale` (1000 in the published experiments), by default the largest
    /// return of an episode, whatever its sign.
    ///
    /// # Errors
    /// When there are fewer than two trajectories, one to learn from and one to score, when a setting is 0, or when scaled returns would be
    /// indistinguishable from 0 or too large to compute with.
    pub fn new(trajectories: Trajectories, context: usize, return_scale: Option<f64>, padding: LeftPadding) -> Result<Self> {
        if context == 0 {
            return Err(Error::Config("the context of a policy must be at least 1 step, found 0".into()));
        }
        if trajectories.len() < 2 {
            return Err(Error::Data(format!(
                "expected at least two trajectories, one to learn from and one to score, found {}",
                trajectories.len()
            )));
        }
        let largest = trajectories.iter().map(|episode| episode.total().abs()).fold(0.0, f64::max);
        let of_data = if largest > 0.0 { largest } else { 1.0 };
        let scale = return_scale.unwrap_or(of_data);
        // The policy reads returns-to-go, which may be far larger than the returns of whole episodes.
        let to_go = trajectories.iter().flat_map(|episode| episode.returns_to_go()).fold(0.0, |most: f64, to_go| most.max(to_go.abs()));
        let read = to_go / scale;
        if to_go > 0.0 && scale > 0.0 && !(LEAST_READ..=MOST_READ).contains(&read) {
            return Err(Error::Config(format!(
                "return_scale = {scale:?} makes {read:.1e} of the return to go that is largest in size, {to_go:?}, expected {LEAST_READ:e} to {MOST_READ:e} \
                 for the policy to read; take a scale near {to_go:?}"
            )));
        }
        let encoding = Arc::new(StepEncoding::fit(&trajectories, scale)?);
        Ok(Self { trajectories: trajectories.into(), encoding, context, padding, understood: None })
    }

    /// The same for a recording whose last `n` steps were dropped because no ending follows them.
    pub fn without_rest(self, n: usize) -> Self {
        let all = self.trajectories.n_steps() + n;
        let sentence = format!("left out: {n} of {all} steps, which no terminal or timeout follows");
        Self { understood: (n > 0).then_some(sentence), ..self }
    }

    /// The recorded episodes.
    pub fn trajectories(&self) -> &Trajectories {
        &self.trajectories
    }

    /// The encoding of steps as numbers.
    pub fn encoding(&self) -> &StepEncoding {
        &self.encoding
    }

    /// Every 20th trajectory is scored, or the last one if there are fewer; the others are trained on. Of several scored trajectories every
    /// other one chooses the checkpoint, and the rest are for the report.
    fn part(&self, purpose: Purpose) -> Vec<usize> {
        let count = self.trajectories.len();
        let every = count.min(HELD_OUT);
        let is_scored = |index: &usize| index % every == every - 1;
        if purpose == Purpose::TrainData {
            return (0..count).filter(|index| !is_scored(index)).collect();
        }
        let scored: Vec<usize> = (0..count).filter(is_scored).collect();
        let first = usize::from(purpose == Purpose::ValidationData && scored.len() > 1);
        scored.into_iter().skip(first).step_by(2).collect()
    }

    fn windows(&self, batch_size: usize, seed: u64, purpose: Purpose) -> Result<TrajectoryWindows> {
        let (trajectories, encoding) = (self.trajectories.clone(), self.encoding.clone());
        let windows = TrajectoryWindows::new(trajectories, encoding, &self.part(purpose), self.context, batch_size, seed, purpose)?;
        Ok(windows.with_padding(self.padding))
    }
}

impl SequenceTask for OfflineRl {
    fn reads(&self) -> IoKind {
        IoKind::Values { width: self.encoding.width() }
    }

    fn predicts(&self) -> IoKind {
        IoKind::Values { width: self.encoding.action_width }
    }

    fn longest(&self) -> usize {
        self.context
    }

    fn has_parts(&self) -> bool {
        true
    }

    fn understood(&self) -> Option<&str> {
        self.understood.as_deref()
    }

    fn description(&self) -> Option<serde_json::Value> {
        serde_json::to_value(&*self.encoding).ok()
    }

    fn training(&self, batch_size: usize, seed: u64) -> Result<Box<dyn BatchSource>> {
        Ok(Box::new(self.windows(batch_size, seed, Purpose::TrainData)?))
    }

    fn evaluation(&self, batch_size: usize, seed: u64, purpose: Purpose, n_batches: u64) -> Result<Box<dyn EvaluationSet>> {
        Ok(Box::new(FixedBatches::new(self.windows(batch_size, seed, purpose)?, n_batches)))
    }
}

#[cfg(test)]
mod tests {
    use super::super::{Ending, Trajectory};
    use super::*;

    fn trajectories(count: usize) -> Trajectories {
        let mut trajectories = Trajectories::new(2, 1).unwrap();
        for i in 0..count {
            let observations = [i as f32, 5.0, -(i as f32), 5.0];
            let episode =
                Trajectory { observations: &observations, actions: &[i as f32 / 64.0; 2], rewards: &[1.0; 2], ending: Ending::Terminal };
            trajectories.push(episode).unwrap();
        }
        trajectories
    }

    #[test]
    fn what_is_scored_is_not_trained_on() {
        for count in [2, 3, 20, 45] {
            let task = OfflineRl::new(trajectories(count), 2, Some(1.0), LeftPadding::Seen).unwrap();
            let [trained, chosen_by, reported] =
                [Purpose::TrainData, Purpose::ValidationData, Purpose::TestData].map(|part| task.part(part));
            assert_eq!(trained.len(), count - (count / 20).max(1), "{count}");
            assert!(!chosen_by.is_empty() && !reported.is_empty());
            assert!(trained.iter().all(|index| !chosen_by.contains(index) && !reported.contains(index)));
            assert_eq!(chosen_by.iter().all(|index| !reported.contains(index)), count >= 40, "{count}");
        }
        let refusal = OfflineRl::new(trajectories(1), 2, None, LeftPadding::Seen).unwrap_err();
        assert!(refusal.to_string().contains("at least two"));
    }

    #[test]
    fn a_scale_that_leaves_no_returns_to_read_is_refused() {
        for (scale, read) in [(1e-30, "2.0e30"), (1e300, "2.0e-300")] {
            let refusal = OfflineRl::new(trajectories(3), 2, Some(scale), LeftPadding::Cut).unwrap_err().to_string();
            let expected =
                format!("return_scale = {scale:?} makes {read} of the return to go that is largest in size, 2.0, expected 1e-9 to 1e9");
            assert!(refusal.starts_with(&expected) && refusal.ends_with("a scale near 2.0"), "{refusal}");
        }
        OfflineRl::new(trajectories(3), 2, Some(1e6), LeftPadding::Cut).unwrap();
    }

    #[test]
    fn the_description_holds_what_a_policy_needs() {
        assert_eq!(OfflineRl::new(trajectories(3), 2, None, LeftPadding::Cut).unwrap().encoding().return_scale, 2.0);
        let task = OfflineRl::new(trajectories(3), 2, Some(50.0), LeftPadding::Seen).unwrap();
        let encoding: StepEncoding = serde_json::from_value(task.description().unwrap()).unwrap();
        assert_eq!(&encoding, task.encoding());
        assert_eq!((encoding.mean[0], encoding.mean[1], encoding.return_scale), (0.0, 5.0, 50.0));
        // Values 0, 0, ±1, ±2 and a constant.
        assert!((f64::from(encoding.deviation[0]) - (10.0f64 / 6.0).sqrt()).abs() < 1e-5);
        assert!(encoding.deviation[1] > 0.0 && encoding.deviation[1] < 2e-6);
    }
}
