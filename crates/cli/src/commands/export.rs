//! `minrnn export`: a trained model's weights under the names of another library.

use std::path::PathBuf;
use std::process::ExitCode;

use clap::builder::PossibleValuesParser;
use minrnn::Error;
use minrnn::interchange::{Format, export};
use minrnn::train::find_checkpoint;
use minrnn_stream::{read_checkpoint, write_safetensors};

use crate::output::{expect_harmless, print};

#[derive(clap::Args)]
pub struct Args {
    /// Run directory, whose best checkpoint is taken, or a checkpoint
    run: PathBuf,
    /// Whose names the weights are to have
    #[arg(long, value_name = "FORMAT", value_parser = format_parser())]
    format: String,
    /// The safetensors file to write
    #[arg(short, long, value_name = "FILE")]
    output: PathBuf,
}

/// Takes the name of a format.
pub fn format_parser() -> PossibleValuesParser {
    Format::ALL.iter().map(|format| format.name()).collect::<Vec<_>>().into()
}

pub fn run(args: Args) -> anyhow::Result<ExitCode> {
    expect_harmless(&args.output, [])?;
    let format: Format = args.format.parse()?;
    let checkpoint = find_checkpoint(&args.run)?;
    let (config, mut weights) = read_checkpoint(&checkpoint).map_err(Error::from)?;
    let tensors = export(format, &mut weights, &config.model)?;
    let count = tensors.len();
    let tensors = tensors.into_iter().map(|(name, tensor)| (name, tensor.shape, tensor.data.into()));
    // The entry that libraries on PyTorch look for.
    write_safetensors(&args.output, tensors, Some(("format", "pt"))).map_err(Error::from)?;
    print(format_args!("{}: {count} tensors of format {format} from {}\n", args.output.display(), checkpoint.display()))?;
    Ok(ExitCode::SUCCESS)
}
