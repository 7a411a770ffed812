//! Rows of a CSV table one at a time, as they arrive.

use std::io::Read;

use minrnn_model::TableTask;

use super::calendar::{self, CalendarColumn};
use super::cells::{Cell, CellReader, Kind, Place, shown};
use super::clock::Clock;
use super::columns::{Names, Numbers, TimeColumn, Wanted};
use super::formats::Records;
use super::time_cells::of_zone;
use crate::counted::counted;
use crate::{Error, Result};

/// Rows of a table for a model, from a source that may be slow, such as a pipe.
pub struct Rows<R> {
    records: Records<R>,
    header: Vec<String>,
    /// The columns that are read.
    columns: Vec<Column>,
    /// The index of the time column, if there is one, and the format of its first cell.
    time: Option<(usize, Option<Clock>)>,
    /// Whether a part of the calendar is read from it.
    reads_calendar: bool,
    /// The index of the column that names the sequence of a row.
    group: Option<usize>,
    values: Vec<f64>,
}

/// A column that is read.
enum Column {
    /// The cell at this index.
    Own(usize, CellReader),
    /// A part of the calendar at the time of the row.
    Calendar(CalendarColumn),
}

/// A row of a table.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Row<'a> {
    /// The line on which it begins, from 1.
    pub line: u64,
    /// The sequence that it belongs to; empty without a group column.
    pub group: &'a str,
    /// Its numbers, in the order in which the columns were requested.
    pub values: &'a [f64],
    /// Its time and the format it is written in, if there is a time column.
    pub time: Option<(Clock, f64)>,
}

/// The line of a row, and the row or its error.
pub type Arrival<'a> = (u64, Result<Row<'a>>);

impl<R: Read> Rows<R> {
    /// Reads the header, which must have the columns and the group that `task` reads; all others except the time column are ignored. A
    /// missing number is NaN if the model allows missing numbers; parts of the calendar are derived from the time column, which is
    /// otherwise optional.
    ///
    /// # Errors
    /// When the source cannot be read, is empty or not CSV, or a column is missing or occurs twice.
    pub fn new(source: R, task: &TableTask, group: Option<&str>) -> Result<Self> {
        let mut records = Records::of_stream(source)?;
        if let Some(beginning) = records.beginning_of_json()? {
            return Err(Error::Data(format!(
                "the rows begin with '{}' as JSON does, expected CSV: the names of the columns on the first line, then a row on each",
                shown(&beginning)
            )));
        }
        let header = records.header()?;
        let time = task.time().filter(|time| header.iter().any(|name| name == time));
        let (names, may_miss) = (Names::known(task.columns(), task.categories()), !task.missing().is_error());
        let all = Wanted {
            numbers: Numbers::Named(task.columns().to_vec()),
            texts: group.map(str::to_owned).into_iter().collect(),
            time: time.map_or(TimeColumn::None, |time| TimeColumn::Named(time.to_owned())),
            may_miss,
            categories: names.clone(),
            ..Wanted::default()
        };
        let (wanted, told) = calendar::split(&all, &header)?.unwrap_or((all, Vec::new()));
        let positions = wanted.positions(&header)?;
        let Numbers::Named(own) = &wanted.numbers else { unreachable!("the columns are named") };
        let kind = |column: &String| names.iter().find(|names| names.column == *column).map_or(Kind::Numbers, Names::kind);
        let own = own.iter().zip(&positions.numbers);
        let mut columns: Vec<Column> =
            own.map(|(column, &at)| Column::Own(at, CellReader::new(column.clone(), may_miss, kind(column)))).collect();
        let (time, reads_calendar) = (positions.time.map(|at| (at, None)), !told.is_empty());
        told.into_iter().for_each(|(at, column)| columns.insert(at, Column::Calendar(column)));
        let group = positions.texts.first().copied();
        Ok(Self { records, header, columns, time, reads_calendar, group, values: Vec::new() })
    }

