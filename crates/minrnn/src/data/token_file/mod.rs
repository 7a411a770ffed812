//! Token ids on disk, written once and read by position. The layout is in `header.rs`.

mod header;
mod writer;

use std::fs::File;
use std::io::Read;
use std::path::{Path, PathBuf};

pub use writer::TokenWriter;

use self::header::{HEADER_LEN, Header};
use super::positioned::PositionedFile;
use crate::{Error, Result};

const BUFFER_LEN: usize = 8192;

/// A token file open for reading, with cheap access at any position, also from several threads at once.
#[derive(Debug)]
pub struct TokenFile {
    file: PositionedFile,
    path: PathBuf,
    header: Header,
}

impl TokenFile {
    /// Opens `path` and checks its header against the file's size.
    ///
    /// # Errors
    /// [`Error::Io`] when it cannot be read, [`Error::Malformed`] when it is not a whole token file of this version.
    pub fn open(path: impl AsRef<Path>) -> Result<Self> {
        const ACTION: &str = "read the token file";
        let path = path.as_ref();
        let mut file = File::open(path).map_err(|e| Error::io(ACTION, path, e))?;
        let file_len = file.metadata().map_err(|e| Error::io(ACTION, path, e))?.len();
        if file_len < HEADER_LEN as u64 {
            return Err(Error::malformed(
                path,
                format!(
                    "is not a token file: it has {file_len} bytes, and the header alone takes {HEADER_LEN}; make it again from the text"
                ),
            ));
        }
        let mut bytes = [0; HEADER_LEN];
        file.read_exact(&mut bytes).map_err(|e| Error::io(ACTION, path, e))?;
        let header = Header::parse(&bytes, file_len).map_err(|problem| Error::malformed(path, problem))?;
        Ok(Self { file: PositionedFile::new(file), path: path.to_owned(), header })
    }

    /// Number of tokens.
    pub fn len(&self) -> u64 {
        self.header.count
    }

    /// Whether there are no tokens.
    pub fn is_empty(&self) -> bool {
        self.header.count == 0
    }

    /// Number of symbols `V`; every id is below it.
    pub fn vocab_size(&self) -> usize {
        self.header.vocab_size as usize
    }

    /// SHA-256 of the text the tokens were made from; zeros if they were not made from a text.
    pub fn source_sha256(&self) -> [u8; 32] {
        self.header.source_sha256
    }

    /// The path of the file.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Fills `out` with the tokens from position `offset` on.
    ///
    /// # Errors
    /// [`Error::Data`] when the range goes past the end, [`Error::Malformed`] when an id is not in the vocabulary or the
    /// file was cut short since it was opened.
    pub fn read(&self, offset: u64, out: &mut [u32]) -> Result<()> {
        let end = offset.checked_add(out.len() as u64);
        if end.is_none_or(|end| end > self.header.count) {
            return Err(Error::Data(format!(
                "'{}' has {} tokens, but {} tokens from position {offset} on were asked for",
                self.path.display(),
                self.header.count,
                out.len()
            )));
        }
        let width = self.header.bytes_per_token as usize;
        let mut buffer = [0; BUFFER_LEN];
        let mut at = offset;
        for chunk in out.chunks_mut(BUFFER_LEN / width) {
            let bytes = &mut buffer[..chunk.len() * width];
            self.file.read_exact_at(bytes, HEADER_LEN as u64 + at * width as u64).map_err(|e| self.cut_short_or(e))?;
            decode(bytes, width, chunk);
            if let Some(i) = chunk.iter().position(|&id| u64::from(id) >= self.header.vocab_size) {
                return Err(Error::malformed(
                    &self.path,
                    format!(
                        "is damaged: token {} is {}, but the vocabulary has {} symbols; make it again from the text",
                        at + i as u64,
                        chunk[i],
                        self.header.vocab_size
                    ),
                ));
            }
            at += chunk.len() as u64;
        }
        Ok(())
    }

    /// Reads the whole file and compares its checksum.
    ///
    /// # Errors
    /// [`Error::Malformed`] when any byte changed since the file was written.
    pub fn verify(&self) -> Result<()> {
        let mut crc = crc32fast::Hasher::new();
        let mut buffer = [0; BUFFER_LEN];
        let total = self.header.count * u64::from(self.header.bytes_per_token);
        let mut at = 0;
        while at < total {
            let n = (total - at).min(BUFFER_LEN as u64) as usize;
            self.file.read_exact_at(&mut buffer[..n], HEADER_LEN as u64 + at).map_err(|e| self.cut_short_or(e))?;
            crc.update(&buffer[..n]);
            at += n as u64;
        }
        if crc.finalize() == self.header.payload_crc {
            return Ok(());
        }
        Err(Error::malformed(&self.path, "is damaged: its tokens do not match their checksum; make it again from the text"))
    }

    fn cut_short_or(&self, source: std::io::Error) -> Error {
        if source.kind() == std::io::ErrorKind::UnexpectedEof {
            return Error::malformed(
                &self.path,
                format!("was cut short while it was in use: its header promises {} tokens; make it again from the text", self.header.count),
            );
        }
        Error::io("read the token file", &self.path, source)
    }
}

