//! A header and numbers as bytes that tell when they were damaged:
//!
//! ```text
//! magic (8 bytes) | length of the header u32 | header (JSON) | numbers … | CRC-32C of all before (u32)
//! ```

use alloc::vec::Vec;

use minrnn_model::crc32c;
use serde::de::DeserializeOwned;

/// Magic and length of the header.
const FRAME: usize = 8 + 4;
const CHECKSUM: usize = 4;

/// Why bytes are not read.
pub(crate) enum Flaw {
    /// They begin otherwise.
    Magic,
    /// There are fewer than a frame has without a header.
    CutShort,
    /// Their checksum is another one.
    Checksum,
    /// There are fewer than the header's length says.
    Shorter,
    /// The header is none.
    Header(serde_json::Error),
}

/// The bytes with the JSON `header` and what `write` appends, for which there is `room`; none where the header takes more than 4 GiB.
pub(crate) fn to_bytes(magic: [u8; 8], header: &[u8], room: usize, write: impl FnOnce(&mut Vec<u8>)) -> Option<Vec<u8>> {
    let length = u32::try_from(header.len()).ok()?;
    let mut bytes = Vec::with_capacity(FRAME + header.len() + room + CHECKSUM);
    bytes.extend(magic);
    bytes.extend(length.to_le_bytes());
    bytes.extend(header);
    write(&mut bytes);
    bytes.extend(crc32c(&bytes).to_le_bytes());
    Some(bytes)
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
