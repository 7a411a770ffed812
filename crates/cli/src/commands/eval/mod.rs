//! `minrnn eval`: the measures of a trained model on its test data, or on a text of yours.

mod backtest;
mod by_frequency;
mod by_length;
mod tokens;

use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::sync::atomic::AtomicBool;

use anyhow::Context;
use minrnn::checkpoint::{LoadedModel, load_any_model, load_table_task};
use minrnn::data::table::{Comparison, TableTask, left_out, read_series};
use minrnn::data::{EvaluationSet, FixedBatches, RandomWindows, SequenceTask, TextPart, Tokenizer, expect_lasting};
use minrnn::deployed::{self, Deployed, InsideFiles, InsideInputs, Score};
use minrnn::model::AnyModel;
use minrnn::numbers::significant;
use minrnn::predict::predict;
use minrnn::rng::Purpose;
use minrnn::train::{
    Data, Evaluation, Experiment, FINAL_BATCHES, Group, TextSize, compare, evaluation_memory, find_checkpoint, find_scored, full_pass,
    run_of,
};
use minrnn::words::counted;
use minrnn_model::ModelConfig;

use crate::device::DeviceArg;
use crate::exit::ExitCode;
use crate::failure::{FAILED, NO_STDOUT, WrongInput};
use crate::inside::InsideArgs;
use crate::memory::MemoryArg;
use crate::ranks::Together;
use crate::say::say;
use crate::text_table::confusion_table;
use crate::threads::Threads;
use crate::{input, inside, interrupt, ranks};

/// Sequences of a table that a packed model reads side by side.
const BATCH_SIZE: usize = 32;

#[derive(clap::Args)]
pub struct Args {
    /// Run directory (its best checkpoint is taken), checkpoint directory, or packed model (with --data)
    #[arg(value_name = "RUN|FILE")]
    run: PathBuf,
    /// Score this text or table, all of it, instead of the run's test part; - for standard input
    #[arg(long, value_name = "FILE")]
    data: Option<PathBuf>,
    /// Number of fixed random batches of a text or a task's own data; a packed model makes none [default: 200]
    #[arg(long, value_name = "N", allow_negative_numbers = true, value_parser = clap::value_parser!(u64).range(1..))]
    batches: Option<u64>,
    /// Top-1 agreement with this model: a run, a checkpoint or a packed model (for a packed model of text)
    #[arg(long, value_name = "RUN|FILE", requires = "data")]
    against: Option<PathBuf>,
    /// Loss and accuracy by how often the token occurs in the training text, in this many bins of equal width in its logarithm
    #[arg(
        long, value_name = "BINS", allow_negative_numbers = true, num_args = 0..=1, default_missing_value = "6",
        conflicts_with_all = ["data", "batches", "by_length", "against", "logits", "hidden", "layer", "embeddings"], value_parser = clap::value_parser!(u32).range(1..=100)
    )]
    by_frequency: Option<u32>,
    #[command(flatten)]
    by_length: by_length::Args,
    #[command(flatten)]
    backtest: backtest::Args,
    #[command(flatten)]
    inside: InsideArgs,
    #[command(flatten)]
    device: DeviceArg,
    #[command(flatten)]
    threads: Threads,
    #[command(flatten)]
    memory: MemoryArg,
    /// One JSON object per line
    #[arg(long)]
    json: bool,
}

impl Args {
    fn batches(&self) -> u64 {
        self.batches.unwrap_or(FINAL_BATCHES)
    }

    /// Refuses a number of batches for a table.
    fn expect_no_batches(&self) -> anyhow::Result<()> {
        match self.batches {
            Some(_) => Err(WrongInput("--batches is about random batches, and a table is scored whole; leave it out".to_owned()).into()),
            None => Ok(()),
        }
    }
}

pub fn run(args: Args) -> anyhow::Result<ExitCode> {
    ranks::together(|Together { group, threads, .. }| {
        let stop = interrupt::stop_flag()?;
        args.threads.install_or(*threads, || score(&args, group, &stop))
    })
}

