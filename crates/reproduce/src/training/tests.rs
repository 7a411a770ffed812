//! What is known of runs that were stopped, damaged or made with other settings, and what becomes of them.

use std::sync::Arc;
use std::sync::atomic::Ordering;

use minrnn::train::{CHECKPOINTS, Corpus};
use minrnn_bench::Line;

use super::*;
use crate::{Bench, Job, Notice, Scale, Target, find, plan};

/// A host that notes where trainings begin, and stops them at their end if asked to.
#[derive(Default)]
struct Noting {
    stop: Arc<AtomicBool>,
    stops_at_the_end: bool,
    /// Updates made before, of each training.
    begun_at: Vec<u64>,
}

impl Host for Noting {
    fn notice_of(&mut self, _: usize, notice: Notice<'_>) {
        match notice {
            Notice::Training(trainer) => self.begun_at.push(trainer.progress().iteration),
            Notice::Ended(..) => self.stop.store(self.stops_at_the_end, Ordering::Relaxed),
            _ => {}
        }
    }

    fn fetch(&mut self, _: Corpus) -> Result<PathBuf> {
        unreachable!("selective copying needs no text")
    }

    fn measure(&mut self, _: &Bench) -> Result<Line> {
        unreachable!("nothing is measured")
    }

    fn command(&self, _: &Target) -> String {
        String::new()
    }

    fn commit(&self) -> String {
        "abc1234".to_owned()
    }
}

/// A run of table 1 at scale smoke in a folder of its own.
struct Place {
    folder: Folder,
    training: Box<Training>,
    noting: Noting,
    _scratch: tempfile::TempDir,
}

impl Place {
    fn new() -> Self {
        let scratch = tempfile::tempdir().unwrap();
        let folder = Folder::open(scratch.path(), Scale::Smoke).unwrap();
        let target = find("table1").unwrap().unwrap();
        let mut trainings = plan(&target, Scale::Smoke).unwrap().into_iter().filter_map(|cell| match cell.job {
            Job::Train(training) => Some(training),
            _ => None,
        });
        let training = trainings.next().unwrap();
        Self { folder, training, noting: Noting::default(), _scratch: scratch }
    }

    fn directory(&self) -> PathBuf {
        self.folder.training(&self.training.id, 1)
    }

    fn copy(&self) -> PathBuf {
        self.folder.unfinished(&self.training.id, 1)
    }

    fn look_up(&self, options: &Options) -> Run {
        look_up(&self.folder, &self.training, 1, options, &self.noting).unwrap()
    }

    fn refusal(&self, options: &Options) -> String {
        match self.look_up(options) {
            Run::Refused(sentence) => sentence,
            run => panic!("expected a refusal, found {run:?}"),
        }
    }

    /// Makes the run, or brings it to its end and stops it there, before it is scored.
    fn carry_out(&mut self, options: &Options, stops_at_the_end: bool) -> Run {
        self.noting = Noting { stops_at_the_end, ..Noting::default() };
        let stop = Arc::clone(&self.noting.stop);
        carry_out(&self.folder, &self.training, 1, options, &mut self.noting, &stop).unwrap()
    }
}

fn replacing() -> Options {
    Options { replace: true, ..Options::default() }
}

/// Writes other settings into the run in `directory`.
fn change_settings(directory: &Path) {
    let file = directory.join(EXPERIMENT_FILE);
    let settings = fs::read_to_string(&file).unwrap();
    assert!(settings.contains("max_iterations = 6"), "{settings}");
    fs::write(file, settings.replace("max_iterations = 6", "max_iterations = 7")).unwrap();
}

#[test]
fn a_run_stopped_while_it_is_scored_has_a_copy_and_goes_on_to_its_score() {
    let mut place = Place::new();
    let stopped = place.carry_out(&Options::default(), true);
    assert!(matches!(&stopped, Run::Begun(begun) if begun.iterations == 6), "{stopped:?}");
    assert!(place.copy().join("run.json").exists());
    assert!(matches!(place.look_up(&Options::default()), Run::Begun(_)));
    assert!(matches!(place.carry_out(&Options::default(), false), Run::Done(_)));
    assert_eq!(place.noting.begun_at, [6]);
    assert!(!place.copy().exists());
}

#[test]
fn a_run_with_a_checkpoint_and_no_copy_yet_has_begun() {
    let mut place = Place::new();
    assert!(matches!(place.look_up(&Options::default()), Run::Open));
    place.carry_out(&Options::default(), true);
    Copy::at(place.copy()).remove().unwrap();
    let Run::Begun(begun) = place.look_up(&Options::default()) else { panic!("it has a checkpoint") };
    assert_eq!((begun.iterations, begun.of, begun.left_out_bytes), (6, 6, None));
    assert!(!begun.curve.is_empty() && begun.stretches.is_empty() && begun.best().is_some(), "{begun:?}");
    // Settings alone are no beginning.
    fs::remove_dir_all(place.directory().join(CHECKPOINTS)).unwrap();
    assert!(matches!(place.look_up(&Options::default()), Run::Open));
}

