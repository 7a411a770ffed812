//! What a training leaves and says: log, events, curves, lines; early stopping, numbers that are not finite, and no network.

mod common;

use std::fs;

use common::{Finished, Scratch, Training, minrnn, shown};

/// Messages of a TensorBoard file: length, checksum, message, checksum.
fn frames(mut bytes: &[u8]) -> Vec<&[u8]> {
    let mut found = Vec::new();
    while !bytes.is_empty() {
        let len = u64::from_le_bytes(bytes[..8].try_into().unwrap()) as usize;
        found.push(&bytes[12..12 + len]);
        bytes = &bytes[16 + len..];
    }
    found
}

fn contains(message: &[u8], tag: &str) -> bool {
    message.windows(tag.len()).any(|window| window == tag.as_bytes())
}

#[test]
fn log_events_and_curves_are_written() {
    let scratch = Scratch::new();
    let settings = ["warmup=4", "schedule=cosine", "lr=0.004", "min_lr=0.001", "max_iterations=16", "eval_every=8"];
    let training = scratch.training("run", &settings);
    training.run().ok();

    let metrics = training.metrics();
    let of_kind = |kind| metrics.iter().filter(|line| line["kind"] == kind).collect::<Vec<_>>();
    let (train, eval) = (of_kind("train"), of_kind("eval"));
    let iterations = |lines: &[&serde_json::Value]| lines.iter().map(|line| line["iteration"].as_u64().unwrap()).collect::<Vec<_>>();
    assert_eq!(iterations(&train), (1..=16).collect::<Vec<u64>>());
    assert_eq!(iterations(&eval), [0, 8, 16]);
    for line in &train {
        assert!(line["loss"].as_f64().unwrap() > 0.0 && line["grad_norm"].as_f64().unwrap() > 0.0, "{line}");
    }
    // The warm-up, its end, the middle and nearly the end of the cosine.
    for (iteration, expected) in [(1, 0.0008), (4, 0.0032), (5, 0.004), (11, 0.0025), (16, 0.001_051_1)] {
        let lr = train[iteration - 1]["lr"].as_f64().unwrap();
        assert!((lr - expected).abs() < 1e-7, "{iteration}: {lr}");
    }

    let events = fs::read_dir(&training.out).unwrap().map(|entry| entry.unwrap().path());
    let events: Vec<_> = events.filter(|path| shown(path).contains("events.out.tfevents.")).collect();
    let bytes = fs::read(&events[0]).unwrap();
    let messages = frames(&bytes);
    assert!(events.len() == 1 && contains(messages[0], "brain.Event:2"));
    let count = |tag| messages.iter().filter(|message| contains(message, tag)).count();
    assert_eq!((count("train/loss"), count("train/lr"), count("train/grad_norm"), count("test/loss")), (16, 16, 16, 3));

    let svg = fs::read_to_string(training.out.join("curves.svg")).unwrap();
    assert!(svg.starts_with("<svg") && svg.trim_end().ends_with("</svg>") && svg.contains("<polyline"));
    let png = fs::read(training.out.join("curves.png")).unwrap();
    assert!(png.starts_with(b"\x89PNG\r\n\x1a\n") && png[png.len() - 8..png.len() - 4] == *b"IEND");
    let experiment = fs::read_to_string(training.out.join("experiment.toml")).unwrap();
    assert!(experiment.contains("lr = 0.004") && experiment.contains("d_model = 16"), "{experiment}");
}

#[test]
fn progress_goes_to_stderr_in_plain_lines_and_the_report_to_stdout() {
    let scratch = Scratch::new();
    let training = scratch.training("run", &[]);
    let Finished { stdout, stderr, .. } = training.run().ok();
    let out = training.out.display();
    assert!(!stderr.contains(['\u{1b}', '\r']) && !stdout.contains('\u{1b}'), "{stderr}");
    for line in [
        "min-gru: 1 layer, width 16, ",
        "20 iterations on 1 thread\n",
        "\n1/20 loss ",
        "\niteration 10: test loss ",
        "\nall iterations done: 20 iterations",
    ] {
        assert!(stderr.contains(line), "expected '{line}' in {stderr}");
    }
    let best = training.checkpoint("best");
    let short = format!("the training was short: scored on 10 batches, not on 200; minrnn eval {out} takes them all\n");
    for line in [
        "iteration 10: test loss ",
        "best: iteration 20, test loss ",
        "\ntest bits per byte ",
        "one pass over the whole test text: loss ",
        &short,
    ] {
        assert!(stdout.contains(line), "expected '{line}' in {stdout}");
    }
    let last = format!(
        "model: {}\nreport: {out}/report.html\nnext: minrnn generate {out} --prompt \"...\"    or: minrnn eval {out}\n",
        best.display()
    );
    assert!(stdout.ends_with(&last), "{stdout}");
}

