//! `minrnn import`: a checkpoint of weights under the names of another library.

use std::path::PathBuf;

use minrnn::checkpoint::{load_table_task, parameter_count};
use minrnn::transfer::{Import, Imported};
use minrnn::words::counted;

use crate::exit::ExitCode;
use crate::formats::imported_format;
use crate::output::print;
use crate::shell;

#[derive(clap::Args)]
pub struct Args {
    /// The weights: a safetensors file, the index of several, or a folder with either
    #[arg(value_name = "FILE|DIR")]
    file: PathBuf,
    /// The library whose tensor names they use
    #[arg(long, value_name = "FORMAT", value_parser = imported_format())]
    format: String,
    /// A key of the model's configuration that is not in the file, such as n_heads=4; may be repeated
    #[arg(long = "set", value_name = "KEY=VALUE")]
    settings: Vec<String>,
    /// The vocabulary of a model that reads text: a tokenizer.json as in checkpoints
    #[arg(long, value_name = "FILE")]
    tokenizer: Option<PathBuf>,
    /// A run or checkpoint whose recurrent layers to replace, for files that hold only those
    #[arg(long, value_name = "RUN")]
    into: Option<PathBuf>,
    /// The checkpoint directory to write
    #[arg(short, long, value_name = "DIR")]
    output: PathBuf,
}

pub fn run(args: Args) -> anyhow::Result<ExitCode> {
    let (format, output) = (args.format.parse()?, args.output);
    let import = Import { file: args.file, format, settings: args.settings, tokenizer: args.tokenizer, into: args.into };
    let Imported { loaded, unused } = import.write(&output)?;

    let (model, parameters) = (&loaded.config.model, counted(parameter_count(&loaded.model), "parameter"));
    let (mixer, blocks) = (model.mixer_at(0), counted(model.n_layers, "block"));
    let mut text = format!("{}: {mixer}, {blocks} of width {}, {parameters}\n", output.display(), model.d_model);
    let shown = shell::quoted(&output);
    text += &unused.map(|why| format!("its tokenizer.json is left out: {why}\n")).unwrap_or_default();
    text += &if loaded.tokenizer.is_some() {
        format!("next: minrnn generate {shown} --prompt TEXT\n")
    } else if model.decision {
        format!("next: minrnn rollout {shown}\n")
    } else if load_table_task(&output, model)?.is_some() {
        format!("next: minrnn predict {shown} --data FILE\n")
    } else if model.is_language_model() {
        "it has no vocabulary, so it reads no text; add one with --tokenizer FILE\n".to_owned()
    } else {
        String::new()
    };
    print(text)?;
    Ok(ExitCode::SUCCESS)
}
