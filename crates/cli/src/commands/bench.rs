//! `minrnn bench`: how fast the parts and the whole are, and how much memory they take.
//!
//! Every case runs in a process of its own, so that its peak memory is its own.

mod report;

use std::process::Stdio;

use anyhow::{Context, anyhow};
use burn::tensor::Device;
use clap::Subcommand;
use clap::builder::{PossibleValuesParser, RangedU64ValueParser, TypedValueParser};
use minrnn::train::MAX_THREADS;
use minrnn_bench::{Bench, Build, Case, Line, Place, Plan, SCAN, default_scans, machine, measure, measure_scan, measure_tasks};
use minrnn_model::{MixerKind, WeightFormat};

use crate::device::DeviceArg;
use crate::exit::ExitCode;
use crate::failure::{WRONG_INPUT, WrongInput};
use crate::starter;
use report::Report;

/// This program.
pub const BUILD: Build = Build { commit: env!("MINRNN_COMMIT"), compiler: env!("MINRNN_COMPILER") };
const MAX_SIZE: u64 = 1 << 30;
/// Timed iterations of the bare recurrence.
const SCAN_ITERATIONS: usize = 30;
/// The name that stands for every mixer.
const ALL: &str = "all";

/// `minrnn bench`
#[derive(clap::Args)]
pub struct Args {
    #[command(subcommand)]
    bench: BenchArgs,
}

#[derive(Subcommand)]
enum BenchArgs {
    /// The bare recurrence h = a h + b beside the machine's copy bandwidth
    Scan(ScanArgs),
    /// One recurrent layer: in-projection, recurrence, loss, backward
    Layer(LayerArgs),
    /// One training step of the Shakespeare language model
    Lm(CaseArgs),
    /// The language model, one token at a time
    Decode(CaseArgs),
    /// The language model, on a whole prompt
    Prefill(CaseArgs),
    /// The tasks that a training step is split into for N threads, timed one after the other, as JSON
    Tasks(CaseArgs),
}

/// Repetition, threads and output.
#[derive(clap::Args, Clone)]
struct RunArgs {
    /// Number of threads [default: all cores]
    #[arg(long, value_name = "N", allow_negative_numbers = true, value_parser = RangedU64ValueParser::<usize>::new().range(1..=MAX_THREADS as u64))]
    threads: Option<usize>,
    /// Number of timed iterations
    #[arg(long, value_name = "N", allow_negative_numbers = true, value_parser = size())]
    iterations: Option<usize>,
    /// Number of warm-up iterations
    #[arg(
        long, value_name = "N", allow_negative_numbers = true, default_value_t = 2,
        value_parser = RangedU64ValueParser::<usize>::new().range(0..=MAX_SIZE)
    )]
    warmup: usize,
    /// One JSON object per line instead of a table
    #[arg(long)]
    json: bool,
    #[command(flatten)]
    device: DeviceArg,
}

/// Flags of `minrnn bench scan`.
#[derive(clap::Args)]
struct ScanArgs {
    /// Batch size; if any size is given, only one shape is measured
    #[arg(long, value_name = "B", allow_negative_numbers = true, value_parser = size())]
    batch_size: Option<usize>,
    /// Length of the sequences
    #[arg(long, value_name = "T", allow_negative_numbers = true, value_parser = size())]
    seq_len: Option<usize>,
    /// Width of the recurrence
    #[arg(long, value_name = "E", allow_negative_numbers = true, value_parser = size())]
    d_hidden: Option<usize>,
    #[command(flatten)]
    run: RunArgs,
}

/// Mixers and sizes; every combination of mixer and length is a case.
#[derive(clap::Args, Clone)]
struct CaseArgs {
    /// Mixers to measure, separated by commas
    #[arg(long, value_name = "NAME", value_delimiter = ',', default_value = "min-gru", value_parser = mixer_names())]
    mixer: Vec<String>,
    /// Width of the model
    #[arg(long, value_name = "D", allow_negative_numbers = true, value_parser = size())]
    d_model: Option<usize>,
    /// Width of the recurrence
    #[arg(long, value_name = "E", allow_negative_numbers = true, value_parser = size())]
    d_hidden: Option<usize>,
    /// Lengths of the sequences, separated by commas
    #[arg(long, value_name = "T", allow_negative_numbers = true, value_delimiter = ',', value_parser = size())]
    seq_len: Option<Vec<usize>>,
    /// Batch size
    #[arg(long, value_name = "B", allow_negative_numbers = true, value_parser = size())]
    batch_size: Option<usize>,
    /// Number format: of matrix products in training (f32, bf16), of weights in inference (all four)
    #[arg(long, value_name = "FORMAT", default_value = "f32", value_parser = precisions())]
    precision: WeightFormat,
    /// Recompute each block in the backward pass instead of keeping its activations (lm only)
    #[arg(long)]
    checkpoint_blocks: bool,
    #[command(flatten)]
    run: RunArgs,
}

