//! The library's training loop: exact resume, the mean of micro-batches, clipping, weight decay groups, and how a run ends.

#[path = "common/scratch.rs"]
mod scratch;

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicBool, Ordering};

use burn::tensor::{Device, Tensor};
use minrnn::checkpoint::{parameter_shapes, save_weights};
use minrnn::data::Batch;
use minrnn::model::SequenceModel;
use minrnn::nn::Mode;
use minrnn::train::{
    Ending, Event, Experiment, GradientMap, MicroBatch, Optimizer, Pointer, RunDir, Schedule, TrainConfig, Trainer, Update, Windows,
};
use minrnn::{Error, Result};
use minrnn_model::{ModelConfig, Weights, write_safetensors};
use scratch::{Scratch, tensors};

const TINY: &str = r#"
    [model]
    d_model = 16
    n_layers = 2
    [train]
    seq_len = 12
    batch_size = 4
    max_iterations = 10
    warmup = 3
    eval_every = 4
    eval_iterations = 2
    checkpoint_every = 3
"#;

impl Scratch {
    fn experiment(&self, settings: &[&str]) -> Experiment {
        let settings: Vec<String> = settings.iter().map(ToString::to_string).collect();
        let mut experiment = Experiment::parse(TINY, &settings).unwrap();
        experiment.data.path = Some(self.path("text.txt"));
        experiment
    }

    fn start(&self, run: &str, settings: &[&str]) -> Trainer {
        Trainer::new(self.experiment(settings), RunDir::create(self.path(run)).unwrap()).unwrap()
    }

    fn resume(&self, run: &str, settings: &[&str]) -> Trainer {
        Trainer::new(self.experiment(settings), RunDir::open(self.path(run)).unwrap()).unwrap()
    }
}

/// What a run reports: its updates without their speed, and its evaluations.
fn told(event: &Event) -> Option<String> {
    match event {
        Event::Updated(update) => Some(format!("{:?}", Update { tokens_per_s: 0.0, ..*update })),
        Event::Evaluated { .. } => Some(format!("{event:?}")),
        _ => None,
    }
}

/// Runs until after the update `stop_after`, or to the end.
fn run(trainer: &mut Trainer, stop_after: Option<u64>, tale: &mut Vec<String>) -> Result<Ending> {
    let stop = AtomicBool::new(false);
    trainer.run(&stop, |event| {
        tale.extend(told(&event));
        if matches!(event, Event::Updated(update) if Some(update.iteration) == stop_after) {
            stop.store(true, Ordering::Relaxed);
        }
        Ok(())
    })
}

fn weights_of(model: &SequenceModel) -> BTreeMap<String, Vec<f32>> {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("model.safetensors");
    save_weights(model, &path).unwrap();
    tensors(&path)
}

/// Weights, moments and carried state of a run's last checkpoint.
fn last_files(trainer: &Trainer) -> [BTreeMap<String, Vec<f32>>; 2] {
    let last = trainer.run_dir().checkpoint(Pointer::Last).unwrap().unwrap();
    ["model.safetensors", "training.safetensors"].map(|name| tensors(&last.join(name)))
}

#[test]
fn a_trainer_stopped_anywhere_and_built_again_goes_on_bit_for_bit() {
    let variants: [&[&str]; 5] = [
        &["dropout=0.3", "accumulation=2", "conv=true"],
        &["sampling=stream", "mixer=min-lstm", "initial_state=learned", "norm=layer", "dropout=0.1"],
        &["norm=batch", "accumulation=2", "ff=gated"],
        &["sampling=stream", "mixer=gru", "initial_state=learned", "accumulation=3", "norm=batch"],
        &["task=selective-copying", "copy_length=12", "copy_tokens=2", "mixer=lstm", "tie_embeddings=true"],
    ];
    for settings in variants {
        let scratch = Scratch::with_text();
        let (mut whole, mut whole_tale) = (scratch.start("whole", settings), Vec::new());
        assert_eq!(run(&mut whole, None, &mut whole_tale).unwrap(), Ending::Finished);
        // After every update in turn.
        let (mut parts, mut tale) = (scratch.start("parts", settings), Vec::new());
        for stop_after in 1..=10 {
            let expected = if stop_after == 10 { [Ending::Stopped, Ending::Finished] } else { [Ending::Stopped; 2] };
            assert!(expected.contains(&run(&mut parts, Some(stop_after), &mut tale).unwrap()));
            drop(parts);
            parts = scratch.resume("parts", settings);
            assert_eq!(parts.progress().iteration, stop_after);
        }
        assert_eq!(run(&mut parts, None, &mut tale).unwrap(), Ending::Finished);
        assert_eq!(tale, whole_tale, "{settings:?}");
        assert!(last_files(&parts) == last_files(&whole), "{settings:?}");
        let report = |trainer: &Trainer| {
            let report = trainer.final_report(&AtomicBool::new(false)).unwrap().unwrap();
            (report.iteration, report.fixed, report.kept, report.full_pass)
        };
        assert_eq!(report(&parts), report(&whole), "{settings:?}");
    }
}

