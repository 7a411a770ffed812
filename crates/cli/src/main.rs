//! The `minrnn` command: train, evaluate, generate, verify and measure recurrent sequence models.
//!
//! Exit codes: 0 ok, 1 a check or a run failed, 2 wrong input.

mod allocator;
mod file_limits;

use std::process::ExitCode;

fn main() -> ExitCode {
    allocator::retain_memory();
    file_limits::outlive();
    let program = std::env::current_exe().map(|program| vec![program.into_os_string()]);
    ExitCode::from(minrnn_cli::run(program.unwrap_or_default(), std::env::args_os()))
}
