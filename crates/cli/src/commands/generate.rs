//! `minrnn generate`: text from prompts. Only the text goes to stdout; what is said about it goes to stderr.

use std::io::{ErrorKind, IsTerminal};
use std::ops::ControlFlow;
use std::path::PathBuf;
use std::sync::atomic::Ordering;
use std::time::Instant;

use anyhow::Context;
use minrnn::checkpoint::{LoadedModel, TOKENIZER_FILE, load_model};
use minrnn::data::{Tokenizer, TokenizerKind};
use minrnn::deployed::Deployed;
use minrnn::generate::{ModelIdentity, RuntimeSession, Session, TextGenerator, TokenSession};
use minrnn::memory::{Sizes, inference};
use minrnn::output::{expect_harmless, expect_writable};
use minrnn::words::counted;
use minrnn_model::{read_limited, read_text};
use minrnn_stream::{Model, Sampling};

use crate::device::DeviceArg;
use crate::exit::ExitCode;
use crate::failure::{FAILED, WrongInput};
use crate::memory::MemoryArg;
use crate::printer::Printer;
use crate::say::say;
use crate::threads::Threads;
use crate::{input, interrupt};

const MAX_PROMPT_FILE: u64 = 256 << 20;
const MAX_BATCH: usize = 4096;
/// Longer prompts are shortened in titles.
const TITLE_CHARACTERS: usize = 60;

#[derive(clap::Args)]
pub struct Args {
    /// Run directory (its best checkpoint is taken), checkpoint directory or packed model
    #[arg(value_name = "RUN|FILE")]
    run: PathBuf,
    /// Text to continue; may be given several times, each result then has a title [default: start from a line break]
    #[arg(long, value_name = "TEXT", allow_hyphen_values = true)]
    prompt: Vec<String>,
    /// File whose whole content is the text to continue (any bytes, for a vocabulary of bytes); - for standard input
    #[arg(long, value_name = "FILE")]
    prompt_file: Vec<PathBuf>,
    /// Number of continuations of each text
    #[arg(long, value_name = "N", allow_negative_numbers = true)]
    batch: Option<usize>,
    /// Number of tokens to generate for each text
    #[arg(long, value_name = "N", allow_negative_numbers = true, default_value_t = 500)]
    max_tokens: usize,
    #[command(flatten)]
    sampling: SamplingArgs,
    /// Stop before this text; may be given several times
    #[arg(long, value_name = "TEXT", allow_hyphen_values = true)]
    stop: Vec<String>,
    /// Save the session to this file, with any text held back because it could become a stop string
    #[arg(long, value_name = "FILE")]
    save_session: Option<PathBuf>,
    /// Continue from such a file, with its settings unless others are given
    #[arg(long, value_name = "FILE")]
    load_session: Option<PathBuf>,
    #[command(flatten)]
    device: DeviceArg,
    #[command(flatten)]
    threads: Threads,
    #[command(flatten)]
    memory: MemoryArg,
}

#[derive(clap::Args)]
struct SamplingArgs {
    /// Divide the logits by this; 0 takes the likeliest token [default: 1]
    #[arg(long, value_name = "X", allow_negative_numbers = true)]
    temperature: Option<f64>,
    /// Consider only the K likeliest tokens; 0 for all [default: 0]
    #[arg(long, value_name = "K", allow_negative_numbers = true)]
    top_k: Option<usize>,
    /// Consider only the likeliest tokens that together have this probability [default: 1]
    #[arg(long, value_name = "P", allow_negative_numbers = true)]
    top_p: Option<f64>,
    /// Consider only tokens at least P times as probable as the likeliest [default: 0]
    #[arg(long, value_name = "P", allow_negative_numbers = true)]
    min_p: Option<f64>,
    /// Penalise the latest 64 tokens; 1 for off [default: 1]
    #[arg(long, value_name = "X", allow_negative_numbers = true)]
    repetition_penalty: Option<f64>,
    /// Seed of the sampling; the same seed gives the same text [default: 0]
    #[arg(long, value_name = "N", allow_negative_numbers = true)]
    seed: Option<u64>,
}

