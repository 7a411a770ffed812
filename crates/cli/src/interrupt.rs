//! Ctrl-C and termination ask for a stop; another one ends the process at once.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{RecvTimeoutError, channel};
use std::time::{Duration, Instant};

use anyhow::Context;

/// A signal may arrive twice at once, for the process and for its group; a person needs longer to press again.
const SAME_SIGNAL: Duration = Duration::from_secs(1);
/// How often to check for a stop while waiting for an input.
const GLANCE: Duration = Duration::from_millis(50);

/// A flag that is raised by the first Ctrl-C.
pub fn stop_flag() -> anyhow::Result<Arc<AtomicBool>> {
    let flag = Arc::new(AtomicBool::new(false));
    raise_at_signal(&flag)?;
    Ok(flag)
}

/// Lets the first Ctrl-C raise `flag`; before this, one ends the process at once.
pub fn raise_at_signal(flag: &Arc<AtomicBool>) -> anyhow::Result<()> {
    let raised = flag.clone();
    let mut first: Option<Instant> = None;
    ctrlc::set_handler(move || {
        raised.store(true, Ordering::Relaxed);
        if first.get_or_insert_with(Instant::now).elapsed() > SAME_SIGNAL {
            std::process::exit(130);
        }
    })
    .context("could not listen for Ctrl-C")
}

/// What `read` returns, which may wait for ever, such as on a pipe that nobody writes to; `None` when `stop` was raised before it returned.
///
/// `read` then goes on waiting in a thread of its own, until the process ends.
pub fn unless_stopped<T: Send + 'static>(stop: &AtomicBool, read: impl FnOnce() -> T + Send + 'static) -> Option<T> {
    let (done, waiting) = channel();
    let reader = std::thread::spawn(move || done.send(read()));
    loop {
        match waiting.recv_timeout(GLANCE) {
            Ok(found) => return Some(found),
            Err(RecvTimeoutError::Timeout) if stop.load(Ordering::Relaxed) => return None,
            Err(RecvTimeoutError::Timeout) => {}
            Err(RecvTimeoutError::Disconnected) => match reader.join() {
                Err(panic) => std::panic::resume_unwind(panic),
                Ok(_) => return None,
            },
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_waits_for_ever_ends_with_a_stop_and_nothing_else_does() {
        assert_eq!(unless_stopped(&AtomicBool::new(false), || 7), Some(7));
        let never = || std::thread::sleep(Duration::from_secs(3600));
        assert_eq!(unless_stopped(&AtomicBool::new(true), never), None);
    }
}
