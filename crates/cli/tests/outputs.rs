//! What the commands write their results to: never over what they read or what a model was trained on, and never into a run.

mod common;

use std::fs;
use std::path::Path;

use common::{Finished, Scratch, assert_untouched, minrnn, shown, snapshot, told};

#[test]
fn no_command_writes_into_a_run_or_a_checkpoint() {
    let scratch = Scratch::new();
    let training = scratch.training("run", &["max_iterations=4"]);
    training.run().ok();
    let (run, checkpoint) = (shown(&training.out), training.checkpoint("best"));
    let weights = shown(&checkpoint.join("model.safetensors"));
    let before = snapshot(&scratch.path(""));
    let in_run = [
        &["pack", &run, "-o", &weights][..],
        &["pack", &run, "-o", &shown(&training.out.join("experiment.toml"))],
        &["pack", &shown(&checkpoint), "-o", &shown(&checkpoint.join("new/model.minrnn"))],
        &["export", &run, "--format", "min-gru-pytorch", "-o", &weights],
        &["import", &weights, "--format", "min-gru-pytorch", "-o", &shown(&checkpoint.join("imported"))],
        &["plot", &run, "-o", &shown(&training.out.join("curves.svg"))],
        &["generate", &run, "--max-tokens", "3", "--save-session", &weights],
        &["predict", &run, "--data", &shown(&scratch.path("text.txt")), "--out", &weights],
        &["eval", &run, "--data", &shown(&scratch.path("text.txt")), "--logits", &shown(&training.out.join("logits.npy"))],
        &["eval", &run, "--data", &shown(&scratch.path("text.txt")), "--hidden", &shown(&checkpoint.join("hidden.csv")), "--layer", "1"],
        &["eval", &run, "--data", &shown(&scratch.path("text.txt")), "--embeddings", &weights],
        &["reproduce", "table1", "--scale", "smoke", "--out", &shown(&training.out.join("tables"))],
        &["train", "--out", &shown(&training.out.join("checkpoints/again"))],
    ];
    for args in in_run {
        told(args).refused(&["lies in the run", "choose another place"]);
    }
    // A checkpoint that was taken out of its run.
    let alone = scratch.path("alone");
    fs::create_dir(&alone).unwrap();
    for name in ["config.json", "model.safetensors"] {
        fs::copy(checkpoint.join(name), alone.join(name)).unwrap();
    }
    told(&["pack", &shown(&alone), "-o", &shown(&alone.join("model.safetensors"))]).refused(&["lies in the checkpoint"]);
    fs::remove_dir_all(alone).unwrap();
    assert_untouched(&scratch.path(""), &before);
}

