//! Reading a file by position: no shared cursor, no memory map.

use std::fs::File;
use std::io::Result;

/// A file that several readers may use at once, each naming the position it wants.
#[derive(Debug)]
pub(super) struct PositionedFile {
    #[cfg(unix)]
    file: File,
    #[cfg(not(unix))]
    file: std::sync::Mutex<File>,
}

impl PositionedFile {
    #[cfg(unix)]
    pub(super) fn new(file: File) -> Self {
        Self { file }
    }

    /// Fills `out` from byte `position` on.
    #[cfg(unix)]
    pub(super) fn read_exact_at(&self, out: &mut [u8], position: u64) -> Result<()> {
        std::os::unix::fs::FileExt::read_exact_at(&self.file, out, position)
    }

    #[cfg(not(unix))]
    pub(super) fn new(file: File) -> Self {
        Self { file: std::sync::Mutex::new(file) }
    }

    /// Fills `out` from byte `position` on.
    #[cfg(not(unix))]
    pub(super) fn read_exact_at(&self, out: &mut [u8], position: u64) -> Result<()> {
        use std::io::{Read, Seek, SeekFrom};
        let mut file = self.file.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
        file.seek(SeekFrom::Start(position))?;
        file.read_exact(out)
    }
}
