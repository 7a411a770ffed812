//! Pipes that are read, streams that cannot be written, and environments that ask for too much.

#![cfg(unix)]

mod common;

use std::fs::{self, File};
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use common::{Finished, Scratch, Training, minrnn, shown, signal, told, wait_until, wait_until_interruptible};

/// What a command does with `content` on its standard input, which arrives in pieces.
fn fed(args: &[&str], content: &[u8]) -> Finished {
    let mut child = minrnn(args).stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    let mut stdin = child.stdin.take().unwrap();
    for piece in [&content[..3], &content[3..content.len() / 2], &content[content.len() / 2..]] {
        // A command that has refused its input reads no more.
        let _ = stdin.write_all(piece);
        std::thread::sleep(Duration::from_millis(20));
    }
    drop(stdin);
    child.wait_with_output().unwrap().into()
}

fn fifo(scratch: &Scratch, name: &str) -> PathBuf {
    let path = scratch.path(name);
    assert!(Command::new("mkfifo").arg(&path).status().unwrap().success());
    path
}

fn forecaster(scratch: &Scratch, out: &str, args: &[&str]) -> Training {
    let args = ["--task", "forecast"].iter().chain(args).map(ToString::to_string).collect();
    Training { args, ..scratch.task(out, &["max_iterations=4"]) }
}

#[test]
fn tables_and_texts_come_through_pipes_whole() {
    let scratch = Scratch::new();
    let wave = scratch.write("wave.csv", (0..60).fold("\u{feff}x;y\r\n".to_owned(), |table, t| format!("{table}{};{t}\r\n", t % 7)));
    let parquet = Path::new(env!("CARGO_MANIFEST_DIR")).join("../minrnn/tests/fixtures/tables/default.parquet");
    for (name, table, target) in [("csv", wave, ["--target", "x"]), ("parquet", parquet, ["--target", "value"])] {
        let (data, content) = (shown(&table), fs::read(&table).unwrap());
        let training = forecaster(&scratch, name, &[&["--data", &data], &target[..]].concat());
        training.run().ok();
        let run = shown(&training.out);
        let expected = [told(&["predict", &run, "--data", &data]).ok().stdout, told(&["eval", &run, "--data", &data]).ok().stdout];
        assert!(expected[0].starts_with("step,"), "{expected:?}");
        for stdin in ["-", "/dev/stdin"] {
            assert_eq!(fed(&["predict", &run, "--data", stdin], &content).ok().stdout, expected[0], "{name}");
            assert_eq!(fed(&["eval", &run, "--data", stdin], &content).ok().stdout, expected[1], "{name}");
        }
        let pipe = fifo(&scratch, &format!("{name}.pipe"));
        let writer = std::thread::spawn({
            let pipe = pipe.clone();
            move || File::create(pipe).unwrap().write_all(&content)
        });
        assert_eq!(told(&["predict", &run, "--data", &shown(&pipe)]).ok().stdout, expected[0], "{name}");
        writer.join().unwrap().unwrap();
    }

    let text = scratch.training("text", &["max_iterations=4"]);
    text.run().ok();
    let packed = shown(&scratch.path("model.minrnn"));
    told(&["pack", &shown(&text.out), "-o", &packed]).ok();
    let (file, content) = (shown(&scratch.path("text.txt")), fs::read(scratch.path("text.txt")).unwrap());
    for model in [&shown(&text.out), &packed] {
        let expected = told(&["eval", model, "--data", &file, "--batches", "2"]).ok().stdout;
        assert_eq!(fed(&["eval", model, "--data", "-", "--batches", "2"], &content).ok().stdout, expected);
    }
}

