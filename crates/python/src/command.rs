//! The command line, for a process that an interpreter started for it.

use std::ffi::OsString;

use pyo3::prelude::*;

use crate::allocator;

/// Runs the command with `arguments`, of which the first is its name; gives the exit code that the process should end with. `program` starts it anew.
///
/// Signals are the command's: whoever calls has taken Python's own handler away.
#[pyfunction]
pub(crate) fn run_command(py: Python<'_>, program: Vec<OsString>, arguments: Vec<OsString>) -> u8 {
    allocator::retain();
    py.detach(|| minrnn_cli::run(program, arguments))
}
