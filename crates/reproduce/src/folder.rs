//! The results folder: its format and scale, and the location of files in it.
//!
//! ```text
//! OUT/reproduce.json                 format and scale
//! OUT/README.md                      overview
//! OUT/NAME.md .csv .json .svg .png   a target's results
//! OUT/NAME-lengths.svg .png          formal languages by string length
//! OUT/runs/ID/seed-N/                a training: a run directory, and result.json or failed.json when it is over
//! OUT/runs/ID.json                   a measurement of speed
//! OUT/baselines/NAME/COLUMN.json     the baselines without a model
//! OUT/unfinished/ID/seed-N/          the progress of a training, and what another machine needs to continue it
//! ```

use std::fs;
use std::io::ErrorKind;
use std::path::{Path, PathBuf};

use minrnn_model::{WRITING, create_directories, other_than_file, read_text, write_atomic};
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};

use crate::{Error, FolderProblem, Result, Scale};

/// Changes with the meaning of the files.
const FORMAT: u32 = 1;
const MARK: &str = "reproduce.json";
const MAX_FILE_BYTES: u64 = 1 << 26;

/// A folder that holds results of one scale.
#[derive(Debug)]
pub struct Folder {
    path: PathBuf,
}

#[derive(Serialize, Deserialize)]
struct Mark {
    format: u32,
    #[serde(default)]
    scale: String,
}

impl Folder {
    /// Opens the results of `scale` in `path`, or creates such a folder if there is none or it is empty.
    ///
    /// # Errors
    /// When it contains something else, or cannot be written.
    pub fn open(path: &Path, scale: Scale) -> Result<Self> {
        create_directories(path).map_err(|source| minrnn::Error::io("create the results folder", path, source))?;
        let mark = path.join(MARK);
        if mark.exists() {
            let found: Mark = read(&mark)?.ok_or_else(|| minrnn::Error::malformed(&mark, "it has gone"))?;
            if found.format != FORMAT {
                return Err(Error::folder(mark, FolderProblem::OtherFormat { found: found.format, own: FORMAT }));
            }
            if found.scale != scale.name() {
                return Err(Error::folder(path, FolderProblem::OtherScale { found: found.scale, wanted: scale.name() }));
            }
        } else {
            let entries = fs::read_dir(path).map_err(|source| minrnn::Error::io("list", path, source))?;
            let mut names = entries.flatten().map(|entry| entry.file_name());
            // A leftover of a start that was killed at once does not count.
            if let Some(name) = names.find(|name| !name.to_string_lossy().starts_with(WRITING)) {
                return Err(Error::folder(path, FolderProblem::OtherFiles(name.display().to_string())));
            }
            write(&mark, &Mark { format: FORMAT, scale: scale.name().to_owned() })?;
        }
        Ok(Self { path: path.to_owned() })
    }

    /// Its path.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// The directory of the training `id` with `seed`.
    pub fn training(&self, id: &str, seed: u64) -> PathBuf {
        self.path.join("runs").join(id).join(format!("seed-{seed}"))
    }

    /// The copy of the unfinished training `id` with `seed`.
    pub fn unfinished(&self, id: &str, seed: u64) -> PathBuf {
        self.path.join("unfinished").join(id).join(format!("seed-{seed}"))
    }

    /// The file of the baselines of a column of the targets whose runs are in the folder `runs`.
    pub fn baselines(&self, runs: &str, column: &str) -> PathBuf {
        self.path.join("baselines").join(runs).join(format!("{column}.json"))
    }

    /// The file of the measurement `id`.
    pub fn measurement(&self, id: &str) -> PathBuf {
        self.path.join("runs").join(format!("{id}.json"))
    }

    /// A file of a target's results, such as `table1.csv`.
    pub fn file(&self, name: &str, ending: &str) -> PathBuf {
        self.path.join(format!("{name}.{ending}"))
    }
}

/// Whether there is a file at `path`. It opens nothing, so it never blocks.
///
/// # Errors
/// When there is something else, such as a pipe, or the file system fails.
pub fn is_file(path: &Path) -> Result<bool> {
    match path.metadata() {
        Ok(found) => match other_than_file(&found) {
            Some(other) => Err(minrnn::Error::malformed(path, format!("expected a file, found {other}; remove it")).into()),
            None => Ok(true),
        },
        Err(missing) if matches!(missing.kind(), ErrorKind::NotFound | ErrorKind::NotADirectory) => Ok(false),
        Err(source) => Err(minrnn::Error::io("read", path, source).into()),
    }
}

/// The content of a JSON file; `None` if there is no file.
///
/// # Errors
/// When it cannot be read or parsed.
pub fn read<T: DeserializeOwned>(path: &Path) -> Result<Option<T>> {
    if !is_file(path)? {
        return Ok(None);
    }
    let text = read_text(path, MAX_FILE_BYTES)?;
    let problem = |error| format!("expected a result of a reproduction: {error}; remove the file to make it anew");
    serde_json::from_str(&text).map(Some).map_err(|error| minrnn::Error::malformed(path, problem(error)).into())
}

/// Writes `value` as JSON, atomically, creating the folders it needs.
///
/// # Errors
/// When writing fails.
pub fn write<T: Serialize>(path: &Path, value: &T) -> Result<()> {
    if let Some(parent) = path.parent() {
        create_directories(parent).map_err(|source| minrnn::Error::io("create the folder", parent, source))?;
    }
    let mut text = serde_json::to_vec_pretty(value).map_err(|error| minrnn::Error::malformed(path, error.to_string()))?;
    text.push(b'\n');
    Ok(write_atomic(path, &text)?)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_folder_belongs_to_one_format_and_one_scale() {
        let parent = tempfile::tempdir().unwrap();
        let path = parent.path().join("a/b");
        Folder::open(&path, Scale::Smoke).unwrap();
        Folder::open(&path, Scale::Smoke).unwrap();
        let refusal = |path: &Path, scale| Folder::open(path, scale).unwrap_err();
        assert!(refusal(&path, Scale::Cpu).to_string().contains("results of scale smoke, but scale cpu was requested"));
        fs::write(path.join(MARK), r#"{"format": 7, "other": 1}"#).unwrap();
        let other = refusal(&path, Scale::Smoke);
        assert!(other.is_wrong_input() && other.to_string().contains("another version of minrnn (format 7, this one writes 1)"));
        fs::write(path.join(MARK), "{").unwrap();
        assert!(refusal(&path, Scale::Smoke).to_string().contains("remove the file"));
    }

    #[test]
    fn what_is_no_file_is_no_record() {
        let parent = tempfile::tempdir().unwrap();
        assert!(!is_file(&parent.path().join("none")).unwrap());
        let refusal = |path: &Path| read::<Mark>(path).err().unwrap();
        let refused = refusal(parent.path());
        assert!(refused.is_wrong_input() && refused.to_string().contains("expected a file, found a directory"), "{refused}");
        #[cfg(unix)]
        assert!(refusal(Path::new("/dev/null")).to_string().contains("found a pipe or a device"));
    }

    #[test]
    fn other_files_are_left_alone() {
        let parent = tempfile::tempdir().unwrap();
        fs::write(parent.path().join("thesis.txt"), "").unwrap();
        let refusal = Folder::open(parent.path(), Scale::Smoke).unwrap_err().to_string();
        assert!(refusal.contains("found 'thesis.txt'"), "{refusal}");
        assert_eq!(fs::read_dir(parent.path()).unwrap().count(), 1);
        assert!(Folder::open(&parent.path().join("thesis.txt"), Scale::Smoke).is_err());
    }
}
