//! `minrnn devices`: where this program can compute on this machine.

use minrnn::device::{self, DeviceKind};

use crate::exit::ExitCode;
use crate::output::print;

#[derive(clap::Args)]
pub struct Args {}

pub fn run(_: Args) -> anyhow::Result<ExitCode> {
    let devices = device::available();
    let width = devices.iter().map(|device| device.choice.to_string().len()).max().unwrap_or(0);
    let mut text = String::new();
    for device in &devices {
        text += &format!("{:width$}  {}\n", device.choice.to_string(), device.name);
    }
    let built = device::built_with();
    let missing: Vec<&str> = DeviceKind::ALL.into_iter().filter(|kind| !built.contains(kind)).map(DeviceKind::name).collect();
    if !missing.is_empty() {
        text += &format!("\nnot built into this program: {} (cargo features of the same names)\n", missing.join(", "));
    }
    print(text)?;
    Ok(ExitCode::SUCCESS)
}