    /// The next row; `None` at the end. After a row with an error the next one can be read. It is the one on the line after a quotation mark that is not
    /// closed, within 1000 lines or 64 KiB of its row or before the source ends, or that is closed on another line with text behind it.
    ///
    /// # Errors
    /// When the source cannot be read or a record is too long.
    pub fn advance(&mut self) -> Result<Option<Arrival<'_>>> {
        if !self.records.advance()? {
            return Ok(None);
        }
        Ok(Some((self.records.line(), self.row())))
    }

    fn row(&mut self) -> Result<Row<'_>> {
        self.records.expect_closed()?;
        let (line, found, expected) = (self.records.line(), self.records.n_cells(), self.header.len());
        if found != expected {
            return Err(Error::Data(format!("line {line} has {}, expected {expected} as in the header", counted(found, "cell"))));
        }
        self.values.clear();
        let time = self.time()?;
        for column in &mut self.columns {
            self.values.push(match (column, time) {
                (Column::Own(at, reader), _) => reader.number(Cell::Any(self.records.text(*at)?), Place::Line(line))?,
                (Column::Calendar(column), Some((clock, time))) => {
                    column.read(clock, time).map_err(|error| Error::Data(format!("line {line}: {error}")))?
                }
                (Column::Calendar(_), None) => unreachable!("parts of the calendar come with a column of times"),
            });
        }
        let group = match self.group {
            Some(at) => self.records.name(at, &self.header[at])?,
            None => "",
        };
        Ok(Row { line, group, values: &self.values, time })
    }

    /// The time of the row, if there is a time column.
    fn time(&mut self) -> Result<Option<(Clock, f64)>> {
        let Some((at, clock)) = &mut self.time else { return Ok(None) };
        let (line, text) = (self.records.line(), self.records.text(*at)?.trim());
        let known = clock.or_else(|| if self.reads_calendar { Clock::of_date(text) } else { Clock::of(text) });
        let Some((known, time)) = known.and_then(|known| Some((known, known.read(text)?))) else {
            let name = &self.header[*at];
            return Err(of_zone(Place::Line(line), name, text).unwrap_or_else(|| {
                Error::Data(format!("line {line}, column '{name}': expected a time that is written as those before, found '{text}'"))
            }));
        };
        *clock = Some(known);
        Ok(Some((known, time)))
    }
}

#[cfg(test)]
mod tests {
    use minrnn_model::{Forecaster, Missing, Normalization};
    use proptest::prelude::*;

    use super::*;

    /// A forecaster that reads these columns.
    fn task(columns: &[&str], missing: Missing) -> TableTask {
        let columns: Vec<String> = columns.iter().map(ToString::to_string).collect();
        let all = |x: f64| vec![x; columns.len()];
        let of_one = Normalization { mean: vec![0.0], deviation: vec![1.0] };
        TableTask::Forecast(Forecaster {
            target: vec![columns[0].clone()],
            group: None,
            time: Some("ds".to_owned()),
            horizon: 1,
            season: 0,
            normalization: Normalization { mean: all(0.0), deviation: all(1.0) },
            target_normalization: of_one,
            scaling: Default::default(),
            missing,
            layout: Default::default(),
            categories: Vec::new(),
            of_table: None,
            quantiles: Vec::new(),
            columns,
        })
    }

    type Found = std::result::Result<(u64, String, Vec<f64>), String>;

    fn rows(table: &str, columns: &[&str], group: Option<&str>) -> Vec<Found> {
        rows_of(table.as_bytes(), columns, group)
    }

    fn rows_of(source: impl Read, columns: &[&str], group: Option<&str>) -> Vec<Found> {
        let mut rows = Rows::new(source, &task(columns, Missing::Error), group).unwrap();
        let mut all = Vec::new();
        while let Some((line, row)) = rows.advance().unwrap() {
            let row = row.map(|row| (row.line, row.group.to_owned(), row.values.to_vec())).map_err(|error| error.to_string());
            assert!(row.as_ref().is_err() || row.as_ref().is_ok_and(|row| row.0 == line));
            all.push(row);
        }
        all
    }

    #[test]
    fn rows_have_their_columns_in_the_wanted_order_and_a_flaw_ends_nothing() {
        let found = rows("id,y,x,z\na,1,2,-\nb,one,2,-\n\nc,3\n ,1,1,\na,5,6,", &["x", "y"], Some("id"));
        assert_eq!(found[0], Ok((2, "a".to_owned(), vec![2.0, 1.0])));
        assert_eq!(found[1], Err("line 3, column 'y': expected a finite number, found 'one'".to_owned()));
        assert_eq!(found[2], Err("line 5 has 2 cells, expected 4 as in the header".to_owned()));
        assert_eq!(found[3], Err("line 6, column 'id': the cell is empty, expected a name".to_owned()));
        assert_eq!(found[4], Ok((7, "a".to_owned(), vec![6.0, 5.0])));
        assert_eq!(found.len(), 5);
        assert_eq!(rows("x\n4\n", &["x"], None), [Ok((2, String::new(), vec![4.0]))]);
    }

    #[test]
    fn text_behind_a_closing_quotation_mark_is_a_flaw_of_its_row() {
        let found = rows("x,id\n\"1\"2,a\n3,b\n", &["x"], Some("id"));
        assert!(
            found[0].as_ref().is_err_and(|flaw| flaw.starts_with("line 2: text stands behind the closing quotation mark")),
            "{found:?}"
        );
        assert_eq!(found[1..], [Ok((3, "b".to_owned(), vec![3.0]))]);
    }

