//! `minrnn eval`: what it measures, and what it refuses.

mod common;

use std::fs;

use common::{Finished, Scratch, minrnn, shown, words};
use serde_json::Value;

fn eval(args: &[&str]) -> Finished {
    Finished::of(minrnn(&["eval"]).args(args))
}

/// The lines of `--json` by the name of the measure.
fn measures(args: &[&str]) -> Vec<(String, Value)> {
    let finished = eval(&[args, &["--json"]].concat()).ok();
    assert_eq!(finished.stderr, "");
    let lines = finished.stdout.lines().map(|line| serde_json::from_str::<Value>(line).unwrap());
    lines.map(|line| (line["measure"].as_str().unwrap().to_owned(), line)).collect()
}

#[test]
fn it_agrees_with_the_report_of_the_training() {
    let scratch = Scratch::new();
    let training = scratch.training("run", &["max_iterations=40", "dropout=0.1", "norm=batch"]);
    let report = training.run().ok().stdout;
    let run = shown(&training.out);
    let found = measures(&[&run]);
    let names: Vec<&str> = found.iter().map(|(name, _)| name.as_str()).collect();
    assert_eq!(names, ["fixed batches", "full pass", "full pass, state carried"]);
    let loss = |at: usize| format!("{:.4}", found[at].1["loss"].as_f64().unwrap());
    assert!(report.contains(&format!("best: iteration 40, test loss {} nats\n", loss(0))), "{report}");
    assert!(report.contains(&format!("one pass over the whole test text: loss {} nats (499 predictions)", loss(1))), "{report}");
    assert_eq!((&found[0].1["predictions"], &found[2].1["predictions"]), (&(200 * 64).into(), &499.into()));
    // The carried state sees the whole text before each prediction.
    assert_ne!(loss(1), loss(2));

    let plain = eval(&[&run]).ok();
    assert!(plain.stdout.starts_with(&format!("model: {}\nfixed batches: loss {} nats (", training.checkpoint("best").display(), loss(0))));
    // A checkpoint of the run, and the best of the report even where fewer batches chose another.
    let earlier = measures(&[&shown(&training.out.join("checkpoints/iter-30"))]);
    let line = format!("iteration 30: test loss {:.4} nats", earlier[0].1["loss"].as_f64().unwrap());
    assert!(report.contains(&line), "{line} in {report}");
}

#[test]
fn the_best_of_the_report_becomes_the_best_of_the_run() {
    let scratch = Scratch::new();
    // With so few predictions a worse checkpoint comes first now and then.
    let settings = ["eval_iterations=1", "batch_size=1", "eval_every=1", "max_iterations=12", "lr=0.0001"];
    let training = scratch.training("run", &settings);
    let report = training.run().ok().stdout;
    let model = format!("model: {}\n", training.checkpoint("best").display());
    assert!(report.contains(&model), "{model} in {report}");
    assert!(eval(&[&shown(&training.out)]).ok().stdout.starts_with(&model));
}

#[test]
fn another_text_can_be_scored() {
    let scratch = Scratch::new();
    let training = scratch.training("run", &[]);
    training.run().ok();
    let run = shown(&training.out);
    let (same, other) = (scratch.write("same.txt", words(300)), scratch.write("other.txt", "brown fox ".repeat(30)));
    let same = measures(&[&run, "--data", &shown(&same), "--batches", "3"]);
    assert_eq!((&same[0].1["predictions"], &same[1].1["predictions"]), (&(3 * 64).into(), &299.into()));
    assert_ne!(measures(&[&run, "--data", &shown(&other)])[1].1["loss"], same[1].1["loss"]);
    // What became of the text that was trained on does not matter.
    let own = measures(&[&run]);
    fs::remove_file(scratch.path("text.txt")).unwrap();
    assert_eq!(measures(&[&run]), own);

    // A checkpoint alone has no test text.
    let alone = scratch.path("alone");
    fs::rename(training.checkpoint("last"), &alone).unwrap();
    eval(&[&shown(&alone)]).refused(&["alone'", "lies outside its run", "--data FILE"]);
    measures(&[&shown(&alone), "--data", &shown(&other)]);
}

#[test]
fn texts_that_cannot_be_scored_are_named() {
    let scratch = Scratch::new();
    let training = scratch.training("run", &["max_iterations=1"]);
    training.run().ok();
    let run = shown(&training.out);
    let cases: [(&str, &[u8], &[&str]); 4] = [
        ("empty.txt", b"", &["empty.txt' is empty"]),
        ("latin.txt", b"the \xff fox the brown fox", &["latin.txt' is not UTF-8", "byte 4"]),
        ("short.txt", b"the fox", &["short.txt'", "the text has 7 tokens", "at least 17"]),
        ("zebra.txt", b"the brown zebra jumps. the fox", &["zebra.txt'", "character 11 of the text is 'z'"]),
    ];
    for (name, content, parts) in cases {
        let path = scratch.write(name, content);
        eval(&[&run, "--data", &shown(&path)]).refused(parts);
    }
    eval(&[&run, "--data", &shown(&scratch.path("missing.txt"))]).refused(&["missing.txt", "No such file"]);
    let none = eval(&[&run, "--batches", "0"]);
    assert!(none.code == Some(2) && none.stderr.contains("--batches"), "{none:?}");
    eval(&[&run, "--threads", "100000"]).refused(&["threads must be at most 1024"]);
}

#[test]
fn a_task_reads_no_text() {
    let scratch = Scratch::new();
    let training = scratch.task("run", &["copy_length=12", "copy_tokens=2", "max_iterations=2"]);
    training.run().ok();
    let (run, text) = (shown(&training.out), shown(&scratch.text("text.txt")));
    let found = measures(&[&run, "--batches", "5"]);
    assert_eq!((found.len(), &found[0].1["predictions"]), (1, &(5 * 4 * 2).into()));
    eval(&[&run, "--data", &text]).refused(&["--data does not fit this model", "reads no text"]);
}

#[test]
fn places_without_a_usable_model_are_named() {
    let scratch = Scratch::new();
    let training = scratch.training("run", &["max_iterations=2"]);
    training.run().ok();
    let run = shown(&training.out);
    eval(&[&shown(&scratch.path("missing"))]).refused(&["missing'", "No such file"]);
    eval(&[&shown(&scratch.path(""))]).refused(&["expected a run directory or a checkpoint"]);
    eval(&[&shown(&scratch.path("text.txt"))]).refused(&["text.txt'", "expected a run directory or a checkpoint"]);
    let best = training.checkpoint("best");
    for name in ["config.json", "model.safetensors", "tokenizer.json"] {
        let path = best.join(name);
        let whole = fs::read(&path).unwrap();
        fs::write(&path, &whole[..whole.len() / 2]).unwrap();
        eval(&[&run]).refused(&[name]);
        fs::write(&path, whole).unwrap();
    }
    fs::write(training.out.join("data/text.tokens"), "x").unwrap();
    eval(&[&run]).refused(&["text.tokens'", "is not a token file"]);
    fs::write(training.out.join("checkpoints/best"), "../../etc\n").unwrap();
    eval(&[&run]).refused(&["checkpoints/best", "expected the name of a checkpoint"]);
}