#[test]
fn a_checkpoint_evaluates_as_the_model_it_was_made_of() {
    let scratch = Scratch::with_text();
    let settings = ["norm=batch", "eval_every=5"];
    let mut trainer = scratch.start("run", &settings);
    // Stopped without an evaluation, which would update the running statistics.
    run(&mut trainer, Some(4), &mut Vec::new()).unwrap();
    let last = trainer.run_dir().checkpoint(Pointer::Last).unwrap().unwrap();
    let read = minrnn::checkpoint::load_model(last, &Device::flex()).unwrap().model;
    let mut set = trainer.data().full_pass(trainer.experiment(), Windows::Anew).unwrap().unwrap();
    let go_on = AtomicBool::new(false);
    let own = burn::module::Module::valid(trainer.model().sequence().unwrap());
    let scores = [read, own].map(|model| minrnn::train::evaluate(&model, &mut *set, &go_on).unwrap().unwrap());
    assert_eq!(scores[0], scores[1]);
}

fn loss(model: &SequenceModel, batch: &Batch) -> Tensor<1> {
    let MicroBatch { inputs, targets, steps, .. } = MicroBatch::new(batch, &model.device()).unwrap();
    model.loss(inputs, targets, None, model.init_state(batch.batch_size), &steps, Mode::Evaluate).0
}

/// First moments after one update, which are (1 − β1) times the clipped mean gradient.
fn first_moments(optimizer: &Optimizer) -> BTreeMap<String, Vec<f32>> {
    optimizer.moments().into_iter().filter(|(name, _)| name.ends_with(".moment_1")).collect()
}

fn norm(gradients: &BTreeMap<String, Vec<f32>>) -> f64 {
    gradients.values().flatten().map(|&x| f64::from(x) * f64::from(x)).sum::<f64>().sqrt()
}

#[test]
fn micro_batches_are_averaged_as_if_they_were_one_batch() {
    let scratch = Scratch::with_text();
    let settings = ["accumulation=2", "clip_norm=0"];
    let mut trainer = scratch.start("run", &settings);
    let (experiment, model) = (trainer.experiment().clone(), trainer.model().sequence().unwrap().clone());
    // The rows of both micro-batches in one batch of 8.
    let mut source = trainer.data().training(&experiment).unwrap();
    let (mut rows, second) = (source.batch(0, 0).unwrap(), source.batch(0, 1).unwrap());
    rows.inputs = [rows.inputs.tokens(), second.inputs.tokens()].concat().into();
    rows.targets = [rows.targets.tokens(), second.targets.tokens()].concat().into();
    rows.batch_size = 8;
    let whole = loss(&model, &rows);
    let whole_loss = f64::from(whole.clone().into_scalar::<f32>());
    let mut optimizer = Optimizer::new(&experiment.train);
    let gradients = GradientMap::new(&model, &whole.backward());
    let lr = Schedule::new(&experiment.train).lr(0);
    let (_, whole_norm) = optimizer.update(model, gradients, 1.0, lr, 0).unwrap();

    let update = trainer.update().unwrap();
    assert!((update.loss - whole_loss).abs() < 1e-6 * whole_loss, "{} {whole_loss}", update.loss);
    assert!((update.grad_norm - whole_norm).abs() < 1e-5 * whole_norm, "{} {whole_norm}", update.grad_norm);
    trainer.save(false).unwrap();
    let [_, training] = last_files(&trainer);
    let expected = first_moments(&optimizer);
    assert!(expected.len() > 10);
    for (name, expected) in &expected {
        let largest = expected.iter().fold(1e-6f32, |largest, x| largest.max(x.abs()));
        assert_eq!(training[name].len(), expected.len(), "{name}");
        for (found, expected) in training[name].iter().zip(expected) {
            assert!((found - expected).abs() < 2e-5 * largest, "{name}: {found} {expected}");
        }
    }
}

