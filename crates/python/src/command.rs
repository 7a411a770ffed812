//! The command line, in an interpreter that was started for it.

use std::ffi::OsString;

use pyo3::prelude::*;

use crate::allocator;

/// Runs the ``minrnn`` command with ``arguments``, the first of which is its name, and returns its exit code. ``program`` is the command line that starts
/// it again.
///
/// The command handles signals itself: callers must have removed Python's own handler.
#[pyfunction]
pub(crate) fn run_command(py: Python<'_>, program: Vec<OsString>, arguments: Vec<OsString>) -> u8 {
    allocator::retain();
    py.detach(|| minrnn_cli::run(program, arguments))
}
