//! The digests by which a run recognises the tables or the file of episodes that it learns from.

use std::path::Path;

use minrnn_model::{hex, read_text, write_atomic};

use super::{Data, TOKENS_FILE, create_folder};
use crate::data::{TokenFile, text_sha256};
use crate::train::experiment::Experiment;
use crate::train::run_dir::{has_learned_all, run_of};
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
    let found = digests(&files(experiment))?;
    if found.is_empty() {
        return Ok(());
    }
    let path = run.join(TABLE_FILE);
    create_folder(&path)?;
    Ok(write_atomic(path, (found.join("\n") + "\n").as_bytes())?)
}

/// Refuses files other than those whose digests the run keeps.
///
/// # Errors
/// When one has changed, which is named, or cannot be read. If the run keeps another number of digests, all files are named.
pub(super) fn expect_unchanged(experiment: &Experiment, run: &Path) -> Result<()> {
    let (files, path) = (files(experiment), run.join(TABLE_FILE));
    let found = digests(&files)?;
    if found.is_empty() {
        return Ok(());
    }
    let kept = read_text(&path, MAX_DIGESTS)?;
    let kept: Vec<&str> = kept.lines().collect();
    if kept.len() != found.len() {
        let files = files.iter().map(|(_, file)| (*file).to_owned()).collect();
        return Err(Error::run(path, RunProblem::SomeChanged(files)));
    }
    match files.into_iter().zip(kept.into_iter().zip(&found)).find(|(_, (kept, found))| kept != found) {
        Some(((what, file), _)) => Err(Error::run(file, RunProblem::Changed(what))),
        None => Ok(()),
    }
}

/// Whether the files are those whose digests the run keeps; false if it has no readable digests.
///
/// # Errors
/// When a file cannot be read.
pub(super) fn is_unchanged(experiment: &Experiment, run: &Path) -> Result<bool> {
    let found = digests(&files(experiment))?;
    Ok(read_text(run.join(TABLE_FILE), MAX_DIGESTS).is_ok_and(|kept| kept.lines().eq(&found)))
}

impl Data {
    /// Whether the model of the run's `checkpoint` has learned from a text or table with the same bytes as the file `path`, wherever that is: from the one
    /// that `experiment` trains on, or from its validation table, if the model was retrained on all data. False if the run has no digest.
    ///
    /// # Errors
    /// When the checkpoint is outside its run, or the file cannot be read.
    pub fn is_learned(experiment: &Experiment, checkpoint: &Path, path: &Path) -> Result<bool> {
        let run = run_of(checkpoint)?;
        let of_text = || TokenFile::open(run.join(TOKENS_FILE)).ok().map(|tokens| hex(&tokens.source_sha256()));
        let learned: Vec<String> = match read_text(run.join(TABLE_FILE), MAX_DIGESTS) {
            Ok(kept) => {
                // Counters that cannot be read do not say that more was learned from than the training table.
                let validation = experiment.data.table.validation.is_some() && has_learned_all(checkpoint).unwrap_or(false);
                kept.lines().take(1 + usize::from(validation)).map(str::to_owned).collect()
            }
            Err(_) => of_text().into_iter().collect(),
        };
        Ok(!learned.is_empty() && learned.contains(&hex(&text_sha256(path)?)))
    }
}

/// The experiment's tables or episodes, each with what it is called, in the order of their digests.
fn files(experiment: &Experiment) -> Vec<(&'static str, &Path)> {
    let data = &experiment.data;
    let Some(path) = data.path.as_deref().filter(|_| data.task.reads_a_file()) else { return Vec::new() };
    let own = if data.task.reads_table() { "table" } else { "file of episodes" };
    let others = [("validation table", &data.table.validation), ("test table", &data.table.test)];
    let others = others.into_iter().filter_map(|(what, path)| Some((what, path.as_deref()?)));
    std::iter::once((own, path)).chain(others).collect()
}

/// The digest of each of `files`.
fn digests(files: &[(&'static str, &Path)]) -> Result<Vec<String>> {
    files.iter().map(|(_, path)| Ok(hex(&text_sha256(path)?))).collect()
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;
    use crate::train::data_config::Task;

    /// An experiment with three tables in `folder`, each with its name in it.
    fn with_tables(folder: &Path) -> Experiment {
        let mut experiment = Experiment::default();
        experiment.data.task = Task::Classify;
        let table = |name: &str| {
            fs::write(folder.join(name), name).unwrap();
            Some(folder.join(name))
        };
        experiment.data.path = table("own.csv");
        (experiment.data.table.validation, experiment.data.table.test) = (table("validation.csv"), table("test.csv"));
        experiment
    }

    #[test]
    fn the_file_that_changed_is_named() {
        let folder = tempfile::tempdir().unwrap();
        let (run, experiment) = (folder.path(), with_tables(folder.path()));
        keep_digest(&experiment, run).unwrap();
        expect_unchanged(&experiment, run).unwrap();
        assert!(is_unchanged(&experiment, run).unwrap());
        for (name, what) in [("own.csv", "table"), ("validation.csv", "validation table"), ("test.csv", "test table")] {
            fs::write(run.join(name), "other").unwrap();
            let refused = expect_unchanged(&experiment, run).unwrap_err().to_string();
            assert_eq!(refused, format!("'{}': the {what} has changed since this run began", run.join(name).display()));
            assert!(!is_unchanged(&experiment, run).unwrap());
            fs::write(run.join(name), name).unwrap();
        }
        expect_unchanged(&experiment, run).unwrap();
    }

    #[test]
    fn digests_that_do_not_tell_the_files_apart_name_all_of_them() {
        let folder = tempfile::tempdir().unwrap();
        let (run, experiment) = (folder.path(), with_tables(folder.path()));
        keep_digest(&experiment, run).unwrap();
        let kept = fs::read_to_string(run.join(TABLE_FILE)).unwrap();
        let first = kept.lines().next().unwrap().to_owned() + "\n";
        for digests in ["", &first, &(kept.clone() + &first)] {
            fs::write(run.join(TABLE_FILE), digests).unwrap();
            let refused = expect_unchanged(&experiment, run).unwrap_err().to_string();
            let of_all = ["own.csv', '", "validation.csv', '", "test.csv' has changed since this run began"];
            assert!(of_all.iter().all(|name| refused.contains(name)), "{digests:?}: {refused}");
            assert!(!is_unchanged(&experiment, run).unwrap());
        }
    }
}
