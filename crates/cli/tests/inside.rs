//! Logits, hidden states and embeddings as files, through the command.

mod common;

use std::fmt::Write;
use std::fs;

use common::{Finished, Scratch, Training, leftovers, minrnn, shown, words};

fn table(lengths: &[usize]) -> String {
    let mut table = "id,kind,x\n".to_owned();
    for (at, &length) in lengths.iter().enumerate() {
        (0..length).for_each(|t| {
            writeln!(table, "s{at},{},{}", ["up", "down"][at % 2], if at % 2 == 0 { t as f64 } else { -(t as f64) }).unwrap()
        });
    }
    table
}

fn classifier(scratch: &Scratch) -> String {
    let data = shown(&scratch.write("table.csv", table(&[7; 30])));
    let args = ["--task", "classify", "--data", &data, "--group", "id", "--target", "kind"];
    let settings = ["max_iterations=10", "n_layers=2", "pooling=mean"];
    let training = Training { args: args.iter().map(ToString::to_string).collect(), ..scratch.task("run", &settings) };
    training.run().ok();
    shown(&training.out)
}

/// Shape and numbers of an .npy file.
fn npy(path: &str) -> ([usize; 2], Vec<f32>) {
    let bytes = fs::read(path).unwrap();
    let start = 10 + u16::from_le_bytes([bytes[8], bytes[9]]) as usize;
    let header = std::str::from_utf8(&bytes[10..start]).unwrap();
    let shape = header.split_once("'shape': (").unwrap().1.split_once(')').unwrap().0;
    let shape: Vec<usize> = shape.split(", ").map(|size| size.parse().unwrap()).collect();
    (shape.try_into().unwrap(), bytes[start..].as_chunks().0.iter().map(|bytes| f32::from_le_bytes(*bytes)).collect())
}

fn csv(path: &str) -> (String, Vec<String>, Vec<f32>) {
    let text = fs::read_to_string(path).unwrap();
    let (header, rows) = text.split_once('\n').unwrap();
    let mut labels = Vec::new();
    let mut numbers = Vec::new();
    for line in rows.lines() {
        let cells: Vec<&str> = line.split(',').collect();
        let first = cells.iter().position(|cell| cell.contains('.') || cell.starts_with('-')).unwrap_or(cells.len() - 1);
        labels.push(cells[..first].join(","));
        numbers.extend(cells[first..].iter().map(|cell| cell.parse::<f32>().unwrap()));
    }
    (header.to_owned(), labels, numbers)
}

