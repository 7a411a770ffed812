//! Offline reinforcement learning: recorded episodes, and windows of them that a policy is trained on (Chen et al. 2021, arXiv:2106.01345;
//! Ota 2024, arXiv:2403.19925).
//!
//! A policy reads at every step what is still to be earned (the return-to-go), what it observes and what it did last, and predicts what
//! to do. It is trained to imitate the recorded actions; asked for a high return, it does what was done where returns were high.
//!
//! * [`Trajectories`]: recorded episodes, in memory and as a file; `tools/convert_trajectories.py` makes the file from HDF5 of D4RL and
//!   Minari.
//! * [`OfflineRl`]: the task; its batches are windows of K steps.
//! * [`StepEncoding`]: the numbers that stand for a step, the same in training and in use.
//! * [`Environment`], [`PointMass`]: something to act in, where no physics simulator is at hand.

mod encoding;
mod environment;
mod file;
mod point_mass;
mod task;
mod trajectories;
mod windows;

pub use encoding::StepEncoding;
pub use environment::{Environment, Transition};
pub use point_mass::{Behavior, PointMass};
pub use task::OfflineRl;
pub use trajectories::{Ending, Trajectories, Trajectory};
pub use windows::{LeftPadding, TrajectoryWindows};
