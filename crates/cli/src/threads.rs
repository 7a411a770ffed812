//! The thread pool that products and kernels use.

use anyhow::Context;

/// Runs `work` with `threads` threads (0: one for each core).
pub fn with_pool<R: Send>(threads: usize, work: impl FnOnce() -> R + Send) -> anyhow::Result<R> {
    let pool = rayon::ThreadPoolBuilder::new().num_threads(threads).build().context("could not start the threads")?;
    Ok(pool.install(work))
}
