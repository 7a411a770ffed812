//! Files commonly given in place of a text or a table, recognised by their first bytes.

/// The first bytes of such files, with what they are and what to do with them.
const KNOWN: [(&[u8], &str); 8] = [
    (b"\x1f\x8b", "it is compressed with gzip; decompress it"),
    (b"\x28\xb5\x2f\xfd", "it is compressed with Zstandard; decompress it"),
    (b"BZh91AY&SY", "it is compressed with bzip2; decompress it"),
    (b"\xfd7zXZ\0", "it is compressed with xz; decompress it"),
    (b"PK\x03\x04", "it is a workbook or another zip file; save what is to be read as CSV, or take it out"),
    (b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1", "it is a workbook or document of an office program; save what is to be read as CSV or text"),
    (b"\xff\xfe", "it is UTF-16; save it as UTF-8"),
    (b"\xfe\xff", "it is UTF-16; save it as UTF-8"),
];

/// Number of first bytes needed to recognise a file.
pub const FOREIGN_LEN: usize = 16;

/// What a file that begins with `bytes` is and what to do with it, if it is known to be neither a text nor a table.
pub fn foreign(bytes: &[u8]) -> Option<&'static str> {
    KNOWN.iter().find(|(magic, _)| bytes.starts_with(magic)).map(|&(_, what)| what)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn so_many_bytes_tell() {
        assert!(KNOWN.iter().all(|(magic, _)| magic.len() <= FOREIGN_LEN));
    }

    #[test]
    fn what_can_be_read_is_not_foreign() {
        for bytes in [&b""[..], b"a,b\n1,2\n", b"PAR1", b"ARROW1\0\0", b"\xef\xbb\xbfa,b", b"BZh,x\n", b"PK,x\n", "\u{feff}{".as_bytes()] {
            assert_eq!(foreign(bytes), None);
        }
        assert!(foreign(b"\x1f\x8b\x08\0").is_some_and(|what| what.contains("gzip")));
        assert!(foreign(b"\xff\xfea\0,\0").is_some_and(|what| what.contains("UTF-16")));
    }
}
