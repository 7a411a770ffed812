//! What a policy acts in.

use crate::rng::ChaCha8Rng;

/// What an action led to.
#[derive(Debug, Clone, PartialEq)]
pub struct Transition {
    /// What is observed afterwards.
    pub observation: Vec<f32>,
    /// What it earned.
    pub reward: f32,
    /// True when the episode is over; running out of time does not count.
    pub terminal: bool,
}

/// Something that is observed, acted upon, and rewards it.
pub trait Environment {
    /// Numbers in an observation and in an action.
    fn widths(&self) -> [usize; 2];

    /// Steps after which an episode is over in any case.
    fn max_steps(&self) -> usize;

    /// Begins an episode; `rng` chooses how.
    fn reset(&mut self, rng: &mut ChaCha8Rng) -> Vec<f32>;

    /// One step.
    ///
    /// # Panics
    /// When the action does not have its width.
    fn step(&mut self, action: &[f32]) -> Transition;
}
