//! A training that starts from the weights of another one.

#[path = "common/scratch.rs"]
mod scratch;

use std::path::{Path, PathBuf};
use std::sync::atomic::AtomicBool;

use minrnn::train::{Experiment, Pointer, RunDir, Trainer, checkpoint};
use minrnn_model::CheckpointFiles;
use scratch::{Scratch, weights};

const TINY: &str = r#"
    [model]
    d_model = 8
    n_layers = 1
    [data]
    train_fraction = 0.5
    [train]
    seq_len = 12
    batch_size = 4
    max_iterations = 6
    warmup = 0
    eval_every = 3
    checkpoint_every = 3
    keep = "last"
    threads = 1
"#;
/// A learning rate so small that nothing is learned.
const STANDS_STILL: [&str; 2] = ["lr=1e-12", "min_lr=0"];

impl Scratch {
    /// A table with equally many sequences of each class, and numbers around `level`.
    fn table(&self, name: &str, classes: &[&str], column: &str, level: f64) -> String {
        let mut text = format!("id,class,{column}\n");
        for id in 0..4 * classes.len() {
            for t in 0..20 {
                let class = id % classes.len();
                text += &format!("s{id},{},{}\n", classes[class], level + (t as f64 * (0.3 + class as f64) + id as f64).sin());
            }
        }
        std::fs::write(self.path(name), text).unwrap();
        format!("path={}", self.path(name).display())
    }

    fn train(&self, run: &str, settings: &[&str]) -> minrnn::Result<Trainer> {
        let settings: Vec<String> = settings.iter().map(ToString::to_string).collect();
        let path = self.path(run);
        let run = if path.exists() { RunDir::open(path) } else { RunDir::create(path) }.unwrap();
        let mut trainer = Trainer::new(Experiment::parse(TINY, &settings).unwrap(), run)?;
        loop {
            let stop = AtomicBool::new(false);
            trainer.run(&stop, |_| Ok(()))?;
            if trainer.begin_refit(&stop)? == Some(false) {
                return Ok(trainer);
            }
        }
    }

    fn from(&self, run: &str) -> String {
        format!("from={}", self.path(run).display())
    }

    fn last(&self, run: &str) -> PathBuf {
        checkpoint(self.path(run), Pointer::Last).unwrap().unwrap()
    }

    fn refused(&self, settings: &[&str]) -> String {
        self.train("refused", settings).err().expect("it is refused").to_string()
    }
}

fn are_near(a: &[f32], b: &[f32]) -> bool {
    a.len() == b.len() && a.iter().zip(b).all(|(a, b)| (a - b).abs() < 1e-6)
}

const CLASSIFY: [&str; 3] = ["task=classify", "group=id", "target=class"];

fn classify<'a>(others: &[&'a str]) -> Vec<&'a str> {
    [&CLASSIFY[..], others].concat()
}

#[test]
fn a_training_starts_where_the_other_ended_and_sees_numbers_as_it_did() {
    let scratch = Scratch::new();
    let (own, far) = (scratch.table("own.csv", &["a", "b"], "x", 0.0), scratch.table("far.csv", &["a", "b"], "x", 3.0));
    scratch.train("first", &classify(&[&own])).unwrap();
    let from = scratch.from("first");
    scratch.train("second", &classify(&[&far, &from, STANDS_STILL[0], STANDS_STILL[1]])).unwrap();
    let (first, second) = (scratch.last("first"), scratch.last("second"));
    let of_second = weights(&second);
    for (name, values) in weights(&first) {
        assert!(are_near(&values, &of_second[&name]), "{name}");
    }
    let task = |checkpoint: &Path| CheckpointFiles::open(checkpoint).unwrap().text("task.json", 1 << 20).unwrap();
    assert_eq!(task(&first), task(&second));
    // Without it both differ.
    scratch.train("alone", &classify(&[&far, STANDS_STILL[0], STANDS_STILL[1], "seed=1"])).unwrap();
    let alone = scratch.last("alone");
    assert_ne!(task(&first), task(&alone));
    assert!(!are_near(&weights(&alone)["head.weight"], &of_second["head.weight"]));
}

#[test]
fn other_classes_get_a_head_of_their_own() {
    let scratch = Scratch::new();
    let (own, more) = (scratch.table("own.csv", &["a", "b"], "x", 0.0), scratch.table("more.csv", &["a", "b", "c"], "x", 0.0));
    let renamed = scratch.table("renamed.csv", &["a", "c"], "x", 0.0);
    scratch.train("first", &classify(&[&own])).unwrap();
    let (first, from) = (weights(&scratch.last("first")), scratch.from("first"));
    for (run, data) in [("more", &more), ("renamed", &renamed)] {
        scratch.train(run, &classify(&[data, &from, STANDS_STILL[0], STANDS_STILL[1]])).unwrap();
        for (name, values) in weights(&scratch.last(run)) {
            assert_eq!(are_near(&values, &first[&name]), !name.starts_with("head.") || values.iter().all(|&x| x == 0.0), "{run}: {name}");
        }
    }
}

