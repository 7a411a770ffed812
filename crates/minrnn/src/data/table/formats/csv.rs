//! Tables as comma-separated values: RFC 4180 with a header, parsed by `csv-core`. A semicolon or tab may replace the comma.

mod delimiter;
mod marks;
mod source;

use std::io::Read;

use csv_core::{ReadRecordResult, Reader, ReaderBuilder};

use self::delimiter::Delimiters;
use self::marks::{MAX_OPEN_BYTES, MAX_OPEN_LINES, Marks};
use self::source::Source;
use super::super::cells::{Cell, Place};
use super::super::clock::Clock;
use super::super::columns::Positions;
use super::super::frame::Filling;
use super::super::text_cells::expect_name;
use super::{BYTE_ORDER_MARK, Format, failed, ndjson};
use crate::counted::counted;
use crate::{Error, Result};

/// The longest record: an open quotation mark must not pull a whole file into memory.
const MAX_RECORD_BYTES: usize = 1 << 22;
const MAX_COLUMNS: usize = 1 << 16;
/// The delimiter is looked for in this many bytes.
const MAX_BEGINNING: usize = 1 << 16;

pub(super) const FORMAT: Format =
    Format { extensions: &["csv", "tsv"], magic: &[], begins: |_| false, open: |input| Ok(Box::new(Csv::open(input.whole())?)) };

/// A table whose header has been read.
struct Csv<R> {
    records: Records<R>,
    header: Vec<String>,
    /// Whether the current record is a row.
    is_row: bool,
}

impl<R: Read> Csv<R> {
    fn open(source: R) -> Result<Self> {
        let mut records = Records::new(source)?;
        let header = records.header()?;
        Ok(Self { records, header, is_row: false })
    }
}

impl<R: Read> super::Reader for Csv<R> {
    fn header(&self) -> &[String] {
        &self.header
    }

    fn dates(&mut self) -> Result<Vec<bool>> {
        if !self.is_row {
            self.is_row = self.records.advance()?;
        }
        let n_cells = if self.is_row { self.records.n_cells() } else { 0 };
        (0..self.header.len()).map(|at| Ok(at < n_cells && Clock::is_date(self.records.text(at)?))).collect()
    }

    fn take_header_as_row(&mut self, names: Vec<String>) {
        self.header = names;
        self.is_row = true;
    }

    fn read(mut self: Box<Self>, positions: &Positions, filling: &mut Filling) -> Result<()> {
        while std::mem::take(&mut self.is_row) || self.records.advance()? {
            self.records.expect_closed()?;
            let (line, found, expected) = (self.records.line, self.records.n_cells(), self.header.len());
            if found != expected {
                return Err(Error::Data(format!("line {line} has {}, expected {expected} as in the header", counted(found, "cell"))));
            }
            filling.begin_row(line)?;
            let place = Place::Line(line);
            for (column, &at) in filling.texts.iter_mut().zip(&positions.texts) {
                column.push(Cell::Any(self.records.text(at)?), place)?;
            }
            if let (Some(times), Some(at)) = (&mut filling.times, positions.time) {
                times.push(Cell::Any(self.records.text(at)?), place)?;
            }
            for (column, &at) in filling.numbers.iter_mut().zip(&positions.numbers) {
                column.push(Cell::Any(self.records.text(at)?), place)?;
            }
        }
        Ok(())
    }
}

/// Records one after the other, through buffers that grow with the longest record and no further.
pub struct Records<R> {
    source: Source<R>,
    parser: Reader,
    bytes: Vec<u8>,
    ends: Vec<usize>,
    n_ends: usize,
    /// The line on which the current record begins, from 1.
    line: u64,
    /// The line that is read next.
    next_line: u64,
    marks: Marks,
    /// Whether reading goes on after a record whose marks are broken, with the line after the one on which they were opened.
    goes_on: bool,
    /// A sentence about the marks of the current record that were left open, if it goes on after them.
    open: Option<String>,
}

