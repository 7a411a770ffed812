//! How much is read of a table from an untrusted sender, and answered: a file of a few bytes may claim, or unfold to, any number of cells, and ask for
//! as many.

use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

use crate::counted::counted;
use crate::{Error, Result};

/// Maximum mean bytes of a cell: twice those of a number.
const CELL_BYTES: u64 = 16;

/// Bytes allowed in addition, so that the smallest tables are never refused.
const FREE_BYTES: u64 = 1 << 16;

/// The limit on how much is read of a table, and on an answer to one.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct TableLimit {
    cells: usize,
}

impl TableLimit {
    /// As many cells as `bytes` of comma-separated values can have: each takes at least two, itself and its separator.
    #[must_use]
    pub fn of_text(bytes: usize) -> Self {
        Self { cells: bytes / 2 }
    }

    /// Refuses a table of `n_rows`, of which `n_columns` are read, that exceeds the limit.
    pub(super) fn expect_room(self, n_rows: usize, n_columns: usize) -> Result<()> {
        let (cells, most) = (n_rows.saturating_mul(n_columns), self.cells);
        if cells <= most {
            return Ok(());
        }
        let columns = counted(n_columns, "column");
        let are = if n_columns == 1 { "is" } else { "are" };
        Err(Error::Data(format!(
            "it has at least {cells} cells in the {columns} that {are} read, expected at most {most}; split it into smaller tables"
        )))
    }

    /// Refuses an answer of `n_rows` rows of `n_columns` for each of `n_sequences` that exceeds what may be read of a table, in cells or in the names of
    /// the sequences, of `name_bytes` together, which every row repeats. A single sequence may have all its cells.
    ///
    /// # Errors
    /// When it does.
    pub fn expect_answerable(self, n_sequences: usize, n_rows: usize, n_columns: usize, name_bytes: usize) -> Result<()> {
        let of_each = n_rows.saturating_mul(n_columns);
        let (cells, most) = (n_sequences.saturating_mul(of_each), self.cells.max(of_each));
        let (names, most_names) = ((name_bytes as u64).saturating_mul(n_rows as u64), self.bytes());
        let (sequences, rows, columns) = (counted(n_sequences, "sequence"), counted(n_rows, "row"), counted(n_columns, "column"));
        if cells > most {
            let sentence = format!("the answer for {sequences} would have {cells} cells, {rows} of {columns} for each");
            return Err(Error::Data(format!("{sentence}, expected at most {most}; send fewer sequences at once")));
        }
        if names > most_names {
            let sentence = format!("the answer for {sequences} would repeat {names} bytes of names, those of each in {rows}");
            return Err(Error::Data(format!("{sentence}, expected at most {most_names}; send fewer sequences at once, or shorter names")));
        }
        Ok(())
    }

    fn bytes(self) -> u64 {
        (self.cells as u64).saturating_mul(CELL_BYTES).saturating_add(FREE_BYTES)
    }
}

/// Room for what a file's bytes expand to while it is read.
#[derive(Debug)]
pub(super) struct Room {
    limit: Option<TableLimit>,
    left: AtomicU64,
    /// What is counted, as the beginning of a sentence.
    what: &'static str,
    /// A further remedy, as the end of a sentence.
    how: &'static str,
}

impl Room {
    /// For the bytes that compressed parts unfold to, and those that are not compressed.
    pub fn for_parts(limit: Option<TableLimit>) -> Self {
        Self::new(limit, "unfolded it has", ", or leave out columns that are not read")
    }

    /// For the texts of all cells: a name stored once in a file may occur in every row.
    pub fn for_texts(limit: Option<TableLimit>) -> Self {
        Self::new(limit, "the texts in its cells have", "")
    }

    fn new(limit: Option<TableLimit>, what: &'static str, how: &'static str) -> Self {
        Self { limit, left: AtomicU64::new(limit.map_or(u64::MAX, TableLimit::bytes)), what, how }
    }

    /// The limit it was made for.
    pub fn limit(&self) -> Option<TableLimit> {
        self.limit
    }

    /// Takes `bytes` of the room.
    ///
    /// # Errors
    /// When there is less.
    pub fn take(&self, bytes: u64) -> Result<()> {
        let Some(limit) = self.limit else { return Ok(()) };
        match self.left.load(Relaxed).checked_sub(bytes) {
            Some(left) => {
                self.left.store(left, Relaxed);
                Ok(())
            }
            None => Err(Error::Data(format!(
                "{} more than {} bytes, expected at most so many of a table of at most {} cells; split it into smaller tables{}",
                self.what,
                limit.bytes(),
                limit.cells,
                self.how
            ))),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn as_many_cells_are_read_as_a_text_can_have() {
        let limit = TableLimit::of_text(9);
        assert!(limit.expect_room(4, 1).is_ok() && limit.expect_room(2, 2).is_ok());
        let sentence = limit.expect_room(5, 1).unwrap_err().to_string();
        assert_eq!(sentence, "it has at least 5 cells in the 1 column that is read, expected at most 4; split it into smaller tables");
        assert!(limit.expect_room(usize::MAX, 2).is_err());
    }

    #[test]
    fn an_answer_is_no_larger_than_a_table_may_be() {
        let limit = TableLimit::of_text(200);
        let sentence = |answer: Result<()>| answer.unwrap_err().to_string();
        assert!(limit.expect_answerable(10, 2, 5, 30).is_ok());
        assert_eq!(
            sentence(limit.expect_answerable(11, 2, 5, 30)),
            "the answer for 11 sequences would have 110 cells, 2 rows of 5 columns for each, expected at most 100; send fewer sequences at once"
        );
        // What a model says of one sequence it can always say.
        assert!(limit.expect_answerable(1, 30, 5, 30).is_ok() && limit.expect_answerable(2, 30, 5, 30).is_err());
        let most = FREE_BYTES + 100 * CELL_BYTES;
        assert!(limit.expect_answerable(1, 2, 5, most as usize / 2).is_ok());
        assert_eq!(
            sentence(limit.expect_answerable(1, 2, 5, most as usize / 2 + 1)),
            "the answer for 1 sequence would repeat 67138 bytes of names, those of each in 2 rows, expected at most 67136; send fewer sequences \
             at once, or shorter names"
        );
        assert!(limit.expect_answerable(usize::MAX, usize::MAX, 2, usize::MAX).is_err());
    }

    #[test]
    fn room_is_taken_once() {
        let room = Room::for_texts(Some(TableLimit::of_text(8)));
        room.take(FREE_BYTES + 60).unwrap();
        room.take(4).unwrap();
        let sentence = room.take(1).unwrap_err().to_string();
        assert!(sentence.starts_with("the texts in its cells have more than 65600 bytes, expected at most so many"), "{sentence}");
        assert!(sentence.ends_with("; split it into smaller tables"), "{sentence}");
        // Columns that are not read are unfolded too.
        let sentence = Room::for_parts(Some(TableLimit::of_text(8))).take(u64::MAX).unwrap_err().to_string();
        assert!(sentence.ends_with("; split it into smaller tables, or leave out columns that are not read"), "{sentence}");
        let endless = Room::for_parts(None);
        assert!((0..3).all(|_| endless.take(u64::MAX).is_ok()));
    }
}
