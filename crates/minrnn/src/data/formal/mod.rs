//! Formal languages: short programs that a sequence model should learn to run, on strings longer than it was trained on.
//!
//! Each language has a file with its [`Rules`]: how to draw a string of a length and what the answer is. Three protocols are in use, which
//! differ in alphabets and in where the answer is read:
//!
//! | protocol | string | answer |
//! |---|---|---|
//! | `authors` (of minGRU and minLSTM) | data, then one query token for each answer; one length for a batch | at the queries |
//! | `xlstm` | data, then the answers' places; every row has its own length, which counts the answers | at the step before each place |
//! | `deep-mind` (the Chomsky-hierarchy benchmark) | as the first, with smaller alphabets | at the queries, up to the terminator |
//!
//! Accuracy is the share of right answers; [`FormalTask::chance`] is what guessing gives, so that (accuracy − chance) / (1 − chance) is
//! comparable between languages.

mod binary_arithmetic;
mod bucket_sort;
mod cycle_navigation;
mod even_pairs;
mod expression;
mod generalization;
mod majority;
mod missing_duplicate;
mod modular_arithmetic;
mod one_length;
mod parity;
mod set;
mod solve_equation;
mod stack_manipulation;
mod strings;

pub use generalization::Generalization;
pub use one_length::OneLength;
use rand::{Rng, RngExt};
use serde::{Deserialize, Serialize};

use super::batch::check_shape;
use super::{Batch, BatchSource};
use crate::rng::{self, ChaCha8Rng, Purpose};
use crate::{Error, Result, Segments};

/// Longest strings; some languages are generated recursively.
const MAX_LENGTH: usize = 4096;

/// Which alphabet a language has and where its answer is read.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Protocol {
    /// As the authors of minGRU and minLSTM generate them.
    #[default]
    Authors,
    /// As the xLSTM study does.
    Xlstm,
    /// As DeepMind's study of the Chomsky hierarchy does.
    DeepMind,
}

/// Lists the languages: variant, its name in files, its rules.
macro_rules! languages {
    ($($(#[$doc:meta])* $variant:ident = $name:literal: $rules:expr,)+) => {
        /// What is asked of a string.
        #[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
        pub enum Language {
            $($(#[$doc])* #[serde(rename = $name)] $variant,)+
        }

        impl Language {
            /// Every language.
            pub const ALL: &'static [Self] = &[$(Self::$variant,)+];

            /// The name in files.
            pub fn name(self) -> &'static str {
                match self {
                    $(Self::$variant => $name,)+
                }
            }

            fn rules(self) -> &'static dyn Rules {
                match self {
                    $(Self::$variant => &$rules,)+
                }
            }
        }
    };
}

languages! {
    /// The symbols in ascending order.
    BucketSort = "bucket-sort": bucket_sort::BucketSort,
    /// A string twice, with one symbol of the copy missing: which one?
    MissingDuplicate = "missing-duplicate": missing_duplicate::MissingDuplicate,
    /// Steps on a cycle of five places: where do they end?
    CycleNavigation = "cycle-navigation": cycle_navigation::CycleNavigation,
    /// Is the number of neighbours that differ even?
    EvenPairs = "even-pairs": even_pairs::EvenPairs,
    /// Is the number of ones even?
    #[default]
    Parity = "parity": parity::Parity,
    /// The most frequent symbol.
    Majority = "majority": majority::Majority { count: false },
    /// How often the most frequent symbol occurs.
    MajorityCount = "majority-count": majority::Majority { count: true },
    /// The value of a sum of products modulo 5.
    ModularArithmetic = "modular-arithmetic": modular_arithmetic::Flat,
    /// The same with brackets.
    ModularArithmeticBrackets = "modular-arithmetic-brackets": modular_arithmetic::Brackets,
    /// The digit that solves an equation modulo 5.
    SolveEquation = "solve-equation": solve_equation::SolveEquation,
    /// The string backwards.
    ReverseString = "reverse-string": strings::Reverse,
    /// The string again.
    DuplicateString = "duplicate-string": strings::Duplicate,
    /// Every second symbol, then the others.
    OddsFirst = "odds-first": strings::OddsFirst,
    /// The distinct symbols in the order of their first occurrence.
    Set = "set": set::Set,
    /// The stack after pushes and pops.
    StackManipulation = "stack-manipulation": stack_manipulation::StackManipulation,
    /// The sum of two binary numbers.
    BinaryAddition = "binary-addition": binary_arithmetic::Addition,
    /// The product of two binary numbers.
    BinaryMultiplication = "binary-multiplication": binary_arithmetic::Multiplication,
    /// The whole part of the square root of a binary number.
    SquareRoot = "square-root": binary_arithmetic::SquareRoot,
}

/// The token ids of a language in one protocol.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Alphabet {
    /// Ids of data tokens are below this; with `xlstm` that is the whole vocabulary, of which 0 is padding.
    symbols: u32,
    /// Number of answers to guess from.
    classes: u32,
}

/// A string and its answer.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Example {
    input: Vec<u32>,
    answer: Vec<u32>,
    /// How many of the first answers count.
    scored: usize,
}

