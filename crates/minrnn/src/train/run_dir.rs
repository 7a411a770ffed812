//! The run directory: one process at a time, a run that can be resumed or none, and checkpoints that are complete or absent.
//!
//! The experiment is written before anything else of the run but the lock and tables that are kept for it: a directory without it holds no run
//! yet, and one with it can be resumed. The lock says whether the directory was free when a run was started in it. Only then, or with a run, is
//! what lies beside it the run's own; anything else is refused and stays as it is.
//!
//! A checkpoint is written as `checkpoints/iter-N.tmp/`, its digests last, synced, and renamed to `checkpoints/iter-N/`; only then the
//! one-line files `checkpoints/last` and `checkpoints/best`, which hold such a name, are replaced; only then older ones are renamed to
//! `iter-N.old.tmp` and go. A process killed at any moment leaves `last` and `best` naming complete checkpoints, and every other name
//! without `.tmp` a complete one too. Each step is synced before the next, so that the same holds after a power failure.

use std::collections::BTreeMap;
use std::fs::{self, File, OpenOptions, TryLockError};
use std::io::{ErrorKind, Read, Seek, Write};
use std::path::{Path, PathBuf};

use minrnn_model::{CheckpointFiles, WRITING, create_directories, sync_directory, write_atomic};

use super::pointer::{CHECKPOINTS, DATA_FOLDER, Pointer, checkpoint, entries, is_complete, iteration_of, read_pointer};
use crate::checkpoint::TOKENIZER_FILE;
use crate::{Error, Result, RunProblem};

/// The resolved experiment in a run directory.
pub const EXPERIMENT_FILE: &str = "experiment.toml";
const LOCK: &str = "run.lock";
/// What the lock's file holds where the directory was free when a run was started in it.
const STARTED: &[u8] = b"a run of minrnn\n";
/// How the names of directories end that are being written or removed.
const UNFINISHED: &str = ".tmp";
const REMOVED: &str = ".old.tmp";

/// A run directory that this process alone writes to, until the value is dropped, or that it reads [`beside`](RunDir::beside) the one that does.
///
/// What it made is taken away again when it is dropped before the run [began](Self::begin) or saved a checkpoint; what was there before stays.
#[derive(Debug)]
pub struct RunDir {
    path: PathBuf,
    new: Option<New>,
    // Held for its lock, which ends with the process, however it ends; none where another process of the same training has it.
    lock: Option<File>,
}

/// A run that has not begun.
#[derive(Debug)]
struct New {
    /// What a start that was killed had made before.
    before: Vec<String>,
    /// Whether the directory itself was made for it.
    with_directory: bool,
}

/// What the file of a lock says of the directory it lies in.
#[derive(Debug, PartialEq)]
enum Mark {
    /// A run was started in it when it was free.
    Started,
    /// Nothing.
    Nothing,
    /// It is another program's.
    Foreign,
}

impl RunDir {
    /// Makes the directory of a new run, with its parents.
    ///
    /// # Errors
    /// When it already holds a run or other files, which then stay as they are, another process uses it, or it cannot be made.
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
            // Before the lock is made: a directory that is refused stays as it is.
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

    /// Takes over the directory of an existing run to continue it, and removes what an interrupted write left behind.
    ///
    /// # Errors
    /// When there is no such directory, it holds no run and files that no start of one made, another process uses it, or it cannot be written.
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

    /// The directory of a run that another process of the same training has made or opened, and alone writes to. The first process of a training
    /// is refused with it.
    pub fn beside(path: impl AsRef<Path>) -> Self {
        Self { path: path.as_ref().to_owned(), new: None, lock: None }
    }

    /// Writes the experiment of a run that has none yet, before anything else of the run: from then on whoever kills this process leaves a
    /// run that can be resumed. Dropped before it [began](Self::begin), a new directory is still taken away.
    ///
    /// # Errors
    /// When it cannot be written.
    pub fn announce(&self, experiment: &str) -> Result<()> {
        let path = self.file(EXPERIMENT_FILE);
        if path.exists() { Ok(()) } else { Ok(write_atomic(path, experiment.as_bytes())?) }
    }

    /// Writes the resolved experiment; from then on the run stays.
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