#[test]
fn the_clip_is_one_factor_for_all_gradients_together() {
    let scratch = Scratch::with_text();
    let experiment = scratch.experiment(&["betas=0.9,0.99"]);
    let trainer = scratch.start("run", &[]);
    let batch = trainer.data().training(trainer.experiment()).unwrap().batch(0, 0).unwrap();
    let gradients = GradientMap::new(trainer.model().sequence().unwrap(), &loss(trainer.model().sequence().unwrap(), &batch).backward());
    let update = |clip_norm| {
        let mut optimizer = Optimizer::new(&TrainConfig { clip_norm, ..experiment.train.clone() });
        let (_, norm) = optimizer.update(trainer.model().sequence().unwrap().clone(), gradients.clone(), 1.0, 1e-3, 0).unwrap();
        (first_moments(&optimizer), norm)
    };
    let (free, free_norm) = update(0.0);
    assert!((norm(&free) / 0.1 - free_norm).abs() < 1e-5 * free_norm);
    // A limit that is not reached changes nothing.
    assert!(update(2.0 * free_norm).0 == free);
    let (clipped, reported) = update(0.01);
    assert_eq!(reported, free_norm);
    assert!((norm(&clipped) / 0.1 - 0.01).abs() < 1e-6, "{}", norm(&clipped));
    let factor = (0.01 / free_norm) as f32;
    for (name, free) in &free {
        assert_eq!(free.len(), clipped[name].len(), "{name}");
        for (free, clipped) in free.iter().zip(&clipped[name]) {
            assert!((clipped - free * factor).abs() <= 1e-4 * (free * factor).abs() + 1e-12, "{name}");
        }
    }
}

#[test]
fn decay_pulls_the_parameters_of_its_group_and_no_other() {
    let scratch = Scratch::with_text();
    let trainer = scratch.start("run", &["conv=true", "norm=layer", "initial_state=learned"]);
    let batch = trainer.data().training(trainer.experiment()).unwrap().batch(0, 0).unwrap();
    let gradients = GradientMap::new(trainer.model().sequence().unwrap(), &loss(trainer.model().sequence().unwrap(), &batch).backward());
    // Two updates with the same gradient: parameters that begin at 0 have something to decay in the second.
    let updated = |groups: &str, weight_decay| {
        let experiment = scratch.experiment(&[&format!("decay_groups={groups}")]);
        let mut optimizer = Optimizer::new(&TrainConfig { weight_decay, ..experiment.train });
        let mut model = trainer.model().sequence().unwrap().clone();
        for iteration in 0..2 {
            model = optimizer.update(model, gradients.clone(), 1.0, 0.1, iteration).unwrap().0;
        }
        weights_of(&model)
    };
    let free = updated("none", 0.5);
    assert!(updated("matrices", 0.0) == free);
    let decayed = |groups| -> Vec<String> {
        let found = updated(groups, 0.5);
        free.iter().filter(|(name, values)| found[*name] != **values).map(|(name, _)| name.clone()).collect()
    };
    let named = |choose: &dyn Fn(&str, usize) -> bool| -> Vec<String> {
        let shapes = parameter_shapes(trainer.model().sequence().unwrap()).into_iter();
        let mut names: Vec<String> = shapes.filter(|(name, shape)| choose(name, shape.len())).map(|(name, _)| name).collect();
        names.sort();
        names
    };
    let matrices = decayed("matrices");
    assert_eq!(matrices, named(&|name, _| name.ends_with("weight") && !name.contains("norm")));
    for name in ["embedding.weight", "head.weight", "backbone.blocks.1.mixer.in_proj.weight", "backbone.blocks.0.conv.depthwise.weight"] {
        assert!(matrices.iter().any(|found| found == name), "{name} in {matrices:?}");
    }
    assert_eq!(decayed("all"), named(&|_, _| true));
    assert_eq!(decayed("official"), named(&|name, _| !name.contains("mixer.in_proj")));
    assert!(decayed("official").len() + 4 == decayed("all").len());

    // Decoupled: it subtracts lr · λ of the weight, whatever the gradient.
    let before = &weights_of(trainer.model().sequence().unwrap())["head.weight"];
    let after = |decay| {
        let mut optimizer = Optimizer::new(&TrainConfig { weight_decay: decay, ..TrainConfig::default() });
        weights_of(&optimizer.update(trainer.model().sequence().unwrap().clone(), gradients.clone(), 1.0, 0.1, 0).unwrap().0)
    };
    let (with, without) = (after(0.5), after(0.0));
    for ((with, without), before) in with["head.weight"].iter().zip(&without["head.weight"]).zip(before) {
        assert!((without - with - 0.1 * 0.5 * before).abs() < 1e-6, "{with} {without} {before}");
    }
}

