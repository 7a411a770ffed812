//! The checkpoints of a run directory: written atomically, pointed to, and removed when no longer needed.
//!
//! A checkpoint is written as `checkpoints/iter-N.tmp/`, its digests last, synced, and renamed to `checkpoints/iter-N/`; only then are the
//! one-line files `checkpoints/last` and `checkpoints/best`, which contain such a name, replaced; only then are older ones renamed to
//! `iter-N.old.tmp` and deleted. A process killed at any moment leaves `last` and `best` naming complete checkpoints, and every other name
//! without `.tmp` is a complete one too. Each step is synced before the next, so the same holds after a power failure.

use std::collections::BTreeMap;
use std::fs::{self, OpenOptions};
use std::io::ErrorKind;
use std::path::{Path, PathBuf};

use minrnn_model::{CheckpointFiles, WRITING, create_directories, sync_directory, write_atomic};

use super::pointer::{CHECKPOINTS, Pointer, checkpoint, entries, is_complete, iteration_of, read_pointer};
use super::{DATA_FOLDER, RunDir};
use crate::{Error, Result};

/// Suffixes of directories that are being written or removed.
const UNFINISHED: &str = ".tmp";
const REMOVED: &str = ".old.tmp";

impl RunDir {
    /// The checkpoint named by `pointer`, or `None` if the run has none.
    ///
    /// # Errors
    /// When the pointer's file is damaged or names a checkpoint that is gone.
    pub fn checkpoint(&self, pointer: Pointer) -> Result<Option<PathBuf>> {
        checkpoint(&self.path, pointer)
    }

    /// Writes a checkpoint, makes it the last one and, with `is_best`, the best one, and removes older ones.
    ///
    /// `write` fills the empty directory it is given; digests of its files are added. The last, the best and those of the iterations in
    /// `keep` are kept.
    ///
    /// # Errors
    /// When `write` or writing to disk fails; the run's earlier checkpoints are then untouched and nothing half-written is left.
    pub fn save(&self, iteration: u64, is_best: bool, keep: &[u64], write: impl FnOnce(&Path) -> Result<()>) -> Result<PathBuf> {
        let directory = self.path.join(CHECKPOINTS);
        create_directories(&directory).map_err(|source| Error::io("create the checkpoint directory", &directory, source))?;
        let unfinished = directory.join(format!("iter-{iteration}{UNFINISHED}"));
        let written = create_synced(&unfinished, write).and_then(|()| self.publish(&unfinished, iteration));
        let name = match written {
            Ok(name) => name,
            Err(error) => {
                // The first error is the one to report.
                let _ = fs::remove_dir_all(&unfinished);
                return Err(error);
            }
        };
        // Best first: the last checkpoint, from which training resumes, must always have the best one that it accounts for.
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

    /// Makes `checkpoint`, one of this run, the scored one.
    ///
    /// # Errors
    /// When the pointer cannot be written.
    pub fn make_scored(&self, checkpoint: &Path) -> Result<()> {
        self.point(Pointer::Scored, &checkpoint.file_name().unwrap_or_default().to_string_lossy())
    }

    fn point(&self, pointer: Pointer, name: &str) -> Result<()> {
        Ok(write_atomic(self.path.join(CHECKPOINTS).join(pointer.file_name()), format!("{name}\n").as_bytes())?)
    }

    /// By iteration, the path of one checkpoint for each of `iterations` that still has one.
    ///
    /// # Errors
    /// When the directory cannot be listed.
    pub fn kept_checkpoints(&self, iterations: &[u64]) -> Result<BTreeMap<u64, PathBuf>> {
        let directory = self.path.join(CHECKPOINTS);
        let pointed = self.pointed_to()?;
        let mut names = entries(&directory)?;
        // A checkpoint that is pointed to stands for its iteration, otherwise a complete one.
        names.sort_by_key(|name| pointed.contains(name));
        let kept = names.iter().filter(|name| pointed.contains(name) || is_complete(&directory.join(name)));
        let kept = kept.filter_map(|name| Some((iteration_of(name)?, directory.join(name))));
        Ok(kept.filter(|(iteration, _)| iterations.contains(iteration)).collect())
    }

    /// Removes what an interrupted write or removal left behind.
    pub(super) fn clean(&self) -> Result<()> {
        let checkpoints = self.file(CHECKPOINTS);
        let complete = if checkpoints.is_dir() { entries(&checkpoints)? } else { Vec::new() };
        let complete = complete.into_iter().filter(|name| iteration_of(name).is_some()).map(|name| checkpoints.join(name));
        // A file may be added to a complete checkpoint.
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

    /// Renames a finished checkpoint to a name that no pointer uses yet; returns that name.
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
            // Their names are removed before their files.
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

fn create_synced(directory: &Path, write: impl FnOnce(&Path) -> Result<()>) -> Result<()> {
    let io = |source| Error::io("write the checkpoint", directory, source);
    remove_if_there(directory)?;
    fs::create_dir(directory).map_err(io)?;
    write(directory)?;
    CheckpointFiles::seal(directory)?;
    for name in entries(directory)? {
        // Windows syncs only files open for writing.
        OpenOptions::new().read(true).write(true).open(directory.join(name)).and_then(|file| file.sync_all()).map_err(io)?;
    }
    sync_directory(directory).map_err(io)
}

/// Renames a checkpoint, so that nobody finds half of it while it is removed; returns its new path.
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
pub(super) mod tests {
    use minrnn_model::CONFIG_FILE;

    use super::super::LOCK;
    use super::*;

    /// A path where a run can be made, and the temporary directory around it.
    pub fn place() -> (tempfile::TempDir, PathBuf) {
        let parent = tempfile::tempdir().unwrap();
        let path = parent.path().join("runs").join("one");
        (parent, path)
    }

    /// Saves a checkpoint with one small file.
    pub fn save(run: &RunDir, iteration: u64, is_best: bool) -> PathBuf {
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
        // A checkpoint cut short by a version that removed checkpoints in place is ignored.
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
}
