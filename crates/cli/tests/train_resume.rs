//! A run that is killed or stopped and resumed comes to the same bits as one that was not.

mod common;

use std::time::{Duration, Instant};

use common::{
    Finished, Random, Scratch, Training, assert_untouched, leftovers, minrnn, shown, signal, snapshot, wait_until, wait_until_interruptible,
};

/// Kills a run of 60 iterations at random moments, resumes it to its end, and compares it with an uninterrupted one.
fn resume_is_bit_for_bit(seed: u64, settings: &[&str], make: fn(&Scratch, &str, &[&str]) -> Training) {
    let scratch = Scratch::new();
    let settings: Vec<&str> = [&["max_iterations=60"], settings].concat();
    let (whole, torn) = (make(&scratch, "whole", &settings), make(&scratch, "torn", &settings));
    let report = whole.run().ok().stdout;

    let mut random = Random(seed);
    let mut killed = 0;
    // Some kills come while it starts, some while it trains, evaluates or saves.
    for target in [0, 0, 5, 15, 0, 25, 35, 45, 55] {
        let mut child = torn.spawn();
        if target == 0 {
            std::thread::sleep(Duration::from_micros(random.below(12_000)));
        } else {
            wait_until(&mut child, || torn.logged() >= target);
            std::thread::sleep(Duration::from_micros(random.below(4_000)));
        }
        child.kill().unwrap();
        killed += u32::from(child.wait().unwrap().code().is_none());
    }
    assert!(killed >= 3, "only {killed} kills hit the run");
    let finished = Finished::of(&mut torn.start_or_resume()).ok();
    torn.outcome().assert_equals(&whole.outcome());
    assert_eq!(finished.stdout.replace("/torn", "/whole").replace("-2\n", "\n"), report);
    assert_eq!(leftovers(&torn.out), [] as [std::path::PathBuf; 0]);
}

#[test]
fn resume_is_bit_for_bit_with_dropout_and_accumulation() {
    resume_is_bit_for_bit(1, &["n_layers=2", "conv=true", "dropout=0.2", "accumulation=2", "threads=2"], Scratch::training);
}

#[test]
fn resume_is_bit_for_bit_in_a_stream() {
    let settings = ["mixer=min-lstm", "initial_state=learned", "sampling=stream", "accumulation=2", "tokenizer=bpe", "bpe_vocab_size=280"];
    resume_is_bit_for_bit(2, &settings, Scratch::training);
}

#[test]
fn resume_is_bit_for_bit_with_batch_norm() {
    resume_is_bit_for_bit(3, &["norm=batch", "ff=gated", "tie_embeddings=true", "checkpoint_every=1"], Scratch::training);
}

#[test]
fn resume_is_bit_for_bit_on_a_task() {
    resume_is_bit_for_bit(4, &["mixer=gru", "copy_length=12", "copy_tokens=2", "schedule=cosine"], Scratch::task);
}

/// The cache grows from window to window, and so do the tensors of the checkpoints.
#[test]
fn resume_is_bit_for_bit_with_a_growing_cache() {
    let settings = ["mixer=attention", "positions=rotary", "ff=swi-glu", "sampling=stream", "max_seq_len=100", "n_layers=2"];
    resume_is_bit_for_bit(5, &settings, Scratch::training);
}

/// Sends a signal to a run and checks that it saves and says how to go on; gives the iterations made.
fn stopped(training: &Training, mut child: std::process::Child, name: &str, at: u64) -> u64 {
    wait_until_interruptible(&mut child);
    wait_until(&mut child, || training.logged() >= at);
    // Into the evaluation, where one is due.
    std::thread::sleep(Duration::from_millis(30));
    signal(&child, name);
    let finished = Finished::from(child.wait_with_output().unwrap()).stopped();
    assert_eq!(finished.stdout, "");
    let made = training.logged();
    let words = [
        format!("stopped after {made} iterations; everything is saved in {}", training.out.display()),
        format!("continue with: minrnn train --resume --out {}", training.out.display()),
    ];
    assert!(finished.stderr.ends_with(&format!("{}\n", words.join("\n"))), "{finished:?}");
    made
}

