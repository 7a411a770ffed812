//! The values of a table: in memory while they are few, otherwise in a nameless file that is memory-mapped.
//!
//! Such a file is made in the folder that `TMPDIR` names, otherwise in `/var/tmp` if that exists, and is gone when the last of its values
//! is dropped. As it is mapped, the system keeps as much of it in memory as there is room for.

use std::fmt;
use std::fs::File;
use std::io::{self, Write};
use std::ops::{Deref, Range};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use bytemuck::Pod;
use memmap2::Mmap;

use crate::{Error, Result};

/// Maximum number of values of a table kept in memory, 32 MiB of numbers; in tests so few that most tables are kept in files.
const IN_MEMORY: usize = if cfg!(test) { 16 } else { 1 << 22 };

/// Maximum number of columns kept in files, each of which stays open while it is read.
const MOST_FILES: usize = 128;

/// Number of values collected before they are written.
const BLOCK: usize = 1 << 16;

/// Maximum number of cells of a table in memory, 2 GiB of numbers: nothing that a file claims or unfolds to beyond this is believed.
const MOST_IN_MEMORY: usize = 1 << 28;

/// Maximum number of cells of a table in files, 8 GiB of numbers.
const MOST_IN_FILES: usize = 1 << 30;

/// Whether the values of a table of `n_columns` may be kept in files if they are many.
pub(super) fn may_lie_in_files(n_columns: usize) -> bool {
    n_columns <= MOST_FILES
}

/// Maximum number of rows of a table of `n_columns`.
pub(super) fn most_rows(n_columns: usize) -> usize {
    (if may_lie_in_files(n_columns) { MOST_IN_FILES } else { MOST_IN_MEMORY }) / n_columns.max(1)
}

/// Values of a table, or of a part of it, one after the other. A copy shares them.
#[derive(Clone)]
pub struct Values<T> {
    held: Arc<Held<T>>,
    range: Range<usize>,
}

enum Held<T> {
    Memory(Vec<T>),
    /// As many bytes as some of them take.
    File(Mmap),
}

impl<T: Pod> Values<T> {
    /// The values at `range`.
    ///
    /// # Panics
    /// When it goes past the end.
    #[must_use]
    pub fn part(&self, range: Range<usize>) -> Self {
        assert!(range.start <= range.end && range.end <= self.len(), "a part of {} values has the range {range:?}", self.len());
        Self { held: Arc::clone(&self.held), range: self.range.start + range.start..self.range.start + range.end }
    }
}

impl<T: Pod> Deref for Values<T> {
    type Target = [T];

    #[inline]
    fn deref(&self) -> &[T] {
        let all = match &*self.held {
            Held::Memory(values) => values,
            Held::File(bytes) => bytemuck::cast_slice(bytes),
        };
        &all[self.range.clone()]
    }
}

impl<T> Default for Values<T> {
    fn default() -> Self {
        Vec::new().into()
    }
}

impl<T> From<Vec<T>> for Values<T> {
    fn from(values: Vec<T>) -> Self {
        Self { range: 0..values.len(), held: Arc::new(Held::Memory(values)) }
    }
}

impl<T: Pod> AsRef<[T]> for Values<T> {
    fn as_ref(&self) -> &[T] {
        self
    }
}

impl<T: Pod + PartialEq, Other: AsRef<[T]> + ?Sized> PartialEq<Other> for Values<T> {
    fn eq(&self, other: &Other) -> bool {
        **self == *other.as_ref()
    }
}

impl<T: Pod + Eq> Eq for Values<T> {}

impl<T: Pod + fmt::Debug> fmt::Debug for Values<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        (**self).fmt(f)
    }
}

/// Collects values one by one.
#[derive(Debug)]
pub(super) struct ValuesWriter<T> {
    /// The last values, which are in memory.
    recent: Vec<T>,
    /// How many values may be in memory.
    room: usize,
    /// The file of the earlier values, and their number.
    file: Option<(File, usize)>,
}

impl<T: Pod> ValuesWriter<T> {
    /// For one of `n_columns` columns, which share the room in memory.
    pub fn new(n_columns: usize) -> Self {
        Self::with_room(if may_lie_in_files(n_columns) { IN_MEMORY / n_columns.max(1) } else { usize::MAX })
    }

    fn with_room(room: usize) -> Self {
        Self { recent: Vec::new(), room: room.max(1), file: None }
    }

    /// Number of values.
    pub fn len(&self) -> usize {
        self.file.as_ref().map_or(0, |(_, n)| *n) + self.recent.len()
    }

    /// Adds a value.
    ///
    /// # Errors
    /// When the file cannot be written.
    #[inline]
    pub fn push(&mut self, value: T) -> Result<()> {
        if self.recent.len() >= self.room {
            self.write()?;
        }
        self.recent.push(value);
        Ok(())
    }

