//! How surprising every row of a text was according to a text model, and how surprising usual rows are.

use std::io::{Cursor, ErrorKind, Read};
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};

use minrnn_model::Calibration;

use super::Deployed;
use super::held_out::{HeldOut, held_out_text};
use super::surprise::Surprise;
use super::text_rows::{RowUnit, TextRow, TextRows};
use super::usual::Usual;
use crate::counted::counted;
use crate::data::{FOREIGN_LEN, Tokenizer, TokenizerKind, foreign};
use crate::{Error, Result};

/// Bytes asked for at once.
const PIECE: usize = 1 << 14;
/// Bytes between two checks for a stop.
const PART: usize = 1 << 10;
/// What messages call the text that a run held out.
const HELD_OUT: &str = "the held-out text";

/// Scores the rows of texts.
#[derive(Clone, Copy)]
pub struct TextScorer<'a> {
    deployed: &'a Deployed,
    tokenizer: &'a Tokenizer,
    unit: RowUnit,
    stop: &'a AtomicBool,
}

impl<'a> TextScorer<'a> {
    /// Scores texts with `deployed`, whose vocabulary is `tokenizer`, in rows of `unit`, until `stop` is raised.
    pub fn new(deployed: &'a Deployed, tokenizer: &'a Tokenizer, unit: RowUnit, stop: &'a AtomicBool) -> Self {
        Self { deployed, tokenizer, unit, stop }
    }

    /// Calls `see` with every row of the text `from`, which messages call `name`. Returns notes on it, a sentence each; `None` if the stop was
    /// raised before the end. A source that waits for more may end early once it is.
    ///
    /// # Errors
    /// When the text cannot be read, is in another encoding or compressed, or any error of `see`.
    pub fn score(&self, name: &Path, from: &mut dyn Read, see: &mut dyn FnMut(TextRow) -> Result<()>) -> Result<Option<Vec<String>>> {
        let mut n_without_text = 0;
        let mut counting = |row: TextRow| {
            n_without_text += u64::from(row.has_no_text);
            see(row)
        };
        let mut surprise = Surprise::new(&self.deployed.model, self.tokenizer)?;
        let mut rows = TextRows::new(self.unit, &mut counting);
        let (mut piece, mut beginning) = (vec![0; PIECE], Vec::new());
        loop {
            let n = match from.read(&mut piece) {
                Ok(n) => n,
                Err(error) if error.kind() == ErrorKind::Interrupted => continue,
                Err(error) => return Err(Error::io("read", name, error)),
            };
            if self.is_stopped() {
                return Ok(None);
            }
            if n == 0 {
                break;
            }
            if beginning.len() < FOREIGN_LEN && self.tokenizer.kind() != TokenizerKind::Byte {
                beginning.extend_from_slice(&piece[..n.min(FOREIGN_LEN)]);
                if let Some(what) = foreign(&beginning) {
                    return Err(Error::malformed(name, what));
                }
            }
            for part in piece[..n].chunks(PART) {
                if self.is_stopped() {
                    return Ok(None);
                }
                surprise.push(part, &mut rows).map_err(|error| error.in_file(name))?;
            }
        }
        surprise.finish(&mut rows).map_err(|error| error.in_file(name))?;
        rows.finish()?;
        let mut notes = rows.notes();
        notes.extend(self.note_on_bytes(n_without_text));
        Ok(Some(notes))
    }

    /// How surprising the rows of the text `from` are, and notes on it; `None` if the stop was raised before the end.
    ///
    /// # Errors
    /// As [`score`](Self::score).
    pub fn calibrate(&self, name: &Path, from: &mut dyn Read) -> Result<Option<(Calibration, Vec<String>)>> {
        let mut surprises = Vec::new();
        let notes = self.surprises(name, from, &mut surprises)?;
        Ok(notes.map(|notes| (Calibration::of(surprises.into_iter().flatten()), notes)))
    }

    /// The same for the text that the run of the model held out; `None` if the stop was raised before the end.
    ///
    /// # Errors
    /// When what the run keeps of it is damaged or cannot be read.
    pub fn calibrate_held_out(&self) -> Result<Option<Usual>> {
        let text = match held_out_text(self.deployed)? {
            HeldOut::Text(text) => text,
            HeldOut::Gone(file) => {
                return Ok(Some(Usual::Unknown(format!(
                    "the text that the run held out cannot be read without '{}', which is not there, so none is marked by its surprise; put it back, or \
                     give a text with nothing unusual",
                    file.display()
                ))));
            }
            HeldOut::Unknown => return Ok(Some(Usual::from(None))),
        };
        let mut surprises = Vec::new();
        if self.surprises(Path::new(HELD_OUT), &mut Cursor::new(text), &mut surprises)?.is_none() {
            return Ok(None);
        }
        // It is cut out of a text: its first and last lines may be partial, and a line without its beginning is surprising.
        if self.unit == RowUnit::Line && surprises.len() > 2 {
            surprises.pop();
            surprises.remove(0);
        }
        Ok(Some(Usual::Rows(Calibration::of(surprises.into_iter().flatten()))))
    }

    /// Collects the surprise of every row; returns what [`score`](Self::score) does.
    fn surprises(&self, name: &Path, from: &mut dyn Read, into: &mut Vec<Option<f64>>) -> Result<Option<Vec<String>>> {
        self.score(name, from, &mut |row| {
            into.push(row.surprise);
            Ok(())
        })
    }

    fn is_stopped(&self) -> bool {
        self.stop.load(Ordering::Relaxed)
    }

    /// A note on a text of which `n_without_text` rows have bytes that are not text.
    fn note_on_bytes(&self, n_without_text: u64) -> Option<String> {
        let told = counted(n_without_text, if self.unit == RowUnit::Line { "line" } else { "place" });
        let sentence = || format!("{told} with bytes that are not UTF-8; if the text is in another encoding, save it as UTF-8");
        (n_without_text > 0).then(sentence)
    }
}
