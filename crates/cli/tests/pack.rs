//! `minrnn pack` and what runs on a packed model: text, scores, and refusals of broken files.

mod common;

use std::fs;
use std::path::{Path, PathBuf};

use common::{Finished, Scratch, minrnn, shown};

/// A trained run, and what `pack` made of it in `format`.
fn packed(scratch: &Scratch, format: &str) -> (PathBuf, Finished) {
    let run = scratch.path("run");
    if !run.exists() {
        scratch.training("run", &[]).run().ok();
    }
    let file = scratch.path(&format!("{format}.minrnn"));
    let told = Finished::of(&mut minrnn(&["pack", &shown(&run), "--weights", format, "-o", &shown(&file)])).ok();
    (file, told)
}

fn generate(model: &Path) -> String {
    Finished::of(&mut minrnn(&["generate", &shown(model), "--prompt", "the ", "--max-tokens", "40", "--temperature", "0"])).ok().stdout
}

fn eval(args: &[&str]) -> Finished {
    Finished::of(&mut minrnn(&[&["eval"], args].concat()))
}

#[test]
fn a_packed_model_writes_the_text_of_its_checkpoint() {
    let scratch = Scratch::new();
    let (file, told) = packed(&scratch, "f32");
    assert_eq!(generate(&file), generate(&scratch.path("run")));
    assert!(told.stdout.contains("next: minrnn generate") && told.stdout.contains("one more session: "), "{}", told.stdout);
}

#[test]
fn every_format_is_smaller_than_the_one_before_scores_alike_and_says_what_it_holds() {
    let scratch = Scratch::new();
    let text = shown(&scratch.text("other.txt"));
    let (reference, _) = packed(&scratch, "f32");
    let mut last = u64::MAX;
    for format in ["f32", "bf16", "int8", "int4"] {
        let (file, told) = packed(&scratch, format);
        let size = fs::metadata(&file).unwrap().len();
        assert!(size < last && told.stdout.contains(&format!("tensors as {format}")), "{format}: {size} bytes, {}", told.stdout);
        last = size;
        let scored = eval(&[&shown(&file), "--data", &text, "--against", &shown(&reference), "--json"]).ok();
        let lines: Vec<serde_json::Value> = scored.stdout.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
        let (loss, share) = (lines[0]["loss"].as_f64().unwrap(), lines[1]["share"].as_f64().unwrap());
        assert!(loss.is_finite() && (0.5..=1.0).contains(&share), "{format}: {}", scored.stdout);
        assert!(format != "f32" || share == 1.0, "{}", scored.stdout);
        let inspected = Finished::of(&mut minrnn(&["inspect", &shown(&file)])).ok();
        assert!(inspected.stdout.starts_with("packed model") && inspected.stdout.contains(&format!(" {format} ")), "{}", inspected.stdout);
    }
}

#[test]
fn a_packed_model_scores_as_its_checkpoint_does_with_the_state_carried() {
    let scratch = Scratch::new();
    let text = shown(&scratch.text("other.txt"));
    let (file, _) = packed(&scratch, "f32");
    let loss = |run: &Path| {
        let scored = eval(&[&shown(run), "--data", &text, "--batches", "1", "--json"]).ok();
        let lines = scored.stdout.lines().map(|line| serde_json::from_str::<serde_json::Value>(line).unwrap());
        lines.filter(|line| line["measure"] == "full pass, state carried").map(|line| line["loss"].as_f64().unwrap()).next().unwrap()
    };
    assert!((loss(&file) - loss(&scratch.path("run"))).abs() < 1e-5);
}

#[test]
fn a_packed_model_is_packed_smaller_and_nothing_is_made_of_what_is_gone() {
    let scratch = Scratch::new();
    let ((exact, _), (direct, _)) = (packed(&scratch, "f32"), packed(&scratch, "int4"));
    let again = scratch.path("again.minrnn");
    let pack =
        |from: &Path, format: &str, to: &Path| Finished::of(&mut minrnn(&["pack", &shown(from), "--weights", format, "-o", &shown(to)]));
    let told = pack(&exact, "int4", &again).ok().stdout;
    assert!(told.contains("f32.minrnn") && told.contains("tensors as int4") && told.contains("next: minrnn generate"), "{told}");
    assert!(fs::read(&again).unwrap() == fs::read(&direct).unwrap(), "f32 has lost nothing");
    pack(&direct, "f32", &again).refused(&["int4.minrnn", "as int8", "give the run or checkpoint"]);
    pack(&exact, "int8", &exact).refused(&["is the input"]);
    let damaged = scratch.write("damaged.minrnn", &fs::read(&exact).unwrap()[..2000]);
    pack(Path::new(&damaged), "int4", &again).refused(&["damaged.minrnn", "cut short"]);
}