#[test]
fn a_gradient_that_is_not_finite_is_named_and_changes_nothing() {
    let scratch = Scratch::with_text();
    let trainer = scratch.start("run", &[]);
    let batch = trainer.data().training(trainer.experiment()).unwrap().batch(0, 0).unwrap();
    let endless = loss(trainer.model().sequence().unwrap(), &batch) * f32::MAX * f32::MAX;
    let gradients = GradientMap::new(trainer.model().sequence().unwrap(), &endless.backward());
    let before = weights_of(trainer.model().sequence().unwrap());
    let mut optimizer = Optimizer::new(&TrainConfig::default());
    let error = optimizer.update(trainer.model().sequence().unwrap().clone(), gradients, 1.0, 0.1, 7).map(drop).unwrap_err();
    assert!(matches!(&error, Error::NonFinite { iteration: 7, tensor, .. } if tensor.starts_with("the gradient of backbone.")), "{error}");
    assert!(optimizer.moments().is_empty() && weights_of(trainer.model().sequence().unwrap()) == before);
}

#[test]
fn updates_follow_the_schedule_and_evaluations_theirs() {
    let scratch = Scratch::with_text();
    let mut trainer = scratch.start("run", &["lr=0.01", "min_lr=0.001", "lr_decay_iterations=20"]);
    let schedule = Schedule::new(&trainer.experiment().train);
    let (mut lrs, mut evaluated, mut saved) = (Vec::new(), Vec::new(), Vec::new());
    let watch = |event| {
        match event {
            Event::Updated(update) => lrs.push((update.iteration, update.lr)),
            Event::Evaluated { iteration, .. } => evaluated.push(iteration),
            Event::Saved(path) => saved.push(path.file_name().unwrap().to_str().unwrap().to_owned()),
            _ => {}
        }
        Ok(())
    };
    assert_eq!(trainer.run(&AtomicBool::new(false), watch).unwrap(), Ending::Finished);
    assert_eq!(lrs, (1..=10).map(|made| (made, schedule.lr(made - 1))).collect::<Vec<_>>());
    assert_eq!(evaluated, [0, 4, 8, 10]);
    assert_eq!(saved, ["iter-0", "iter-3", "iter-4", "iter-6", "iter-8", "iter-9", "iter-10"]);
}

#[test]
fn patience_ends_a_run_that_gains_nothing() {
    let scratch = Scratch::with_text();
    let settings = ["lr=30", "warmup=0", "eval_every=2", "patience=2", "max_iterations=100"];
    let mut trainer = scratch.start("run", &settings);
    assert_eq!(run(&mut trainer, None, &mut Vec::new()).unwrap(), Ending::EarlyStopped);
    assert_eq!((trainer.progress().iteration, trainer.progress().without_gain), (6, 2));
    drop(trainer);
    // When resumed, it still has none.
    let (mut again, mut tale) = (scratch.resume("run", &settings), Vec::new());
    assert_eq!(run(&mut again, None, &mut tale).unwrap(), Ending::EarlyStopped);
    assert!(tale.is_empty());
}

