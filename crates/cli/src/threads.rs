//! The thread pool that products and kernels use.

use anyhow::Context;

use crate::failure::WrongInput;

/// More threads than any machine this is meant for.
const MAX_THREADS: usize = 1024;

/// Runs `work` with `threads` threads (0: one for each core).
pub fn with_pool<R: Send>(threads: usize, work: impl FnOnce() -> R + Send) -> anyhow::Result<R> {
    if threads > MAX_THREADS {
        return Err(WrongInput(format!("threads must be at most {MAX_THREADS}, with 0 for every core, found {threads}")).into());
    }
    let pool = rayon::ThreadPoolBuilder::new().num_threads(threads).build().context("could not start the threads")?;
    Ok(pool.install(work))
}
