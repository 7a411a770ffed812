//! Text that arrives in pieces of bytes: a piece may end inside a character.

use alloc::vec::Vec;

use super::{Tokenizer, TokenizerKind, incomplete_tail};

/// Vocabularies of pieces read whole lines, but none longer than this.
const LONGEST_LINE: usize = 1 << 20;

/// Bytes of a text that cannot be encoded yet.
///
/// An incomplete character waits for the rest. With a vocabulary that has tokens of several characters, so does a line: its tokens depend
/// on what follows.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct TextInput {
    pending: Vec<u8>,
}

impl TextInput {
    /// A new, empty input.
    pub fn new() -> Self {
        Self::default()
    }

    /// The bytes that wait.
    pub fn pending(&self) -> &[u8] {
        &self.pending
    }

    /// Takes the next `bytes` of the text, and returns those that can be encoded.
    pub fn push(&mut self, tokenizer: &Tokenizer, bytes: &[u8]) -> Vec<u8> {
        let waiting = self.pending.len();
        self.pending.extend_from_slice(bytes);
        let complete = self.pending.len() - incomplete_tail(&self.pending);
        let ready = match tokenizer.kind() {
            // The bytes that wait contain no end of a line.
            TokenizerKind::Bpe if complete < LONGEST_LINE => bytes.iter().rposition(|&byte| byte == b'\n').map_or(0, |at| waiting + at + 1),
            _ => complete,
        };
        self.pending.drain(..ready).collect()
    }

    /// Returns the bytes that wait, at the end of the text.
    pub fn finish(&mut self) -> Vec<u8> {
        core::mem::take(&mut self.pending)
    }

    /// Undoes the last [`push`](Self::push), and any [`finish`](Self::finish) after it: `given` is everything they returned, and `waiting`
    /// the number of bytes that waited before.
    pub fn take_back(&mut self, mut given: Vec<u8>, waiting: usize) {
        if !given.is_empty() {
            given.append(&mut self.pending);
            self.pending = given;
        }
        self.pending.truncate(waiting);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bytes_that_no_others_can_complete_do_not_wait() {
        for flaw in [b"a\xe0\x80", b"aa\xf8"] {
            let mut input = TextInput::new();
            assert_eq!((input.push(&Tokenizer::Byte, flaw), input.pending()), (flaw.to_vec(), &[][..]));
        }
    }

    #[test]
    fn what_is_taken_back_was_never_there() {
        let text = "a日é🦀\nb日";
        for tokenizer in [Tokenizer::characters_of(text), Tokenizer::Byte] {
            for (cut, is_last) in (0..=text.len()).flat_map(|cut| [(cut, false), (cut, true)]) {
                let (front, rest) = text.as_bytes().split_at(cut);
                let mut input = TextInput::new();
                input.push(&tokenizer, front);
                let before = input.clone();
                let mut given = input.push(&tokenizer, rest);
                if is_last {
                    given.extend(input.finish());
                }
                input.take_back(given, before.pending().len());
                assert_eq!(input, before, "{cut}");
            }
        }
    }

    #[test]
    fn pieces_cut_anywhere_encode_to_the_tokens_of_the_whole() {
        let text = "a日é🦀\nb";
        for tokenizer in [Tokenizer::characters_of(text), Tokenizer::Byte] {
            for cut in 0..=text.len() {
                let (mut input, mut tokens) = (TextInput::new(), Vec::new());
                for piece in [&text.as_bytes()[..cut], &text.as_bytes()[cut..]] {
                    tokenizer.encode_bytes_into(&input.push(&tokenizer, piece), 0, &mut tokens).unwrap();
                }
                tokenizer.encode_bytes_into(&input.finish(), 0, &mut tokens).unwrap();
                assert_eq!(tokens, tokenizer.encode(text).unwrap(), "{cut}");
            }
        }
    }
}
