//! What a model has done since the server began.

use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::time::Duration;

/// Upper bounds of times, in seconds.
pub(crate) const BOUNDS: [f64; 10] = [0.001, 0.003, 0.01, 0.03, 0.1, 0.3, 1.0, 3.0, 10.0, 30.0];

/// Counters and gauges of one model of text.
#[derive(Debug, Default)]
pub(crate) struct Counts {
    /// Prompts accepted, and those refused because too many were waiting.
    pub prompts: AtomicU64,
    pub refused: AtomicU64,
    /// Prompts whose client went away before the end.
    pub left: AtomicU64,
    /// Tokens of prompts, and how many of them a cached state saved reading.
    pub prompt_tokens: AtomicU64,
    pub cached_tokens: AtomicU64,
    pub generated_tokens: AtomicU64,
    /// Passes over the texts being continued, each of which generates one token per text.
    pub steps: AtomicU64,
    /// At present.
    pub waiting: AtomicU64,
    pub running: AtomicU64,
    pub behind: AtomicU64,
    pub cache_entries: AtomicU64,
    pub cache_bytes: AtomicU64,
    /// From a prompt's arrival to its first token.
    pub first_tokens: Times,
}

/// Counters and gauges of one model of tables. Every accepted table ends as answered, wrong, failed or left.
#[derive(Debug, Default)]
pub(crate) struct TableCounts {
    /// Tables accepted, and those refused because too many were waiting.
    pub tables: AtomicU64,
    pub refused: AtomicU64,
    /// Tables that the model cannot read, and those for which something else went wrong.
    pub wrong: AtomicU64,
    pub failed: AtomicU64,
    /// Tables whose client went away before the end.
    pub left: AtomicU64,
    /// At present: tables waiting plus the one whose turn it is, and that one alone.
    pub held: AtomicU64,
    pub running: AtomicU64,
    /// From a table's arrival to its answer.
    pub answered: Times,
}

impl TableCounts {
    /// Tables that wait for their turn.
    pub fn waiting(&self) -> u64 {
        self.held.load(Relaxed).saturating_sub(self.running.load(Relaxed))
    }
}

/// How long something took each time.
#[derive(Debug, Default)]
pub(crate) struct Times {
    /// How many were within each bound but not within the one before, and how many took longer.
    counts: [AtomicU64; BOUNDS.len() + 1],
    micros: AtomicU64,
}

impl Times {
    /// Adds one time.
    pub fn add(&self, took: Duration) {
        let at = BOUNDS.iter().position(|bound| took.as_secs_f64() <= *bound).unwrap_or(BOUNDS.len());
        self.counts[at].fetch_add(1, Relaxed);
        self.micros.fetch_add(took.as_micros() as u64, Relaxed);
    }

    /// How many times were within each bound, then the number of all, and the sum of the times in seconds.
    pub fn within(&self) -> ([u64; BOUNDS.len() + 1], f64) {
        let mut sum = 0;
        let within = self.counts.each_ref().map(|count| {
            sum += count.load(Relaxed);
            sum
        });
        (within, self.micros.load(Relaxed) as f64 / 1e6)
    }
}

/// Adds to a counter.
pub(crate) fn add(counter: &AtomicU64, n: usize) {
    counter.fetch_add(n as u64, Relaxed);
}

/// Sets a gauge.
pub(crate) fn set(gauge: &AtomicU64, n: usize) {
    gauge.store(n as u64, Relaxed);
}
