//! The job that mpiexec started: MPI from its first to its last call, the end of all where one panics, and the heartbeat.

use std::io::Write;
use std::panic;
use std::sync::Arc;

use minrnn::train::{Group, Ranks};
use mpi::environment::Universe;
use mpi::topology::SimpleCommunicator;
use mpi::traits::{Communicator, CommunicatorCollectives};
use mpi::{Threading, initialize_with_threading};

use crate::heartbeat::{Heartbeat, Invitation, Listener, Pace, join};
use crate::world::World;

/// The exit code after a panic, as Rust has it.
const PANICKED: i32 = 101;
/// The exit code where another process is lost.
const LOST: i32 = 1;

/// Why a process cannot take part.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum Problem {
    /// MPI was there before.
    Initialized,
    /// This MPI cannot be called from the threads of a pool, one at a time.
    Threading,
}

impl std::fmt::Display for Problem {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(match self {
            Self::Initialized => "MPI was initialised twice",
            Self::Threading => "this MPI was built without support for threads (MPI_THREAD_SERIALIZED); use one with it, as MPICH and Open MPI are by default",
        })
    }
}

impl std::error::Error for Problem {}

/// This process's part in the job; MPI ends when it is dropped, which is on the thread that made it.
pub struct Job {
    world: Arc<World>,
    n_local: usize,
    // In this order: a goodbye is said before MPI ends.
    _heartbeat: Option<Heartbeat>,
    _universe: Universe,
}

impl std::fmt::Debug for Job {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Job({:?})", self.world)
    }
}

impl Job {
    /// Takes part in the job. From then on a panic of any thread ends all processes of it, and one that is lost, by signs of life at this `pace`, ends
    /// this one with a sentence.
    ///
    /// # Errors
    /// When this MPI cannot be used.
    pub fn new(pace: Pace) -> Result<Self, Problem> {
        // One thread at a time calls MPI: whichever of the pool computes.
        let (universe, threading) = initialize_with_threading(Threading::Serialized).ok_or(Problem::Initialized)?;
        let world = Arc::new(World::new());
        if threading < Threading::Serialized {
            return Err(Problem::Threading);
        }
        abort_where_it_panics();
        let n_local = SimpleCommunicator::world().split_shared(0).size().max(1) as usize;
        let heartbeat = heartbeat(&world, pace);
        Ok(Self { world, n_local, _heartbeat: heartbeat, _universe: universe })
    }

    /// The processes of the job.
    pub fn group(&self) -> Group {
        Group::new(self.world.clone())
    }

    /// How many of them are on this machine.
    pub fn n_local(&self) -> usize {
        self.n_local
    }
}

impl Drop for Job {
    fn drop(&mut self) {
        // Nobody says goodbye while others still listen to whether it is alive.
        SimpleCommunicator::world().barrier();
    }
}

/// Unwinding would finalise MPI, which waits for processes that wait for this one.
fn abort_where_it_panics() {
    let told = panic::take_hook();
    panic::set_hook(Box::new(move |info| {
        told(info);
        SimpleCommunicator::world().abort(PANICKED)
    }));
}

/// Between the first process and each of the others; where one cannot be reached, that is said, and nobody listens to it.
fn heartbeat(world: &World, pace: Pace) -> Option<Heartbeat> {
    let (rank, size) = (world.rank(), world.size());
    if size == 1 {
        return None;
    }
    let listener = (rank == 0).then(|| Listener::new().ok()).flatten();
    let invitation = listener.as_ref().map(|listener| serde_json::to_vec(listener.invitation()).unwrap_or_default());
    let told = world.gather(&invitation.unwrap_or_default());
    let invitation: Option<Invitation> = serde_json::from_slice(&told[0]).ok();
    let connections = match (listener, invitation) {
        (Some(listener), _) => listener.receive(size - 1).unwrap_or_default(),
        (None, Some(invitation)) => join(&invitation, rank).map(|stream| vec![(0, stream)]).unwrap_or_default(),
        (None, None) => Vec::new(),
    };
    let missing = (if rank == 0 { size - 1 } else { 1 }) - connections.len();
    if missing > 0 && rank == 0 {
        say(&format!(
            "{missing} processes cannot be reached by TCP: should their machines or links die, this would wait for them for ever"
        ));
    }
    let lost = move |other: usize, how: &str| {
        if rank == 0 || !how.contains("ended") {
            say(&format!("error: process {other} of {size}, counted from 0, {how}; resume the run from its last checkpoint"));
        }
        end()
    };
    Heartbeat::new(connections, pace, lost).ok()
}

fn say(line: &str) {
    let _ = writeln!(std::io::stderr(), "{line}");
}

/// At once: what a library does at an orderly exit might wait for the one that is lost.
fn end() -> ! {
    // SAFETY: it ends the process.
    #[cfg(unix)]
    unsafe {
        libc::_exit(LOST)
    }
    #[cfg(not(unix))]
    std::process::abort()
}
