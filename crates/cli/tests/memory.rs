//! What needs more memory than there is, is refused before anything is made; and the estimate is close to what is used.

mod common;

use std::fs;
use std::process::{Command, Stdio};

use common::{Finished, Scratch, Training, minrnn, shown, signal, wait_until};
use serde_json::Value;

/// Checks that a training is refused and leaves nothing behind.
fn refused_under(training: &Training, limit: &str, parts: &[&str]) {
    Finished::of(&mut training.command(&["--memory-limit", limit])).refused(parts);
    assert!(!training.out.exists(), "{limit}");
}

#[test]
fn settings_that_need_more_than_the_limit_are_refused_with_the_largest_part_and_a_remedy() {
    let scratch = Scratch::new();
    let cases: [(&[&str], &[&str]); 5] = [
        (&["batch_size=1048576"], &["training needs about", "activations", "the memory limit is 512 MiB", "lower train.batch_size"]),
        (&["d_model=512", "n_layers=1024"], &["moments", "lower model.d_model or model.n_layers"]),
        (&["mixer=mamba", "ff=none", "d_model=1024", "d_state=4096", "batch_size=64"], &["states", "model.d_state"]),
        (&["mixer=m-lstm", "n_heads=1", "d_model=4096", "batch_size=256", "ff=none"], &["states"]),
        (&["bpe_vocab_size=1048576", "tokenizer=bpe", "batch_size=256", "seq_len=256"], &["activations"]),
    ];
    for (settings, parts) in cases {
        refused_under(&scratch.training("run", settings), "512MiB", parts);
    }
    let copying = scratch.task("run", &["copy_length=16777216", "batch_size=1024"]);
    refused_under(&copying, "600MB", &["activations", "the memory limit is 572 MiB"]);
}

#[test]
fn one_long_sequence_that_makes_batches_large_is_named() {
    let scratch = Scratch::new();
    let lengths = [3; 60].into_iter().chain([20_000]);
    let rows = lengths.enumerate().flat_map(|(id, length)| (0..length).map(move |t| format!("{id},{},{t}\n", ["up", "down"][id % 2])));
    let table = scratch.write("ragged.csv", std::iter::once("id,way,x\n".to_owned()).chain(rows).collect::<String>());
    let args = ["--task", "classify", "--data", &shown(&table), "--group", "id", "--target", "way"].map(str::to_owned).into();
    let training = Training { args, ..scratch.task("run", &["batch_size=64"]) };
    Finished::of(&mut training.command(&["--memory-limit", "300MiB"])).refused(&[
        "training needs about",
        "the memory limit is 300 MiB",
        "the longest sequence has 20000 steps, the mean is ",
        "up to 64 sequences of 20000 steps each; cut it, or set train.batch_size",
    ]);
}

#[test]
fn a_limit_can_be_a_setting_and_the_flag_comes_before_it() {
    let scratch = Scratch::new();
    let limited = scratch.training("run", &["memory_limit=10MB"]);
    limited.run().refused(&["training needs about", "the memory limit is 9.54 MiB"]);
    assert!(!limited.out.exists());
    let roomy = scratch.training("roomy", &["memory_limit=10MB", "max_iterations=1", "eval_iterations=1"]);
    let finished = Finished::of(&mut roomy.command(&["--memory-limit", "1GiB"])).ok();
    assert!(finished.stderr.lines().any(|line| line.starts_with("about ") && line.contains(" of memory")), "{finished:?}");
    assert!(fs::read_to_string(roomy.out.join("experiment.toml")).unwrap().contains("memory_limit = \"1GiB\""));
    for size in ["", "4", "4 parsecs", "-1GiB", "0"] {
        let finished = Finished::of(&mut scratch.training("none", &[]).command(&[&format!("--memory-limit={size}")]));
        assert_eq!(finished.code, Some(2), "{finished:?}");
        assert!(size == "4" || finished.stderr.contains("such as 4GiB"), "{finished:?}");
    }
}

#[cfg(target_os = "linux")]
#[test]
fn the_limit_of_the_shell_counts() {
    let scratch = Scratch::new();
    let training = scratch.training("run", &["batch_size=65536", "seq_len=1024"]);
    let command = training.command(&[]);
    let mut limited = Command::new("sh");
    limited.args(["-c", "ulimit -v 2000000; exec \"$0\" \"$@\""]).arg(command.get_program()).args(command.get_args());
    Finished::of(limited.stdin(Stdio::null())).refused(&["training needs about", "the limit on address space (ulimit -v) leaves"]);
    assert!(!training.out.exists());
}

#[test]
fn evaluation_and_generation_are_refused_too() {
    let scratch = Scratch::new();
    let training = scratch.training("run", &["max_iterations=2", "eval_iterations=1"]);
    training.run().ok();
    let run = shown(&training.out);
    let refusal = ["needs about", "the memory limit is 20.0 MiB"];
    Finished::of(&mut minrnn(&["eval", &run, "--memory-limit", "20MiB"])).refused(&refusal);
    let generated = Finished::of(&mut minrnn(&["generate", &run, "--memory-limit", "20MiB"]));
    generated.failed(2, &refusal);
    assert_eq!(generated.stdout, "");
    Finished::of(&mut minrnn(&["eval", &run, "--batches", "1", "--memory-limit", "1GiB"])).ok();
    let (packed, text) = (shown(&scratch.path("packed")), shown(&scratch.path("text.txt")));
    Finished::of(&mut minrnn(&["pack", &run, "-o", &packed])).ok();
    let scored = |limit| Finished::of(&mut minrnn(&["eval", &packed, "--data", &text, "--memory-limit", limit]));
    scored("20MiB").refused(&refusal);
    scored("1GiB").ok();
    // A resumed training is checked again.
    let mut resumed = training.with(&["max_iterations=4"]).command(&["--resume", "--memory-limit", "20MiB"]);
    Finished::of(&mut resumed).failed(2, &refusal);
    training.with(&["max_iterations=4"]).resume().ok();
}

