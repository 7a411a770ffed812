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
        let mut records = Records::new(source)?;
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

    /// The next row; `None` at the end. After a row with an error the next one can be read.
    ///
    /// # Errors
    /// When the source cannot be read or a record does not end.
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
        let mut rows = Rows::new(table.as_bytes(), &task(columns, Missing::Error), group).unwrap();
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
