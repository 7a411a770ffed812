//! How much memory something will need, from its configuration alone, and how much there is.
//!
//! * [`Estimate`]: the peak memory by parts, with what to reduce if that is too much.
//! * [`Room`]: the machine's free memory, and the limits of this process.
//! * [`inference`]: what evaluation or generation needs; [`packing`]: what packing a model needs; for training see
//!   [`crate::train::training_memory`].
//! * [`Size`]: a number of bytes in readable form.

pub(crate) mod activations;
mod room;
mod size;
pub(crate) mod tape;

use minrnn_model::{ModelConfig, WeightFormat};
use minrnn_stream::PASS_STEPS;

pub use activations::Sizes;
pub use room::{Room, Source};
pub use size::{Size, of_file, rounded};
pub use tape::{Long, Tape};

use crate::model::Pass;
use crate::{Error, Result};

/// Bytes per number.
pub(crate) const F32: u128 = size_of::<f32>() as u128;

/// Memory of the program itself: the code it runs, threads, tables of libraries, buffers of products. Measured.
pub const PROGRAM: u128 = 60 << 20;
/// Tensors come and go, and an allocator that returns nothing is left with gaps between those that stay: one part in this many. Measured.
const GAPS: u128 = 4;
/// The unused ends of long tensors' last pieces serve nothing else, and this percentage of them was touched by earlier tensors. Measured.
const TOUCHED: u128 = 60;

/// A part of the memory needed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Part {
    /// Its name, in a word or two.
    pub name: &'static str,
    /// Bytes.
    pub bytes: u128,
    /// What to do if it is too much, as ends of a sentence.
    pub remedies: &'static [&'static str],
}

