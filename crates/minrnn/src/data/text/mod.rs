//! A text as training and test parts, and ways to make batches from it.

mod full_pass;
mod random_windows;
mod stateful_stream;

use std::sync::Arc;

pub use full_pass::FullPass;
pub use random_windows::RandomWindows;
pub use stateful_stream::StatefulStream;

use super::TokenFile;
use crate::{Error, Result, Segments};

/// A token file split by position: the first part for training, the rest for testing.
#[derive(Debug, Clone)]
pub struct TextData {
    train: TextPart,
    test: TextPart,
}

impl TextData {
    /// Splits `tokens` after the first ⌊`train_fraction` · N⌋ tokens.
    ///
    /// # Errors
    /// [`Error::Config`] when `train_fraction` is not above 0 and at most 1. A part may be empty; whatever needs tokens from it reports an
    /// error.
    pub fn new(tokens: TokenFile, train_fraction: f64) -> Result<Self> {
        if !(train_fraction > 0.0 && train_fraction <= 1.0) {
            return Err(Error::Config(format!("train_fraction must be above 0 and at most 1, found {train_fraction}")));
        }
        let tokens = Arc::new(tokens);
        let (n, cut) = (tokens.len(), floor_of(train_fraction, tokens.len()));
        let part = |name, start, end| TextPart { tokens: Arc::clone(&tokens), name, start, len: end - start };
        Ok(Self { train: part("train part of the text", 0, cut), test: part("test part of the text", cut, n) })
    }

    /// The first part.
    pub fn train(&self) -> &TextPart {
        &self.train
    }

    /// The rest.
    pub fn test(&self) -> &TextPart {
        &self.test
    }
}

/// A contiguous range of a token file; clones share the open file.
#[derive(Debug, Clone)]
pub struct TextPart {
    tokens: Arc<TokenFile>,
    name: &'static str,
    start: u64,
    len: u64,
}

impl TextPart {
    /// The whole of `tokens` as one part, for a text that is only scored.
    pub fn whole(tokens: TokenFile) -> Self {
        let len = tokens.len();
        Self { tokens: Arc::new(tokens), name: "text", start: 0, len }
    }

    /// Number of tokens `N`.
    pub fn len(&self) -> u64 {
        self.len
    }

    /// Whether there are no tokens.
    pub fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// Number of symbols `V`.
    pub fn vocab_size(&self) -> usize {
        self.tokens.vocab_size()
    }

    /// Fills `out` with the tokens from position `offset` of this part on.
    ///
    /// # Errors
    /// [`Error::Data`] when the range goes past the end of the part; otherwise as [`TokenFile::read`].
    pub fn read(&self, offset: u64, out: &mut [u32]) -> Result<()> {
        if offset.checked_add(out.len() as u64).is_none_or(|end| end > self.len) {
            return Err(Error::Data(format!(
                "the {} has {} tokens, but {} tokens from position {offset} on were asked for",
                self.name,
                self.len,
                out.len()
            )));
        }
        self.tokens.read(self.start + offset, out)
    }

    /// Refuses a part with fewer than `needed` tokens; `purpose` says what needs them, and `remedy` how to need fewer.
    fn expect_len(&self, needed: u64, purpose: &str, remedy: &str) -> Result<()> {
        if self.len >= needed {
            return Ok(());
        }
        Err(Error::Data(format!(
            "the {} has {} tokens, but {purpose} needs at least {needed}; give a longer text, {remedy}",
            self.name, self.len
        )))
    }
}

/// One window per row: `T` tokens from each offset as inputs, and the same shifted by one as targets.
fn read_windows(part: &TextPart, offsets: impl ExactSizeIterator<Item = u64>, seq_len: usize) -> Result<(Vec<u32>, Vec<u32>)> {
    let mut window = vec![0; seq_len + 1];
    let (mut inputs, mut targets) = (Vec::with_capacity(offsets.len() * seq_len), Vec::with_capacity(offsets.len() * seq_len));
    for offset in offsets {
        part.read(offset, &mut window)?;
        inputs.extend_from_slice(&window[..seq_len]);
        targets.extend_from_slice(&window[1..]);
    }
    Ok((inputs, targets))
}

/// Every row is reset before its first step.
fn restart(batch_size: usize) -> Segments {
    Segments::dense().with_resets(vec![vec![0]; batch_size])
}

/// ⌊fraction · n⌋, where a product that misses an integer only by rounding counts as that integer.
fn floor_of(fraction: f64, n: u64) -> u64 {
    let product = fraction * n as f64;
    let nearest = product.round();
    let whole = if (product - nearest).abs() <= 4.0 * f64::EPSILON * nearest { nearest } else { product.floor() };
    (whole as u64).min(n)
}

#[cfg(test)]
mod tests {
    use super::super::TokenWriter;
    use super::*;

    /// A file of `n` tokens: token `i` is `i`.
    pub(super) fn counting(n: u32) -> TokenFile {
        let dir = tempfile::tempdir().unwrap();
        let mut writer = TokenWriter::create(dir.path().join("count.tokens"), n.max(1) as usize).unwrap();
        writer.push(&(0..n).collect::<Vec<_>>()).unwrap();
        writer.finish([0; 32]).unwrap()
    }

    #[test]
    fn the_split_is_the_floor_of_the_exact_product() {
        for (fraction, n, expected) in [
            (0.9, 1_115_394, 1_003_854),
            (0.29, 100, 29),
            (0.7, 10, 7),
            (0.57, 100, 57),
            (0.9, 9, 8),
            (1.0, 5, 5),
            (1e-9, 5, 0),
            (0.5, 0, 0),
        ] {
            assert_eq!(floor_of(fraction, n), expected, "{fraction} of {n}");
        }
    }

    #[test]
    fn the_parts_meet_and_cover_the_text() {
        let data = TextData::new(counting(10), 0.75).unwrap();
        assert_eq!((data.train().len(), data.test().len()), (7, 3));
        let mut ids = [0; 3];
        data.train().read(4, &mut ids).unwrap();
        assert_eq!(ids, [4, 5, 6]);
        data.test().read(0, &mut ids).unwrap();
        assert_eq!(ids, [7, 8, 9]);
        let message = data.train().read(5, &mut ids).unwrap_err().to_string();
        assert!(message.contains("train part") && message.contains("7 tokens"), "{message}");
    }

    #[test]
    fn impossible_fractions_are_refused() {
        for fraction in [0.0, -0.1, 1.1, f64::NAN] {
            assert!(TextData::new(counting(10), fraction).unwrap_err().to_string().contains("train_fraction"));
        }
    }
}
