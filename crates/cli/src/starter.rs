//! How this command is started anew, for what is measured in a process of its own: by the binary, or by an interpreter that has it as a library.

use std::ffi::OsString;
use std::process::Command;
use std::sync::OnceLock;

use anyhow::Context;

static PROGRAM: OnceLock<Vec<OsString>> = OnceLock::new();

/// Sets the program and its first arguments.
pub fn set(program: Vec<OsString>) {
    // Whoever runs a second command in a process has the same program.
    let _ = PROGRAM.set(program);
}

/// The command, with nothing asked of it yet.
pub fn command() -> anyhow::Result<Command> {
    let program = PROGRAM.get().and_then(|program| program.split_first());
    let (program, first) = program.context("cannot find this program, which every case starts anew")?;
    let mut command = Command::new(program);
    command.args(first);
    Ok(command)
}