#[test]
fn ctrl_c_saves_and_the_run_goes_on_as_if_never_stopped() {
    let scratch = Scratch::new();
    // Long enough to be met in the middle.
    let settings = ["max_iterations=400", "eval_every=50", "accumulation=4", "dropout=0.1", "sampling=stream", "norm=batch"];
    let (whole, stop) = (scratch.training("whole", &settings), scratch.training("stop", &settings));
    whole.run().ok();

    let made = stopped(&stop, stop.spawn(), "INT", 5);
    assert!((5..400).contains(&made), "{made}");
    // Then inside an evaluation, which would take hours.
    let due = made.next_multiple_of(50);
    let endless = stop.with(&["eval_iterations=100000000"]);
    assert_eq!(stopped(&stop, endless.spawn(), "TERM", due), due);
    assert!(stop.metrics().iter().all(|line| line["kind"] == "train" || line["iteration"] != due || due == made));
    // And again at once.
    assert_eq!(stopped(&stop, endless.spawn(), "INT", due), due);

    stop.resume().ok();
    stop.outcome().assert_equals(&whole.outcome());
}

#[test]
fn another_ctrl_c_ends_an_update_that_takes_too_long() {
    let scratch = Scratch::new();
    let training = scratch.training("run", &["accumulation=65536", "seq_len=64"]);
    let mut child = training.spawn();
    let last = training.out.join("checkpoints/last");
    wait_until(&mut child, || last.exists());
    std::thread::sleep(Duration::from_millis(50));
    let before = snapshot(&training.out);
    signal(&child, "INT");
    std::thread::sleep(Duration::from_millis(1300));
    assert!(child.try_wait().unwrap().is_none());
    signal(&child, "INT");
    assert_eq!(child.wait().unwrap().code(), Some(130));
    assert_untouched(&training.out, &before);
}

#[test]
fn a_run_without_a_checkpoint_starts_anew_and_says_so() {
    let scratch = Scratch::new();
    let (whole, anew) = (scratch.training("whole", &[]), scratch.training("anew", &[]));
    whole.run().ok();
    // An empty directory, then one whose run was lost but for its experiment and a log.
    std::fs::create_dir(&anew.out).unwrap();
    for _ in 0..2 {
        let finished = anew.resume().ok();
        assert!(
            finished.stderr.starts_with(&format!("'{}' has no checkpoint yet: starting from the beginning\n", anew.out.display())),
            "{finished:?}"
        );
        anew.outcome().assert_equals(&whole.outcome());
        std::fs::remove_dir_all(anew.out.join("checkpoints")).unwrap();
    }
    // With the text and the tokenizer that are requested now.
    let other = scratch.write("other.txt", common::words(4000).to_uppercase());
    let bytes = Training { args: vec!["--data".to_owned(), common::shown(&other)], ..anew.with(&["tokenizer=byte"]) };
    assert!(bytes.resume().ok().stderr.contains("starting from the beginning"));
    assert!(std::fs::read_to_string(anew.out.join("tokenizer.json")).unwrap().contains("byte"));
}

#[test]
fn a_directory_without_a_run_trains_nothing_else() {
    let scratch = Scratch::new();
    let (whole, early) = (scratch.training("whole", &[]), scratch.training("early", &[]));
    whole.run().ok();
    // What remains of a start that is killed before its experiment is written.
    std::fs::create_dir(&early.out).unwrap();
    std::fs::write(early.out.join("run.lock"), "").unwrap();
    std::fs::write(early.out.join(".writing-abc"), "descr").unwrap();
    let bare = Training { args: Vec::new(), settings: Vec::new(), ..early.clone() };
    bare.resume().refused(&["early'", "there is no run to resume", "start it again with the same command", "without --resume"]);
    early.run().ok();
    early.outcome().assert_equals(&whole.outcome());
    // And one that is killed after it: the text is the one the run began with.
    std::fs::remove_dir_all(early.out.join("checkpoints")).unwrap();
    std::fs::remove_dir_all(early.out.join("data")).unwrap();
    early.run().refused(&["already holds a run", "--resume"]);
    assert!(bare.resume().ok().stderr.contains("starting from the beginning"));
    early.outcome().assert_equals(&whole.outcome());
}

#[test]
fn a_start_that_fails_leaves_no_run_behind_a_killed_one() {
    let scratch = Scratch::new();
    let training = scratch.training("run", &[]);
    std::fs::create_dir(&training.out).unwrap();
    std::fs::write(training.out.join("run.lock"), "").unwrap();
    scratch.write("text.txt", "");
    training.resume().failed(2, &["is empty"]);
    assert!(snapshot(&training.out).is_empty());
}

