//! The pool that the products and kernels of a command run on.

use std::sync::Arc;

use anyhow::Context;
use memmap2::MmapOptions;
use minrnn::train::MAX_THREADS;
use rayon::ThreadPool;

use crate::failure::WrongInput;
use crate::printable::printable;

/// Bytes of the stack of a thread.
const STACK: usize = 2 << 20;
/// The variable from which the pool takes the number of threads if none is given, under either of its names.
const VARIABLES: [&str; 2] = ["RAYON_NUM_THREADS", "RAYON_RS_NUM_CPUS"];

/// `--threads`, to be flattened into the arguments of a command.
#[derive(clap::Args)]
pub struct Threads {
    /// Number of threads [default: all cores]
    #[arg(long, value_name = "N", allow_negative_numbers = true)]
    threads: Option<usize>,
}

impl Threads {
    /// The number that was given, checked against the limit.
    pub fn given(&self) -> anyhow::Result<Option<usize>> {
        match self.threads {
            Some(0) => Err(WrongInput(format!("--threads must be between 1 and {MAX_THREADS}, found 0")).into()),
            Some(threads) if threads > MAX_THREADS => Err(too_many(threads)),
            threads => Ok(threads),
        }
    }

    /// A pool of that many threads, for work that others start.
    pub fn pool(&self) -> anyhow::Result<Arc<ThreadPool>> {
        Ok(Arc::new(pool(self.given()?.unwrap_or(0))?))
    }

    /// Runs `work` on that many threads.
    pub fn install<R: Send>(&self, work: impl FnOnce() -> anyhow::Result<R> + Send) -> anyhow::Result<R> {
        self.install_or(0, work)
    }

    /// The same, on `own` threads if no number is given and `own` is not 0.
    pub fn install_or<R: Send>(&self, own: usize, work: impl FnOnce() -> anyhow::Result<R> + Send) -> anyhow::Result<R> {
        match self.given()?.or(Some(own).filter(|&own| own > 0)) {
            Some(threads) => with_pool(threads, work)?,
            None => {
                if let Some((_, threads)) = asked_by_environment() {
                    expect_stacks(threads)?;
                    // Otherwise they would start with the first work, which has no way to say that they could not.
                    rayon::ThreadPoolBuilder::new().stack_size(STACK).build_global().context("could not start the threads")?;
                }
                work()
            }
        }
    }
}

/// Runs `work` with `threads` threads (0: one for each core).
pub fn with_pool<R: Send>(threads: usize, work: impl FnOnce() -> R + Send) -> anyhow::Result<R> {
    Ok(pool(threads)?.install(work))
}

fn pool(threads: usize) -> anyhow::Result<ThreadPool> {
    if threads > MAX_THREADS {
        return Err(too_many(threads));
    }
    expect_stacks(threads)?;
    rayon::ThreadPoolBuilder::new().num_threads(threads).stack_size(STACK).build().context("could not start the threads")
}

/// Refuses more threads than memory has room for. If it runs out while they start, the process may end without a message.
fn expect_stacks(threads: usize) -> anyhow::Result<()> {
    if threads == 0 {
        return Ok(());
    }
    // Like stacks, none of it is touched.
    let room = MmapOptions::new().len(threads * STACK).no_reserve_swap().map_anon().map(drop);
    room.with_context(|| format!("could not start the threads: memory has no room for {threads} of them; ask for fewer with --threads"))
}

fn too_many(threads: usize) -> anyhow::Error {
    WrongInput(format!("threads must be at most {MAX_THREADS}, found {threads}")).into()
}

/// Refuses an environment that asks for more threads than the limit, at which the pool would hang, or for something that is not a number, which it would
/// ignore.
///
/// # Errors
/// When the variable that counts is not a whole number up to [`MAX_THREADS`].
pub fn expect_few() -> Result<(), WrongInput> {
    let mut given = VARIABLES.into_iter().filter_map(|variable| Some((variable, std::env::var_os(variable)?)));
    let Some((variable, found)) = given.find(|(_, found)| !found.is_empty()) else { return Ok(()) };
    let threads = found.to_str().and_then(|found| found.parse::<usize>().ok());
    if threads.is_some_and(|threads| threads <= MAX_THREADS) {
        return Ok(());
    }
    let found = printable(&found.to_string_lossy());
    Err(WrongInput(format!("{variable} must be a number of threads, at most {MAX_THREADS}, with 0 for every core, found '{found}'")))
}

/// The variable that says how many threads there are to be, and its number.
fn asked_by_environment() -> Option<(&'static str, usize)> {
    VARIABLES.into_iter().find_map(|variable| Some((variable, std::env::var(variable).ok()?.parse().ok()?)))
}