#[test]
fn scores_that_tie_choose_the_same_checkpoints_after_any_number_of_resumes() {
    let scratch = Scratch::with_text();
    // 105 answers, few of them learned: the same shares of right ones occur repeatedly, most of them not exact binary fractions.
    let task = ["task=selective-copying", "copy_length=12", "copy_tokens=3", "batch_size=5", "eval_iterations=7", "eval_every=1"];
    let settings = [&task[..], &["max_iterations=12", "lr=0.0003", "patience=9"]].concat();
    let (mut whole, mut tale) = (scratch.start("whole", &settings), Vec::new());
    let ending = run(&mut whole, None, &mut tale).unwrap();
    let scores: std::collections::BTreeSet<u64> = whole.progress().best.iter().map(|best| best.score.to_bits()).collect();
    assert!(scores.iter().any(|&bits| f64::from_bits(bits) * 1024.0 % 1.0 != 0.0), "{scores:?}");
    let (mut parts, mut last) = (scratch.start("parts", &settings), Ending::Stopped);
    for stop_after in 1..=whole.progress().iteration {
        last = run(&mut parts, Some(stop_after), &mut Vec::new()).unwrap();
        drop(parts);
        parts = scratch.resume("parts", &settings);
    }
    if last == Ending::Stopped {
        last = run(&mut parts, None, &mut Vec::new()).unwrap();
    }
    let counters = |trainer: &Trainer| minrnn::train::Progress { seconds: 0.0, ..trainer.progress().clone() };
    assert_eq!((last, counters(&parts)), (ending, counters(&whole)));
}

#[test]
fn a_solved_task_ends_the_run_and_stays_solved() {
    let scratch = Scratch::with_text();
    // A goal that is reached by guessing.
    let task = ["task=selective-copying", "copy_length=12", "copy_tokens=2", "eval_every=2", "eval_iterations=20", "max_iterations=8"];
    let with = |goal: &'static str| task.iter().copied().chain([goal]).collect::<Vec<_>>();
    let mut trainer = scratch.start("run", &with("solved_at=0.001"));
    assert_eq!(run(&mut trainer, None, &mut Vec::new()).unwrap(), Ending::Solved);
    assert!(trainer.progress().iteration < 8);
    drop(trainer);
    let (mut again, mut tale) = (scratch.resume("run", &with("solved_at=0.001")), Vec::new());
    assert_eq!(run(&mut again, None, &mut tale).unwrap(), Ending::Solved);
    assert!(tale.is_empty());
    let mut unsolved = scratch.start("unsolved", &with("solved_at=1"));
    assert_eq!(run(&mut unsolved, None, &mut Vec::new()).unwrap(), Ending::Finished);
}

#[test]
fn a_stop_before_the_first_update_still_leaves_a_checkpoint() {
    let scratch = Scratch::with_text();
    let (mut trainer, mut tale) = (scratch.start("run", &[]), Vec::new());
    let ending = trainer.run(&AtomicBool::new(true), |event| {
        tale.extend(told(&event));
        Ok(())
    });
    assert_eq!(ending.unwrap(), Ending::Stopped);
    // The evaluation that was due has not happened and is made up for later.
    assert!(tale.is_empty() && trainer.progress().evaluated_at.is_none());
    drop(trainer);
    let mut again = scratch.resume("run", &[]);
    run(&mut again, None, &mut tale).unwrap();
    let (mut whole, mut whole_tale) = (scratch.start("whole", &[]), Vec::new());
    run(&mut whole, None, &mut whole_tale).unwrap();
    assert_eq!(tale, whole_tale);
}

