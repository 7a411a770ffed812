//! Cells of CSV files.

use crate::printable::printable;

/// `cell` as it stands in a line.
pub fn quoted(cell: &str) -> String {
    match cell.contains([',', '"', '\n', '\r']) {
        true => format!("\"{}\"", cell.replace('"', "\"\"")),
        false => cell.to_owned(),
    }
}

/// A cell in which line ends and other control characters are escaped, so that it stays in its line.
pub fn in_a_line(text: &str) -> String {
    quoted(&printable(text))
}