#[test]
fn threads_are_a_flag_of_train_as_of_every_command_and_belong_to_the_run() {
    let scratch = Scratch::new();
    // The flag overrides the settings, which say 1.
    let on = |threads: &str| {
        let training = scratch.training("run", &[]);
        Training { args: [&training.args[..], &["--threads".to_owned(), threads.to_owned()]].concat(), ..training }
    };
    for (threads, sentence) in [("0", "--threads must be between 1 and 1024"), ("1025", "threads must be at most 1024")] {
        on(threads).run().refused(&[sentence]);
        assert!(!on(threads).out.exists());
    }
    let finished = on("2").run().ok();
    assert!(finished.stderr.contains("20 iterations on 2 threads\n"), "{finished:?}");
    let experiment = fs::read_to_string(on("2").out.join("experiment.toml")).unwrap();
    assert!(experiment.contains("threads = 2"), "{experiment}");
}

#[test]
fn a_task_is_judged_by_what_its_experiment_expects() {
    let scratch = Scratch::new();
    let training = scratch.task("run", &["copy_length=12", "copy_tokens=2"]);
    let stdout = training.run().ok().stdout;
    assert!(stdout.contains("best: iteration ") && stdout.contains("accuracy "), "{stdout}");
    assert!(stdout.contains("expected 1 ± 0.01 (this library): not reached with 0."), "{stdout}");
}

#[test]
fn an_expected_loss_is_compared_with_the_loss_whatever_the_task_is_scored_by() {
    let scratch = Scratch::new();
    let expect = "[expect]\nmetric = 'test-loss'\nvalue = 0.5\ntolerance = 0.1\nsource = 'a guess'\n";
    let experiment = scratch.write("own.toml", format!("[data]\ntask = 'selective-copying'\n{expect}"));
    let task = scratch.task("run", &["copy_length=12", "copy_tokens=2"]);
    let stdout = Training { args: vec![shown(&experiment)], ..task }.run().ok().stdout;
    let told = stdout
        .lines()
        .find(|line| line.starts_with("expected 0.5 ± 0.1 (a guess): not reached with "))
        .unwrap_or_else(|| panic!("{stdout}"));
    assert!(told.rsplit(' ').next().unwrap().parse::<f64>().unwrap() > 1.0, "{told}");
}

#[test]
fn commands_that_are_printed_can_be_given_to_a_shell() {
    let scratch = Scratch::new();
    let training = scratch.training("my run", &[]);
    let finished = training.run().ok();
    let out = training.out.display();
    assert!(
        finished.stdout.ends_with(&format!("next: minrnn generate '{out}' --prompt \"...\"    or: minrnn eval '{out}'\n")),
        "{finished:?}"
    );
    let pack = |output: &str| Finished::of(minrnn(&["pack", &shown(&training.out), output]).current_dir(scratch.path(""))).ok().stdout;
    for (output, word) in [("-omy model.minrnn", "'my model.minrnn'"), ("-o-y", "./-y"), ("-oü", "'ü'"), ("-oplain", "plain")] {
        let told = pack(output);
        assert!(told.ends_with(&format!("next: minrnn generate {word} --prompt TEXT\n")), "{told}");
    }
}

#[test]
fn a_report_says_which_weights_were_kept() {
    let scratch = Scratch::new();
    for (keep, scored) in [("last", "scoring the last checkpoint"), ("average", "scoring the average of the last quarter")] {
        let finished = scratch.training(keep, &[&format!("keep={keep}")]).run().ok();
        assert!(finished.stderr.contains(scored), "{finished:?}");
        assert!(finished.stdout.contains(&format!("\n{keep}: iteration 20, test loss ")), "{finished:?}");
    }
}

#[test]
fn training_ends_when_patience_does() {
    let scratch = Scratch::new();
    // Such a rate only makes it worse.
    let training = scratch.training("run", &["lr=30", "eval_every=5", "patience=2", "max_iterations=1000"]);
    let finished = training.run().ok();
    assert!(finished.stderr.contains("no improvement in 2 evaluations: 15 iterations"), "{finished:?}");
    assert!(finished.stdout.contains("best: iteration 5, "), "{finished:?}");
    assert_eq!(training.logged(), 15);
    let outcome = training.outcome();
    training.resume().ok();
    training.outcome().assert_equals(&outcome);
}

