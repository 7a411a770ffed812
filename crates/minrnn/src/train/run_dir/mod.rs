//! The run directory: used by one process at a time, holding either a run that can be resumed or none, and only complete checkpoints.
//!
//! The experiment is written before anything else of the run, except the lock and tables kept for it: a directory without it holds no run
//! yet, and one with it can be resumed. The lock records whether the directory was free when a run was started in it. Only then, or with a
//! run, do other files in it belong to the run; otherwise the directory is refused and left as it is.

mod checkpoints;
mod pointer;

use std::fs::{self, File, OpenOptions, TryLockError};
use std::io::{Read, Seek, Write};
use std::path::{Path, PathBuf};

use minrnn_model::{WRITING, create_directories, write_atomic};

pub(crate) use pointer::named_in;
pub(super) use pointer::read_pointer;
pub use pointer::{CHECKPOINTS, Pointer, TRAINING_FILE, checkpoint, find_checkpoint, find_scored, has_learned_all, iteration_of};

use self::pointer::entries;
use crate::checkpoint::TOKENIZER_FILE;
use crate::{Error, Result, RunProblem};

/// The resolved experiment in a run directory.
pub const EXPERIMENT_FILE: &str = "experiment.toml";
/// The folder of a run's data, in its directory.
pub(super) const DATA_FOLDER: &str = "data";
const LOCK: &str = "run.lock";
/// The content of the lock file if the directory was free when a run was started in it.
const STARTED: &[u8] = b"a run of minrnn\n";

/// A run directory that only this process writes to until the value is dropped, or that it reads [`beside`](RunDir::beside) the writer.
///
/// If it is dropped before the run [began](Self::begin) or saved a checkpoint, what it created is removed; what existed before stays.
#[derive(Debug)]
pub struct RunDir {
    path: PathBuf,
    new: Option<New>,
    // Held for its lock, which ends with the process, however it ends; `None` if another process of the same training has it.
    lock: Option<File>,
}

/// A run that has not begun.
#[derive(Debug)]
struct New {
    /// The files left by an earlier start that was killed.
    before: Vec<String>,
    /// Whether the directory itself was made for it.
    with_directory: bool,
}

/// What the lock file says about its directory.
#[derive(Debug, PartialEq)]
enum Mark {
    /// A run was started in it while it was free.
    Started,
    /// Nothing.
    Nothing,
    /// The file is another program's.
    Foreign,
}

impl RunDir {
    /// Creates the directory of a new run, with its parents.
    ///
    /// # Errors
    /// When it already holds a run or other files (which are left as they are), another process uses it, or it cannot be created.
    pub fn create(path: impl AsRef<Path>) -> Result<Self> {
        let path = path.as_ref();
        let is_made = !path.exists();
        create_directories(path).map_err(|source| Error::io("create the run directory", path, source))?;
        let expect_free = || match (holds_no_run(path)?, foreign(path)?.into_iter().next()) {
            (true, None) => Ok(()),
            (true, Some(name)) => Err(Error::run(path, RunProblem::HoldsFiles(name))),
            (false, _) => Err(Error::run(path, RunProblem::HoldsRun)),
        };
        if !path.join(LOCK).exists() {
            // Before the lock is made: a refused directory stays as it is.
            expect_free()?;
        }
        let mut run = Self::locked(path)?;
        expect_free()?;
        if run.mark() == Mark::Foreign {
            return Err(Error::run(path, RunProblem::HoldsFiles(LOCK.to_owned())));
        }
        run.start(New { before: Vec::new(), with_directory: is_made })?;
        run.clean()?;
        Ok(run)
    }

    /// Opens the directory of an existing run to resume it, and removes what an interrupted write left behind.
    ///
    /// # Errors
    /// When there is no such directory, it holds no run but files not left by starting one, another process uses it, or it cannot be
    /// written.
    pub fn open(path: impl AsRef<Path>) -> Result<Self> {
        let path = path.as_ref();
        if !path.is_dir() {
            return Err(Error::run(path, RunProblem::Missing));
        }
        let expect_own = |mark: Mark| {
            let found = match mark {
                Mark::Started => None,
                Mark::Nothing => foreign(path)?.into_iter().next(),
                Mark::Foreign => Some(LOCK.to_owned()),
            };
            match found {
                Some(name) if holds_no_run(path)? => Err(Error::run(path, RunProblem::NotARun(name))),
                _ => Ok(()),
            }
        };
        if !path.join(LOCK).exists() {
            // Before the lock is made, as for a new run.
            expect_own(Mark::Nothing)?;
        }
        let mut run = Self::locked(path)?;
        expect_own(run.mark())?;
        if holds_no_run(path)? {
            run.start(New { before: foreign(path)?, with_directory: false })?;
        }
        run.clean()?;
        Ok(run)
    }

