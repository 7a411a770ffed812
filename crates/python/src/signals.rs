//! Runs work on a thread of its own while the calling thread watches for Ctrl-C.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, RecvTimeoutError, channel};
use std::time::Duration;

use pyo3::prelude::*;

use crate::failure::{Failure, Result, panicked};

/// How often to check for signals while nothing happens.
const GLANCE: Duration = Duration::from_millis(50);

/// Runs `work`, which must end soon after its flag is set, and returns its result. An exception raised by a signal meanwhile sets the flag, and is returned
/// instead.
pub(crate) fn interruptible<T: Send>(py: Python<'_>, work: impl FnOnce(&AtomicBool) -> T + Send) -> Result<T> {
    let stop = AtomicBool::new(false);
    let (ends, ended) = channel::<()>();
    let (outcome, raised) = std::thread::scope(|scope| {
        let worker = scope.spawn(|| {
            // Dropped when the work ends, even by a panic.
            let _ends = ends;
            work(&stop)
        });
        let raised = listen(py, &stop, ended, |()| Ok(()));
        (py.detach(|| worker.join()), raised)
    });
    raised.map_or_else(|| outcome.map_err(|panic| panicked(&*panic)), |raised| Err(Failure::Raised(raised)))
}

/// Passes every message of `told` to `hear` until all senders are gone. Returns the first exception, from a signal or from `hear`, which sets `stop`.
pub(crate) fn listen<T: Send>(
    py: Python<'_>,
    stop: &AtomicBool,
    mut told: Receiver<T>,
    mut hear: impl FnMut(T) -> PyResult<()>,
) -> Option<PyErr> {
    let mut raised = None;
    let mut expect = |outcome: PyResult<()>| {
        if let (Err(error), None) = (outcome, &raised) {
            stop.store(true, Ordering::Relaxed);
            raised = Some(error);
        }
    };
    loop {
        let heard;
        (heard, told) = py.detach(move || (told.recv_timeout(GLANCE), told));
        match heard {
            Ok(event) => expect(hear(event)),
            Err(RecvTimeoutError::Timeout) => {}
            Err(RecvTimeoutError::Disconnected) => return raised,
        }
        expect(py.check_signals());
    }
}
