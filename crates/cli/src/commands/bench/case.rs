//! What to measure: the flags that benches share.

use burn::tensor::Device;
use clap::builder::{PossibleValuesParser, RangedU64ValueParser};
use minrnn_model::{MixerKind, WeightFormat};

use super::timing::Plan;
use crate::device::DeviceArg;
use crate::failure::WrongInput;
use crate::machine;

const MAX_SIZE: u64 = 1 << 30;

/// A size given on the command line.
pub fn size() -> RangedU64ValueParser<usize> {
    RangedU64ValueParser::new().range(1..=MAX_SIZE)
}

/// Repetition, threads and output.
#[derive(clap::Args, Clone)]
pub struct RunArgs {
    /// Threads [default: as many as there are cores]
    #[arg(long, value_name = "N", value_parser = RangedU64ValueParser::<usize>::new().range(1..=1024))]
    threads: Option<usize>,
    /// Timed iterations
    #[arg(long, value_name = "N", value_parser = size())]
    iterations: Option<usize>,
    /// Warm-up iterations
    #[arg(long, value_name = "N", default_value_t = 2, value_parser = RangedU64ValueParser::<usize>::new().range(0..=MAX_SIZE))]
    warmup: usize,
    /// One JSON object per line instead of a table
    #[arg(long)]
    pub json: bool,
    #[command(flatten)]
    pub device: DeviceArg,
}

impl RunArgs {
    /// Threads to use.
    pub fn threads(&self) -> usize {
        self.threads.unwrap_or_else(machine::threads)
    }

    /// How often to repeat, with the bench's own number of iterations.
    pub fn plan(&self, iterations: usize) -> Plan {
        Plan { warmup: self.warmup, iterations: self.iterations.unwrap_or(iterations) }
    }

    /// Runs `work` on a pool of that many threads.
    pub fn on_threads<R: Send>(&self, work: impl FnOnce() -> R + Send) -> anyhow::Result<R> {
        let pool = rayon::ThreadPoolBuilder::new().num_threads(self.threads()).build();
        Ok(pool.map_err(|error| anyhow::anyhow!("cannot start {} threads: {error}", self.threads()))?.install(work))
    }

    /// The same choices for another process.
    pub fn flags(&self) -> minrnn::Result<Vec<String>> {
        let device = self.device.choice()?.to_string();
        let mut flags = vec![
            "--device".to_owned(),
            device,
            "--threads".to_owned(),
            self.threads().to_string(),
            "--warmup".to_owned(),
            self.warmup.to_string(),
        ];
        if let Some(iterations) = self.iterations {
            flags.extend(["--iterations".to_owned(), iterations.to_string()]);
        }
        Ok(flags)
    }
}

/// The name that stands for every mixer.
const ALL: &str = "all";

fn mixer_names() -> PossibleValuesParser {
    PossibleValuesParser::new(MixerKind::ALL.iter().map(|kind| kind.name()).chain([ALL]))
}

fn mixers(names: &[String]) -> Vec<MixerKind> {
    let kinds = |name: &String| match name.as_str() {
        ALL => MixerKind::ALL.to_vec(),
        name => name.parse().into_iter().collect(),
    };
    names.iter().flat_map(kinds).collect()
}

/// Mixers and sizes; every combination of mixer and length is a case.
#[derive(clap::Args, Clone)]
pub struct CaseArgs {
    /// Some of these, separated by commas
    #[arg(long, value_name = "NAME", value_delimiter = ',', default_value = "min-gru", value_parser = mixer_names())]
    mixer: Vec<String>,
    /// Width of the model
    #[arg(long, value_name = "D", value_parser = size())]
    d_model: Option<usize>,
    /// Width of the recurrence
    #[arg(long, value_name = "E", value_parser = size())]
    d_hidden: Option<usize>,
    /// Lengths, separated by commas
    #[arg(long, value_name = "T", value_delimiter = ',', value_parser = size())]
    seq_len: Option<Vec<usize>>,
    /// Sequences side by side
    #[arg(long, value_name = "B", value_parser = size())]
    batch_size: Option<usize>,
    /// Number format: of matrix products in training (f32, bf16), of weights in inference (all four)
    #[arg(long, value_name = "FORMAT", value_enum, default_value_t = Precision::F32)]
    precision: Precision,
    /// Compute each block again in the backward pass instead of keeping its activations (lm only)
    #[arg(long)]
    checkpoint_blocks: bool,
    #[command(flatten)]
    pub run: RunArgs,
}

