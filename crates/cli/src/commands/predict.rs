//! `minrnn predict`: the classes of sequences in a table, or what comes after them.

use std::path::{Path, PathBuf};
use std::sync::atomic::AtomicBool;

use minrnn::checkpoint::{LoadedModel, load_model, load_table_task};
use minrnn::data::table::{Prediction, Series, TableSource, TableTask, notes, read_series_from};
use minrnn::deployed::{self, Deployed, InsideInputs};
use minrnn::memory::Estimate;
use minrnn::output::{expect_harmless, expect_writable, is_same_place};
use minrnn::predict::{predict, prediction_memory};
use minrnn::train::find_checkpoint;
use minrnn_model::{ModelConfig, write_atomic};
use minrnn_serve::Accept;

use crate::device::DeviceArg;
use crate::exit::ExitCode;
use crate::failure::{FAILED, WrongInput};
use crate::inside::InsideArgs;
use crate::memory::MemoryArg;
use crate::predicted::Predicted;
use crate::say::say;
use crate::threads::Threads;
use crate::{input, inside, interrupt, output};

#[derive(clap::Args)]
pub struct Args {
    /// Run directory (its best checkpoint is taken), checkpoint directory or packed model, trained with --task classify, regress or forecast
    #[arg(value_name = "RUN|FILE")]
    run: PathBuf,
    /// The table with the sequences (CSV, Parquet, Arrow, JSON Lines or .ts), with the columns that were trained on; - for standard input
    #[arg(long, value_name = "FILE")]
    data: PathBuf,
    /// The rows to come of every sequence, with the columns that are known ahead, for a model trained with --known-ahead
    #[arg(long, value_name = "FILE")]
    future: Option<PathBuf>,
    /// Write the predictions to this CSV file [default: to stdout]
    #[arg(long, value_name = "FILE")]
    out: Option<PathBuf>,
    #[command(flatten)]
    inside: InsideArgs,
    #[command(flatten)]
    device: DeviceArg,
    #[command(flatten)]
    threads: Threads,
    #[command(flatten)]
    memory: MemoryArg,
}

pub fn run(args: Args) -> anyhow::Result<ExitCode> {
    let stop = interrupt::stop_flag()?;
    args.threads.install(|| write_predictions(&args, &stop))
}

fn write_predictions(args: &Args, stop: &AtomicBool) -> anyhow::Result<ExitCode> {
    if let Some(out) = &args.out {
        let read = [input::path(&args.data), args.run.clone()];
        expect_harmless(out, read.iter().map(PathBuf::as_path).chain(args.future.as_deref()))?;
        expect_writable(out)?;
    }
    let model = Predictor::load(args)?;
    let Some(task) = model.task() else {
        let sentence = "the model was not trained on a table; give a run of minrnn train --task classify, regress or forecast";
        return Err(WrongInput(format!("'{}': {sentence}", args.run.display())).into());
    };
    let mut read = vec![input::path(&args.data), args.run.clone()];
    read.extend(args.future.clone());
    let read: Vec<&Path> = read.iter().map(PathBuf::as_path).collect();
    let files = args.inside.files(model.config(), &read)?;
    if let Some(out) = args.out.as_deref().filter(|out| files.paths().any(|path| is_same_place(path, out))) {
        let sentence = "the predictions and what the model has inside are both to be written there; give each its own file";
        return Err(WrongInput(format!("'{}': {sentence}", out.display())).into());
    }
    let stopped = || {
        say("stopped before everything was predicted");
        Ok(ExitCode::from(FAILED))
    };
    let (reads, data, future) = (task.clone(), input::path(&args.data), args.future.clone());
    let read = move || read_series_from(&reads, TableSource::File(&data), future.as_deref().map(TableSource::File));
    let Some((series, unseen)) = interrupt::unless_stopped(stop, read).transpose()? else { return stopped() };
    if args.device.is_cpu()? {
        model.memory(task, &series)?.expect_room(args.memory.given())?;
    }
    let Some(predictions) = model.predict(task, &series, stop)? else { return stopped() };
    notes(task, &series, &unseen).iter().for_each(say);
    let Some(table) = Predicted::of(task, &series, &predictions).written(Accept::Csv, stop) else { return stopped() };
    match &args.out {
        Some(path) => {
            write_atomic(path, table.as_bytes()).map_err(minrnn::Error::from)?;
            say(format_args!("predictions for {} sequences: {}", series.len(), path.display()));
        }
        None => output::print(table)?,
    }
    if args.inside.is_any() {
        let loaded;
        let deployed = match &model {
            Predictor::Packed(deployed) => deployed,
            Predictor::Trained(_) => {
                loaded = Deployed::load(&args.run)?;
                &loaded
            }
        };
        if !inside::write(deployed, InsideInputs::Table(task, &series), &files, stop)? {
            return stopped();
        }
    }
    Ok(ExitCode::SUCCESS)
}

/// What predicts.
enum Predictor {
    /// The runtime, of a packed model.
    Packed(Box<Deployed>),
    /// The model as it was trained, on any device.
    Trained(Box<(LoadedModel, Option<TableTask>)>),
}

impl Predictor {
    fn load(args: &Args) -> anyhow::Result<Self> {
        if !args.run.is_file() {
            let checkpoint = find_checkpoint(&args.run)?;
            let loaded = load_model(&checkpoint, &args.device.open()?)?;
            let task = load_table_task(&checkpoint, &loaded.config.model)?;
            return Ok(Self::Trained(Box::new((loaded, task))));
        }
        args.device.expect_cpu()?;
        Ok(Self::Packed(Box::new(Deployed::load(&args.run)?)))
    }

    fn task(&self) -> Option<&TableTask> {
        match self {
            Self::Packed(deployed) => deployed.table.as_ref(),
            Self::Trained(trained) => trained.1.as_ref(),
        }
    }

    fn config(&self) -> &ModelConfig {
        match self {
            Self::Packed(deployed) => deployed.model.config(),
            Self::Trained(trained) => &trained.0.config.model,
        }
    }

    fn memory(&self, task: &TableTask, series: &[Series]) -> minrnn::Result<Estimate> {
        match self {
            Self::Packed(deployed) => deployed::prediction_memory(deployed.model.config(), task, series),
            Self::Trained(trained) => prediction_memory(&trained.0.config.model, task, series),
        }
    }

    fn predict(&self, task: &TableTask, series: &[Series], stop: &AtomicBool) -> minrnn::Result<Option<Vec<Prediction>>> {
        match self {
            Self::Packed(deployed) => deployed::predict(&deployed.model, task, series, stop),
            Self::Trained(trained) => predict(&trained.0.model, task, series, stop),
        }
    }
}
