//! A table is learned anew from all of it, once the weights that are kept are known.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};

use minrnn::train::{
    Ending, Event, Experiment, FinalReport, Pointer, Refit, RunDir, Trainer, checkpoint, find_checkpoint, find_scored, iteration_of,
};
use minrnn_model::Weights;

const TINY: &str = r#"
    [model]
    d_model = 8
    n_layers = 1
    [data]
    train_fraction = 0.7
    horizon = 2
    season = 4
    scaling = "auto"
    quantiles = [0.2, 0.5, 0.9]
    [train]
    seq_len = 12
    batch_size = 4
    max_iterations = 8
    warmup = 3
    eval_every = 3
    checkpoint_every = 3
    keep = "last"
    refit = true
    threads = 1
"#;

/// A directory with tables in it.
struct Scratch(tempfile::TempDir);

impl Scratch {
    fn new() -> Self {
        let directory = tempfile::tempdir().unwrap();
        let wave = |id: usize, t: usize| {
            20.0 + 5.0 * id as f64 + 3.0 * (t as f64 * std::f64::consts::FRAC_PI_2 + id as f64).sin() + 0.1 * t as f64
        };
        let rows = |steps: std::ops::Range<usize>| {
            let rows =
                steps.flat_map(|t| (0..5).map(move |id| format!("s{id},{},{}\n", if id % 2 == 0 { "even" } else { "odd" }, wave(id, t))));
            "id,class,x\n".to_owned() + &rows.collect::<String>()
        };
        std::fs::write(directory.path().join("own.csv"), rows(0..40)).unwrap();
        std::fs::write(directory.path().join("test.csv"), rows(40..46)).unwrap();
        Self(directory)
    }

    fn path(&self, name: &str) -> PathBuf {
        self.0.path().join(name)
    }

    fn experiment(&self, task: &str, settings: &[&str]) -> Experiment {
        let data = self.path("own.csv");
        let target = if task == "classify" { "class" } else { "x" };
        let own = [format!("task={task}"), format!("path={}", data.display()), "group=id".to_owned(), format!("target={target}")];
        let settings: Vec<String> = own.into_iter().chain(settings.iter().map(ToString::to_string)).collect();
        Experiment::parse(TINY, &settings).unwrap()
    }

    fn trainer(&self, run: &str, experiment: Experiment) -> Trainer {
        let path = self.path(run);
        Trainer::new(experiment, if path.exists() { RunDir::open(path) } else { RunDir::create(path) }.unwrap()).unwrap()
    }
}

/// Both rounds and the report; stopped after an update, the report is not made.
fn carry_out(trainer: &mut Trainer, stop_after: Option<u64>) -> Option<FinalReport> {
    let stop = AtomicBool::new(false);
    loop {
        let ending = trainer.run(&stop, |event| {
            if matches!(event, Event::Updated(update) if Some(update.iteration) == stop_after) {
                stop.store(true, Ordering::Relaxed);
            }
            Ok(())
        });
        if ending.unwrap() == Ending::Stopped {
            return None;
        }
        if !trainer.begin_refit().unwrap() {
            return trainer.final_report(&stop).unwrap();
        }
    }
}

fn weights(checkpoint: &Path) -> BTreeMap<String, Vec<f32>> {
    let mut weights = Weights::read(checkpoint.join("model.safetensors")).unwrap();
    let names: Vec<String> = weights.names().map(ToString::to_string).collect();
    names.into_iter().map(|name| (name.clone(), weights.take_any(&name).unwrap().data)).collect()
}