/// A number format.
#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
pub enum Precision {
    F32,
    Bf16,
    Int8,
    Int4,
}

impl Precision {
    /// Its name in results.
    pub fn name(self) -> &'static str {
        match self {
            Self::F32 => "f32",
            Self::Bf16 => "bf16",
            Self::Int8 => "int8",
            Self::Int4 => "int4",
        }
    }

    /// The format of weights.
    pub fn weights(self) -> WeightFormat {
        match self {
            Self::F32 => WeightFormat::F32,
            Self::Bf16 => WeightFormat::Bf16,
            Self::Int8 => WeightFormat::Int8,
            Self::Int4 => WeightFormat::Int4,
        }
    }

    /// The precision of training; formats for weights alone are refused.
    pub fn training(self) -> anyhow::Result<minrnn::ops::Precision> {
        match self {
            Self::F32 => Ok(minrnn::ops::Precision::F32),
            Self::Bf16 => Ok(minrnn::ops::Precision::Bf16),
            Self::Int8 | Self::Int4 => {
                let sentence = format!("--precision {} is a format of weights for inference; training has f32 and bf16", self.name());
                Err(WrongInput(sentence).into())
            }
        }
    }
}

/// A bench's own sizes.
#[derive(Debug, Clone, Copy)]
pub struct Defaults {
    pub d_model: usize,
    pub d_hidden: usize,
    pub batch_size: usize,
    pub seq_len: &'static [usize],
    pub iterations: usize,
}

/// One measurement.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Case {
    pub mixer: MixerKind,
    /// D.
    pub d_model: usize,
    /// E.
    pub d_hidden: usize,
    /// B.
    pub batch_size: usize,
    /// T.
    pub seq_len: usize,
    pub precision: Precision,
    pub checkpoint_blocks: bool,
}

impl CaseArgs {
    /// Every mixer at every length, in the order given.
    pub fn cases(&self, defaults: Defaults) -> Vec<Case> {
        let lengths = self.seq_len.as_deref().unwrap_or(defaults.seq_len);
        let mixers = mixers(&self.mixer);
        let cases = mixers.iter().flat_map(|&mixer| lengths.iter().map(move |&seq_len| (mixer, seq_len)));
        let case = |(mixer, seq_len)| Case {
            mixer,
            d_model: self.d_model.unwrap_or(defaults.d_model),
            d_hidden: self.d_hidden.unwrap_or(defaults.d_hidden),
            batch_size: self.batch_size.unwrap_or(defaults.batch_size),
            seq_len,
            precision: self.precision,
            checkpoint_blocks: self.checkpoint_blocks,
        };
        cases.map(case).collect()
    }
}

impl Case {
    /// B · T.
    pub fn tokens(&self) -> u128 {
        self.batch_size as u128 * self.seq_len as u128
    }

    /// Flags that ask for this case.
    pub fn flags(&self) -> Vec<String> {
        let sizes =
            [("--d-model", self.d_model), ("--d-hidden", self.d_hidden), ("--batch-size", self.batch_size), ("--seq-len", self.seq_len)];
        let mut flags: Vec<String> = ["--mixer", self.mixer.name(), "--precision", self.precision.name()].map(str::to_owned).into();
        flags.extend(sizes.into_iter().flat_map(|(flag, size)| [flag.to_owned(), size.to_string()]));
        flags.extend(self.checkpoint_blocks.then(|| "--checkpoint-blocks".to_owned()));
        flags
    }
}

/// Refuses work that keeps more than `floats` numbers at once where there is no room for them. What a GPU has is not
/// known.
pub fn expect_room(floats: u128, device: &Device) -> anyhow::Result<()> {
    if device.clone().inner() != Device::flex() {
        return Ok(());
    }
    let needed = floats.saturating_mul(4);
    let available = machine::available_bytes().map_or(1 << 46, u128::from);
    if needed > available {
        let gib = |bytes: u128| bytes as f64 / f64::from(1u32 << 30);
        let sentence = format!(
            "this measurement needs at least {:.1} GiB of memory, available are {:.1} GiB; lower the batch size, the length or the widths",
            gib(needed),
            gib(available)
        );
        return Err(WrongInput(sentence).into());
    }
    Ok(())
}
