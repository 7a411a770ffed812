//! Where the data of an experiment are.

use std::path::{Path, PathBuf};

use super::data_config::{Corpus, Source};
use super::experiment::Experiment;
use crate::data::{expect_lasting, text_sha256};
use crate::output::is_same_file;
use crate::{Error, Needed, Result};

/// Makes the path of a text or table absolute; a public text without a path is obtained from `fetch`. `subject` is how messages refer to
/// the experiment, such as "the experiment 'text'".
///
/// # Errors
/// When the experiment needs a text or table and names none, when that cannot be read, or when `fetch` fails.
pub fn find_data<E: From<Error>>(
    experiment: &mut Experiment,
    subject: &str,
    fetch: impl FnOnce(Corpus) -> Result<PathBuf, E>,
) -> Result<(), E> {
    let data = &experiment.data;
    let needs = |what: &str| Error::needed(Needed::File, format!("{subject} needs a {what}"));
    let path = match (data.task.spec().source, &data.path, data.corpus) {
        (Source::Text | Source::Table | Source::Trajectories, Some(path), _) => readable(path)?,
        (Source::Text, None, Some(corpus)) => readable(&fetch(corpus)?)?,
        (Source::Text, None, None) => return Err(needs("text").into()),
        (Source::Table, None, _) => return Err(needs("table").into()),
        (Source::Trajectories, None, _) => return Err(needs("file of trajectories").into()),
        _ => return Ok(()),
    };
    experiment.data.path = Some(path);
    for path in [&mut experiment.data.table.validation, &mut experiment.data.table.test].into_iter().flatten() {
        *path = readable(path)?;
    }
    Ok(())
}

/// The absolute path of a text or table, so that a run can be resumed from elsewhere.
///
/// # Errors
/// When it cannot be read, can be read only once, like a pipe, or has a name that an experiment cannot hold.
pub fn readable(path: &Path) -> Result<PathBuf> {
    expect_lasting(path)?;
    let found = std::fs::File::open(path).and_then(|_| path.canonicalize()).map_err(|source| Error::io("read", path, source))?;
    expect_writable_name(&found)?;
    Ok(found)
}

/// Whether both are the same file, or files with the same bytes. One that does not exist is no other.
///
/// # Errors
/// When one cannot be read.
pub fn is_same_data(one: &Path, other: &Path) -> Result<bool> {
    if is_same_file(one, other) {
        return Ok(true);
    }
    let size = |path: &Path| path.metadata().ok().filter(std::fs::Metadata::is_file).map(|found| found.len());
    // Files of different sizes are told apart without being read.
    let is_as_large = size(one).is_some_and(|found| size(other) == Some(found));
    Ok(is_as_large && text_sha256(one)? == text_sha256(other)?)
}

/// Refuses a path that an experiment, which is UTF-8, cannot hold.
///
/// # Errors
/// When it is not UTF-8.
pub(super) fn expect_writable_name(path: &Path) -> Result<()> {
    match path.to_str() {
        Some(_) => Ok(()),
        None => {
            Err(Error::malformed(path, "its name or that of a folder it is in is not UTF-8, and an experiment cannot hold it; rename that"))
        }
    }
}

/// The absolute path of a folder with the files of a task.
///
/// # Errors
/// When it does not exist, is not a folder, or has a name that an experiment cannot hold.
pub fn readable_folder(path: &Path) -> Result<PathBuf> {
    let folder = path.canonicalize().map_err(|source| Error::io("read the folder", path, source))?;
    if folder.is_dir() {
        expect_writable_name(&folder)?;
        return Ok(folder);
    }
    Err(Error::malformed(path, "expected the folder with the files of the task, found a file; give the folder it is in"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn files_are_the_same_by_their_name_or_their_bytes() {
        let folder = tempfile::tempdir().unwrap();
        let [one, copy, as_long, longer, gone] = ["one", "copy", "as long", "longer", "gone"].map(|name| folder.path().join(name));
        for (path, text) in [(&one, "a,1\n"), (&copy, "a,1\n"), (&as_long, "a,2\n"), (&longer, "a,1\nb,1\n")] {
            std::fs::write(path, text).unwrap();
        }
        let through = folder.path().join(".").join("one");
        let found = [&one, &through, &copy, &as_long, &longer, &gone].map(|other| is_same_data(&one, other).unwrap());
        assert_eq!(found, [true, true, true, false, false, false]);
        assert!(!is_same_data(&gone, &gone).unwrap(), "there is none");
    }
}
