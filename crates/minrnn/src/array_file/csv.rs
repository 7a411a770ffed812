//! Comma-separated values, each number with as many digits as it takes to read it back.

use std::io::Write;

use super::{ArrayLayout, Format};

pub(super) const FORMAT: Format = Format { ending: "csv", header, row };

fn header(layout: &ArrayLayout) -> Option<Vec<u8>> {
    layout.rows()?;
    let mut line = Vec::new();
    cells(layout.labels.iter().chain(&layout.columns), &mut line);
    line.push(b'\n');
    Some(line)
}

fn row(labels: &[String], row: &[f32], out: &mut Vec<u8>) {
    cells(labels, out);
    for number in row {
        if !out.is_empty() {
            out.push(b',');
        }
        // Writing into memory does not fail.
        let _ = write!(out, "{number}");
    }
    out.push(b'\n');
}

fn cells<'a>(names: impl IntoIterator<Item = &'a String>, out: &mut Vec<u8>) {
    for name in names {
        if !out.is_empty() {
            out.push(b',');
        }
        match name.contains([',', '"', '\n', '\r']) {
            true => out.extend_from_slice(format!("\"{}\"", name.replace('"', "\"\"")).as_bytes()),
            false => out.extend_from_slice(name.as_bytes()),
        }
    }
}
