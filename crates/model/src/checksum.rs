//! CRC-32C (Castagnoli), the checksum at the end of packed models and saved states.

/// The CRC-32C (Castagnoli) of `bytes`.
#[cfg(feature = "std")]
pub fn crc32c(bytes: &[u8]) -> u32 {
    crc32c::crc32c(bytes)
}

/// The CRC-32C (Castagnoli) of `bytes`.
#[cfg(not(feature = "std"))]
pub fn crc32c(bytes: &[u8]) -> u32 {
    portable(bytes)
}

/// The same by a table of 256 entries, for targets where the instructions cannot be detected.
#[cfg(any(not(feature = "std"), test))]
fn portable(bytes: &[u8]) -> u32 {
    const TABLE: [u32; 256] = {
        let mut table = [0u32; 256];
        let mut i = 0;
        while i < 256 {
            let mut remainder = i as u32;
            let mut bit = 0;
            while bit < 8 {
                // The Castagnoli polynomial, lowest power first.
                remainder = (remainder >> 1) ^ (0x82f6_3b78 * (remainder & 1));
                bit += 1;
            }
            table[i] = remainder;
            i += 1;
        }
        table
    };
    !bytes.iter().fold(!0, |crc, &byte| (crc >> 8) ^ TABLE[usize::from(crc as u8 ^ byte)])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_portable_checksum_is_the_fast_one() {
        // The check value of the catalogue of CRCs.
        assert_eq!(portable(b"123456789"), 0xe306_9283);
        let bytes: Vec<u8> = (0..1000u32).map(|i| (i * 37 % 251) as u8).collect();
        for len in [0, 1, 7, 8, 63, 1000] {
            assert_eq!(portable(&bytes[..len]), crc32c(&bytes[..len]));
        }
    }
}
