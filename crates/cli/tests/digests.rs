//! A checkpoint whose files are not what was written: every command says so, names the file, and makes nothing of it.

mod common;

use std::fs;
use std::process::Command;

use common::{Finished, Scratch, assert_untouched, minrnn, shown, snapshot};

static LISTED: [&str; 5] = ["config.json", "model.safetensors", "progress.json", "tokenizer.json", "training.safetensors"];

#[test]
fn sha256sum_agrees_with_the_digests_of_a_checkpoint() {
    let scratch = Scratch::new();
    let training = scratch.training("run", &[]);
    training.run().ok();
    let last = training.checkpoint("last");
    let text = fs::read_to_string(last.join("SHA256SUMS")).unwrap();
    assert_eq!(text.lines().map(|line| &line[66..]).collect::<Vec<_>>(), LISTED);
    match Command::new("sha256sum").args(["-c", "--strict", "SHA256SUMS"]).current_dir(&last).output() {
        Ok(output) => assert!(output.status.success(), "{output:?}"),
        Err(error) => eprintln!("skipped: no sha256sum here ({error})"),
    }
}

#[test]
fn a_damaged_file_is_refused_by_every_command_that_reads_it() {
    let scratch = Scratch::new();
    let training = scratch.training("run", &[]);
    training.run().ok();
    let (run, packed) = (shown(&training.out), shown(&scratch.path("packed")));
    let commands = || {
        [
            minrnn(&["eval", &run]),
            minrnn(&["generate", &run, "--max-tokens", "3"]),
            minrnn(&["pack", &run, "-o", &packed]),
            minrnn(&["inspect", &run]),
            training.command(&["--resume"]),
        ]
    };
    // The one checkpoint that both pointers name.
    let checkpoint = training.checkpoint("best");
    fs::write(training.out.join("checkpoints/last"), fs::read(training.out.join("checkpoints/best")).unwrap()).unwrap();
    for (name, readers) in [
        ("config.json", &[0, 1, 2, 3, 4][..]),
        ("model.safetensors", &[0, 1, 2, 3, 4]),
        ("tokenizer.json", &[0, 1, 2, 3, 4]),
        ("progress.json", &[3, 4]),
        ("training.safetensors", &[4]),
    ] {
        let file = checkpoint.join(name);
        let whole = fs::read(&file).unwrap();
        let mut bytes = whole.clone();
        // In the last number of a tensor, or the last digit or letter of a text: nothing that a parser would see.
        let is_text = name.ends_with("json");
        let at = bytes.iter().rposition(|byte| !is_text || byte.is_ascii_alphanumeric()).unwrap();
        bytes[at] ^= 1;
        fs::write(&file, &bytes).unwrap();
        let before = snapshot(&training.out);
        for &reader in readers {
            Finished::of(&mut commands()[reader])
                .failed(2, &[&shown(&file), "its SHA-256 is not the one in SHA256SUMS", "delete SHA256SUMS"]);
        }
        assert_untouched(&training.out, &before);
        assert!(!scratch.path("packed").exists());
        fs::remove_file(&file).unwrap();
        for mut command in commands() {
            Finished::of(&mut command).failed(2, &[&shown(&file), "SHA256SUMS beside it lists this file, but it is missing"]);
        }
        fs::write(&file, whole).unwrap();
    }
    for mut command in commands() {
        Finished::of(&mut command).ok();
    }
}

#[test]
fn checkpoints_without_digests_are_used_as_they_are() {
    let scratch = Scratch::new();
    let settings = ["max_iterations=30"];
    let (whole, old) = (scratch.training("whole", &settings), scratch.training("old", &[]));
    whole.run().ok();
    old.run().ok();
    for entry in fs::read_dir(old.out.join("checkpoints")).unwrap() {
        let _ = fs::remove_file(entry.unwrap().path().join("SHA256SUMS"));
    }
    Finished::of(&mut minrnn(&["eval", &shown(&old.out)])).ok();
    old.with(&settings).resume().ok();
    old.outcome().assert_equals(&whole.outcome());
}

#[test]
fn digests_that_are_cut_at_the_end_of_a_line_are_refused_by_who_reads_what_they_no_longer_name() {
    let scratch = Scratch::new();
    let training = scratch.training("run", &[]);
    training.run().ok();
    let (run, packed) = (shown(&training.out), shown(&scratch.path("packed")));
    let started = scratch.training("started", &[]);
    // The one checkpoint that both pointers name.
    let digests = training.checkpoint("best").join("SHA256SUMS");
    fs::write(training.out.join("checkpoints/last"), fs::read(training.out.join("checkpoints/best")).unwrap()).unwrap();
    let whole = fs::read_to_string(&digests).unwrap();
    let of_model = ["config.json", "model.safetensors", "tokenizer.json"];
    for kept in 1..LISTED.len() {
        let named = &LISTED[..kept];
        fs::write(&digests, whole.split_inclusive('\n').take(kept).collect::<String>()).unwrap();
        let before = snapshot(&training.out);
        let mut readers = vec![(&LISTED[..], training.command(&["--resume"]))];
        if of_model.iter().any(|name| !named.contains(name)) {
            readers.extend([
                (&of_model[..], minrnn(&["eval", &run])),
                (&of_model[..], minrnn(&["generate", &run, "--max-tokens", "3"])),
                (&of_model[..], minrnn(&["pack", &run, "-o", &packed])),
                (&of_model[..], started.command(&["--from", &run])),
            ]);
        }
        for (reads, mut command) in readers {
            let _ = fs::remove_dir_all(&started.out);
            let refused = Finished::of(&mut command);
            refused.failed(2, &[&shown(&digests), "it does not list ", " beside it, as if it was cut short", "delete SHA256SUMS"]);
            let is_told = |name: &&str| !named.contains(name) && refused.stderr.contains(&format!("it does not list {name} beside it"));
            assert!(reads.iter().any(is_told), "{refused:?}");
        }
        assert_untouched(&training.out, &before);
        assert!(!scratch.path("packed").exists());
    }
    // Once deleted, the digests are no longer checked.
    fs::remove_file(&digests).unwrap();
    Finished::of(&mut minrnn(&["generate", &run, "--max-tokens", "3"])).ok();
}
