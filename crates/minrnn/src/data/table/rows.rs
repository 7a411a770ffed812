//! Rows of a CSV table one after the other, as they arrive.

use std::io::Read;

use minrnn_model::Category;

use super::cells::{Cell, CellReader, Kind, Place};
use super::columns::{Names, Numbers, Wanted};
use super::formats::Records;
use crate::{Error, Result};

/// Rows of a table that a model reads, from a source that may give them slowly, such as a pipe.
pub struct Rows<R> {
    records: Records<R>,
    header: Vec<String>,
    /// Where the columns stand that are read.
    columns: Vec<usize>,
    /// Where the column stands that names the sequence of a row.
    group: Option<usize>,
    values: Vec<f64>,
    readers: Vec<CellReader>,
}

/// A row of a table.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Row<'a> {
    /// The line on which it begins, from 1.
    pub line: u64,
    /// The sequence that it belongs to; empty where no column says it.
    pub group: &'a str,
    /// Its numbers, in the order in which the columns were asked for.
    pub values: &'a [f64],
}

/// The line of a row, and the row or what is wrong with it.
pub type Arrival<'a> = (u64, Result<Row<'a>>);

impl<R: Read> Rows<R> {
    /// Reads the header, in which `columns` and `group` must be; all others are passed over. A number that is missing is NaN where it `may_miss`;
    /// `categories` are the columns that hold names.
    ///
    /// # Errors
    /// When the source cannot be read, is empty, or a column is missing or there twice.
    pub fn new(source: R, columns: &[String], group: Option<&str>, may_miss: bool, categories: &[Category]) -> Result<Self> {
        let mut records = Records::new(source)?;
        let header = records.header()?;
        let wanted = Wanted {
            numbers: Numbers::Named(columns.to_vec()),
            texts: group.map(str::to_owned).into_iter().collect(),
            may_miss,
            ..Wanted::default()
        };
        let positions = wanted.positions(&header)?;
        let names = Names::known(columns, categories);
        let kind = |column: &String| names.iter().find(|names| names.column == *column).map_or(Kind::Numbers, Names::kind);
        let readers = columns.iter().map(|column| CellReader::new(column.clone(), may_miss, kind(column))).collect();
        Ok(Self { records, header, columns: positions.numbers, group: positions.texts.first().copied(), values: Vec::new(), readers })
    }

    /// The next row; `None` at the end. After a row with a flaw the next one can be asked for.
    ///
    /// # Errors
    /// When the source cannot be read or a record has no end.
    pub fn advance(&mut self) -> Result<Option<Arrival<'_>>> {
        if !self.records.advance()? {
            return Ok(None);
        }
        Ok(Some((self.records.line(), self.row())))
    }

    fn row(&mut self) -> Result<Row<'_>> {
        let (line, found, expected) = (self.records.line(), self.records.n_cells(), self.header.len());
        if found != expected {
            return Err(Error::Data(format!("line {line} has {found} cells, expected {expected} as in the header")));
        }
        self.values.clear();
        for (&at, reader) in self.columns.iter().zip(&mut self.readers) {
            self.values.push(reader.number(Cell::Any(self.records.text(at)?), Place::Line(line))?);
        }
        let group = match self.group {
            Some(at) => self.records.name(at, &self.header[at])?,
            None => "",
        };
        Ok(Row { line, group, values: &self.values })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    type Found = std::result::Result<(u64, String, Vec<f64>), String>;

    fn rows(table: &str, columns: &[&str], group: Option<&str>) -> Vec<Found> {
        let columns: Vec<String> = columns.iter().map(ToString::to_string).collect();
        let mut rows = Rows::new(table.as_bytes(), &columns, group, false, &[]).unwrap();
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
    fn a_missing_number_is_nan_where_it_may_be() {
        let mut rows = Rows::new("x,y\n,1\nNA,?\n".as_bytes(), &["x".to_owned(), "y".to_owned()], None, true, &[]).unwrap();
        assert!(rows.advance().unwrap().unwrap().1.is_ok_and(|row| row.values[0].is_nan() && row.values[1] == 1.0));
        assert!(rows.advance().unwrap().unwrap().1.is_ok_and(|row| row.values.iter().all(|x| x.is_nan())));
    }

    #[test]
    fn a_header_without_the_columns_is_refused() {
        let refused =
            |table: &str| Rows::new(table.as_bytes(), &["x".to_owned()], Some("id"), false, &[]).err().map(|error| error.to_string());
        assert!(refused("").unwrap().contains("it is empty"));
        assert_eq!(refused("id,X\n").unwrap(), "there is no column 'x'; expected one of id, X");
        assert_eq!(refused("x\n1\n").unwrap(), "there is no column 'id'; expected one of x");
        assert_eq!(refused("id,x,x\n").unwrap(), "the column 'x' is there twice; give its columns different names");
    }
}
