//! What a training shows on a terminal: a bar where one can be drawn, plain lines where none can.
#![cfg(target_os = "linux")]

mod common;

use std::process::{Command, Stdio};

use common::{Finished, Scratch, Training};

/// What `training` shows on a terminal of 80 columns of the kind `term`.
fn on_terminal(training: &Training, term: Option<&str>) -> String {
    let command = training.command(&[]);
    let words = std::iter::once(command.get_program()).chain(command.get_args());
    let words: Vec<String> = words.map(|word| format!("'{}'", word.to_str().unwrap())).collect();
    // Of util-linux: runs a command on a terminal of its own.
    let mut script = Command::new("script");
    script.args(["-qec", &format!("stty cols 80; exec {}", words.join(" ")), "/dev/null"]).env("SHELL", "/bin/sh").stdin(Stdio::null());
    match term {
        Some(term) => script.env("TERM", term),
        None => script.env_remove("TERM"),
    };
    Finished::of(&mut script).ok().stdout
}

#[test]
fn a_terminal_on_which_nothing_can_be_drawn_gets_plain_lines() {
    let scratch = Scratch::new();
    for (out, term) in [("dumb", Some("dumb")), ("none", None)] {
        let shown = on_terminal(&scratch.training(out, &[]), term);
        for line in ["\n1/20 loss ", "\niteration 10: test loss ", "\niteration 20: test loss ", "\nall iterations done: "] {
            assert!(shown.contains(line), "{out}: expected '{line}' in {shown}");
        }
        assert!(!shown.contains('\u{1b}'), "{out}: {shown}");
    }
}

#[test]
fn the_line_of_progress_fits_a_terminal_of_80_columns() {
    let scratch = Scratch::new();
    let shown = on_terminal(&scratch.training("run", &["max_iterations=200", "eval_every=100"]), Some("xterm"));
    let is_bar = |c: char| "█░".contains(c);
    // After lines above the bar nothing marks where it begins.
    let drawn: Vec<&str> = shown.split(['\r', '\n', '\u{1b}']).filter_map(|piece| Some(&piece[piece.find(is_bar)?..])).collect();
    let lines: Vec<&str> = drawn.into_iter().filter_map(|line| Some(line.split_once(" left")?.0)).collect();
    assert!(lines.iter().any(|line| line.contains("tokens/s")), "{shown}");
    let widest = lines.iter().map(|line| line.chars().count() + " left".len()).max().unwrap();
    assert!(widest <= 80, "{widest}: {lines:?}");
    assert!(shown.contains("iteration 100: test loss "), "{shown}");
}
