//! `minrnn import` and `minrnn export`: a trained run out to another library's names and back, and refusals of what does not fit.

mod common;

use std::fs;
use std::path::{Path, PathBuf};

use common::{Scratch, Training, leftovers, shown, told};
use minrnn::data::Tokenizer;
use serde_json::Value;

/// A model of another library, as the library wrote it.
fn foreign(name: &str) -> String {
    shown(&Path::new(env!("CARGO_MANIFEST_DIR")).join(format!("../minrnn/tests/fixtures/interchange/{name}.safetensors")))
}

/// The fixture `name` without what a test of its logits needs.
fn model(scratch: &Scratch, name: &str) -> PathBuf {
    let mut weights = minrnn_model::Weights::read(foreign(name)).unwrap();
    let names: Vec<String> = weights.names().filter(|name| !name.starts_with("case.")).map(ToOwned::to_owned).collect();
    let tensors = names.into_iter().map(|name| {
        let (shape, data) = weights.take_any(&name).unwrap().into_parts();
        (name, shape, data.into())
    });
    let path = scratch.path(&format!("{name}.safetensors"));
    minrnn_model::write_safetensors(&path, tensors.collect::<Vec<_>>(), None).unwrap();
    path
}

#[test]
fn an_imported_model_is_inspected_packed_and_exported_to_the_file_it_was() {
    let scratch = Scratch::new();
    let (file, again) = (model(&scratch, "min_gru_pytorch"), scratch.path("again.safetensors"));
    let directory = shown(&scratch.path("imported"));
    let import = || told(&["import", &shown(&file), "--format", "min-gru-pytorch", "-o", &directory]);
    assert!(import().ok().stdout.contains("min-gru, 2 blocks of width 8"));
    assert!(told(&["inspect", &directory]).ok().stdout.contains("min-gru"));
    told(&["pack", &directory, "-o", &shown(&scratch.path("imported.minrnn"))]).ok();
    told(&["export", &directory, "--format", "min-gru-pytorch", "-o", &shown(&again)]).ok();
    let tensors = |path: &Path| {
        let weights = minrnn_model::Weights::read(path).unwrap();
        weights.names().map(|name| (name.to_owned(), weights.get(name).unwrap().clone())).collect::<Vec<_>>()
    };
    assert_eq!(tensors(&again), tensors(&file));
    // What is there is never written over.
    import().refused(&["imported", "already exists"]);
    // Zeros that the other library does not store are not written either.
    for name in ["mamba_hf_three_taps", "mamba_hf_without_conv_bias"] {
        let (file, directory) = (model(&scratch, name), shown(&scratch.path(name)));
        told(&["import", &shown(&file), "--format", "mamba-hf", "-o", &directory]).ok();
        told(&["export", &directory, "--format", "mamba-hf", "-o", &shown(&again)]).ok();
        assert_eq!(tensors(&again), tensors(&file));
    }
}

#[test]
fn a_trained_run_goes_through_another_library_with_its_vocabulary() {
    let scratch = Scratch::new();
    scratch.training("run", &["mixer=lstm", "expansion=1"]).run().ok();
    let (run, layers, again) = (shown(&scratch.path("run")), shown(&scratch.path("lstm.safetensors")), shown(&scratch.path("again")));
    told(&["export", &run, "--format", "torch-lstm", "-o", &layers]).ok();
    let back = told(&["import", &layers, "--format", "torch-lstm", "--into", &run, "-o", &again]).ok();
    assert!(back.stdout.contains("next: minrnn generate"), "{}", back.stdout);
    let text = |model: &str| told(&["generate", model, "--prompt", "the ", "--max-tokens", "30", "--temperature", "0"]).ok().stdout;
    assert_eq!(text(&again), text(&run));
    let other = shown(&scratch.text("other.txt"));
    told(&["eval", &again, "--data", &other, "--batches", "1"]).ok();
}