#[test]
fn packing_is_refused_before_anything_is_written() {
    let scratch = Scratch::new();
    let training = scratch.training("run", &["max_iterations=1", "eval_iterations=1"]);
    training.run().ok();
    let (run, packed) = (shown(&training.out), shown(&scratch.path("packed")));
    let pack = |limit| Finished::of(&mut minrnn(&["pack", &run, "-o", &packed, "--memory-limit", limit]));
    pack("20MiB").refused(&["packing needs about", "the memory limit is 20.0 MiB"]);
    assert!(!scratch.path("packed").exists());
    pack("1GiB").ok();
}

#[test]
fn predicting_is_refused_and_the_length_of_sequences_counts() {
    let scratch = Scratch::new();
    let table = |steps: usize| {
        (0..4 * steps).fold("id,kind,x\n".to_owned(), |rows, i| format!("{rows}s{},{},{}\n", i / steps, i / steps % 2, i % 7))
    };
    let data = shown(&scratch.write("short.csv", table(8)));
    let args = ["--task", "classify", "--data", &data, "--group", "id", "--target", "kind"].map(str::to_owned).into();
    let training = Training { args, ..scratch.task("run", &["max_iterations=1", "batch_size=4", "d_model=64", "train_fraction=0.5"]) };
    training.run().ok();
    let run = shown(&training.out);
    let refusal = ["needs about", "the memory limit is"];

    // Enough for the sequences that were trained on, and not for these.
    let long = shown(&scratch.write("long.csv", table(20_000)));
    for command in ["predict", "eval"] {
        let limited = |data: &str| Finished::of(&mut minrnn(&[command, &run, "--data", data, "--memory-limit", "70MiB"]));
        limited(&data).ok();
    }
    Finished::of(&mut minrnn(&["eval", &run, "--data", &long, "--memory-limit", "70MiB"])).refused(&refusal);
    Finished::of(&mut minrnn(&["predict", &run, "--data", &data, "--memory-limit", "20MiB"])).refused(&refusal);
    let packed = shown(&scratch.path("packed"));
    Finished::of(&mut minrnn(&["pack", &run, "-o", &packed])).ok();
    Finished::of(&mut minrnn(&["eval", &packed, "--data", &data, "--memory-limit", "20MiB"])).refused(&refusal);
    Finished::of(&mut minrnn(&["eval", &packed, "--data", &data, "--memory-limit", "1GiB"])).ok();
}

fn inspected(arguments: &[&str]) -> Value {
    let finished = Finished::of(&mut minrnn(&[&["inspect"], arguments, &["--json"]].concat())).ok();
    serde_json::from_str(&finished.stdout).unwrap()
}

#[test]
fn inspect_tells_the_memory_of_training_and_of_use() {
    let told = inspected(&["shakespeare-transformer"]);
    let training = &told["memory_of_training"];
    let parts = training["parts"].as_object().unwrap().values().map(|bytes| bytes.as_u64().unwrap()).sum::<u64>();
    assert_eq!(training["bytes"].as_u64().unwrap(), parts);
    assert!(parts > 200 << 20 && parts < 8 << 30, "{told}");
    // Three layers of keys and values of 384 channels, in f32.
    assert_eq!(told["memory_of_use"]["each_token"], 3 * 2 * 384 * 4);
    let smaller = inspected(&["shakespeare-transformer", "--set", "checkpoint_blocks=true"]);
    assert!(smaller["memory_of_training"]["bytes"].as_u64() < training["bytes"].as_u64());
    let text = Finished::of(&mut minrnn(&["inspect", "shakespeare-min-gru"])).ok().stdout;
    for part in ["memory for training\n", "moments", "total", "memory for use\n", "each sequence"] {
        assert!(text.contains(part), "{part}: {text}");
    }
    let told = Finished::of(&mut minrnn(&["inspect", "shakespeare-min-gru", "--json"])).ok().stdout;
    assert!(told.ends_with("}\n") && !told.contains("each_token\":null"), "{told}");
}

/// The most memory of the process so far, in bytes.
#[cfg(target_os = "linux")]
fn peak(id: u32) -> Option<u64> {
    let status = fs::read_to_string(format!("/proc/{id}/status")).ok()?;
    let kib = status.lines().find_map(|line| line.strip_prefix("VmHWM:"))?.split_whitespace().next()?.parse::<u64>().ok()?;
    Some(kib << 10)
}

#[cfg(target_os = "linux")]
#[test]
fn what_is_told_is_within_a_factor_of_two_of_what_is_had() {
    let scratch = Scratch::new();
    let settings =
        ["d_model=128", "n_layers=3", "seq_len=128", "batch_size=16", "max_iterations=1000", "eval_iterations=1", "eval_every=1000"];
    let training = scratch.training("run", &settings);
    let mut child = training.spawn();
    wait_until(&mut child, || training.logged() >= 3);
    let found = peak(child.id()).expect("it is still there");
    signal(&child, "INT");
    assert_eq!(child.wait().unwrap().code(), Some(1));
    let told = inspected(&[&shown(&training.out)])["memory_of_training"]["bytes"].as_u64().unwrap();
    assert!(told > found / 2 && told < 2 * found, "told {told}, found {found}");
}
