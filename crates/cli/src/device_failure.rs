//! What a GPU driver reports by a panic, as a sentence.

use std::panic::{self, AssertUnwindSafe};
use std::sync::{Arc, Mutex};

use minrnn::device;

/// What helps if memory is short.
const LOWER: &str = "lower batch_size (a larger accumulation keeps the updates as they are), seq_len, d_model or n_layers, or set \
                     checkpoint_blocks = true";

/// Phrases by which drivers and their libraries report that memory is short.
const OUT_OF_MEMORY: [&str; 4] = ["out of device memory", "out-of-memory", "out of memory", "can't allocate"];

/// A device that failed.
#[derive(Debug, PartialEq, Eq)]
struct DeviceFailure {
    /// What its driver said, in the order it said it.
    said: Vec<String>,
}

impl std::fmt::Display for DeviceFailure {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let short = |said: &&String| OUT_OF_MEMORY.iter().any(|phrase| said.to_lowercase().contains(phrase));
        if let Some(said) = self.said.iter().find(short) {
            let size = bytes(said).map_or(String::new(), |size| format!(" where a tensor of {} MiB was to be made", size >> 20));
            return write!(f, "the device ran out of memory{size}; {LOWER}");
        }
        let said = self.said.first().map_or("its driver gave no reason", String::as_str);
        write!(f, "the device could not go on: {said}; if the model is too large for it, {LOWER}; RUST_BACKTRACE=1 shows where it happened")
    }
}

impl std::error::Error for DeviceFailure {}

/// The number of bytes that a message names.
fn bytes(said: &str) -> Option<u64> {
    let numbers = said.split(|c: char| !c.is_ascii_digit()).filter_map(|digits| digits.parse().ok());
    numbers.max().filter(|&size| size >= 1 << 20)
}

/// Runs a command, and turns a panic while a GPU is in use into an error.
pub fn explained<T>(command: impl FnOnce() -> anyhow::Result<T>) -> anyhow::Result<T> {
    if device::built_with().len() < 2 {
        return command();
    }
    let said = Arc::new(Mutex::new(Vec::new()));
    let default = panic::take_hook();
    let hook = said.clone();
    panic::set_hook(Box::new(move |info| {
        if device::is_gpu_open() {
            let message = info.payload_as_str().unwrap_or_default();
            // The lines after an empty one are a backtrace or notes on it.
            let message = message.trim().split("\n\n").next().unwrap_or_default().replace('\n', " ");
            if let Ok(mut said) = hook.lock() {
                said.push(message);
            }
        }
        if !device::is_gpu_open() || std::env::var_os("RUST_BACKTRACE").is_some_and(|value| value != "0") {
            default(info);
        }
    }));
    match panic::catch_unwind(AssertUnwindSafe(command)) {
        Ok(outcome) => outcome,
        Err(_) if device::is_gpu_open() => {
            let said = said.lock().map(|said| said.clone()).unwrap_or_default();
            Err(DeviceFailure { said }.into())
        }
        Err(panic) => panic::resume_unwind(panic),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sentence(said: &[&str]) -> String {
        DeviceFailure { said: said.iter().map(|&said| said.to_owned()).collect() }.to_string()
    }

    #[test]
    fn memory_that_is_short_is_told_with_its_size_and_what_to_lower() {
        let sentence = sentence(&["a queue was closed", "out of device memory allocating 4294967296 bytes"]);
        assert!(
            sentence.starts_with("the device ran out of memory where a tensor of 4096 MiB was to be made; lower batch_size"),
            "{sentence}"
        );
        assert!(!sentence.contains("queue"), "{sentence}");
    }

    #[test]
    fn memory_that_is_short_is_told_without_a_size_where_none_is_known() {
        let sentence = sentence(&["An out-of-memory error happened during launch"]);
        assert!(sentence.starts_with("the device ran out of memory; lower batch_size"), "{sentence}");
    }

    #[test]
    fn any_other_failure_is_told_in_the_words_of_the_driver() {
        let sentence = sentence(&["Cube count too big (65600, 512, 1)", "a queue was closed"]);
        assert!(sentence.starts_with("the device could not go on: Cube count too big (65600, 512, 1); if"), "{sentence}");
    }
}
