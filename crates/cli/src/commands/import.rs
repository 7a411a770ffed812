//! `minrnn import`: a checkpoint of weights under the names of another library.

use std::path::{Path, PathBuf};
use std::process::ExitCode;

use burn::tensor::Device;
use minrnn::Error;
use minrnn::checkpoint::{TOKENIZER_FILE, create_checkpoint, parameter_count};
use minrnn::data::Tokenizer;
use minrnn::interchange::{ForeignModel, Form, Format, NamedTensor, Settings, import};
use minrnn::train::find_checkpoint;
use minrnn_model::{CheckpointConfig, Weights, read_checkpoint};

use crate::failure::WrongInput;
use crate::formats::{IMPORTED, imported_format};
use crate::output::{expect_outside_runs, print};

#[derive(clap::Args)]
pub struct Args {
    /// The weights: a safetensors file, the index of several, or a folder with either
    #[arg(value_name = "FILE|DIR")]
    file: PathBuf,
    /// Whose names they have
    #[arg(long, value_name = "FORMAT", value_parser = imported_format())]
    format: String,
    /// A key of the model's configuration that the file does not say, such as n_heads=4; may be repeated
    #[arg(long = "set", value_name = "KEY=VALUE")]
    settings: Vec<String>,
    /// The vocabulary, a tokenizer.json as checkpoints have it, where the model reads text
    #[arg(long, value_name = "FILE")]
    tokenizer: Option<PathBuf>,
    /// The model whose recurrent layers are replaced, for files that hold those alone: a run or a checkpoint
    #[arg(long, value_name = "RUN")]
    into: Option<PathBuf>,
    /// The checkpoint directory to make
    #[arg(short, long, value_name = "DIR")]
    output: PathBuf,
}

pub fn run(args: Args) -> anyhow::Result<ExitCode> {
    if args.output.exists() {
        return Err(WrongInput(format!("'{}' is there already; name a directory to make with -o", args.output.display())).into());
    }
    expect_outside_runs(&args.output)?;
    let format: Format = args.format.parse()?;
    let mut model = ForeignModel::read(&args.file)?;
    let form = Form::of(&model.weights);
    let (mut config, tensors, beside) = match (&args.into, format.is_part()) {
        (None, false) => {
            let config = model.config(format, &Settings::parse(&args.settings)?)?;
            let tensors = import(format, &mut model.weights, &config)?;
            (CheckpointConfig::new(config), tensors, None)
        }
        (Some(run), true) => replace_mixers(format, &mut model.weights, run, &args.settings)?,
        (None, true) => {
            let problem = format!("a file of format {format} holds recurrent layers alone; name the model they go into with --into RUN");
            return Err(WrongInput(problem).into());
        }
        (Some(_), false) => {
            return Err(WrongInput(format!("a file of format {format} holds a whole model; leave --into out")).into());
        }
    };
    let file = args.file.canonicalize().unwrap_or(args.file);
    let file = file.file_name().map(|name| name.to_string_lossy());
    let source = serde_json::json!({"format": format.name(), "file": file, "form": form});
    config.sections.insert(IMPORTED.to_owned(), source);
    let given = args.tokenizer.or(beside).map(Tokenizer::load).transpose().map_err(Error::from)?;
    let (tokenizer, unused) = match given {
        None if config.model.is_language_model() => of_folder(model.tokenizer.as_deref(), config.model.vocab_size),
        given => (given, None),
    };
    let loaded = create_checkpoint(&args.output, &config, tensors, tokenizer.as_ref(), &Device::flex())?;

    let shown = args.output.display();
    let (model, parameters) = (&loaded.config.model, parameter_count(&loaded.model));
    let mut text =
        format!("{shown}: {}, {} blocks of width {}, {parameters} parameters\n", model.mixer_at(0), model.n_layers, model.d_model);
    text += &unused.map(|why| format!("its tokenizer.json is left out: {why}\n")).unwrap_or_default();
    text += &match loaded.tokenizer {
        Some(_) => format!("next: minrnn generate {shown} --prompt TEXT\n"),
        None => "it has no vocabulary and reads no text; one is added with --tokenizer FILE\n".to_owned(),
    };
    print(text)?;
    Ok(ExitCode::SUCCESS)
}

/// The vocabulary that lies in the folder of a model that knows `most` tokens, or why there is none: other libraries have kinds that we have not.
fn of_folder(file: Option<&Path>, most: usize) -> (Option<Tokenizer>, Option<String>) {
    match file.map(Tokenizer::load) {
        None => (None, None),
        Some(Ok(tokenizer)) if tokenizer.vocab_size() > most => {
            let problem = format!("it has {} tokens, but the model knows {most}", tokenizer.vocab_size());
            (None, Some(problem))
        }
        Some(Ok(tokenizer)) => (Some(tokenizer), None),
        Some(Err(why)) => (None, Some(why.to_string())),
    }
}

/// The checkpoint of `run` with the recurrent layers of a file, and where its vocabulary is.
fn replace_mixers(
    format: Format,
    weights: &mut Weights,
    run: &Path,
    settings: &[String],
) -> anyhow::Result<(CheckpointConfig, Vec<NamedTensor>, Option<PathBuf>)> {
    if let Some(setting) = settings.first() {
        return Err(WrongInput(format!("with --into the configuration is that of the run; leave --set {setting} out")).into());
    }
    let checkpoint = find_checkpoint(run)?;
    let (config, mut rest) = read_checkpoint(&checkpoint).map_err(Error::from)?;
    let mut tensors = import(format, weights, &config.model)?;
    for (name, tensor) in &tensors {
        rest.take(name, &tensor.shape).map_err(Error::from)?;
    }
    let names: Vec<String> = rest.names().map(ToOwned::to_owned).collect();
    for name in names {
        let tensor = rest.take_any(&name).map_err(Error::from)?;
        tensors.push((name, tensor));
    }
    Ok((config, tensors, Some(checkpoint.join(TOKENIZER_FILE)).filter(|file| file.exists())))
}
