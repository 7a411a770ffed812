//! Disks that refuse: exit code 1, a sentence, and the earlier checkpoint as good as ever.

#![cfg(unix)]

mod common;

use std::fs;
use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::{Command, Stdio};

use common::{Finished, Scratch, Training, assert_untouched, leftovers, minrnn, shown, snapshot, with_file_limit};

const NOBODY: u32 = 65_534;

fn set_mode(path: &Path, mode: u32) {
    fs::set_permissions(path, fs::Permissions::from_mode(mode)).unwrap();
}

/// Runs a command as a user whom permissions restrict, unlike root; `None` if that is impossible.
fn without_privileges(scratch: &Scratch, command: &Command) -> Option<Finished> {
    let mut program = command.get_program().to_owned();
    let is_root = fs::metadata("/proc/self").is_ok_and(|process| process.uid() == 0);
    let as_user = |program: &std::ffi::OsStr| {
        let mut command = Command::new(program);
        if is_root {
            command.uid(NOBODY).gid(NOBODY);
        }
        command.stdin(Stdio::null()).current_dir("/");
        command
    };
    if is_root && as_user(&program).arg("--version").output().is_err() {
        // The build folder may be inaccessible to others.
        let copy = scratch.path("minrnn");
        fs::copy(&program, &copy).unwrap();
        program = copy.into();
    }
    match as_user(&program).args(command.get_args()).output() {
        Ok(output) => Some(output.into()),
        Err(error) => {
            eprintln!("skipped: no other user can run the binary ({error})");
            None
        }
    }
}

#[test]
fn directories_that_cannot_be_written_are_named_and_left_alone() {
    let scratch = Scratch::new();
    set_mode(&scratch.path(""), 0o755);
    let training = scratch.training("run", &[]);
    training.run().ok();

    let closed = scratch.path("closed");
    fs::create_dir(&closed).unwrap();
    set_mode(&closed, 0o555);
    let new = Training { out: closed.join("run"), ..training.clone() };
    let Some(finished) = without_privileges(&scratch, &new.command(&[])) else { return };
    finished.failed(1, &["could not create the run directory", "closed/run", "Permission denied"]);
    let inside = Training { out: closed.clone(), ..training.clone() };
    without_privileges(&scratch, &inside.command(&[])).unwrap().failed(1, &["run.lock", "Permission denied"]);
    assert!(snapshot(&closed).is_empty());

    let before = snapshot(&training.out);
    let run = &training.out;
    for directory in [run.as_path(), &run.join("checkpoints"), &training.checkpoint("last")] {
        set_mode(directory, 0o555);
    }
    set_mode(&run.join("run.lock"), 0o444);
    without_privileges(&scratch, &training.command(&["--resume"])).unwrap().failed(1, &["run.lock", "Permission denied"]);
    // The lock can be taken, the checkpoint not written.
    set_mode(&run.join("run.lock"), 0o666);
    let longer = training.with(&["max_iterations=30"]);
    without_privileges(&scratch, &longer.command(&["--resume"])).unwrap().failed(1, &["could not write", "Permission denied"]);
    assert_untouched(run, &before);
    // Reading is enough to evaluate.
    without_privileges(&scratch, &minrnn(&["eval", &shown(run)])).unwrap().ok();

    for directory in [run.as_path(), &run.join("checkpoints"), &training.checkpoint("last")] {
        set_mode(directory, 0o755);
    }
}