#[test]
fn the_inside_of_a_classifier_is_written_in_every_format() {
    let scratch = Scratch::new();
    let run = classifier(&scratch);
    let packed = shown(&scratch.path("model.minrnn"));
    Finished::of(&mut minrnn(&["pack", &run, "--weights", "f32", "-o", &packed])).ok();
    let data = shown(&scratch.write("new.csv", table(&[5, 3])));
    let file = |name: &str| shown(&scratch.path(name));
    let [logits, hidden, embeddings] = ["logits.npy", "hidden.npy", "embeddings.csv"].map(file);
    let args = ["--data", &data, "--logits", &logits, "--hidden", &hidden, "--layer", "1", "--embeddings", &embeddings];
    let mut found = Vec::new();
    for model in [&run, &packed] {
        let finished = Finished::of(minrnn(&["predict", model]).args(args)).ok();
        assert_eq!(finished.stderr.matches("written: ").count(), 3, "{finished:?}");
        // `predict` makes its shares of the last row of each sequence.
        let (shape, numbers) = npy(&logits);
        assert_eq!(shape, [8, 2]);
        assert_eq!(finished.stdout.lines().count(), 3, "{finished:?}");
        for (line, row) in finished.stdout.lines().skip(1).zip([4, 7]) {
            let share: f32 = line.split(',').nth(2).unwrap().parse().unwrap();
            let [a, b] = [numbers[2 * row], numbers[2 * row + 1]];
            assert!((share - 1.0 / (1.0 + (b - a).exp())).abs() < 1e-4, "{line} {a} {b}");
        }
        let (header, labels, numbers) = csv(&embeddings);
        assert!(header.starts_with("id,0,1,") && header.ends_with(",15"), "{header}");
        assert_eq!((labels, numbers.len()), (vec!["s0".to_owned(), "s1".to_owned()], 2 * 16));
        assert_eq!(npy(&hidden).0, [8, 16]);
        found.push([&logits, &hidden, &embeddings].map(|path| fs::read(path).unwrap()));
    }
    assert!(found[0] == found[1], "a packed file gives other numbers than its run");

    // `eval` writes the same, and a text file holds the same numbers as a binary one.
    let [again, text] = ["again.npy", "again.csv"].map(file);
    Finished::of(&mut minrnn(&["eval", &run, "--data", &data, "--logits", &again])).ok();
    assert!(fs::read(&again).unwrap() == found[0][0]);
    Finished::of(&mut minrnn(&["eval", &packed, "--data", &data, "--logits", &text])).ok();
    let header = fs::read_to_string(&text).unwrap().lines().next().unwrap().to_owned();
    assert_eq!(header, "id,step,down,up");
    // The default is the last block.
    let last = file("last.npy");
    Finished::of(&mut minrnn(&["predict", &run, "--data", &data, "--hidden", &last])).ok();
    assert_ne!(npy(&last).1, npy(&hidden).1);
    assert!(leftovers(&scratch.path("")).is_empty());
}

#[test]
fn a_text_is_one_sequence() {
    let scratch = Scratch::new();
    let training = scratch.training("text", &["max_iterations=5"]);
    training.run().ok();
    let run = shown(&training.out);
    // Longer than one pass.
    let data = shown(&scratch.write("text2.txt", words(1300)));
    let [logits, embeddings] = ["logits.safetensors", "embeddings.npy"].map(|name| shown(&scratch.path(name)));
    Finished::of(&mut minrnn(&["eval", &run, "--data", &data, "--logits", &logits, "--embeddings", &embeddings])).ok();
    let bytes = fs::read(&logits).unwrap();
    let read = safetensors::SafeTensors::deserialize(&bytes).unwrap();
    assert_eq!(read.tensor("logits").unwrap().shape()[0], 1300);
    assert_eq!(i64::from_le_bytes(read.tensor("lengths").unwrap().data().try_into().unwrap()), 1300);
    assert_eq!(npy(&embeddings).0, [1, 16]);
}

#[test]
fn what_cannot_be_written_is_a_sentence_and_nothing_else_is_either() {
    let scratch = Scratch::new();
    let run = classifier(&scratch);
    let data = shown(&scratch.path("table.csv"));
    let file = |name: &str| shown(&scratch.path(name));
    let predict = |more: &[&str]| Finished::of(minrnn(&["predict", &run, "--data", &data]).args(more));
    predict(&["--logits", &file("logits.txt")]).refused(&["logits.txt", ".npy or .csv or .safetensors"]);
    predict(&["--hidden", &file("h.npy"), "--layer", "3"]).refused(&["the model has 2 blocks", "found 3"]);
    predict(&["--logits", &file("a.npy"), "--embeddings", &file("a.npy")]).refused(&["a.npy", "written twice"]);
    predict(&["--logits", &data]).refused(&["is the input"]);
    assert_eq!(predict(&["--layer", "1"]).code, Some(2));
    assert_eq!(predict(&["--hidden", &file("h.npy"), "--layer", "0"]).code, Some(2));
    predict(&["--logits", &file("nowhere/a.npy")]).failed(2, &["nowhere/a.npy"]);
    Finished::of(&mut minrnn(&["eval", &run, "--data", "-", "--logits", &file("a.npy")])).refused(&["read"]);
    assert!(!scratch.path("a.npy").exists() && leftovers(&scratch.path("")).is_empty());
}
