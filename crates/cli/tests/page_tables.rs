//! The page in the browser reads tables by itself. What they mean stands in `web/tests/tables.json`, which `web/tests/tables.mjs` holds its reader to, and
//! this the one of all commands.

use std::fs;
use std::path::Path;

use minrnn::data::table::{Frame, Numbers, Wanted, read_table};
use serde::Deserialize;

#[derive(Deserialize)]
struct Tables {
    read: Vec<Table>,
    refused: Vec<Table>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Table {
    text: String,
    columns: Vec<String>,
    group: Option<String>,
    /// The content of the columns, null where a number is missing.
    #[serde(default)]
    rows: Vec<Vec<Option<f64>>>,
    sequences: Option<usize>,
    /// The line at fault in a refused table.
    line: Option<u64>,
}

impl Table {
    fn read(&self) -> minrnn::Result<Frame> {
        let file = tempfile::Builder::new().suffix(".csv").tempfile().unwrap();
        fs::write(file.path(), &self.text).unwrap();
        let (numbers, texts) = (Numbers::Named(self.columns.clone()), self.group.iter().cloned().collect());
        read_table(file.path(), &Wanted { numbers, texts, may_miss: true, ..Wanted::default() })
    }
}

/// The tables of `kind`; none if this crate stands without its repository.
fn tables(kind: impl Fn(Tables) -> Vec<Table>) -> Vec<Table> {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../web/tests/tables.json");
    let Ok(tables) = fs::read(path) else {
        eprintln!("skipped: the page's tables are not here, as this crate stands without its repository");
        return Vec::new();
    };
    let tables = kind(serde_json::from_slice(&tables).unwrap());
    assert!(!tables.is_empty());
    tables
}

#[test]
fn cells_are_the_numbers_that_the_page_reads() {
    for table in tables(|tables| tables.read) {
        let frame = table.read().unwrap_or_else(|error| panic!("{:?}: {error}", table.text));
        let row = |at: usize| frame.numbers.iter().map(|column| Some(column[at]).filter(|number| !number.is_nan())).collect();
        let rows: Vec<Vec<Option<f64>>> = (0..frame.n_rows()).map(row).collect();
        assert_eq!(rows, table.rows, "{:?}", table.text);
        let sequences = frame.texts.first().map_or(1, |names| names.distinct().len());
        assert_eq!(sequences, table.sequences.unwrap_or(1), "{:?}", table.text);
    }
}

#[test]
fn what_the_page_refuses_is_refused_with_its_line() {
    for table in tables(|tables| tables.refused) {
        let Err(refused) = table.read() else { panic!("{:?} is read", table.text) };
        let sentence = refused.to_string();
        let named = sentence.split_once("line ").map(|(_, rest)| rest.split(|c: char| !c.is_ascii_digit()).next().unwrap().to_owned());
        assert!(table.line.is_none_or(|line| named == Some(line.to_string())), "{:?}: {sentence}", table.text);
    }
}
