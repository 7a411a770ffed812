//! Lines or tokens of a text.

use std::fs::File;
use std::io::{Cursor, Read};
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};

use minrnn::data::{FOREIGN_LEN, Tokenizer, TokenizerKind, foreign};
use minrnn::deployed::{Deployed, HeldOut, RowUnit, Surprise, TextRow, TextRows, held_out_text};
use minrnn::words::counted;
use minrnn_model::Calibration;

use super::tally::{Tally, mark};
use super::{Args, threshold};
use crate::csv::in_a_line;
use crate::say::say;
use crate::sink::Sink;
use crate::{input, interrupt};

/// Bytes asked for at once.
const PIECE: usize = 1 << 14;
/// Bytes between two looks at whether to stop.
const PART: usize = 1 << 10;

/// Scores every row; false when `stop` was raised before the end.
pub fn score(args: &Args, deployed: &Deployed, tokenizer: &Tokenizer, stop: &AtomicBool) -> anyhow::Result<bool> {
    let unit = args.unit();
    let (mut surprises, mut without_text) = (Vec::new(), 0_u64);
    let mut see = |row: TextRow| {
        without_text += u64::from(row.has_no_text);
        surprises.push(row.surprise);
        Ok(())
    };
    let text = Text { deployed, tokenizer, unit, stop };
    let mut gone = None;
    let calibration = match &args.calibrate {
        Some(path) => {
            if !text.read_file(path, &mut see)? {
                return Ok(false);
            }
            tell_bytes(&format!("{}: ", path.display()), without_text, unit);
            Some(Calibration::of(surprises.into_iter().flatten()))
        }
        None => match held_out_text(deployed)? {
            HeldOut::Text(held_out) => {
                if !text.read(Cursor::new(held_out), false, Path::new("the held-out text"), &mut see)? {
                    return Ok(false);
                }
                // It is cut out of a text: of the lines at its ends there may be a part only, and what stands without its beginning is surprising.
                if unit == RowUnit::Line && surprises.len() > 2 {
                    surprises.pop();
                    surprises.remove(0);
                }
                Some(Calibration::of(surprises.into_iter().flatten()))
            }
            HeldOut::Gone(file) => {
                gone = Some(file);
                None
            }
            HeldOut::Unknown => None,
        },
    };
    let threshold = threshold(args, calibration.as_ref(), gone.as_deref())?;
    let header = if unit == RowUnit::Line { "line,tokens,surprise,anomaly,text\n" } else { "line,surprise,anomaly,text\n" };
    let mut sink = Sink::open(args.out.as_deref())?;
    let (mut tally, mut is_empty, mut without_text) = (Tally::default(), true, 0_u64);
    let mut see = |row: TextRow| {
        // Nothing is printed of a text that cannot be read at all.
        if std::mem::take(&mut is_empty) {
            sink.write(header)?;
        }
        without_text += u64::from(row.has_no_text);
        let is_marked = tally.count(row.surprise, threshold, row.has_unknown, || format!("line {}", row.line));
        let surprise = row.surprise.map_or(String::new(), |surprise| format!("{surprise:.6}"));
        let tokens = if unit == RowUnit::Line { format!("{},", row.tokens) } else { String::new() };
        sink.write(&format!("{},{tokens}{surprise},{},{}\n", row.line, mark(is_marked), in_a_line(&row.text)))
    };
    if !text.read_file(&args.data, &mut see)? {
        return Ok(false);
    }
    if is_empty {
        sink.write(header)?;
    }
    sink.finish()?;
    tally.tell(if unit == RowUnit::Line { "line" } else { "token" });
    tell_bytes("", without_text, unit);
    if let Some(out) = &args.out {
        say(format_args!("rows: {}", out.display()));
    }
    Ok(true)
}

/// Says that there are `n` rows with bytes that are no text, if there are any.
fn tell_bytes(of: &str, n: u64, unit: RowUnit) {
    if n > 0 {
        let told = counted(n, if unit == RowUnit::Line { "line" } else { "place" });
        say(format_args!("{of}{told} with bytes that are not UTF-8; if the text is in another encoding, save it as UTF-8"));
    }
}

/// How texts are read.
struct Text<'a> {
    deployed: &'a Deployed,
    tokenizer: &'a Tokenizer,
    unit: RowUnit,
    stop: &'a AtomicBool,
}

impl Text<'_> {
    fn read_file(&self, path: &Path, see: &mut dyn FnMut(TextRow) -> minrnn::Result<()>) -> anyhow::Result<bool> {
        let source = input::path(path);
        let opened = source.clone();
        // A pipe waits for whoever writes into it.
        let Some(file) = interrupt::unless_stopped(self.stop, move || File::open(opened)) else { return Ok(false) };
        let file = file.map_err(|error| minrnn::Error::io("read", &source, error))?;
        let waits = !file.metadata().is_ok_and(|found| found.is_file());
        self.read(file, waits, &source, see)
    }

    /// Hands every row to `see`; false when it was stopped. `from` is something that may let wait for more, where `waits`.
    fn read(
        &self,
        mut from: impl Read + Send + 'static,
        waits: bool,
        path: &Path,
        see: &mut dyn FnMut(TextRow) -> minrnn::Result<()>,
    ) -> anyhow::Result<bool> {
        let mut surprise = Surprise::new(&self.deployed.model, self.tokenizer)?;
        let mut rows = TextRows::new(self.unit, see);
        let mut piece = vec![0; PIECE];
        let mut beginning = Vec::new();
        loop {
            let n = if waits {
                let wait = move || {
                    let n = from.read(&mut piece);
                    (from, piece, n)
                };
                let Some((source, bytes, n)) = interrupt::unless_stopped(self.stop, wait) else { return Ok(false) };
                (from, piece) = (source, bytes);
                n
            } else {
                from.read(&mut piece)
            };
            match n {
                Ok(0) => break,
                Ok(n) => {
                    if beginning.len() < FOREIGN_LEN && self.tokenizer.kind() != TokenizerKind::Byte {
                        beginning.extend_from_slice(&piece[..n.min(FOREIGN_LEN)]);
                        if let Some(what) = foreign(&beginning) {
                            return Err(minrnn::Error::malformed(path, what).into());
                        }
                    }
                    for part in piece[..n].chunks(PART) {
                        if self.stop.load(Ordering::Relaxed) {
                            return Ok(false);
                        }
                        surprise.push(part, &mut rows).map_err(|error| of_file(path, error))?;
                    }
                }
                Err(error) if error.kind() == std::io::ErrorKind::Interrupted => {}
                Err(error) => return Err(minrnn::Error::io("read", path, error).into()),
            }
        }
        surprise.finish(&mut rows).map_err(|error| of_file(path, error))?;
        rows.finish()?;
        Ok(true)
    }
}

/// What is wrong with a text, with the name of its file.
fn of_file(path: &Path, error: minrnn::Error) -> minrnn::Error {
    match error {
        minrnn::Error::Data(problem) => minrnn::Error::malformed(path, problem),
        error => error,
    }
}