impl Example {
    /// One whose answers all count.
    fn new(input: Vec<u32>, answer: Vec<u32>) -> Self {
        let scored = answer.len();
        Self { input, answer, scored }
    }
}

/// A language.
trait Rules: Sync {
    /// The token ids; none where the protocol does not know the language.
    fn alphabet(&self, protocol: Protocol) -> Option<Alphabet>;

    /// A random string. `length`, at least 1, counts its data tokens, with `xlstm` everything. `shared` is a random number for the whole
    /// batch.
    fn example(&self, protocol: Protocol, length: usize, shared: u64, rng: &mut ChaCha8Rng) -> Example;
}

/// `n` numbers, uniform in `from..to`.
fn uniform(n: usize, from: u32, to: u32, rng: &mut ChaCha8Rng) -> Vec<u32> {
    (0..n).map(|_| rng.random_range(from..to)).collect()
}

/// A language, a protocol and a range of lengths. The defaults are the paper's for training.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct FormalTask {
    /// What is asked. Default `parity`.
    pub language: Language,
    /// Alphabet, and where the answer is read. Default `authors`.
    pub protocol: Protocol,
    /// Least length of a string. Default 1.
    pub min_length: usize,
    /// Greatest length of a string. Default 40.
    pub max_length: usize,
}

impl Default for FormalTask {
    fn default() -> Self {
        Self { language: Language::Parity, protocol: Protocol::Authors, min_length: 1, max_length: 40 }
    }
}

impl FormalTask {
    /// Checks that such strings exist.
    ///
    /// # Errors
    /// [`Error::Config`] when the protocol does not define the language or the lengths are out of range.
    pub fn validate(&self) -> Result<()> {
        self.alphabet()?;
        if 1 <= self.min_length && self.min_length <= self.max_length && self.max_length <= MAX_LENGTH {
            return Ok(());
        }
        Err(Error::Config(format!(
            "a formal language needs 1 ≤ min_length ≤ max_length ≤ {MAX_LENGTH}, found {} and {}",
            self.min_length, self.max_length
        )))
    }

    /// Number of token ids V, for inputs and answers alike.
    ///
    /// # Errors
    /// When the protocol does not define the language.
    pub fn vocab_size(&self) -> Result<usize> {
        let Alphabet { symbols, classes } = self.alphabet()?;
        Ok(match self.protocol {
            Protocol::Xlstm => symbols,
            Protocol::Authors | Protocol::DeepMind => (symbols + 1).max(classes),
        } as usize)
    }

    /// The accuracy of guessing.
    ///
    /// # Errors
    /// When the protocol does not define the language.
    pub fn chance(&self) -> Result<f64> {
        Ok(1.0 / f64::from(self.alphabet()?.classes))
    }