impl SamplingArgs {
    /// `base` with what was given, or `None` when nothing was.
    fn over(&self, base: &Sampling) -> Option<Sampling> {
        let Self { temperature, top_k, top_p, min_p, repetition_penalty, seed } = *self;
        let sampling = Sampling {
            temperature: temperature.unwrap_or(base.temperature),
            top_k: top_k.unwrap_or(base.top_k),
            top_p: top_p.unwrap_or(base.top_p),
            min_p: min_p.unwrap_or(base.min_p),
            repetition_penalty: repetition_penalty.unwrap_or(base.repetition_penalty),
            seed: seed.unwrap_or(base.seed),
        };
        let numbers = [temperature, top_p, min_p, repetition_penalty];
        (numbers.iter().any(Option::is_some) || top_k.is_some() || seed.is_some()).then_some(sampling)
    }
}

pub fn run(args: Args) -> anyhow::Result<ExitCode> {
    args.threads.install(|| generate(&args))
}

fn generate(args: &Args) -> anyhow::Result<ExitCode> {
    check(args)?;
    let deployed = Deployed::load(&args.run)?;
    let Some(tokenizer) = &deployed.tokenizer else {
        // Without a vocabulary, tokens may or may not stand for text.
        let problem = match deployed.model.config().is_language_model() {
            true => {
                "it was imported without a vocabulary, which minrnn import takes with --tokenizer FILE, or trained on a task instead of text; see \
                 minrnn eval"
            }
            false => "it was trained on a task instead of text, so there is nothing to continue; see minrnn eval",
        };
        return Err(WrongInput(format!("the model in '{}' has no {TOKENIZER_FILE}: {problem}", deployed.path.display())).into());
    };
    let prompts = prompts(args, tokenizer)?;
    let wants_identity = args.save_session.is_some() || args.load_session.is_some();
    let identity = wants_identity.then(|| deployed.identity()).transpose()?;
    let model = &deployed.model;
    say(format_args!("{} of {} parameters from {}", model.config().mixer_names(), model.parameters(), deployed.path.display()));
    expect_room(args, &prompts, model)?;
    let job = Job { args, prompts: &prompts, tokenizer, identity: identity.as_ref() };
    if deployed.path.is_file() {
        args.device.expect_cpu()?;
    }
    if args.device.is_cpu()? {
        return job.run(|rows| RuntimeSession::new(model, rows));
    }
    let LoadedModel { model, .. } = load_model(&deployed.path, &args.device.open()?)?;
    job.run(|rows| Ok(Session::new(&model, rows)))
}

/// Checks that the states of all texts fit into memory. A prompt is read in pieces; caches grow with it and the tokens after it.
fn expect_room(args: &Args, prompts: &[Vec<u8>], model: &Model) -> anyhow::Result<()> {
    let longest = prompts.iter().map(Vec::len).max().unwrap_or(0);
    let batch_size = prompts.len().max(1).saturating_mul(args.batch.unwrap_or(1));
    let config = model.config();
    let seq_len = match config.cost().map_err(minrnn::Error::from)?.past.is_empty() {
        true => 1,
        // A prompt has at most as many tokens as bytes.
        false => longest.saturating_add(args.max_tokens).clamp(1, config.max_seq_len.max(1)),
    };
    let sizes = Sizes { batch_size, seq_len, scored: batch_size as u128, threads: 1 };
    Ok(inference("generating", config, sizes)?.expect_room(args.memory.given())?)
}

/// What is to be generated, on whichever device.
struct Job<'a> {
    args: &'a Args,
    prompts: &'a [Vec<u8>],
    tokenizer: &'a Tokenizer,
    identity: Option<&'a ModelIdentity>,
}

impl Job<'_> {
    /// Generates with the sessions that `new` makes for a number of rows.
    fn run<S: TokenSession>(&self, new: impl Fn(usize) -> minrnn::Result<S>) -> anyhow::Result<ExitCode> {
        let Self { args, prompts, tokenizer, identity } = *self;
        let start = match (&args.load_session, identity) {
            (Some(path), Some(identity)) => continued(args, prompts, TextGenerator::load(path, &new(0)?, tokenizer, identity)?)?,
            _ => started(args, prompts, new, tokenizer)?,
        };
        write(args, start, identity)
    }
}

