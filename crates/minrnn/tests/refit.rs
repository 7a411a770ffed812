//! A table is learned again from all of its data, once the kept weights are known.

#[path = "common/scratch.rs"]
mod scratch;

use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};

use minrnn::train::{
    Data, Ending, Event, Experiment, FinalReport, Pointer, Refit, RunDir, Trainer, checkpoint, find_checkpoint, find_scored, iteration_of,
};
use scratch::{Scratch, weights};

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

impl Scratch {
    /// A directory with tables in it.
    fn with_tables() -> Self {
        let scratch = Self::new();
        let wave = |id: usize, t: usize| {
            20.0 + 5.0 * id as f64 + 3.0 * (t as f64 * std::f64::consts::FRAC_PI_2 + id as f64).sin() + 0.1 * t as f64
        };
        let rows = |steps: std::ops::Range<usize>| {
            let rows =
                steps.flat_map(|t| (0..5).map(move |id| format!("s{id},{},{}\n", if id % 2 == 0 { "even" } else { "odd" }, wave(id, t))));
            "id,class,x\n".to_owned() + &rows.collect::<String>()
        };
        std::fs::write(scratch.path("own.csv"), rows(0..40)).unwrap();
        std::fs::write(scratch.path("test.csv"), rows(40..46)).unwrap();
        scratch
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

/// Both rounds and the report; if stopped after an update, no report is made.
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
        if trainer.begin_refit(&stop).unwrap() == Some(false) {
            return trainer.final_report(&stop).unwrap();
        }
    }
}