#[test]
fn what_cannot_be_packed_or_scored_is_a_sentence() {
    let scratch = Scratch::new();
    let (file, _) = packed(&scratch, "int8");
    let (run, text) = (shown(&scratch.path("run")), shown(&scratch.text("other.txt")));
    let pack = |args: &[&str]| Finished::of(&mut minrnn(&[&["pack"], args].concat()));
    pack(&[&shown(&scratch.path("none"))]).refused(&["none"]);
    pack(&[&run, "-o", &shown(&scratch.path(""))]).refused(&["is a directory", "give a file to write"]);
    pack(&[&run, "-o", &shown(&scratch.path("none/model.minrnn"))]).failed(2, &["none"]);
    assert_eq!(pack(&[&run, "--weights", "int3"]).code, Some(2));
    let mine = scratch.write("mine.txt", "to be kept");
    pack(&[&run, "-o", &shown(&mine)]).refused(&["mine.txt' exists and is not a packed model; give another file to write"]);
    assert_eq!(std::fs::read_to_string(&mine).unwrap(), "to be kept");
    // A packed model, and what mktemp makes, are replaced.
    for replaced in [&file, &scratch.write("empty", "")] {
        pack(&[&run, "-o", &shown(replaced)]).ok();
    }
    eval(&[&shown(&file)]).refused(&["--data FILE"]);
    eval(&[&run, "--data", &text, "--against", &shown(&file)]).refused(&["--against"]);
    eval(&[&shown(&file), "--data", &shown(&scratch.write("one.txt", "t"))]).refused(&["one.txt", "at least 2"]);
    eval(&[&shown(&file), "--data", &shown(&scratch.write("other.bin", [0xff, 0xfe]))]).refused(&["other.bin"]);
}

#[test]
fn a_damaged_packed_model_is_refused_by_every_command() {
    let scratch = Scratch::new();
    let (file, _) = packed(&scratch, "bf16");
    let whole = fs::read(&file).unwrap();
    let middle = whole.len() / 2;
    let flipped: Vec<u8> = whole.iter().enumerate().map(|(i, &byte)| if i == middle { byte ^ 1 } else { byte }).collect();
    let text = shown(&scratch.text("other.txt"));
    for (name, bytes) in [("cut.minrnn", &whole[..middle]), ("flipped.minrnn", &flipped), ("empty.minrnn", &[])] {
        let damaged = shown(&scratch.write(name, bytes));
        Finished::of(&mut minrnn(&["generate", &damaged])).refused(&[name, "the packed model"]);
        eval(&[&damaged, "--data", &text]).refused(&[name, "the packed model"]);
        Finished::of(&mut minrnn(&["inspect", &damaged])).refused(&[name]);
    }
}

#[test]
fn only_weights_that_were_not_rounded_are_exported() {
    let scratch = Scratch::new();
    scratch.training("run", &["mixer=lstm", "expansion=1", "max_iterations=2"]).run().ok();
    let out = shown(&scratch.path("exported.safetensors"));
    let export = |model: &str| Finished::of(&mut minrnn(&["export", model, "--format", "torch-lstm", "-o", &out]));
    let (exact, _) = packed(&scratch, "f32");
    let (rounded, _) = packed(&scratch, "int8");
    export(&shown(&rounded)).refused(&["int8.minrnn", "as int8", "give the run or checkpoint"]);
    assert!(!Path::new(&out).exists());
    export(&shown(&scratch.path("run"))).ok();
    let expected = fs::read(&out).unwrap();
    export(&shown(&exact)).ok();
    assert!(fs::read(&out).unwrap() == expected);
    // Nothing but an earlier one is written over.
    fs::write(&out, "Chapter 1").unwrap();
    export(&shown(&exact)).refused(&["exists and is not a safetensors file", "give another file to write"]);
    assert_eq!(fs::read(&out).unwrap(), b"Chapter 1");
}
