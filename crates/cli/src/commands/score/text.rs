//! Lines or tokens of a text.

use std::cell::Cell;
use std::fs::File;
use std::io::{self, Read};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use minrnn::data::Tokenizer;
use minrnn::deployed::{Deployed, RowUnit, TextRow, TextScorer, Usual};

use super::tally::Tally;
use super::{Args, threshold};
use crate::cells::mark;
use crate::csv::in_a_line;
use crate::say::say;
use crate::sink::Sink;
use crate::{input, interrupt};

/// Scores every row; false when `stop` was raised before the end.
pub fn score(args: &Args, deployed: &Deployed, tokenizer: &Tokenizer, stop: &AtomicBool) -> anyhow::Result<bool> {
    let unit = args.by;
    let scorer = TextScorer::new(deployed, tokenizer, unit, stop);
    let wanted = Cell::new(true);
    let usual = match &args.calibrate {
        Some(path) => {
            let Some(mut text) = Text::open(path, stop, &wanted)? else { return Ok(false) };
            let Some((calibration, notes)) = scorer.calibrate(&text.path.clone(), &mut text)? else { return Ok(false) };
            notes.iter().for_each(|note| say(format_args!("{}: {note}", path.display())));
            Usual::Rows(calibration)
        }
        None => {
            let Some(usual) = scorer.calibrate_held_out()? else { return Ok(false) };
            usual
        }
    };
    let threshold = threshold(args, &usual)?;
    let header = if unit == RowUnit::Line { "line,tokens,surprise,anomaly,text\n" } else { "line,surprise,anomaly,text\n" };
    let mut sink = Sink::open(args.out.as_deref())?;
    let (mut tally, mut is_empty) = (Tally::default(), true);
    let Some(mut text) = Text::open(&args.data, stop, &wanted)? else { return Ok(false) };
    let arrives = text.waits;
    let mut see = |row: TextRow| {
        // Nothing is printed for a text that cannot be read at all.
        if std::mem::take(&mut is_empty) {
            sink.write(header)?;
        }
        let is_marked = row.is_marked(threshold);
        tally.count(row.surprise, is_marked, row.has_unknown, || format!("line {}", row.line));
        let surprise = row.surprise.map_or(String::new(), |surprise| format!("{surprise:.6}"));
        let tokens = if unit == RowUnit::Line { format!("{},", row.tokens) } else { String::new() };
        sink.write(&format!("{},{tokens}{surprise},{},{}\n", row.line, mark(is_marked), in_a_line(&row.text)))?;
        if arrives {
            // Each row is shown before the next is waited for.
            wanted.set(sink.flush()?);
        }
        Ok(())
    };
    let Some(notes) = scorer.score(&text.path.clone(), &mut text, &mut see)? else { return Ok(false) };
    if is_empty {
        sink.write(header)?;
    }
    sink.finish()?;
    tally.tell(unit.name());
    notes.into_iter().for_each(say);
    if let Some(out) = &args.out {
        say(format_args!("rows: {}", out.display()));
    }
    Ok(true)
}

/// A text as it is read.
struct Text<'a> {
    path: PathBuf,
    file: Arc<File>,
    /// Whether reading may block.
    waits: bool,
    /// Whether anyone wants more of what is said of it.
    wanted: &'a Cell<bool>,
    stop: &'a AtomicBool,
}

impl<'a> Text<'a> {
    /// The text at `path`; none if `stop` was raised before it could be opened.
    fn open(path: &Path, stop: &'a AtomicBool, wanted: &'a Cell<bool>) -> anyhow::Result<Option<Self>> {
        let path = input::path(path);
        let opened = path.clone();
        // Opening a pipe waits for its writer.
        let Some(file) = interrupt::unless_stopped(stop, move || File::open(opened)) else { return Ok(None) };
        let file = file.map_err(|error| minrnn::Error::io("read", &path, error))?;
        let waits = !file.metadata().is_ok_and(|found| found.is_file());
        Ok(Some(Self { path, file: Arc::new(file), waits, wanted, stop }))
    }
}

impl Read for Text<'_> {
    /// The next bytes; none at the end, once `stop` was raised while it waited, and if no more is wanted of what may never end.
    fn read(&mut self, room: &mut [u8]) -> io::Result<usize> {
        if !self.waits {
            return self.file.read(room);
        }
        if !self.wanted.get() {
            return Ok(0);
        }
        let (mut file, mut piece) = (self.file.clone(), vec![0; room.len()]);
        let wait = move || file.read(&mut piece).map(|n| (piece, n));
        let Some(read) = interrupt::unless_stopped(self.stop, wait) else { return Ok(0) };
        let (piece, n) = read?;
        room[..n].copy_from_slice(&piece[..n]);
        Ok(n)
    }
}
