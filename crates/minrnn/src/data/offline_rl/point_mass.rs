//! A point on a plane to be pushed to the origin: a double integrator with drag and a quadratic cost.
//!
//! ```text
//! v ← 0.9 v + a Δt,   x ← x + v Δt,   reward = 1 − |x|² − 0.1 |v|² − 0.01 |a|²
//! ```
//!
//! where:
//!
//! * x, v: position and velocity in the plane, both observed; x starts uniformly in [−1, 1]², v in [−½, ½]²
//! * a: the action, each component clipped to [−1, 1]
//! * Δt = 0.1; an episode has 100 steps

use minrnn_kernels::choices;
use rand::Rng;

use super::environment::{Environment, Transition};
use super::trajectories::{Ending, Trajectories, Trajectory};
use crate::rng::{ChaCha8Rng, Purpose, stream};

const DT: f32 = 0.1;
/// Share of the velocity that drag leaves after a step.
const KEPT: f32 = 0.9;
const MAX_STEPS: usize = 100;

/// The point.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct PointMass {
    place: [f32; 2],
    velocity: [f32; 2],
}

choices! {
    /// Who acts when data is recorded.
    Behavior, "behavior" {
        /// Pushes at random, uniformly.
        #[default]
        Random = "random",
        /// The expert's push scaled by a factor from 0 to 0.3, drawn for every episode, plus noise of deviation 0.3: from useless to fair.
        Medium = "medium",
        /// a = −6 x − 3 v, close to the optimum, plus noise of deviation 0.05.
        Expert = "expert",
    }
}

impl PointMass {
    fn observation(&self) -> Vec<f32> {
        [self.place, self.velocity].concat()
    }

    /// The expert's action, without noise.
    fn expert(&self) -> [f32; 2] {
        std::array::from_fn(|i| (-6.0 * self.place[i] - 3.0 * self.velocity[i]).clamp(-1.0, 1.0))
    }

    /// `n_episodes` episodes of `behavior`; `purpose` and `seed` determine starts and noise.
    pub fn record(behavior: Behavior, n_episodes: u64, seed: u64, purpose: Purpose) -> Trajectories {
        let mut point = Self::default();
        let [observation_width, action_width] = point.widths();
        let mut trajectories = Trajectories::new(observation_width, action_width).expect("neither width is 0");
        for index in 0..n_episodes {
            let mut rng = stream(seed, purpose, index);
            let mut observation = point.reset(&mut rng);
            let (skill, noise) = match behavior {
                Behavior::Random => (0.0, 0.0),
                Behavior::Medium => (0.3 * unit(&mut rng), 0.3),
                Behavior::Expert => (1.0, 0.05),
            };
            let (mut observations, mut actions, mut rewards) = (Vec::new(), Vec::new(), Vec::new());
            for _ in 0..MAX_STEPS {
                let expert = point.expert();
                let action = expert.map(|push| match behavior {
                    Behavior::Random => 2.0 * unit(&mut rng) - 1.0,
                    _ => (skill * push + noise * gauss(&mut rng)).clamp(-1.0, 1.0),
                });
                let next = point.step(&action);
                observations.extend(std::mem::replace(&mut observation, next.observation));
                actions.extend(action);
                rewards.push(next.reward);
            }
            let episode = Trajectory { observations: &observations, actions: &actions, rewards: &rewards, ending: Ending::Timeout };
            trajectories.push(episode).expect("an observation and an action for every reward");
        }
        trajectories
    }
}

impl Environment for PointMass {
    fn widths(&self) -> [usize; 2] {
        [4, 2]
    }

    fn max_steps(&self) -> usize {
        MAX_STEPS
    }

    fn reset(&mut self, rng: &mut ChaCha8Rng) -> Vec<f32> {
        self.place = [(); 2].map(|()| 2.0 * unit(rng) - 1.0);
        self.velocity = [(); 2].map(|()| unit(rng) - 0.5);
        self.observation()
    }

    fn step(&mut self, action: &[f32]) -> Transition {
        assert_eq!(action.len(), 2, "a push has two parts");
        let square = |x: &[f32; 2]| x[0] * x[0] + x[1] * x[1];
        let push: [f32; 2] = std::array::from_fn(|i| action[i].clamp(-1.0, 1.0));
        for ((place, velocity), push) in self.place.iter_mut().zip(&mut self.velocity).zip(push) {
            *velocity = KEPT * *velocity + push * DT;
            *place += *velocity * DT;
        }
        let reward = 1.0 - square(&self.place) - 0.1 * square(&self.velocity) - 0.01 * square(&push);
        Transition { observation: self.observation(), reward, terminal: false }
    }
}

/// Uniform in [0, 1).
fn unit(rng: &mut ChaCha8Rng) -> f32 {
    (rng.next_u32() >> 8) as f32 / (1 << 24) as f32
}

/// Approximately normal: the sum of twelve uniform numbers, minus its mean.
fn gauss(rng: &mut ChaCha8Rng) -> f32 {
    (0..12).map(|_| unit(rng)).sum::<f32>() - 6.0
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_push_moves_the_point_as_mechanics_say() {
        let mut point = PointMass { place: [1.0, 0.0], velocity: [0.0, 0.5] };
        let next = point.step(&[-3.0, 0.5]);
        let expected = [0.99, 0.05, -0.1, 0.5];
        assert!(next.observation.iter().zip(expected).all(|(x, e)| (x - e).abs() < 1e-6), "{:?}", next.observation);
        let reward = 1.0 - (0.9801 + 0.0025) - 0.1 * (0.01 + 0.25) - 0.01 * 1.25;
        assert!((next.reward - reward).abs() < 1e-6 && !next.terminal);
    }

    #[test]
    fn better_behavior_earns_more() {
        let mean = |behavior| PointMass::record(behavior, 50, 1, Purpose::TrainData).mean_return();
        let (random, medium, expert) = (mean(Behavior::Random), mean(Behavior::Medium), mean(Behavior::Expert));
        assert!(random < medium && medium < expert - 5.0 && expert > 80.0, "{random} {medium} {expert}");
        assert_eq!(mean(Behavior::Medium), medium);
    }
}
