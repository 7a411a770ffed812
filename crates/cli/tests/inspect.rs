//! `minrnn inspect` and `minrnn experiments` as their users run them.

mod common;

use std::path::Path;

use burn::tensor::Device;
use common::{Finished, shown, told};
use minrnn::checkpoint::save_weights;
use minrnn::model::SequenceModel;
use minrnn::train::RunDir;
use minrnn_model::{CheckpointConfig, MixerKind, ModelConfig, WEIGHTS_FILE, write_safetensors};

fn inspect(path: &Path) -> Finished {
    told(&["inspect", &shown(path)])
}

/// A run with the checkpoints `iter-10` (best) and `iter-20` (last).
fn run() -> tempfile::TempDir {
    let parent = tempfile::tempdir().unwrap();
    let run = RunDir::create(parent.path().join("run")).unwrap();
    let config = ModelConfig { mixer: MixerKind::MinLstm, vocab_size: 1000, d_model: 16, n_layers: 2, conv: true, ..Default::default() };
    let model = SequenceModel::new(&config, 1, &Device::flex()).unwrap();
    for (iteration, is_best) in [(10, true), (20, false)] {
        let write = |directory: &Path| {
            CheckpointConfig::new(config.clone()).write(directory)?;
            std::fs::write(directory.join("progress.json"), format!(r#"{{"iteration": {iteration}, "best": null}}"#)).unwrap();
            save_weights(&model, directory.join(WEIGHTS_FILE))
        };
        run.save(iteration, is_best, &[], write).unwrap();
    }
    parent
}

#[test]
fn a_run_shows_its_best_checkpoint_configuration_parameters_state_and_progress() {
    let parent = run();
    // The columns are as wide as their longest name.
    let text = inspect(&parent.path().join("run")).ok().stdout;
    let text = text.lines().map(|line| line.split_whitespace().collect::<Vec<_>>().join(" ") + "\n").collect::<String>();
    for line in [
        "best iter-10",
        "last iter-20",
        "mixer min-lstm",
        "d_model 16",
        "parameters ",
        "backbone.blocks.1.mixer.in_proj.weight",
        "[96, 16]",
        "iteration 10",
        "best none",
        // Two layers of a state of 32 and a window of 3 × 16, in f32.
        "state 640 bytes per sequence",
    ] {
        assert!(text.contains(line), "{line}: {text}");
    }
}

#[test]
fn parameters_are_counted_and_grouped() {
    let parent = run();
    let checkpoint = parent.path().join("run/checkpoints/iter-20");
    let text = inspect(&checkpoint).ok().stdout;
    assert!(text.contains("iteration  20") && !text.contains("last  "), "{text}");
    let total = text.lines().find_map(|line| line.trim().strip_prefix("parameters")).unwrap().replace(' ', "");
    let listed = text.lines().filter_map(|line| line.trim().strip_suffix(']')?.split_once(" [").map(|(_, shape)| shape));
    let product = |shape: &str| shape.split(", ").map(|size| size.parse::<usize>().unwrap()).product::<usize>();
    let sum: usize = listed.filter(|shape| !shape.is_empty() && !shape.contains('"')).map(product).sum();
    assert_eq!(total, sum.to_string());
}

#[test]
fn a_tensor_file_shows_its_tensors_and_metadata_with_control_characters_escaped() {
    let fixture = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/fixtures/verify/min_gru_positive.safetensors");
    let text = inspect(&fixture).ok().stdout;
    for line in ["14 tensors", "candidate  positive", "cell       min_gru", "loss_weight", "[2, 33, 6]"] {
        assert!(text.contains(line), "{line}: {text}");
    }
    let file = tempfile::NamedTempFile::new().unwrap();
    write_safetensors(file.path(), [("a\u{1b}[2J".to_owned(), vec![1], vec![0.0].into())], Some(("note", "x\ny"))).unwrap();
    let text = inspect(file.path()).ok().stdout;
    assert!(text.contains(r"a\u{1b}[2J") && text.contains(r"x\ny") && !text.contains('\u{1b}'), "{text}");
}

#[test]
fn what_is_neither_a_run_nor_a_tensor_file_is_refused() {
    let directory = tempfile::tempdir().unwrap();
    inspect(directory.path()).refused(&["expected a run directory or a checkpoint"]);
    inspect(&directory.path().join("none")).refused(&["none"]);
    let text = directory.path().join("notes.txt");
    std::fs::write(&text, "not a tensor file").unwrap();
    inspect(&text).refused(&["notes.txt': it is no safetensors file, expected a safetensors file or a packed model"]);
    let episodes = directory.path().join("a.trajectories");
    told(&["rollout", "--behavior", "random", "--episodes", "2", "--record", &shown(&episodes)]).ok();
    inspect(&episodes).refused(&["a.trajectories': it is a file of trajectories, expected a safetensors file or"]);
}

#[test]
fn damaged_checkpoints_are_refused() {
    let parent = run();
    let checkpoint = parent.path().join("run/checkpoints/iter-10");
    std::fs::write(checkpoint.join("progress.json"), "[1").unwrap();
    inspect(&checkpoint).refused(&["progress.json"]);
    let weights = checkpoint.join(WEIGHTS_FILE);
    let bytes = std::fs::read(&weights).unwrap();
    std::fs::write(&weights, &bytes[..bytes.len() - 10]).unwrap();
    inspect(&checkpoint).refused(&["cut short"]);
    std::fs::remove_file(&weights).unwrap();
    inspect(&parent.path().join("run")).refused(&[WEIGHTS_FILE]);
    std::fs::remove_file(checkpoint.join("SHA256SUMS")).unwrap();
    std::fs::write(checkpoint.join("config.json"), "{}").unwrap();
    inspect(&checkpoint).refused(&["config.json"]);
}

/// The lines of an untrained model, with single spaces.
fn untrained(arguments: &[&str]) -> String {
    let text = told(&[&["inspect"], arguments].concat()).ok().stdout;
    text.lines().map(|line| line.split_whitespace().collect::<Vec<_>>().join(" ") + "\n").collect()
}

#[track_caller]
fn assert_lines(text: &str, lines: &[&str]) {
    lines.iter().for_each(|line| assert!(text.lines().any(|found| found.starts_with(line)), "{line}: {text}"));
}

#[test]
fn an_experiment_shows_what_its_model_would_cost() {
    let text = untrained(&["shakespeare-min-gru"]);
    let lines = [
        "experiment shakespeare-min-gru, not trained",
        "mixer min-gru",
        "vocabulary 65 tokens (the characters of Tiny Shakespeare)",
        "parameters 6 709 248",
        "weights 26 836 992 bytes as f32",
        "state 23 040 bytes per sequence",
        "FLOPs 13 339 392 per token",
        "3 × block of min-gru",
    ];
    assert_lines(&text, &lines);
    assert!(!text.contains("cache"), "{text}");
    let text = untrained(&["shakespeare-transformer"]);
    // Keys and values of 384 numbers each in three layers; the state is four counters of positions.
    let lines = ["parameters 5 434 368", "state 16 bytes", "cache 9 216 bytes per token, up to 256 tokens (2 359 296 bytes) of attention"];
    assert_lines(&text, &lines);
    assert_lines(&text, &["FLOPs 10 671 360 for the first token, 11 846 400 for one that sees 256"]);
}

#[test]
fn an_experiment_that_learns_from_a_table_says_that_its_run_is_to_be_given() {
    let sentence = "experiment 'forecast' learns from a file, which says how large its model is; train it, and give the run";
    told(&["inspect", "forecast"]).refused(&[sentence]);
}

#[test]
fn the_vocabulary_of_an_untrained_model_is_set_or_known_or_assumed() {
    assert_lines(&untrained(&["text"]), &["vocabulary 65 tokens (assumed, as in Tiny Shakespeare"]);
    assert_lines(&untrained(&["text", "--set", "tokenizer=byte"]), &["vocabulary 256 tokens (the bytes)"]);
    assert_lines(&untrained(&["text", "--set", "vocab_size=100"]), &["vocabulary 100 tokens (vocab_size)"]);
    assert_lines(&untrained(&["selective-copying"]), &["vocabulary 16 tokens (of the task)"]);
    let directory = tempfile::tempdir().unwrap();
    let text = directory.path().join("text.txt");
    std::fs::write(&text, "abcabc\n").unwrap();
    assert_lines(&untrained(&["text", "--set", &format!("path={}", text.display())]), &["vocabulary 4 tokens (the characters of"]);
}

#[test]
fn an_experiment_file_and_a_configuration_take_settings() {
    let directory = tempfile::tempdir().unwrap();
    let file = directory.path().join("mine.toml");
    std::fs::write(&file, "[model]\nmixer = 'mamba'\nff = 'none'\nd_model = 8\n").unwrap();
    let text = untrained(&[file.to_str().unwrap(), "--set", "n_layers=3"]);
    assert_lines(&text, &["mixer mamba", "3 × block of mamba"]);
    let config = ModelConfig { vocab_size: 11, d_model: 8, ..Default::default() };
    CheckpointConfig::new(config).write(directory.path()).unwrap();
    let file = directory.path().join("config.json");
    let text = untrained(&[file.to_str().unwrap(), "--set", "mixer=hyena", "--set", "max_seq_len=150"]);
    assert_lines(&text, &["mixer hyena", "cache 64 bytes per token for 149 tokens (9 536 bytes), from the first on, of hyena"]);
    let refusals = [
        (vec!["--set", "d_modle=3"], "did you mean 'd_model'"),
        (vec!["--set", "expansion=0.3"], "expansion"),
        (vec!["--set", "mixer=aaren", "--set", "n_heads=3"], "n_heads must divide the inner width"),
    ];
    for (set, sentence) in refusals {
        told(&[&["inspect", file.to_str().unwrap()], &set[..]].concat()).refused(&[sentence]);
    }
}

#[test]
fn what_is_no_experiment_and_settings_of_a_trained_model_are_refused() {
    told(&["inspect", "shakespeare-min-gur"]).refused(&["no experiment 'shakespeare-min-gur'; did you mean 'shakespeare-min-gru'?"]);
    let parent = run();
    let of_run = told(&["inspect", &shown(&parent.path().join("run")), "--set", "d_model=8"]);
    of_run.refused(&["settings change only an experiment or a config.json"]);
    let json = parent.path().join("other.json");
    std::fs::write(&json, "{}").unwrap();
    inspect(&json).refused(&["expected a checkpoint configuration"]);
}

#[test]
fn experiments_are_listed_with_what_they_should_reach() {
    let text = told(&["experiments"]).ok().stdout;
    for line in ["selective-copying ", "expected: test accuracy 1, within 0.01", "shakespeare-min-gru", "test loss 1.548", "source: "] {
        assert!(text.contains(line), "{line}: {text}");
    }
}