#[test]
fn a_signal_ends_what_waits_for_a_pipe() {
    let scratch = Scratch::new();
    let wave = shown(&scratch.write("wave.csv", (0..60).fold("x\n".to_owned(), |table, t| format!("{table}{}\n", t % 7))));
    let tables = forecaster(&scratch, "tables", &["--data", &wave, "--target", "x"]);
    tables.run().ok();
    let texts = scratch.training("texts", &["max_iterations=4"]);
    texts.run().ok();
    let packed = shown(&scratch.path("model.minrnn"));
    told(&["pack", &shown(&texts.out), "-o", &packed]).ok();
    let pipe = shown(&fifo(&scratch, "pipe"));
    let (tables, texts) = (shown(&tables.out), shown(&texts.out));
    for (command, model) in [("predict", &tables), ("eval", &tables), ("eval", &texts), ("eval", &packed)] {
        for name in ["TERM", "INT"] {
            let mut child = minrnn(&[command, model, "--data", &pipe]).stderr(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap();
            wait_until_interruptible(&mut child);
            signal(&child, name);
            wait_until(&mut child, || false);
            let finished = Finished::from(child.wait_with_output().unwrap());
            assert_eq!(finished.code, Some(1), "{command} {model}: {finished:?}");
            assert!(finished.stderr.starts_with("stopped before everything was "), "{finished:?}");
        }
    }
}

#[test]
fn a_signal_ends_the_scores_of_a_text_that_does_not_come() {
    let scratch = Scratch::new();
    let texts = scratch.training("texts", &["max_iterations=4"]);
    texts.run().ok();
    let packed = shown(&scratch.path("model.minrnn"));
    told(&["pack", &shown(&texts.out), "-o", &packed]).ok();
    let pipe = shown(&fifo(&scratch, "pipe"));
    for (is_open, name) in [(false, "TERM"), (false, "INT"), (true, "TERM"), (true, "INT")] {
        let mut child = minrnn(&["score", &packed, "--data", &pipe]).stderr(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap();
        // This returns once the command has opened the pipe, which then waits for the first byte.
        let writer = is_open.then(|| File::create(&pipe).unwrap());
        if is_open {
            std::thread::sleep(Duration::from_millis(50));
        }
        wait_until_interruptible(&mut child);
        signal(&child, name);
        wait_until(&mut child, || false);
        drop(writer);
        let finished = Finished::from(child.wait_with_output().unwrap());
        assert_eq!(finished.code, Some(1), "{is_open} {name}: {finished:?}");
        assert!(finished.stderr.ends_with("stopped before everything was scored\n"), "{finished:?}");
    }
}

#[test]
fn a_signal_ends_what_waits_for_a_key_or_a_state() {
    let scratch = Scratch::new();
    let texts = scratch.training("texts", &["max_iterations=2"]);
    texts.run().ok();
    let (texts, pipe) = (shown(&texts.out), shown(&fifo(&scratch, "pipe")));
    let cases: [&[&str]; 2] = [&["serve", &texts, "--port", "0", "--api-key-file", &pipe], &["stream", &texts, "--load-state", &pipe]];
    for args in cases {
        let mut child = minrnn(args).stderr(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap();
        // Nothing shows that it is waiting; a signal ends it before that as well.
        std::thread::sleep(Duration::from_millis(300));
        signal(&child, "TERM");
        wait_until(&mut child, || false);
        let finished = Finished::from(child.wait_with_output().unwrap());
        assert!(finished.code != Some(0) && !finished.stderr.contains("error: "), "{args:?}: {finished:?}");
    }
}

#[test]
fn a_signal_ends_the_cutting_of_a_long_text_into_tokens() {
    let scratch = Scratch::new();
    let pieces = scratch.training("pieces", &["tokenizer=bpe", "bpe_vocab_size=280", "max_iterations=2"]);
    pieces.run().ok();
    let packed = shown(&scratch.path("model.minrnn"));
    told(&["pack", &shown(&pieces.out), "-o", &packed]).ok();
    let long = shown(&scratch.write("long.txt", "the quick brown\n".repeat(1_500_000)));
    let logits = shown(&scratch.path("logits.npy"));
    let cases: [&[&str]; 2] = [&[], &["--logits", &logits]];
    for more in cases {
        let mut command = minrnn(&["eval", &packed, "--data", &long]);
        let mut child = command.args(more).stderr(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap();
        wait_until_interruptible(&mut child);
        // Longer than reading takes, and far shorter than cutting into tokens.
        std::thread::sleep(Duration::from_millis(300));
        let asked = Instant::now();
        signal(&child, "TERM");
        wait_until(&mut child, || false);
        let waited = asked.elapsed();
        assert!(waited < Duration::from_secs(3), "{more:?}: {waited:?}");
        let finished = Finished::from(child.wait_with_output().unwrap());
        assert_eq!(finished.code, Some(1), "{finished:?}");
        assert!(finished.stderr.starts_with("stopped before everything was scored"), "{finished:?}");
    }
    assert!(!scratch.path("logits.npy").exists());
}

#[test]
fn a_run_does_not_begin_with_data_that_can_be_read_only_once() {
    let scratch = Scratch::new();
    let pipe = shown(&fifo(&scratch, "pipe"));
    let out = shown(&scratch.path("run"));
    let sentence = ["pipe", "can be read only once", "save them to a file"];
    told(&["train", "--data", &pipe, "--out", &out]).refused(&sentence);
    told(&["train", "--task", "forecast", "--target", "x", "--data", &pipe, "--out", &out]).refused(&sentence);
    told(&["train", "--data", "/dev/zero", "--out", &out]).refused(&sentence[1..]);
    told(&["reproduce", "table1", "--scale", "smoke", "--data", &pipe, "--out", &out]).refused(&sentence);
    fed(&["train", "--data", "/dev/stdin", "--out", &out], b"the quick brown fox").refused(&sentence[1..]);
    assert!(!scratch.path("run").exists());
    // A file on standard input is read as a file.
    let text = File::open(scratch.text("text.txt")).unwrap();
    let training = Training { args: vec!["--data".to_owned(), "/dev/stdin".to_owned()], ..scratch.task("run", &["max_iterations=2"]) };
    Finished::of(training.command(&[]).stdin(text)).ok();
}

/// Runs a command whose streams the shell redirects.
fn with_streams(args: &[&str], redirection: &str) -> Finished {
    let script = format!("exec \"$0\" \"$@\" {redirection}");
    Finished::of(Command::new("sh").args(["-c", &script, env!("CARGO_BIN_EXE_minrnn")]).args(args).stdin(Stdio::null()))
}

#[test]
fn text_is_written_though_nothing_can_be_said_about_it() {
    if !Path::new("/dev/full").exists() {
        return eprintln!("skipped: no /dev/full here");
    }
    let scratch = Scratch::new();
    let training = scratch.training("run", &["max_iterations=4"]);
    training.run().ok();
    let (run, session) = (shown(&training.out), shown(&scratch.path("session")));
    let args = ["generate", &run, "--max-tokens", "20", "--save-session", &session];
    let expected = told(&args).ok().stdout;
    for redirection in ["2>/dev/full", "2>&-"] {
        assert_eq!(with_streams(&args, redirection).ok().stdout, expected);
    }
    assert_eq!(with_streams(&["train", "--data"], "2>/dev/full").code, Some(2));
    assert_eq!(with_streams(&["pack", "nowhere"], "2>/dev/full").code, Some(2));
}

#[test]
fn a_full_disk_behind_stdout_fails_every_command_that_prints() {
    if !Path::new("/dev/full").exists() {
        return eprintln!("skipped: no /dev/full here");
    }
    let scratch = Scratch::new();
    let training = scratch.training("run", &["max_iterations=4"]);
    training.run().ok();
    let (run, packed) = (shown(&training.out), shown(&scratch.path("model.minrnn")));
    let commands: [&[&str]; 14] = [
        &["--help"],
        &["help"],
        &["--version"],
        &["train", "--help"],
        &["bench", "help", "scan"],
        &["experiments"],
        &["devices"],
        &["reproduce", "--list"],
        &["inspect", &run],
        &["eval", &run, "--batches", "1"],
        &["generate", &run, "--max-tokens", "3"],
        &["pack", &run, "-o", &packed],
        &["plot", &run, "-o", &shown(&scratch.path("runs.svg"))],
        &["bench", "scan", "--batch-size", "1", "--seq-len", "8", "--d-hidden", "8", "--iterations", "1", "--warmup", "0"],
    ];
    for args in commands {
        let finished = with_streams(args, ">/dev/full");
        finished.failed(1, &["No space left"]);
    }
}

#[test]
fn surroundings_that_ask_for_what_there_is_not_are_refused() {
    for variable in ["RAYON_NUM_THREADS", "RAYON_RS_NUM_CPUS"] {
        let asked = |threads: &str| Finished::of(minrnn(&["experiments"]).env(variable, threads));
        asked("100000").refused(&[variable, "at most 1024", "found '100000'"]);
        asked("2").ok();
        asked("").ok();
        for found in ["many", "-1", "2.5", "99999999999999999999999"] {
            asked(found).refused(&[variable, "must be a number of threads, at most 1024", &format!("found '{found}'")]);
        }
    }
    let asked = |instructions: &str| Finished::of(minrnn(&["experiments"]).env("MINRNN_SIMD", instructions));
    asked("fast").refused(&["MINRNN_SIMD must be one of plain", "found 'fast'"]);
    asked("plain").ok();
    asked("").ok();
    // The requested number does not fit into so little memory.
    let scratch = Scratch::new();
    let training = scratch.training("run", &["max_iterations=4"]);
    training.run().ok();
    let script = "ulimit -v 1500000; exec \"$0\" eval \"$1\" --batches 1";
    let mut limited = Command::new("sh");
    limited.args(["-c", script, env!("CARGO_BIN_EXE_minrnn"), &shown(&training.out)]).env("RAYON_NUM_THREADS", "1024");
    if cfg!(target_os = "linux") {
        Finished::of(&mut limited).failed(1, &["could not start the threads: memory has no room for 1024 of them", "--threads"]);
    }
}