    /// The checkpoint that `pointer` names, or `None` when the run has none.
    ///
    /// # Errors
    /// When the pointer's file is damaged or names a checkpoint that is gone.
    pub fn checkpoint(&self, pointer: Pointer) -> Result<Option<PathBuf>> {
        checkpoint(&self.path, pointer)
    }

    /// Writes a checkpoint, makes it the last one and, with `is_best`, the best one, and removes older ones.
    ///
    /// `write` fills the empty directory it is given; digests of its files are added. Kept are the last, the best and those of the
    /// iterations in `keep`.
    ///
    /// # Errors
    /// When `write` or the disk refuses; the run's earlier checkpoints are then untouched and nothing half-written stays.
    pub fn save(&self, iteration: u64, is_best: bool, keep: &[u64], write: impl FnOnce(&Path) -> Result<()>) -> Result<PathBuf> {
        let directory = self.path.join(CHECKPOINTS);
        create_directories(&directory).map_err(|source| Error::io("create the checkpoint directory", &directory, source))?;
        let unfinished = directory.join(format!("iter-{iteration}{UNFINISHED}"));
        let written = create_synced(&unfinished, write).and_then(|()| self.publish(&unfinished, iteration));
        let name = match written {
            Ok(name) => name,
            Err(error) => {
                // The first error is the one to tell.
                let _ = fs::remove_dir_all(&unfinished);
                return Err(error);
            }
        };
        // Best first: a last one that training resumes from always has the best one it knows of.
        if is_best {
            self.point(Pointer::Best, &name)?;
        }
        self.point(Pointer::Last, &name)?;
        self.prune(keep, iteration)?;
        Ok(directory.join(name))
    }

    /// Makes `checkpoint`, one of this run, the best one.
    ///
    /// # Errors
    /// When the pointer cannot be written.
    pub fn make_best(&self, checkpoint: &Path) -> Result<()> {
        self.point(Pointer::Best, &checkpoint.file_name().unwrap_or_default().to_string_lossy())
    }

    /// Makes `checkpoint`, one of this run, the one that a score belongs to.
    ///
    /// # Errors
    /// When the pointer cannot be written.
    pub fn make_scored(&self, checkpoint: &Path) -> Result<()> {
        self.point(Pointer::Scored, &checkpoint.file_name().unwrap_or_default().to_string_lossy())
    }

    fn point(&self, pointer: Pointer, name: &str) -> Result<()> {
        Ok(write_atomic(self.path.join(CHECKPOINTS).join(pointer.file_name()), format!("{name}\n").as_bytes())?)
    }

