//! From errors to sentences on stderr and exit codes.

use std::io::{self, Write};

use minrnn::Error;

use crate::exit::ExitCode;
use crate::hint;
use crate::printable::printable;
use crate::say::say;

/// The run or the check failed.
pub const FAILED: u8 = 1;
/// The input was wrong.
pub const WRONG_INPUT: u8 = 2;

/// What is said when stdout cannot be written.
pub const NO_STDOUT: &str = "could not write to stdout";

/// A wrong input found by the command line itself.
#[derive(Debug)]
pub struct WrongInput(pub String);

impl std::fmt::Display for WrongInput {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(&self.0)
    }
}

impl std::error::Error for WrongInput {}

/// Prints the error and chooses the exit code.
pub fn report(error: &anyhow::Error) -> ExitCode {
    if error.downcast_ref::<io::Error>().is_some_and(|error| error.kind() == io::ErrorKind::BrokenPipe) {
        // Whoever read stdout has seen enough.
        return ExitCode::SUCCESS;
    }
    say(format_args!("error: {}", printable(&sentence(error))));
    ExitCode::from(code(error))
}

/// The exit code of the error.
pub fn code(error: &anyhow::Error) -> u8 {
    if is_wrong_input(error) { WRONG_INPUT } else { FAILED }
}

/// Prints what the parser of the command line reports: help and version on stdout, and what is wrong with the arguments on stderr.
pub fn report_usage(told: &clap::Error) -> ExitCode {
    let written = told.print().and_then(|()| io::stdout().flush());
    match written {
        // The arguments are wrong even if nobody reads it.
        _ if told.use_stderr() => ExitCode::from(WRONG_INPUT),
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => report(&anyhow::Error::new(error).context(NO_STDOUT)),
    }
}

/// Whether the input is at fault rather than the run or the machine.
pub fn is_wrong_input(error: &anyhow::Error) -> bool {
    error.chain().any(|cause| {
        cause.is::<WrongInput>()
            || cause.downcast_ref().is_some_and(Error::is_wrong_input)
            || cause.downcast_ref().is_some_and(minrnn_bench::Error::is_wrong_input)
            || cause.downcast_ref().is_some_and(minrnn_reproduce::Error::is_wrong_input)
            || cause.downcast_ref().is_some_and(minrnn_serve::Error::is_wrong_input)
    })
}

/// The error and its causes, each with the flag that helps; a cause that the message already ends with is not repeated.
pub fn sentence(error: &anyhow::Error) -> String {
    let told = |told: String, cause: String| if told.ends_with(&cause) { told } else { format!("{told}: {cause}") };
    error.chain().map(hint::with_hint).reduce(told).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_cause_is_told_once() {
        let error = Error::io("read", "file", io::ErrorKind::NotFound.into());
        assert_eq!(sentence(&error.into()), "could not read 'file': entity not found");
        let error = anyhow::Error::from(io::Error::from(io::ErrorKind::NotFound)).context("could not listen");
        assert_eq!(sentence(&error), "could not listen: entity not found");
    }
}
