//! What a model has done since the server began.

use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::time::Duration;

/// Upper bounds of the times until a first token, in seconds.
pub(crate) const FIRST_TOKEN_BOUNDS: [f64; 10] = [0.001, 0.003, 0.01, 0.03, 0.1, 0.3, 1.0, 3.0, 10.0, 30.0];

/// Counters and gauges of one model.
#[derive(Debug, Default)]
pub(crate) struct Counts {
    /// Prompts taken, and those refused because too many waited.
    pub prompts: AtomicU64,
    pub refused: AtomicU64,
    /// Prompts whose client went away before the end.
    pub left: AtomicU64,
    /// Tokens of prompts, and how many of them a cached state saved reading.
    pub prompt_tokens: AtomicU64,
    pub cached_tokens: AtomicU64,
    pub generated_tokens: AtomicU64,
    /// Passes over the texts that are continued, each giving one token of all.
    pub steps: AtomicU64,
    /// As of now.
    pub waiting: AtomicU64,
    pub running: AtomicU64,
    pub behind: AtomicU64,
    pub cache_entries: AtomicU64,
    pub cache_bytes: AtomicU64,
    /// How many first tokens came within each bound and behind all of them, and the sum of their times.
    first_tokens: [AtomicU64; FIRST_TOKEN_BOUNDS.len() + 1],
    first_token_micros: AtomicU64,
}

impl Counts {
    /// A first token came so long after its request.
    pub fn first_token(&self, after: Duration) {
        let at = FIRST_TOKEN_BOUNDS.iter().position(|bound| after.as_secs_f64() <= *bound).unwrap_or(FIRST_TOKEN_BOUNDS.len());
        self.first_tokens[at].fetch_add(1, Relaxed);
        self.first_token_micros.fetch_add(after.as_micros() as u64, Relaxed);
    }

    /// How many first tokens came within each bound and within any, and the sum of their times in seconds.
    pub fn first_tokens(&self) -> ([u64; FIRST_TOKEN_BOUNDS.len() + 1], f64) {
        let mut sum = 0;
        let within = self.first_tokens.each_ref().map(|count| {
            sum += count.load(Relaxed);
            sum
        });
        (within, self.first_token_micros.load(Relaxed) as f64 / 1e6)
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