    /// Iteration and path of one checkpoint for each of `iterations` that still has one, by iteration.
    ///
    /// # Errors
    /// When the directory cannot be listed.
    pub fn kept_checkpoints(&self, iterations: &[u64]) -> Result<BTreeMap<u64, PathBuf>> {
        let directory = self.path.join(CHECKPOINTS);
        let pointed = self.pointed_to()?;
        let mut names = entries(&directory)?;
        // One that is pointed to stands for its iteration; of the others, a complete one.
        names.sort_by_key(|name| pointed.contains(name));
        let kept = names.iter().filter(|name| pointed.contains(name) || is_complete(&directory.join(name)));
        let kept = kept.filter_map(|name| Some((iteration_of(name)?, directory.join(name))));
        Ok(kept.filter(|(iteration, _)| iterations.contains(iteration)).collect())
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

    /// Whether the run has not begun, and `name` is there from a start of it that was killed.
    pub(super) fn holds_rest_of_start(&self, name: &str) -> bool {
        self.new.as_ref().is_some_and(|new| new.before.iter().any(|before| before == name))
    }

    /// Whether this process alone writes to the directory.
    pub(super) fn is_locked(&self) -> bool {
        self.lock.is_some()
    }

    /// What the lock's file, which has just been opened, says.
    fn mark(&self) -> Mark {
        let mut found = Vec::new();
        let read = self.lock.as_ref().map(|lock| lock.take(STARTED.len() as u64 + 1).read_to_end(&mut found));
        match read {
            Some(Ok(_)) if found == STARTED => Mark::Started,
            // What a kill or a power failure leaves of it is cut or zeros.
            Some(Ok(n)) if n <= STARTED.len() && found.iter().zip(STARTED).all(|(found, own)| [*own, 0].contains(found)) => Mark::Nothing,
            _ => Mark::Foreign,
        }
    }

    /// Notes in the lock that the directory was free, where it is, and that what is made from now on goes where the run does not begin.
    fn start(&mut self, new: New) -> Result<()> {
        let is_free = new.before.is_empty();
        self.new = Some(new);
        let Some(lock) = self.lock.as_mut().filter(|_| is_free) else { return Ok(()) };
        let written = lock.rewind().and_then(|()| lock.write_all(STARTED)).and_then(|()| lock.sync_all());
        written.map_err(|source| Error::io("write the lock file", self.path.join(LOCK), source))
    }

    /// Removes what an interrupted write or removal left behind.
    fn clean(&self) -> Result<()> {
        let checkpoints = self.file(CHECKPOINTS);
        let complete = if checkpoints.is_dir() { entries(&checkpoints)? } else { Vec::new() };
        let complete = complete.into_iter().filter(|name| iteration_of(name).is_some()).map(|name| checkpoints.join(name));
        // A complete checkpoint may be given a file more.
        let parents: Vec<PathBuf> = [self.path.clone(), checkpoints.clone(), self.file(DATA_FOLDER)].into_iter().chain(complete).collect();
        let of_checkpoint = |name: &str| name.split_once('.').is_some_and(|(stem, _)| iteration_of(stem).is_some());
        for parent in parents.iter().filter(|parent| parent.is_dir()) {
            for name in entries(parent)? {
                let is_checkpoint = *parent == checkpoints && name.ends_with(UNFINISHED) && of_checkpoint(&name);
                let is_unfinished = name.starts_with(WRITING) || is_checkpoint;
                let left = parent.join(&name);
                let removed = match is_unfinished {
                    true if left.is_dir() => fs::remove_dir_all(&left),
                    true => fs::remove_file(&left),
                    false => Ok(()),
                };
                removed.map_err(|source| Error::io("remove the unfinished", &left, source))?;
            }
        }
        Ok(())
    }

    /// Renames a finished checkpoint to a name that no pointer uses yet; gives that name.
    fn publish(&self, finished: &Path, iteration: u64) -> Result<String> {
        let directory = self.path.join(CHECKPOINTS);
        let used = self.pointed_to()?;
        let mut name = format!("iter-{iteration}");
        for again in 2.. {
            if !used.contains(&name) {
                break;
            }
            name = format!("iter-{iteration}-{again}");
        }
        let target = directory.join(&name);
        let aside = if target.exists() { Some(set_aside(&target)?) } else { None };
        let io = |source| Error::io("finish the checkpoint", &target, source);
        fs::rename(finished, &target).map_err(io)?;
        sync_directory(&directory).map_err(io)?;
        aside.map_or(Ok(()), |aside| remove_if_there(&aside))?;
        Ok(name)
    }

    /// Removes what is neither pointed to nor in `keep`, earlier checkpoints of the iteration just `saved`, and incomplete ones.
    fn prune(&self, keep: &[u64], saved: u64) -> Result<()> {
        let used = self.pointed_to()?;
        let directory = self.path.join(CHECKPOINTS);
        let mut removed = Vec::new();
        for name in entries(&directory)? {
            let Some(iteration) = iteration_of(&name) else { continue };
            let path = directory.join(&name);
            if !used.contains(&name) && (!keep.contains(&iteration) || iteration == saved || !is_complete(&path)) {
                removed.push(set_aside(&path)?);
            }
        }
        if !removed.is_empty() {
            // Their names go before their files do.
            sync_directory(&directory).map_err(|source| Error::io("sync", &directory, source))?;
        }
        removed.iter().try_for_each(|path| remove_if_there(path))
    }

    fn pointed_to(&self) -> Result<Vec<String>> {
        let mut names = Vec::new();
        for pointer in Pointer::ALL {
            names.extend(read_pointer(&self.path, pointer)?);
        }
        Ok(names)
    }
}

impl Drop for RunDir {
    fn drop(&mut self) {
        let Some(New { before, with_directory }) = &self.new else { return };
        let is_made = |name: &str| !before.iter().any(|other| other == name);
        let checkpoints = self.file(CHECKPOINTS);
        // A directory with checkpoints in it does not go.
        if checkpoints.exists() && !entries(&checkpoints).is_ok_and(|names| names.is_empty()) {
            return;
        }
        if is_made(CHECKPOINTS) {
            let _ = fs::remove_dir(&checkpoints);
        }
        if is_made(DATA_FOLDER) {
            let _ = fs::remove_dir_all(self.file(DATA_FOLDER));
        }
        // The experiment behind all that it makes a run of, the lock behind all that it protects, or that is known by it.
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

/// The run directory around a checkpoint, which holds the run's data.
///
/// # Errors
/// When the checkpoint lies outside its run.
pub fn run_of(checkpoint: impl AsRef<Path>) -> Result<PathBuf> {
    let checkpoint = checkpoint.as_ref();
    let run = checkpoint.canonicalize().ok().and_then(|path| path.ancestors().nth(2).map(Path::to_owned));
    run.filter(|run| run.join(EXPERIMENT_FILE).is_file()).ok_or_else(|| Error::run(checkpoint, RunProblem::OutsideRun))
}

/// Whether nothing of a run is there: neither its experiment nor a checkpoint.
fn holds_no_run(path: &Path) -> Result<bool> {
    let checkpoints = path.join(CHECKPOINTS);
    let is_own = |name: &String| iteration_of(name).is_some() || Pointer::ALL.iter().any(|pointer| name == pointer.file_name());
    Ok(!path.join(EXPERIMENT_FILE).exists() && (!checkpoints.is_dir() || !entries(&checkpoints)?.iter().any(is_own)))
}

/// Names in the directory of what a start that is killed at once does not leave behind.
fn foreign(path: &Path) -> Result<Vec<String>> {
    Ok(entries(path)?.into_iter().filter(|name| name != LOCK && !name.starts_with(WRITING)).collect())
}

fn create_synced(directory: &Path, write: impl FnOnce(&Path) -> Result<()>) -> Result<()> {
    let io = |source| Error::io("write the checkpoint", directory, source);
    remove_if_there(directory)?;
    fs::create_dir(directory).map_err(io)?;
    write(directory)?;
    CheckpointFiles::seal(directory)?;
    for name in entries(directory)? {
        // Windows syncs only what is open for writing.
        OpenOptions::new().read(true).write(true).open(directory.join(name)).and_then(|file| file.sync_all()).map_err(io)?;
    }
    sync_directory(directory).map_err(io)
}

/// Takes the name of a checkpoint away, so that nobody finds half of it while it is removed; gives the name it has now.
fn set_aside(checkpoint: &Path) -> Result<PathBuf> {
    let mut name = checkpoint.file_name().unwrap_or_default().to_owned();
    name.push(REMOVED);
    let aside = checkpoint.with_file_name(name);
    remove_if_there(&aside)?;
    fs::rename(checkpoint, &aside).map_err(|source| Error::io("remove the old checkpoint", checkpoint, source))?;
    Ok(aside)
}

fn remove_if_there(directory: &Path) -> Result<()> {
    match fs::remove_dir_all(directory) {
        Err(source) if source.kind() != ErrorKind::NotFound => Err(Error::io("remove the old checkpoint", directory, source)),
        _ => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use minrnn_model::CONFIG_FILE;

    use super::*;

    fn place() -> (tempfile::TempDir, PathBuf) {
        let parent = tempfile::tempdir().unwrap();
        let path = parent.path().join("runs").join("one");
        (parent, path)
    }

    fn save(run: &RunDir, iteration: u64, is_best: bool) -> PathBuf {
        run.save(iteration, is_best, &[], |directory| {
            fs::write(directory.join(CONFIG_FILE), format!("{iteration}")).unwrap();
            Ok(())
        })
        .unwrap()
    }

    fn names(run: &RunDir) -> Vec<String> {
        entries(&run.path.join(CHECKPOINTS)).unwrap()
    }

    fn name(path: Option<PathBuf>) -> String {
        path.unwrap().file_name().unwrap().to_str().unwrap().to_owned()
    }

    #[test]
    fn last_and_best_stay_and_older_checkpoints_go() {
        let (_parent, path) = place();
        let run = RunDir::create(&path).unwrap();
        assert_eq!(run.checkpoint(Pointer::Last).unwrap(), None);
        save(&run, 10, true);
        save(&run, 20, false);
        save(&run, 30, false);
        assert_eq!(names(&run), ["best", "iter-10", "iter-30", "last"]);
        run.save(40, true, &[30], |_| Ok(())).unwrap();
        assert_eq!(names(&run), ["best", "iter-30", "iter-40", "last"]);
        assert_eq!(name(run.checkpoint(Pointer::Last).unwrap()), "iter-40");
    }

    #[test]
    fn saving_an_iteration_again_never_leaves_a_pointer_without_a_checkpoint() {
        let (_parent, path) = place();
        let run = RunDir::create(&path).unwrap();
        save(&run, 10, false);
        assert_eq!(name(Some(save(&run, 10, true))), "iter-10-2");
        assert_eq!(names(&run), ["best", "iter-10-2", "last"]);
        save(&run, 10, false);
        assert_eq!(names(&run), ["best", "iter-10", "iter-10-2", "last"]);
    }

    #[test]
    fn a_failed_save_keeps_the_earlier_checkpoint_and_leaves_nothing() {
        let (_parent, path) = place();
        let run = RunDir::create(&path).unwrap();
        save(&run, 10, true);
        let refused = run.save(20, true, &[], |directory| {
            fs::write(directory.join("half"), "x").unwrap();
            Err(Error::io("write", directory, ErrorKind::StorageFull.into()))
        });
        assert!(refused.unwrap_err().to_string().contains("no storage space"));
        assert_eq!(names(&run), ["best", "iter-10", "last"]);
        assert_eq!(name(run.checkpoint(Pointer::Best).unwrap()), "iter-10");
    }

    #[test]
    fn a_run_killed_at_any_point_of_a_save_resumes_from_a_complete_checkpoint() {
        let (_parent, path) = place();
        let run = RunDir::create(&path).unwrap();
        save(&run, 10, true);
        drop(run);
        // Killed while writing; killed after the rename, before the pointers.
        let checkpoints = path.join(CHECKPOINTS);
        fs::create_dir(checkpoints.join("iter-30.tmp")).unwrap();
        fs::create_dir(checkpoints.join("iter-20")).unwrap();
        fs::write(checkpoints.join(".writing-abc"), "iter").unwrap();
        // Killed while a file was added.
        fs::write(checkpoints.join("iter-10/.writing-abc"), "{").unwrap();
        let complete = fs::read_dir(checkpoints.join("iter-10")).unwrap().count() - 1;
        fs::create_dir_all(path.join("data/.writing-abc")).unwrap();
        fs::create_dir(path.join(".writing-abc")).unwrap();
        fs::write(path.join(".writing-abc/curves.png"), "half").unwrap();
        let run = RunDir::open(&path).unwrap();
        assert_eq!(
            (entries(&path).unwrap(), entries(&path.join("data")).unwrap().len()),
            (vec!["checkpoints".into(), "data".into(), LOCK.into()], 0)
        );
        assert_eq!(names(&run), ["best", "iter-10", "iter-20", "last"]);
        assert_eq!(fs::read_dir(checkpoints.join("iter-10")).unwrap().count(), complete);
        assert_eq!(name(run.checkpoint(Pointer::Last).unwrap()), "iter-10");
        save(&run, 20, false);
        assert_eq!(names(&run), ["best", "iter-10", "iter-20", "last"]);
        assert_eq!(fs::read(path.join("checkpoints/iter-20/config.json")).unwrap(), b"20");
    }

    #[test]
    fn a_run_killed_before_its_first_pointer_still_has_a_last_checkpoint() {
        let (_parent, path) = place();
        let run = RunDir::create(&path).unwrap();
        fs::create_dir(path.join(CHECKPOINTS)).unwrap();
        for iteration in [9, 10] {
            let write = |directory: &Path| {
                fs::write(directory.join(CONFIG_FILE), "").unwrap();
                Ok(())
            };
            create_synced(&path.join(CHECKPOINTS).join(format!("iter-{iteration}")), write).unwrap();
        }
        // Of one that was cut short by a version that removed checkpoints in place nothing is said.
        fs::create_dir(path.join("checkpoints/iter-11")).unwrap();
        fs::write(path.join("checkpoints/iter-11").join(CONFIG_FILE), "").unwrap();
        assert_eq!(name(run.checkpoint(Pointer::Last).unwrap()), "iter-10");
        assert_eq!(run.checkpoint(Pointer::Best).unwrap(), None);
    }

    #[test]
    fn what_is_left_of_a_removed_checkpoint_neither_stands_for_its_iteration_nor_stays() {
        let (_parent, path) = place();
        let run = RunDir::create(&path).unwrap();
        save(&run, 10, true);
        save(&run, 20, false);
        let checkpoints = path.join(CHECKPOINTS);
        for left in ["iter-10-2", "iter-10.old.tmp", "iter-20-2.old.tmp"] {
            fs::create_dir(checkpoints.join(left)).unwrap();
            fs::write(checkpoints.join(left).join(CONFIG_FILE), "10").unwrap();
        }
        drop(run);
        let run = RunDir::open(&path).unwrap();
        assert_eq!(names(&run), ["best", "iter-10", "iter-10-2", "iter-20", "last"]);
        assert_eq!(run.kept_checkpoints(&[10]).unwrap()[&10], checkpoints.join("iter-10"));
        run.save(30, false, &[10], |_| Ok(())).unwrap();
        assert_eq!(names(&run), ["best", "iter-10", "iter-30", "last"]);
    }

    #[test]
    fn a_checkpoint_that_nothing_points_to_gives_way_to_another_of_its_name() {
        let (_parent, path) = place();
        let run = RunDir::create(&path).unwrap();
        save(&run, 10, true);
        // Killed after the rename, before the pointers.
        fs::create_dir(path.join("checkpoints/iter-20")).unwrap();
        fs::write(path.join("checkpoints/iter-20/earlier"), "").unwrap();
        let saved = save(&run, 20, false);
        assert_eq!(entries(&saved).unwrap(), ["SHA256SUMS", CONFIG_FILE]);
        assert_eq!(names(&run), ["best", "iter-10", "iter-20", "last"]);
    }

    #[test]
    fn a_run_is_there_from_its_announcement_on() {
        let (_parent, path) = place();
        let run = RunDir::create(&path).unwrap();
        assert_eq!(entries(&path).unwrap(), [LOCK]);
        run.announce("first").unwrap();
        run.announce("second").unwrap();
        assert_eq!(fs::read(path.join(EXPERIMENT_FILE)).unwrap(), b"first");
        // Killed now, it would be resumed; what fails goes.
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

    /// All below `directory`, by path; of files their content.
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

    /// A folder of somebody's own, which looks as one in which a run was started.
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
        // What a kill or a power failure leaves of our own.
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
    fn only_what_has_the_name_of_an_unfinished_write_is_cleared_away() {
        let (_parent, path) = place();
        let run = RunDir::create(&path).unwrap();
        save(&run, 10, true);
        drop(run);
        fs::create_dir(path.join(DATA_FOLDER)).unwrap();
        for name in ["iter-5.tmp", "data/iter-5.tmp", "checkpoints/iter-5.tmp", "checkpoints/notes.tmp", "data/.writing-x"] {
            fs::write(path.join(name), "").unwrap();
        }
        let run = RunDir::open(&path).unwrap();
        assert_eq!(entries(&path).unwrap(), [CHECKPOINTS, DATA_FOLDER, "iter-5.tmp", LOCK]);
        assert_eq!(entries(&run.file(DATA_FOLDER)).unwrap(), ["iter-5.tmp"]);
        assert_eq!(names(&run), ["best", "iter-10", "last", "notes.tmp"]);
    }

    #[test]
    fn saving_a_kept_iteration_again_leaves_one_checkpoint_of_it() {
        let (_parent, path) = place();
        let run = RunDir::create(&path).unwrap();
        save(&run, 10, false);
        run.save(10, true, &[10], |_| Ok(())).unwrap();
        assert_eq!(names(&run), ["best", "iter-10-2", "last"]);
    }

    #[test]
    fn another_kept_checkpoint_can_be_made_the_best() {
        let (_parent, path) = place();
        let run = RunDir::create(&path).unwrap();
        let first = save(&run, 10, true);
        run.save(20, true, &[10], |_| Ok(())).unwrap();
        run.make_best(&first).unwrap();
        assert_eq!(run.checkpoint(Pointer::Best).unwrap(), Some(first));
        assert_eq!(name(run.checkpoint(Pointer::Last).unwrap()), "iter-20");
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
        // One with a checkpoint stays.
        let run = RunDir::create(&path).unwrap();
        save(&run, 10, false);
        drop(run);
        assert_eq!(entries(&path).unwrap(), [CHECKPOINTS, LOCK]);
        // What is refused stays as it is.
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