/// A training of GRU's layers as PyTorch has them.
fn of_gru(scratch: &Scratch, args: &[&str], settings: &[&str]) -> Training {
    let gru = ["mixer=gru", "gru_form=torch", "expansion=1", "max_iterations=10"];
    Training { args: args.iter().map(ToString::to_string).collect(), ..scratch.task("run", &[&gru[..], settings].concat()) }
}

/// Exports the layers of the model `run` and imports them into it again; returns the new checkpoint and what was said about it.
fn there_and_back(scratch: &Scratch, run: &str) -> (String, String) {
    let (layers, again) = (shown(&scratch.path("gru.safetensors")), shown(&scratch.path("again")));
    told(&["export", run, "--format", "torch-gru", "-o", &layers]).ok();
    let imported = told(&["import", &layers, "--format", "torch-gru", "--into", run, "-o", &again]).ok();
    (again, imported.stdout)
}

#[test]
fn a_model_of_a_table_goes_through_another_library_and_predicts_the_same() {
    let scratch = Scratch::new();
    let row = |i: usize| format!("m{},{},{},{}\n", i / 6, i * 7 % 11, ["a", "b"][i % 2], ["up", "down"][i / 6 % 2]);
    let table = (0..240).map(row).fold("m,v,kind,state\n".to_owned(), |table, row| table + &row);
    let data = shown(&scratch.write("classes.csv", table));
    let args = ["--task", "classify", "--data", &data, "--group", "m", "--target", "state", "--columns", "v,kind"];
    let run = of_gru(&scratch, &args, &[]);
    run.run().ok();
    let run = shown(&run.out);
    let (again, said) = there_and_back(&scratch, &run);
    assert!(said.contains("next: minrnn predict") && !said.contains("--tokenizer"), "{said}");
    let predicted = |model: &str| told(&["predict", model, "--data", &data]).ok().stdout;
    assert_eq!(predicted(&again), predicted(&run));
    told(&["pack", &again, "-o", &shown(&scratch.path("again.minrnn"))]).ok();
}

#[test]
fn the_threshold_of_a_forecaster_goes_along_only_where_no_weight_is_another() {
    let scratch = Scratch::new();
    let table = (0..400).fold("t,load\n".to_owned(), |table, t| format!("{table}{t},{}\n", 100 + t % 13 + t * 7 % 5));
    let data = shown(&scratch.write("loads.csv", table));
    let args = ["--task", "forecast", "--data", &data, "--target", "load", "--horizon", "4", "--season", "4"];
    let run = of_gru(&scratch, &args, &["seq_len=32"]);
    run.run().ok();
    let run = shown(&run.out);
    let (again, _) = there_and_back(&scratch, &run);
    let out = |command: &str, model: &str| {
        let finished = told(&[command, model, "--data", &data]).ok();
        (finished.stdout, finished.stderr)
    };
    assert_eq!(out("predict", &again).0, out("predict", &run).0);
    assert_eq!(out("score", &again), out("score", &run));

    // Other layers find other rows surprising.
    let mut weights = minrnn_model::Weights::read(scratch.path("gru.safetensors")).unwrap();
    let names: Vec<String> = weights.names().map(ToOwned::to_owned).collect();
    let tensors = names.into_iter().map(|name| {
        let (shape, data) = weights.take_any(&name).unwrap().into_parts();
        (name, shape, data.iter().map(|x| x / 2.0).collect::<Vec<_>>().into())
    });
    let (halved, other) = (shown(&scratch.path("halved.safetensors")), shown(&scratch.path("other")));
    minrnn_model::write_safetensors(&halved, tensors.collect::<Vec<_>>(), None).unwrap();
    told(&["import", &halved, "--format", "torch-gru", "--into", &run, "-o", &other]).ok();
    assert!(Path::new(&again).join("surprise.json").exists() && !Path::new(&other).join("surprise.json").exists());
    assert_ne!(out("predict", &other).0, out("predict", &run).0);
    let (_, said) = out("score", &other);
    assert!(said.contains("none is marked"), "{said}");
}

