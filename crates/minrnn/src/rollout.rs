//! Letting a policy act (Chen et al. 2021, arXiv:2106.01345, §3).
//!
//! The policy is given a target return. After every step the reward is subtracted from it, and the policy acts on what remains, on what it
//! observes and on its last action, until the episode ends.

use burn::tensor::{Tensor, TensorData};

use crate::data::offline_rl::{Ending, Environment, LeftPadding, StepEncoding, Trajectories, Trajectory};
use crate::model::{BackboneState, Decision};
use crate::nn::{Mixer, Mode};
use crate::ops::StepCodes;
use crate::rng::{ChaCha8Rng, Purpose, stream};
use crate::{Error, Result, expect_output};

/// What a policy remembers of earlier steps.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Memory {
    /// The last `context` steps, read again at every step, as in training. Rows of zeros stand in for steps before the episode.
    Window {
        /// Number of steps.
        context: usize,
        /// How the policy treats the rows of zeros.
        padding: LeftPadding,
    },
    /// The state after all steps of the episode: every step costs the same. A policy trained on windows has not met this in training.
    Carried,
}

/// How episodes are played.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Rollout {
    /// The target return.
    pub target_return: f64,
    /// What the policy remembers of earlier steps.
    pub memory: Memory,
    /// Determines how episodes begin.
    pub seed: u64,
}

/// Something that acts on what it is shown.
pub trait Actor {
    /// Widths of a row and an action.
    fn widths(&self) -> [usize; 2];

    /// The next action of every episode, one after another, from the rows `shown` of each, equally many for each.
    ///
    /// # Errors
    /// When the rows cannot be read.
    fn act(&mut self, shown: Shown<'_>) -> Result<Vec<f32>>;
}

/// What a policy is shown of episodes played side by side.
#[derive(Debug, Clone, Copy)]
pub enum Shown<'a> {
    /// Windows that start from the initial state, row-major `[B, K, width]`. The first `padded` rows of each are zeros before the episode.
    Windows {
        /// Number of episodes B.
        batch: usize,
        /// The numbers.
        rows: &'a [f32],
        /// Number of rows before the episode.
        padded: usize,
        /// How the policy treats them.
        padding: LeftPadding,
    },
    /// The next row of each episode, `[B, width]`; earlier rows were shown before.
    Next(&'a [f32]),
}

impl Rollout {
    /// Plays one episode in each of the `environments`, side by side; `policy.valid()` acts fastest.
    ///
    /// # Errors
    /// When policy, encoding and environments do not have the same widths, the window has no steps, or an action is not finite.
    pub fn play<M: Mixer, E: Environment>(
        &self,
        policy: &Decision<M>,
        encoding: &StepEncoding,
        environments: &mut [E],
    ) -> Result<Trajectories> {
        self.play_with(&mut Carrying { policy, state: None }, encoding, environments)
    }

