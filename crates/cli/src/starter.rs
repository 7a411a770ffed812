//! How this command is started again, for what is measured in a process of its own: by the binary, or by an interpreter that has it as a library.

use std::ffi::OsString;
use std::process::Command;
use std::sync::OnceLock;

use anyhow::Context;

use crate::ranks;

static PROGRAM: OnceLock<Vec<OsString>> = OnceLock::new();

/// Sets the program and its first arguments.
pub fn set(program: Vec<OsString>) {
    // A second command in the same process has the same program.
    let _ = PROGRAM.set(program);
}

/// The command, without arguments yet; it will not be one of several processes that were started together.
pub fn command() -> anyhow::Result<Command> {
    let program = PROGRAM.get().and_then(|program| program.split_first());
    let (program, first) = program.context("cannot find this program, which every case starts anew")?;
    let mut command = Command::new(program);
    command.args(first);
    for variable in ranks::variables() {
        command.env_remove(variable);
    }
    Ok(command)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_started_anew_is_one_process() {
        set(vec!["minrnn".into(), "-m".into()]);
        let command = command().unwrap();
        assert!(command.get_program() == "minrnn" && command.get_args().count() == 1, "{command:?}");
        for variable in ["PMI_SIZE", "PMI_RANK", "OMPI_COMM_WORLD_SIZE", "SLURM_PROCID"] {
            assert!(command.get_envs().any(|(name, value)| name == variable && value.is_none()), "{variable}");
        }
    }
}