    fn alphabet(&self) -> Result<Alphabet> {
        self.language.rules().alphabet(self.protocol).ok_or_else(|| {
            let known = Language::ALL.iter().filter(|language| language.rules().alphabet(self.protocol).is_some());
            let known: Vec<_> = known.map(|language| language.name()).collect();
            let protocol = serde_json::to_string(&self.protocol).unwrap_or_default();
            Error::Config(format!("the protocol {protocol} has no '{}'; it has {}", self.language.name(), known.join(", ")))
        })
    }
}

/// Batches of a formal language, made anew for every iteration.
#[derive(Debug, Clone)]
pub struct FormalLanguage {
    task: FormalTask,
    batch_size: usize,
    seed: u64,
    purpose: Purpose,
}

impl FormalLanguage {
    /// Strings of `task`. For evaluation give another `purpose` (or `seed`) and wrap it in [`super::FixedBatches`].
    ///
    /// # Errors
    /// [`Error::Config`] when `task` is not valid, `batch_size` is 0, or a batch would be too large.
    pub fn new(task: FormalTask, batch_size: usize, seed: u64, purpose: Purpose) -> Result<Self> {
        task.validate()?;
        // Strings with their answers, the longest answer being the string twice and a terminator.
        check_shape(batch_size, 3 * task.max_length + 2)?;
        Ok(Self { task, batch_size, seed, purpose })
    }
}

impl BatchSource for FormalLanguage {
    fn batch(&mut self, iteration: u64, micro: u64) -> Result<Batch> {
        let FormalTask { language, protocol, min_length, max_length } = self.task;
        let query = self.task.alphabet()?.symbols;
        let mut rng = rng::substream(self.seed, self.purpose, iteration, micro);
        let draw = |rng: &mut ChaCha8Rng| rng.random_range(min_length as u64..=max_length as u64) as usize;
        let (common, shared) = (draw(&mut rng), rng.next_u64());
        let rows: Vec<Laid> = (0..self.batch_size)
            .map(|_| {
                let length = if protocol == Protocol::Xlstm { draw(&mut rng) } else { common };
                Laid::out(language.rules().example(protocol, length, shared, &mut rng), protocol, query)
            })
            .collect();
        Ok(side_by_side(&rows))
    }

    fn tokens_per_batch(&self) -> usize {
        self.batch_size * self.task.max_length
    }
}

/// A string as the model reads it.
struct Laid {
    inputs: Vec<u32>,
    /// The step at which the first answer is read.
    first: usize,
    answer: Vec<u32>,
    scored: usize,
}

impl Laid {
    fn out(example: Example, protocol: Protocol, query: u32) -> Self {
        let Example { mut input, answer, scored } = example;
        let n = input.len();
        let (first, blank, blanks) = match protocol {
            Protocol::Xlstm => (n.saturating_sub(1), 0, answer.len().saturating_sub(1)),
            Protocol::Authors | Protocol::DeepMind => (n, query, answer.len()),
        };
        input.resize(n + blanks, blank);
        Self { inputs: input, first, answer, scored }
    }
}

/// Rows padded at their ends.
fn side_by_side(rows: &[Laid]) -> Batch {
    let lengths: Vec<usize> = rows.iter().map(|row| row.inputs.len()).collect();
    let (batch_size, seq_len) = (rows.len(), lengths.iter().copied().max().unwrap_or(0));
    let (mut inputs, mut targets) = (vec![0; batch_size * seq_len], vec![0; batch_size * seq_len]);
    let mut mask = vec![0.0; batch_size * seq_len];
    for (b, row) in rows.iter().enumerate() {
        let start = b * seq_len;
        inputs[start..start + row.inputs.len()].copy_from_slice(&row.inputs);
        targets[start + row.first..][..row.answer.len()].copy_from_slice(&row.answer);
        mask[start + row.first..][..row.scored].fill(1.0);
    }
    let segments = if lengths.iter().all(|&length| length == seq_len) { Segments::dense() } else { Segments::from_lengths(lengths) };
    Batch { inputs: inputs.into(), targets: targets.into(), mask: Some(mask), segments, batch_size, seq_len }
}

#[cfg(test)]
mod tests;