impl<R: Read> Records<R> {
    pub fn new(mut source: R) -> Result<Self> {
        let (mut beginning, delimiter) = beginning(&mut source).map_err(failed)?;
        if beginning.starts_with(BYTE_ORDER_MARK) {
            beginning.drain(..BYTE_ORDER_MARK.len());
        }
        Ok(Self {
            source: Source::new(beginning, source),
            parser: ReaderBuilder::new().delimiter(delimiter).build(),
            bytes: vec![0; 1 << 12],
            ends: vec![0; 1 << 6],
            n_ends: 0,
            line: 0,
            next_line: 1,
            marks: Marks::new(delimiter),
            goes_on: false,
            open: None,
        })
    }

    /// The same for rows that arrive one by one. A record whose quotation marks are left open, or closed on another line with text behind them, is
    /// [not closed](Self::expect_closed), and the next one begins on the line after the one on which they were opened.
    pub fn of_stream(source: R) -> Result<Self> {
        Ok(Self { goes_on: true, ..Self::new(source)? })
    }

    /// The beginning of what comes next, if it is not a table of this format but looks like JSON.
    ///
    /// # Errors
    /// When it cannot be read.
    pub fn beginning_of_json(&mut self) -> Result<Option<String>> {
        self.skip_empty_lines()?;
        let beginning = String::from_utf8_lossy(self.source.piece().map_err(failed)?);
        let line = beginning.lines().next().unwrap_or_default().trim_start();
        Ok((ndjson::FORMAT.begins)(line).then(|| line.split(',').next().unwrap_or_default().to_owned()))
    }

    /// The names of the columns, from the first record.
    pub fn header(&mut self) -> Result<Vec<String>> {
        if !self.advance()? {
            return Err(Error::Data("it is empty; expected a header with the names of columns".to_owned()));
        }
        self.expect_closed()?;
        (0..self.n_cells()).map(|at| self.text(at).map(|name| name.trim().to_owned())).collect()
    }

    /// Reads a record; false at the end.
    pub fn advance(&mut self) -> Result<bool> {
        if self.goes_on {
            self.leave_broken_marks()?;
        }
        self.skip_empty_lines()?;
        self.line = self.next_line;
        self.marks.begin();
        let (mut n_bytes, mut n_ends, mut begun) = (0, 0, false);
        loop {
            let input = self.source.piece().map_err(failed)?;
            // The end of the file ends a record as the end of a line does, unless a quotation mark is open.
            let is_end = input.is_empty() && begun;
            let input = if is_end { b"\n" } else { input };
            let (result, taken, written, ended) = self.parser.read_record(input, &mut self.bytes[n_bytes..], &mut self.ends[n_ends..]);
            if is_end && matches!(result, ReadRecordResult::InputEmpty) {
                let sentence = "ends with the file within quotation marks; close them, or take the whole file if it was cut short";
                return self.left_open(format!("the record that begins on line {} {sentence}", self.line));
            }
            let is_first = !begun;
            begun |= taken > 0;
            // Every byte belongs to a cell or ends one, except the marks around cells.
            self.marks.pass(&input[..taken], self.next_line, taken == written + ended);
            if !is_end {
                let read = &input[..taken];
                let n_line_ends = read.iter().filter(|&&byte| byte == b'\n').count();
                let is_line = is_first && matches!(result, ReadRecordResult::Record) && n_line_ends == usize::from(read.ends_with(b"\n"));
                self.next_line += n_line_ends as u64;
                // Nobody goes back into a record of a single line.
                if self.goes_on && !is_line { self.source.keep(taken) } else { self.source.pass(taken) }
            }
            n_bytes += written;
            n_ends += ended;
            if self.is_too_long() {
                return Ok(true);
            }
            match result {
                ReadRecordResult::InputEmpty => {}
                ReadRecordResult::OutputFull => {
                    grow(&mut self.bytes, MAX_RECORD_BYTES, self.line, "bytes; is a quotation mark left open?")?
                }
                ReadRecordResult::OutputEndsFull => grow(&mut self.ends, MAX_COLUMNS, self.line, "cells")?,
                ReadRecordResult::Record => {
                    self.n_ends = n_ends;
                    return Ok(true);
                }
                ReadRecordResult::End => return Ok(false),
            }
        }
    }

