//! Where rows are written as they come: standard output, or a file that appears under its name only when it is complete.

use std::io::{self, BufWriter, ErrorKind, Stdout, Write};
use std::path::{Path, PathBuf};

use anyhow::Context;
use minrnn_model::{put_in_place, temporary_beside, without_temporary_name};
use tempfile::NamedTempFile;

use crate::failure::NO_STDOUT;

/// Where rows go.
pub enum Sink {
    /// Nothing more is wanted once a reader has gone away.
    Stdout {
        out: BufWriter<Stdout>,
        is_closed: bool,
    },
    File {
        file: BufWriter<NamedTempFile>,
        path: PathBuf,
    },
}

impl Sink {
    /// The file `path`, or standard output.
    pub fn open(path: Option<&Path>) -> anyhow::Result<Self> {
        let Some(path) = path else { return Ok(Self::Stdout { out: BufWriter::new(io::stdout()), is_closed: false }) };
        let file = temporary_beside(path).map_err(|error| could_not_write(path, error))?;
        Ok(Self::File { file: BufWriter::new(file), path: path.to_owned() })
    }

    /// Writes `text`.
    pub fn write(&mut self, text: &str) -> minrnn::Result<()> {
        match self {
            Self::Stdout { is_closed: true, .. } => Ok(()),
            Self::Stdout { out, is_closed } => match out.write_all(text.as_bytes()) {
                Err(error) if error.kind() == ErrorKind::BrokenPipe => {
                    *is_closed = true;
                    Ok(())
                }
                written => written.map_err(|error| minrnn::Error::io("write", "stdout", error)),
            },
            Self::File { file, path } => file.write_all(text.as_bytes()).map_err(|error| could_not_write(path, error)),
        }
    }

    /// Shows what was written to a reader of standard output. Returns whether there is one, or a file.
    pub fn flush(&mut self) -> minrnn::Result<bool> {
        let Self::Stdout { out, is_closed } = self else { return Ok(true) };
        match out.flush() {
            Err(error) if error.kind() != ErrorKind::BrokenPipe => return Err(minrnn::Error::io("write", "stdout", error)),
            flushed => *is_closed |= flushed.is_err(),
        }
        Ok(!*is_closed)
    }

    /// Ends the rows: the file takes its name.
    pub fn finish(self) -> anyhow::Result<()> {
        match self {
            Self::Stdout { is_closed: true, .. } => Ok(()),
            Self::Stdout { mut out, .. } => match out.flush() {
                Err(error) if error.kind() != ErrorKind::BrokenPipe => Err(error).context(NO_STDOUT),
                _ => Ok(()),
            },
            Self::File { file, path } => {
                let finished = file.into_inner().map_err(io::IntoInnerError::into_error).and_then(|file| put_in_place(file, &path));
                Ok(finished.map_err(|error| could_not_write(&path, error))?)
            }
        }
    }
}

fn could_not_write(path: &Path, error: io::Error) -> minrnn::Error {
    minrnn::Error::io("write", path, without_temporary_name(error))
}
