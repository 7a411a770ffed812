//! A vocabulary of characters, sorted by code point; the id is the rank.

use alloc::{boxed::Box, format, string::String, vec, vec::Vec};
use core::fmt;

use crate::{Error, Result};

const UNKNOWN: u32 = u32::MAX;

/// The distinct characters of a text in ascending order of code point.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Characters {
    sorted: Vec<char>,
    /// Ids of the ASCII characters, `UNKNOWN` where absent: the common case without a search.
    ascii: Box<[u32; 128]>,
}

impl Characters {
    /// Characters given in strictly ascending order, as they are stored.
    pub(super) fn from_sorted(characters: &str) -> Result<Self, String> {
        let sorted: Vec<char> = characters.chars().collect();
        if sorted.is_empty() {
            return Err(
                "is a character tokenizer with no character in it; take this model's own tokenizer.json, as its other checkpoints have it"
                    .into(),
            );
        }
        if let Some(pair) = sorted.windows(2).find(|pair| pair[0] >= pair[1]) {
            return Err(format!(
                "lists its characters out of order ({:?} before {:?}), so ids would not mean what the model learned; take this model's own tokenizer.json, as its other checkpoints have it",
                pair[0], pair[1]
            ));
        }
        Ok(Self::new(sorted))
    }

    fn new(sorted: Vec<char>) -> Self {
        let mut ascii = Box::new([UNKNOWN; 128]);
        for (id, &c) in sorted.iter().enumerate().take_while(|(_, c)| c.is_ascii()) {
            ascii[c as usize] = id as u32;
        }
        Self { sorted, ascii }
    }

    /// Number of characters.
    pub(super) fn len(&self) -> usize {
        self.sorted.len()
    }

    /// The character of `id`.
    pub fn get(&self, id: u32) -> Option<char> {
        self.sorted.get(id as usize).copied()
    }

    /// The id of `character`.
    pub fn id_of(&self, character: char) -> Option<u32> {
        match self.ascii.get(character as usize) {
            Some(&UNKNOWN) => None,
            Some(&id) => Some(id),
            None => self.sorted.binary_search(&character).ok().map(|id| id as u32),
        }
    }

    /// For a character that editors insert invisibly, its likely origin, to be appended to the message that it is not known; for others an
    /// empty text.
    pub fn origin(character: char) -> &'static str {
        match character {
            '\u{feff}' => ": it is a byte-order mark, with which texts begin that were saved as UTF-8 with BOM; save it without",
            '\r' => ": it is a carriage return, mostly of line ends in CR LF, as on Windows; save the text with line ends in LF",
            _ => "",
        }
    }

    pub(super) fn encode_into(&self, text: &str, chars_before: u64, ids: &mut Vec<u32>) -> Result<()> {
        for (i, c) in text.chars().enumerate() {
            match self.id_of(c) {
                Some(id) => ids.push(id),
                None => {
                    let remedy = match Self::origin(c) {
                        "" => "; leave it out, or train with tokenizer = \"byte\" or \"bpe\", which take any text",
                        origin => origin,
                    };
                    return Err(Error::Text(format!(
                        "character {} of the text is {c:?} (U+{:04X}), which is not among the {} characters this vocabulary was made from{remedy}",
                        chars_before + i as u64 + 1,
                        c as u32,
                        self.sorted.len(),
                    )));
                }
            }
        }
        Ok(())
    }
}

impl fmt::Display for Characters {
    /// All characters, in order.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.sorted.iter().try_for_each(|c| write!(f, "{c}"))
    }
}

/// The characters seen so far: one bit per code point.
#[derive(Debug, Clone)]
pub struct Seen {
    bits: Vec<u64>,
}

impl Default for Seen {
    fn default() -> Self {
        Self { bits: vec![0; (char::MAX as usize + 1).div_ceil(64)] }
    }
}

impl Seen {
    /// Adds the characters of `text`.
    pub fn add(&mut self, text: &str) {
        for c in text.chars() {
            self.bits[c as usize / 64] |= 1 << (c as usize % 64);
        }
    }

    /// The vocabulary of all characters seen.
    pub fn into_characters(self) -> Characters {
        Characters::new(
            (0..=char::MAX as u32).filter(|&c| self.bits[c as usize / 64] >> (c % 64) & 1 == 1).filter_map(char::from_u32).collect(),
        )
    }
}

#[cfg(test)]
mod tests {
    use alloc::string::ToString;

    use super::super::Tokenizer;

    #[test]
    fn ids_are_ranks_by_code_point() {
        let tokenizer = Tokenizer::characters_of("zebra é\n日");
        assert_eq!(tokenizer.vocab_size(), 9);
        assert_eq!(tokenizer.encode("\n abez").unwrap(), [0, 1, 2, 3, 4, 6]);
        assert_eq!(tokenizer.encode("é日").unwrap(), [7, 8]);
    }

    #[test]
    fn characters_that_editors_do_not_show_are_told_by_what_they_are() {
        let tokenizer = Tokenizer::characters_of("ab\n");
        let refused = |text: &str| tokenizer.encode(text).unwrap_err().to_string();
        assert!(refused("\u{feff}ab").contains("made from: it is a byte-order mark"), "{}", refused("\u{feff}ab"));
        assert!(refused("ab\r\nab\r\n").contains("made from: it is a carriage return"), "{}", refused("ab\r\n"));
        assert!(refused("abc").contains("made from; leave it out"), "{}", refused("abc"));
    }

    #[test]
    fn an_unknown_character_is_named_with_its_position_and_a_way_out() {
        let tokenizer = Tokenizer::characters_of("abc");
        for (text, position, name) in [("abXc", 3, "'X' (U+0058)"), ("é", 1, "'é' (U+00E9)")] {
            let message = tokenizer.encode(text).unwrap_err().to_string();
            assert!(message.contains(&format!("character {position} of the text is {name}")), "{message}");
            assert!(message.contains("among the 3 characters") && message.contains("byte"), "{message}");
        }
    }
}
