//! Environments for policies to act in.

use crate::rng::ChaCha8Rng;

/// The result of an action.
#[derive(Debug, Clone, PartialEq)]
pub struct Transition {
    /// The next observation.
    pub observation: Vec<f32>,
    /// The reward.
    pub reward: f32,
    /// Whether the episode is over; running out of time does not count.
    pub terminal: bool,
}

/// Something that can be observed and acted in, and gives rewards.
pub trait Environment {
    /// Widths of an observation and an action.
    fn widths(&self) -> [usize; 2];

    /// Maximum number of steps of an episode.
    fn max_steps(&self) -> usize;

    /// Starts an episode; `rng` chooses the start.
    fn reset(&mut self, rng: &mut ChaCha8Rng) -> Vec<f32>;

    /// One step.
    ///
    /// # Panics
    /// When the action has the wrong width.
    fn step(&mut self, action: &[f32]) -> Transition;
}
