//! Unfinished runs: the progress of each, where it was made so far, and what another machine needs to continue it.
//!
//! ```text
//! OUT/unfinished/ID/seed-N/run.json            its progress, and every machine it ran on
//! OUT/unfinished/ID/seed-N/experiment.toml     its settings
//! OUT/unfinished/ID/seed-N/checkpoints/        the last checkpoint, and the weights of the best one
//! ```
//!
//! It is a copy, made at most once a minute and when a run is stopped, in the form of a run directory. The run itself stays where it always
//! is, with its log and everything that is kept. The last checkpoint holds weights, moments and counters as f32, everything that the next
//! update depends on: from it a run continues bit for bit on the same CPU. A checkpoint beyond [`MAX_BYTES`] is not copied, since such
//! folders are meant to be kept in a repository that never forgets a file; nor is that of a text, which would need its tokens.

use std::fs;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use minrnn::train::{
    CHECKPOINTS, EXPERIMENT_FILE, Experiment, MAX_EXPERIMENT_BYTES, METRICS_FILE, Pointer, Progress, Record, RunDir, TRAINING_FILE, Task,
    checkpoint, iteration_of, read_metrics,
};
use minrnn_model::{CheckpointFiles, DIGESTS_FILE, create_directories, read_text, write_atomic};
use serde::{Deserialize, Serialize};

use crate::Result;
use crate::folder;
use crate::outcome::{Origin, Point, Stretch};

/// The largest checkpoint that is copied.
pub const MAX_BYTES: u64 = 5_000_000;
/// The least time between two copies, except when a run stops.
const INTERVAL: Duration = Duration::from_secs(60);
/// The most bytes that are read from one file of another machine's checkpoint.
const MAX_FILE_BYTES: u64 = 2 * MAX_BYTES;
const STATE: &str = "run.json";

/// The progress of a run.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Begun {
    /// Number of updates so far.
    pub iterations: u64,
    /// Maximum number of updates.
    pub of: u64,
    /// Number of updates before the best evaluation so far, if there was one.
    pub best_iteration: Option<u64>,
    /// Seconds spent in updates.
    pub seconds: f64,
    /// Bytes of its last checkpoint if it is not beside this file, because it is too large or that of a text.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub left_out_bytes: Option<u64>,
    /// Where its updates were made.
    pub stretches: Vec<Stretch>,
    /// Its evaluations on the validation batches.
    pub curve: Vec<Point>,
}

impl Begun {
    /// A run of `experiment` that stands at `progress` and has the log in `run`, up to the last evaluation that `progress` knows of.
    fn at(progress: &Progress, run: &Path, experiment: &Experiment) -> Result<Self> {
        let records = read_metrics(run.join(METRICS_FILE))?;
        let mut curve: Vec<Point> = records.iter().filter_map(|record| Point::of(record, experiment.data.task)).collect();
        curve.retain(|point| progress.evaluated_at.is_some_and(|last| point.iteration <= last));
        Ok(Self {
            iterations: progress.iteration,
            of: experiment.train.max_iterations,
            best_iteration: progress.kept().first().copied(),
            seconds: progress.seconds,
            left_out_bytes: None,
            stretches: Vec::new(),
            curve,
        })
    }

    /// The progress of the run of `experiment` in the directory `run`, from its own last checkpoint, which need not be copied yet; none if no
    /// update of it is saved. Only a copy knows where the updates were made.
    ///
    /// # Errors
    /// When the checkpoint or the log is damaged.
    pub(crate) fn of_run(run: &Path, experiment: &Experiment) -> Result<Option<Self>> {
        let Some(last) = checkpoint(run, Pointer::Last)? else { return Ok(None) };
        let progress = Progress::read(&last)?;
        if progress.iteration == 0 {
            return Ok(None);
        }
        Self::at(&progress, run, experiment).map(Some)
    }

    /// The best evaluation so far.
    pub fn best(&self) -> Option<&Point> {
        self.curve.iter().find(|point| Some(point.iteration) == self.best_iteration)
    }
}

/// The copy of a run.
#[derive(Debug)]
pub struct Copy {
    path: PathBuf,
}

impl Copy {
    /// The copy at `path`, which need not exist.
    pub fn at(path: PathBuf) -> Self {
        Self { path }
    }

    /// The run's progress at the time of the copy; `None` if there is no copy.
    ///
    /// # Errors
    /// When it cannot be read.
    pub fn read(&self) -> Result<Option<Begun>> {
        folder::read(&self.path.join(STATE))
    }

