//! `minrnn export`: a trained model in the form of another library.

use std::path::{Path, PathBuf};
use std::process::ExitCode;

use minrnn::Error;
use minrnn::deployed::Deployed;
use minrnn::interchange::{Form, Format, export, export_folder};
use minrnn::train::find_checkpoint;
use minrnn_model::{CONFIG_FILE, ModelConfig, Weights, read_checkpoint, write_atomic, write_safetensors};
use minrnn_onnx::{Attached, OPSET, step_graph};
use minrnn_stream::PackedModel;
use serde::Deserialize;
use serde_json::{Map, Value};

use crate::failure::WrongInput;
use crate::formats::{IMPORTED, ONNX, exported_format};
use crate::output::{expect_harmless, expect_outside_runs, print};

#[derive(clap::Args)]
pub struct Args {
    /// Run directory, whose best checkpoint is taken, a checkpoint, or a packed model of f32 weights
    run: PathBuf,
    /// Whose form the model is to have: another library's, or onnx, one step as a graph
    #[arg(long, value_name = "FORMAT", value_parser = exported_format())]
    format: String,
    /// What to write: a file; of mamba-hf and xlstm a folder with all that the library opens, unless the name ends in .safetensors
    #[arg(short, long, value_name = "FILE|DIR")]
    output: PathBuf,
}

/// A trained model and where it was found.
struct Source {
    path: PathBuf,
    config: ModelConfig,
    weights: Weights,
    sections: Map<String, Value>,
}

pub fn run(args: Args) -> anyhow::Result<ExitCode> {
    if args.format == ONNX {
        return graph(&args);
    }
    let format: Format = args.format.parse()?;
    if format.has_folder() && args.output.extension().is_none_or(|end| end != "safetensors") {
        return folder(&args, format);
    }
    expect_harmless(&args.output, [args.run.as_path()])?;
    let Source { path, config, mut weights, sections } = Source::read(&args.run)?;
    let tensors = export(format, &mut weights, &config, form(&sections, format, &path)?)?;
    let count = tensors.len();
    let tensors = tensors.into_iter().map(|(name, tensor)| (name, tensor.shape, tensor.data.into()));
    // The entry that libraries on PyTorch look for.
    write_safetensors(&args.output, tensors, Some(("format", "pt"))).map_err(Error::from)?;
    print(format_args!("{}: {count} tensors of format {format} from {}\n", args.output.display(), path.display()))?;
    Ok(ExitCode::SUCCESS)
}

/// All that a library opens.
fn folder(args: &Args, format: Format) -> anyhow::Result<ExitCode> {
    let shown = args.output.display();
    if args.output.exists() {
        return Err(WrongInput(format!("'{shown}' is there already; name a directory to make with -o")).into());
    }
    expect_outside_runs(&args.output)?;
    let Source { path, config, mut weights, sections } = Source::read(&args.run)?;
    let form = form(&sections, format, &path)?;
    let tokenizer = Deployed::load(&args.run)?.tokenizer;
    let count = export_folder(&args.output, format, &mut weights, &config, form, tokenizer.as_ref())?;
    let vocabulary = if tokenizer.is_some() { "with its vocabulary" } else { "without a vocabulary, as it has none" };
    print(format_args!(
        "{shown}: {count} tensors of format {format} from {}, {vocabulary}; README.md in it says how to open it\n",
        path.display()
    ))?;
    Ok(ExitCode::SUCCESS)
}

/// One step.
fn graph(args: &Args) -> anyhow::Result<ExitCode> {
    expect_harmless(&args.output, [args.run.as_path()])?;
    let deployed = Deployed::load(&args.run)?;
    let Source { path, mut weights, .. } = Source::read(&args.run)?;
    let policy = deployed.policy.as_ref().map(serde_json::to_value).transpose()?;
    let attached = Attached { tokenizer: deployed.tokenizer.as_ref(), task: deployed.table.as_ref(), policy: policy.as_ref() };
    // The runtime knows a policy by its tensors where its configuration does not say so.
    let bytes = step_graph(deployed.model.config(), &mut weights, attached).map_err(Error::from)?;
    write_atomic(&args.output, &bytes).map_err(Error::from)?;
    let (shown, session) = (args.output.display(), deployed.model.session_bytes(0));
    let size = bytes.len() as f64 / 1e6;
    print(format_args!(
        "{shown}: one step of {} as a graph of opset {OPSET}, {size:.2} MB, {session} bytes of state for a session; its metadata say what is kept \
         before the first step\n",
        path.display()
    ))?;
    Ok(ExitCode::SUCCESS)
}

impl Source {
    fn read(run: &Path) -> anyhow::Result<Self> {
        if run.is_file() {
            let (config, weights) = PackedModel::unpack(run).map_err(Error::from)?;
            return Ok(Self { path: run.to_owned(), config, weights, sections: Map::new() });
        }
        let path = find_checkpoint(run)?;
        let (config, weights) = read_checkpoint(&path).map_err(Error::from)?;
        Ok(Self { path, config: config.model, weights, sections: config.sections })
    }
}

/// The form of the file of `format` that the model in `checkpoint` was imported from; the default one when it was not.
fn form(sections: &Map<String, Value>, format: Format, checkpoint: &Path) -> Result<Form, Error> {
    let imported = sections.get(IMPORTED).filter(|imported| imported["format"] == format.name());
    match imported.map(|imported| &imported["form"]).filter(|form| !form.is_null()) {
        None => Ok(Form::default()),
        Some(form) => Form::deserialize(form).map_err(|error| {
            Error::malformed(checkpoint.join(CONFIG_FILE), format!("the form of the imported file cannot be read: {error}"))
        }),
    }
}
