//! `minrnn plot`: the picture of several runs, the best of each, and what it refuses.

mod common;

use std::fs;

use common::{Finished, Scratch, minrnn, shown, snapshot, with_file_limit};

fn plot(args: &[&str]) -> Finished {
    Finished::of(minrnn(&["plot"]).args(args))
}

/// A log of evaluations, every ten updates.
fn log(losses: &[f64]) -> String {
    let line = |(at, loss): (usize, &f64)| {
        let iteration = 10 * at;
        format!(r#"{{"kind":"eval","iteration":{iteration},"test_loss":{loss},"test_accuracy":{}}}"#, 1.0 / (1.0 + loss)) + "\n"
    };
    losses.iter().enumerate().map(line).collect()
}

#[test]
fn runs_are_drawn_together_and_the_best_of_each_is_said() {
    let scratch = Scratch::new();
    let training = scratch.training("first", &["max_iterations=20"]);
    training.run().ok();
    let best = training.metrics().iter().filter_map(|line| line["test_loss"].as_f64()).fold(f64::INFINITY, f64::min);
    let other = scratch.write("other.jsonl", log(&[2.0, 1.5, 1.25, 1.75]));
    let picture = scratch.path("both.svg");
    let args = [&shown(&training.out), &format!("by hand={}", shown(&other)), "--title", "Two of them", "-o", &shown(&picture)];
    let finished = plot(&args).ok();
    let lines: Vec<&str> = finished.stdout.lines().collect();
    assert!(lines[0].starts_with(&format!("first: best loss {best:.4} at iteration ")) && lines[0].ends_with(" of 20"), "{lines:?}");
    assert_eq!(lines[1..], ["by hand: best loss 1.2500 at iteration 20 of 30"]);
    let svg = fs::read_to_string(&picture).unwrap();
    for part in ["Two of them", "first", "by hand", "iteration", "test loss (nats per token)"] {
        assert!(svg.contains(part), "{part}");
    }
    assert!(fs::read(picture.with_extension("png")).unwrap().starts_with(b"\x89PNG"));

    assert!(!svg.contains("published"));
    plot(&[&args[..], &["--published", "by hand=20:1.375"]].concat()).ok();
    assert!(fs::read_to_string(&picture).unwrap().contains("published"));

    let accuracy = plot(&[&shown(&other), "--accuracy", "-o", &shown(&picture)]).ok();
    let folder = scratch.path("").file_name().unwrap().to_string_lossy().into_owned();
    assert_eq!(accuracy.stdout, format!("{folder}: best accuracy 44.44 % at iteration 20 of 30\n"));
    assert!(fs::read_to_string(&picture).unwrap().contains("test accuracy"));
}

#[test]
fn what_cannot_be_drawn_is_named_and_nothing_is_written() {
    let scratch = Scratch::new();
    let good = shown(&scratch.write("good.jsonl", log(&[2.0, 1.5])));
    let empty = shown(&scratch.write("empty.jsonl", ""));
    let broken = shown(&scratch.write("broken.jsonl", "{\"kind\":\"eval\"\n{}\n"));
    let endless = shown(&scratch.write("endless.jsonl", "{\"kind\":\"eval\",\"iteration\":1,\"test_loss\":null}\n"));
    let backwards: Vec<String> = log(&[2.0, 1.5]).lines().rev().map(|line| line.to_owned() + "\n").collect();
    let backwards = shown(&scratch.write("backwards.jsonl", backwards.concat()));
    let picture = shown(&scratch.path("picture.svg"));
    let refused = |runs: &[&str], parts: &[&str]| plot(&[runs, &["-o", &picture]].concat()).refused(parts);
    refused(&[&good, "/nonexistent"], &["there is no '/nonexistent'", "metrics.jsonl"]);
    refused(&[&good, "name=/nonexistent"], &["there is no '/nonexistent'"]);
    refused(&[&good, "--published", "god=1:2"], &["there is no line 'god'"]);
    for malformed in ["good", "good=1", "good=1:x", "good=inf:1"] {
        refused(&[&good, "--published", malformed], &["expected NAME=ITERATION:VALUE"]);
    }
    // Numbers that an axis cannot show beside the line.
    let named = format!("good={good}");
    for (malformed, part) in [
        ("good=1e308:1e308", "the iteration must be between 0 and 1000000000000"),
        ("good=-1:1.5", "the iteration must be between 0 and"),
        ("good=10:1e300", "the loss must be between 0 and 1000000"),
        ("good=10:-1", "the loss must be between 0 and"),
    ] {
        refused(&[&named, "--published", malformed], &[malformed, part]);
    }
    refused(&[&named, "--accuracy", "--published", "good=10:99.5"], &["the accuracy must be between 0 and 1"]);
    refused(&[&format!("={good}")], &["has no name before the =", "NAME=RUN"]);
    let unfinished = shown(&scratch.write("unfinished.jsonl", [0xff; 100]));
    refused(&[&unfinished], &["unfinished.jsonl' is not the log of a run", "no whole line"]);
    #[cfg(unix)]
    {
        refused(&["/dev/null"], &["'/dev/null' is a pipe or a device", "metrics.jsonl"]);
        let circle = scratch.path("circle");
        std::os::unix::fs::symlink(&circle, &circle).unwrap();
        refused(&[&shown(&circle)], &["could not read", "circle"]);
    }
    refused(&[&empty], &["empty.jsonl", "no evaluation"]);
    refused(&[&endless], &["endless.jsonl", "finite loss"]);
    refused(&[&broken], &["broken.jsonl", "line 1"]);
    refused(&[&backwards], &["backwards.jsonl", "iteration 0 after that of 10", "in the order"]);
    refused(&[&good, &good], &["NAME=RUN"]);
    refused(&[good.as_str(); 11], &["11 runs", "at most 10"]);
    plot(&[&good, "-o", &shown(&scratch.path("picture.jpg"))]).refused(&["picture.jpg", ".svg"]);
    assert!(!scratch.path("picture.svg").exists());
    plot(&[&good, "-o", "/nonexistent/picture.svg"]).refused(&["/nonexistent/picture.svg"]);
}

#[test]
fn control_characters_of_a_name_reach_no_terminal() {
    let scratch = Scratch::new();
    let good = shown(&scratch.write("good.jsonl", log(&[2.0, 1.5])));
    let finished = plot(&[&format!("\x1b[31mred\nand more={good}"), "-o", &shown(&scratch.path("p.svg"))]).ok();
    assert_eq!(finished.stdout, "\\u{1b}[31mred\\nand more: best loss 1.5000 at iteration 10 of 10\n");
}

#[test]
fn a_picture_has_the_name_that_was_asked_for_and_a_file_of_another_name_stays() {
    let scratch = Scratch::new();
    let good = shown(&scratch.write("good.jsonl", log(&[2.0, 1.5])));
    let (older, asked) = (scratch.write("a.svg", "older"), scratch.path("a.SVG"));
    let finished = plot(&[&good, "-o", &shown(&asked)]).ok();
    assert_eq!(finished.stderr, format!("picture: {}, {}\n", asked.display(), scratch.path("a.png").display()));
    assert!(fs::read_to_string(&asked).unwrap().starts_with("<svg") && scratch.path("a.png").exists());
    assert_eq!(fs::read_to_string(older).unwrap(), "older");
}

#[test]
fn runs_whose_losses_are_per_different_tokens_are_said_not_to_compare() {
    let scratch = Scratch::new();
    let run = |name: &str, experiment: &str, vocabulary: &str| {
        let folder = scratch.path(name);
        fs::create_dir(&folder).unwrap();
        fs::write(folder.join("experiment.toml"), experiment).unwrap();
        fs::write(folder.join("tokenizer.json"), vocabulary).unwrap();
        fs::write(folder.join("metrics.jsonl"), log(&[2.0, 1.5])).unwrap();
        shown(&folder)
    };
    let pieces = "[data]\ntokenizer = 'bpe'\n";
    let [letters, other_letters] = ["letters", "other-letters"].map(|name| run(name, "", name));
    let [one, same, other] = [("one", "1"), ("same", "1"), ("other", "2")].map(|(name, vocabulary)| run(name, pieces, vocabulary));
    let output = shown(&scratch.path("picture.svg"));
    let said = |runs: [&str; 2]| plot(&[&runs[..], &["-o", &output]].concat()).ok().stderr.contains("compare the bits per byte");
    assert!(said([&letters, &one]) && said([&one, &other]));
    assert!(!said([&letters, &other_letters]) && !said([&one, &same]));
    let told = plot(&[&letters, &one, "-o", &output]).ok().stderr;
    assert!(told.starts_with("'letters' and 'one' cut text into different tokens") && told.lines().count() == 2, "{told}");
}

#[test]
fn a_loss_is_called_what_the_run_measures_and_different_measures_share_no_axis() {
    let scratch = Scratch::new();
    let run = |name: &str, experiment: &str| {
        let folder = scratch.path(name);
        fs::create_dir(&folder).unwrap();
        fs::write(folder.join("experiment.toml"), experiment).unwrap();
        fs::write(folder.join("metrics.jsonl"), log(&[2.0, 1.5, 1.25, 1.75])).unwrap();
        shown(&folder)
    };
    let text = run("text", "");
    let policy = run("policy", "[model]\ndecision = true\n[data]\ntask = 'policy'\n");
    let picture = scratch.path("p.svg");
    let output = shown(&picture);
    plot(&[&text, &policy, "-o", &output])
        .refused(&["'text' is measured by its loss (nats per token)", "'policy' by its mean squared error"]);
    assert!(!picture.exists());
    let alone = plot(&[&policy, "-o", &output]).ok();
    assert_eq!(alone.stdout, "policy: best mean squared error 1.2500 at iteration 20 of 30\n");
    let svg = fs::read_to_string(&picture).unwrap();
    assert!(svg.contains("test mean squared error") && !svg.contains("nats"), "{svg}");
    plot(&[&text, &policy, "--accuracy", "-o", &output]).ok();
    // A log without its run does not say what it measures.
    plot(&[&shown(&scratch.write("other.jsonl", log(&[2.0, 1.5]))), "-o", &output]).ok();
    assert!(!fs::read_to_string(&picture).unwrap().contains("nats"));
}

#[cfg(unix)]
#[test]
fn on_a_full_disk_both_files_are_written_or_neither() {
    let scratch = Scratch::new();
    let good = shown(&scratch.write("good.jsonl", log(&[2.0, 1.5])));
    let whole = scratch.path("whole.svg");
    plot(&[&good, "-o", &shown(&whole)]).ok();
    let size = |ending: &str| fs::metadata(whole.with_extension(ending)).unwrap().len();
    let blocks = size("svg").div_ceil(512) + 1;
    assert!(512 * blocks < size("png"), "a limit that the first file keeps and the second does not");
    let picture = scratch.path("picture.svg");
    let before = snapshot(&scratch.path(""));
    let limited = || with_file_limit(minrnn(&["plot", &good, "-o"]).arg(&picture), u32::try_from(blocks).unwrap());
    limited().failed(1, &["picture.png"]);
    assert!(snapshot(&scratch.path("")).keys().eq(before.keys()), "{:?}", snapshot(&scratch.path("")).keys());
    // An older picture stays.
    fs::write(&picture, "older").unwrap();
    limited().failed(1, &["picture.png"]);
    assert_eq!(fs::read_to_string(&picture).unwrap(), "older");
}
