//! `minrnn pack`: a trained model in one file for the inference runtime.

use std::path::PathBuf;

use minrnn::Error;
use minrnn::deployed::{Packed, pack};
use minrnn::memory::of_file;
use minrnn::words::plural;
use minrnn_model::WeightFormat;

use crate::exit::ExitCode;
use crate::memory::MemoryArg;
use crate::output::print;
use crate::session_size::session_size;
use crate::shell;

#[derive(clap::Args)]
pub struct Args {
    /// Run directory (its best checkpoint is taken), checkpoint directory, or packed model to round further
    run: PathBuf,
    /// How matrices are stored: f32, bf16, int8 (a scale for each row), int4 (a scale for each group of 32)
    #[arg(long, value_name = "FORMAT", default_value = "bf16", value_parser = ["f32", "bf16", "int8", "int4"])]
    weights: String,
    /// The file to write
    #[arg(short, long, value_name = "FILE", default_value = "model.minrnn")]
    output: PathBuf,
    #[command(flatten)]
    memory: MemoryArg,
}

pub fn run(args: Args) -> anyhow::Result<ExitCode> {
    let format: WeightFormat = args.weights.parse().map_err(minrnn_model::Error::from).map_err(Error::from)?;
    let Packed { from, mixers, tensors, bytes, deployed } = pack(&args.run, &args.output, format, args.memory.given())?;
    let mut text = format!("{}: {} from {}\n", args.output.display(), mixers, from.display());
    for format in WeightFormat::ALL.iter().copied() {
        let of_format: Vec<_> = tensors.iter().filter(|tensor| tensor.format == format).collect();
        if !of_format.is_empty() {
            let bytes: usize = of_format.iter().map(|tensor| tensor.bytes).sum();
            let n = of_format.len();
            text += &format!("  {n:>3} {} as {format}: {}\n", plural(&n, "tensor"), of_file(bytes as u64));
        }
    }
    text += &format!("  the whole file: {}\n", of_file(bytes));
    text += &format!("  one more session: {}\n", session_size(&deployed.model, deployed.table.as_ref()));
    let output = shell::quoted(&args.output);
    text += &match (&deployed.tokenizer, &deployed.table) {
        (Some(_), _) => format!("next: minrnn generate {output} --prompt TEXT\n"),
        (None, Some(_)) => format!("next: minrnn predict {output} --data TABLE\n"),
        (None, None) if deployed.policy.is_some() => format!("next: minrnn rollout {output}\n"),
        (None, None) => "it was trained on neither a text nor a table; run it with the library minrnn-stream\n".to_owned(),
    };
    print(text)?;
    Ok(ExitCode::SUCCESS)
}
