//! `minrnn plot`: the picture of several runs, the best of each, and what it refuses.

mod common;

use std::fs;

use common::{Finished, Scratch, minrnn, shown};

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
    for part in ["Two of them", "first", "by hand", "iteration", "test loss (nats)"] {
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