fn write<S: TokenSession>(args: &Args, start: Start<'_, S>, identity: Option<&ModelIdentity>) -> anyhow::Result<ExitCode> {
    let Start { mut generator, titles, held } = start;
    if generator.is_done() && args.max_tokens > 0 {
        say("the session ended at a stop string; give a --prompt to continue");
    }

    // Before this Ctrl-C ends the process at once, as nothing has been generated.
    let stop = interrupt::stop_flag()?;
    let mut is_interrupted = false;
    let mut printer = Printer::new(std::io::stdout(), titles);
    let mut written = held.iter().enumerate().try_for_each(|(row, text)| printer.add(row, text));
    let clock = Instant::now();
    let max_tokens = if written.is_ok() { args.max_tokens } else { 0 };
    let tokens = generator.generate(max_tokens, |piece| {
        if written.is_ok() {
            written = printer.add(piece.row, &piece.text);
        }
        if written.is_ok() && piece.stopped {
            written = printer.end(piece.row);
        }
        is_interrupted |= stop.load(Ordering::Relaxed);
        if written.is_err() || is_interrupted { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
    })?;
    let seconds = clock.elapsed().as_secs_f64();

    match (&args.save_session, identity) {
        (Some(path), Some(identity)) => generator.save(path, identity)?,
        _ => {
            for (row, text) in generator.finish().iter().enumerate() {
                written = written.and_then(|()| printer.add(row, text));
            }
        }
    }
    written = written.and_then(|()| printer.finish(std::io::stdout().is_terminal()));
    match written {
        // Whoever read the text has seen enough.
        Err(error) if error.kind() == ErrorKind::BrokenPipe => return Ok(ExitCode::SUCCESS),
        written => written.context("could not write the text to standard output")?,
    }
    let ending = if is_interrupted { "interrupted after" } else { "generated" };
    let told = counted(tokens, "token");
    say(format_args!("{ending} {told} in {seconds:.2} s ({:.0} tokens/s)", tokens as f64 / seconds.max(1e-9)));
    if let Some(path) = &args.save_session {
        say(format_args!("session saved; continue with --load-session {}", crate::shell::quoted(path)));
    }
    Ok(if is_interrupted { ExitCode::from(FAILED) } else { ExitCode::SUCCESS })
}

/// What can be refused before a model is read.
fn check(args: &Args) -> anyhow::Result<()> {
    if let Some(batch) = args.batch.filter(|batch| !(1..=MAX_BATCH).contains(batch)) {
        return Err(WrongInput(format!("--batch must be between 1 and {MAX_BATCH}, found {batch}")).into());
    }
    if args.prompt_file.iter().filter(|path| path.as_os_str() == "-").count() > 1 {
        return Err(
            WrongInput("--prompt-file - is given twice, but standard input can be read only once; save it to a file".to_owned()).into()
        );
    }
    if let Some(path) = &args.save_session {
        // The session that is continued may be replaced by its own continuation.
        let inputs = args.prompt_file.iter().chain([&args.run]).map(PathBuf::as_path);
        expect_harmless(path, inputs)?;
        expect_writable(path)?;
    }
    if let Some(sampling) = args.sampling.over(&Sampling::default()) {
        sampling.validate().map_err(minrnn::Error::from)?;
    }
    Ok(())
}

/// The texts of `--prompt`, then those of `--prompt-file`, as `tokenizer` takes them.
fn prompts(args: &Args, tokenizer: &Tokenizer) -> anyhow::Result<Vec<Vec<u8>>> {
    let mut prompts: Vec<Vec<u8>> = args.prompt.iter().map(|prompt| prompt.clone().into_bytes()).collect();
    for path in args.prompt_file.iter().map(|path| input::path(path)) {
        let read = match tokenizer.kind() {
            TokenizerKind::Byte => read_limited(&path, MAX_PROMPT_FILE),
            TokenizerKind::Character | TokenizerKind::Bpe => read_text(&path, MAX_PROMPT_FILE).map(String::into_bytes),
        };
        prompts.push(read.map_err(minrnn::Error::from)?);
    }
    Ok(prompts)
}

struct Start<'m, S: TokenSession> {
    generator: TextGenerator<'m, S>,
    /// One for each row; without any, the text is printed alone.
    titles: Vec<String>,
    /// Text that a session held back and that comes before anything new.
    held: Vec<String>,
}