fn score(args: &Args, group: &Group, stop: &AtomicBool) -> anyhow::Result<ExitCode> {
    ranks::agree(group, if group.is_alone() { Ok(()) } else { expect_shareable(args) })?;
    if let Some(origins) = args.backtest.origins() {
        return backtest::score(args, origins, stop);
    }
    if args.run.is_file() {
        if args.by_frequency.is_some() || args.by_length.width().is_some() {
            let sentence = "--by-frequency and --by-length need the data of a run; give a run directory instead of a packed model";
            return Err(WrongInput(sentence.to_owned()).into());
        }
        args.device.expect_cpu()?;
        return score_packed(args, stop);
    }
    if args.against.is_some() {
        return Err(
            WrongInput("--against compares a packed model of text with another; give one to score, or leave it out".to_owned()).into()
        );
    }
    let loaded = ranks::agree(group, Loaded::new(args))?;
    let Loaded { checkpoint, model, experiment, .. } = &loaded;
    let inside = wanted_inside(args, &experiment.model)?;
    if let Some(width) = args.by_length.width() {
        let scores = by_length::Strings::new(experiment, &args.by_length)?;
        print_model(checkpoint, args.json)?;
        return scores.score(model.sequence()?, width, args.json, stop);
    }
    if let Some(n_bins) = args.by_frequency {
        let Data::Text { text, .. } = Data::open(experiment, &run_of(checkpoint)?)? else {
            let sentence = "--by-frequency needs a model trained on a text, whose tokens are rare or frequent; leave it out";
            return Err(WrongInput(sentence.to_owned()).into());
        };
        print_model(checkpoint, args.json)?;
        return by_frequency::score(model.sequence()?, &text, experiment, n_bins as usize, args.json, stop);
    }
    // The folder holds the tokens of `--data` until the scores are out.
    let folder = tempfile::tempdir().context("could not create a temporary directory")?;
    let found = ranks::agree(group, loaded.sets(args, folder.path(), stop))?;
    if group.agree_all(Ok(found.is_none()))?.contains(&true) {
        return Ok(stopped());
    }
    let Some(Sets { sets, size, mut comparison, told }) = found else { return Ok(stopped()) };
    if group.is_first() {
        print_model(checkpoint, args.json)?;
        if let Some(data) = &args.data {
            loaded.tell_what_is_learned(data);
        }
        told.iter().for_each(say);
    }
    for (name, mut set) in sets {
        let Some(evaluation) = compare(group, model, &mut *set, comparison.as_deref_mut(), stop)? else { return Ok(stopped()) };
        let checked = loaded.expect_finite(args, name, &evaluation, stop);
        ranks::agree(group, checked)?;
        if group.is_first() {
            print(name, &evaluation, size, args.json).context(NO_STDOUT)?;
        }
    }
    if let Some(comparison) = comparison.filter(|_| group.is_first()) {
        print_comparison(&*comparison, args.json).context(NO_STDOUT)?;
    }
    match inside {
        Some(inside) => inside.write(&Deployed::load(&args.run)?, None, stop),
        None => Ok(ExitCode::SUCCESS),
    }
}

/// Refuses what one process does alone.
fn expect_shareable(args: &Args) -> anyhow::Result<()> {
    let is_shared = !(args.inside.is_any() || args.run.is_file() || args.by_frequency.is_some() || args.by_length.width().is_some());
    if is_shared && args.backtest.origins().is_none() && args.data.as_deref() != Some(Path::new("-")) {
        return Ok(());
    }
    let sentence =
        "only the scores of a run or a checkpoint on its data or a file are shared out among processes; start this without mpiexec";
    Err(WrongInput(sentence.to_owned()).into())
}

/// A trained model, and what it was trained on.
struct Loaded {
    checkpoint: PathBuf,
    experiment: Experiment,
    model: AnyModel,
    tokenizer: Option<Tokenizer>,
    table_task: Option<TableTask>,
}

