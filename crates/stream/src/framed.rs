//! A header and numbers as bytes with a checksum:
//!
//! ```text
//! magic (8 bytes) | length of the header u32 | header (JSON) | numbers … | CRC-32C of all before (u32)
//! ```

use alloc::{format, string::String, vec::Vec};

use minrnn_model::crc32c;
use serde::de::DeserializeOwned;

use crate::Error;

/// Magic and length of the header.
const FRAME: usize = 8 + 4;
const CHECKSUM: usize = 4;

/// Why bytes are refused.
pub(crate) enum Flaw {
    /// They do not begin with the magic.
    Magic,
    /// There are fewer than a frame has even without a header.
    CutShort,
    /// The checksum does not match.
    Checksum,
    /// There are fewer than the header's length says.
    Shorter,
    /// The header cannot be parsed.
    Header(serde_json::Error),
}

impl Flaw {
    /// What is wrong with the bytes, in words that follow "the saved state", and the advice `what_to_do`.
    pub(crate) fn sentence(self, what_to_do: &str) -> String {
        match self {
            Self::Magic => format!("does not begin like one that minrnn saved; {what_to_do}"),
            Self::CutShort => format!("was cut short; {what_to_do}"),
            Self::Checksum => format!("is damaged: its checksum does not match; {what_to_do}"),
            Self::Shorter => format!("is shorter than its header says; {what_to_do}"),
            Self::Header(error) => format!("has a header that cannot be read ({error}); {what_to_do}"),
        }
    }
}

/// Bytes of a frame with the JSON `header` and `numbers` bytes of numbers; none if the header takes 4 GiB or more.
pub(crate) fn len(header: &[u8], numbers: usize) -> Option<usize> {
    u32::try_from(header.len()).ok()?;
    (FRAME + CHECKSUM).checked_add(header.len())?.checked_add(numbers)
}

/// `size` zeros for [`write()`] to replace.
///
/// # Errors
/// When memory cannot hold them.
pub(crate) fn room(size: usize) -> Result<Vec<u8>, Error> {
    let mut bytes = Vec::new();
    let refused = |_| Error::Memory(format!("memory cannot hold the {size} bytes of saved sessions; save fewer at once"));
    bytes.try_reserve_exact(size).map_err(refused)?;
    bytes.resize(size, 0);
    Ok(bytes)
}

/// Writes the frame into `bytes`, as many as [`len`] says; `write` fills in the numbers.
///
/// # Panics
/// When there are fewer bytes than a frame has with this header.
pub(crate) fn write(magic: [u8; 8], header: &[u8], bytes: &mut [u8], write: impl FnOnce(&mut [u8])) {
    let (body, checksum) = bytes.split_at_mut(bytes.len() - CHECKSUM);
    let (frame, rest) = body.split_at_mut(FRAME);
    let (place, numbers) = rest.split_at_mut(header.len());
    let (begin, length) = frame.split_at_mut(magic.len());
    begin.copy_from_slice(&magic);
    length.copy_from_slice(&(header.len() as u32).to_le_bytes());
    place.copy_from_slice(header);
    write(numbers);
    checksum.copy_from_slice(&crc32c(body).to_le_bytes());
}

/// Writes `numbers` at the beginning of `bytes`, and advances `bytes` past them.
///
/// # Panics
/// When there are fewer bytes.
pub(crate) fn put<const N: usize, T: Copy>(bytes: &mut &mut [u8], numbers: &[T], in_bytes: impl Fn(T) -> [u8; N]) {
    let room = bytes.split_off_mut(..numbers.len() * N).expect("there is a place for every number");
    room.as_chunks_mut::<N>().0.iter_mut().zip(numbers).for_each(|(room, &number)| *room = in_bytes(number));
}

/// The header in `bytes`, and the bytes of the numbers behind it.
pub(crate) fn parse<H: DeserializeOwned>(magic: [u8; 8], bytes: &[u8]) -> Result<(H, &[u8]), Flaw> {
    if !bytes.starts_with(&magic) {
        return Err(Flaw::Magic);
    }
    let end = bytes.len().checked_sub(CHECKSUM).filter(|&end| end >= FRAME).ok_or(Flaw::CutShort)?;
    let (body, checksum) = bytes.split_at(end);
    if crc32c(body).to_le_bytes() != checksum {
        return Err(Flaw::Checksum);
    }
    let (length, rest) = body[magic.len()..].split_at(4);
    let length = length.iter().rev().fold(0usize, |length, &byte| length << 8 | usize::from(byte));
    let (header, numbers) = rest.split_at_checked(length).ok_or(Flaw::Shorter)?;
    Ok((serde_json::from_slice(header).map_err(Flaw::Header)?, numbers))
}