fn started<'m, S: TokenSession>(
    args: &Args,
    prompts: &[Vec<u8>],
    new: impl Fn(usize) -> minrnn::Result<S>,
    tokenizer: &'m Tokenizer,
) -> anyhow::Result<Start<'m, S>> {
    let empty: [Vec<u8>; 1] = [Vec::new()];
    let prompts = if prompts.is_empty() { &empty } else { prompts };
    let copies = args.batch.unwrap_or(1);
    let sampling = args.sampling.over(&Sampling::default()).unwrap_or_default();
    // Each prompt is read once, however many continuations it gets.
    let mut generator = TextGenerator::new(new(prompts.len())?, tokenizer, prompts, sampling.clone(), &args.stop)?;
    if copies > 1 {
        generator = generator.select(&repeated(prompts.len(), copies))?;
        generator.resample(sampling)?;
    }
    let names: Vec<String> = prompts.iter().map(|prompt| shortened(prompt)).collect();
    Ok(Start { generator, titles: titles(&names, copies), held: Vec::new() })
}

fn continued<'m, S: TokenSession>(args: &Args, prompts: &[Vec<u8>], mut generator: TextGenerator<'m, S>) -> anyhow::Result<Start<'m, S>> {
    let rows = generator.batch_size();
    if prompts.len() > 1 && prompts.len() != rows {
        let found = prompts.len();
        return Err(WrongInput(format!("the session has {rows} texts, expected one prompt for all or one for each, found {found}")).into());
    }
    let copies = args.batch.unwrap_or(1);
    if rows.saturating_mul(copies) > MAX_BATCH {
        return Err(WrongInput(format!("the session has {rows} texts; {copies} of each are more than {MAX_BATCH}")).into());
    }
    let sampling = args.sampling.over(generator.sampling());
    if copies > 1 {
        generator = generator.select(&repeated(rows, copies))?;
        generator.resample(sampling.unwrap_or_else(|| generator.sampling().clone()))?;
    } else if let Some(sampling) = sampling {
        generator.resample(sampling)?;
    }
    let mut held = vec![String::new(); generator.batch_size()];
    let mut hold = |texts: Vec<String>| held.iter_mut().zip(texts).for_each(|(held, text)| *held += &text);
    if !args.stop.is_empty() {
        hold(generator.replace_stops(&args.stop)?);
    }
    let of_row = |row: usize| if prompts.len() == 1 { &prompts[0] } else { &prompts[row] };
    if !prompts.is_empty() {
        let texts: Vec<&Vec<u8>> = repeated(rows, copies).into_iter().map(of_row).collect();
        hold(generator.prompt(&texts)?);
    }
    let names: Vec<String> = match prompts {
        [] => (1..=rows).map(|row| format!("text {row} of the session")).collect(),
        _ => (0..rows).map(|row| shortened(of_row(row))).collect(),
    };
    Ok(Start { titles: titles(&names, copies), generator, held })
}

/// 0, 0, 1, 1, 2, 2 for three rows twice.
fn repeated(rows: usize, copies: usize) -> Vec<usize> {
    (0..rows).flat_map(|row| std::iter::repeat_n(row, copies)).collect()
}

fn titles(names: &[String], copies: usize) -> Vec<String> {
    match (names, copies) {
        ([_], 1) => Vec::new(),
        (_, 1) => names.to_vec(),
        _ => names.iter().flat_map(|name| (1..=copies).map(move |copy| format!("{name} ({copy} of {copies})"))).collect(),
    }
}

/// On one line, and not too long.
fn shortened(prompt: &[u8]) -> String {
    let prompt = String::from_utf8_lossy(prompt);
    match prompt.char_indices().nth(TITLE_CHARACTERS) {
        Some((end, _)) => format!("{:?}…", &prompt[..end]),
        None => format!("{prompt:?}"),
    }
}
