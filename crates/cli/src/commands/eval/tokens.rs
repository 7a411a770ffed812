//! The tokens of a whole text, for a model that reads it in one pass, and whether those of two models are the same.

use std::path::Path;
use std::sync::atomic::AtomicBool;

use minrnn::data::{Tokenizer, encode_short_text};

use crate::failure::WrongInput;
use crate::{input, interrupt};

/// Bytes of the longest text, whose tokens are held in memory.
const MAX_TEXT: u64 = 1 << 30;

/// The tokens of the text `given`, - for standard input, cut as in training; `None` when `stop` was raised before they were there.
pub fn read(given: &Path, tokenizer: &Tokenizer, stop: &AtomicBool) -> anyhow::Result<Option<Vec<u32>>> {
    let (path, tokenizer) = (input::path(given), tokenizer.clone());
    Ok(interrupt::unless_stopped(stop, move || encode_short_text(path, &tokenizer, MAX_TEXT)).transpose()?)
}

/// Refuses a text of `found` tokens if they leave nothing to predict, without the advice that training gives.
pub fn expect_two(found: u64) -> anyhow::Result<()> {
    match found {
        0 | 1 => Err(WrongInput(format!("expected a text of at least 2 tokens, one to predict from the other, found {found}")).into()),
        _ => Ok(()),
    }
}

/// Refuses to compare the tokens of two models if a number stands for different texts in them.
pub fn expect_comparable(one: &Tokenizer, other: Option<&Tokenizer>) -> anyhow::Result<()> {
    let Some(other) = other else {
        return Err(WrongInput(
            "the other model has no vocabulary, so that its tokens cannot be compared; give a model of text with its tokenizer.json"
                .to_owned(),
        )
        .into());
    };
    let (size, found) = (one.vocab_size(), other.vocab_size());
    if size != found {
        let sentence =
            format!("the models have vocabularies of different sizes ({size} and {found} tokens), so their tokens cannot be compared");
        return Err(WrongInput(sentence).into());
    }
    let text = |tokenizer: &Tokenizer, token: u32| -> minrnn::Result<Vec<u8>> {
        let mut bytes = Vec::new();
        tokenizer.append_bytes(token, &mut bytes)?;
        Ok(bytes)
    };
    for token in 0..u32::try_from(size).unwrap_or(u32::MAX) {
        let (one, other) = (text(one, token)?, text(other, token)?);
        if one != other {
            let [one, other] = [one, other].map(|bytes| format!("{:?}", String::from_utf8_lossy(&bytes)));
            let sentence = format!(
                "the models have different vocabularies, so their tokens cannot be compared: token {token} is {one} to one and {other} to the other"
            );
            return Err(WrongInput(sentence).into());
        }
    }
    Ok(())
}