/// Name, bytes and remedies of a future [`Part`].
pub(crate) type NewPart = (&'static str, u128, &'static [&'static str]);

/// The peak memory that something needs, by parts.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Estimate {
    /// What needs it, such as "training".
    pub purpose: &'static str,
    /// The parts, whose sum is what is needed.
    pub parts: Vec<Part>,
}

impl Estimate {
    /// An estimate of the parts that are not empty.
    pub(crate) fn new(purpose: &'static str, parts: impl IntoIterator<Item = NewPart>) -> Self {
        let parts = parts.into_iter().filter(|(_, bytes, _)| *bytes > 0).map(|(name, bytes, remedies)| Part { name, bytes, remedies });
        Self { purpose, parts: parts.collect() }
    }

    /// The same with the unused memory held by the allocator.
    pub(crate) fn with_gaps(mut self, gaps: u128) -> Self {
        self.parts.push(Part { name: "gaps between tensors", bytes: gaps, remedies: &[] });
        self
    }

    /// Total bytes.
    pub fn total(&self) -> u128 {
        self.parts.iter().fold(0, |sum: u128, part| sum.saturating_add(part.bytes))
    }

    /// The largest parts, at most `count`, excluding those below a twentieth of the total.
    pub fn largest(&self, count: usize) -> Vec<&Part> {
        let mut parts: Vec<&Part> = self.parts.iter().filter(|part| part.bytes.saturating_mul(20) >= self.total()).collect();
        parts.sort_by_key(|part| std::cmp::Reverse(part.bytes));
        parts.truncate(count);
        parts
    }

    /// The largest parts in words: "activations 3.10 GiB, moments 412 MiB".
    pub fn largest_in_words(&self, count: usize) -> String {
        let parts = self.largest(count);
        parts.iter().map(|part| format!("{} {}", part.name, rounded(part.bytes))).collect::<Vec<_>>().join(", ")
    }

    /// Checks that it fits into the memory that is left, with `limit` as a further limit.
    ///
    /// # Errors
    /// [`Error::Memory`] with the largest parts and what to reduce, if it does not.
    pub fn expect_room(&self, limit: Option<Size>) -> Result<()> {
        Room::left(limit).map_or(Ok(()), |room| self.expect_within(&room))
    }

    /// Checks that it fits into `room`.
    ///
    /// # Errors
    /// [`Error::Memory`] if it does not.
    pub fn expect_within(&self, room: &Room) -> Result<()> {
        if self.total() <= room.bytes.into() {
            return Ok(());
        }
        let mut remedies: Vec<&str> = Vec::new();
        for remedy in self.largest(3).iter().flat_map(|part| part.remedies) {
            if !remedies.contains(remedy) {
                remedies.push(remedy);
            }
        }
        let remedies = if remedies.is_empty() { "run it on a machine with more".to_owned() } else { remedies.join(", or ") };
        Err(Error::Memory(format!(
            "{} needs about {} of memory ({}), but {room}; {remedies}",
            self.purpose,
            rounded(self.total()),
            self.largest_in_words(3),
        )))
    }
}

/// Bytes that the allocator holds in addition to `moving` bytes of tensors, some of them `long`. A tensor of `largest` bytes finds no gap
/// that fits it.
pub(crate) fn gaps(moving: u128, largest: u128, long: Long) -> u128 {
    (moving / GAPS).max(largest.min(moving)) + F32 * long.left * TOUCHED / 100
}

/// The memory that `purpose`, a pass of `config` over a batch of `sizes` without gradients, needs. While the weights are read they take
/// three times their size: as the bytes of the file, as its numbers, and in their final place; afterwards only once.
///
/// # Errors
/// When the configuration is not valid.
pub fn inference(purpose: &'static str, config: &ModelConfig, sizes: Sizes) -> Result<Estimate> {
    let config = &config.checked()?;
    let pass = Pass::of(config, sizes);
    let weights = F32.saturating_mul(config.cost().parameters);
    let logits = F32 * sizes.scored * config.outputs() as u128;
    let moving = F32 * (pass.states + pass.forward) + logits;
    let parts = match moving > 2 * weights {
        true => [("weights", weights, MODEL), ("states", F32 * pass.states, ROWS), ("activations", F32 * pass.forward + logits, ROWS)],
        false => [("weights", weights, MODEL), ("weights as they are read", 2 * weights, MODEL), ("activations", 0, ROWS)],
    };
    let moving = moving.max(2 * weights);
    Ok(Estimate::new(purpose, parts.into_iter().chain([("program", PROGRAM, NOTHING)])).with_gaps(gaps(moving, logits, Long::default())))
}

/// What the runtime does with a model that it has read.
pub(crate) struct Run {
    /// Number of sequences whose states it holds at a time.
    pub sessions: usize,
    /// Number of steps of the longest.
    pub steps: usize,
    /// Number of threads that read different sequences.
    pub threads: usize,
    /// Number of steps ready to be read.
    pub read: usize,
    /// Number of steps whose predictions are held.
    pub predicted: usize,
}

/// What `purpose`, `run` with a model of `config`, needs besides the model, which is already in memory.
///
/// # Errors
/// When the configuration is not valid.
pub(crate) fn running(purpose: &'static str, config: &ModelConfig, run: Run) -> Result<Estimate> {
    let config = &config.checked()?;
    let (seq_len, threads) = (run.steps.clamp(1, PASS_STEPS), run.threads as u128);
    let pass = Pass::of(config, Sizes { batch_size: 1, seq_len, scored: 0, threads: 1 });
    let states = (run.sessions as u128).saturating_mul(config.cost().carried(run.steps));
    let inputs = (run.read as u128).saturating_mul(config.input_width as u128);
    let outputs = (run.predicted as u128).saturating_mul(config.outputs() as u128);
    let [states, moving] = [states, (pass.forward.saturating_mul(threads)).saturating_add(inputs).saturating_add(outputs)]
        .map(|numbers| numbers.saturating_mul(F32));
    Ok(Estimate::new(purpose, [("states", states, ROWS), ("activations", moving, ROWS), ("program", PROGRAM, NOTHING)]))
}

/// The memory needed to pack weights from a file of `bytes` bytes as `format`: they are held as the bytes of the file and as numbers, and
/// for f32 the parts and the whole of the packed file take more than has been freed by then. Within a tenth of measurements for 24 million
/// weights.
pub fn packing(bytes: u64, format: WeightFormat) -> Estimate {
    let weights = u128::from(bytes);
    let packed = if format == WeightFormat::F32 { weights } else { 0 };
    let parts = [
        ("weights", weights, MODEL),
        ("weights as they are read", weights, MODEL),
        ("packed weights", packed, MODEL),
        ("program", PROGRAM, NOTHING),
    ];
    Estimate::new("packing", parts)
}

/// For parts about which nothing can be done.
pub(crate) const NOTHING: &[&str] = &[];
const MODEL: &[&str] = &["take a smaller model"];
const ROWS: &[&str] = &["take fewer sequences at a time", "a model with smaller states"];
