//! How surprising each line or token of a text is to a text model; the text is read as the command reads it.

use std::fs::File;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use minrnn::Error;
use minrnn::deployed::{RowUnit, TextRow, TextScorer, Usual};
use numpy::{Element, PyArrayDyn};
use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyString};

use crate::arrays::filled;
use crate::failure::{Failure, Mistake, Result};
use crate::loaded::Loaded;
use crate::prediction::in_memory;
use crate::scoring::BY;
use crate::signals::interruptible;
use crate::texts::{TEXT, USUAL_TEXT, text};
use crate::threads::{Reading, Threads, within};

/// For each row its line, number of tokens, surprise (NaN if there is none), whether it is marked and whether it has something that is not in the
/// vocabulary, each `[N]`, and its text; the threshold; and notes on the texts and the threshold, a sentence each.
pub(crate) type ScoredText<'py> = (
    [Bound<'py, PyArrayDyn<i64>>; 2],
    Bound<'py, PyArrayDyn<f64>>,
    [Bound<'py, PyArrayDyn<bool>>; 2],
    Vec<String>,
    Option<f64>,
    Vec<String>,
);

/// A text to read: one in memory, or a file.
pub(crate) enum Text {
    Handed(Vec<u8>),
    File(PathBuf),
}

impl Text {
    /// The text `any`, which messages call `name`: a text, its bytes, or the path of its file.
    pub fn of(any: &Bound<'_, PyAny>, name: &str) -> Result<Self> {
        if any.is_instance_of::<PyString>() {
            return Ok(Self::Handed(text(any, name)?.into_bytes()));
        }
        if let Ok(bytes) = any.cast::<PyBytes>() {
            return Ok(Self::Handed(bytes.as_bytes().to_vec()));
        }
        let found = any.get_type().name()?.to_string();
        let refused = |_| {
            let expected = "the model reads text: expected a text (str or bytes), or the path of its file as a pathlib.Path";
            Failure::new(Mistake::Kind, format!("{name}: {expected}, found {found}"))
        };
        any.extract().map(Self::File).map_err(refused)
    }

    /// What `read` returns, given the text's name in messages and its bytes.
    fn read<T>(self, name: &'static str, read: impl FnOnce(&Path, &mut dyn std::io::Read) -> Result<T, Error>) -> Result<T> {
        let found = match self {
            Self::Handed(bytes) => read(Path::new(name), &mut &bytes[..]),
            Self::File(path) => {
                File::open(&path).map_err(|error| Error::io("read", &path, error)).and_then(|mut file| read(&path, &mut file))
            }
        };
        found.map_err(in_memory)
    }
}

/// The unit called `by`.
pub(crate) fn unit(by: &Bound<'_, PyAny>) -> Result<RowUnit> {
    let name = text(by, "by")?;
    name.parse().map_err(|_| {
        let [line, token] = [RowUnit::Line, RowUnit::Token];
        Failure::input(format!("by: expected '{line}' or '{token}', found '{name}'"))
    })
}

/// The rows as columns.
#[derive(Default)]
struct Rows {
    lines: Vec<i64>,
    tokens: Vec<i64>,
    surprises: Vec<f64>,
    marked: Vec<bool>,
    unknown: Vec<bool>,
    texts: Vec<String>,
}

impl Rows {
    fn push(&mut self, row: TextRow, threshold: Option<f64>) {
        self.lines.push(row.line as i64);
        self.tokens.push(row.tokens as i64);
        self.surprises.push(row.surprise.unwrap_or(f64::NAN));
        self.marked.push(row.is_marked(threshold) == Some(true));
        self.unknown.push(row.has_unknown);
        self.texts.push(row.text);
    }
}

/// How surprising the rows of `text` are, and the threshold above which a row is marked: more surprising than a share of the rows of the text that the model's run
/// held out, or of those of `usual`.
pub(crate) fn score_text<'py>(
    py: Python<'py>,
    loaded: &Arc<Loaded>,
    text: Text,
    usual: Option<Text>,
    unit: RowUnit,
    share: f64,
    threads: Threads,
) -> Result<ScoredText<'py>> {
    let tokenizer = loaded.tokenizer()?;
    let pool = threads.pool(py, Reading::Sequences)?;
    let found = interruptible(py, |stop| {
        within(pool.as_deref(), || {
            let scorer = TextScorer::new(loaded, tokenizer, unit, stop);
            let mut notes = Vec::new();
            let usual = match usual {
                Some(usual) => usual.read(USUAL_TEXT, |name, from| scorer.calibrate(name, from))?.map(|(calibration, of_usual)| {
                    notes.extend(of_usual.into_iter().map(|note| format!("{USUAL_TEXT}: {note}")));
                    Usual::Rows(calibration)
                }),
                None => scorer.calibrate_held_out()?,
            };
            let Some(usual) = usual else { return Ok(None) };
            let (threshold, told) = usual.threshold(share, BY)?;
            let mut rows = Rows::default();
            let mut see = |row| {
                rows.push(row, threshold);
                Ok(())
            };
            let Some(of_text) = text.read(TEXT, |name, from| scorer.score(name, from, &mut see))? else { return Ok(None) };
            notes.extend(of_text);
            notes.push(told);
            Ok::<_, Failure>(Some((rows, threshold, notes)))
        })
    })?;
    // Only a stop leaves it out, and its exception was raised above.
    let (rows, threshold, notes) = found?.unwrap_or_default();
    let numbers = [column(py, &rows.lines)?, column(py, &rows.tokens)?];
    let marks = [column(py, &rows.marked)?, column(py, &rows.unknown)?];
    Ok((numbers, column(py, &rows.surprises)?, marks, rows.texts, threshold, notes))
}

/// The values as an array `[N]`.
fn column<'py, T: Element + Copy>(py: Python<'py>, values: &[T]) -> Result<Bound<'py, PyArrayDyn<T>>> {
    filled(py, &[values.len()], |room| {
        room.copy_from_slice(values);
        Ok(())
    })
}