/// Flags of `minrnn bench layer`.
#[derive(clap::Args)]
struct LayerArgs {
    #[command(flatten)]
    shape: CaseArgs,
    /// Tokens per iteration: the batch is N divided by the length
    #[arg(long, value_name = "N", allow_negative_numbers = true, value_parser = size(), conflicts_with = "batch_size")]
    tokens: Option<usize>,
}

/// Runs the command.
pub fn run(args: Args) -> anyhow::Result<ExitCode> {
    match args.bench {
        BenchArgs::Scan(args) => scans(&args)?,
        BenchArgs::Layer(args) => cases(Bench::Layer, &args.shape, args.tokens)?,
        BenchArgs::Lm(args) => cases(Bench::Lm, &args, None)?,
        BenchArgs::Decode(args) => cases(Bench::Decode, &args, None)?,
        BenchArgs::Prefill(args) => cases(Bench::Prefill, &args, None)?,
        BenchArgs::Tasks(args) => tasks(&args)?,
    }
    Ok(ExitCode::SUCCESS)
}

/// Measures one shape, or those of the documentation.
fn scans(args: &ScanArgs) -> anyhow::Result<()> {
    let mut report = Report::new(SCAN, args.run.json);
    if [args.batch_size, args.seq_len, args.d_hidden].iter().all(Option::is_none) {
        for shape in default_scans(&args.run.device.open()?) {
            let sizes = ["--batch-size", "--seq-len", "--d-hidden"].iter().zip(shape);
            let flags: Vec<String> = sizes.flat_map(|(flag, size)| [(*flag).to_owned(), size.to_string()]).collect();
            in_own_process(SCAN, &flags, &args.run, &mut report)?;
        }
        return Ok(());
    }
    let [b, t, e] = default_scans(&Device::flex())[0];
    let shape = [args.batch_size.unwrap_or(b), args.seq_len.unwrap_or(t), args.d_hidden.unwrap_or(e)];
    measure_scan(shape, args.run.plan(SCAN_ITERATIONS), &args.run.place()?)?.iter().try_for_each(|line| report.line(line))
}

/// Measures every mixer at every length and prints a line for each; `tokens` per iteration, if given, decide the batch size.
fn cases(bench: Bench, args: &CaseArgs, tokens: Option<usize>) -> anyhow::Result<()> {
    if bench != Bench::Lm && args.checkpoint_blocks {
        return Err(WrongInput(format!("--checkpoint-blocks changes a training step, found bench {bench}; use it with bench lm")).into());
    }
    let mut cases = args.cases(bench);
    for case in cases.iter_mut() {
        let Some(tokens) = tokens else { break };
        if tokens % case.seq_len != 0 {
            let sentence = format!("--tokens {tokens} is not a whole number of sequences of --seq-len {}", case.seq_len);
            return Err(WrongInput(sentence).into());
        }
        case.batch_size = tokens / case.seq_len;
    }
    let mut report = Report::new(bench.name(), args.run.json);
    match cases.as_slice() {
        [case] => report.line(&measure(bench, case, args.run.plan(bench.iterations()), &args.run.place()?)?),
        cases => cases.iter().try_for_each(|case| in_own_process(bench.name(), &flags(case), &args.run, &mut report)),
    }
}

/// Records the tasks of each case and prints them.
fn tasks(args: &CaseArgs) -> anyhow::Result<()> {
    let place = args.run.place()?;
    for case in args.cases(Bench::Lm) {
        println!("{}", serde_json::to_string(&measure_tasks(&case, args.run.plan(Bench::Lm.iterations()), &place)?)?);
    }
    Ok(())
}

/// Measures one case in a process of its own and prints the lines it found.
fn in_own_process(bench: &str, case: &[String], run: &RunArgs, report: &mut Report) -> anyhow::Result<()> {
    let flags: Vec<String> = case.iter().cloned().chain(run.flags()?).collect();
    lines_of_own_process(bench, &flags)?.iter().try_for_each(|line| report.line(line))
}

