//! The threads of this process. A pool does not survive `fork()`: the child has none of its threads, so it gets pools of its own.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError};

use minrnn::train::MAX_THREADS;
use pyo3::prelude::*;
use rayon::{ThreadPool, ThreadPoolBuilder};

use crate::failure::{Failure, Mistake, Result};

/// The pools of one process, by the number of their threads.
struct Pools {
    process: u32,
    by_threads: BTreeMap<usize, Arc<ThreadPool>>,
}

static POOLS: Mutex<Pools> = Mutex::new(Pools { process: 0, by_threads: BTreeMap::new() });

/// The pool of this process with `threads` threads; 0: with one for each core (or as many as `RAYON_NUM_THREADS` says).
///
/// The caller is attached to the interpreter, and so is any thread that forks, so no child finds the lock taken.
pub(crate) fn pool(_: Python<'_>, threads: usize) -> Result<Arc<ThreadPool>> {
    let mut pools = POOLS.lock().unwrap_or_else(PoisonError::into_inner);
    expect_few(threads)?;
    let process = std::process::id();
    if pools.process != process {
        // The parent's threads do not exist in the child, so its pools must not be dropped.
        std::mem::forget(std::mem::replace(&mut *pools, Pools { process, by_threads: BTreeMap::new() }));
    }
    if let Some(pool) = pools.by_threads.get(&threads) {
        return Ok(pool.clone());
    }
    let made = Arc::new(new_pool(threads)?);
    pools.by_threads.insert(threads, made.clone());
    Ok(made)
}

/// A pool of the caller's own, for work that waits in it: waiting then takes no thread from other callers.
pub(crate) fn new_pool(threads: usize) -> Result<ThreadPool> {
    expect_few(threads)?;
    let made = ThreadPoolBuilder::new().num_threads(threads).thread_name(|index| format!("minrnn-{index}")).build();
    made.map_err(|error| Failure::new(Mistake::Internal, format!("no threads can be started: {error}")))
}

/// Refuses more threads than any pool may have.
fn expect_few(threads: usize) -> Result<()> {
    if threads <= MAX_THREADS {
        return Ok(());
    }
    Err(Failure::input(format!("threads must be at most {MAX_THREADS}, with 0 for every core, found {threads}")))
}

/// What a call reads.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Reading {
    /// One step of each row.
    Step,
    /// Whole sequences.
    Sequences,
}

/// How many threads the calls of a session take.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Threads {
    /// One for steps, all for whole sequences.
    Auto,
    /// At most so many; 0: all.
    AtMost(usize),
}

impl Threads {
    /// As asked for by the caller.
    pub fn asked(threads: Option<usize>) -> Result<Self> {
        threads.map_or(Ok(Self::Auto), |threads| expect_few(threads).map(|()| Self::AtMost(threads)))
    }

    /// Most threads of a call, 0 for all.
    pub fn most(self, reading: Reading) -> usize {
        match (self, reading) {
            (Self::Auto, Reading::Step) => 1,
            (Self::Auto, Reading::Sequences) => 0,
            (Self::AtMost(most), _) => most,
        }
    }

    /// The pool that such a call uses, if it needs one.
    pub fn pool(self, py: Python<'_>, reading: Reading) -> Result<Option<Arc<ThreadPool>>> {
        if self.most(reading) == 1 { Ok(None) } else { pool(py, 0).map(Some) }
    }
}

/// Runs `work` in `pool`, or on the calling thread.
pub(crate) fn within<T: Send>(pool: Option<&ThreadPool>, work: impl FnOnce() -> T + Send) -> T {
    match pool {
        Some(pool) => pool.install(work),
        None => work(),
    }
}
