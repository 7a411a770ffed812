//! The tasks of the Long Range Arena from files to a report: training, resuming, evaluation, and the refusal of bad files.

mod common;

use std::fs;
use std::path::Path;

use common::{Finished, Scratch, Training, minrnn, shown};

/// A tiny training of an experiment of the arena.
fn training(scratch: &Scratch, task: &str, data: Option<&Path>, settings: &[&str]) -> Training {
    let settings = [&["max_iterations=6", "eval_every=3", "checkpoint_every=3"], settings].concat();
    let data = data.map_or(Vec::new(), |data| vec!["--data".to_owned(), shown(data)]);
    let args = [vec![task.to_owned()], data].concat();
    Training { args, ..scratch.task("run", &settings) }
}

const SMALL: [&str; 4] = ["listops_max_length=40", "listops_max_depth=4", "listops_train=30", "listops_eval=6"];

#[test]
fn list_ops_is_generated_trained_resumed_and_scored() {
    let scratch = Scratch::new();
    let whole = training(&scratch, "listops", None, &SMALL);
    let report = whole.run().ok().stdout;
    // Whole parts are scored: six expressions for each evaluation, in batches of four.
    assert!(report.contains("best: iteration") && report.contains("(6 predictions)"), "{report}");
    let folders: Vec<String> =
        fs::read_dir(whole.out.join("data")).unwrap().map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect();
    assert_eq!(folders, ["listops-length-10-40-depth-4-arguments-10-30-6-seed-0"]);

    // Interrupted, with the expressions shared in a folder of its own.
    let shared = scratch.path("shared");
    fs::create_dir(&shared).unwrap();
    let part = Training { out: scratch.path("part"), ..training(&scratch, "listops", Some(&shared), &SMALL) };
    part.with(&["max_iterations=3"]).run().ok();
    part.resume().ok();
    part.outcome().assert_equals(&whole.outcome());
    let scored = Finished::of(&mut minrnn(&["eval", &shown(&part.out)])).ok().stdout;
    assert!(scored.contains("test part: ") && scored.contains(" 6 predictions"), "{scored}");

    // Other expressions under the same name are noticed.
    let train = shared.join(&folders[0]).join("basic_train.tsv");
    let text = fs::read_to_string(&train).unwrap();
    fs::write(&train, text.lines().take(20).map(|line| format!("{line}\n")).collect::<String>()).unwrap();
    part.with(&["max_iterations=9"]).resume().refused(&["task.json", "not those that the run began with"]);
}

#[test]
fn pictures_are_classified() {
    let scratch = Scratch::new();
    let folder = scratch.path("cifar");
    fs::create_dir(&folder).unwrap();
    let record = |i: usize| [vec![i as u8 % 10], vec![(i * 12) as u8; 3072]].concat();
    for name in (1..=5).map(|i| format!("data_batch_{i}.bin")).chain(["test_batch.bin".to_owned()]) {
        fs::write(folder.join(name), (0..4).flat_map(record).collect::<Vec<u8>>()).unwrap();
    }
    for pixels in ["pixels=value", "pixels=token"] {
        let training = Training { out: scratch.path(pixels), ..training(&scratch, "image", Some(&folder), &["max_iterations=2", pixels]) };
        let report = training.run().ok().stdout;
        assert!(report.contains("test accuracy") && report.contains("(4 predictions)"), "{report}");
        let task = fs::read_to_string(training.checkpoint("last").join("task.json")).unwrap();
        assert!(task.contains("airplane") && task.contains("122.6"), "{task}");
    }
    fs::write(folder.join("data_batch_2.bin"), vec![0; 5000]).unwrap();
    training(&scratch, "image", Some(&folder), &[]).run().refused(&["data_batch_2.bin", "found 5000 bytes", "cifar-10-binary.tar.gz"]);
    assert!(!scratch.path("run").exists());
}

#[test]
fn pairs_of_documents_are_classified() {
    let scratch = Scratch::new();
    let folder = scratch.path("aan");
    fs::create_dir(&folder).unwrap();
    let line = |i: usize| format!("{}\tP{i}\tP{}\t{}\t{}\n", i % 2, i + 1, "ab ".repeat(1 + i % 3), "ba\"".repeat(1 + i % 4));
    for part in ["train", "eval", "test"] {
        fs::write(folder.join(format!("new_aan_pairs.{part}.tsv")), (0..7).map(line).collect::<String>()).unwrap();
    }
    let pairs = training(&scratch, "retrieval", Some(&folder), &[]);
    let report = pairs.run().ok().stdout;
    assert!(report.contains("test accuracy") && report.contains("(7 predictions)"), "{report}");
    let scored = Finished::of(&mut minrnn(&["eval", &shown(&pairs.out), "--data", &shown(&folder)])).ok().stdout;
    assert!(scored.contains(" 7 predictions"), "{scored}");

    let again = Training { out: scratch.path("again"), ..pairs };
    again.with(&["pair_head=false"]).run().refused(&["pair_head = true", "task = retrieval"]);
    fs::write(folder.join("new_aan_pairs.eval.tsv"), "1\tP1\tP2\tone\n").unwrap();
    again.run().refused(&["new_aan_pairs.eval.tsv", "line 1: expected 5 columns", "found 4"]);
    assert!(!again.out.exists());
}

#[test]
fn missing_folders_and_files_are_named() {
    let scratch = Scratch::new();
    let cases: [(&str, Option<&str>, &[&str]); 5] = [
        ("image", None, &["give the folder of CIFAR-10's binary version", "--data FOLDER"]),
        ("image", Some(""), &["data_batch_1.bin", "there is no such file", "cifar-10-binary.tar.gz"]),
        ("image", Some("none"), &["could not read the folder", "none"]),
        ("listops", Some("file"), &["expected the folder with the files of the task, found a file"]),
        ("image", Some("file"), &["expected the folder with the files of the task, found a file"]),
    ];
    fs::write(scratch.path("file"), "x").unwrap();
    for (task, data, parts) in cases {
        let training = training(&scratch, task, data.map(|name| scratch.path(name)).as_deref(), &[]);
        training.run().refused(parts);
        assert!(!training.out.exists(), "{task} {data:?}");
    }
    training(&scratch, "listops", None, &["listops_max_length=8", "listops_max_depth=1"]).run().refused(&["only 0 longer than 2"]);
    assert!(!scratch.path("run").exists());
}