#[test]
fn no_command_writes_over_what_it_reads() {
    let scratch = Scratch::new();
    let table = scratch.write("wave.csv", (0..60).fold("x\n".to_owned(), |table, t| format!("{table}{}\n", t % 7)));
    let data = shown(&table);
    let args = ["--task", "forecast", "--data", &data, "--target", "x"].map(str::to_owned).into();
    let training = common::Training { args, ..scratch.task("run", &["max_iterations=4"]) };
    training.run().ok();
    let run = shown(&training.out);
    let text = scratch.training("text", &["max_iterations=4"]);
    text.run().ok();
    let (prompt, packed) = (shown(&scratch.path("text.txt")), shown(&scratch.path("model.minrnn")));
    told(&["pack", &shown(&text.out), "-o", &packed]).ok();
    let forecaster = shown(&scratch.path("forecaster.minrnn"));
    told(&["pack", &run, "-o", &forecaster]).ok();
    fs::copy(text.out.join("metrics.jsonl"), scratch.path("log.svg")).unwrap();
    fs::copy(text.out.join("metrics.jsonl"), scratch.path("log.png")).unwrap();
    let linked = scratch.path("linked.csv");
    fs::hard_link(&table, &linked).unwrap();
    let before = snapshot(&scratch.path(""));
    let is_input = [
        &["predict", &run, "--data", &data, "--out", &data][..],
        &["predict", &run, "--data", &data, "--out", &shown(&linked)],
        &["predict", &run, "--data", &data, "--out", &shown(&scratch.path("text/../wave.csv"))],
        &["predict", &forecaster, "--data", &data, "--out", &forecaster],
        &["predict", &run, "--data", &data, "--logits", &data],
        &["predict", &forecaster, "--data", &data, "--hidden", &shown(&linked), "--layer", "1"],
        &["eval", &forecaster, "--data", &data, "--embeddings", &data],
        &["generate", &packed, "--prompt-file", &prompt, "--save-session", &prompt],
        &["generate", &packed, "--save-session", &packed],
        &["plot", &shown(&scratch.path("log.svg")), "-o", &shown(&scratch.path("log.svg"))],
        &["plot", &shown(&scratch.path("log.png")), "-o", &shown(&scratch.path("log.svg"))],
    ];
    for args in is_input {
        told(args).refused(&["is the input", "give another file to write"]);
    }
    let [writer, around_text] = [&text.out, &scratch.path("text/../text.txt")].map(|path| shown(path));
    let is_learned = [
        &["pack", &writer, "-o", &prompt][..],
        &["pack", &run, "-o", &shown(&linked)],
        &["export", &writer, "--format", "min-gru-pytorch", "-o", &around_text],
        &["export", &run, "--format", "onnx", "-o", &data],
    ];
    for args in is_learned {
        told(args).refused(&["is what the model was trained on", "give another file to write"]);
    }
    if Path::new("/dev/null").exists() {
        told(&["pack", &run, "-o", "/dev/null"]).refused(&["/dev/null", "a pipe or a device"]);
        told(&["predict", &run, "--data", &data, "--out", "/dev/full"]).refused(&["/dev/full", "a pipe or a device"]);
    }
    told(&["predict", &run, "--data", &data, "--out", &shown(&scratch.path(""))]).refused(&["is a directory"]);
    let [once, around] = ["once.csv", "text/../once.csv"].map(|name| shown(&scratch.path(name)));
    told(&["predict", &run, "--data", &data, "--out", &once, "--logits", &around]).refused(&["once.csv", "give each its own file"]);
    told(&["predict", &run, "--data", &data, "--hidden", &once, "--logits", &around]).refused(&["once.csv", "give each its own file"]);
    if Path::new("/dev/stdin").exists() {
        let into_itself = minrnn(&["stream", &forecaster, "--save-state", &data]).stdin(fs::File::open(&table).unwrap()).output().unwrap();
        Finished::from(into_itself).refused(&["is the input", "give another file to write"]);
    }
    assert_untouched(&scratch.path(""), &before);
    #[cfg(unix)]
    {
        // The target of a link is written, not the link itself; an open file under another name is not replaced.
        let [link, open, real] = ["link.csv", "open.csv", "real.csv"].map(|name| scratch.path(name));
        std::os::unix::fs::symlink("real.csv", &link).unwrap();
        told(&["predict", &run, "--data", &data, "--out", &shown(&link)]).ok();
        assert!(link.is_symlink() && fs::read_to_string(&real).unwrap().lines().count() == 2);
        if Path::new("/proc/self/fd").exists() {
            std::os::unix::fs::symlink("/proc/self/fd/1", &open).unwrap();
            told(&["predict", &run, "--data", &data, "--out", &shown(&open)]).refused(&[
                "open.csv",
                "open already",
                "give a file to write",
            ]);
            assert!(open.is_symlink());
        }
    }
    // What was written before may be written again.
    let out = shown(&scratch.path("out.csv"));
    told(&["predict", &run, "--data", &data, "--out", &out]).ok();
    told(&["predict", &run, "--data", &data, "--out", &out]).ok();
}

