//! `minrnn pack`: a trained model in one file for the inference runtime.

use std::path::PathBuf;
use std::process::ExitCode;

use anyhow::Context;
use minrnn::Error;
use minrnn::checkpoint::{policy_of, surprise_of, table_task_of, tokenizer_of};
use minrnn::deployed::Deployed;
use minrnn::memory::packing;
use minrnn::train::find_checkpoint;
use minrnn_model::{CheckpointFiles, Section, TensorEntry, WEIGHTS_FILE, WeightFormat, read_checkpoint};
use minrnn_stream::PackedModel;

use crate::memory::MemoryArg;
use crate::output::{expect_harmless, print};
use crate::session_size::session_size;

#[derive(clap::Args)]
pub struct Args {
    /// Run directory, whose best checkpoint is taken, a checkpoint, or a packed model, which is rounded further
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
    let (from, tensors) = if args.run.is_file() { repacked(&args, format)? } else { packed(&args, format)? };

    let size = std::fs::metadata(&args.output).with_context(|| format!("could not read '{}'", args.output.display()))?.len();
    let made = Deployed::load(&args.output)?;
    let mut text = format!("{}: {} from {}\n", args.output.display(), made.model.config().mixer, from.display());
    for format in WeightFormat::ALL.iter().copied() {
        let of_format: Vec<_> = tensors.iter().filter(|tensor| tensor.format == format).collect();
        if !of_format.is_empty() {
            let bytes: usize = of_format.iter().map(|tensor| tensor.bytes).sum();
            text += &format!("  {:>3} tensors as {format}: {:.2} MB\n", of_format.len(), bytes as f64 / 1e6);
        }
    }
    text += &format!("  the whole file: {:.2} MB\n", size as f64 / 1e6);
    text += &format!("  one more session: {}\n", session_size(&made.model, made.table.as_ref()));
    let output = args.output.display();
    text += &match (made.tokenizer, made.table) {
        (Some(_), _) => format!("next: minrnn generate {output} --prompt TEXT\n"),
        (None, Some(_)) => format!("next: minrnn predict {output} --data TABLE\n"),
        (None, None) if made.policy.is_some() => format!("next: minrnn rollout {output}\n"),
        (None, None) => "it was trained on neither a text nor a table; run it with the library minrnn-stream\n".to_owned(),
    };
    print(text)?;
    Ok(ExitCode::SUCCESS)
}

/// The best checkpoint of a run, or a checkpoint, as a packed file: where it was, and the tensors of the file.
fn packed(args: &Args, format: WeightFormat) -> anyhow::Result<(PathBuf, Vec<TensorEntry>)> {
    expect_harmless(&args.output, [])?;
    let checkpoint = find_checkpoint(&args.run)?;
    let weights_bytes = std::fs::metadata(checkpoint.join(WEIGHTS_FILE)).map_or(0, |file| file.len());
    packing(weights_bytes, format).expect_room(args.memory.given())?;
    let (config, mut weights) = read_checkpoint(&checkpoint).map_err(Error::from)?;
    // A vocabulary or a task that cannot be read is refused now, not by whoever gets the file.
    let files = CheckpointFiles::open(&checkpoint).map_err(Error::from)?;
    let tokenizer = tokenizer_of(&files)?.map(|(_, bytes)| bytes);
    let table = table_task_of(&files, &config.model)?.map(|(_, bytes)| bytes);
    let policy = config.model.decision.then(|| policy_of(&files, &config.model)).transpose()?.map(|(_, bytes)| bytes);
    let surprise = surprise_of(&files)?.map(|(_, bytes)| bytes);
    let of_text = [tokenizer.as_deref().map(Section::tokenizer), table.as_deref().map(Section::table)];
    let of_others = [policy.as_deref().map(Section::policy), surprise.as_deref().map(Section::surprise)];
    let sections: Vec<Section<'_>> = of_text.into_iter().chain(of_others).flatten().collect();
    let tensors = PackedModel::write(&args.output, &config.model, &mut weights, format, &sections).map_err(Error::from)?;
    Ok((checkpoint, tensors))
}

/// A packed file once more, its matrices rounded further.
fn repacked(args: &Args, format: WeightFormat) -> anyhow::Result<(PathBuf, Vec<TensorEntry>)> {
    expect_harmless(&args.output, [args.run.as_path()])?;
    // A vocabulary or a task that cannot be read is refused here as well.
    Deployed::load(&args.run)?;
    let file_bytes = std::fs::metadata(&args.run).map_or(0, |file| file.len());
    packing(file_bytes, format).expect_room(args.memory.given())?;
    let tensors = PackedModel::repack(&args.run, &args.output, format).map_err(Error::from)?;
    Ok((args.run.clone(), tensors))
}