    /// Its path.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Copies the run in `run` as it stands.
    fn make(&self, run: &Path, experiment: &str, begun: &Begun) -> Result<()> {
        create_directories(&self.path).map_err(|source| minrnn::Error::io("create the folder", &self.path, source))?;
        let mut copy = RunDir::open(&self.path)?;
        copy.begin(experiment)?;
        if begun.left_out_bytes.is_none() {
            let (last, best) = (checkpoint(run, Pointer::Last)?, checkpoint(run, Pointer::Best)?);
            let copied = |pointer: Pointer| copy.checkpoint(pointer);
            if let Some(best) = best.as_ref().filter(|best| Some(*best) != last.as_ref()) {
                // Only the weights of the best one are needed: nothing continues from it.
                let is_there =
                    copied(Pointer::Best)?.is_some_and(|there| named(&there) == named(best) && !there.join(TRAINING_FILE).exists());
                if !is_there {
                    copy.save(named(best), true, &[], |to| take(best, to, |name| name != TRAINING_FILE))?;
                }
            }
            if let Some(last) = &last {
                let is_best = best.as_ref() == Some(last);
                let is_there =
                    copied(Pointer::Last)?.is_some_and(|there| named(&there) == named(last) && there.join(TRAINING_FILE).exists());
                if !is_there {
                    copy.save(named(last), is_best, &[], |to| take(last, to, |_| true))?;
                }
            }
        } else if self.path.join(CHECKPOINTS).exists() {
            remove(&self.path.join(CHECKPOINTS))?;
        }
        folder::write(&self.path.join(STATE), begun)
    }

    /// Restores the copy into `run`, the directory of the same run, if the copy is further along; returns the copy's progress.
    ///
    /// # Errors
    /// When the copy is damaged or the file system fails.
    pub fn bring_back(&self, run: &RunDir) -> Result<Option<Begun>> {
        let Some(begun) = self.read()? else { return Ok(None) };
        let own = run.checkpoint(Pointer::Last)?;
        let Some(last) = checkpoint(&self.path, Pointer::Last)? else { return Ok(Some(begun)) };
        if own.is_some_and(|own| named(&own) >= named(&last)) {
            return Ok(Some(begun));
        }
        if let Some(best) = checkpoint(&self.path, Pointer::Best)?.filter(|best| *best != last) {
            run.save(named(&best), true, &[], |to| take(&best, to, |_| true))?;
        }
        let is_best = checkpoint(&self.path, Pointer::Best)?.as_ref() == Some(&last);
        let lines = |point: &Point| {
            let record =
                Record::Eval { iteration: point.iteration, train_loss: None, test_loss: point.loss, test_accuracy: point.accuracy };
            serde_json::to_string(&record)
                .map(|line| line + "\n")
                .map_err(|error| minrnn::Error::malformed(self.path.join(STATE), error.to_string()))
        };
        // Written before the checkpoint that refers to them.
        let log = begun.curve.iter().map(lines).collect::<minrnn::Result<String>>()?;
        write_atomic(run.file(METRICS_FILE), log.as_bytes())?;
        let experiment = read_text(self.path.join(EXPERIMENT_FILE), MAX_EXPERIMENT_BYTES)?;
        write_atomic(run.file(EXPERIMENT_FILE), experiment.as_bytes())?;
        run.save(named(&last), is_best, &[], |to| take(&last, to, |_| true))?;
        Ok(Some(begun))
    }

    /// Removes the copy: the run is finished, or restarted.
    ///
    /// # Errors
    /// When the file system fails.
    pub fn remove(&self) -> Result<()> {
        if self.path.exists() {
            remove(&self.path)?;
            // Folders that are then empty go with it.
            for parent in self.path.ancestors().skip(1).take(3) {
                if fs::remove_dir(parent).is_err() {
                    break;
                }
            }
        }
        Ok(())
    }
}

fn remove(path: &Path) -> Result<()> {
    fs::remove_dir_all(path).map_err(|source| minrnn::Error::io("remove", path, source).into())
}

/// The iteration in a checkpoint's name.
fn named(checkpoint: &Path) -> u64 {
    checkpoint.file_name().and_then(|name| iteration_of(&name.to_string_lossy())).unwrap_or(0)
}

/// Copies the files of the checkpoint `from` that are `wanted` into the folder `to`, each verified against its digest.
fn take(from: &Path, to: &Path, wanted: impl Fn(&str) -> bool) -> minrnn::Result<()> {
    let files = CheckpointFiles::open(from)?;
    // Files that other programs leave there are not listed.
    for name in names(from)?.iter().filter(|name| *name != DIGESTS_FILE && files.lists(name) && wanted(name)) {
        write_atomic(to.join(name), &files.bytes(name, MAX_FILE_BYTES)?)?;
    }
    Ok(())
}

fn names(directory: &Path) -> minrnn::Result<Vec<String>> {
    let io = |source| minrnn::Error::io("list", directory, source);
    let mut names = Vec::new();
    for entry in fs::read_dir(directory).map_err(io)? {
        names.extend(entry.map_err(io)?.file_name().into_string());
    }
    Ok(names)
}