fn decode(bytes: &[u8], width: usize, out: &mut [u32]) {
    match width {
        1 => out.iter_mut().zip(bytes).for_each(|(id, &b)| *id = u32::from(b)),
        2 => out.iter_mut().zip(bytes.as_chunks().0).for_each(|(id, &b)| *id = u32::from(u16::from_le_bytes(b))),
        _ => out.iter_mut().zip(bytes.as_chunks().0).for_each(|(id, &b)| *id = u32::from_le_bytes(b)),
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn write(dir: &Path, vocab_size: usize, tokens: &[u32]) -> TokenFile {
        let mut writer = TokenWriter::create(dir.join("t.tokens"), vocab_size).unwrap();
        writer.push(tokens).unwrap();
        writer.finish([7; 32]).unwrap()
    }

    /// Opens and reads everything; any outcome but a panic is fine. Returns the tokens if all of it was accepted.
    fn read_all(path: &Path) -> Result<Vec<u32>> {
        let file = TokenFile::open(path)?;
        file.verify()?;
        let mut out = vec![0; file.len() as usize];
        file.read(0, &mut out)?;
        Ok(out)
    }

    #[test]
    fn the_narrowest_width_that_holds_the_vocabulary_is_used() {
        let dir = tempfile::tempdir().unwrap();
        for (vocab_size, width) in [(1, 1), (256, 1), (257, 2), (65_536, 2), (65_537, 4), (1 << 32, 4)] {
            let file = write(dir.path(), vocab_size, &[(vocab_size - 1) as u32, 0]);
            assert_eq!(std::fs::metadata(file.path()).unwrap().len(), 72 + 2 * width, "{vocab_size}");
            assert_eq!(read_all(file.path()).unwrap(), [(vocab_size - 1) as u32, 0]);
            assert_eq!((file.vocab_size(), file.source_sha256()), (vocab_size, [7; 32]));
        }
    }

    #[test]
    fn ids_outside_the_vocabulary_are_refused_on_both_sides() {
        let dir = tempfile::tempdir().unwrap();
        let mut writer = TokenWriter::create(dir.path().join("w"), 5).unwrap();
        assert!(writer.push(&[4, 5]).unwrap_err().to_string().contains("token 1 is 5"));
        let file = write(dir.path(), 5, &[0, 1, 2]);
        let mut bytes = std::fs::read(file.path()).unwrap();
        bytes[HEADER_LEN + 1] = 9;
        std::fs::write(file.path(), bytes).unwrap();
        let file = TokenFile::open(file.path()).unwrap();
        let message = file.read(0, &mut [0; 3]).unwrap_err().to_string();
        assert!(message.contains("token 1 is 9") && message.contains("5 symbols"), "{message}");
        assert!(file.verify().unwrap_err().to_string().contains("checksum"));
    }

    #[test]
    fn reading_past_the_end_is_refused_with_all_numbers() {
        let dir = tempfile::tempdir().unwrap();
        let file = write(dir.path(), 5, &[0, 1, 2]);
        file.read(3, &mut []).unwrap();
        let message = file.read(2, &mut [0; 2]).unwrap_err().to_string();
        assert!(message.contains("has 3 tokens") && message.contains("2 tokens from position 2"), "{message}");
        assert!(file.read(u64::MAX, &mut [0; 2]).is_err());
    }

    #[test]
    fn a_file_cut_short_underneath_gives_a_sentence() {
        let dir = tempfile::tempdir().unwrap();
        let file = write(dir.path(), 5, &[0, 1, 2]);
        File::options().write(true).open(file.path()).unwrap().set_len(73).unwrap();
        assert!(file.read(0, &mut [0; 3]).unwrap_err().to_string().contains("cut short"));
    }

    #[test]
    fn an_unfinished_file_never_appears() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("t");
        let mut writer = TokenWriter::create(&path, 5).unwrap();
        writer.push(&[1]).unwrap();
        drop(writer);
        assert_eq!(std::fs::read_dir(dir.path()).unwrap().count(), 0);
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(48))]

        #[test]
        fn any_range_reads_back_what_was_written(
            vocab_size in prop_oneof![1_usize..300, 60_000_usize..70_000],
            raw in prop::collection::vec(any::<u32>(), 0..20_000),
            pieces in 1_usize..5,
            range in any::<(prop::sample::Index, prop::sample::Index)>(),
        ) {
            let tokens: Vec<u32> = raw.iter().map(|&r| r % vocab_size as u32).collect();
            let dir = tempfile::tempdir().unwrap();
            let mut writer = TokenWriter::create(dir.path().join("t"), vocab_size).unwrap();
            for piece in tokens.chunks(tokens.len() / pieces + 1) {
                writer.push(piece).unwrap();
            }
            let file = writer.finish([0; 32]).unwrap();
            file.verify().unwrap();
            prop_assert_eq!(file.len(), tokens.len() as u64);
            let (a, b) = (range.0.index(tokens.len() + 1), range.1.index(tokens.len() + 1));
            let (from, to) = (a.min(b), a.max(b));
            let mut out = vec![0; to - from];
            file.read(from as u64, &mut out).unwrap();
            prop_assert_eq!(&out[..], &tokens[from..to]);
        }

        #[test]
        fn truncated_or_corrupted_files_are_refused(cut in any::<prop::sample::Index>(), flip in 1_u8..=255, truncate: bool) {
            let dir = tempfile::tempdir().unwrap();
            let file = write(dir.path(), 1000, &(0..200).collect::<Vec<u32>>());
            let mut bytes = std::fs::read(file.path()).unwrap();
            let at = cut.index(bytes.len());
            if truncate { bytes.truncate(at) } else { bytes[at] ^= flip }
            std::fs::write(file.path(), bytes).unwrap();
            prop_assert!(read_all(file.path()).is_err());
        }
    }
}