    /// Gives at most this many bytes at a time.
    struct Pieces<'a>(&'a [u8], usize);

    impl Read for Pieces<'_> {
        fn read(&mut self, out: &mut [u8]) -> std::io::Result<usize> {
            let n = self.0.len().min(self.1).min(out.len());
            out[..n].copy_from_slice(&self.0[..n]);
            self.0 = &self.0[n..];
            Ok(n)
        }
    }

    /// What the rows of `table` are, however it arrives.
    fn arriving(table: &str) -> Vec<Found> {
        let found = rows(table, &["x"], Some("id"));
        for size in [1, 7, 5000] {
            assert_eq!(rows_of(Pieces(table.as_bytes(), size), &["x"], Some("id")), found, "{size} bytes at a time");
        }
        found
    }

    #[test]
    fn a_quotation_mark_that_is_left_open_swallows_no_row_behind_its_own() {
        let row = |line: u64, name: &str, x: f64| -> Found { Ok((line, name.to_owned(), vec![x])) };
        let is_flaw = |found: &Found, begins: &str| found.as_ref().is_err_and(|flaw| flaw.starts_with(begins));
        // Until the end.
        for end in ["\n", "\r\n"] {
            let found = arriving(&["id;x", "a;1", "\"b;2", "c;3", "d;4"].map(|line| line.to_owned() + end).concat());
            assert!(found.len() == 4 && is_flaw(&found[1], "the record that begins on line 3 ends with the file within"), "{found:?}");
            assert_eq!([&found[0], &found[2], &found[3]], [&row(2, "a", 1.0), &row(4, "c", 3.0), &row(5, "d", 4.0)]);
        }
        let last = arriving("id,x\na,1\nb,\"2");
        assert!(last.len() == 2 && is_flaw(&last[1], "the record that begins on line 3 ends with the file within"), "{last:?}");
        // For too many lines, or bytes of one line.
        let many = arriving(&format!("id,x\n\"b,2\n{}", "c,3\n".repeat(1500)));
        assert!(
            many.len() == 1501 && is_flaw(&many[0], "line 2: a cell begins with a quotation mark that is not closed within 1000"),
            "{}",
            many.len()
        );
        assert!((1..1501).all(|at| many[at] == row(at as u64 + 2, "c", 3.0)));
        let wide = arriving(&format!("id,x\n\"{}\nc,3\n", "b".repeat(100_000)));
        assert!(
            wide.len() == 2 && is_flaw(&wide[0], "line 2: a cell begins with a quotation mark that is not closed within"),
            "{}",
            wide.len()
        );
        assert_eq!(wide[1], row(3, "c", 3.0));
        // Until the next one, and behind a cell of several lines.
        let between = arriving("id,x,note\n\"b,2,\nc,3,\n\"d,4,\ne,5,\nf,6,\"two\nlines\"\ng,7,\"two\nlines\"h\ni,8,\n");
        assert!(
            is_flaw(&between[0], "line 4: text stands behind the closing quotation mark of the cell that begins on line 2"),
            "{between:?}"
        );
        assert_eq!(between[1], row(3, "c", 3.0));
        assert!(
            is_flaw(&between[2], "line 6: text stands behind the closing quotation mark of the cell that begins on line 4"),
            "{between:?}"
        );
        assert_eq!(between[3..5], [row(5, "e", 5.0), row(6, "f", 6.0)]);
        assert!(is_flaw(&between[5], "line 9: text stands behind"), "{between:?}");
        assert!(is_flaw(&between[6], "line 9 has 1 cell"), "{between:?}");
        assert_eq!(between[7..], [row(10, "i", 8.0)]);
    }

    #[test]
    fn a_row_that_is_left_open_is_told_before_more_is_waited_for() {
        struct Silent;
        impl Read for Silent {
            fn read(&mut self, _: &mut [u8]) -> std::io::Result<usize> {
                panic!("it waits")
            }
        }
        let table = format!("id,x\na,1\n\"b,2\n{}", "c,3\n".repeat(3000));
        let mut rows = Rows::new(table.as_bytes().chain(Silent), &task(&["x"], Missing::Error), Some("id")).unwrap();
        assert!(rows.advance().unwrap().unwrap().1.is_ok());
        assert!(rows.advance().unwrap().unwrap().1.is_err());
        for line in 4..1000 {
            let (found, row) = rows.advance().unwrap().unwrap();
            assert!(found == line && row.is_ok());
        }
    }

    proptest! {
        #[test]
        fn rows_and_flaws_are_the_same_however_they_arrive_and_none_is_told_twice(
            lines in prop::collection::vec(
                prop_oneof![Just("a,1"), Just("\"b,2"), Just("b\",2"), Just("\"b\"c,2"), Just("\"\"\",2"), Just("\"b,2\""), Just("\"b\",2")],
                0..60,
            ),
            size in 1..40usize,
        ) {
            let table = "id,x\n".to_owned() + &lines.iter().map(|line| line.to_string() + "\n").collect::<String>();
            let found = rows_of(Pieces(table.as_bytes(), size), &["x"], Some("id"));
            prop_assert_eq!(&found, &rows(&table, &["x"], Some("id")));
            // On each line begins at most one row.
            let known: Vec<u64> = found.iter().flatten().map(|row| row.0).collect();
            prop_assert!(known.windows(2).all(|pair| pair[0] < pair[1]), "{:?}", known);
        }
    }

    #[test]
    fn a_missing_number_is_nan_where_it_may_be() {
        let mut rows = Rows::new("x,y\n,1\nNA,?\n".as_bytes(), &task(&["x", "y"], Missing::Mask), None).unwrap();
        assert!(rows.advance().unwrap().unwrap().1.is_ok_and(|row| row.values[0].is_nan() && row.values[1] == 1.0));
        assert!(rows.advance().unwrap().unwrap().1.is_ok_and(|row| row.values.iter().all(|x| x.is_nan())));
    }

    #[test]
    fn parts_of_the_calendar_are_those_of_the_time_of_a_row() {
        let table = "ds,x\n2024-02-29,7\n2024-13-01,8\n01.03.2024,9\n2024-12-31,10\n";
        let found = rows(table, &["x", "ds.month", "ds.weekday"], None);
        assert_eq!((&found[0], &found[3]), (&Ok((2, String::new(), vec![7.0, 1.0, 3.0])), &Ok((5, String::new(), vec![10.0, 11.0, 1.0]))));
        for (at, cell) in [(1, "2024-13-01"), (2, "01.03.2024")] {
            let refused = found[at].as_ref().unwrap_err();
            assert!(
                refused.contains(&format!("column 'ds': expected a time that is written as those before, found '{cell}'")),
                "{refused}"
            );
        }
        // Without them the times need not be dates, or exist at all.
        let mut plain = Rows::new("x,ds\n7,4\n8,4.5\n9,late\n".as_bytes(), &task(&["x"], Missing::Error), None).unwrap();
        for time in [4.0, 4.5] {
            assert_eq!(plain.advance().unwrap().unwrap().1.unwrap().time, Some((Clock::Number, time)));
        }
        assert!(plain.advance().unwrap().unwrap().1.unwrap_err().to_string().contains("line 4, column 'ds': expected a time"));
        let refused = rows("ds,x\n2024-02-29T10:00+01:00,7\n", &["x", "ds.month"], None)[0].clone().unwrap_err();
        assert!(refused.contains("line 2: the column 'ds' holds '2024-02-29T10:00+01:00', a time with an offset from UTC"), "{refused}");
        // Nothing else has to be read.
        assert_eq!(rows("ds,x\n2024-02-29,7\n", &["ds.month"], None), [Ok((2, String::new(), vec![1.0]))]);
        let mut without = Rows::new("x\n7\n".as_bytes(), &task(&["x"], Missing::Error), None).unwrap();
        assert_eq!(without.advance().unwrap().unwrap().1.unwrap().time, None);
        // A table that has the column is read as it is, and one without times lacks it.
        assert_eq!(rows("x,ds.month\n7,3\n", &["x", "ds.month"], None), [Ok((2, String::new(), vec![7.0, 3.0]))]);
        let lacks = Rows::new("x\n7\n".as_bytes(), &task(&["x", "ds.month"], Missing::Error), None).err().unwrap().to_string();
        assert!(lacks.contains("there is no column 'ds.month'"), "{lacks}");
    }

    #[test]
    fn a_header_without_the_columns_is_refused() {
        let refused =
            |table: &str| Rows::new(table.as_bytes(), &task(&["x"], Missing::Error), Some("id")).err().map(|error| error.to_string());
        assert!(refused("").unwrap().contains("it is empty"));
        assert_eq!(refused("id,X\n").unwrap(), "there is no column 'x'; expected one of 'id', 'X'");
        assert_eq!(refused("x\n1\n").unwrap(), "there is no column 'id'; expected one of 'x'");
        let json =
            "the rows begin with '{\"id\": 320' as JSON does, expected CSV: the names of the columns on the first line, then a row on each";
        assert_eq!(refused("{\"id\": 320, \"x\": 1.5}\n").unwrap(), json);
        // With or without blanks before its keys.
        assert_eq!(refused("{\"id\": 320,\"x\":1.5}\n").unwrap(), json);
        assert_eq!(refused("\n{\"id\": 320,\"name\":\"a\"}\n").unwrap(), json);
        assert!(refused("[{\"id\": 320}]\n").unwrap().contains("as JSON does"));
        assert_eq!(refused("id,x,x\n").unwrap(), "the column 'x' is there twice; give its columns different names");
    }
}
