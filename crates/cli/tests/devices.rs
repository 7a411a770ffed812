//! Devices on the real binary: they are listed, and names that do not fit are refused in a sentence.

use std::process::{Command, Output};

fn minrnn(args: &[&str], variable: Option<&str>) -> Output {
    let mut command = Command::new(env!("CARGO_BIN_EXE_minrnn"));
    command.env_remove("MINRNN_DEVICE").args(args);
    if let Some(name) = variable {
        command.env("MINRNN_DEVICE", name);
    }
    command.output().expect("the program starts")
}

const SCAN: [&str; 14] =
    ["bench", "scan", "--batch-size", "1", "--seq-len", "8", "--d-hidden", "4", "--iterations", "1", "--warmup", "0", "--threads", "1"];

#[test]
fn the_processor_is_listed() {
    let found = minrnn(&["devices"], None);
    assert!(found.status.success());
    let text = String::from_utf8(found.stdout).unwrap();
    assert!(text.lines().next().is_some_and(|line| line.starts_with("cpu") && line.ends_with("the processor")), "{text}");
}

#[test]
fn the_flag_comes_before_the_environment() {
    assert!(minrnn(&SCAN, Some("cpu")).status.success());
    let flagged = [SCAN.as_slice(), &["--device", "cpu"]].concat();
    assert!(minrnn(&flagged, Some("nonsense")).status.success());
}

#[test]
fn devices_that_are_not_there_are_refused_in_a_sentence() {
    for (name, expected) in [("nonsense", "there is no device 'nonsense'"), ("cpu:1", "there is no cpu:1"), ("cuda:9", "cuda")] {
        for (args, variable) in [([SCAN.as_slice(), &["--device", name]].concat(), None), (SCAN.to_vec(), Some(name))] {
            let refused = minrnn(&args, variable);
            let said = String::from_utf8_lossy(&refused.stderr).into_owned();
            assert_eq!(refused.status.code(), Some(2), "{name}: {said}");
            assert!(said.starts_with("error: ") && said.contains(expected), "{name}: {said}");
        }
    }
}

#[test]
fn a_training_on_a_device_that_is_not_there_leaves_no_directory() {
    let scratch = tempfile::tempdir().unwrap();
    let out = scratch.path().join("run");
    let refused = minrnn(&["train", "--device", "cpu:7", "--out", out.to_str().unwrap()], None);
    assert_eq!(refused.status.code(), Some(2));
    assert!(!out.exists());
    let refused = minrnn(&["train", "--set", "device=gpu", "--out", out.to_str().unwrap()], None);
    assert_eq!(refused.status.code(), Some(2));
    assert!(!out.exists());
}