#[test]
fn settings_that_would_make_another_run_are_refused() {
    let scratch = Scratch::new();
    let training = scratch.training("run", &[]);
    training.run().ok();
    let before = snapshot(&training.out);
    for (setting, sentence) in [
        ("seed=8", "train.seed must stay 0, as the run began with it, found 8"),
        ("batch_size=8", "train.batch_size must stay 4"),
        ("accumulation=2", "train.accumulation must stay 1"),
        ("betas=0.5,0.9", "train.betas must stay"),
        ("sampling=stream", "data.sampling must stay \"random\""),
        ("d_model=32", "model.d_model must stay 16, as the run began with it, found 32"),
    ] {
        training.with(&[setting]).resume().refused(&[sentence]);
        assert_untouched(&training.out, &before);
    }
    training.with(&["max_iterations=22", "lr=0.0005", "eval_every=5", "patience=7", "threads=2"]).resume().ok();
}

#[test]
fn a_run_of_a_text_goes_on_with_the_accuracy_of_before_that_nothing_reaches_and_takes_no_new_one() {
    let scratch = Scratch::new();
    let training = scratch.training("run", &[]);
    training.run().ok();
    let file = training.out.join("experiment.toml");
    let text = std::fs::read_to_string(&file).unwrap();
    // As earlier versions took it from the command.
    assert!(text.contains("solved_at = 0.0\n"), "{text}");
    std::fs::write(&file, text.replace("solved_at = 0.0\n", "solved_at = 0.12\n")).unwrap();
    training.with(&["max_iterations=22"]).resume().ok();
    training.with(&["max_iterations=24", "solved_at=0.12"]).resume().ok();
    training.with(&["solved_at=0.3"]).resume().refused(&["solved_at is an accuracy", "this one is text"]);
}

#[test]
fn a_log_that_is_deleted_while_it_is_written_is_put_back() {
    let scratch = Scratch::new();
    let settings = ["max_iterations=200", "eval_every=100"];
    let (whole, robbed) = (scratch.training("whole", &settings), scratch.training("robbed", &settings));
    whole.run().ok();
    let mut child = robbed.spawn();
    wait_until(&mut child, || robbed.logged() >= 10);
    std::fs::remove_file(robbed.out.join("metrics.jsonl")).unwrap();
    Finished::from(child.wait_with_output().unwrap()).ok();
    robbed.outcome().assert_equals(&whole.outcome());
}

#[test]
fn a_damaged_pointer_is_told_before_anything_is_trained() {
    let scratch = Scratch::new();
    let training = scratch.training("run", &["max_iterations=20"]);
    training.run().ok();
    let best = training.out.join("checkpoints/best");
    std::fs::write(&best, "\0\0").unwrap();
    let before = snapshot(&training.out);
    let longer = training.with(&["max_iterations=22"]);
    longer.resume().refused(&["checkpoints/best", "expected the name of a checkpoint", "or remove the file"]);
    assert_untouched(&training.out, &before);
    std::fs::remove_file(best).unwrap();
    longer.resume().ok();
}

#[test]
fn what_is_left_of_a_removed_checkpoint_does_not_stop_the_report() {
    let scratch = Scratch::new();
    let training = scratch.training("run", &[]);
    let report = training.run().ok().stdout;
    let half = training.out.join("checkpoints/iter-20-2");
    std::fs::create_dir(&half).unwrap();
    std::fs::copy(training.checkpoint("last").join("config.json"), half.join("config.json")).unwrap();
    assert_eq!(training.resume().ok().stdout, report);
    training.with(&["max_iterations=22"]).resume().ok();
    assert!(!half.exists());
}

#[test]
fn resuming_a_finished_run_reports_again_and_changes_nothing_of_it() {
    let scratch = Scratch::new();
    let training = scratch.training("run", &[]);
    let report = training.run().ok().stdout;
    let (outcome, best) = (training.outcome(), training.checkpoint("best"));
    let finished = training.resume().ok();
    assert_eq!(finished.stdout, report);
    assert!(finished.stderr.contains("resumed after 20 iterations"), "{finished:?}");
    training.outcome().assert_equals(&outcome);
    assert_eq!(training.checkpoint("best"), best);
}