    /// The directory of a run that another process of the same training has created or opened and is the only one to write to. The first
    /// process of a training must not use it and is refused with it.
    pub fn beside(path: impl AsRef<Path>) -> Self {
        Self { path: path.as_ref().to_owned(), new: None, lock: None }
    }

    /// Writes the experiment of a run that has none yet, before anything else of the run: if the process is killed afterwards, the run can
    /// be resumed. If dropped before it [began](Self::begin), a new directory is still removed.
    ///
    /// # Errors
    /// When it cannot be written.
    pub fn announce(&self, experiment: &str) -> Result<()> {
        let path = self.file(EXPERIMENT_FILE);
        if path.exists() { Ok(()) } else { Ok(write_atomic(path, experiment.as_bytes())?) }
    }

    /// Writes the resolved experiment; from then on the run is kept.
    ///
    /// # Errors
    /// When it cannot be written.
    pub fn begin(&mut self, experiment: &str) -> Result<()> {
        write_atomic(self.file(EXPERIMENT_FILE), experiment.as_bytes())?;
        self.new = None;
        Ok(())
    }

    /// The run directory itself.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// The path of a file of the run.
    pub fn file(&self, name: &str) -> PathBuf {
        self.path.join(name)
    }

    fn locked(path: &Path) -> Result<Self> {
        let file = path.join(LOCK);
        let io = |source| Error::io("open the lock file", &file, source);
        let lock = OpenOptions::new().create(true).truncate(false).read(true).write(true).open(&file).map_err(io)?;
        match lock.try_lock() {
            Ok(()) => Ok(Self { path: path.to_owned(), new: None, lock: Some(lock) }),
            Err(TryLockError::WouldBlock) => Err(Error::run(path, RunProblem::InUse)),
            Err(TryLockError::Error(source)) => Err(Error::io("lock", &file, source)),
        }
    }

    /// Whether the run has not begun and `name` was left by a start of it that was killed.
    pub(super) fn holds_rest_of_start(&self, name: &str) -> bool {
        self.new.as_ref().is_some_and(|new| new.before.iter().any(|before| before == name))
    }

    /// Whether this process is the one that writes to the directory.
    pub(super) fn is_locked(&self) -> bool {
        self.lock.is_some()
    }

    /// What the lock file, which has just been opened, says.
    fn mark(&self) -> Mark {
        let mut found = Vec::new();
        let read = self.lock.as_ref().map(|lock| lock.take(STARTED.len() as u64 + 1).read_to_end(&mut found));
        match read {
            Some(Ok(_)) if found == STARTED => Mark::Started,
            // A kill or power failure leaves it truncated or with zeros.
            Some(Ok(n)) if n <= STARTED.len() && found.iter().zip(STARTED).all(|(found, own)| [*own, 0].contains(found)) => Mark::Nothing,
            _ => Mark::Foreign,
        }
    }

    /// Notes in the lock file that the directory was free, if it is, and remembers that what is made from now on is removed if the run does
    /// not begin.
    fn start(&mut self, new: New) -> Result<()> {
        let is_free = new.before.is_empty();
        self.new = Some(new);
        let Some(lock) = self.lock.as_mut().filter(|_| is_free) else { return Ok(()) };
        let written = lock.rewind().and_then(|()| lock.write_all(STARTED)).and_then(|()| lock.sync_all());
        written.map_err(|source| Error::io("write the lock file", self.path.join(LOCK), source))
    }
}

impl Drop for RunDir {
    fn drop(&mut self) {
        let Some(New { before, with_directory }) = &self.new else { return };
        let is_made = |name: &str| !before.iter().any(|other| other == name);
        let checkpoints = self.file(CHECKPOINTS);
        // A directory that holds checkpoints is not removed.
        if checkpoints.exists() && !entries(&checkpoints).is_ok_and(|names| names.is_empty()) {
            return;
        }
        if is_made(CHECKPOINTS) {
            let _ = fs::remove_dir(&checkpoints);
        }
        if is_made(DATA_FOLDER) {
            let _ = fs::remove_dir_all(self.file(DATA_FOLDER));
        }
        // The experiment goes after everything that it makes part of a run, and the lock after everything that it protects or marks as
        // ours.
        for name in [TOKENIZER_FILE, EXPERIMENT_FILE].into_iter().filter(|name| is_made(name)) {
            let _ = fs::remove_file(self.file(name));
        }
        if before.is_empty() {
            let _ = fs::remove_file(self.file(LOCK));
        }
        if *with_directory {
            let _ = fs::remove_dir(&self.path);
        }
    }
}

