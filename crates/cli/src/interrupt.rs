//! Ctrl-C and termination ask for a stop; another one ends the process at once. A limit on the size of files ends nothing.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use anyhow::Context;

/// A signal may arrive twice at once, for the process and for its group; a person needs longer to press again.
const SAME_SIGNAL: Duration = Duration::from_secs(1);

/// A flag that is raised by the first Ctrl-C.
pub fn stop_flag() -> anyhow::Result<Arc<AtomicBool>> {
    let flag = Arc::new(AtomicBool::new(false));
    let raised = flag.clone();
    let mut first: Option<Instant> = None;
    ctrlc::set_handler(move || {
        raised.store(true, Ordering::Relaxed);
        if first.get_or_insert_with(Instant::now).elapsed() > SAME_SIGNAL {
            std::process::exit(130);
        }
    })
    .context("could not listen for Ctrl-C")?;
    Ok(flag)
}

/// Lets a write beyond the limit on file sizes (`ulimit -f`) fail with a reason, as other writes do, instead of ending the process.
pub fn outlive_file_limits() {
    // SAFETY: ignoring a signal installs no handler, and no thread is running yet.
    #[cfg(unix)]
    unsafe {
        libc::signal(libc::SIGXFSZ, libc::SIG_IGN);
    }
}
