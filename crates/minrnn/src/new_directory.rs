//! A directory that appears under its name only once it is complete.

use std::path::Path;

use minrnn_model::{WRITING, sync_directory, without_temporary_name};

use crate::{Error, Result};

/// Refuses a name that already exists.
pub(crate) fn expect_new(directory: &Path) -> Result<()> {
    if directory.exists() {
        return Err(Error::Config(format!("'{}': it already exists; name a new directory", directory.display())));
    }
    Ok(())
}

/// Makes the directory `directory` with the files that `fill` writes into an empty one beside it. If that fails, nothing is left behind; once made it
/// survives a power failure, as far as `fill` has synced its files.
///
/// # Errors
/// When the name already exists, or `fill` fails; errors name files by their final paths.
pub(crate) fn make_directory<T>(directory: &Path, fill: impl FnOnce(&Path) -> Result<T>) -> Result<T> {
    expect_new(directory)?;
    let parent = directory.parent().filter(|parent| !parent.as_os_str().is_empty()).unwrap_or(Path::new("."));
    let io = |error| Error::io("make", directory, error);
    let mut builder = tempfile::Builder::new();
    let unfinished = builder.prefix(WRITING).tempdir_in(parent).map_err(|error| io(without_temporary_name(error)))?;
    let made = fill(unfinished.path()).map_err(|error| error.moved(unfinished.path(), directory))?;
    sync_directory(unfinished.path()).map_err(io)?;
    std::fs::rename(unfinished.path(), directory).map_err(io)?;
    // It has its final name now, so there is nothing left to clean up.
    let _ = unfinished.keep();
    sync_directory(parent).map_err(io)?;
    Ok(made)
}
