//! Letting a policy act (Chen et al. 2021, arXiv:2106.01345, §3).
//!
//! The policy is asked for a return. After every step the reward just received is taken off, and the policy acts upon what is left, what
//! it observes and what it did last, until the episode ends.

use burn::tensor::{Tensor, TensorData};

use crate::data::offline_rl::{Ending, Environment, LeftPadding, StepEncoding, Trajectories, Trajectory};
use crate::model::{BackboneState, Decision};
use crate::nn::{Mixer, Mode};
use crate::ops::StepCodes;
use crate::rng::{ChaCha8Rng, Purpose, stream};
use crate::{Error, Result};

/// What a policy knows of the steps before.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Memory {
    /// The last `context` steps, read again at every step, as in training. Before there are so many, rows of zeros stand in their place.
    Window {
        /// Number of steps.
        context: usize,
        /// What the policy makes of the rows of zeros.
        padding: LeftPadding,
    },
    /// The state left behind by all steps of the episode: a step costs the same at any time. This is not what a policy meets that is
    /// trained on windows.
    Carried,
}

/// How episodes are played.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Rollout {
    /// The return asked for.
    pub target_return: f64,
    /// What the policy knows of the steps before.
    pub memory: Memory,
    /// Chooses how episodes begin.
    pub seed: u64,
}

impl Rollout {
    /// One episode in each of the `environments`, side by side; a policy of `policy.valid()` acts fastest.
    ///
    /// # Errors
    /// When policy, encoding and environments do not have the same widths, or the window has no step.
    pub fn play<M: Mixer, E: Environment>(
        &self,
        policy: &Decision<M>,
        encoding: &StepEncoding,
        environments: &mut [E],
    ) -> Result<Trajectories> {
        self.check(policy, encoding, environments)?;
        let begin = |(index, environment): (usize, &mut E)| {
            let mut rng = stream(self.seed, Purpose::TestData, index as u64);
            Episode::begin(environment, self.target_return, encoding, &mut rng)
        };
        let mut episodes: Vec<Episode> = environments.iter_mut().enumerate().map(begin).collect();
        let mut view = View { memory: self.memory, state: None };
        let mut time = 0;
        while episodes.iter().any(|episode| episode.ending.is_none()) {
            episodes.iter_mut().for_each(|episode| episode.observe(encoding, time));
            let actions = view.act(policy, &episodes)?;
            time += 1;
            for ((environment, episode), action) in
                environments.iter_mut().zip(&mut episodes).zip(actions.chunks_exact(encoding.action_width))
            {
                if episode.ending.is_none() {
                    episode.step(environment, action, time);
                }
            }
        }
        let mut played = Trajectories::new(encoding.observation_width(), encoding.action_width)?;
        episodes.iter().try_for_each(|episode| played.push(episode.trajectory()))?;
        Ok(played)
    }

    fn check<M: Mixer, E: Environment>(&self, policy: &Decision<M>, encoding: &StepEncoding, environments: &[E]) -> Result<()> {
        if matches!(self.memory, Memory::Window { context: 0, .. }) {
            return Err(Error::Config("the context of a roll-out must be at least 1 step, found 0".into()));
        }
        let (expected, found) = ([encoding.width(), encoding.action_width], [policy.input_width(), policy.action_width()]);
        if expected != found {
            return Err(Error::Shape(format!("expected a policy of rows and actions of {expected:?} numbers, found {found:?}")));
        }
        let expected = [encoding.observation_width(), encoding.action_width];
        match environments.iter().map(Environment::widths).find(|widths| *widths != expected) {
            Some(found) => {
                Err(Error::Shape(format!("expected an environment with observations and actions of {expected:?} numbers, found {found:?}")))
            }
            None => Ok(()),
        }
    }
}

/// A return on the scale on which random actions have 0 and an expert has 100.
pub fn normalized_score(mean_return: f64, random: f64, expert: f64) -> f64 {
    100.0 * (mean_return - random) / (expert - random)
}

/// An episode being played.
struct Episode {
    /// What is still asked for.
    to_go: f64,
    observation: Vec<f32>,
    /// The rows that the policy reads, one after the other.
    rows: Vec<f32>,
    observations: Vec<f32>,
    actions: Vec<f32>,
    rewards: Vec<f32>,
    ending: Option<Ending>,
}

impl Episode {
    fn begin<E: Environment>(environment: &mut E, to_go: f64, encoding: &StepEncoding, rng: &mut ChaCha8Rng) -> Self {
        let observation = environment.reset(rng);
        let (rows, observations) = (Vec::with_capacity(encoding.width()), Vec::new());
        Self { to_go, observation, rows, observations, actions: Vec::new(), rewards: Vec::new(), ending: None }
    }

    /// Adds the row of step `time`; an episode that is over goes on with its last observation, which nobody looks at.
    fn observe(&mut self, encoding: &StepEncoding, time: usize) {
        let (start, zeros) = (self.rows.len(), vec![0.0; encoding.action_width]);
        let previous = self.actions.len().checked_sub(encoding.action_width).map_or(&zeros[..], |start| &self.actions[start..]);
        self.rows.resize(start + encoding.width(), 0.0);
        encoding.write(&mut self.rows[start..], self.to_go, &self.observation, previous, time);
    }

    fn step<E: Environment>(&mut self, environment: &mut E, action: &[f32], steps_made: usize) {
        let next = environment.step(action);
        self.observations.extend(std::mem::replace(&mut self.observation, next.observation));
        self.actions.extend_from_slice(action);
        self.rewards.push(next.reward);
        self.to_go -= f64::from(next.reward);
        if next.terminal {
            self.ending = Some(Ending::Terminal);
        } else if steps_made >= environment.max_steps() {
            self.ending = Some(Ending::Timeout);
        }
    }

    fn trajectory(&self) -> Trajectory<'_> {
        let ending = self.ending.unwrap_or(Ending::Timeout);
        Trajectory { observations: &self.observations, actions: &self.actions, rewards: &self.rewards, ending }
    }
}

/// What of the rows a policy is shown.
struct View<S> {
    memory: Memory,
    /// What is carried from step to step, if anything.
    state: Option<BackboneState<S>>,
}

impl<S> View<S> {
    /// The action of every episode, one after the other.
    fn act<M: Mixer<State = S>>(&mut self, policy: &Decision<M>, episodes: &[Episode]) -> Result<Vec<f32>> {
        let (batch, width, device) = (episodes.len(), policy.input_width(), policy.device());
        let context = match self.memory {
            Memory::Window { context, .. } => context,
            Memory::Carried => 1,
        };
        let n_steps = (episodes[0].rows.len() / width).min(context);
        let padded = context - n_steps;
        let mut inputs = vec![0.0; batch * context * width];
        for (window, episode) in inputs.chunks_exact_mut(context * width).zip(episodes) {
            window[padded * width..].copy_from_slice(&episode.rows[episode.rows.len() - n_steps * width..]);
        }
        let inputs = Tensor::<3>::from_data(TensorData::new(inputs, [batch, context, width]), &device);
        let steps = match self.memory {
            Memory::Window { padding, .. } => padding.segments(&vec![padded; batch]).steps(batch, context)?,
            Memory::Carried => StepCodes::dense(),
        };
        let (actions, state) = policy.forward(inputs, self.state.take(), &steps, Mode::Evaluate);
        self.state = (self.memory == Memory::Carried).then_some(state);
        let actions = actions.narrow(1, context - 1, 1);
        Ok(actions.into_data().try_to_vec().expect("actions are f32"))
    }
}