#[test]
fn numbers_that_are_not_finite_are_named_and_the_last_checkpoint_goes_on() {
    let scratch = Scratch::new();
    // Decay turns over and grows the weights without bound.
    let blown = ["lr=100", "weight_decay=10", "warmup=0", "checkpoint_every=100"];
    for (out, settings, named) in [
        ("rms", &["eval_every=50"][..], ": the loss is not finite (NaN)"),
        ("batch", &["eval_every=50", "norm=batch", "decay_groups=all"], ": the loss is not finite (NaN)"),
        ("evaluated", &["eval_every=1", "conv=true"], "the test loss is not finite"),
    ] {
        let training = scratch.training(out, &[&blown, settings].concat());
        training.run().failed(1, &[named, "resume from the last checkpoint with a lower learning rate or clip norm"]);
        // If no update was evaluated there is no best checkpoint, and the last one is the first.
        let [best, last] = ["best", "last"].map(|name| training.out.join("checkpoints").join(name));
        assert!((best.exists() || training.checkpoint("last").ends_with("iter-0")) && training.out.join("curves.svg").exists());
        let eval = Finished::of(&mut minrnn(&["eval", &shown(&training.out), "--json"])).ok();
        assert!(!eval.stdout.contains("null"), "{eval:?}");
        // Again it comes to the same end; from the best checkpoint, or the first, with a lower rate it does not.
        training.resume().failed(1, &[named]);
        if best.exists() {
            fs::copy(best, last).unwrap();
        }
        training.with(&["lr=0.001", "weight_decay=0.1"]).resume().ok();
    }
}

/// An experiment on Tiny Shakespeare where every address is closed.
fn without_network(scratch: &Scratch) -> Finished {
    let training = Training { args: vec!["shakespeare-min-gru".to_owned()], ..scratch.training("run", &[]) };
    let mut command = training.command(&[]);
    for name in ["ALL_PROXY", "HTTPS_PROXY", "https_proxy", "all_proxy"] {
        command.env(name, "http://127.0.0.1:1");
    }
    command.env_remove("NO_PROXY").env_remove("no_proxy").env("MINRNN_CACHE", scratch.path("cache"));
    let finished = Finished::of(&mut command);
    assert!(!training.out.exists());
    finished
}

#[test]
fn without_a_network_it_says_what_to_do() {
    let scratch = Scratch::new();
    let finished = without_network(&scratch);
    finished.failed(2, &["could not download Tiny Shakespeare from https://", "check the network", "--data FILE"]);
    assert!(!scratch.path("cache").exists());
}

#[test]
fn a_cached_text_with_another_checksum_is_not_used() {
    let scratch = Scratch::new();
    fs::create_dir(scratch.path("cache")).unwrap();
    for (content, problem) in [(common::words(1_115_394), "SHA-256"), (common::words(999), "999 were found")] {
        let cached = scratch.write("cache/tinyshakespeare.txt", &content);
        let finished = without_network(&scratch);
        finished.failed(2, &["could not download", "--data FILE"]);
        assert!(finished.stderr.starts_with("not using '") && finished.stderr.contains(problem), "{finished:?}");
        assert_eq!(fs::read_to_string(cached).unwrap(), content);
    }
}

#[test]
fn every_mixer_of_a_stack_is_told() {
    let scratch = Scratch::new();
    let training = scratch.training("run", &["max_iterations=2", "n_layers=3", r#"mixers=["m-lstm", "s-lstm"]"#]);
    assert!(training.run().ok().stderr.contains("\nm-lstm, s-lstm: 3 layers, width "));
    let (run, file) = (shown(&training.out), shown(&scratch.path("model.minrnn")));
    let packed = Finished::of(&mut minrnn(&["pack", &run, "-o", &file])).ok();
    assert!(packed.stdout.starts_with(&format!("{file}: m-lstm, s-lstm from ")), "{packed:?}");
    let generated = Finished::of(&mut minrnn(&["generate", &file, "--max-tokens", "1"])).ok();
    assert!(generated.stderr.starts_with("m-lstm, s-lstm of ") && generated.stderr.contains("generated 1 token in "), "{generated:?}");
}
