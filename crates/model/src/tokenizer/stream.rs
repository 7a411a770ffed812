//! Text that arrives token by token: a token may end inside a character, so its last bytes may have to wait.

use alloc::{format, string::String, vec::Vec};

use serde::{Deserialize, Serialize};

use super::Tokenizer;
use crate::{Error, Result, first_few};

/// Decodes ids one at a time. All pieces and the final one joined are what [`Tokenizer::decode`] returns for all ids.
///
/// Deserialising rejects states that could not have arisen.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(try_from = "Saved")]
pub struct TextStream {
    /// The beginning of a character whose other bytes have not arrived yet: at most 3 bytes between calls.
    pending: Vec<u8>,
}

/// A stream as it is read, before it is checked.
#[derive(Deserialize)]
struct Saved {
    pending: Vec<u8>,
}

impl TryFrom<Saved> for TextStream {
    type Error = Error;

    fn try_from(Saved { pending }: Saved) -> Result<Self> {
        if incomplete_tail(&pending) == pending.len() {
            return Ok(Self { pending });
        }
        let bytes = first_few(8, pending.iter().map(|byte| format!("0x{byte:02x}")));
        Err(Error::Text(format!("the bytes {bytes} wait for others, expected the beginning of a character; begin the text anew")))
    }
}

impl TextStream {
    /// A new stream.
    pub fn new() -> Self {
        Self::default()
    }

    /// The text that `id` completes: empty when it ends inside a character and nothing can be shown yet.
    ///
    /// # Errors
    /// [`crate::Error::Text`] when `id` is outside the vocabulary of `tokenizer`.
    pub fn push(&mut self, tokenizer: &Tokenizer, id: u32) -> Result<String> {
        tokenizer.append_bytes(id, &mut self.pending)?;
        let keep = incomplete_tail(&self.pending);
        let tail = self.pending.split_off(self.pending.len() - keep);
        let ready = core::mem::replace(&mut self.pending, tail);
        Ok(String::from_utf8_lossy(&ready).into_owned())
    }

    /// What is left at the end: empty, or `U+FFFD` for an incomplete character.
    pub fn finish(self) -> String {
        String::from_utf8_lossy(&self.pending).into_owned()
    }
}

/// Number of bytes at the end of `bytes` that begin a UTF-8 character and could still be completed, at most 3; bytes that nothing can
/// complete do not count.
pub fn incomplete_tail(bytes: &[u8]) -> usize {
    // An incomplete character has at most three bytes, and its first byte is never a later byte of another: what is before them does not matter.
    let mut rest = &bytes[bytes.len().saturating_sub(3)..];
    loop {
        match core::str::from_utf8(rest) {
            Ok(_) => return 0,
            Err(e) => match e.error_len() {
                None => return rest.len() - e.valid_up_to(),
                Some(n) => rest = &rest[e.valid_up_to() + n..],
            },
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn a_character_appears_when_its_last_byte_arrives() {
        let mut stream = TextStream::new();
        let pieces: Vec<String> = "a日é".bytes().map(|b| stream.push(&Tokenizer::Byte, b.into()).unwrap()).collect();
        assert_eq!(pieces, ["a", "", "", "日", "", "é"]);
        assert_eq!(stream.finish(), "");
    }

    #[test]
    fn bytes_that_cannot_become_a_character_are_not_held_back() {
        let mut stream = TextStream::new();
        assert_eq!(stream.push(&Tokenizer::Byte, 0xE6).unwrap(), "");
        assert_eq!(stream.push(&Tokenizer::Byte, b'x'.into()).unwrap(), "\u{FFFD}x");
        assert_eq!(stream.push(&Tokenizer::Byte, 0xFF).unwrap(), "\u{FFFD}");
        assert_eq!(stream.push(&Tokenizer::Byte, 0xC3).unwrap(), "");
        assert_eq!(stream.finish(), "\u{FFFD}");
    }

    #[test]
    fn one_is_read_as_it_was_written_and_no_other() {
        let read = |bytes: &[u8]| serde_json::from_value::<TextStream>(serde_json::json!({ "pending": bytes }));
        for begun in [&[][..], &[0xC3], &[0xF0, 0x9F, 0xA6]] {
            let stream = read(begun).unwrap();
            assert_eq!(stream.pending, begun);
            assert_eq!(serde_json::from_value::<TextStream>(serde_json::to_value(&stream).unwrap()).unwrap(), stream);
        }
        for other in [&b"Hi"[..], &[0xFF], &[b'x', 0xC3], &[0xC3, 0xA9]] {
            assert!(read(other).unwrap_err().to_string().contains("expected the beginning of a character"), "{other:?}");
        }
    }

    #[test]
    fn the_beginning_of_a_character_waits_for_all_its_bytes() {
        for (text, waits) in [("é", 2), ("日", 3), ("🦀", 4)] {
            let bytes = [b"ab", text.as_bytes()].concat();
            for n in 1..=waits {
                assert_eq!(incomplete_tail(&bytes[..2 + n]), if n == waits { 0 } else { n }, "{text} {n}");
            }
        }
        // An overlong encoding, a code point beyond the last, half of a surrogate pair, and bytes that begin no character.
        for never in [b"a\xe0\x80", b"a\xf4\x90", b"a\xed\xa0", b"aa\xf8", b"\x80\x80\x80", b"aa\xc0", b"a\xc3a"] as [&[u8]; 7] {
            assert_eq!(incomplete_tail(never), 0, "{never:x?}");
        }
        assert_eq!(incomplete_tail(b""), 0);
    }

    proptest! {
        #[test]
        fn what_waits_is_what_the_whole_lacks_the_end_of(
            bytes in prop::collection::vec(prop_oneof![any::<u8>(), 0x80_u8..0xC0, 0xE0_u8..0xF5, Just(b'a')], 0..12)
        ) {
            let last = bytes.utf8_chunks().last().map_or(&[][..], |chunk| chunk.invalid());
            let lacks = core::str::from_utf8(last).is_err_and(|flaw| flaw.error_len().is_none());
            prop_assert_eq!(incomplete_tail(&bytes), if lacks { last.len() } else { 0 });
        }

        #[test]
        fn the_pieces_join_to_the_decoded_text(
            bytes in prop::collection::vec(prop_oneof![any::<u8>(), 0x80_u8..0xC0, 0xE0_u8..0xF5, Just(b'a')], 0..60)
        ) {
            let ids: Vec<u32> = bytes.iter().copied().map(u32::from).collect();
            let mut stream = TextStream::new();
            let mut joined = String::new();
            for &id in &ids {
                joined += &stream.push(&Tokenizer::Byte, id).unwrap();
                prop_assert!(stream.pending.len() <= 3);
            }
            joined += &stream.finish();
            prop_assert_eq!(joined, Tokenizer::Byte.decode(&ids).unwrap());
        }
    }
}
