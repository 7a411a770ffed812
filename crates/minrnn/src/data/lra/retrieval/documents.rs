//! Texts, each kept once regardless of how many pairs it occurs in, and the token ids of their letters.

use std::collections::{BTreeSet, HashMap};
use std::hash::{BuildHasher, BuildHasherDefault, DefaultHasher};

use serde::{Deserialize, Serialize};

/// What a token is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum TextUnit {
    /// A character: 0 is padding, 1 any character that is not in the training part, 2 the end, followed by the characters of the training
    /// part in order.
    #[default]
    Char,
    /// A byte: 0 is padding, b + 1 stands for b, 257 is the end.
    Byte,
}

/// Texts, one after the other in memory.
#[derive(Debug, Default)]
pub(super) struct Documents {
    text: Vec<u8>,
    /// Where each one ends.
    ends: Vec<usize>,
    /// The first document of each hash.
    by_hash: HashMap<u64, u32>,
}

impl Documents {
    /// The number of the document `text`, which is added if it is new.
    pub(super) fn insert(&mut self, text: &[u8]) -> u32 {
        let hash = BuildHasherDefault::<DefaultHasher>::default().hash_one(text);
        if let Some(&known) = self.by_hash.get(&hash)
            && self.get(known) == text
        {
            return known;
        }
        let number = self.ends.len() as u32;
        self.text.extend_from_slice(text);
        self.ends.push(self.text.len());
        self.by_hash.entry(hash).or_insert(number);
        number
    }

    pub(super) fn get(&self, number: u32) -> &[u8] {
        let i = number as usize;
        let start = if i == 0 { 0 } else { self.ends[i - 1] };
        &self.text[start..self.ends[i]]
    }

    pub(super) fn len(&self) -> usize {
        self.ends.len()
    }
}

/// The token ids of texts.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Vocabulary {
    Bytes,
    /// The known characters in ascending order.
    Characters(Vec<char>),
}

const UNKNOWN: u32 = 1;
const END_OF_CHARACTERS: u32 = 2;
const FIRST_CHARACTER: u32 = 3;
const END_OF_BYTES: u32 = 257;

impl Vocabulary {
    /// The ids of `unit`; only characters that occur in `texts` are known.
    pub(super) fn new<'a>(unit: TextUnit, texts: impl Iterator<Item = &'a [u8]>) -> Self {
        match unit {
            TextUnit::Byte => Self::Bytes,
            TextUnit::Char => {
                let mut known = BTreeSet::new();
                for text in texts {
                    known.extend(characters(text));
                }
                Self::Characters(known.into_iter().collect())
            }
        }
    }

    /// Number of token ids.
    pub(super) fn size(&self) -> usize {
        match self {
            Self::Bytes => END_OF_BYTES as usize + 1,
            Self::Characters(known) => FIRST_CHARACTER as usize + known.len(),
        }
    }

    /// Number of tokens of `text`, including its end.
    pub(super) fn n_tokens(&self, text: &[u8]) -> usize {
        1 + match self {
            Self::Bytes => text.len(),
            Self::Characters(_) => characters(text).count(),
        }
    }

    /// Appends the token ids of `text`, including its end.
    pub(super) fn encode(&self, text: &[u8], out: &mut Vec<u32>) {
        match self {
            Self::Bytes => {
                out.extend(text.iter().map(|&byte| u32::from(byte) + 1));
                out.push(END_OF_BYTES);
            }
            Self::Characters(known) => {
                let id = |c: char| known.binary_search(&c).map_or(UNKNOWN, |at| FIRST_CHARACTER + at as u32);
                out.extend(characters(text).map(id));
                out.push(END_OF_CHARACTERS);
            }
        }
    }
}

/// The characters of a text that was checked when it was read.
fn characters(text: &[u8]) -> impl Iterator<Item = char> {
    std::str::from_utf8(text).unwrap_or_default().chars()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn equal_texts_are_kept_once() {
        let mut documents = Documents::default();
        let numbers: Vec<u32> = ["one", "two", "one", "", "two"].iter().map(|text| documents.insert(text.as_bytes())).collect();
        assert_eq!(numbers, [0, 1, 0, 2, 1]);
        assert_eq!((documents.get(1), documents.get(2), documents.len()), (&b"two"[..], &b""[..], 3));
    }

    #[test]
    fn letters_have_the_documented_ids() {
        let vocabulary = Vocabulary::new(TextUnit::Char, [&b"ba"[..], "é".as_bytes()].into_iter());
        let mut ids = Vec::new();
        vocabulary.encode("abé?".as_bytes(), &mut ids);
        assert_eq!((ids, vocabulary.size()), (vec![3, 4, 5, 1, 2], 6));
        let (vocabulary, mut ids) = (Vocabulary::new(TextUnit::Byte, std::iter::empty()), Vec::new());
        vocabulary.encode("aé".as_bytes(), &mut ids);
        assert_eq!((ids, vocabulary.size()), (vec![98, 196, 170, 257], 258));
    }
}
