//! From errors to sentences on stderr and exit codes.

use std::process::ExitCode;

use minrnn::Error;

/// The run or the check failed.
pub const FAILED: u8 = 1;
/// The input was wrong.
pub const WRONG_INPUT: u8 = 2;

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
    eprintln!("error: {error:#}");
    let wrong_input =
        error.chain().any(|cause| cause.is::<WrongInput>() || cause.downcast_ref::<Error>().is_some_and(Error::is_wrong_input));
    ExitCode::from(if wrong_input { WRONG_INPUT } else { FAILED })
}