#[test]
fn a_start_that_fails_leaves_no_directory() {
    let scratch = Scratch::with_text();
    let long = scratch.experiment(&["seq_len=4000"]);
    let refused = Trainer::new(long, RunDir::create(scratch.path("run")).unwrap()).map(drop).unwrap_err();
    assert!(refused.to_string().contains("text.txt'") && refused.is_wrong_input(), "{refused}");
    assert!(!scratch.path("run").exists());
    let model = ModelConfig { expansion: 0.3, ..ModelConfig::default() };
    let refused = Trainer::new(Experiment { model, ..scratch.experiment(&[]) }, RunDir::create(scratch.path("run")).unwrap());
    assert!(refused.map(drop).unwrap_err().to_string().contains("expansion") && !scratch.path("run").exists());
}

#[test]
fn a_start_that_fails_leaves_what_a_killed_one_had_kept() {
    let scratch = Scratch::with_text();
    let run = scratch.path("run");
    std::fs::create_dir_all(run.join("data")).unwrap();
    std::fs::write(run.join("run.lock"), "a run of minrnn\n").unwrap();
    std::fs::write(run.join("data/table.arrows"), "kept").unwrap();
    let long = scratch.experiment(&["seq_len=4000"]);
    Trainer::new(long, RunDir::open(&run).unwrap()).map(drop).unwrap_err();
    assert_eq!(std::fs::read(run.join("data/table.arrows")).unwrap(), b"kept");
    assert!(!run.join("experiment.toml").exists() && !run.join("tokenizer.json").exists());
    // It is still known for a start.
    Trainer::new(scratch.experiment(&[]), RunDir::open(&run).unwrap()).unwrap();
}

#[test]
fn nobody_trains_in_a_directory_that_is_only_read_beside_another() {
    let scratch = Scratch::with_text();
    let first = scratch.start("run", &[]);
    let refused = Trainer::new(scratch.experiment(&[]), RunDir::beside(scratch.path("run"))).map(drop).unwrap_err();
    assert!(refused.to_string().contains("make or open the run directory") && refused.is_wrong_input(), "{refused}");
    drop(first);
    assert!(Trainer::new(scratch.experiment(&[]), RunDir::beside(scratch.path("other"))).is_err());
    assert!(!scratch.path("other").exists());
}

#[test]
fn a_carried_state_that_is_not_finite_is_refused_by_name() {
    let scratch = Scratch::with_text();
    let mut trainer = scratch.start("run", &["sampling=stream"]);
    trainer.update().unwrap();
    let saved = trainer.save(true).unwrap();
    drop(trainer);
    let file = saved.join("training.safetensors");
    let mut found = Weights::read(&file).unwrap();
    let names: Vec<String> = found.names().map(ToOwned::to_owned).collect();
    let flawed = names.into_iter().map(|name| {
        let (shape, mut values) = found.take_any(&name).unwrap().into_parts();
        if name.starts_with("state.") {
            values[0] = f32::NAN;
        }
        (name, shape, values.into())
    });
    write_safetensors(&file, flawed, None).unwrap();
    std::fs::remove_file(saved.join("SHA256SUMS")).unwrap();
    let run = RunDir::open(scratch.path("run")).unwrap();
    let refused = Trainer::new(scratch.experiment(&["sampling=stream"]), run).map(drop).unwrap_err().to_string();
    assert!(refused.contains("tensor 'state.") && refused.contains("holds NaN at position 0"), "{refused}");
}

#[test]
fn the_report_on_a_task_scores_only_the_checkpoint_that_validated_best() {
    let scratch = Scratch::with_text();
    let settings = ["task=selective-copying", "copy_length=12", "copy_tokens=2", "max_iterations=6", "eval_every=2"].map(str::to_owned);
    let experiment = Experiment::parse(TINY, &settings).unwrap();
    let mut trainer = Trainer::new(experiment, RunDir::create(scratch.path("task")).unwrap()).unwrap();
    let go_on = AtomicBool::new(false);
    trainer.run(&go_on, |_| Ok(())).unwrap();
    let report = trainer.final_report(&go_on).unwrap().unwrap();
    assert_eq!(report.kept.iter().map(|(iteration, _)| *iteration).collect::<Vec<_>>(), [trainer.progress().kept()[0]]);
}