    /// Moves to the beginning of a record, so that its line is known.
    fn skip_empty_lines(&mut self) -> Result<()> {
        loop {
            let input = self.source.piece().map_err(failed)?;
            let empty = input.iter().take_while(|byte| matches!(byte, b'\r' | b'\n')).count();
            self.next_line += input[..empty].iter().filter(|&&byte| byte == b'\n').count() as u64;
            let is_over = empty < input.len() || input.is_empty();
            self.source.pass(empty);
            if is_over {
                return Ok(());
            }
        }
    }

    /// Ends the current record within quotation marks, with a sentence about them.
    fn left_open(&mut self, sentence: String) -> Result<bool> {
        if !self.goes_on {
            return Err(Error::Data(sentence));
        }
        self.open = Some(sentence);
        Ok(true)
    }

    /// Whether quotation marks of the current record hold more than those of a stream may, after which it is left open.
    fn is_too_long(&mut self) -> bool {
        let Some(opened) = self.marks.long(self.next_line).filter(|_| self.goes_on) else { return false };
        self.open = Some(format!(
            "line {opened}: a cell begins with a quotation mark that is not closed within {MAX_OPEN_LINES} lines and {} KiB of its row; close every quotation \
             mark, and write one within a cell twice",
            MAX_OPEN_BYTES >> 10
        ));
        true
    }

    /// If the marks of the record that was read last are left open or broken over several lines, goes back to the line after the first of them.
    fn leave_broken_marks(&mut self) -> Result<()> {
        let is_open = self.open.take().is_some();
        let broken = self.marks.found().filter(|[line, opened]| line != opened).map(|[_, opened]| opened);
        let open = self.marks.long(self.next_line).or(self.marks.open_since()).filter(|_| is_open);
        if let Some(opened) = broken.into_iter().chain(open).min() {
            let mut line_ends = self.source.kept().iter().enumerate().filter(|&(_, &byte)| byte == b'\n').map(|(at, _)| at);
            let end = line_ends.nth((opened - self.line) as usize);
            match end {
                Some(at) => {
                    self.source.go_back(at + 1);
                    self.next_line = opened + 1;
                }
                None => self.skip_line()?,
            }
            self.parser.reset();
        }
        self.source.forget();
        Ok(())
    }

    /// Moves behind the end of the line.
    fn skip_line(&mut self) -> Result<()> {
        loop {
            let input = self.source.piece().map_err(failed)?;
            let (n, is_over) = match input.iter().position(|&byte| byte == b'\n') {
                Some(at) => (at + 1, true),
                None => (input.len(), input.is_empty()),
            };
            self.next_line += u64::from(input[..n].ends_with(b"\n"));
            self.source.pass(n);
            if is_over {
                return Ok(());
            }
        }
    }

    /// Refuses the current record if its quotation marks are left open, or text follows a closing one.
    ///
    /// # Errors
    /// With a sentence that gives the place.
    pub fn expect_closed(&self) -> Result<()> {
        if let Some(sentence) = &self.open {
            return Err(Error::Data(sentence.clone()));
        }
        let Some([line, opened]) = self.marks.found() else { return Ok(()) };
        let of = if line == opened { String::new() } else { format!(" of the cell that begins on line {opened}") };
        Err(Error::Data(format!(
            "line {line}: text stands behind the closing quotation mark{of}, expected the next cell or the end of the line; close every quotation mark, \
             and write one within a cell twice"
        )))
    }

    /// The line on which the current record begins, from 1.
    pub fn line(&self) -> u64 {
        self.line
    }

    /// Number of cells of the current record.
    pub fn n_cells(&self) -> usize {
        self.n_ends
    }

    /// Cell `at`, in `column`, which must hold a name.
    pub fn name(&self, at: usize, column: &str) -> Result<&str> {
        expect_name(self.text(at)?, Place::Line(self.line), column)
    }