fn bytes(directory: &Path) -> minrnn::Result<u64> {
    let of = |name: &String| directory.join(name).metadata().map(|found| found.len());
    let sizes = names(directory)?.iter().map(of).sum::<std::io::Result<u64>>();
    sizes.map_err(|source| minrnn::Error::io("look at", directory, source))
}

/// The file of `experiment` as stored for other machines, which have the data elsewhere.
pub fn without_paths(experiment: &Experiment) -> Result<String> {
    let mut experiment = experiment.clone();
    experiment.data.path = None;
    Ok(experiment.to_toml()?)
}

/// Follows a training and copies it.
pub struct Follower<'a> {
    copy: &'a Copy,
    run: &'a Path,
    experiment: String,
    task: Task,
    begun: Begun,
    made: Instant,
}

impl<'a> Follower<'a> {
    /// Follows the run in `run`, currently at `progress` and continued at `origin`; `before` is what was known of it.
    ///
    /// # Errors
    /// When its log cannot be read.
    pub fn new(
        copy: &'a Copy,
        run: &'a Path,
        experiment: &Experiment,
        progress: &Progress,
        before: Option<Begun>,
        origin: Origin,
    ) -> Result<Self> {
        let stretches = before.map_or_else(Vec::new, |before| before.stretches);
        let mut begun = Begun { stretches, ..Begun::at(progress, run, experiment)? };
        Stretch::go_on(&mut begun.stretches, origin, progress.iteration);
        let task = experiment.data.task;
        let experiment = without_paths(experiment)?;
        Ok(Self { copy, run, experiment, task, begun, made: Instant::now() })
    }

    /// Where the updates were made so far.
    pub fn stretches(&self) -> &[Stretch] {
        &self.begun.stretches
    }

    /// The same for a training that ended after `iteration` updates, the last of which may not have been copied.
    pub fn all_stretches(&mut self, iteration: u64) -> &[Stretch] {
        self.begun.stretches.last_mut().into_iter().for_each(|stretch| stretch.to = iteration);
        &self.begun.stretches
    }

    /// Records an evaluation.
    pub fn evaluated(&mut self, record: &Record) {
        self.begun.curve.extend(Point::of(record, self.task));
    }

    /// Records a new checkpoint: copies the run if the last copy is older than a minute.
    ///
    /// # Errors
    /// As [`copy_run`](Self::copy_run).
    pub fn saved(&mut self) -> Result<()> {
        if self.made.elapsed() < INTERVAL { Ok(()) } else { self.copy_run() }
    }

    /// Copies the run as of its last checkpoint.
    ///
    /// # Errors
    /// When writing fails.
    pub fn copy_run(&mut self) -> Result<()> {
        self.made = Instant::now();
        let Some(last) = checkpoint(self.run, Pointer::Last)? else { return Ok(()) };
        let progress = Progress::read(&last)?;
        let size = bytes(&last)?;
        let begun = &mut self.begun;
        begun.iterations = progress.iteration;
        begun.seconds = progress.seconds;
        begun.best_iteration = progress.kept().first().copied();
        begun.left_out_bytes = (self.task == Task::Text || size > MAX_BYTES).then_some(size);
        if let Some(stretch) = begun.stretches.last_mut() {
            stretch.to = progress.iteration;
        }
        if begun.iterations == 0 {
            return Ok(());
        }
        self.copy.make(self.run, &self.experiment, &self.begun)
    }
}

#[cfg(test)]
mod tests {
    use minrnn::train::PROGRESS_FILE;

    use super::*;

    fn checkpoint_of(run: &RunDir, iteration: u64, is_best: bool, keep: &[u64]) {
        let write = |to: &Path| {
            for (name, text) in [("config.json", "{}"), ("model.safetensors", "weights"), (TRAINING_FILE, "moments")] {
                fs::write(to.join(name), format!("{text} {iteration}")).unwrap();
            }
            let progress = Progress { iteration, seconds: iteration as f64, ..Progress::default() };
            fs::write(to.join(PROGRESS_FILE), serde_json::to_string(&progress).unwrap()).unwrap();
            Ok(())
        };
        run.save(iteration, is_best, keep, write).unwrap();
    }

    fn origin(machine: &str) -> Origin {
        Origin { machine: machine.to_owned(), threads: 1, device: "cpu".to_owned(), commit: "abc1234".to_owned() }
    }