/// What is scored.
struct Sets {
    sets: Vec<(&'static str, Box<dyn EvaluationSet>)>,
    /// Of a text.
    size: Option<TextSize>,
    comparison: Option<Box<dyn Comparison>>,
    /// What is said of the table before it is scored.
    told: Vec<String>,
}

impl Loaded {
    fn new(args: &Args) -> anyhow::Result<Self> {
        // What has learned from the run's own test part is not scored on it.
        let checkpoint = if args.data.is_some() { find_checkpoint(&args.run)? } else { find_scored(&args.run)? };
        let LoadedModel { config, model, tokenizer } = load_any_model(&checkpoint, &args.device.open()?)?;
        let experiment = Experiment::of_checkpoint(&config, &checkpoint)?;
        let table_task = load_table_task(&checkpoint, &config.model)?;
        table_task.as_ref().map_or(Ok(()), |_| args.expect_no_batches())?;
        let loaded = Self { checkpoint, experiment, model, tokenizer, table_task };
        loaded.expect_room(args, None)?;
        Ok(loaded)
    }

    fn expect_room(&self, args: &Args, longest: Option<usize>) -> anyhow::Result<()> {
        if args.device.is_cpu()? {
            evaluation_memory(&self.experiment, longest)?.expect_room(args.memory.given())?;
        }
        Ok(())
    }

    /// What is to be scored, with the tokens of a text in `folder`; `None` when `stop` was raised.
    fn sets(&self, args: &Args, folder: &Path, stop: &AtomicBool) -> anyhow::Result<Option<Sets>> {
        let of_task = |name, data: &Data, told| -> anyhow::Result<Option<Sets>> {
            self.expect_room(args, data.longest())?;
            let set = data.fixed_batches(&self.experiment, args.batches(), Purpose::TestData)?;
            Ok(Some(Sets { sets: vec![(name, set)], size: None, comparison: data.comparison(Purpose::TestData), told }))
        };
        let without_measures = |sets| Sets { sets, size: None, comparison: None, told: Vec::new() };
        let of_text = |part, tokenizer| text_sets(part, tokenizer, &self.experiment, args.batches());
        let data = args.data.as_deref().map(input::path);
        match (data, self.tokenizer.clone()) {
            (Some(path), _) if let Some(task) = self.table_task.clone() => {
                let read = move || Data::unseen_table(&path, &task);
                let Some(data) = interrupt::unless_stopped(stop, read).transpose()? else { return Ok(None) };
                let told = if let Data::Task(task) = &data { told(&**task) } else { Vec::new() };
                of_task("all of the table", &data, told)
            }
            (Some(path), Some(tokenizer)) => {
                let (shown, tokens) = (format!("'{}'", path.display()), folder.to_owned());
                let read = move || Data::test_text(&path, tokenizer, &tokens);
                let Some((part, tokenizer)) = interrupt::unless_stopped(stop, read).transpose()? else { return Ok(None) };
                tokens::expect_two(part.len()).and_then(|()| of_text(part, &tokenizer)).map(Some).context(shown)
            }
            (Some(path), None) if self.experiment.data.task.reads_a_folder() => {
                let mut experiment = self.experiment.clone();
                experiment.data.path = Some(path);
                let data = Data::open(&experiment, folder)?;
                self.expect_room(args, data.longest())?;
                let set = data.fixed_batches(&experiment, args.batches(), Purpose::TestData)?;
                Ok(Some(without_measures(vec![("fixed batches", set)])))
            }
            (Some(_), None) => {
                let sentence = "--data does not fit this model, which was trained on a task and reads no text; leave it out";
                Err(WrongInput(sentence.to_owned()).into())
            }
            (None, _) => match Data::open(&self.experiment, &run_of(&self.checkpoint)?)? {
                Data::Text { text, tokenizer } => of_text(text.test().clone(), &tokenizer).map(Some),
                data @ Data::Task(_) => of_task(if data.has_parts() { "test part" } else { "fixed batches" }, &data, Vec::new()),
            },
        }
    }

