//! Recorded episodes.

use crate::{Error, Result};

/// Why a trajectory ends.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Ending {
    /// The task is over: the goal was reached, or nothing more can be earned.
    Terminal,
    /// The time was up.
    Timeout,
}

impl Ending {
    /// The ending of a step marked as terminal or as the last before the time limit; `None` if another step follows.
    pub fn of(terminal: bool, timeout: bool) -> Option<Self> {
        match (terminal, timeout) {
            (true, _) => Some(Self::Terminal),
            (false, true) => Some(Self::Timeout),
            (false, false) => None,
        }
    }
}

/// Whole episodes, one after another: observations, actions and rewards.
#[derive(Debug, Clone, PartialEq)]
pub struct Trajectories {
    observation_width: usize,
    action_width: usize,
    observations: Vec<f32>,
    actions: Vec<f32>,
    rewards: Vec<f32>,
    /// The step after the last one of each trajectory, and why it ends.
    ends: Vec<(usize, Ending)>,
}

/// One episode of T steps.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Trajectory<'a> {
    /// The observation before every action, row-major `[T, observation_width]`.
    pub observations: &'a [f32],
    /// The actions, row-major `[T, action_width]`.
    pub actions: &'a [f32],
    /// The rewards `[T]`.
    pub rewards: &'a [f32],
    /// Why there is no further step.
    pub ending: Ending,
}

impl Trajectories {
    /// No episodes yet, with observations and actions of these widths.
    ///
    /// # Errors
    /// When a width is 0.
    pub fn new(observation_width: usize, action_width: usize) -> Result<Self> {
        if observation_width == 0 || action_width == 0 {
            return Err(Error::Data(format!(
                "trajectories need observations and actions of at least one number, found {observation_width} and {action_width}"
            )));
        }
        let (observations, actions, rewards, ends) = (Vec::new(), Vec::new(), Vec::new(), Vec::new());
        Ok(Self { observation_width, action_width, observations, actions, rewards, ends })
    }

    /// Splits rows of observations and actions of widths `[S, A]` into trajectories after each row with an ending; rows after the last one
    /// are dropped.
    ///
    /// # Errors
    /// When a width is 0, the numbers of rows differ, or an action of a trajectory is outside −1 to 1, the range of policies.
    pub fn from_rows(
        [observation_width, action_width]: [usize; 2],
        mut observations: Vec<f32>,
        mut actions: Vec<f32>,
        mut rewards: Vec<f32>,
        endings: impl IntoIterator<Item = Option<Ending>>,
    ) -> Result<Self> {
        let n_rows = rewards.len();
        let mut ends = Vec::new();
        let mut n_endings = 0;
        for ending in endings {
            n_endings += 1;
            ends.extend(ending.map(|ending| (n_endings, ending)));
        }
        let fits = [(observations.len(), observation_width), (actions.len(), action_width), (n_endings, 1)];
        if fits.iter().any(|&(len, width)| n_rows.checked_mul(width) != Some(len)) {
            return Err(Error::Data(format!(
                "{n_rows} rewards need {n_rows} observations of {observation_width} numbers and as many actions of {action_width} and endings; \
                 found {} and {} numbers, and {n_endings} endings",
                observations.len(),
                actions.len()
            )));
        }
        let n_steps = ends.last().map_or(0, |&(end, _)| end);
        observations.truncate(n_steps * observation_width);
        actions.truncate(n_steps * action_width);
        rewards.truncate(n_steps);
        expect_inside(&actions, action_width)?;
        Ok(Self { observations, actions, rewards, ends, ..Self::new(observation_width, action_width)? })
    }

    /// Appends an episode.
    ///
    /// # Errors
    /// When it has no step, its parts do not match, or an action is outside −1 to 1, the range of policies.
    pub fn push(&mut self, episode: Trajectory<'_>) -> Result<()> {
        let (n_steps, [observation, action]) = (episode.rewards.len(), self.widths());
        let fits = [(episode.observations.len(), observation), (episode.actions.len(), action)];
        if n_steps == 0 || fits.iter().any(|&(len, width)| n_steps.checked_mul(width) != Some(len)) {
            return Err(Error::Data(format!(
                "an episode of {n_steps} rewards needs {n_steps} observations of {observation} numbers and as many actions of {action}, \
                 and at least one of each; found {} and {} numbers",
                episode.observations.len(),
                episode.actions.len()
            )));
        }
        expect_inside(episode.actions, action)?;
        self.observations.extend_from_slice(episode.observations);
        self.actions.extend_from_slice(episode.actions);
        self.rewards.extend_from_slice(episode.rewards);
        self.ends.push((self.rewards.len(), episode.ending));
        Ok(())
    }

    /// Number of episodes.
    pub fn len(&self) -> usize {
        self.ends.len()
    }

    /// Whether there are no episodes.
    pub fn is_empty(&self) -> bool {
        self.ends.is_empty()
    }

    /// Number of steps of all episodes together.
    pub fn n_steps(&self) -> usize {
        self.rewards.len()
    }

    /// Widths of an observation and an action.
    pub fn widths(&self) -> [usize; 2] {
        [self.observation_width, self.action_width]
    }