#[test]
fn of_a_run_that_fits_and_a_copy_that_does_not_the_copy_alone_is_replaced() {
    let mut place = Place::new();
    place.carry_out(&Options::default(), true);
    change_settings(&place.copy());
    let refused = place.refusal(&Options::default());
    assert!(refused.contains("max_iterations = 7; requested: max_iterations = 6"), "{refused}");
    assert!(matches!(place.look_up(&replacing()), Run::Begun(_)));
    assert!(matches!(place.carry_out(&replacing(), false), Run::Done(_)));
    assert_eq!(place.noting.begun_at, [6], "the run went on with what it had");
    assert!(!place.copy().exists());
}

#[test]
fn of_a_run_that_does_not_fit_and_a_copy_that_does_the_run_alone_is_replaced() {
    let mut place = Place::new();
    place.carry_out(&Options::default(), true);
    change_settings(&place.directory());
    assert!(matches!(place.carry_out(&Options::default(), false), Run::Refused(_)));
    assert!(matches!(place.carry_out(&replacing(), false), Run::Done(_)));
    assert_eq!(place.noting.begun_at, [6], "the run went on with its copy");
}

#[test]
fn a_damaged_checkpoint_hides_no_good_copy_and_is_no_reason_against_replacing() {
    let mut place = Place::new();
    place.carry_out(&Options::default(), true);
    let last = checkpoint(place.directory(), Pointer::Last).unwrap().unwrap();
    fs::write(last.join("progress.json"), "{").unwrap();
    assert!(matches!(place.look_up(&Options::default()), Run::Begun(_)));
    Copy::at(place.copy()).remove().unwrap();
    assert!(place.refusal(&Options::default()).contains("progress.json"));
    change_settings(&place.directory());
    assert!(matches!(place.look_up(&replacing()), Run::Open));
    assert!(matches!(place.carry_out(&replacing(), false), Run::Done(_)));
    assert_eq!(place.noting.begun_at, [0]);
}

#[test]
fn a_damaged_record_is_refused_with_its_file_and_is_no_failure_of_the_machine() {
    let mut place = Place::new();
    assert!(matches!(place.carry_out(&Options::default(), false), Run::Done(_)));
    let result = place.directory().join(RESULT);
    let record = fs::read_to_string(&result).unwrap();
    let impossible = record.replacen("\"accuracy\": ", "\"accuracy\": 5", 1);
    for damaged in ["", &record[..record.len() / 2], "[]", "{\"seed\": \"one\"}", &impossible] {
        assert_ne!(damaged, record);
        fs::write(&result, damaged).unwrap();
        let refused = place.refusal(&Options::default());
        assert!(refused.contains("result.json") && refused.contains("remove the file to make it anew"), "{refused}");
    }
    fs::remove_file(&result).unwrap();
    fs::create_dir(&result).unwrap();
    let refused = place.refusal(&Options::default());
    assert!(refused.contains("expected a file, found a directory"), "{refused}");
}

#[test]
fn a_result_without_its_settings_is_to_be_made_again() {
    let mut place = Place::new();
    place.carry_out(&Options::default(), false);
    // As it lies in a repository, where no lock and no log are kept.
    let record = fs::read(place.directory().join(RESULT)).unwrap();
    fs::remove_dir_all(place.directory()).unwrap();
    fs::create_dir(place.directory()).unwrap();
    fs::write(place.directory().join(RESULT), record).unwrap();
    let found = place.look_up(&Options::default());
    assert!(matches!(&found, Run::Outdated(_, problem) if problem.to_string().contains("experiment.toml is missing")), "{found:?}");
    assert!(matches!(place.look_up(&replacing()), Run::Open));
    assert!(matches!(place.carry_out(&replacing(), false), Run::Done(_)));
    assert_eq!(place.noting.begun_at, [0]);
    assert!(place.directory().join(EXPERIMENT_FILE).exists());
}

#[test]
fn a_result_of_another_description_is_still_that_of_its_settings() {
    let mut place = Place::new();
    place.carry_out(&Options::default(), false);
    let settings = Experiment::load_file(place.directory().join(EXPERIMENT_FILE), &[]).unwrap();
    assert_eq!(settings.description, place.training.experiment.description);
    place.training.experiment.description = "Words of an older version".to_owned();
    assert!(matches!(place.look_up(&Options::default()), Run::Done(_)));
}
