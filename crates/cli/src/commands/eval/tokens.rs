//! The tokens of a whole text, for a model that reads it in one pass.

use std::fs::metadata;
use std::path::Path;
use std::sync::atomic::AtomicBool;

use anyhow::Context;
use minrnn::data::{Tokenizer, encode_text};

use crate::failure::WrongInput;
use crate::{input, interrupt};

/// Bytes of the longest text, whose tokens are held in memory.
const MAX_TEXT: u64 = 1 << 30;

/// The tokens of the text `given`, - for standard input, as training cuts it; `None` when `stop` was raised before they were there.
pub fn read(given: &Path, tokenizer: &Tokenizer, stop: &AtomicBool) -> anyhow::Result<Option<Vec<u32>>> {
    let path = input::path(given);
    if metadata(&path).is_ok_and(|found| found.is_file() && found.len() > MAX_TEXT) {
        let (shown, most) = (path.display(), MAX_TEXT >> 20);
        return Err(WrongInput(format!("'{shown}' has more than {most} MiB, the most that is read in one pass; give a part of it")).into());
    }
    // The folder holds the tokens until all are read.
    let folder = tempfile::tempdir().context("could not create a temporary directory")?;
    let (tokenizer, file) = (tokenizer.clone(), folder.path().join("text.tokens"));
    let read = move || -> minrnn::Result<Vec<u32>> {
        let encoded = encode_text(path, &tokenizer, file)?;
        let mut tokens = vec![0; encoded.len() as usize];
        encoded.read(0, &mut tokens)?;
        Ok(tokens)
    };
    Ok(interrupt::unless_stopped(stop, read).transpose()?)
}
