//! `metrics.jsonl`: one JSON object per line, appended during training and truncated on resume.

use std::fs::{self, File, OpenOptions};
use std::io::{ErrorKind, Read, Seek, Write};
use std::path::{Path, PathBuf};

use minrnn_model::write_atomic;
use serde::{Deserialize, Deserializer, Serialize};

use super::progress::Progress;
use crate::{Error, Result, RunProblem};

/// One line of the log. `iteration` counts the updates so far. Numbers that are not finite are written as `null`. Losses are those of
/// [`Evaluation::loss`](super::Evaluation::loss): cross-entropy in nats, mean squared error, or pinball loss, depending on what is
/// predicted.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "kebab-case")]
pub enum Record {
    /// One update.
    Train {
        /// Number of updates, including this one.
        iteration: u64,
        /// Mean loss of the batch over its scored predictions.
        #[serde(deserialize_with = "null_is_nan")]
        loss: f64,
        /// Learning rate.
        #[serde(deserialize_with = "null_is_nan")]
        lr: f64,
        /// Global norm of the gradients, before clipping.
        #[serde(deserialize_with = "null_is_nan")]
        grad_norm: f64,
        /// Tokens per second of this update.
        #[serde(deserialize_with = "null_is_nan")]
        tokens_per_s: f64,
    },
    /// One evaluation.
    Eval {
        /// Number of updates before it.
        iteration: u64,
        /// Mean loss on the training part, if measured.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        train_loss: Option<f64>,
        /// Mean loss on the data that checkpoints are chosen by: the validation part if there is one beside the test part, the test part of
        /// a text, or generated data.
        #[serde(deserialize_with = "null_is_nan")]
        test_loss: f64,
        /// Accuracy on the same data, 0 to 1, if measured.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        test_accuracy: Option<f64>,
    },
}

impl Record {
    /// Number of updates made.
    pub fn iteration(&self) -> u64 {
        match self {
            Self::Train { iteration, .. } | Self::Eval { iteration, .. } => *iteration,
        }
    }
}

/// The log of a run, open for appending.
#[derive(Debug)]
pub struct MetricsLog {
    path: PathBuf,
    file: File,
    /// Its length in bytes.
    len: u64,
}

impl MetricsLog {
    /// Opens the log of a run at `progress`: records of later updates and evaluations are removed, as is anything corrupted by a kill or a
    /// power failure. A missing file is an empty log.
    ///
    /// # Errors
    /// When the file cannot be read or written, or a line among those that `progress` accounts for is not a record.
    pub fn open(path: impl AsRef<Path>, progress: &Progress) -> Result<Self> {
        let path = path.as_ref().to_owned();
        let mut kept = Vec::new();
        let (lines, damage) = read_lines(&path)?;
        let reaches = |last: Option<u64>, is_kind: fn(&Record) -> bool| {
            let made = lines.iter().map(|(_, record)| record).filter(|record| is_kind(record)).map(Record::iteration).max();
            last.is_none_or(|last| made.is_some_and(|made| made >= last))
        };
        // What the checkpoint accounts for was synced before it; a power failure can corrupt only what follows.
        let updated = Some(progress.iteration).filter(|&made| made > 0);
        let is_whole = reaches(updated, |record| matches!(record, Record::Train { .. }))
            && reaches(progress.evaluated_at, |record| matches!(record, Record::Eval { .. }));
        if let Some(damage) = damage.filter(|_| !is_whole) {
            return Err(damage);
        }
        for (line, record) in lines {
            let is_past = match record {
                Record::Train { iteration, .. } => iteration <= progress.iteration,
                Record::Eval { iteration, .. } => progress.evaluated_at.is_some_and(|last| iteration <= last),
            };
            if is_past {
                kept.extend(line);
                kept.push(b'\n');
            }
        }
        write_atomic(&path, &kept)?;
        let file = open_to_append(&path)?;
        Ok(Self { path, file, len: kept.len() as u64 })
    }

    /// Appends one line. A log that was deleted in the meantime is restored.
    ///
    /// # Errors
    /// When writing fails, or another program has replaced or changed the file.
    pub fn append(&mut self, record: &Record) -> Result<()> {
        let mut line = serde_json::to_vec(record).map_err(|error| Error::malformed(&self.path, error.to_string()))?;
        line.push(b'\n');
        // In one call, so that a kill truncates at most the last line.
        self.file.write_all(&line).map_err(|source| Error::io("append to", &self.path, source))?;
        self.len += line.len() as u64;
        self.expect_in_place()
    }

    /// Makes every line survive a power failure.
    ///
    /// # Errors
    /// As [`append`](Self::append).
    pub fn sync(&mut self) -> Result<()> {
        self.file.sync_data().map_err(|source| Error::io("sync", &self.path, source))?;
        self.expect_in_place()
    }