    /// Says where `data` is what the model has learned from, as far as the run of its checkpoint tells.
    fn tell_what_is_learned(&self, data: &Path) {
        let data = input::path(data);
        let is_same = || run_of(&self.checkpoint).and_then(|run| Data::is_learned(&run, &data)).unwrap_or(false);
        let of = if input::same_file(Some(&data), self.experiment.data.path.as_deref()) {
            "the file"
        } else if data.is_file() && is_same() {
            "the same as the file"
        } else {
            return;
        };
        say(format_args!("this is {of} that the model has learned from: it says nothing of how well others are predicted"));
    }

    /// Refuses scores of `name` that are no numbers, with the name of the first sequence of a table that is at fault.
    fn expect_finite(&self, args: &Args, name: &str, evaluation: &Evaluation, stop: &AtomicBool) -> anyhow::Result<()> {
        if !evaluation.loss.is_finite()
            && let (Some(task), Some(path)) = (&self.table_task, args.data.as_deref().or(self.experiment.data.path.as_deref()))
            && expect_lasting(path).is_ok()
        {
            predict(self.model.sequence()?, task, &read_series(task, path)?, stop)?;
        }
        Ok(expect_finite(name, evaluation)?)
    }
}

/// The files of what the model has inside, and the data that it reads for them.
struct Inside {
    files: InsideFiles,
    data: PathBuf,
}

/// What is wanted of what the model has inside, checked as far as that goes before anything is read; none where nothing is.
fn wanted_inside(args: &Args, config: &ModelConfig) -> anyhow::Result<Option<Inside>> {
    let Some(data) = args.data.as_deref().filter(|_| args.inside.is_any()) else { return Ok(None) };
    let data = input::path(data);
    // It is read for the scores and for the files.
    expect_lasting(&data)?;
    let inputs: Vec<&Path> = [data.as_path(), args.run.as_path()].into_iter().chain(args.against.as_deref()).collect();
    let files = args.inside.files(config, &inputs)?;
    Ok(Some(Inside { files, data }))
}

impl Inside {
    /// Writes the files of what `deployed` has inside while it reads the data, of whose text `tokens` are, where they are known.
    ///
    /// Files that are there are replaced, so that it comes when the scores are out and nothing can be refused for them.
    fn write(self, deployed: &Deployed, tokens: Option<&[u32]>, stop: &AtomicBool) -> anyhow::Result<ExitCode> {
        let Self { files, data } = self;
        let is_written = match (&deployed.table, &deployed.tokenizer, tokens) {
            (Some(task), ..) => {
                let reads = task.clone();
                let series = interrupt::unless_stopped(stop, move || read_series(&reads, &data)).transpose()?;
                series.map(|series| inside::write(deployed, InsideInputs::Table(task, &series), &files, stop)).transpose()?
            }
            (None, _, Some(tokens)) => Some(inside::write(deployed, InsideInputs::Text(tokens), &files, stop)?),
            (None, Some(tokenizer), None) => {
                let tokens = tokens::read(&data, tokenizer, stop)?;
                tokens.map(|tokens| inside::write(deployed, InsideInputs::Text(&tokens), &files, stop)).transpose()?
            }
            (None, None, None) => {
                let sentence = "it reads neither a table nor text; leave --logits, --hidden and --embeddings out";
                return Err(WrongInput(format!("'{}': {sentence}", deployed.path.display())).into());
            }
        };
        if is_written == Some(true) {
            return Ok(ExitCode::SUCCESS);
        }
        say("stopped before --logits, --hidden and --embeddings were written");
        Ok(ExitCode::from(FAILED))
    }
}

/// Says that a stop was asked for.
fn stopped() -> ExitCode {
    say("stopped before everything was scored");
    ExitCode::from(FAILED)
}

/// What is said of a table that was not trained on.
fn told(table: &dyn SequenceTask) -> Vec<String> {
    let understood = table.understood().map(str::to_owned);
    understood.into_iter().chain(table.unseen_names().iter().map(ToString::to_string)).collect()
}

/// Refuses scores that are no numbers; `what` was scored.
fn expect_finite(what: impl Into<String>, evaluation: &Evaluation) -> minrnn::Result<()> {
    minrnn::expect_output(|| what.into(), [evaluation.loss])
}

/// The whole of a table by the inference runtime.
fn score_packed_table(
    args: &Args,
    deployed: &Deployed,
    task: &TableTask,
    path: &Path,
    inside: Option<Inside>,
    stop: &AtomicBool,
) -> anyhow::Result<ExitCode> {
    if args.against.is_some() {
        return Err(WrongInput("--against compares models of text, and this one reads tables; leave it out".to_owned()).into());
    }
    args.expect_no_batches()?;
    let (table, reads) = (input::path(path), task.clone());
    let read = move || Data::unseen_table(&table, &reads);
    let Some(Data::Task(data)) = interrupt::unless_stopped(stop, read).transpose()? else { return Ok(stopped()) };
    let mut set = data.evaluation(BATCH_SIZE, 0, Purpose::TestData, 1)?;
    let sequences = set.batch(0)?.batch_size;
    deployed::evaluate_memory(deployed.model.config(), sequences, data.longest())?.expect_room(args.memory.given())?;
    let mut comparison = data.comparison(Purpose::TestData);
    let Some(evaluation) = deployed::evaluate(&deployed.model, &mut *set, comparison.as_deref_mut(), stop)? else { return Ok(stopped()) };
    if !evaluation.loss.is_finite() && expect_lasting(path).is_ok() {
        // It names the first sequence that is at fault.
        deployed::predict(&deployed.model, task, &read_series(task, path)?, stop)?;
    }
    expect_finite("all of the table", &evaluation)?;
    print_model(&args.run, args.json)?;
    told(&*data).iter().for_each(say);
    print("all of the table", &evaluation, None, args.json).context(NO_STDOUT)?;
    if let Some(comparison) = &comparison {
        print_comparison(&**comparison, args.json).context(NO_STDOUT)?;
    }
    inside.map_or(Ok(ExitCode::SUCCESS), |inside| inside.write(deployed, None, stop))
}

/// One pass over a text or a table by the inference runtime.
fn score_packed(args: &Args, stop: &AtomicBool) -> anyhow::Result<ExitCode> {
    let deployed = Deployed::load(&args.run)?;
    let inside = wanted_inside(args, deployed.model.config())?;
    let Some(path) = &args.data else {
        return Err(WrongInput("a packed model has no data beside it; give a text or a table with --data FILE".to_owned()).into());
    };
    if let Some(task) = &deployed.table {
        return score_packed_table(args, &deployed, task, path, inside, stop);
    }
    if deployed.policy.is_some() {
        let sentence = "a packed policy is scored by what it earns: minrnn rollout; or score the run that it was packed from";
        return Err(WrongInput(sentence.to_owned()).into());
    }
    let Some(tokenizer) = &deployed.tokenizer else {
        return Err(WrongInput("--data does not fit this model, which was trained on a task and reads no text".to_owned()).into());
    };
    let Some(tokens) = tokens::read(path, tokenizer, stop)? else { return Ok(stopped()) };
    tokens::expect_two(tokens.len() as u64).with_context(|| format!("'{}'", path.display()))?;
    let against = args.against.as_deref().map(Deployed::load).transpose()?;
    if let Some(against) = &against {
        tokens::expect_comparable(tokenizer, against.tokenizer.as_ref())?;
    }
    let (model, other) = (&deployed.model, against.as_ref().map(|other| &other.model));
    for model in std::iter::once(model).chain(other) {
        deployed::score_memory(model.config(), tokens.len())?.expect_room(args.memory.given())?;
    }
    if other.is_some_and(|other| other.vocab_size() != model.vocab_size()) {
        return Err(WrongInput("the models have vocabularies of different sizes, so their tokens cannot be compared".to_owned()).into());
    }
    let Some(Score { evaluation, agreement }) = deployed::score(model, other, &tokens, stop)? else { return Ok(stopped()) };
    expect_finite("the text", &evaluation)?;
    print_model(&args.run, args.json)?;
    let size = TextSize::of_tokens(&tokens, tokenizer)?;
    print("full pass, state carried", &evaluation, Some(size), args.json).context(NO_STDOUT)?;
    match (agreement, &args.against) {
        (Some(share), Some(other)) if args.json => {
            writeln!(io::stdout(), "{}", serde_json::json!({"measure": "agreement", "against": other, "share": share}))
                .context(NO_STDOUT)?;
        }
        (Some(share), Some(other)) => {
            writeln!(io::stdout(), "top-1 agreement with {}: {:.2} %", other.display(), 100.0 * share).context(NO_STDOUT)?;
        }
        _ => {}
    }
    inside.map_or(Ok(ExitCode::SUCCESS), |inside| inside.write(&deployed, Some(&tokens), stop))
}

/// Random windows, one pass with windows that start anew, and one that carries the state; that one alone where the text is shorter than a window.
fn text_sets(part: TextPart, tokenizer: &Tokenizer, experiment: &Experiment, batches: u64) -> anyhow::Result<Sets> {
    let (train, found, size) = (&experiment.train, part.len(), Some(TextSize::of_part(&part, tokenizer)?));
    let carried = ("full pass, state carried", full_pass(part.clone(), experiment, true)?);
    if found <= train.seq_len as u64 {
        let (carries, needed) = ("only the pass that carries the state is scored", train.seq_len + 1);
        let told = format!("the text has {found} tokens, fewer than the {needed} of a window (seq_len = {}): {carries}", train.seq_len);
        return Ok(Sets { sets: vec![carried], size, comparison: None, told: vec![told] });
    }
    let windows = RandomWindows::new(part.clone(), train.batch_size, train.seq_len, train.scoring_seed(), Purpose::TestData)?;
    let fixed = ("fixed batches", Box::new(FixedBatches::new(windows, batches)) as Box<dyn EvaluationSet>);
    let sets = vec![fixed, ("full pass", full_pass(part, experiment, false)?), carried];
    Ok(Sets { sets, size, comparison: None, told: Vec::new() })
}

/// The line that says what is scored; JSON does without.
fn print_model(path: &Path, json: bool) -> anyhow::Result<()> {
    if json {
        return Ok(());
    }
    writeln!(io::stdout(), "model: {}", path.display()).context(NO_STDOUT)
}

/// Prints what was measured; the loss of a text of `size` also in bits per byte.
fn print(name: &str, evaluation: &Evaluation, size: Option<TextSize>, json: bool) -> io::Result<()> {
    let Evaluation { loss, accuracy, n_scored } = evaluation;
    let bits_per_byte = size.map(|size| size.bits_per_byte(*loss));
    let mut out = io::stdout().lock();
    if json {
        let mut line = serde_json::json!({"measure": name, "loss": loss, "accuracy": accuracy, "predictions": n_scored});
        if let Some(bits) = bits_per_byte {
            line["bits_per_byte"] = bits.into();
        }
        return writeln!(out, "{line}");
    }
    let told = counted(*n_scored, "prediction");
    match accuracy {
        Some(accuracy) => writeln!(
            out,
            "{name}: loss {loss:.4} nats ({:.4} bits), accuracy {:.2} %, {told}",
            loss / std::f64::consts::LN_2,
            100.0 * accuracy
        )?,
        None => writeln!(out, "{name}: loss {}, {told}", significant(*loss))?,
    }
    bits_per_byte.map_or(Ok(()), |bits| writeln!(out, "  bits per byte {bits:.4}"))
}

fn print_comparison(comparison: &dyn Comparison, json: bool) -> io::Result<()> {
    let mut out = io::stdout().lock();
    let measures = comparison.measures();
    for measure in &measures {
        match json {
            true => writeln!(out, "{}", measure.to_json())?,
            false => writeln!(out, "{}", measure.told())?,
        }
    }
    if !json {
        left_out(&measures).iter().try_for_each(|told| writeln!(out, "{told}"))?;
    }
    let Some(confusion) = comparison.confusion() else { return Ok(()) };
    if !json {
        return write!(out, "{}", confusion_table(confusion));
    }
    confusion.to_json().iter().try_for_each(|line| writeln!(out, "{line}"))
}
