//! A directory that appears under its name only when it is complete.

use std::path::Path;

use minrnn_model::{sync_directory, without_temporary_name};
use tempfile::TempDir;

use crate::{Error, Result};

/// Makes the directory `directory` with what `fill` writes into an empty one beside it. Nothing is left behind where that fails.
///
/// # Errors
/// When there is something of this name already, or `fill` fails; its errors name files where they were to be.
pub(crate) fn make_directory<T>(directory: &Path, fill: impl FnOnce(&Path) -> Result<T>) -> Result<T> {
    if directory.exists() {
        return Err(Error::malformed(directory, "it is there already; name a directory to make"));
    }
    let parent = directory.parent().filter(|parent| !parent.as_os_str().is_empty()).unwrap_or(Path::new("."));
    let io = |error| Error::io("make", directory, error);
    let unfinished = temporary_directory_in(parent).map_err(io)?;
    let made = fill(unfinished.path()).map_err(|error| error.moved(unfinished.path(), directory))?;
    std::fs::rename(unfinished.path(), directory).map_err(io)?;
    // It has another name now, and nothing is left to clean up.
    let _ = unfinished.keep();
    sync_directory(parent).map_err(io)?;
    Ok(made)
}

fn temporary_directory_in(parent: &Path) -> std::io::Result<TempDir> {
    let mut builder = tempfile::Builder::new();
    builder.prefix(".writing-");
    // Private by default; the finished directory should have the permissions any new one has.
    #[cfg(unix)]
    builder.permissions(std::os::unix::fs::PermissionsExt::from_mode(0o777));
    builder.tempdir_in(parent).map_err(without_temporary_name)
}
