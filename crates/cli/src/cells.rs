//! Cells of tables that are answers, as CSV and as JSON.

use std::fmt::Write;

use minrnn::csv::quoted;
use minrnn::numbers::Shortest;
use minrnn_serve::Accept;
use serde_json::{Map, Value};

/// A cell.
pub enum Cell {
    Text(String),
    Step(usize),
    /// A number in the shortest form; NaN if there is none.
    Number(f64),
    /// The same with six decimals in CSV.
    Rounded(f64),
    /// Whether a row is marked; none if that is not known.
    Mark(Option<bool>),
}

impl Cell {
    /// Appends it to a line of CSV.
    fn write(&self, line: &mut String) {
        // Writing to a string cannot fail.
        let _ = match self {
            Self::Text(text) => line.write_str(&quoted(text)),
            Self::Step(step) => write!(line, "{step}"),
            Self::Number(number) | Self::Rounded(number) if number.is_nan() => Ok(()),
            Self::Number(number) => write!(line, "{}", Shortest(*number)),
            Self::Rounded(number) => write!(line, "{number:.6}"),
            Self::Mark(is_marked) => line.write_str(mark(*is_marked)),
        };
    }

    fn into_value(self) -> Value {
        match self {
            Self::Text(text) => text.into(),
            Self::Step(step) => step.into(),
            // NaN becomes null.
            Self::Number(number) | Self::Rounded(number) => number.into(),
            Self::Mark(is_marked) => is_marked.into(),
        }
    }
}

/// A mark in CSV: 1, 0, or nothing if it is not known.
pub fn mark(is_marked: Option<bool>) -> &'static str {
    match is_marked {
        Some(true) => "1",
        Some(false) => "0",
        None => "",
    }
}

/// The first line of a table of CSV, with the names of its columns.
pub fn header(names: &[String]) -> String {
    names.iter().map(|name| quoted(name)).collect::<Vec<_>>().join(",") + "\n"
}

/// Appends a line of CSV to `table`.
pub fn write_line(cells: &[Cell], table: &mut String) {
    write_cells(cells, table);
    table.push('\n');
}

/// Appends a part of a line of CSV to `line`.
pub fn write_cells(cells: &[Cell], line: &mut String) {
    for (at, cell) in cells.iter().enumerate() {
        if at > 0 {
            line.push(',');
        }
        cell.write(line);
    }
}

/// A table as it is written, row by row: its text is all that it takes.
pub struct Written {
    names: Vec<String>,
    accept: Accept,
    text: String,
}

impl Written {
    /// With columns of these names and no rows: CSV, or a list of objects of JSON.
    pub fn new(names: Vec<String>, accept: Accept) -> Self {
        let text = match accept {
            Accept::Csv => header(&names),
            Accept::Json => "[".to_owned(),
        };
        Self { names, accept, text }
    }

    /// Appends a row, with a cell for each column.
    pub fn push(&mut self, cells: Vec<Cell>) {
        match self.accept {
            Accept::Csv => write_line(&cells, &mut self.text),
            Accept::Json => {
                if self.text.len() > 1 {
                    self.text.push(',');
                }
                self.text += &object(&self.names, cells).to_string();
            }
        }
    }

    /// The whole text.
    pub fn end(mut self) -> String {
        if self.accept == Accept::Json {
            self.text.push(']');
        }
        self.text
    }
}

/// The cells of a row as an object of JSON, by the names of their columns.
fn object(names: &[String], cells: Vec<Cell>) -> Value {
    Value::Object(names.iter().cloned().zip(cells.into_iter().map(Cell::into_value)).collect::<Map<_, _>>())
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_cell_without_a_value_is_empty_in_csv_and_null_in_json() {
        let names = ["a, b", "step", "x", "y", "surprise", "none", "mark", "unmarked", "unknown"].map(str::to_owned);
        let cells = || {
            let numbers = [Cell::Number(1e-9), Cell::Number(f64::NAN), Cell::Rounded(0.123_456_78), Cell::Rounded(f64::NAN)];
            let marks = [Some(true), Some(false), None].map(Cell::Mark);
            [Cell::Text("say \"x\"".to_owned()), Cell::Step(3)].into_iter().chain(numbers).chain(marks).collect::<Vec<_>>()
        };
        let mut table = header(&names);
        write_line(&cells(), &mut table);
        assert_eq!(table, "\"a, b\",step,x,y,surprise,none,mark,unmarked,unknown\n\"say \"\"x\"\"\",3,1e-9,,0.123457,,1,0,\n");
        let expected = json!({ "a, b": "say \"x\"", "step": 3, "x": 1e-9, "y": null, "surprise": 0.123_456_78, "none": null, "mark": true,
            "unmarked": false, "unknown": null });
        assert_eq!(object(&names, cells()), expected);
    }

    #[test]
    fn a_table_that_is_written_row_by_row_is_one_table_of_csv_or_one_list_of_json() {
        let written = |accept: Accept, n_rows: usize| {
            let mut written = Written::new(["b", "a"].map(str::to_owned).to_vec(), accept);
            (1..=n_rows).for_each(|step| written.push(vec![Cell::Text("x,y".to_owned()), Cell::Step(step)]));
            written.end()
        };
        assert_eq!([0, 1, 2].map(|n| written(Accept::Csv, n)), ["b,a\n", "b,a\n\"x,y\",1\n", "b,a\n\"x,y\",1\n\"x,y\",2\n"]);
        let expected = ["[]", r#"[{"a":1,"b":"x,y"}]"#, r#"[{"a":1,"b":"x,y"},{"a":2,"b":"x,y"}]"#];
        assert_eq!([0, 1, 2].map(|n| written(Accept::Json, n)), expected);
    }
}