#[test]
fn no_command_writes_over_what_a_model_was_trained_on() {
    let scratch = Scratch::new();
    let table = |rows: u32| (0..rows).fold("x\n".to_owned(), |table, t| format!("{table}{}\n", t % 7));
    let (data, other) = (shown(&scratch.write("wave.csv", table(60))), shown(&scratch.write("other.csv", table(40))));
    let episodes = shown(&scratch.path("medium.trajectories"));
    told(&["rollout", "--behavior", "medium", "--episodes", "4", "--record", &episodes]).ok();
    let of_file = |out: &str, args: &[&str]| {
        let args = args.iter().map(ToString::to_string).collect();
        common::Training { args, ..scratch.task(out, &["max_iterations=4"]) }
    };
    let forecaster = of_file("forecaster", &["--task", "forecast", "--data", &data, "--target", "x"]);
    let policy = of_file("policy", &["--task", "policy", "--data", &episodes]);
    let writer = scratch.training("writer", &["max_iterations=4"]);
    let [forecaster, policy, writer] = [forecaster, policy, writer].map(|training| {
        training.run().ok();
        training
    });
    let checkpoint = shown(&forecaster.checkpoint("best"));
    let [forecaster, policy, writer] = [forecaster, policy, writer].map(|training| shown(&training.out));
    let text = shown(&scratch.path("text.txt"));
    let linked = scratch.path("linked.csv");
    fs::hard_link(&data, &linked).unwrap();
    let linked = shown(&linked);
    let before = snapshot(&scratch.path(""));
    let is_learned = [
        &["predict", &forecaster, "--data", &other, "--out", &data][..],
        &["predict", &checkpoint, "--data", &other, "--out", &linked],
        &["predict", &forecaster, "--data", &other, "--logits", &data],
        &["eval", &forecaster, "--data", &other, "--logits", &data],
        &["eval", &forecaster, "--data", &other, "--hidden", &linked],
        &["eval", &checkpoint, "--data", &other, "--embeddings", &data],
        &["score", &forecaster, "--data", &other, "--out", &data],
        &["score", &writer, "--data", &other, "--out", &text],
        &["stream", &forecaster, "--save-state", &data],
        &["stream", &writer, "--save-state", &text],
        &["generate", &writer, "--max-tokens", "3", "--save-session", &text],
        &["rollout", &policy, "--episodes", "2", "--record", &episodes],
        &["pack", &policy, "-o", &episodes],
    ];
    for args in is_learned {
        told(args).refused(&["is what the model was trained on", "give another file to write"]);
    }
    assert_untouched(&scratch.path(""), &before);
    for run in [&forecaster, &policy, &writer] {
        told(&["eval", run]).ok();
    }
}

#[test]
fn an_output_without_a_folder_is_refused_before_anything_is_read_or_played() {
    let scratch = Scratch::new();
    let [nowhere, none] = ["nowhere/out", "none"].map(|name| shown(&scratch.path(name)));
    let outputs = [
        &["stream", &none, "--save-state", &nowhere][..],
        &["score", &none, "--data", &none, "--out", &nowhere],
        &["predict", &none, "--data", &none, "--out", &nowhere],
        &["generate", &none, "--save-session", &nowhere],
        &["rollout", "--behavior", "random", "--episodes", "2", "--record", &nowhere],
    ];
    for args in outputs {
        told(args).refused(&["there is no directory '", "nowhere' for '", "make it first"]);
    }
    assert!(snapshot(&scratch.path("")).is_empty());
}

#[test]
fn a_recording_is_written_over_a_recording_alone() {
    let scratch = Scratch::new();
    let (text, recording) = (scratch.write("thesis.txt", "years of work"), shown(&scratch.path("medium.trajectories")));
    let record = |path: &str| told(&["rollout", "--behavior", "medium", "--episodes", "2", "--record", path]);
    record(&shown(&text)).refused(&["thesis.txt' exists and is not a file of trajectories", "give another file to write"]);
    assert_eq!(fs::read_to_string(&text).unwrap(), "years of work");
    (0..2).for_each(|_| _ = record(&recording).ok());
}
