//! Offline reinforcement learning: recorded episodes, and windows of them that a policy is trained on (Chen et al. 2021, arXiv:2106.01345;
//! Ota 2024, arXiv:2403.19925).
//!
//! A policy reads at every step the return still to be earned (the return-to-go), the observation and its previous action, and predicts the
//! next action. It is trained to imitate the recorded actions; asked for a high return, it acts as in episodes with high returns.
//!
//! * [`Trajectories`]: recorded episodes, in memory and as a file; `tools/convert_trajectories.py` makes the file from HDF5 of D4RL and
//!   Minari.
//! * [`OfflineRl`]: the task; its batches are windows of K steps.
//! * [`StepEncoding`]: the encoding of a step, the same in training and in use.
//! * [`Environment`], [`PointMass`]: something to act in without a physics simulator.

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