    /// Adds all of `values`.
    ///
    /// # Errors
    /// As [`Self::push`].
    pub fn extend(&mut self, values: &[T]) -> Result<()> {
        values.iter().try_for_each(|&value| self.push(value))
    }

    #[cold]
    fn write(&mut self) -> Result<()> {
        let folder = folder();
        let written = (|| -> io::Result<()> {
            let (file, n) = match &mut self.file {
                Some(known) => known,
                none => none.insert((tempfile::tempfile_in(&folder)?, 0)),
            };
            file.write_all(bytemuck::cast_slice(&self.recent))?;
            *n += self.recent.len();
            Ok(())
        })();
        written.map_err(|error| unwritable(&folder, &error))?;
        self.recent = Vec::new();
        self.room = BLOCK;
        Ok(())
    }

    /// All values.
    ///
    /// # Errors
    /// When the file cannot be written or read.
    pub fn finish(mut self) -> Result<Values<T>> {
        if self.file.is_none() {
            return Ok(self.recent.into());
        }
        self.write()?;
        let (file, n) = self.file.expect("it was just written");
        // SAFETY: the file has no name and is open only here, so nobody writes to it or truncates it while it is mapped.
        let bytes = unsafe { Mmap::map(&file) };
        let bytes = bytes.map_err(|source| Error::io("read the values of a table back from a file in", folder(), source))?;
        debug_assert_eq!(bytes.len(), n * size_of::<T>());
        Ok(Values { held: Arc::new(Held::File(bytes)), range: 0..n })
    }
}

/// The error when values cannot be written to a file in `folder`: the disk is at fault, not the table.
fn unwritable(folder: &Path, error: &io::Error) -> Error {
    // With another error kind: a missing folder is not a wrong path given by the user.
    let source = io::Error::other(format!("{error}; have TMPDIR name a folder with more room"));
    Error::io("write the values of a table, which are too many for memory, to a file in", folder, source)
}

/// Where nameless files are made: on a disk if there is one, as `/tmp` is often memory.
fn folder() -> PathBuf {
    let disk = PathBuf::from("/var/tmp");
    if std::env::var_os("TMPDIR").is_none() && disk.is_dir() { disk } else { std::env::temp_dir() }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn values_are_the_same_in_memory_and_in_a_file(numbers in prop::collection::vec(any::<u32>(), 0..300), room in 1usize..400, cut in 0usize..300) {
            let mut writer = ValuesWriter::with_room(room);
            writer.extend(&numbers).unwrap();
            prop_assert_eq!(writer.len(), numbers.len());
            let values = writer.finish().unwrap();
            prop_assert_eq!(matches!(&*values.held, Held::File(_)), numbers.len() > room);
            prop_assert!(values == numbers);
            let cut = cut.min(numbers.len());
            let (before, behind) = (values.part(0..cut), values.part(cut..numbers.len()));
            drop(values);
            prop_assert!(before == numbers[..cut] && behind == numbers[cut..]);
            prop_assert!(behind.part(0..behind.len()) == behind && behind.part(0..0).is_empty());
        }
    }

    #[test]
    fn a_folder_that_takes_no_values_is_named_and_is_no_wrong_input() {
        for kind in [io::ErrorKind::StorageFull, io::ErrorKind::NotFound, io::ErrorKind::NotADirectory] {
            let told = super::super::naming(Path::new("rows.csv"), unwritable(Path::new("/scratch"), &kind.into()));
            assert!(!told.is_wrong_input(), "{kind}");
            let sentence = told.to_string();
            assert!(
                sentence.contains(&format!("to a file in '/scratch': {kind}"))
                    && sentence.ends_with("; have TMPDIR name a folder with more room"),
                "{sentence}"
            );
        }
    }

    #[test]
    fn many_blocks_come_back_in_their_order() {
        let mut writer = ValuesWriter::with_room(10);
        (0..3 * BLOCK).try_for_each(|at| writer.push(at as f64)).unwrap();
        let values = writer.finish().unwrap();
        assert!(values.iter().enumerate().all(|(at, &value)| value == at as f64) && values.len() == 3 * BLOCK);
    }

    #[test]
    fn tables_of_many_columns_open_no_files_and_have_fewer_cells() {
        assert_eq!(ValuesWriter::<f64>::new(MOST_FILES + 1).room, usize::MAX);
        assert_eq!((most_rows(1), most_rows(4), most_rows(0)), (1 << 30, 1 << 28, 1 << 30));
        assert!(most_rows(MOST_FILES + 1) < most_rows(MOST_FILES) / 3);
    }
}
