//! Text after closing quotation marks. The parser takes it as part of the cell, so that a mark left open in every row would swallow every other row.

/// Tracks the marks of one record after another.
pub struct Marks {
    delimiter: u8,
    place: Where,
    /// The line on which the marks of the current cell were opened.
    opened: u64,
    /// The line of the first such text in a record, and the line on which its cell begins.
    found: Option<[u64; 2]>,
}

/// The position within a record.
#[derive(Clone, Copy)]
enum Where {
    /// Before a cell.
    Before,
    /// In a cell without marks around it.
    Plain,
    Quoted,
    /// After a mark within marks, which closes them unless another one follows.
    Closed,
    /// After closed marks and blanks.
    Behind,
}

impl Marks {
    /// For a table whose cells are separated by `delimiter`.
    pub fn new(delimiter: u8) -> Self {
        Self { delimiter, place: Where::Before, opened: 0, found: None }
    }

    /// Begins a record.
    pub fn begin(&mut self) {
        (self.place, self.found) = (Where::Before, None);
    }

    /// The line of the record's first text after a closing mark, and the line on which its cell was opened.
    pub fn found(&self) -> Option<[u64; 2]> {
        self.found
    }

    /// Reads a further `piece` of a record, which begins on `line`; `has_none` if the parser dropped none of its bytes, so no marks surround
    /// its cells.
    pub fn pass(&mut self, piece: &[u8], line: u64, has_none: bool) {
        use Where::{Before, Behind, Closed, Plain, Quoted};
        match (self.place, piece.last()) {
            (Quoted, _) if has_none => return,
            (Before | Plain, Some(&last)) if has_none => {
                self.place = if self.is_end(last) { Before } else { Plain };
                return;
            }
            _ => {}
        }
        let mut line = line;
        for &byte in piece {
            self.place = match (self.place, byte) {
                (Quoted, b'"') => Closed,
                (Closed, b'"') | (Quoted, _) => Quoted,
                (_, byte) if self.is_end(byte) => Before,
                (Before, b'"') => {
                    self.opened = line;
                    Quoted
                }
                (Before | Plain, _) => Plain,
                (Closed | Behind, b' ' | b'\t') => Behind,
                (Closed | Behind, _) => {
                    self.found.get_or_insert([line, self.opened]);
                    Plain
                }
            };
            line += u64::from(byte == b'\n');
        }
    }

    fn is_end(&self, byte: u8) -> bool {
        byte == self.delimiter || matches!(byte, b'\r' | b'\n')
    }
}