    /// Checks that the file under the log's name is the one being written to, with every line in it.
    fn expect_in_place(&mut self) -> Result<()> {
        let io = |source| Error::io("look at", &self.path, source);
        let own = self.file.metadata().map_err(io)?;
        let found = match fs::metadata(&self.path) {
            Ok(found) => found,
            Err(source) if source.kind() == ErrorKind::NotFound => return self.put_back(),
            Err(source) => return Err(io(source)),
        };
        #[cfg(unix)]
        let is_own = {
            use std::os::unix::fs::MetadataExt;
            (own.dev(), own.ino()) == (found.dev(), found.ino())
        };
        #[cfg(not(unix))]
        let is_own = found.is_file();
        if is_own && own.len() == self.len {
            return Ok(());
        }
        Err(Error::run(&self.path, RunProblem::LogReplaced))
    }

    /// Writes the log again under its name, from the open file that has lost its name.
    fn put_back(&mut self) -> Result<()> {
        let mut lines = Vec::new();
        let read = self.file.rewind().and_then(|()| self.file.read_to_end(&mut lines));
        read.map_err(|source| Error::io("read", &self.path, source))?;
        write_atomic(&self.path, &lines)?;
        (self.file, self.len) = (open_to_append(&self.path)?, lines.len() as u64);
        Ok(())
    }
}

fn open_to_append(path: &Path) -> Result<File> {
    OpenOptions::new().read(true).append(true).open(path).map_err(|source| Error::io("open", path, source))
}

/// Every record of the log at `path`, oldest first, except an incomplete last line; a missing file has none.
///
/// # Errors
/// When the file cannot be read, or a line before the last is not a record.
pub fn read_metrics(path: impl AsRef<Path>) -> Result<Vec<Record>> {
    match read_lines(path.as_ref())? {
        (_, Some(damage)) => Err(damage),
        (lines, None) => Ok(lines.into_iter().map(|(_, record)| record).collect()),
    }
}

/// A line and the record in it.
type Line = (Vec<u8>, Record);

/// The lines with their records, up to the first that is not a record, and what is wrong with that one.
fn read_lines(path: &Path) -> Result<(Vec<Line>, Option<Error>)> {
    let bytes = match fs::read(path) {
        Ok(bytes) => bytes,
        Err(source) if source.kind() == ErrorKind::NotFound => return Ok((Vec::new(), None)),
        Err(source) => return Err(Error::io("read", path, source)),
    };
    let mut records = Vec::new();
    // What follows the last line break is empty or torn.
    let lines: Vec<&[u8]> = bytes.split(|byte| *byte == b'\n').collect();
    for (at, line) in lines[..lines.len() - 1].iter().enumerate() {
        match serde_json::from_slice(line) {
            Ok(record) => records.push((line.to_vec(), record)),
            Err(error) => {
                let problem = format!("line {} is no record ({error}); repair that line or remove the file", at + 1);
                return Ok((records, Some(Error::malformed(path, problem))));
            }
        }
    }
    Ok((records, None))
}