#[test]
fn a_finished_run_can_be_made_longer() {
    let scratch = Scratch::new();
    // An evaluation falls on the first end, so both runs evaluate at the same iterations.
    let (whole, longer) = (scratch.training("whole", &["max_iterations=30"]), scratch.training("longer", &["max_iterations=20"]));
    whole.run().ok();
    longer.run().ok();
    longer.with(&["max_iterations=30"]).resume().ok();
    longer.outcome().assert_equals(&whole.outcome());
}

#[test]
fn a_run_that_is_over_takes_no_other_settings_of_learning() {
    let scratch = Scratch::new();
    let training = scratch.training("run", &[]);
    training.run().ok();
    let before = snapshot(&training.out);
    for (settings, sentence) in [
        (&["lr=0.5", "clip_norm=9"][..], "the run is over after 20 updates, and lr = 0.5 would change none of them; raise max_iterations"),
        (
            &["precision=bf16", "threads=2"],
            "precision = \"bf16\" would change none of them; raise max_iterations to go on with it, or leave precision out",
        ),
    ] {
        training.with(settings).resume().refused(&[sentence]);
        assert_untouched(&training.out, &before);
    }
    let stored = || std::fs::read_to_string(training.out.join("experiment.toml")).unwrap();
    training.with(&["threads=2", "eval_iterations=3", "memory_limit=8GiB"]).resume().ok();
    assert!(stored().contains("threads = 2\n"), "{}", stored());
    training.with(&["max_iterations=22", "lr=0.0005"]).resume().ok();
    assert!(stored().contains("lr = 0.0005\n"), "{}", stored());

    // Such a rate only makes it worse.
    let impatient = scratch.training("impatient", &["lr=30", "eval_every=5", "patience=2", "max_iterations=1000"]);
    impatient.run().ok();
    impatient.with(&["lr=20"]).resume().refused(&["patience ended after 15 updates, and lr = 20", "raise patience to go on"]);
    impatient.with(&["lr=20", "patience=4"]).resume().ok();
    assert!(impatient.logged() > 15);
}

#[test]
fn another_experiment_beside_resume_is_refused_and_the_own_is_not() {
    let scratch = Scratch::new();
    let training = scratch.task("run", &["copy_length=12", "copy_tokens=2", "max_iterations=2"]);
    training.run().ok();
    let before = snapshot(&training.out);
    let out = shown(&training.out);
    let resume = |args: &[&str]| Finished::of(minrnn(&["train", "--resume", "--out", &out]).args(args));
    let plain = scratch.write("plain.toml", "[model]\nd_model = 24\n[data]\ntask = \"selective-copying\"\n");
    for name in ["parity", "selective-copying-paper", &shown(&plain)] {
        resume(&[name]).refused(&[name, "is not the experiment of the run in", "leave", "--out"]);
    }
    resume(&["no-such"]).refused(&["no file and no experiment 'no-such'"]);
    assert_untouched(&training.out, &before);
    resume(&["selective-copying"]).ok();
    resume(&["selective-copying", "--set", "max_iterations=3"]).ok();

    // A file without a description is identified by its model.
    let file = scratch
        .write("own.toml", "[model]\nd_model = 16\nn_layers = 1\n[data]\ntask = \"selective-copying\"\ncopy_length = 12\ncopy_tokens = 2\n[train]\nmax_iterations = 1\n");
    let own = shown(&scratch.path("own"));
    let args = ["train", &shown(&file), "--set", "eval_iterations=1", "--out", &own];
    Finished::of(&mut minrnn(&args)).ok();
    Finished::of(minrnn(&args).arg("--resume")).ok();
    Finished::of(&mut minrnn(&["train", &shown(&plain), "--out", &own, "--resume"])).refused(&["plain.toml", "is not the experiment"]);
}

#[test]
fn two_processes_never_train_in_one_directory() {
    let scratch = Scratch::new();
    let training = scratch.training("run", &["max_iterations=100000000"]);
    let mut child = training.spawn();
    wait_until(&mut child, || training.logged() >= 3);
    let started = Instant::now();
    for refused in [training.run(), training.resume()] {
        refused.refused(&["another process is training in this directory", "--out"]);
    }
    assert!(started.elapsed() < Duration::from_secs(60));
    let at = training.logged();
    stopped(&training, child, "INT", at);
    // The lock is gone with its process. Updates that are made stay made.
    let made = training.logged();
    training.with(&["max_iterations=1"]).resume().refused(&[&format!("max_iterations must be at least {made}, found 1")]);
    training.with(&[&format!("max_iterations={}", made + 1)]).resume().ok();
}
