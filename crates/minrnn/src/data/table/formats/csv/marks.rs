//! What stands behind closing quotation marks. The parser takes it for a part of the cell, so that a mark which is left open in every row would swallow
//! every other one.

/// Looks at the marks of one record after the other.
pub struct Marks {
    delimiter: u8,
    place: Where,
    /// The line on which the marks of the current cell were opened.
    opened: u64,
    /// Where the first such text of a record stands, and the line on which its cell begins.
    found: Option<[u64; 2]>,
}

/// Where a record is being read.
#[derive(Clone, Copy)]
enum Where {
    /// Before a cell.
    Before,
    /// In a cell without marks around it.
    Plain,
    Quoted,
    /// Behind a mark within marks, which closes these unless another one follows.
    Closed,
    /// Behind closed ones and blanks.
    Behind,
}

impl Marks {
    /// Of a table whose cells are divided by `delimiter`.
    pub fn new(delimiter: u8) -> Self {
        Self { delimiter, place: Where::Before, opened: 0, found: None }
    }

    /// A record begins.
    pub fn begin(&mut self) {
        (self.place, self.found) = (Where::Before, None);
    }

    /// Where the first text of the record stands that is behind a closing mark, and the line on which its cell was opened.
    pub fn found(&self) -> Option<[u64; 2]> {
        self.found
    }

    /// Reads on through a piece of a record, which begins on `line`; where the parser left none of its bytes out, it `has_none` around cells.
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