/// The run directory that contains a checkpoint, and the run's data.
///
/// # Errors
/// When the checkpoint is not inside a run.
pub fn run_of(checkpoint: impl AsRef<Path>) -> Result<PathBuf> {
    let checkpoint = checkpoint.as_ref();
    let run = checkpoint.canonicalize().ok().and_then(|path| path.ancestors().nth(2).map(Path::to_owned));
    run.filter(|run| run.join(EXPERIMENT_FILE).is_file()).ok_or_else(|| Error::run(checkpoint, RunProblem::OutsideRun))
}

/// Whether the directory holds nothing of a run: neither its experiment nor a checkpoint.
fn holds_no_run(path: &Path) -> Result<bool> {
    let checkpoints = path.join(CHECKPOINTS);
    let is_own = |name: &String| iteration_of(name).is_some() || Pointer::ALL.iter().any(|pointer| name == pointer.file_name());
    Ok(!path.join(EXPERIMENT_FILE).exists() && (!checkpoints.is_dir() || !entries(&checkpoints)?.iter().any(is_own)))
}

/// Names in the directory of files other than those that a start killed at once leaves behind.
fn foreign(path: &Path) -> Result<Vec<String>> {
    Ok(entries(path)?.into_iter().filter(|name| name != LOCK && !name.starts_with(WRITING)).collect())
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use super::checkpoints::tests::{place, save};
    use super::*;

    #[test]
    fn a_run_is_there_from_its_announcement_on() {
        let (_parent, path) = place();
        let run = RunDir::create(&path).unwrap();
        assert_eq!(entries(&path).unwrap(), [LOCK]);
        run.announce("first").unwrap();
        run.announce("second").unwrap();
        assert_eq!(fs::read(path.join(EXPERIMENT_FILE)).unwrap(), b"first");
        // If killed now it would be resumed; if it fails it is removed.
        std::mem::forget(run);
        assert!(RunDir::open(&path).is_err(), "the lock is held");
        let (_parent, path) = place();
        RunDir::create(&path).unwrap().announce("x").unwrap();
        assert!(!path.exists());
        fs::create_dir_all(&path).unwrap();
        fs::write(path.join(EXPERIMENT_FILE), "x").unwrap();
        drop(RunDir::open(&path).unwrap());
        assert_eq!(entries(&path).unwrap(), [EXPERIMENT_FILE, LOCK]);
    }

    /// Everything below `directory`, by path, with the content of files.
    fn snapshot(directory: &Path) -> BTreeMap<PathBuf, Option<Vec<u8>>> {
        let mut found = BTreeMap::new();
        for name in entries(directory).unwrap() {
            let path = directory.join(name);
            if path.is_dir() {
                found.extend(snapshot(&path));
            }
            found.insert(path.clone(), fs::read(&path).ok());
        }
        found
    }

    /// A user's own folder that looks like one in which a run was started.
    fn project(path: &Path) {
        fs::create_dir_all(path.join("data/raw")).unwrap();
        fs::create_dir_all(path.join(CHECKPOINTS)).unwrap();
        fs::write(path.join("data/raw/precious.csv"), "1,2").unwrap();
        fs::write(path.join("data/iter-1.tmp"), "mine").unwrap();
        fs::write(path.join("checkpoints/model.pt"), "mine").unwrap();
        fs::write(path.join(TOKENIZER_FILE), "{}").unwrap();
    }

    #[test]
    fn files_of_others_are_refused_and_stay_whatever_their_names_are() {
        for names in [&[DATA_FOLDER][..], &[TOKENIZER_FILE], &[CHECKPOINTS], &[DATA_FOLDER, CHECKPOINTS, TOKENIZER_FILE]] {
            for lock in [None, Some("")] {
                let (_parent, path) = place();
                project(&path);
                for other in [DATA_FOLDER, CHECKPOINTS].into_iter().filter(|name| !names.contains(name)) {
                    fs::remove_dir_all(path.join(other)).unwrap();
                }
                if !names.contains(&TOKENIZER_FILE) {
                    fs::remove_file(path.join(TOKENIZER_FILE)).unwrap();
                }
                lock.iter().for_each(|text| fs::write(path.join(LOCK), text).unwrap());
                let before = snapshot(&path);
                let refused = RunDir::create(&path).unwrap_err().to_string();
                assert!(refused.contains("expected a new or an empty directory for the run, found '"), "{names:?}: {refused}");
                let refused = RunDir::open(&path).unwrap_err().to_string();
                assert!(refused.contains("expected a run to resume, found other files such as '"), "{names:?}: {refused}");
                assert!(snapshot(&path) == before, "{names:?}, lock {lock:?}");
            }
        }
    }

    #[test]
    fn a_lock_file_of_others_is_refused_and_stays() {
        let (_parent, path) = place();
        fs::create_dir_all(&path).unwrap();
        for text in ["4711\n", "a run of minrnn\nand more", "a run of somebody"] {
            fs::write(path.join(LOCK), text).unwrap();
            assert!(RunDir::create(&path).unwrap_err().to_string().contains("found 'run.lock' in it"), "{text}");
            assert!(RunDir::open(&path).unwrap_err().to_string().contains("found other files such as 'run.lock'"), "{text}");
            assert_eq!(fs::read_to_string(path.join(LOCK)).unwrap(), text);
        }
        // What a kill or a power failure leaves of our own lock file.
        for text in ["", "a run of", "a run\0\0\0", "\0\0\0\0"] {
            fs::write(path.join(LOCK), text).unwrap();
            let run = RunDir::create(&path).unwrap();
            assert_eq!(fs::read(path.join(LOCK)).unwrap(), STARTED, "{text:?}");
            drop(run);
            assert!(entries(&path).unwrap().is_empty(), "{text:?}");
        }
    }

    #[test]
    fn what_a_killed_start_left_before_its_experiment_is_gone_on_with_and_stays_where_that_fails() {
        let (_parent, path) = place();
        fs::create_dir_all(path.join(DATA_FOLDER)).unwrap();
        fs::write(path.join("data/table.arrows"), "x").unwrap();
        fs::write(path.join(LOCK), STARTED).unwrap();
        let before = snapshot(&path);
        assert!(RunDir::create(&path).unwrap_err().to_string().contains("found 'data' in it"));
        let run = RunDir::open(&path).unwrap();
        run.announce("x").unwrap();
        fs::write(run.file(TOKENIZER_FILE), "x").unwrap();
        drop(run);
        assert!(snapshot(&path) == before);
        RunDir::open(&path).unwrap().begin("x").unwrap();
        assert!(RunDir::create(&path).unwrap_err().to_string().contains("already holds a run"));
    }

    #[test]
    fn a_new_run_that_never_begins_leaves_what_was_there_before() {
        let (parent, path) = place();
        drop(RunDir::create(&path).unwrap());
        assert!(!path.exists());
        fs::create_dir_all(path.join("data")).unwrap();
        fs::remove_dir(path.join("data")).unwrap();
        let run = RunDir::create(&path).unwrap();
        fs::create_dir(run.file("data")).unwrap();
        fs::write(run.file("data/text.tokens"), "x").unwrap();
        fs::write(run.file(TOKENIZER_FILE), "x").unwrap();
        drop(run);
        assert!(entries(&path).unwrap().is_empty());
        // A run with a checkpoint stays.
        let run = RunDir::create(&path).unwrap();
        save(&run, 10, false);
        drop(run);
        assert_eq!(entries(&path).unwrap(), [CHECKPOINTS, LOCK]);
        // A refused directory stays as it is.
        fs::write(parent.path().join("thesis.txt"), "").unwrap();
        RunDir::create(parent.path()).unwrap_err();
        RunDir::open(parent.path()).unwrap_err();
        assert_eq!(entries(parent.path()).unwrap(), ["runs", "thesis.txt"]);
    }

    #[test]
    fn an_existing_run_and_a_directory_of_other_files_are_refused() {
        let (parent, path) = place();
        RunDir::create(&path).unwrap().begin("").unwrap();
        assert!(RunDir::create(&path).unwrap_err().to_string().contains("already holds a run"));
        let (_other, without_experiment) = place();
        fs::create_dir_all(without_experiment.join("checkpoints/iter-10")).unwrap();
        assert!(RunDir::create(&without_experiment).unwrap_err().to_string().contains("already holds a run"));
        fs::write(parent.path().join("thesis.txt"), "").unwrap();
        assert!(RunDir::create(parent.path()).unwrap_err().to_string().contains("found 'runs' in it"));
        assert!(RunDir::open(parent.path().join("none")).unwrap_err().to_string().contains("no run directory to resume"));
        assert!(RunDir::open(parent.path()).unwrap_err().to_string().contains("found other files such as 'runs'"));
        assert!(
            RunDir::create(parent.path().join("thesis.txt")).unwrap_err().to_string().starts_with("could not create the run directory")
        );
    }

    #[test]
    fn a_start_that_failed_before_writing_can_be_repeated() {
        let (_parent, path) = place();
        fs::create_dir_all(&path).unwrap();
        fs::write(path.join(LOCK), "").unwrap();
        RunDir::create(&path).unwrap();
    }

    #[test]
    fn a_second_user_of_the_directory_is_refused_while_the_first_lives() {
        let (_parent, path) = place();
        let first = RunDir::create(&path).unwrap();
        assert!(RunDir::open(&path).unwrap_err().to_string().contains("another process is training"));
        assert!(RunDir::create(&path).unwrap_err().to_string().contains("another process is training"));
        drop(first);
        RunDir::create(&path).unwrap();
    }
}
