//! The job started by mpiexec: MPI from its first to its last call, ending all processes if one panics, and the heartbeat.

use std::io::Write;
use std::sync::Arc;
use std::sync::mpsc::{RecvTimeoutError, Sender, channel};
use std::thread;
use std::time::{Duration, Instant};

use minrnn::train::{Group, Ranks};
use mpi::environment::Universe;
use mpi::topology::SimpleCommunicator;
use mpi::traits::{Communicator, CommunicatorCollectives};
use mpi::{Threading, initialize_with_threading};

use crate::cores;
use crate::heartbeat::{Heartbeat, Invitation, Listener, Pace, join};
use crate::world::World;

/// The exit code after a panic, as Rust has it.
const PANICKED: u8 = 101;
/// The exit code when another process is lost.
const LOST: i32 = 1;
/// The least time that MPI may take to end.
const MINUTE: Duration = Duration::from_secs(60);
/// How much longer than the first process the others wait for the end of MPI.
const TURN: Duration = Duration::from_secs(1);
/// How long after the first of them the last process may leave the barrier before the end.
const SETTLE: Duration = Duration::from_millis(200);
/// How often to check whether all have arrived.
const GLANCE: Duration = Duration::from_millis(5);

/// Why a process cannot join the job.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum Problem {
    /// MPI was already initialised.
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

/// This process's part in the job; MPI ends when it is dropped, which happens on the thread that made it. An unwinding panic also drops it,
/// and ends all processes.
pub struct Job {
    world: Arc<World>,
    n_sharing: usize,
    /// How long MPI may take to end.
    patience: Duration,
    // In this order: a goodbye is said before MPI ends.
    _heartbeat: Option<Heartbeat>,
    /// A second communicator of all processes, so that waiting in it cannot match an operation of another kind.
    end: SimpleCommunicator,
    _universe: Universe,
    /// Dropped when MPI has ended.
    ending: Option<Sender<()>>,
}

impl std::fmt::Debug for Job {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Job({:?})", self.world)
    }
}

impl Job {
    /// Joins the job. From then on this process ends with a message if another is lost, judged by signs of life at this `pace`. Until all
    /// have joined, MPI waits silently and for ever: `late` is called after a while, with the time waited. If MPI has not ended a minute, or
    /// twice the time of a silent process, after all processes have come to their ends, this one ends with a message.
    ///
    /// # Errors
    /// When this MPI cannot be used.
    pub fn new(pace: Pace, late: impl FnOnce(Duration) + Send + 'static) -> Result<Self, Problem> {
        let patience = pace.beat * pace.missed * 2;
        let come = unless_dropped(patience, late);
        // One thread at a time calls MPI: whichever thread of the pool computes.
        let (universe, threading) = initialize_with_threading(Threading::Serialized).ok_or(Problem::Initialized)?;
        drop(come);
        let world = Arc::new(World::new());
        if threading < Threading::Serialized {
            return Err(Problem::Threading);
        }
        let (n_sharing, end) = (n_sharing(), SimpleCommunicator::world().duplicate());
        let heartbeat = heartbeat(&world, pace);
        Ok(Self { world, n_sharing, patience: patience.max(MINUTE), _heartbeat: heartbeat, end, _universe: universe, ending: None })
    }

    /// The processes of the job.
    pub fn group(&self) -> Group {
        Group::new(self.world.clone())
    }

    /// Number of processes, including this one, that are on this machine and bound to the same cores, or like this one to none.
    pub fn n_sharing(&self) -> usize {
        self.n_sharing
    }

    /// Whether all processes reach this call within `patience`; those that do not are busy with something else.
    pub fn all_come(&self, patience: Duration) -> bool {
        let (began, mut waiting) = (Instant::now(), self.end.immediate_barrier());
        loop {
            match waiting.test() {
                Ok(_) => return true,
                Err(request) if began.elapsed() < patience => waiting = request,
                Err(request) => {
                    // Dropping it would panic.
                    std::mem::forget(request);
                    return false;
                }
            }
            thread::sleep(GLANCE);
        }
    }
}

impl Drop for Job {
    fn drop(&mut self) {
        // MPI would wait for processes that wait for this one.
        if thread::panicking() {
            self.world.abort(PANICKED);
        }
        // No process says goodbye while others still monitor whether it is alive.
        SimpleCommunicator::world().barrier();
        // While MPI ends, MPICH over UCX and TCP waits for the others' answers, and gives none once it has its own. It hangs if one got its answer from a process
        // that was still in the barrier; asleep, that one answers only when it ends MPI too.
        thread::sleep(SETTLE);
        let (rank, size) = (self.world.rank(), self.world.size());
        let never_ends = move |waited: Duration| {
            say(&format!(
                "error: process {rank} of {size}, counted from 0, ends without MPI, which has not ended for {:.0} seconds; all processes have done \
                 their work, and what they wrote is complete",
                waited.as_secs_f64()
            ));
            end()
        };
        // The first process, if it can, speaks for all: its end is that of the job.
        let turn = if rank == 0 { Duration::ZERO } else { TURN };
        self.ending = Some(unless_dropped(self.patience + turn, never_ends));
    }
}

/// Calls `late` with `patience` after that time, unless the returned sender is dropped before.
fn unless_dropped(patience: Duration, late: impl FnOnce(Duration) + Send + 'static) -> Sender<()> {
    let (kept, dropped) = channel();
    let wait = move || {
        if dropped.recv_timeout(patience) == Err(RecvTimeoutError::Timeout) {
            late(patience);
        }
    };
    // Without the thread only a message is missing.
    let _ = thread::Builder::new().name("late".to_owned()).spawn(wait);
    kept
}

/// How many processes on this machine are bound to the same cores as this one.
fn n_sharing() -> usize {
    let (own, here) = (cores::own(), SimpleCommunicator::world().split_shared(0));
    let mut all = vec![0u64; here.size() as usize * own.len()];
    here.all_gather_into(&own[..], &mut all[..]);
    all.chunks_exact(own.len()).filter(|cores| **cores == own).count().max(1)
}

/// The heartbeat between the first process and each of the others. A process that cannot be reached is reported, and not monitored.
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
    let (heartbeat, unheard) = Heartbeat::new(connections, pace, lost);
    for (other, error) in unheard {
        say(&format!(
            "process {rank} of {size}, counted from 0, cannot listen to process {other}: {error}; should that one's machine or link die, this one \
             would wait for it for ever"
        ));
    }
    Some(heartbeat)
}

fn say(line: &str) {
    let _ = writeln!(std::io::stderr(), "{line}");
}

/// Ends the process at once: what a library does at an orderly exit might wait for the lost process.
fn end() -> ! {
    // SAFETY: it ends the process.
    #[cfg(unix)]
    unsafe {
        libc::_exit(LOST)
    }
    #[cfg(not(unix))]
    std::process::abort()
}
