//! Which checkpoint of a run is the last, the best, and the scored one: the one-line files `checkpoints/last`, `checkpoints/best` and
//! `checkpoints/scored`.

use std::fs;
use std::io::ErrorKind;
use std::path::{Path, PathBuf};

use minrnn_model::{CONFIG_FILE, CheckpointFiles, DIGESTS_FILE, WEIGHTS_FILE, read_text};

use crate::train::progress::{PROGRESS_FILE, Progress};
use crate::{Error, Result, RunProblem};

/// The folder of a run's checkpoints, in its directory.
pub const CHECKPOINTS: &str = "checkpoints";
/// The file of moments and carried state in a checkpoint.
pub const TRAINING_FILE: &str = "training.safetensors";
const MAX_POINTER_BYTES: u64 = 256;

/// One of a run's named checkpoints.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Pointer {
    /// The newest one, from which training resumes.
    Last,
    /// The one with the best evaluation so far, or in the end the one that learned from all data.
    Best,
    /// The one whose score on held-out data counts, if the best one has also learned from those data.
    Scored,
}

impl Pointer {
    /// All of them.
    pub(in crate::train) const ALL: [Self; 3] = [Self::Last, Self::Best, Self::Scored];

    pub(super) fn file_name(self) -> &'static str {
        match self {
            Self::Last => "last",
            Self::Best => "best",
            Self::Scored => "scored",
        }
    }
}

/// The checkpoint named by `pointer` in the run directory `run`, or `None` if there is none. Takes no lock.
///
/// # Errors
/// When the pointer's file is damaged or names a checkpoint that is gone.
pub fn checkpoint(run: impl AsRef<Path>, pointer: Pointer) -> Result<Option<PathBuf>> {
    let directory = run.as_ref().join(CHECKPOINTS);
    let name = match read_pointer(run.as_ref(), pointer)? {
        Some(name) => Some(name),
        // Killed between the first checkpoint and its pointer.
        None if pointer == Pointer::Last && directory.is_dir() => {
            let complete = |name: &String| iteration_of(name).is_some() && is_complete(&directory.join(name));
            entries(&directory)?.into_iter().filter(complete).max_by_key(|name| iteration_of(name))
        }
        None => None,
    };
    let Some(path) = name.map(|name| directory.join(name)) else { return Ok(None) };
    if !path.is_dir() {
        return Err(Error::run(directory.join(pointer.file_name()), RunProblem::CheckpointGone(path)));
    }
    Ok(Some(path))
}

/// The checkpoint to load a model from: `path` itself if it is one, otherwise the best, otherwise the last of the run at `path`.
///
/// # Errors
/// When there is none, or a pointer is damaged.
pub fn find_checkpoint(path: impl AsRef<Path>) -> Result<PathBuf> {
    let path = path.as_ref();
    path.metadata().map_err(|source| Error::io("open the run", path, source))?;
    if path.join(CONFIG_FILE).is_file() {
        return Ok(path.to_owned());
    }
    if let Some(found) = checkpoint(path, Pointer::Best)? {
        return Ok(found);
    }
    checkpoint(path, Pointer::Last)?.ok_or_else(|| {
        Error::malformed(path, "expected a run directory or a checkpoint, found neither a checkpoints/best nor a config.json")
    })
}

/// The checkpoint to score on a part of the run's own data: as [`find_checkpoint`], but one that has not learned from that part.
///
/// # Errors
/// As [`find_checkpoint`], and when `path` is a checkpoint that learned from all data.
pub fn find_scored(path: impl AsRef<Path>) -> Result<PathBuf> {
    let path = path.as_ref();
    if path.join(CONFIG_FILE).is_file() {
        let run = path.canonicalize().ok().and_then(|path| path.ancestors().nth(2).map(Path::to_owned));
        let is_scored_apart = run.is_some_and(|run| read_pointer(&run, Pointer::Scored).is_ok_and(|scored| scored.is_some()));
        if is_scored_apart && has_learned_all(path)? {
            let problem = "it was trained on the part that it would be scored on; give other data, or the run";
            return Err(Error::malformed(path, problem));
        }
        return Ok(path.to_owned());
    }
    match checkpoint(path, Pointer::Scored) {
        Ok(Some(scored)) => Ok(scored),
        Ok(None) => find_checkpoint(path),
        Err(error) => Err(error),
    }
}

/// The checkpoint that the file `path` names, if it is one of the one-line files of a run.
pub(crate) fn named_in(path: &Path) -> Option<PathBuf> {
    Pointer::ALL.iter().find(|pointer| path.ends_with(pointer.file_name()))?;
    let text = read_text(path, MAX_POINTER_BYTES).ok()?;
    iteration_of(text.trim()).map(|_| path.with_file_name(text.trim()))
}

/// Whether `checkpoint` was retrained on all data, including the test part; false for one copied elsewhere without its counters.
///
/// # Errors
/// When its counters are there and cannot be read.
pub fn has_learned_all(checkpoint: impl AsRef<Path>) -> Result<bool> {
    let counters = checkpoint.as_ref().join(PROGRESS_FILE);
    match counters.try_exists() {
        Ok(true) => Ok(Progress::read(checkpoint)?.refit.is_some()),
        Ok(false) => Ok(false),
        Err(source) => Err(minrnn_model::Error::io("read", &counters, source).into()),
    }
}

