//! Devices on the real binary: they are listed, and names that do not fit are refused in a sentence.

mod common;

use common::{Finished, Scratch, minrnn, shown};

/// What the binary does with `args` where the environment names the device `variable`, or none.
fn told(args: &[&str], variable: Option<&str>) -> Finished {
    let mut command = minrnn(args);
    command.env_remove("MINRNN_DEVICE").envs(variable.map(|name| ("MINRNN_DEVICE", name)));
    Finished::of(&mut command)
}

const SCAN: [&str; 14] =
    ["bench", "scan", "--batch-size", "1", "--seq-len", "8", "--d-hidden", "4", "--iterations", "1", "--warmup", "0", "--threads", "1"];

#[test]
fn the_processor_is_listed() {
    let text = told(&["devices"], None).ok().stdout;
    assert!(text.lines().next().is_some_and(|line| line.starts_with("cpu") && line.ends_with("the processor")), "{text}");
}

#[test]
fn the_flag_comes_before_the_environment() {
    told(&SCAN, Some("cpu")).ok();
    let flagged = [SCAN.as_slice(), &["--device", "cpu"]].concat();
    told(&flagged, Some("nonsense")).ok();
}

#[test]
fn devices_that_are_not_there_are_refused_in_a_sentence() {
    for (name, expected) in [("nonsense", "there is no device 'nonsense'"), ("cpu:1", "there is no cpu:1"), ("cuda:9", "cuda")] {
        for (args, variable) in [([SCAN.as_slice(), &["--device", name]].concat(), None), (SCAN.to_vec(), Some(name))] {
            told(&args, variable).refused(&[expected]);
        }
    }
}

#[test]
fn a_training_on_a_device_that_is_not_there_leaves_no_directory() {
    let scratch = Scratch::new();
    let out = scratch.path("run");
    for device in [["--device", "cpu:7"], ["--set", "device=gpu"]] {
        told(&[&["train", "--out", &shown(&out)], &device[..]].concat(), None).failed(2, &[]);
        assert!(!out.exists());
    }
}