#[test]
fn a_policy_goes_through_another_library_and_acts_the_same() {
    let scratch = Scratch::new();
    let recorded = shown(&scratch.path("medium.trajectories"));
    told(&["rollout", "--behavior", "medium", "--episodes", "8", "--record", &recorded]).ok();
    let run = of_gru(&scratch, &["--task", "policy", "--data", &recorded], &[]);
    run.run().ok();
    let run = shown(&run.out);
    let (again, said) = there_and_back(&scratch, &run);
    assert!(said.contains("next: minrnn rollout"), "{said}");
    let acted = |model: &str| {
        let acted: Value = serde_json::from_str(&told(&["rollout", model, "--json", "--episodes", "2"]).ok().stdout).unwrap();
        ["mean_return", "target_return", "steps"].map(|key| acted[key].clone())
    };
    assert_eq!(acted(&again), acted(&run));
}

#[test]
fn what_does_not_fit_is_a_sentence_and_leaves_nothing() {
    let scratch = Scratch::new();
    let (file, out) = (shown(&model(&scratch, "min_gru_pytorch")), shown(&scratch.path("out")));
    let import = |args: &[&str]| told(&[&["import"], args, &["-o", &out]].concat());
    import(&[&file, "--format", "min-rnns"]).refused(&["layers.0.1.norm.weight", "is missing"]);
    import(&[&file, "--format", "torch-gru"]).refused(&["--into RUN"]);
    import(&[&file, "--format", "min-gru-pytorch", "--into", &out]).refused(&["goes into no other"]);
    import(&[&file, "--format", "min-gru-pytorch", "--set", "d_model=16"]).refused(&["the file says d_model = 8"]);
    import(&[&file, "--format", "min-gru-pytorch", "--set", "widht=16"]).refused(&["unknown key 'widht'"]);
    import(&[&shown(&scratch.path("none")), "--format", "min-gru-pytorch"]).refused(&["none"]);
    let not_json = ["min_gru_pytorch.safetensors': is not valid json", "take this model's own tokenizer.json"];
    import(&[&file, "--format", "min-gru-pytorch", "--tokenizer", &file]).refused(&not_json);
    let large = scratch.path("large.json");
    Tokenizer::characters_of(&('\u{4e00}'..'\u{6000}').collect::<String>()).save(&large).unwrap();
    let too_many = ["large.json': has 4608 tokens, but the model knows", "take the tokenizer of this model"];
    import(&[&file, "--format", "min-gru-pytorch", "--tokenizer", &shown(&large)]).refused(&too_many);
    assert_eq!(import(&[&file, "--format", "min-gruu"]).code, Some(2));
    assert!(!Path::new(&out).exists() && leftovers(&scratch.path("")).is_empty());

    told(&["import", &file, "--format", "min-gru-pytorch", "-o", &out]).ok();
    told(&["generate", &out]).refused(&["has no tokenizer.json: it was imported without a vocabulary", "takes with --tokenizer FILE"]);
    let export = |format: &str, to: &str| told(&["export", &out, "--format", format, "-o", to]);
    let to = shown(&scratch.path("to.safetensors"));
    export("torch-gru", &to).refused(&["mixer = gru, found mixer = min-gru"]);
    export("min-gru-pytorch", &out).refused(&["is a directory"]);
    export("min-gru-pytorch", &shown(&scratch.path("none/to"))).failed(2, &["none"]);
    assert!(!Path::new(&to).exists());

    // A damaged file is refused before anything is written.
    let bytes = fs::read(&file).unwrap();
    let cut = shown(&scratch.write("cut.safetensors", &bytes[..bytes.len() - 4]));
    let other = shown(&scratch.path("other"));
    told(&["import", &cut, "--format", "min-gru-pytorch", "-o", &other]).refused(&["cut.safetensors"]);
    assert!(!Path::new(&other).exists());
}