#[test]
fn the_score_belongs_to_the_model_of_before_and_the_model_to_all_data() {
    for task in ["forecast", "classify"] {
        let scratch = Scratch::new();
        let mut settings = vec!["max_iterations=8"];
        if task == "classify" {
            settings.extend(["quantiles=", "scaling=standard", "columns=x", "train_fraction=0.5"]);
        }
        let mut trainer = scratch.trainer("run", scratch.experiment(task, &settings));
        let report = carry_out(&mut trainer, None).unwrap();
        let run = scratch.path("run");
        assert_eq!(trainer.progress().refit, Some(Refit { began_at: 8, updates: 8 }), "{task}");
        let [best, scored] = [Pointer::Best, Pointer::Scored].map(|pointer| checkpoint(&run, pointer).unwrap().unwrap());
        let iteration = |path: &Path| iteration_of(path.file_name().unwrap().to_str().unwrap()).unwrap();
        assert_eq!((iteration(&best), iteration(&scored), report.iteration), (16, 8, 8));
        assert_eq!((&report.checkpoint, &report.scored), (&best, &scored));
        assert_eq!((find_checkpoint(&run).unwrap(), find_scored(&run).unwrap()), (best.clone(), scored.clone()));
        assert!(find_scored(&best).unwrap_err().to_string().contains("has learned from the part that it would be scored on"));
        assert_eq!(find_scored(&scored).unwrap(), scored);
        // Another model, learned by a round that began anew.
        assert_ne!(weights(&best), weights(&scored));
        // The first round is the run without a second.
        let alone = [&settings[..], &["refit=false"]].concat();
        let mut alone = scratch.trainer("alone", scratch.experiment(task, &alone));
        let of_alone = carry_out(&mut alone, None).unwrap();
        assert_eq!((of_alone.fixed, of_alone.compared), (report.fixed, report.compared));
        assert_eq!(weights(&of_alone.checkpoint), weights(&scored));
    }
}

#[test]
fn a_run_stopped_in_either_round_goes_on_bit_for_bit() {
    let scratch = Scratch::new();
    for (name, settings) in [("last", &["keep=last"][..]), ("best", &["keep=best", "batch_size=2"])] {
        let experiment = || scratch.experiment("forecast", settings);
        let whole = carry_out(&mut scratch.trainer(name, experiment()), None).unwrap();
        let end = iteration_of(whole.checkpoint.file_name().unwrap().to_str().unwrap()).unwrap();
        for stop_after in [2, 7, 8, 9, end - 1] {
            let run = format!("{name}-{stop_after}");
            assert_eq!(carry_out(&mut scratch.trainer(&run, experiment()), Some(stop_after)), None);
            let halves = carry_out(&mut scratch.trainer(&run, experiment()), None).unwrap();
            assert_eq!((halves.fixed, halves.iteration), (whole.fixed, whole.iteration), "{run}");
            assert_eq!(weights(&halves.checkpoint), weights(&whole.checkpoint), "{run}");
            assert_eq!(weights(&halves.scored), weights(&whole.scored), "{run}");
        }
    }
}

#[test]
fn a_test_file_is_scored_with_the_model_that_is_kept() {
    let scratch = Scratch::new();
    let test = format!("test={}", scratch.path("test.csv").display());
    let last = carry_out(&mut scratch.trainer("last", scratch.experiment("forecast", &[&test])), None).unwrap();
    // All of the other file was learned from at once.
    assert_eq!((last.iteration, &last.checkpoint), (8, &last.scored));
    let mut trainer = scratch.trainer("best", scratch.experiment("forecast", &[&test, "keep=best"]));
    let best = carry_out(&mut trainer, None).unwrap();
    let refit = trainer.progress().refit.unwrap();
    assert_eq!((best.iteration, &best.checkpoint), (8 + refit.updates, &best.scored));
    assert_eq!(checkpoint(scratch.path("best"), Pointer::Scored).unwrap(), None);
    assert_eq!(find_scored(&best.checkpoint).unwrap(), best.checkpoint, "it has not learned from the test file");
    // The run knows its test file by its content.
    std::fs::write(scratch.path("test.csv"), "id,class,x\ns0,even,1\ns0,even,2\n").unwrap();
    let changed = Trainer::new(scratch.experiment("forecast", &[&test]), RunDir::open(scratch.path("last")).unwrap()).err().unwrap();
    assert!(changed.to_string().contains("has changed since this run began"), "{changed}");
}
