//! Power failures: what of a run's files is safe at any moment, and what becomes of whatever else is left.

use std::path::Path;

use crate::common::{Random, Scratch};
use crate::disk::{Disk, Left};
use crate::subject::Subject;
use crate::trace::{Call, calls};

const RUN: &str = "torn";

/// What the training did, from an empty directory on.
fn story(scratch: &Scratch, subject: &Subject) -> Vec<Call> {
    let calls = calls(&subject.command(), &scratch.path("watched"));
    assert!(calls.len() > 200, "only {} calls were seen", calls.len());
    calls
}

/// The name that a pointer would hold after a power failure.
fn pointed(disk: &Disk, pointer: &str) -> Option<String> {
    let file = Path::new(RUN).join("checkpoints").join(pointer);
    disk.safe_file(&file).map(|text| String::from_utf8(text.to_vec()).unwrap().trim().to_owned())
}

#[test]
fn every_file_is_synced_before_it_gets_its_name_and_every_pointer_before_what_it_replaces_goes() {
    for make in [Subject::text, Subject::task] {
        let scratch = Scratch::in_memory();
        let subject = make(&scratch);
        let mut disk = Disk::new();
        let checkpoints = Path::new(RUN).join("checkpoints");
        let (mut published, mut removed) = (0, 0);
        for (at, call) in story(&scratch, &subject).iter().enumerate() {
            let moment = format!("call {}: {} {} {}", at + 1, call.name, call.path.display(), call.to.display());
            if call.name == "rename" {
                assert!(disk.is_safe(&call.path), "{moment}: it is not synced");
                published += 1;
            }
            disk.apply(call);
            // At any moment, a power failure that takes all it can leaves pointers to whole checkpoints.
            let pointers = ["last", "best"].map(|pointer| pointed(&disk, pointer));
            for name in pointers.iter().flatten() {
                let files = disk.safe_names(&checkpoints.join(name));
                assert!(files.len() >= 5, "{moment}: {name} has {files:?}");
                let digests = disk.safe_file(&checkpoints.join(name).join("SHA256SUMS")).unwrap();
                assert_eq!(String::from_utf8_lossy(digests).lines().count() + 1, files.len(), "{moment}");
                assert!(disk.is_safe(&checkpoints.join(name)), "{moment}: {name} is pointed to");
            }
            if call.name == "unlink" && call.path.starts_with(&checkpoints) {
                let folder = call.path.parent().unwrap().file_name().unwrap().to_str().unwrap();
                let name = folder.strip_suffix(".old.tmp").unwrap_or_else(|| panic!("{moment}: removed under its own name"));
                assert!(!disk.safe_names(&checkpoints).iter().any(|safe| safe == name), "{moment}: it still has its name");
                removed += 1;
            }
        }
        assert!(published > 30 && removed >= 5, "{published} names given, {removed} files removed");
        for name in ["experiment.toml", "metrics.jsonl", "checkpoints", "curves.svg"] {
            assert!(disk.is_safe(&Path::new(RUN).join(name)), "{name} is not safe at the end");
        }
    }
}

fn fail(scratch: &Scratch, subject: &Subject, story: &[Call], at: usize, left: Left) {
    let mut disk = Disk::new();
    story[..at].iter().for_each(|call| disk.apply(call));
    subject.clear();
    disk.leave(left, &scratch.path("watched"));
    subject.recover(&format!("power failure after {at} calls, left {left:?}"));
}

fn some(make: fn(&Scratch) -> Subject, seed: u64, moments: u64) {
    let scratch = Scratch::in_memory();
    let subject = make(&scratch);
    let story = story(&scratch, &subject);
    let mut random = Random(seed);
    for moment in 0..moments {
        let at = random.below(story.len() as u64 + 1) as usize;
        let left = if moment % 4 == 0 { Left::Synced } else { Left::Some(random.below(u64::MAX)) };
        fail(&scratch, &subject, &story, at, left);
    }
}

#[test]
fn a_run_goes_on_bit_for_bit_after_a_power_failure_at_any_moment() {
    some(Subject::text, 5, 12);
    some(Subject::task, 6, 6);
}

#[test]
#[ignore = "many minutes: every moment in turn"]
fn a_run_goes_on_bit_for_bit_after_a_power_failure_at_every_moment() {
    for make in [Subject::text, Subject::task] {
        let scratch = Scratch::in_memory();
        let subject = make(&scratch);
        let story = story(&scratch, &subject);
        for at in 0..=story.len() {
            for left in [Left::Synced, Left::Some(at as u64), Left::Some(u64::MAX - at as u64)] {
                fail(&scratch, &subject, &story, at, left);
            }
        }
    }
}
