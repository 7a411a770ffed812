//! The digests by which a run recognises the tables or the file of episodes that it learns from.

use std::path::Path;

use minrnn_model::{hex, read_text, write_atomic};

use super::{Data, TOKENS_FILE, create_folder};
use crate::data::{TokenFile, text_sha256};
use crate::train::experiment::Experiment;
use crate::{Error, Result, RunProblem};

/// The file with the SHA-256 of a run's tables, in its directory.
const TABLE_FILE: &str = "data/table.sha256";
/// Maximum size of that file in bytes.
const MAX_DIGESTS: u64 = 1 << 10;

/// Stores the digests of what `experiment` reads in the run's directory `run`.
///
/// # Errors
/// When a file cannot be read, or the run cannot be written.
pub(super) fn keep_digest(experiment: &Experiment, run: &Path) -> Result<()> {
    let Some(digest) = file_digest(experiment)? else { return Ok(()) };
    let path = run.join(TABLE_FILE);
    create_folder(&path)?;
    Ok(write_atomic(path, digest.as_bytes())?)
}

/// Refuses files other than those whose digests the run keeps.
///
/// # Errors
/// When one has changed, or cannot be read.
pub(super) fn expect_unchanged(experiment: &Experiment, run: &Path) -> Result<()> {
    let (data, path) = (&experiment.data, run.join(TABLE_FILE));
    match file_digest(experiment)? {
        Some(digest) if read_text(&path, MAX_DIGESTS)? != digest => {
            let what = if data.task.reads_table() { "table" } else { "file of episodes" };
            Err(Error::run(data.path.as_ref().unwrap_or(&path), RunProblem::Changed(what)))
        }
        _ => Ok(()),
    }
}

/// Whether the files are those whose digests the run keeps; false if it has no readable digests.
///
/// # Errors
/// When a file cannot be read.
pub(super) fn is_unchanged(experiment: &Experiment, run: &Path) -> Result<bool> {
    Ok(read_text(run.join(TABLE_FILE), MAX_DIGESTS).ok() == file_digest(experiment)?)
}

impl Data {
    /// Whether the run in the directory `run` learns from a text or table with the same bytes as the file `path`, wherever that is; false
    /// if the run has no digest.
    ///
    /// # Errors
    /// When the file cannot be read.
    pub fn is_learned(run: &Path, path: &Path) -> Result<bool> {
        // Validation and test tables are on further lines.
        let of_table = || Some(read_text(run.join(TABLE_FILE), MAX_DIGESTS).ok()?.lines().next()?.to_owned());
        let of_text = || Some(hex(&TokenFile::open(run.join(TOKENS_FILE)).ok()?.source_sha256()));
        let Some(learned) = of_table().or_else(of_text) else { return Ok(false) };
        Ok(learned == hex(&text_sha256(path)?))
    }
}

/// The digests of the experiment's tables or episodes, as they are kept: a line for each file.
fn file_digest(experiment: &Experiment) -> Result<Option<String>> {
    let data = &experiment.data;
    let Some(path) = data.path.as_ref().filter(|_| data.task.reads_a_file()) else { return Ok(None) };
    let others = [&data.table.validation, &data.table.test].into_iter().flatten();
    let line = |path| Ok(hex(&text_sha256(path)?) + "\n");
    std::iter::once(path).chain(others).map(line).collect::<Result<String>>().map(Some)
}
