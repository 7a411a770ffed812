//! The pool that the products and kernels of a command run on.

use crate::failure::WrongInput;

/// More threads than any machine this is meant for.
const MAX_THREADS: usize = 1024;

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
        let Some(threads) = self.threads else { return work() };
        if !(1..=MAX_THREADS).contains(&threads) {
            return Err(WrongInput(format!("--threads must be between 1 and {MAX_THREADS}, found {threads}")).into());
        }
        rayon::ThreadPoolBuilder::new().num_threads(threads).build()?.install(work)
    }
}
