//! The header of a token file, and its layout.
//!
//! All numbers are little-endian:
//!
//! | bytes | what |
//! |---|---|
//! | 0..8 | `MINRNNTK` |
//! | 8..12 | version, 1 |
//! | 12..16 | bytes per token: 1, 2 or 4, the smallest that holds the vocabulary |
//! | 16..24 | vocabulary size V |
//! | 24..32 | number of tokens |
//! | 32..64 | SHA-256 of the text the tokens were made from (zeros when unknown) |
//! | 64..68 | CRC-32 of the tokens' bytes |
//! | 68..72 | CRC-32 of bytes 0..68 |
//! | 72.. | the tokens |

const MAGIC: [u8; 8] = *b"MINRNNTK";
const VERSION: u32 = 1;
/// Bytes of the header; the tokens follow.
pub(super) const HEADER_LEN: usize = 72;

#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Header {
    pub(super) bytes_per_token: u32,
    pub(super) vocab_size: u64,
    pub(super) count: u64,
    pub(super) source_sha256: [u8; 32],
    pub(super) payload_crc: u32,
}

impl Header {
    pub(super) fn to_bytes(&self) -> [u8; HEADER_LEN] {
        let mut bytes = [0; HEADER_LEN];
        bytes[..8].copy_from_slice(&MAGIC);
        bytes[8..12].copy_from_slice(&VERSION.to_le_bytes());
        bytes[12..16].copy_from_slice(&self.bytes_per_token.to_le_bytes());
        bytes[16..24].copy_from_slice(&self.vocab_size.to_le_bytes());
        bytes[24..32].copy_from_slice(&self.count.to_le_bytes());
        bytes[32..64].copy_from_slice(&self.source_sha256);
        bytes[64..68].copy_from_slice(&self.payload_crc.to_le_bytes());
        let crc = crc32fast::hash(&bytes[..68]);
        bytes[68..].copy_from_slice(&crc.to_le_bytes());
        bytes
    }

    pub(super) fn parse(bytes: &[u8; HEADER_LEN], file_len: u64) -> Result<Self, String> {
        let u32_at = |i| u32::from_le_bytes(std::array::from_fn(|j| bytes[i + j]));
        let u64_at = |i| u64::from_le_bytes(std::array::from_fn(|j| bytes[i + j]));
        if bytes[..8] != MAGIC {
            return Err("is not a token file (it does not begin with MINRNNTK); give the text itself, or make a token file from it".into());
        }
        if u32_at(8) != VERSION {
            return Err(format!(
                "is a token file of version {}, but this program reads version {VERSION}; make it again from the text",
                u32_at(8)
            ));
        }
        if crc32fast::hash(&bytes[..68]) != u32_at(68) {
            return Err("is damaged: its header does not match its checksum; make it again from the text".into());
        }
        let header = Self {
            bytes_per_token: u32_at(12),
            vocab_size: u64_at(16),
            count: u64_at(24),
            source_sha256: std::array::from_fn(|j| bytes[32 + j]),
            payload_crc: u32_at(64),
        };
        let (width, vocab_size) = (header.bytes_per_token, header.vocab_size);
        if !matches!(width, 1 | 2 | 4) || vocab_size == 0 || vocab_size > 1 << (8 * width) {
            return Err(format!(
                "is damaged: it claims {width} bytes per token for a vocabulary of {vocab_size}; make it again from the text"
            ));
        }
        let expected = header.count.checked_mul(u64::from(width)).and_then(|n| n.checked_add(HEADER_LEN as u64));
        if expected != Some(file_len) {
            return Err(format!(
                "is damaged: its header promises {} tokens of {width} bytes, but the file has {file_len} bytes; make it again from the text",
                header.count
            ));
        }
        Ok(header)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_header_that_promises_more_than_the_file_holds_is_refused() {
        let header = Header { bytes_per_token: 4, vocab_size: 1 << 32, count: u64::MAX / 2, source_sha256: [0; 32], payload_crc: 0 };
        let problem = Header::parse(&header.to_bytes(), 100).unwrap_err();
        assert!(problem.contains("100 bytes"), "{problem}");
        let header = Header { bytes_per_token: 3, ..header };
        assert!(Header::parse(&header.to_bytes(), 100).unwrap_err().contains("3 bytes per token"));
    }
}
