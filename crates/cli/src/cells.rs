//! Cells of tables that are answers, as CSV and as JSON.

use std::fmt::Write;

use minrnn::csv::quoted;
use minrnn::numbers::Shortest;
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

/// The cells of a row as an object of JSON, by the names of their columns.
pub fn object(names: &[String], cells: Vec<Cell>) -> Value {
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
}
