//! The text that a run held out, as much as is needed to know what level of surprise is usual.

use std::path::PathBuf;

use crate::checkpoint::TOKENIZER_FILE;
use crate::data::{TextData, TokenFile, Tokenizer};
use crate::train::{Experiment, TOKENS_FILE, Task, run_of};
use crate::{Error, Result};
use minrnn_model::{CheckpointFiles, incomplete_tail};

use super::Deployed;

/// Maximum number of tokens.
const ENOUGH: u64 = 1 << 17;

/// What is known about the held-out text.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum HeldOut {
    /// Its beginning.
    Text(Vec<u8>),
    /// It cannot be read, because this file of the run is missing.
    Gone(PathBuf),
    /// Nothing: the model is packed, is outside its run, or was not trained on text.
    Unknown,
}

/// The beginning of the held-out part of the text of the run of `deployed`.
///
/// # Errors
/// When the run's vocabulary or tokens are damaged or cannot be read.
pub fn held_out_text(deployed: &Deployed) -> Result<HeldOut> {
    if deployed.is_packed() {
        return Ok(HeldOut::Unknown);
    }
    let Ok(run) = run_of(&deployed.path) else { return Ok(HeldOut::Unknown) };
    let config = CheckpointFiles::open(&deployed.path)?.config()?;
    let experiment = Experiment::of_checkpoint(&config, &deployed.path)?;
    if experiment.data.task != Task::Text {
        return Ok(HeldOut::Unknown);
    }
    for name in [TOKENIZER_FILE, TOKENS_FILE] {
        let path = run.join(name);
        // A file that cannot be checked may exist, so it is not reported as missing.
        if !path.try_exists().map_err(|source| Error::io("read", &path, source))? {
            return Ok(HeldOut::Gone(path));
        }
    }
    // What the run keeps is enough: the text itself may have grown since, as a log does.
    let (tokenizer, tokens) = (Tokenizer::load(run.join(TOKENIZER_FILE))?, TokenFile::open(run.join(TOKENS_FILE))?);
    tokens.verify()?;
    let text = TextData::new(tokens, experiment.data.train_fraction)?;
    let part = text.test();
    let mut tokens = vec![0; part.len().min(ENOUGH) as usize];
    part.read(0, &mut tokens)?;
    let mut bytes = Vec::new();
    tokens.into_iter().try_for_each(|token| tokenizer.append_bytes(token, &mut bytes))?;
    Ok(HeldOut::Text(whole_characters(bytes)))
}

/// `bytes` without partial characters at both ends, which a cut between tokens may have left there.
fn whole_characters(mut bytes: Vec<u8>) -> Vec<u8> {
    let continues = |byte: &&u8| **byte & 0b1100_0000 == 0b1000_0000;
    // A character has at most three bytes after its first.
    let begun = bytes.iter().take(3).take_while(continues).count();
    bytes.drain(..begun);
    bytes.truncate(bytes.len() - incomplete_tail(&bytes));
    bytes
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn characters_that_were_cut_are_left_out_and_nothing_else() {
        let text = "€a語".as_bytes();
        for (from, to, expected) in [(0, 7, "€a語"), (1, 7, "a語"), (2, 6, "a"), (3, 5, "a"), (0, 4, "€a"), (5, 7, ""), (4, 6, "")] {
            assert_eq!(whole_characters(text[from..to].to_vec()), expected.as_bytes(), "{from}..{to}");
        }
        // Invalid UTF-8 inside is left for others to refuse.
        assert_eq!(whole_characters(b"a\xffb".to_vec()), b"a\xffb");
    }
}
