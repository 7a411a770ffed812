//! Text after closing quotation marks. The parser takes it as part of the cell, so that a mark left open in every row would swallow every other row.

/// Marks that hold more lines than this, or that are open after more bytes of their record, were hardly meant to be so. In a stream nobody waits for their end.
pub const MAX_OPEN_LINES: u64 = 1000;
pub const MAX_OPEN_BYTES: usize = 1 << 16;

/// Tracks the marks of one record after another.
pub struct Marks {
    delimiter: u8,
    place: Where,
    /// The line on which the marks of the current cell were opened.
    opened: u64,
    /// The line of the first such text in a record, and the line on which its cell begins.
    found: Option<[u64; 2]>,
    /// Number of bytes of the record so far.
    n_bytes: usize,
    /// The line on which the record's first marks were opened that hold too much.
    long: Option<u64>,
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
        Self { delimiter, place: Where::Before, opened: 0, found: None, n_bytes: 0, long: None }
    }

    /// Begins a record.
    pub fn begin(&mut self) {
        (self.place, self.found, self.n_bytes, self.long) = (Where::Before, None, 0, None);
    }

    /// The line of the record's first text after a closing mark, and the line on which its cell was opened.
    pub fn found(&self) -> Option<[u64; 2]> {
        self.found
    }

    /// The line on which the cell that the record has come to was opened, if its marks are not closed yet.
    pub fn open_since(&self) -> Option<u64> {
        matches!(self.place, Where::Quoted).then_some(self.opened)
    }

    /// The line on which the first marks of the record were opened that hold too much, if those that are open now are still open on `line`.
    pub fn long(&mut self, line: u64) -> Option<u64> {
        if self.open_since().is_some() {
            self.measure(line, self.n_bytes);
        }
        self.long
    }

    /// Notes that marks are too long that are open on `line`, after `n_bytes` of the record, if they are.
    fn measure(&mut self, line: u64, n_bytes: usize) {
        if line - self.opened > MAX_OPEN_LINES || n_bytes > MAX_OPEN_BYTES {
            self.long.get_or_insert(self.opened);
        }
    }

    /// Reads a further `piece` of a record, which begins on `line`; `has_none` if the parser dropped none of its bytes, so no marks surround
    /// its cells.
    pub fn pass(&mut self, piece: &[u8], line: u64, has_none: bool) {
        use Where::{Before, Behind, Closed, Plain, Quoted};
        let n_before = self.n_bytes;
        self.n_bytes += piece.len();
        match (self.place, piece.last()) {
            (Quoted, _) if has_none => return,
            (Before | Plain, Some(&last)) if has_none => {
                self.place = if self.is_end(last) { Before } else { Plain };
                return;
            }
            _ => {}
        }
        let mut line = line;
        for (at, &byte) in piece.iter().enumerate() {
            self.place = match (self.place, byte) {
                (Quoted, b'"') => {
                    self.measure(line, n_before + at);
                    Closed
                }
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
