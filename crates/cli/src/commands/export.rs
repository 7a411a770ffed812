//! `minrnn export`: a trained model's weights under the names of another library.

use std::path::PathBuf;
use std::process::ExitCode;

use minrnn::Error;
use minrnn::interchange::{Form, Format, export};
use minrnn::train::find_checkpoint;
use minrnn_model::{CONFIG_FILE, read_checkpoint, write_safetensors};
use minrnn_stream::PackedModel;
use serde::Deserialize;
use serde_json::{Map, Value};

use crate::formats::{IMPORTED, format_parser};
use crate::output::{expect_harmless, print};

#[derive(clap::Args)]
pub struct Args {
    /// Run directory, whose best checkpoint is taken, a checkpoint, or a packed model of f32 weights
    run: PathBuf,
    /// Whose names the weights are to have
    #[arg(long, value_name = "FORMAT", value_parser = format_parser())]
    format: String,
    /// The safetensors file to write
    #[arg(short, long, value_name = "FILE")]
    output: PathBuf,
}

pub fn run(args: Args) -> anyhow::Result<ExitCode> {
    expect_harmless(&args.output, [args.run.as_path()])?;
    let format: Format = args.format.parse()?;
    let (source, model, mut weights, form) = if args.run.is_file() {
        let (model, weights) = PackedModel::unpack(&args.run).map_err(Error::from)?;
        (args.run.clone(), model, weights, Form::default())
    } else {
        let checkpoint = find_checkpoint(&args.run)?;
        let (config, weights) = read_checkpoint(&checkpoint).map_err(Error::from)?;
        let form = form(&config.sections, format).map_err(|problem| Error::malformed(checkpoint.join(CONFIG_FILE), problem))?;
        (checkpoint, config.model, weights, form)
    };
    let tensors = export(format, &mut weights, &model, form)?;
    let count = tensors.len();
    let tensors = tensors.into_iter().map(|(name, tensor)| (name, tensor.shape, tensor.data.into()));
    // The entry that libraries on PyTorch look for.
    write_safetensors(&args.output, tensors, Some(("format", "pt"))).map_err(Error::from)?;
    print(format_args!("{}: {count} tensors of format {format} from {}\n", args.output.display(), source.display()))?;
    Ok(ExitCode::SUCCESS)
}

/// The form of the file of `format` that the model was imported from; the default one when it was not.
fn form(sections: &Map<String, Value>, format: Format) -> Result<Form, String> {
    let imported = sections.get(IMPORTED).filter(|imported| imported["format"] == format.name());
    match imported.map(|imported| &imported["form"]).filter(|form| !form.is_null()) {
        None => Ok(Form::default()),
        Some(form) => Form::deserialize(form).map_err(|error| format!("the form of the imported file cannot be read: {error}")),
    }
}