/// Runs this program for one case, given as flags of `bench`; the lines it found.
pub fn lines_of_own_process(bench: &str, flags: &[String]) -> anyhow::Result<Vec<Line>> {
    let mut command = starter::command()?;
    command.args(["bench", bench]).args(flags).arg("--json").stderr(Stdio::inherit());
    let done = command.output().context("cannot start a process for one case")?;
    if !done.status.success() {
        let sentence = format!("bench {bench} {}: ended with {}", flags.join(" "), done.status);
        // The process has said on stderr what was wrong; wrong input to it is wrong input here.
        return match done.status.code() {
            Some(code) if code == i32::from(WRONG_INPUT) => Err(WrongInput(sentence).into()),
            _ => Err(anyhow!(sentence)),
        };
    }
    let read = |text| serde_json::from_str(text).with_context(|| format!("bench {bench} {}: unreadable result", flags.join(" ")));
    String::from_utf8_lossy(&done.stdout).lines().map(read).collect()
}

impl RunArgs {
    /// How often to repeat, with the bench's own number of iterations.
    fn plan(&self, iterations: usize) -> Plan {
        Plan { warmup: self.warmup, iterations: self.iterations.unwrap_or(iterations) }
    }

    /// Where to measure.
    fn place(&self) -> minrnn::Result<Place> {
        Ok(Place { device: self.device.open()?, threads: self.threads(), build: BUILD })
    }

    fn threads(&self) -> usize {
        self.threads.unwrap_or_else(machine::threads)
    }

    /// The same choices for another process.
    fn flags(&self) -> minrnn::Result<Vec<String>> {
        let (device, threads, warmup) = (self.device.choice()?.to_string(), self.threads().to_string(), self.warmup.to_string());
        let iterations = self.iterations.map(|iterations| ["--iterations".to_owned(), iterations.to_string()]);
        let flags = ["--device", &device, "--threads", &threads, "--warmup", &warmup].map(str::to_owned);
        Ok(flags.into_iter().chain(iterations.into_iter().flatten()).collect())
    }
}

impl CaseArgs {
    /// Every mixer at every length, in the order given.
    fn cases(&self, bench: Bench) -> Vec<Case> {
        let own = bench.case();
        let lengths = self.seq_len.as_deref().unwrap_or(bench.lengths());
        let mixers = self.mixer.iter().flat_map(|name| match name.as_str() {
            ALL => MixerKind::ALL.to_vec(),
            name => name.parse().into_iter().collect(),
        });
        let case = |(mixer, seq_len)| Case {
            mixer,
            d_model: self.d_model.unwrap_or(own.d_model),
            d_hidden: self.d_hidden.unwrap_or(own.d_hidden),
            batch_size: self.batch_size.unwrap_or(own.batch_size),
            seq_len,
            precision: self.precision,
            checkpoint_blocks: self.checkpoint_blocks,
        };
        mixers.flat_map(|mixer| lengths.iter().map(move |&seq_len| (mixer, seq_len))).map(case).collect()
    }
}

/// Flags that ask for `case`.
fn flags(case: &Case) -> Vec<String> {
    let sizes =
        [("--d-model", case.d_model), ("--d-hidden", case.d_hidden), ("--batch-size", case.batch_size), ("--seq-len", case.seq_len)];
    let mut flags: Vec<String> = ["--mixer", case.mixer.name(), "--precision", case.precision.name()].map(str::to_owned).into();
    flags.extend(sizes.into_iter().flat_map(|(flag, size)| [flag.to_owned(), size.to_string()]));
    flags.extend(case.checkpoint_blocks.then(|| "--checkpoint-blocks".to_owned()));
    flags
}

/// A size given on the command line.
fn size() -> RangedU64ValueParser<usize> {
    RangedU64ValueParser::new().range(1..=MAX_SIZE)
}

fn mixer_names() -> PossibleValuesParser {
    PossibleValuesParser::new(MixerKind::ALL.iter().map(|kind| kind.name()).chain([ALL]))
}

fn precisions() -> impl TypedValueParser<Value = WeightFormat> {
    PossibleValuesParser::new(WeightFormat::ALL.iter().map(|format| format.name())).try_map(|name| name.parse())
}
