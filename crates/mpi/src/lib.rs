//! Training minrnn's models on several machines: the ranks of a job started by mpiexec, and whether they are alive.
//!
//! * `Job` (feature `mpi`, which needs an MPI to build against): this process's part in the job, which provides a
//!   [`Group`](minrnn::train::Group).
//! * [`Heartbeat`]: the connections by which processes monitor each other.

mod addresses;
#[cfg(any(feature = "mpi", all(test, target_os = "linux")))]
mod cores;
mod heartbeat;
#[cfg(feature = "mpi")]
mod job;
#[cfg(feature = "mpi")]
mod world;

pub use heartbeat::{Heartbeat, Invitation, Listener, Pace, join};
#[cfg(feature = "mpi")]
pub use job::{Job, Problem};