    /// The same with any actor that has not acted before.
    ///
    /// # Errors
    /// When actor, encoding and environments do not have the same widths, the window has no steps, or an action is not finite; and any
    /// error of the actor.
    pub fn play_with<E: Environment>(
        &self,
        actor: &mut dyn Actor,
        encoding: &StepEncoding,
        environments: &mut [E],
    ) -> Result<Trajectories> {
        self.check(actor.widths(), encoding, environments)?;
        let begin = |(index, environment): (usize, &mut E)| {
            let mut rng = stream(self.seed, Purpose::TestData, index as u64);
            Episode::begin(environment, self.target_return, encoding, &mut rng)
        };
        let mut episodes: Vec<Episode> = environments.iter_mut().enumerate().map(begin).collect();
        let mut time = 0;
        while episodes.iter().any(|episode| episode.ending.is_none()) {
            episodes.iter_mut().for_each(|episode| episode.observe(encoding, time));
            let actions = self.ask(actor, &episodes)?;
            let of_each = episodes.iter().zip(actions.chunks_exact(encoding.action_width));
            let asked_for = of_each.filter(|(episode, _)| episode.ending.is_none()).flat_map(|(_, action)| action);
            self.expect_numbers(asked_for.copied().collect(), encoding)?;
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

    /// The action of every episode.
    fn ask(&self, actor: &mut dyn Actor, episodes: &[Episode]) -> Result<Vec<f32>> {
        let [width, _] = actor.widths();
        let last = |n: usize| episodes.iter().flat_map(move |episode| &episode.rows[episode.rows.len() - n * width..]);
        match self.memory {
            Memory::Carried => actor.act(Shown::Next(&last(1).copied().collect::<Vec<f32>>())),
            Memory::Window { context, padding } => {
                let n_steps = (episodes[0].rows.len() / width).min(context);
                let padded = context - n_steps;
                let mut rows = vec![0.0; episodes.len() * context * width];
                for (window, episode) in rows.chunks_exact_mut(context * width).zip(episodes) {
                    window[padded * width..].copy_from_slice(&episode.rows[episode.rows.len() - n_steps * width..]);
                }
                actor.act(Shown::Windows { batch: episodes.len(), rows: &rows, padded, padding })
            }
        }
    }

    /// Refuses actions that are not finite, which a target return far from all learned ones may lead to.
    fn expect_numbers(&self, actions: Vec<f32>, encoding: &StepEncoding) -> Result<()> {
        let asked = self.target_return;
        match encoding.best_return.filter(|&best| best != asked && actions.iter().any(|x| !x.is_finite())) {
            Some(best) => {
                let sentence = format!("the policy answers no number when it is asked for a return of {asked:?}");
                Err(Error::Config(format!("{sentence}; ask for one near {best:?}, that of the best episode it learned from")))
            }
            None => expect_output(|| format!("a return of {asked:?}"), actions.into_iter().map(f64::from)),
        }
    }

    fn check<E: Environment>(&self, found: [usize; 2], encoding: &StepEncoding, environments: &[E]) -> Result<()> {
        if matches!(self.memory, Memory::Window { context: 0, .. }) {
            return Err(Error::Config("the context of a roll-out must be at least 1 step, found 0".into()));
        }
        if !((self.target_return / encoding.return_scale) as f32).is_finite() {
            let found = self.target_return;
            return Err(Error::Config(format!("the target return must be a finite number, also in 32 bits, found {found}")));
        }
        let expected = [encoding.width(), encoding.action_width];
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

/// A return on the scale on which random actions score 0 and an expert 100.
pub fn normalized_score(mean_return: f64, random: f64, expert: f64) -> f64 {
    100.0 * (mean_return - random) / (expert - random)
}

/// An episode being played.
struct Episode {
    /// The return still asked for.
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

    /// Adds the row of step `time`; an episode that is over continues with its last observation, which nobody looks at.
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

/// A policy, and the state that it carries from step to step, if it carries one.
struct Carrying<'a, M: Mixer> {
    policy: &'a Decision<M>,
    state: Option<BackboneState<M::State>>,
}

impl<M: Mixer> Actor for Carrying<'_, M> {
    fn widths(&self) -> [usize; 2] {
        [self.policy.input_width(), self.policy.action_width()]
    }

    fn act(&mut self, shown: Shown<'_>) -> Result<Vec<f32>> {
        let (width, device) = (self.policy.input_width(), self.policy.device());
        let tensor = |rows: &[f32], shape| Tensor::<3>::from_data(TensorData::new(rows.to_vec(), shape), &device);
        let (actions, context) = match shown {
            Shown::Windows { batch, rows, padded, padding } => {
                let context = rows.len() / (batch * width);
                let steps = padding.segments(&vec![padded; batch]).steps(batch, context)?;
                (self.policy.forward(tensor(rows, [batch, context, width]), None, &steps, Mode::Evaluate).0, context)
            }
            Shown::Next(rows) => {
                let inputs = tensor(rows, [rows.len() / width, 1, width]);
                let (actions, state) = self.policy.forward(inputs, self.state.take(), &StepCodes::dense(), Mode::Evaluate);
                self.state = Some(state);
                (actions, 1)
            }
        };
        Ok(actions.narrow(1, context - 1, 1).into_data().try_to_vec().expect("actions are f32"))
    }
}