    /// Episode `index`, counted from 0.
    ///
    /// # Panics
    /// When there is no such episode.
    pub fn get(&self, index: usize) -> Trajectory<'_> {
        let start = index.checked_sub(1).map_or(0, |before| self.ends[before].0);
        let (end, ending) = self.ends[index];
        Trajectory {
            observations: &self.observations[start * self.observation_width..end * self.observation_width],
            actions: &self.actions[start * self.action_width..end * self.action_width],
            rewards: &self.rewards[start..end],
            ending,
        }
    }

    /// The episodes in order.
    pub fn iter(&self) -> impl ExactSizeIterator<Item = Trajectory<'_>> {
        (0..self.len()).map(|index| self.get(index))
    }

    /// The mean return of the episodes; 0 if there are none.
    pub fn mean_return(&self) -> f64 {
        self.iter().map(|episode| episode.total()).sum::<f64>() / self.len().max(1) as f64
    }

    /// The largest return of an episode; negative infinity if there are none.
    pub fn best_return(&self) -> f64 {
        self.iter().map(|episode| episode.total()).fold(f64::NEG_INFINITY, f64::max)
    }
}

/// Refuses actions of `width` numbers outside −1 to 1, where policies act.
fn expect_inside(actions: &[f32], width: usize) -> Result<()> {
    let Some((at, number)) = actions.iter().copied().enumerate().find(|(_, number)| !(-1.0..=1.0).contains(number)) else { return Ok(()) };
    let (step, part) = (at / width, at % width);
    Err(Error::Data(format!(
        "there is an action outside -1 to 1, where a policy acts: step {step}, number {part} of its action (both counted from 0) is {number:?}; \
         divide the actions by what they reach at most"
    )))
}

impl Trajectory<'_> {
    /// Number of steps T.
    pub fn n_steps(&self) -> usize {
        self.rewards.len()
    }

    /// The return: the sum of all rewards.
    pub fn total(&self) -> f64 {
        self.rewards.iter().map(|&reward| f64::from(reward)).sum()
    }

    /// The return-to-go before each step `[T]`: the undiscounted sum of its reward and all later ones.
    pub fn returns_to_go(&self) -> Vec<f64> {
        let mut sum = 0.0;
        let mut to_go: Vec<f64> = self
            .rewards
            .iter()
            .rev()
            .map(|&reward| {
                sum += f64::from(reward);
                sum
            })
            .collect();
        to_go.reverse();
        to_go
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn returns_to_go_are_sums_to_the_end_of_the_episode() {
        let mut trajectories = Trajectories::new(1, 1).unwrap();
        for rewards in [&[1.0, 2.0, 4.0][..], &[-1.0]] {
            let zeros = vec![0.0; rewards.len()];
            trajectories.push(Trajectory { observations: &zeros, actions: &zeros, rewards, ending: Ending::Timeout }).unwrap();
        }
        assert_eq!(trajectories.get(0).returns_to_go(), [7.0, 6.0, 4.0]);
        assert_eq!(trajectories.get(1).returns_to_go(), [-1.0]);
        assert_eq!((trajectories.mean_return(), trajectories.best_return(), trajectories.n_steps()), (3.0, 7.0, 4));
    }

    #[test]
    fn rows_are_cut_behind_every_ending_and_an_unfinished_rest_is_dropped() {
        let rows = |width: usize| (0..6 * width).map(|i| i as f32).collect::<Vec<_>>();
        let endings = [None, Some(Ending::Terminal), Some(Ending::Timeout), None, Some(Ending::Timeout), None];
        let actions = || rows(1).iter().map(|i| i / 8.0).collect::<Vec<_>>();
        let trajectories = Trajectories::from_rows([2, 1], rows(2), actions(), rows(1), endings).unwrap();
        assert_eq!(trajectories.iter().map(|episode| episode.n_steps()).collect::<Vec<_>>(), [2, 1, 2]);
        let last = trajectories.get(2);
        assert_eq!((last.observations, last.actions, last.ending), (&[6.0, 7.0, 8.0, 9.0][..], &[0.375, 0.5][..], Ending::Timeout));
        assert_eq!(trajectories.n_steps(), 5);
        // Rows that do not fit each other, and rows of no numbers.
        for (widths, observations, endings) in [([2, 1], 11, 6), ([2, 1], 12, 5), ([0, 1], 0, 6)] {
            let endings = vec![Some(Ending::Terminal); endings];
            assert!(
                Trajectories::from_rows(widths, vec![0.0; observations], actions(), rows(1), endings).is_err(),
                "{widths:?}, {observations}"
            );
        }
    }

    #[test]
    fn episodes_that_do_not_fit_are_refused() {
        assert!(Trajectories::new(0, 1).is_err());
        let mut trajectories = Trajectories::new(2, 1).unwrap();
        let episode = |observations, rewards| Trajectory { observations, actions: &[0.0], rewards, ending: Ending::Terminal };
        assert!(trajectories.push(episode(&[0.0], &[1.0])).unwrap_err().to_string().contains("1 observations of 2 numbers"));
        assert!(trajectories.push(episode(&[], &[])).is_err());
        trajectories.push(episode(&[0.0, 0.0], &[1.0])).unwrap();
        assert_eq!(trajectories.len(), 1);
        // Actions that no policy can take are refused wherever they come from, except after the last ending, since those rows are dropped.
        for action in [1.5, -1.01, f32::NAN] {
            let sentence = format!(
                "an action outside -1 to 1, where a policy acts: step 1, number 0 of its action (both counted from 0) is {action:?};"
            );
            let far = Trajectory { observations: &[0.0; 4], actions: &[1.0, action], rewards: &[1.0; 2], ending: Ending::Timeout };
            assert!(trajectories.push(far).unwrap_err().to_string().contains(&sentence));
            let cut = |endings: [Option<Ending>; 3]| {
                Trajectories::from_rows([1, 1], vec![0.0; 3], vec![-1.0, action, 0.0], vec![0.0; 3], endings)
            };
            assert!(cut([None, None, Some(Ending::Timeout)]).unwrap_err().to_string().contains(&sentence));
            assert_eq!(cut([Some(Ending::Timeout), None, None]).unwrap().n_steps(), 1);
        }
        assert_eq!(trajectories.len(), 1);
    }
}
