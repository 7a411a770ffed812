//! `minrnn reproduce` killed before its changes of files: what is finished stays, and the tables come out the same.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::process::Command;

use serde_json::Value;

use crate::common::{Finished, Random, Scratch, leftovers, minrnn, shown, snapshot};
use crate::subject::remove;
use crate::trace::{calls, killed};

/// The target with the least to train.
const TARGET: &str = "xlstm-parity";

fn reproduce(out: &Path) -> Command {
    minrnn(&["reproduce", "--scale", "smoke", "--threads", "1", "--out", &shown(out), TARGET])
}

/// The scores of every training, without what depends on the clock; none if there is no folder yet.
fn scores(out: &Path) -> BTreeMap<PathBuf, Value> {
    if !out.exists() {
        return BTreeMap::new();
    }
    let files = snapshot(out).into_iter().filter(|(path, _)| path.ends_with("result.json"));
    let score = |(path, content): (PathBuf, Option<Vec<u8>>)| {
        let mut value: Value = serde_json::from_slice(&content.unwrap()).unwrap();
        without_times(&mut value);
        (path.strip_prefix(out).unwrap().to_owned(), value)
    };
    files.map(score).collect()
}

fn without_times(value: &mut Value) {
    match value {
        Value::Object(fields) => {
            fields.retain(|name, _| !["seconds", "per_s", "origin", "date"].iter().any(|part| name.contains(part)));
            fields.values_mut().for_each(without_times);
        }
        Value::Array(items) => items.iter_mut().for_each(without_times),
        _ => {}
    }
}

fn kill_at(out: &Path, watched: &Path, at: usize, expected: &BTreeMap<PathBuf, Value>) -> bool {
    remove(out);
    if !killed(&reproduce(out), watched, at) {
        return false;
    }
    let before: BTreeMap<_, _> = scores(out);
    Finished::of(&mut reproduce(out)).ok();
    let after = scores(out);
    assert!(before.iter().all(|(path, score)| after[path] == *score), "a finished training changed after {at} calls");
    assert_eq!(after, *expected, "killed in front of call {at}");
    assert!(out.join(format!("{TARGET}.md")).exists());
    // Another process may be writing beside the tables, so nothing is cleaned up there.
    assert_eq!(leftovers(&out.join("runs")), [] as [PathBuf; 0], "killed in front of call {at}");
    true
}

fn sweep(moments: impl FnOnce(usize) -> Vec<usize>) {
    let scratch = Scratch::in_memory();
    let watched = scratch.path("watched");
    let out = watched.join("out");
    std::fs::create_dir(&watched).unwrap();
    let n_calls = calls(&reproduce(&out), &watched).len();
    let expected = scores(&out);
    assert!(n_calls > 200 && !expected.is_empty(), "{n_calls} calls");
    for at in moments(n_calls) {
        assert!(kill_at(&out, &watched, at, &expected), "no call {at} of {n_calls}");
    }
}

#[test]
fn tables_come_out_the_same_after_a_kill_anywhere() {
    sweep(|n_calls| {
        let mut random = Random(4);
        (0..3).map(|_| 1 + random.below(n_calls as u64) as usize).chain([2, 4, 9]).collect()
    });
}

#[test]
#[ignore = "many minutes: every call in turn"]
fn tables_come_out_the_same_after_a_kill_in_front_of_every_call() {
    sweep(|n_calls| (1..=n_calls).collect());
}
