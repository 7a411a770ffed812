//! `minrnn train --from`: a training that starts from a trained model.

mod common;

use std::fmt::Write;

use common::{Finished, Scratch, minrnn};

/// Machines that vibrate in a different way for each state.
fn machines(states: &[&str]) -> String {
    let mut table = String::from("machine,state,vibration\n");
    for machine in 0..6 * states.len() {
        let state = machine % states.len();
        for t in 0..12 {
            writeln!(table, "m{machine},{},{}", states[state], (t as f64 * (0.3 + 0.6 * state as f64) + machine as f64).sin()).unwrap();
        }
    }
    table
}

const SMALL: [&str; 10] =
    ["--set", "max_iterations=4", "--set", "d_model=8", "--set", "warmup=1", "--set", "checkpoint_every=4", "--set", "threads=1"];

#[test]
fn a_run_needs_no_more_than_new_data_to_go_on_as_another() {
    let scratch = Scratch::new();
    let data = scratch.write("machines.csv", machines(&["good", "worn"]));
    let more = scratch.write("more.csv", machines(&["good", "worn", "broken"]));
    let (first, second) = (scratch.path("first"), scratch.path("second"));
    let columns = ["--task", "classify", "--group", "machine", "--target", "state"];
    Finished::of(minrnn(&["train"]).args(columns).args(SMALL).arg("--data").arg(&data).arg("--out").arg(&first)).ok();
    let report = Finished::of(minrnn(&["train"]).arg("--from").arg(&first).arg("--data").arg(&more).arg("--out").arg(&second)).ok().stdout;
    let told = format!("the weights of '{}/", first.display());
    assert!(report.contains(&told) && report.contains("may have been trained on what is scored here"), "{report}");
    let experiment = std::fs::read_to_string(second.join("experiment.toml")).unwrap();
    for kept in ["d_model = 8", "mixer = \"s4d\"", "target = [\"state\"]", "max_iterations = 4"] {
        assert!(experiment.contains(kept), "{kept}: {experiment}");
    }
    let predicted = Finished::of(minrnn(&["predict"]).arg(&second).arg("--data").arg(&more)).ok().stdout;
    assert!(predicted.starts_with("machine,state,probability of broken,probability of good,probability of worn\n"), "{predicted}");
    // The model that it began with may be gone.
    std::fs::remove_dir_all(&first).unwrap();
    Finished::of(minrnn(&["train", "--resume", "--set", "max_iterations=6"]).arg("--out").arg(&second)).ok();
}

#[test]
fn what_is_no_model_to_start_from_is_told_before_anything_is_written() {
    let scratch = Scratch::new();
    let data = scratch.write("machines.csv", machines(&["good", "worn"]));
    let text = scratch.write("text.txt", "to be or not to be ".repeat(100));
    let (first, out) = (scratch.path("first"), scratch.path("out"));
    let columns = ["--task", "classify", "--group", "machine", "--target", "state"];
    Finished::of(minrnn(&["train"]).args(columns).args(SMALL).arg("--data").arg(&data).arg("--out").arg(&first)).ok();
    let refused = |args: &[&str], expected: &str| {
        Finished::of(minrnn(&["train"]).args(args).arg("--out").arg(&out)).refused(&[expected]);
        assert!(!out.exists(), "{args:?}");
    };
    let (first, data, text) = (first.to_str().unwrap(), data.to_str().unwrap(), text.to_str().unwrap());
    refused(&["--from", first], &format!("a training from the model of '{first}' needs a table; give one with --data FILE"));
    refused(&["--from", "nothing-there", "--data", data], "nothing-there");
    refused(&["--from", text, "--data", data], "text.txt");
    refused(&["--from", first], "needs a table");
    refused(&["text", "--from", first, "--data", text], "reads 1 number a step, and these data are tokens");
    refused(&["--from", first, "--data", data, "--set", "d_model=16"], "has d_model = 8, and this one 16");
    refused(&["--from", first, "--data", data, "--target", "machine"], "names sequences and holds the class at once");
}