    /// Cell `at` of the current record.
    pub fn text(&self, at: usize) -> Result<&str> {
        let start = if at == 0 { 0 } else { self.ends[at - 1] };
        std::str::from_utf8(&self.bytes[start..self.ends[at]])
            .map_err(|_| Error::Data(format!("line {}, cell {}: it is not UTF-8; save the table as UTF-8", self.line, at + 1)))
    }
}

/// The first record that is not empty, with what was read along with it, and its delimiter. A pipe returns what it has, so a record may come in pieces.
fn beginning(source: &mut impl Read) -> std::io::Result<(Vec<u8>, u8)> {
    let (mut beginning, mut delimiters) = (Vec::new(), Delimiters::default());
    let mut piece = [0; 1 << 12];
    loop {
        match source.read(&mut piece) {
            Ok(n) => {
                beginning.extend_from_slice(&piece[..n]);
                if delimiters.read(&piece[..n]) || n == 0 || beginning.len() >= MAX_BEGINNING {
                    return Ok((beginning, delimiters.most_frequent()));
                }
            }
            Err(error) if error.kind() == std::io::ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
        }
    }
}

fn grow<T: Clone + Default>(buffer: &mut Vec<T>, limit: usize, line: u64, unit: &str) -> Result<()> {
    if buffer.len() >= limit {
        return Err(Error::Data(format!("the record that begins on line {line} has more than {limit} {unit}")));
    }
    buffer.resize(2 * buffer.len(), T::default());
    Ok(())
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::data::table::{Frame, Numbers, Wanted};

    fn read(source: impl Read, wanted: &Wanted) -> Result<Frame> {
        super::super::frame(Box::new(Csv::open(source)?), wanted)
    }

    fn wanted(numbers: &[&str], texts: &[&str]) -> Wanted {
        let owned = |names: &[&str]| names.iter().map(ToString::to_string).collect();
        Wanted { numbers: Numbers::Named(owned(numbers)), texts: owned(texts), ..Wanted::default() }
    }

    fn refusal(table: impl AsRef<[u8]>) -> String {
        read(table.as_ref(), &wanted(&["x"], &["id"])).unwrap_err().to_string()
    }

    #[test]
    fn columns_are_found_by_name() {
        let table = "id,y,x\na,1,-2.5e1\n\"b,\"\"c\", 3 ,4\r\n\na,5,6";
        let frame = read(table.as_bytes(), &wanted(&["x", "y"], &["id"])).unwrap();
        assert_eq!(frame.numbers, [[-25.0, 4.0, 6.0], [1.0, 3.0, 5.0]]);
        assert_eq!((frame.texts[0].distinct(), frame.texts[0].rows()), (&["a".to_owned(), "b,\"c".to_owned()][..], &[0, 1, 0][..]));
        assert_eq!(frame.names, ["x", "y"]);
        let others = Wanted { texts: vec!["id".to_owned()], ..Wanted::default() };
        assert_eq!(read(table.as_bytes(), &others).unwrap().names, ["y", "x"]);
    }

    #[test]
    fn byte_order_marks_semicolons_and_tabs_are_understood() {
        for table in [
            "\u{feff}id;x\na;1\n",
            "id\tx\na\t1",
            "id,x\r\na,1\r\n",
            "id,\"a; b; c\",x\na,0,1",
            "\"id\";\"x\";\"m, in cm, up\"\na;1;2",
            "\n\r\nid;x\na;1\n",
            "\u{feff}\nid\tx\na\t1\n",
            "\"note\n(a, b, \"\"c\"\")\";id;x\n0;a;1\n",
            "id;\"note\r\n(a, b)\";x\r\na;0;1\r\n",
            "id; \"temp, in C, or so\";x\na;0;1\n",
        ] {
            for frame in [read(table.as_bytes(), &wanted(&["x"], &["id"])), read(Drops(table.as_bytes()), &wanted(&["x"], &["id"]))] {
                assert_eq!(frame.unwrap().numbers, [[1.0]], "{table:?}");
            }
        }
    }

    #[test]
    fn every_flaw_is_a_sentence_with_its_place() {
        assert!(refusal("").starts_with("it is empty"));
        assert!(refusal("\n\n").starts_with("it is empty"));
        assert!(refusal("id,x\n").contains("no rows"));
        assert_eq!(refusal("idd,x\na,1"), "there is no column 'id'; did you mean 'idd'?");
        assert_eq!(refusal("id,x,x\na,1,1"), "the column 'x' is there twice; give its columns different names");
        assert_eq!(refusal("id,x\na,1\n\nb,2,3\n"), "line 4 has 3 cells, expected 2 as in the header");
        assert!(refusal("id,x\n\"two\nlines\",1\nb,\n").starts_with("line 4, column 'x': the cell is empty"));
        for cut in ["id,x\na,1\nb,\"2", "id,x\na,1\nb,\"2\n", "id,x\na,1\n\"b,2\nc,3\n", "id,x\na,1\nb,\""] {
            assert!(refusal(cut).starts_with("the record that begins on line 3 ends with the file within quotation marks"), "{cut}");
        }
        assert!(
            refusal("id,x\na,1\nb,NaN").starts_with("line 3, column 'x': expected a finite number, found 'NaN', a missing one; fill it")
        );
        for word in ["inf", "1e999", "one", "1.5.2", "0x10", "1,5,2"] {
            let sentence = refusal(format!("id,x\na,1\r\nb,\"{word}\""));
            assert_eq!(sentence, format!("line 3, column 'x': expected a finite number, found '{word}'"));
        }
        let comma =
            "line 2, column 'x': expected a finite number, found '-1,5'; write a point before decimals, and nothing between thousands";
        assert_eq!(refusal("id;x\na;-1,5"), comma);
        for cell in ["1e308", "-3.5e38"] {
            let sentence = refusal(format!("id,x\na,3.4e38\n\na,{cell}"));
            assert_eq!(sentence, format!("line 4, column 'x': expected a number of at most 3.4e38 in size, found '{cell}'"));
        }
        assert!(refusal(b"id,x\n\xff,1").starts_with("line 2, cell 1: it is not UTF-8"));
        assert!(refusal(b"\xff\xfei\0d\0").contains("UTF-8"));
        assert!(refusal("id,x\n,1").starts_with("line 2, column 'id': the cell is empty"));
    }

    /// Gives a byte at a time, as a slow pipe may.
    struct Drops<'a>(&'a [u8]);

    impl Read for Drops<'_> {
        fn read(&mut self, out: &mut [u8]) -> std::io::Result<usize> {
            self.0.take(1).read(out).inspect(|&n| self.0 = &self.0[n..])
        }
    }

    #[test]
    fn pieces_of_any_size_are_read_alike() {
        let table = "\u{feff}id;x\r\na;1\n\nb;2";
        let wanted = wanted(&["x"], &["id"]);
        let frame = read(Drops(table.as_bytes()), &wanted).unwrap();
        assert_eq!((&frame, &frame.numbers), (&read(table.as_bytes(), &wanted).unwrap(), &vec![vec![1.0, 2.0].into()]));
    }

    #[test]
    fn rows_know_their_lines() {
        let frame = read("id,x\na,1\na,2\n\n\"b\n\",3\nc,4\n".as_bytes(), &wanted(&["x"], &["id"])).unwrap();
        assert_eq!([0, 1, 2, 3].map(|row| frame.places.name(row)), ["line 2", "line 3", "line 5", "line 7"]);
    }

    #[test]
    fn a_column_twice_is_refused_where_it_would_be_read() {
        let others = Wanted { texts: vec!["id".to_owned()], ..Wanted::default() };
        let refused = |table: &str, wanted: &Wanted| read(table.as_bytes(), wanted).unwrap_err().to_string();
        let sentence = "the column 'x' is there twice; give its columns different names";
        assert_eq!(refused("id,x,y, x\na,1,2,3", &others), sentence);
        assert_eq!(refused("id,x,y,x\na,1,2,3", &wanted(&["y", "x"], &["id"])), sentence);
        assert_eq!(refused("id,y,id\na,2,3", &others), sentence.replace('x', "id"));
        assert_eq!(read("id,x,y,x\na,1,2,3".as_bytes(), &wanted(&["y"], &["id"])).unwrap().numbers, [[2.0]]);
    }

    #[test]
    fn a_mark_that_is_left_open_in_every_row_swallows_none() {
        let rows: String = (0..60).map(|row| format!("{row},\"ab\n")).collect();
        let told = "line 3: text stands behind the closing quotation mark of the cell that begins on line 2, expected the next cell or the end of the \
                    line; close every quotation mark, and write one within a cell twice";
        for drops in [false, true] {
            let table = format!("x,id\n{rows}");
            let wanted = wanted(&["x"], &["id"]);
            let found = if drops { read(Drops(table.as_bytes()), &wanted) } else { read(table.as_bytes(), &wanted) };
            assert_eq!(found.unwrap_err().to_string(), told);
        }
        for behind in ["\"a\"b,1", "\"a\" b,1", "\"a\" \"b\",1", "c,\"1\"0"] {
            assert!(
                refusal(format!("id,x\nv,2\n{behind}\n")).starts_with("line 3: text stands behind the closing quotation mark, expected"),
                "{behind}"
            );
        }
        assert!(refusal("\"id\"s,x\na,1\n").starts_with("line 1: text stands behind"));
        // Blanks, ends of lines, doubled marks and marks within a plain cell.
        let table = "id,x\r\n\"a\" ,\"1\"\r\na\"b\"c,\"2\" \n\"\"\"d\"\"\n,\",3\n\"\"\"\",\"4\"";
        for frame in [read(table.as_bytes(), &wanted(&["x"], &["id"])), read(Drops(table.as_bytes()), &wanted(&["x"], &["id"]))] {
            let frame = frame.unwrap();
            assert_eq!(frame.numbers, [[1.0, 2.0, 3.0, 4.0]]);
            assert_eq!(frame.texts[0].distinct(), ["a", "a\"b\"c", "\"d\"\n,", "\""]);
        }
    }

    #[test]
    fn an_open_quotation_mark_does_not_swallow_the_file() {
        let endless = "id,x\n\"".bytes().chain(std::iter::repeat_n(b'a', 2 * MAX_RECORD_BYTES)).collect::<Vec<u8>>();
        assert!(refusal(&endless).contains("is a quotation mark left open?"));
        assert!(refusal(",".repeat(MAX_COLUMNS + 1)).contains("more than 65536 cells"));
    }

    proptest! {
        #[test]
        fn whatever_is_written_is_read_back(rows in prop::collection::vec(("[a-z,\"\n;é]{0,9}[a-z]", -1e12..1e12f64), 1..40), crlf: bool) {
            let end = if crlf { "\r\n" } else { "\n" };
            let mut table = format!("id,x{end}");
            for (name, x) in &rows {
                table += &format!("\"{}\",{x}{end}", name.replace('"', "\"\""));
            }
            let frame = read(table.as_bytes(), &wanted(&["x"], &["id"])).unwrap();
            prop_assert_eq!(&frame.numbers[0], &rows.iter().map(|row| row.1).collect::<Vec<_>>());
            let names: Vec<&str> = frame.texts[0].rows().iter().map(|&id| frame.texts[0].distinct()[id as usize].as_str()).collect();
            prop_assert_eq!(names, rows.iter().map(|row| row.0.trim()).collect::<Vec<_>>());
        }

        #[test]
        fn no_bytes_panic(bytes in prop::collection::vec(prop_oneof![Just(b','), Just(b'"'), Just(b'\n'), Just(b'x'), any::<u8>()], 0..200)) {
            let _ = read(&bytes[..], &wanted(&["x"], &[]));
            let table = [b"id,x\n", &bytes[..]].concat();
            let _ = read(&table[..], &wanted(&["x"], &["id"]));
        }
    }
}