/// The name in the pointer's file, or `None` when there is no such file.
pub(in crate::train) fn read_pointer(run: &Path, pointer: Pointer) -> Result<Option<String>> {
    let file = run.join(CHECKPOINTS).join(pointer.file_name());
    let text = match read_text(&file, MAX_POINTER_BYTES) {
        Ok(text) => text,
        Err(minrnn_model::Error::Io { source, .. }) if matches!(source.kind(), ErrorKind::NotFound | ErrorKind::NotADirectory) => {
            return Ok(None);
        }
        Err(error) => return Err(error.into()),
    };
    let name = text.trim();
    match iteration_of(name) {
        Some(_) => Ok(Some(name.to_owned())),
        None => Err(Error::malformed(
            file,
            format!(
                "expected the name of a checkpoint, such as iter-100, found {name:?}; write an existing one into it, or remove the file"
            ),
        )),
    }
}

/// Whether every file of the checkpoint in `directory` exists, according to its digests or, if it has none, to the names that all
/// checkpoints have.
pub(super) fn is_complete(directory: &Path) -> bool {
    let has = |name: &str| directory.join(name).is_file();
    match has(DIGESTS_FILE) {
        true => CheckpointFiles::open(directory).is_ok(),
        false => [CONFIG_FILE, WEIGHTS_FILE, TRAINING_FILE, PROGRESS_FILE].into_iter().all(has),
    }
}

/// N of `iter-N` and of `iter-N-K`; `None` for every other name.
pub fn iteration_of(name: &str) -> Option<u64> {
    let mut numbers = name.strip_prefix("iter-")?.splitn(2, '-');
    let number = |text: &str| text.bytes().all(|byte| byte.is_ascii_digit()).then(|| text.parse().ok())?;
    let iteration = number(numbers.next()?)?;
    numbers.next().map_or(Some(iteration), |again| number(again).map(|_| iteration))
}

/// Names in a directory, sorted; names that are not Unicode are not ours and are left out.
pub(super) fn entries(directory: &Path) -> Result<Vec<String>> {
    let list = || -> std::io::Result<Vec<String>> {
        let mut names = Vec::new();
        for entry in fs::read_dir(directory)? {
            names.extend(entry?.file_name().into_string());
        }
        names.sort();
        Ok(names)
    };
    list().map_err(|source| Error::io("list", directory, source))
}

#[cfg(test)]
mod tests {
    use super::super::RunDir;
    use super::*;

    fn save(run: &RunDir, iteration: u64, is_best: bool) -> PathBuf {
        let write = |directory: &Path| {
            fs::write(directory.join(CONFIG_FILE), "").unwrap();
            Ok(())
        };
        run.save(iteration, is_best, &[], write).unwrap()
    }

    #[test]
    fn pointers_that_lead_elsewhere_are_refused() {
        let parent = tempfile::tempdir().unwrap();
        let path = parent.path().join("run");
        let run = RunDir::create(&path).unwrap();
        save(&run, 10, true);
        for content in ["", "../../etc", "iter-10/..", "iter-", "iter-+1", "iter-1-", "/", "iter-99999999999999999999", "a\0b"] {
            fs::write(path.join("checkpoints/last"), content).unwrap();
            let refused = run.checkpoint(Pointer::Last).unwrap_err().to_string();
            assert!(refused.contains("expected the name of a checkpoint"), "{content:?}: {refused}");
        }
        fs::write(path.join("checkpoints/last"), "iter-11\n").unwrap();
        assert!(run.checkpoint(Pointer::Last).unwrap_err().to_string().contains("which is gone"));
        fs::write(path.join("checkpoints/last"), b"\xff").unwrap();
        assert!(run.checkpoint(Pointer::Last).is_err());
        fs::write(path.join("checkpoints/last"), "x".repeat(1 << 20)).unwrap();
        assert!(run.checkpoint(Pointer::Last).unwrap_err().to_string().contains("larger than"));
    }

    #[test]
    fn counters_that_cannot_be_read_do_not_say_what_was_learned() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path();
        assert!(!has_learned_all(path).unwrap(), "given away without them");
        fs::write(path.join(PROGRESS_FILE), "{").unwrap();
        assert!(has_learned_all(path).unwrap_err().is_wrong_input());
        fs::write(path.join(PROGRESS_FILE), serde_json::to_string(&Progress::default()).unwrap()).unwrap();
        assert!(!has_learned_all(path).unwrap());
    }

    #[test]
    fn a_model_is_found_by_its_run_or_its_checkpoint() {
        let parent = tempfile::tempdir().unwrap();
        let path = parent.path().join("run");
        let run = RunDir::create(&path).unwrap();
        assert!(find_checkpoint(&path).unwrap_err().to_string().contains("found neither"));
        let first = save(&run, 10, false);
        assert_eq!(find_checkpoint(&path).unwrap(), first);
        let best = save(&run, 20, true);
        let last = save(&run, 30, false);
        assert_eq!(find_checkpoint(&path).unwrap(), best);
        assert_eq!(find_checkpoint(&last).unwrap(), last);
        assert!(find_checkpoint(parent.path().join("none")).unwrap_err().is_wrong_input());
    }
}