#[test]
fn the_score_belongs_to_the_model_of_before_and_the_model_to_all_data() {
    for task in ["forecast", "classify"] {
        let scratch = Scratch::with_tables();
        let mut settings = vec!["max_iterations=8"];
        if task == "classify" {
            settings.extend(OF_CLASSES);
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
        assert!(find_scored(&best).unwrap_err().to_string().contains("was trained on the part that it would be scored on"));
        assert_eq!(find_scored(&scored).unwrap(), scored);
        // Another model, learned by a round that started over.
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
    let scratch = Scratch::with_tables();
    let average = &["keep=average", "mixer=min-lstm"][..];
    for (name, settings) in [("last", &["keep=last"][..]), ("best", &["keep=best", "batch_size=2"]), ("average", average)] {
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
    let scratch = Scratch::with_tables();
    let test = format!("test={}", scratch.path("test.csv").display());
    let last = carry_out(&mut scratch.trainer("last", scratch.experiment("forecast", &[&test])), None).unwrap();
    // Everything in the training file was learned from at once.
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
    assert!(changed.to_string().contains("test.csv': the test table has changed since this run began"), "{changed}");
}

/// Settings with which the tables are classified.
const OF_CLASSES: [&str; 4] = ["quantiles=", "scaling=standard", "columns=x", "train_fraction=0.5"];

#[test]
fn no_training_begins_that_would_learn_from_its_test_file_and_one_that_began_goes_on() {
    let scratch = Scratch::with_tables();
    let [own, validation, test] = ["own.csv", "validation.csv", "test.csv"].map(|name| scratch.path(name));
    std::fs::copy(&own, &validation).unwrap();
    let tables = [format!("validation={}", validation.display()), format!("test={}", test.display())];
    let experiment =
        |refit: &str| scratch.experiment("classify", &[&OF_CLASSES[..], &[tables[0].as_str(), tables[1].as_str(), refit]].concat());
    assert_eq!(carry_out(&mut scratch.trainer("begun", experiment("refit=true")), Some(2)), None);
    std::fs::copy(&test, &validation).unwrap();
    let refused = Trainer::new(experiment("refit=true"), RunDir::create(scratch.path("run")).unwrap()).err().unwrap();
    assert!(refused.is_wrong_input() && refused.to_string().contains("it has the content of the validation table"), "{refused}");
    assert!(!scratch.path("run").exists());
    // Nothing learns from it.
    carry_out(&mut scratch.trainer("chosen", experiment("refit=false")), None).unwrap();
    // As the run would be if it had begun so.
    let kept = scratch.path("begun").join("data/table.sha256");
    let digests = std::fs::read_to_string(&kept).unwrap();
    let digests: Vec<&str> = digests.lines().collect();
    std::fs::write(&kept, [digests[0], digests[2], digests[2], ""].join("\n")).unwrap();
    carry_out(&mut scratch.trainer("begun", experiment("refit=true")), None).unwrap();
}

#[test]
fn a_training_knows_which_settings_change_nothing_in_it() {
    let scratch = Scratch::with_tables();
    let without_effect = |run: &str, task: &str, settings: &[&str]| {
        let keys = scratch.trainer(run, scratch.experiment(task, settings)).without_effect();
        keys.into_iter().map(|(key, _)| key).collect::<Vec<_>>()
    };
    assert_eq!(without_effect("last", "classify", &OF_CLASSES), ["seq_len", "eval_every", "eval_iterations", "eval_seed"]);
    assert_eq!(without_effect("forecast", "forecast", &[]), ["eval_every", "eval_iterations", "eval_seed"]);
    // With something to evaluate on, it matters when that is done.
    let validation = format!("validation={}", scratch.path("test.csv").display());
    for (run, setting) in [("best", "keep=best"), ("validated", validation.as_str())] {
        let found = without_effect(run, "classify", &[&OF_CLASSES[..], &[setting]].concat());
        assert_eq!(found, ["seq_len", "eval_iterations", "eval_seed"], "{run}");
    }
    let copying = ["refit=false", "copy_length=12", "copy_tokens=2"];
    assert_eq!(without_effect("copying", "selective-copying", &copying), ["seq_len"]);
}

#[test]
fn the_average_is_the_mean_of_the_weights_after_the_last_quarter_of_the_updates() {
    let scratch = Scratch::with_tables();
    let average =
        carry_out(&mut scratch.trainer("average", scratch.experiment("forecast", &["keep=average", "refit=false"])), None).unwrap();
    let last = || scratch.trainer("last", scratch.experiment("forecast", &["refit=false"]));
    assert_eq!(carry_out(&mut last(), Some(7)), None);
    let after_7 = weights(&checkpoint(scratch.path("last"), Pointer::Last).unwrap().unwrap());
    let after_8 = weights(&carry_out(&mut last(), None).unwrap().checkpoint);
    let mut moved = false;
    for (name, found) in weights(&average.checkpoint) {
        assert_eq!([found.len(); 2], [after_7[&name].len(), after_8[&name].len()], "{name}");
        for (found, (x, y)) in found.into_iter().zip(after_7[&name].iter().zip(&after_8[&name])) {
            assert!((found - 0.5 * (x + y)).abs() <= 1e-6 * (1.0 + found.abs()), "{name}: {found} of {x} and {y}");
            moved |= (x - y).abs() > 1e-4;
        }
    }
    assert!(moved, "the weights hardly moved");
}

#[test]
fn saving_an_average_changes_nothing_that_is_trained() {
    let scratch = Scratch::with_tables();
    let settings = ["keep=average", "refit=false", "norm=batch", "max_iterations=12"];
    let trained = |run: &str, every: &'static str| {
        let settings = [&settings[..], &[every]].concat();
        weights(&carry_out(&mut scratch.trainer(run, scratch.experiment("forecast", &settings)), None).unwrap().checkpoint)
    };
    assert_eq!(trained("often", "checkpoint_every=1"), trained("once", "checkpoint_every=12"));
}

#[test]
fn a_longer_training_begins_its_average_later() {
    let scratch = Scratch::with_tables();
    let settings = |n: &'static str| ["keep=average", "refit=false", "schedule=constant", n];
    let whole = carry_out(&mut scratch.trainer("whole", scratch.experiment("forecast", &settings("max_iterations=20"))), None).unwrap();
    carry_out(&mut scratch.trainer("longer", scratch.experiment("forecast", &settings("max_iterations=8"))), None).unwrap();
    let longer = carry_out(&mut scratch.trainer("longer", scratch.experiment("forecast", &settings("max_iterations=20"))), None).unwrap();
    assert_eq!(weights(&longer.checkpoint), weights(&whole.checkpoint));
}

#[test]
fn what_is_left_to_the_amount_of_data_is_a_number_once_training_begins() {
    let scratch = Scratch::with_tables();
    let experiment = scratch.experiment("forecast", &["batch_size=0", "max_iterations=0"]);
    let trainer = scratch.trainer("run", experiment);
    assert_eq!((trainer.experiment().train.batch_size, trainer.end_of_round()), (32, 100));
    let kept = Experiment::load_file(scratch.path("run").join("experiment.toml"), &[]).unwrap();
    assert_eq!((kept.train.batch_size, kept.train.max_iterations), (32, 100));
    let of_text = Experiment::parse("[train]\nbatch_size = 0", &[]).unwrap_err().to_string();
    assert!(of_text.contains("batch_size = 0 leaves it to the amount of data of a table; of task = text"), "{of_text}");
}

#[test]
fn probabilities_are_as_sure_as_what_was_held_out_allows() {
    let scratch = Scratch::with_tables();
    // What distinguishes the classes is wrong for every fourth sequence.
    let row = |id: usize, t: usize| {
        let sign = [1.0, -1.0][id % 2];
        format!("s{id},{},{}\n", ["a", "b"][(id + usize::from(id % 8 < 2)) % 2], sign + 0.01 * t as f64)
    };
    let rows: String = (0..160).flat_map(|id| (0..3).map(move |t| row(id, t))).collect();
    std::fs::write(scratch.path("own.csv"), "id,class,x\n".to_owned() + &rows).unwrap();
    let settings = ["quantiles=", "scaling=standard", "columns=x", "train_fraction=0.5", "max_iterations=60", "lr=0.05", "min_lr=0"];
    let experiment = || scratch.experiment("classify", &settings);
    assert_eq!(carry_out(&mut scratch.trainer("run", experiment()), Some(119)), None);
    let before = weights(&checkpoint(scratch.path("run"), Pointer::Last).unwrap().unwrap());
    let report = carry_out(&mut scratch.trainer("run", experiment()), None).unwrap();
    let temperature = report.temperature.unwrap() as f32;
    assert!((temperature - 1.0).abs() > 0.05, "{temperature}");
    let after = weights(&report.checkpoint);
    let is_like =
        |name: &str, scale: f32| after[name].iter().zip(&before[name]).all(|(a, b)| (a - b / scale).abs() < 1e-3 * (1.0 + b.abs()));
    assert!(after.iter().all(|(name, after)| after.len() == before[name].len()));
    for name in after.keys() {
        assert!(is_like(name, if name.starts_with("head.") { temperature } else { 1.0 }), "{name}: {temperature}");
    }
    assert!(!is_like("head.weight", 1.0) && before["head.bias"].iter().any(|x| x.abs() > 0.01), "{before:?}");
    // A file that is never learned from says nothing of it, and neither do a few sequences.
    std::fs::write(scratch.path("test.csv"), "id,class,x\n".to_owned() + &rows).unwrap();
    let test = format!("test={}", scratch.path("test.csv").display());
    let with_test = [&settings[..], &["max_iterations=4", &test]].concat();
    assert_eq!(carry_out(&mut scratch.trainer("test", scratch.experiment("classify", &with_test)), None).unwrap().temperature, None);
    let few = [&settings[..], &["max_iterations=4", "train_fraction=0.8"]].concat();
    assert_eq!(carry_out(&mut scratch.trainer("few", scratch.experiment("classify", &few)), None).unwrap().temperature, None);
}

#[test]
fn intervals_are_as_wide_as_what_was_held_out_asks_for() {
    let scratch = Scratch::with_tables();
    // The end, which is held out, varies more than anything before it.
    let noise = |id: usize, t: usize| ((id * 7919 + t * 104_729) % 1009) as f64 / 1009.0 - 0.5;
    let row = |id: usize, t: usize| format!("s{id},{}\n", 20.0 + if t < 36 { 1.0 } else { 5.0 } * noise(id, t));
    let table = |ids: std::ops::Range<usize>, steps: std::ops::Range<usize>| {
        "id,x\n".to_owned() + &ids.flat_map(|id| steps.clone().map(move |t| row(id, t))).collect::<String>()
    };
    std::fs::write(scratch.path("own.csv"), table(0..60, 0..40)).unwrap();
    let settings = ["max_iterations=60", "lr=0.03", "min_lr=0"];
    let experiment = || scratch.experiment("forecast", &settings);
    assert_eq!(carry_out(&mut scratch.trainer("run", experiment()), Some(119)), None);
    let before = weights(&checkpoint(scratch.path("run"), Pointer::Last).unwrap().unwrap());
    let report = carry_out(&mut scratch.trainer("run", experiment()), None).unwrap();
    let factors = report.spreads.as_ref().unwrap().factors();
    let [of_target] = factors else { panic!("{factors:?}") };
    let [lower, median, upper] = of_target[..] else { panic!("{factors:?}") };
    assert!(lower > 2.0 && median == 1.0 && upper > 2.0, "{factors:?}");
    let after = weights(&report.checkpoint);
    for (name, after) in &after {
        let before = &before[name];
        // The three levels of each of two steps; in the matrix, a row each.
        let rows = after.len() / 6;
        let expected = |at: usize| {
            let (row, column) = (at / rows, at % rows);
            let m = f64::from(before[(row / 3 * 3 + 1) * rows + column]);
            m + [lower, median, upper][row % 3] * (f64::from(before[at]) - m)
        };
        let is_head = name.starts_with("head.");
        assert_eq!(after.len(), before.len(), "{name}");
        for (at, (&after, &before)) in after.iter().zip(before).enumerate() {
            let expected = if is_head { expected(at) } else { f64::from(before) };
            assert!((f64::from(after) - expected).abs() < 1e-3 * (1.0 + expected.abs()), "{name} {at}: {after}, expected {expected}");
        }
    }
    // What surprised the scored model is less surprising to the one with the wider intervals.
    let [scored, used] = [&report.scored, &report.checkpoint].map(|path| {
        let surprise: serde_json::Value = serde_json::from_slice(&std::fs::read(path.join("surprise.json")).unwrap()).unwrap();
        surprise.to_string()
    });
    assert_ne!(scored, used);
    // A file that is never learned from says nothing of it, and neither do a few sequences.
    std::fs::write(scratch.path("test.csv"), table(0..60, 40..46)).unwrap();
    let test = format!("test={}", scratch.path("test.csv").display());
    let with_test = [&settings[..], &["max_iterations=4", &test]].concat();
    assert_eq!(carry_out(&mut scratch.trainer("test", scratch.experiment("forecast", &with_test)), None).unwrap().spreads, None);
    // A validation part does.
    let best = [&with_test[..], &["keep=best"]].concat();
    assert!(carry_out(&mut scratch.trainer("best", scratch.experiment("forecast", &best)), None).unwrap().spreads.is_some());
    std::fs::write(scratch.path("own.csv"), table(0..3, 0..40)).unwrap();
    let few = [&settings[..], &["max_iterations=4"]].concat();
    assert_eq!(carry_out(&mut scratch.trainer("few", scratch.experiment("forecast", &few)), None).unwrap().spreads, None);
}

#[test]
fn a_run_keeps_the_season_that_its_model_was_given() {
    let scratch = Scratch::with_tables();
    carry_out(&mut scratch.trainer("run", scratch.experiment("forecast", &["refit=false"])), None).unwrap();
    // The table has no times, so no season can be inferred.
    let found = Data::open(&scratch.experiment("forecast", &["season=0"]), &scratch.path("run")).unwrap();
    assert_eq!(found.description().unwrap()["season"], 4);
}