fn null_is_nan<'de, D: Deserializer<'de>>(deserializer: D) -> std::result::Result<f64, D::Error> {
    Ok(Option::deserialize(deserializer)?.unwrap_or(f64::NAN))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn train(iteration: u64) -> Record {
        Record::Train { iteration, loss: 1.0 / 3.0, lr: 1e-3, grad_norm: 0.25, tokens_per_s: 1e4 }
    }

    fn eval(iteration: u64) -> Record {
        Record::Eval { iteration, train_loss: None, test_loss: 1.5, test_accuracy: Some(0.75) }
    }

    fn at(iteration: u64, evaluated_at: Option<u64>) -> Progress {
        Progress { iteration, evaluated_at, ..Progress::default() }
    }

    #[test]
    fn records_come_back_as_they_were_written() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("metrics.jsonl");
        let mut log = MetricsLog::open(&path, &at(0, None)).unwrap();
        log.append(&train(1)).unwrap();
        log.append(&eval(1)).unwrap();
        assert_eq!(read_metrics(&path).unwrap(), [train(1), eval(1)]);
        let text = fs::read_to_string(&path).unwrap();
        assert!(text.starts_with(r#"{"kind":"train","iteration":1,"loss":0.3333333333333333,"#), "{text}");
        assert!(text.ends_with("{\"kind\":\"eval\",\"iteration\":1,\"test_loss\":1.5,\"test_accuracy\":0.75}\n"), "{text}");
    }

    #[test]
    fn resuming_cuts_back_to_the_checkpoint_and_drops_a_torn_line() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("metrics.jsonl");
        let mut log = MetricsLog::open(&path, &at(0, None)).unwrap();
        for iteration in 1..=5 {
            log.append(&train(iteration)).unwrap();
        }
        let torn = fs::read(&path).unwrap();
        for cut in 0..torn.len() {
            fs::write(&path, &torn[..cut]).unwrap();
            let mut log = MetricsLog::open(&path, &at(3, None)).unwrap();
            log.append(&eval(9)).unwrap();
            let records = read_metrics(&path).unwrap();
            assert!(records.len() <= 4 && records.last() == Some(&eval(9)));
            assert!(records[..records.len() - 1].iter().zip(1..).all(|(record, iteration)| *record == train(iteration)));
        }
        drop(MetricsLog::open(&path, &at(0, None)).unwrap());
        assert!(read_metrics(&path).unwrap().is_empty());
    }

    #[test]
    fn an_evaluation_that_the_checkpoint_does_not_know_goes_too() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("metrics.jsonl");
        let lines = [eval(0), train(1), train(2), eval(2), train(3)];
        for (progress, kept) in [(at(2, Some(2)), 4), (at(2, Some(0)), 3), (at(0, Some(0)), 1), (at(0, None), 0)] {
            let mut log = MetricsLog::open(&path, &at(0, None)).unwrap();
            lines.iter().for_each(|line| log.append(line).unwrap());
            drop(MetricsLog::open(&path, &progress).unwrap());
            assert_eq!(read_metrics(&path).unwrap(), lines[..kept]);
        }
    }

    #[test]
    fn a_missing_log_is_empty_and_a_damaged_line_is_named() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("metrics.jsonl");
        assert!(read_metrics(&path).unwrap().is_empty());
        drop(MetricsLog::open(&path, &at(3, None)).unwrap());
        fs::write(&path, b"{\"kind\":\"eval\",\"iteration\":1,\"test_loss\":1.5}\n\xff\xfe{}\n{}\n").unwrap();
        let refused = MetricsLog::open(&path, &at(3, None)).unwrap_err().to_string();
        assert!(refused.contains("line 2 is no record"), "{refused}");
        assert!(fs::read(&path).unwrap().ends_with(b"{}\n"), "a refused log is left as it was");
    }

    #[test]
    fn what_a_power_failure_left_behind_the_checkpoint_goes() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("metrics.jsonl");
        let mut log = MetricsLog::open(&path, &at(0, None)).unwrap();
        [train(1), train(2), eval(2)].iter().for_each(|line| log.append(line).unwrap());
        let whole = fs::read(&path).unwrap();
        for rest in [&b"\0\0\0\0"[..], b"\0\0\n\0", b"{\"kind\":\n{}\n", b"\xff\n"] {
            fs::write(&path, [&whole[..], rest].concat()).unwrap();
            drop(MetricsLog::open(&path, &at(2, Some(2))).unwrap());
            assert_eq!(fs::read(&path).unwrap(), whole);
        }
        // What the checkpoint accounts for cannot be corrupt.
        fs::write(&path, [&whole[..], b"\0\n"].concat()).unwrap();
        for known in [at(3, None), at(2, Some(3))] {
            assert!(MetricsLog::open(&path, &known).unwrap_err().to_string().contains("line 4 is no record"));
        }
    }

    #[test]
    #[cfg(unix)]
    fn a_log_that_is_deleted_while_it_is_written_is_put_back() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("metrics.jsonl");
        let mut log = MetricsLog::open(&path, &at(0, None)).unwrap();
        log.append(&train(1)).unwrap();
        for (at, line) in [train(2), eval(2), train(3)].iter().enumerate() {
            fs::remove_file(&path).unwrap();
            log.append(line).unwrap();
            assert_eq!(read_metrics(&path).unwrap().len(), at + 2);
        }
        fs::remove_file(&path).unwrap();
        log.sync().unwrap();
        assert_eq!(read_metrics(&path).unwrap(), [train(1), train(2), eval(2), train(3)]);
    }

    #[test]
    #[cfg(unix)]
    fn a_log_that_another_program_changes_is_an_error() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("metrics.jsonl");
        let refusal = |change: &dyn Fn()| {
            let _ = fs::remove_file(&path);
            let mut log = MetricsLog::open(&path, &at(0, None)).unwrap();
            log.append(&train(1)).unwrap();
            change();
            log.append(&train(2)).unwrap_err().to_string()
        };
        let replaced = refusal(&|| {
            fs::write(directory.path().join("other"), "").unwrap();
            fs::rename(directory.path().join("other"), &path).unwrap();
        });
        let cut = refusal(&|| fs::write(&path, "").unwrap());
        for refused in [replaced, cut] {
            assert!(refused.contains("replaced or changed the log") && refused.contains("resume the run"), "{refused}");
        }
    }

    #[test]
    fn numbers_that_are_not_finite_survive_as_null() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("metrics.jsonl");
        let bad = Record::Eval { iteration: 1, train_loss: None, test_loss: f64::NAN, test_accuracy: None };
        MetricsLog::open(&path, &at(0, None)).unwrap().append(&bad).unwrap();
        assert!(matches!(read_metrics(&path).unwrap()[..], [Record::Eval { test_loss, .. }] if test_loss.is_nan()));
    }
}
