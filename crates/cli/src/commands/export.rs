//! `minrnn export`: a trained model in the form of another library.

use std::path::PathBuf;

use minrnn::interchange::Format;
use minrnn::memory::of_file;
use minrnn::transfer::{Exported, export_model};
use minrnn::words::counted;
use minrnn_onnx::OPSET;

use crate::exit::ExitCode;
use crate::formats::{ONNX, exported_format};
use crate::graph::{WrittenGraph, write_graph};
use crate::output::print;

#[derive(clap::Args)]
pub struct Args {
    /// Run directory (its best checkpoint is taken), checkpoint directory, or packed model with f32 weights
    run: PathBuf,
    /// The format to write: another library's, or onnx (one step as a graph)
    #[arg(long, value_name = "FORMAT", value_parser = exported_format())]
    format: String,
    /// The file to write; for mamba-hf and xlstm a folder that the library opens, unless the name ends in .safetensors
    #[arg(short, long, value_name = "FILE|DIR")]
    output: PathBuf,
}

pub fn run(args: Args) -> anyhow::Result<ExitCode> {
    if args.format == ONNX {
        return graph(&args);
    }
    let format: Format = args.format.parse()?;
    let shown = args.output.display();
    let Exported { path, tensors, vocabulary } = export_model(&args.run, format, &args.output)?;
    let told = format!("{shown}: {} of format {format} from {}", counted(tensors, "tensor"), path.display());
    let vocabulary = match vocabulary {
        None => "",
        Some(true) => ", with its vocabulary; README.md in it says how to open it",
        Some(false) => ", without a vocabulary, as it has none; README.md in it says how to open it",
    };
    print(format_args!("{told}{vocabulary}\n"))?;
    Ok(ExitCode::SUCCESS)
}

/// Writes one step as a graph.
fn graph(args: &Args) -> anyhow::Result<ExitCode> {
    let WrittenGraph { path, bytes, session_bytes: session } = write_graph(&args.run, &args.output)?;
    let shown = args.output.display();
    let size = of_file(bytes as u64);
    print(format_args!(
        "{shown}: one step of {} as a graph of opset {OPSET}, {size}, {session} bytes of state for a session; its metadata say what is kept \
         before the first step\n",
        path.display()
    ))?;
    Ok(ExitCode::SUCCESS)
}