#[test]
fn a_checkpoint_that_cannot_be_written_leaves_the_earlier_one() {
    let scratch = Scratch::new();
    let settings = ["d_model=32", "n_layers=2", "max_iterations=10"];
    let (training, whole) = (scratch.training("run", &settings), scratch.training("whole", &settings).with(&["max_iterations=20"]));
    training.run().ok();
    let checkpoints = training.out.join("checkpoints");
    let before = snapshot(&checkpoints);
    let longer = training.with(&["max_iterations=20"]);
    for _ in 0..2 {
        let refused = with_file_limit(&longer.command(&["--resume"]), 64);
        refused.failed(1, &["could not write", "iter-14.tmp/model.safetensors", "File too large"]);
        assert_untouched(&checkpoints, &before);
        assert!(leftovers(&training.out).is_empty());
    }
    Finished::of(&mut minrnn(&["eval", &shown(&training.out)])).ok();
    whole.run().ok();
    longer.resume().ok();
    longer.outcome().assert_equals(&whole.outcome());

    // A start for which there is no room at all leaves nothing.
    let new = scratch.training("new", &settings);
    for (blocks, file) in [(8, "text.tokens"), (2, "experiment.toml")] {
        with_file_limit(&new.command(&[]), blocks).failed(1, &["could not write", file, "File too large"]);
        assert!(!new.out.exists());
    }
}

#[test]
fn a_full_disk_is_named_and_what_was_saved_stays_usable() {
    let scratch = Scratch::new();
    let disk = scratch.path("disk");
    fs::create_dir(&disk).unwrap();
    let training = scratch.training("disk/run", &["max_iterations=1000", "eval_every=1000", "checkpoint_every=2"]);
    // Only these commands see the disk, which goes with them.
    let script = r#"
        mount -t tmpfs -o size=260k tmpfs "$0" || { echo "no mount"; exit 0; }
        "$@"; echo "train: $?" >&2
        find "$0" -name '.writing-*' -o -name '*.tmp'
        "$1" eval "$0/run" >&2; echo "eval: $?" >&2
        dd if=/dev/zero of="$0/rest" bs=1k count=300 2> "$0/../dd" ; "$1" train --resume --out "$0/run" >&2; echo "resume: $?" >&2
    "#;
    let train = training.command(&[]);
    let mut command = Command::new("unshare");
    command.args(["-m", "sh", "-c", script]).arg(&disk).arg(train.get_program()).args(train.get_args()).stdin(Stdio::null());
    let finished = match command.output() {
        Ok(output) => Finished::from(output),
        Err(error) => return eprintln!("skipped: no unshare here ({error})"),
    };
    if finished.stdout.contains("no mount") || finished.stderr.contains("unshare failed") {
        return eprintln!("skipped: not allowed to mount a disk of its own");
    }
    assert_eq!(finished.stdout, "", "nothing half-written stays: {finished:?}");
    let parts: Vec<&str> = finished.stderr.split("train: 1\n").collect();
    let [trained, rest] = parts[..] else { panic!("{finished:?}") };
    let sentence = trained.lines().last().unwrap();
    assert!(sentence.starts_with("error: could not ") && sentence.contains("No space left on device"), "{finished:?}");
    assert!(rest.contains("eval: 0") && rest.contains("resume: 1") && !rest.contains("panicked"), "{finished:?}");
}

#[test]
fn a_full_stdout_is_an_error_and_a_closed_one_is_not() {
    let scratch = Scratch::new();
    let training = scratch.training("run", &[]);
    training.run().ok();
    let run = shown(&training.out);
    let full = || Stdio::from(fs::OpenOptions::new().write(true).open("/dev/full").unwrap());
    let closed = || Stdio::from(std::io::pipe().unwrap().1);
    for mut command in [minrnn(&["eval", &run]), training.command(&["--resume"])] {
        if Path::new("/dev/full").exists() {
            Finished::of(command.stdout(full()).stderr(Stdio::piped())).failed(1, &["could not write to stdout", "No space left"]);
        }
        let finished = Finished::of(command.stdout(closed()).stderr(Stdio::piped())).ok();
        assert!(!finished.stderr.contains("error"), "{finished:?}");
    }
    // That nobody reads the progress does not end a run.
    let deaf = Training { out: scratch.path("deaf"), ..training.clone() };
    let finished = Finished::of(deaf.command(&[]).stderr(closed())).ok();
    assert!(finished.stdout.contains("best: iteration"));
    deaf.outcome().assert_equals(&training.outcome());
}