    fn follow<'a>(copy: &'a Copy, run: &'a RunDir, at: u64, before: Option<Begun>, machine: &str) -> Follower<'a> {
        let settings = ["max_iterations=100".to_owned()];
        let experiment = minrnn::train::Experiment::load("parity", &settings).unwrap();
        let progress = Progress { iteration: at, ..Progress::default() };
        Follower::new(copy, run.path(), &experiment, &progress, before, origin(machine)).unwrap()
    }

    #[test]
    fn a_copy_has_the_last_checkpoint_and_the_weights_of_the_best_and_another_machine_goes_on_with_it() {
        let parent = tempfile::tempdir().unwrap();
        let (here, there) = (parent.path().join("here"), parent.path().join("there"));
        let copy = Copy::at(parent.path().join("out/unfinished/task/row/seed-1"));
        let mut run = RunDir::create(&here).unwrap();
        run.begin("").unwrap();
        checkpoint_of(&run, 10, true, &[]);
        let mut follower = follow(&copy, &run, 0, None, "box");
        follower.evaluated(&Record::Eval { iteration: 10, train_loss: None, test_loss: 0.5, test_accuracy: Some(0.75) });
        follower.saved().unwrap();
        assert!(!copy.path().exists(), "not within a minute");
        follower.copy_run().unwrap();
        checkpoint_of(&run, 30, false, &[]);
        follower.copy_run().unwrap();
        let begun = copy.read().unwrap().unwrap();
        assert_eq!((begun.iterations, begun.of, begun.curve.len(), begun.left_out_bytes), (30, 100, 1, None));
        assert_eq!(begun.stretches, [Stretch { origin: origin("box"), from: 0, to: 30 }]);
        let found = |pointer| checkpoint(copy.path(), pointer).unwrap().unwrap();
        assert_eq!((named(&found(Pointer::Last)), named(&found(Pointer::Best))), (30, 10));
        assert!(found(Pointer::Last).join(TRAINING_FILE).exists() && !found(Pointer::Best).join(TRAINING_FILE).exists());

        fs::create_dir(&there).unwrap();
        let other = RunDir::open(&there).unwrap();
        let begun = copy.bring_back(&other).unwrap();
        assert_eq!(named(&other.checkpoint(Pointer::Last).unwrap().unwrap()), 30);
        assert_eq!(named(&other.checkpoint(Pointer::Best).unwrap().unwrap()), 10);
        assert_eq!(read_metrics(there.join(METRICS_FILE)).unwrap().len(), 1);
        let mut follower = follow(&copy, &other, 30, begun.clone(), "other box");
        assert_eq!(follower.stretches()[1], Stretch { origin: origin("other box"), from: 30, to: 30 });
        // The end need not be copied.
        assert_eq!(follower.all_stretches(100)[1].to, 100);
        // A run that is further along stays as it is.
        checkpoint_of(&other, 40, false, &[]);
        let begun = copy.bring_back(&other).unwrap();
        assert_eq!(named(&other.checkpoint(Pointer::Last).unwrap().unwrap()), 40);
        // What the copy has not seen was made here.
        let follower = follow(&copy, &other, 40, begun, "other box");
        assert_eq!(follower.stretches()[1], Stretch { origin: origin("other box"), from: 30, to: 40 });

        copy.remove().unwrap();
        assert!(!parent.path().join("out/unfinished").exists() && copy.read().unwrap().is_none());
    }

    #[test]
    fn a_damaged_copy_is_refused_and_a_large_one_not_made() {
        let parent = tempfile::tempdir().unwrap();
        let copy = Copy::at(parent.path().join("unfinished/a/seed-1"));
        let mut run = RunDir::create(parent.path().join("run")).unwrap();
        run.begin("").unwrap();
        checkpoint_of(&run, 10, true, &[]);
        follow(&copy, &run, 0, None, "box").copy_run().unwrap();
        let last = checkpoint(copy.path(), Pointer::Last).unwrap().unwrap();
        fs::write(last.join(TRAINING_FILE), "others").unwrap();
        fs::create_dir(parent.path().join("there")).unwrap();
        let other = RunDir::open(parent.path().join("there")).unwrap();
        let refused = copy.bring_back(&other).unwrap_err().to_string();
        assert!(refused.contains(TRAINING_FILE), "{refused}");

        let large = run.save(20, false, &[], |to| {
            fs::write(to.join("model.safetensors"), vec![0; MAX_BYTES as usize]).unwrap();
            fs::write(to.join(PROGRESS_FILE), serde_json::to_string(&Progress { iteration: 20, ..Progress::default() }).unwrap()).unwrap();
            Ok(())
        });
        large.unwrap();
        follow(&copy, &run, 10, None, "box").copy_run().unwrap();
        let begun = copy.read().unwrap().unwrap();
        assert!(begun.iterations == 20 && begun.left_out_bytes.unwrap() > MAX_BYTES && !copy.path().join(CHECKPOINTS).exists());
    }
}
