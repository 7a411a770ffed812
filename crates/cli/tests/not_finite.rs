//! Numbers that leave what a model can compute with: nothing is predicted beside them, and nothing is written.

mod common;

use common::{Scratch, Training, overflowing, shown, told};

/// A wave in two columns, with `cell` in line 4 of the first.
fn wave(cell: &str) -> String {
    let x = |t: usize| if t == 2 { cell.to_owned() } else { (t % 7).to_string() };
    (0..60).fold("x,y\n".to_owned(), |table, t| format!("{table}{},{}\n", x(t), t % 5))
}

fn forecaster(scratch: &Scratch) -> Training {
    let data = shown(&scratch.write("wave.csv", wave("2")));
    let args = ["--task", "forecast", "--data", &data, "--target", "x", "--columns", "x,y"].map(str::to_owned).into();
    let training = Training { args, ..scratch.task("run", &["max_iterations=4"]) };
    training.run().ok();
    training
}

#[test]
fn cells_that_a_model_cannot_read_are_refused_by_place() {
    let scratch = Scratch::new();
    let run = shown(&forecaster(&scratch).out);
    let out = scratch.path("out.csv");
    for (cell, parts) in [
        ("1e308", ["line 4, column 'x': expected a number of at most 3.4e38 in size, found '1e308'", ""]),
        ("-3.5e38", ["line 4, column 'x': expected a number of at most 3.4e38 in size", ""]),
        ("1e9", ["line 4, column 'x': 1000000000.0 lies 5.1e8 deviations from the mean", "expected at most 1e6"]),
    ] {
        let data = shown(&scratch.write("huge.csv", wave(cell)));
        told(&["predict", &run, "--data", &data, "--out", &shown(&out)]).refused(&parts);
        told(&["eval", &run, "--data", &data]).refused(&parts);
    }
    assert!(!out.exists());
    // A column that is not read may hold anything.
    let data = shown(&scratch.write("third.csv", wave("2").replace('\n', ",1e308\n").replacen("y,1e308", "y,z", 1)));
    told(&["predict", &run, "--data", &data]).ok();
}

#[test]
fn predictions_that_are_no_numbers_are_not_written() {
    let scratch = Scratch::new();
    let training = forecaster(&scratch);
    let damaged = shown(&overflowing(&scratch, &training.checkpoint("best")));
    let (data, out) = (shown(&scratch.path("wave.csv")), scratch.path("out.csv"));
    let parts = ["the model's output for the table is not finite", "take another checkpoint"];
    for args in [&["predict", &damaged, "--data", &data, "--out", &shown(&out)][..], &["predict", &damaged, "--data", &data]] {
        let finished = told(args);
        finished.failed(1, &parts);
        assert_eq!(finished.stdout, "");
    }
    let scored = told(&["eval", &damaged, "--data", &data]);
    scored.failed(1, &parts);
    assert!(!scored.stdout.contains("NaN") && !scored.stdout.contains("inf"), "{scored:?}");
    let keep = scratch.write("keep.npy", "before");
    told(&["eval", &damaged, "--data", &data, "--logits", &shown(&keep)]).failed(1, &parts);
    assert_eq!(std::fs::read(keep).unwrap(), b"before");
    assert!(!out.exists());
}

#[test]
fn a_sequence_whose_prediction_is_no_number_is_named() {
    let scratch = Scratch::new();
    let rows = (0..40).flat_map(|id| (0..6).map(move |t| format!("m{id},{},{}\n", ["up", "down"][id % 2], t * (id % 2))));
    let data = shown(&scratch.write("slopes.csv", std::iter::once("id,way,x\n".to_owned()).chain(rows).collect::<String>()));
    let args = ["--task", "classify", "--data", &data, "--group", "id", "--target", "way"].map(str::to_owned).into();
    let training = Training { args, ..scratch.task("run", &["max_iterations=4", "train_fraction=0.5"]) };
    training.run().ok();
    let damaged = shown(&overflowing(&scratch, &training.checkpoint("best")));
    let parts = ["the model's output for the sequence 'm", "is not finite"];
    told(&["predict", &damaged, "--data", &data]).failed(1, &parts);
    told(&["eval", &damaged, "--data", &data]).failed(1, &parts);
}

#[test]
fn text_is_not_made_of_what_is_no_number() {
    let scratch = Scratch::new();
    let training = scratch.training("run", &["max_iterations=4"]);
    training.run().ok();
    let damaged = shown(&overflowing(&scratch, &training.checkpoint("best")));
    let (text, packed) = (shown(&scratch.path("text.txt")), shown(&scratch.path("model.minrnn")));
    told(&["generate", &damaged, "--prompt", "the", "--prompt", "quick", "--max-tokens", "5"])
        .failed(1, &["the model's output for text 1 is not finite"]);
    told(&["eval", &damaged, "--data", &text, "--batches", "1"]).failed(1, &["the model's output for", "is not finite"]);
    if told(&["pack", &damaged, "--weights", "f32", "-o", &packed]).code == Some(0) {
        told(&["eval", &packed, "--data", &text]).failed(1, &["the model's output for the text is not finite"]);
    }
}
