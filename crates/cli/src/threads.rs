//! The pool that the products and kernels of a command run on.

use anyhow::Context;

use crate::failure::WrongInput;

/// More threads than any machine this is meant for.
const MAX_THREADS: usize = 1024;
/// What the pool takes the number of threads from where none is given, by either of its names.
const VARIABLES: [&str; 2] = ["RAYON_NUM_THREADS", "RAYON_RS_NUM_CPUS"];

/// `--threads`, to be flattened into the arguments of a command.
#[derive(clap::Args)]
pub struct Threads {
    /// Number of threads [default: all cores]
    #[arg(long, value_name = "N")]
    threads: Option<usize>,
}

impl Threads {
    /// Runs `work` on that many threads.
    pub fn install<R: Send>(&self, work: impl FnOnce() -> anyhow::Result<R> + Send) -> anyhow::Result<R> {
        match self.threads {
            Some(0) => Err(WrongInput(format!("--threads must be between 1 and {MAX_THREADS}, found 0")).into()),
            Some(threads) => with_pool(threads, work)?,
            None => work(),
        }
    }
}

/// Runs `work` with `threads` threads (0: one for each core).
pub fn with_pool<R: Send>(threads: usize, work: impl FnOnce() -> R + Send) -> anyhow::Result<R> {
    if threads > MAX_THREADS {
        return Err(WrongInput(format!("threads must be at most {MAX_THREADS}, with 0 for every core, found {threads}")).into());
    }
    let pool = rayon::ThreadPoolBuilder::new().num_threads(threads).build().context("could not start the threads")?;
    Ok(pool.install(work))
}

/// Refuses an environment that asks for more threads than there may be: the pool would try, and not come back.
pub fn expect_few_in_environment() -> anyhow::Result<()> {
    for variable in VARIABLES {
        let asked = std::env::var(variable).ok().and_then(|value| value.parse::<usize>().ok());
        if let Some(threads) = asked.filter(|&threads| threads > MAX_THREADS) {
            return Err(WrongInput(format!("{variable} must be at most {MAX_THREADS}, with 0 for every core, found {threads}")).into());
        }
    }
    Ok(())
}
