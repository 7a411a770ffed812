//! Kills (SIGKILL) before every change of a file.

use std::fs;

use crate::common::{Finished, Random, Scratch, minrnn, shown, snapshot};
use crate::subject::Subject;
use crate::trace::{calls, killed};

/// Kills the training before its call number `at`, resumes it, and compares; false if it has no such call.
fn kill_at(scratch: &Scratch, subject: &Subject, at: usize) -> bool {
    subject.clear();
    let was_killed = killed(&subject.command(), &scratch.path("watched"), at);
    if was_killed {
        subject.recover(&format!("killed in front of call {at}"));
    }
    was_killed
}

fn all(make: fn(&Scratch) -> Subject) {
    let scratch = Scratch::in_memory();
    let subject = make(&scratch);
    let n_calls = (1..).take_while(|&at| kill_at(&scratch, &subject, at)).count();
    assert!(n_calls > 200, "only {n_calls} calls were seen");
}

fn some(make: fn(&Scratch) -> Subject, seed: u64, moments: usize) {
    let scratch = Scratch::in_memory();
    let subject = make(&scratch);
    let n_calls = calls(&subject.command(), &scratch.path("watched")).len() as u64;
    assert!(n_calls > 200, "only {n_calls} calls were seen");
    let mut random = Random(seed);
    // The first calls create the run, and are few among the others.
    let early = (0..moments / 3).map(|_| 1 + random.below(40)).collect::<Vec<_>>();
    let late = (early.len()..moments).map(|_| 1 + random.below(n_calls)).collect::<Vec<_>>();
    for at in early.into_iter().chain(late) {
        assert!(kill_at(&scratch, &subject, at as usize), "no call {at} of {n_calls}");
    }
}

#[test]
fn a_training_on_text_killed_anywhere_goes_on_bit_for_bit() {
    some(Subject::text, 1, 12);
}

#[test]
fn a_training_on_a_task_killed_anywhere_goes_on_bit_for_bit() {
    some(Subject::task, 2, 6);
}

#[test]
#[ignore = "minutes: every call in turn"]
fn a_training_on_text_killed_in_front_of_every_call_goes_on_bit_for_bit() {
    all(Subject::text);
}

#[test]
#[ignore = "minutes: every call in turn"]
fn a_training_on_a_task_killed_in_front_of_every_call_goes_on_bit_for_bit() {
    all(Subject::task);
}

#[test]
fn a_resume_killed_anywhere_can_be_resumed() {
    let scratch = Scratch::in_memory();
    let subject = Subject::text(&scratch);
    let watched = scratch.path("watched");
    let n_calls = calls(&subject.command(), &watched).len() as u64;
    let mut random = Random(3);
    for _ in 0..2 {
        subject.clear();
        // After the first checkpoint, then four times more.
        assert!(killed(&subject.command(), &watched, (n_calls / 3 + random.below(n_calls / 3)) as usize));
        for _ in 0..4 {
            let resume = minrnn(&["train", "--resume", "--out", &shown(&subject.training.out)]);
            killed(&resume, &watched, 1 + random.below(60) as usize);
        }
        subject.recover("killed five times");
    }
}

/// Commands that write one file: killed before any call, they leave all of it or nothing, and can be repeated.
#[test]
fn what_pack_and_generate_write_is_whole_or_absent() {
    let scratch = Scratch::in_memory();
    let training = scratch.training("run", &["d_model=8", "max_iterations=2"]);
    training.run().ok();
    let run = shown(&training.out);
    let watched = scratch.path("watched");
    let out = shown(&watched.join("out"));
    let cases: [&[&str]; 2] = [
        &["pack", &run, "-o", &out],
        &["generate", &run, "--prompt", "the ", "--max-tokens", "3", "--threads", "1", "--save-session", &out],
    ];
    for args in cases {
        let clear = || {
            let _ = fs::remove_dir_all(&watched);
            fs::create_dir(&watched).unwrap();
        };
        clear();
        let n_calls = calls(&minrnn(args), &watched).len();
        let whole = snapshot(&watched);
        assert!(n_calls >= 5 && whole.len() == 1, "{args:?}: {n_calls} calls");
        for at in 1..=n_calls {
            clear();
            assert!(killed(&minrnn(args), &watched, at), "{args:?}: no call {at}");
            let left = snapshot(&watched);
            let path = watched.join("out");
            assert!(!left.contains_key(&path) || left[&path] == whole[&path], "{args:?}: half of it after {at} calls");
            Finished::of(&mut minrnn(args)).ok();
            assert!(fs::read(&path).unwrap() == whole[&path].clone().unwrap(), "{args:?}: other bytes after {at} calls");
        }
    }
}