#[test]
fn a_run_keeps_what_it_started_from_and_needs_the_other_no_more() {
    let scratch = Scratch::new();
    let (own, far) = (scratch.table("own.csv", &["a", "b"], "x", 0.0), scratch.table("far.csv", &["a", "b"], "x", 3.0));
    scratch.train("first", &classify(&[&own])).unwrap();
    let from = scratch.from("first");
    let settings = classify(&[&far, &from, "refit=true"]);
    let whole = weights(&scratch.last_of(&settings, "whole"));
    scratch.train("short", &classify(&[&far, &from])).unwrap();
    std::fs::remove_dir_all(scratch.path("first")).unwrap();
    drop(scratch.train("whole", &settings).unwrap());
    assert_eq!(weights(&scratch.last("whole")), whole);
    // The second round starts from it too.
    std::fs::remove_dir_all(scratch.path("whole/checkpoints")).unwrap();
    scratch.train("whole", &settings).unwrap();
    assert_eq!(weights(&scratch.last("whole")), whole);
}

impl Scratch {
    fn last_of(&self, settings: &[&str], run: &str) -> PathBuf {
        self.train(run, settings).unwrap();
        self.last(run)
    }
}

#[test]
fn text_keeps_the_vocabulary() {
    let scratch = Scratch::new();
    std::fs::write(scratch.path("own.txt"), "abcd efgh ".repeat(200)).unwrap();
    std::fs::write(scratch.path("near.txt"), "abba fed ".repeat(200)).unwrap();
    std::fs::write(scratch.path("far.txt"), "abba xyz ".repeat(200)).unwrap();
    let path = |name: &str| format!("path={}", scratch.path(name).display());
    scratch.train("first", &[&path("own.txt")]).unwrap();
    let from = scratch.from("first");
    let second = scratch.train("second", &[&path("near.txt"), &from, STANDS_STILL[0], STANDS_STILL[1]]).unwrap();
    assert_eq!(second.data().tokenizer().unwrap().vocab_size(), 9);
    let of_second = weights(&scratch.last("second"));
    assert!(weights(&scratch.last("first")).iter().all(|(name, values)| are_near(values, &of_second[name])));
    assert!(scratch.refused(&[&path("far.txt"), &from]).contains("'x'"));
    let refused = scratch.refused(&[&path("near.txt"), &from, "tokenizer=byte"]);
    assert!(refused.contains("another kind of tokenizer"), "{refused}");
}

#[test]
fn a_forecaster_goes_on_with_its_targets_and_may_look_further() {
    let scratch = Scratch::new();
    let rows: String = (0..60).map(|t| format!("{},{}\n", (f64::from(t) * 0.4).sin(), t % 7)).collect();
    std::fs::write(scratch.path("two.csv"), format!("x,y\n{rows}")).unwrap();
    let path = format!("path={}", scratch.path("two.csv").display());
    scratch.train("first", &[&path, "task=forecast", "target=x", "horizon=2"]).unwrap();
    let from = scratch.from("first");
    scratch.train("further", &[&path, &from, "task=forecast", "target=x", "horizon=3"]).unwrap();
    let other = scratch.refused(&[&path, &from, "task=forecast", "target=y", "horizon=2"]);
    assert!(other.contains("two.csv") && other.contains("forecasts 'x', and 'y' is to be forecast here"), "{other}");
}

#[test]
fn a_model_of_tokens_does_not_start_one_of_numbers() {
    let scratch = Scratch::new();
    std::fs::write(scratch.path("own.txt"), "abcd efgh ".repeat(200)).unwrap();
    scratch.train("text", &[&format!("path={}", scratch.path("own.txt").display())]).unwrap();
    let own = scratch.table("own.csv", &["a", "b"], "x", 0.0);
    let refused = scratch.refused(&classify(&[&own, &scratch.from("text")]));
    assert!(refused.contains("reads tokens, such as those of a text, and these data have 1 number a step"), "{refused}");
}

#[test]
fn another_model_or_other_columns_are_refused() {
    let scratch = Scratch::new();
    let (own, other) = (scratch.table("own.csv", &["a", "b"], "x", 0.0), scratch.table("other.csv", &["a", "b"], "y", 0.0));
    scratch.train("first", &classify(&[&own])).unwrap();
    let from = scratch.from("first");
    let refused = |others: &[&str]| scratch.refused(&classify(others));
    let wide = refused(&[&own, &from, "d_model=16"]);
    assert!(wide.contains("the model that train.from names has d_model = 8, and this one 16; take its settings of [model]"), "{wide}");
    let columns = refused(&[&other, &from]);
    assert!(columns.contains("other.csv") && columns.contains("was trained on 'x', and these are 'y'"), "{columns}");
    let missing = refused(&[&own, "from=nothing-there"]);
    assert!(missing.contains("nothing-there"), "{missing}");
    std::fs::write(scratch.last("first").join("model.safetensors"), b"damaged").unwrap();
    let damaged = refused(&[&own, &from]);
    assert!(damaged.contains("model.safetensors"), "{damaged}");
    assert!(!scratch.path("refused").join("data/start").exists());
}
