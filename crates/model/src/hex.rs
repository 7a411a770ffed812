//! Hexadecimal digests.

use alloc::{format, string::String};

/// `bytes` as hexadecimal digits, two per byte.
pub fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_byte_has_two_digits() {
        assert_eq!(hex(&[0, 9, 0xab, 0xff]), "0009abff");
    }
}
