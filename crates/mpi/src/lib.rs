#![doc = include_str!("../README.md")]

mod addresses;
mod heartbeat;
#[cfg(feature = "mpi")]
mod job;
#[cfg(feature = "mpi")]
mod world;

pub use heartbeat::{Heartbeat, Invitation, Listener, Pace, join};
#[cfg(feature = "mpi")]
pub use job::{Job, Problem};
