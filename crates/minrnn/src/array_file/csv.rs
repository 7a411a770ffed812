//! Comma-separated values, with as many digits as are needed to read each number back exactly.

use std::fmt::Display;
use std::io::Write;

use super::{ArrayLayout, Format};
use crate::csv::quoted;

pub(super) const FORMAT: Format = Format { ending: "csv", header, row };

fn header(layout: &ArrayLayout) -> Option<Vec<u8>> {
    layout.rows()?;
    let mut line = Vec::new();
    layout.labels.iter().chain(&layout.columns).enumerate().for_each(|(at, name)| cell(at, quoted(name), &mut line));
    line.push(b'\n');
    Some(line)
}

fn row(labels: &[String], row: &[f32], out: &mut Vec<u8>) {
    labels.iter().enumerate().for_each(|(at, label)| cell(at, quoted(label), out));
    (labels.len()..).zip(row).for_each(|(at, number)| cell(at, number, out));
    out.push(b'\n');
}

/// Appends the cell at index `at` of a line.
fn cell(at: usize, shown: impl Display, out: &mut Vec<u8>) {
    if at > 0 {
        out.push(b',');
    }
    // Writing into memory does not fail.
    let _ = write!(out, "{shown}");
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_empty_first_cell_keeps_its_place() {
        let labels = ["", "1"].map(str::to_owned);
        let mut line = Vec::new();
        row(&labels, &[0.5, -1.0], &mut line);
        assert_eq!(line, b",1,0.5,-1\n");
        let layout = ArrayLayout { name: "x".to_owned(), labels: labels.to_vec(), columns: vec!["a".to_owned()], lengths: vec![1] };
        assert_eq!(header(&layout).unwrap(), b",1,a\n");
    }
}
