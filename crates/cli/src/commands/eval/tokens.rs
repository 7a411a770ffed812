//! The tokens of a whole text, for a model that reads it in one pass.

use std::path::Path;
use std::sync::atomic::AtomicBool;

use minrnn::data::{Tokenizer, encode_short_text};

use crate::{input, interrupt};

/// Bytes of the longest text, whose tokens are held in memory.
const MAX_TEXT: u64 = 1 << 30;

/// The tokens of the text `given`, - for standard input, as training cuts it; `None` when `stop` was raised before they were there.
pub fn read(given: &Path, tokenizer: &Tokenizer, stop: &AtomicBool) -> anyhow::Result<Option<Vec<u32>>> {
    let (path, tokenizer) = (input::path(given), tokenizer.clone());
    Ok(interrupt::unless_stopped(stop, move || encode_short_text(path, &tokenizer, MAX_TEXT)).transpose()?)
}
