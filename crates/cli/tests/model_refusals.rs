//! Models, sessions and files that do not fit each other are refused with exit code 2 and a sentence with the tensor or the key, what was
//! expected and what was found.

mod common;

use std::fs;
use std::path::{Path, PathBuf};

use burn::tensor::Device;
use common::{Scratch, shown, told};
use minrnn::checkpoint::save_weights;
use minrnn::model::SequenceModel;
use minrnn_model::{CheckpointConfig, MixerKind, ModelConfig, Tensor, WEIGHTS_FILE, Weights, write_safetensors};

type Tensors = Vec<(String, Tensor)>;

fn tensors(path: &Path) -> Tensors {
    let mut weights = Weights::read(path).unwrap();
    let names: Vec<String> = weights.names().map(ToOwned::to_owned).collect();
    names.into_iter().map(|name| (name.clone(), weights.take_any(&name).unwrap())).collect()
}

fn write(path: &Path, tensors: Tensors) {
    let tensors = tensors.into_iter().map(|(name, tensor)| {
        let (shape, data) = tensor.into_parts();
        (name, shape, data.into())
    });
    write_safetensors(path, tensors, None).unwrap();
}

/// The values of `tensor` in another shape.
fn reshaped(tensor: &Tensor, shape: &[usize]) -> Tensor {
    Tensor::new(shape.to_vec(), tensor.data().to_vec()).unwrap()
}

/// A checkpoint of one block.
fn checkpoint(scratch: &Scratch, name: &str, config: &ModelConfig) -> PathBuf {
    let directory = scratch.path(name);
    fs::create_dir(&directory).unwrap();
    CheckpointConfig::new(config.clone()).write(&directory).unwrap();
    save_weights(&SequenceModel::new(config, 0, &Device::flex()).unwrap(), directory.join(WEIGHTS_FILE)).unwrap();
    directory
}

/// Of a file that cannot be what is asked for, only the beginning is read.
#[test]
#[cfg(unix)]
fn files_too_large_for_memory_are_refused_by_their_first_bytes() {
    let scratch = Scratch::new();
    let huge = |name: &str, beginning: &[u8]| {
        let path = scratch.write(name, beginning);
        // A sparse file, which takes no room on the disk.
        fs::File::options().write(true).open(&path).unwrap().set_len(1 << 40).unwrap();
        shown(&path)
    };
    let model = huge("model.minrnn", b"\x89minrnn\n\x07");
    for command in ["inspect", "predict", "eval", "stream"] {
        let data: &[&str] = if command == "inspect" { &[] } else { &["--data", "Cargo.toml"] };
        let data = if command == "stream" { &[] } else { data };
        told(&[&[command, model.as_str()], data].concat()).refused(&["model.minrnn", "has version 7, expected at most 2"]);
    }
    let training = scratch.training("run", &["max_iterations=2"]);
    training.run().ok();
    let state = huge("state", b"no state");
    told(&["stream", &shown(&training.out), "--load-state", &state]).refused(&["state", "does not begin like one"]);
}

fn small(mixer: MixerKind) -> ModelConfig {
    ModelConfig { mixer, vocab_size: 11, d_model: 8, n_layers: 1, max_seq_len: 16, ..Default::default() }
}

#[test]
fn heads_and_states_that_do_not_fit_are_named() {
    let scratch = Scratch::new();
    let cases: [(&str, &[&str]); 12] = [
        ("mixer=attention n_heads=3", &["n_heads must divide d_model, found 3 heads for 16 with mixer = attention"]),
        ("mixer=s-lstm n_heads=3", &["n_heads must divide d_model, found 3 heads for 16 with mixer = s-lstm"]),
        ("mixer=m-lstm n_heads=3", &["n_heads must divide the inner width", "found 3 heads for 64 with mixer = m-lstm"]),
        ("mixer=ret-net n_heads=3", &["n_heads must divide d_model, found 3 heads for 16"]),
        ("mixer=ret-net n_heads=16", &["rotates pairs of channels", "16 heads of d_model 16 have 1 each"]),
        ("mixer=aaren n_heads=3", &["n_heads must divide the inner width, found 3 heads for 32"]),
        ("mixer=linear-attention n_heads=5", &["n_heads must divide the inner width, found 5 heads for 32"]),
        ("mixer=delta n_heads=0", &["n_heads must be between 1", "found 0"]),
        ("mixer=s4 d_state=7", &["s4 keeps half of d_state", "found 7"]),
        ("mixer=h3 head_width=3", &["head_width must divide d_model = 16, found 3"]),
        ("mixer=mamba d_state=0", &["d_state must be between 1", "found 0"]),
        ("mixer=rwkv4 initial_state=learned", &["initial_state = learned does not exist for mixer = rwkv4"]),
    ];
    for (settings, parts) in cases {
        let training = scratch.training("run", &settings.split(' ').collect::<Vec<_>>());
        training.run().refused(parts);
        assert!(!training.out.exists(), "{settings}");
        // The same of a model that is there: its configuration was changed afterwards.
        let sets: Vec<&str> = settings.split(' ').flat_map(|setting| ["--set", setting]).collect();
        told(&[&["inspect", "text", "--set", "d_model=16"], &sets[..]].concat()).refused(parts);
    }
}

#[test]
fn weights_of_another_name_or_shape_are_named_whatever_the_mixer() {
    let scratch = Scratch::new();
    for &mixer in MixerKind::ALL {
        let config = small(mixer);
        let directory = checkpoint(&scratch, mixer.name(), &config);
        let (file, whole) = (directory.join(WEIGHTS_FILE), tensors(&directory.join(WEIGHTS_FILE)));
        // The largest tensor of the mixer.
        let of_mixer = |(name, _): &&(String, Tensor)| name.starts_with("backbone.blocks.0.mixer.");
        let (name, tensor) = whole.iter().filter(of_mixer).max_by_key(|(_, tensor)| tensor.data().len()).unwrap();
        let refused = |change: &dyn Fn(&mut (String, Tensor)), parts: &[&str]| {
            let mut changed = whole.clone();
            changed.iter_mut().filter(|(found, _)| found == name).for_each(change);
            write(&file, changed);
            let out = shown(&scratch.path("packed"));
            told(&["inspect", &shown(&directory)]).refused(parts);
            told(&["pack", &shown(&directory), "-o", &out]).refused(parts);
            assert!(!Path::new(&out).exists());
        };
        let expected = format!("{:?}", tensor.shape());
        refused(
            &|(name, _)| name.push('s'),
            &[&format!("tensor '{name}' is missing"), &format!("expected with shape {expected}"), &format!("'{name}s'")],
        );
        let flat = [tensor.data().len()];
        refused(&|(_, tensor)| *tensor = reshaped(tensor, &flat), &[&format!("'{name}' has shape {flat:?}, expected {expected}")]);
        // One more tensor, of a block that is not there.
        let surplus = name.replace("blocks.0", "blocks.1");
        write(&file, [whole.clone(), vec![(surplus.clone(), tensor.clone())]].concat());
        told(&["inspect", &shown(&directory)]).refused(&[&format!("tensor '{surplus}' is not part of this model")]);
    }
}

#[test]
fn a_configuration_of_another_model_names_the_first_tensor_that_differs() {
    let scratch = Scratch::new();
    let directory = checkpoint(&scratch, "model", &small(MixerKind::Mamba));
    let refused = |config: ModelConfig, parts: &[&str]| {
        CheckpointConfig::new(config).write(&directory).unwrap();
        told(&["inspect", &shown(&directory)]).refused(parts);
    };
    refused(
        ModelConfig { d_state: 4, ..small(MixerKind::Mamba) },
        &["'backbone.blocks.0.mixer.x_proj.weight' has shape [33, 16], expected [9, 16]"],
    );
    refused(ModelConfig { vocab_size: 12, ..small(MixerKind::Mamba) }, &["'embedding.weight' has shape [11, 8], expected [12, 8]"]);
    refused(small(MixerKind::S4), &["tensor 'backbone.blocks.0.mixer.", "is missing, expected with shape"]);
}

#[test]
fn a_session_of_another_model_is_named_with_the_part_that_differs() {
    let scratch = Scratch::new();
    let train = |name: &str, settings: &[&str]| {
        let training = scratch.training(name, &["max_iterations=2", "eval_every=2", "eval_iterations=1"]).with(settings);
        training.run().ok();
        shown(&scratch.path(name))
    };
    let (narrow, wide) = (train("narrow", &["mixer=min-gru"]), train("wide", &["mixer=mamba", "ff=none"]));
    let (attention, other) = (train("attention", &["mixer=attention"]), train("other", &["mixer=min-gru", "seed=5"]));
    let session = shown(&scratch.path("session"));
    let save = |run: &str| told(&["generate", run, "--max-tokens", "3", "--save-session", &session]).ok();
    let load = |run: &str| told(&["generate", run, "--max-tokens", "3", "--load-session", &session]);
    save(&narrow);
    // One number of state for each of 32 channels; Mamba has 16, and a window of 3.
    load(&wide).failed(2, &["another model", "has shape [1, 32], expected [1, 608]"]);
    load(&attention).failed(2, &["another model", "has shape [1, 32], expected [1, 1]"]);
    load(&other).failed(2, &["another model or other weights; load it with the checkpoint it was made with"]);
    save(&attention);
    load(&narrow).failed(2, &["another model", "has shape [1, 1], expected [1, 32]"]);
    load(&attention).ok();
}

#[test]
fn a_file_of_another_library_with_a_wrong_name_or_shape_is_named() {
    let scratch = Scratch::new();
    let fixture = Path::new(env!("CARGO_MANIFEST_DIR")).join("../minrnn/tests/fixtures/interchange/min_gru_pytorch.safetensors");
    let whole: Tensors = tensors(&fixture).into_iter().filter(|(name, _)| !name.starts_with("case.")).collect();
    let (file, out) = (scratch.path("file.safetensors"), shown(&scratch.path("out")));
    let import = |tensors: Tensors| {
        write(&file, tensors);
        told(&["import", &shown(&file), "--format", "min-gru-pytorch", "-o", &out])
    };
    import(whole.clone()).ok();
    fs::remove_dir_all(&out).unwrap();
    // A tensor that determines no other's shape.
    let name = "layers.1.4.0.bias";
    let with = |change: &dyn Fn(&mut (String, Tensor))| {
        let mut changed = whole.clone();
        changed.iter_mut().filter(|(found, _)| found == name).for_each(change);
        changed
    };
    import(with(&|(name, _)| name.push('s'))).refused(&[&format!("tensor '{name}' is missing"), "expected with shape [32]"]);
    import(with(&|(_, tensor)| *tensor = reshaped(tensor, &[2, 16]))).refused(&[&format!("'{name}' has shape [2, 16], expected [32]")]);
    let surplus = vec![("nothing.weight".to_owned(), Tensor::new(vec![1], vec![0.0]).unwrap())];
    import([whole.clone(), surplus].concat()).refused(&["'nothing.weight' is not part of this model"]);
    assert!(!Path::new(&out).exists());
}

#[test]
fn weights_that_are_not_finite_are_refused_by_name_whoever_runs_the_model() {
    let scratch = Scratch::new();
    let (data, out) = (shown(&scratch.text("text.txt")), shown(&scratch.path("packed")));
    // One that the runtime runs, and one that the training model runs.
    for mixer in [MixerKind::MinGru, MixerKind::Attention] {
        let directory = checkpoint(&scratch, mixer.name(), &small(mixer));
        let file = directory.join(WEIGHTS_FILE);
        let mut damaged = tensors(&file);
        let (name, tensor) = damaged.last_mut().unwrap();
        tensor.data_mut()[5] = f32::NAN;
        let parts = [&format!("tensor '{name}' holds NaN at position 5")[..], "expected finite numbers"];
        write(&file, damaged.clone());
        let directory = shown(&directory);
        told(&["generate", &directory, "--prompt", "a"]).refused(&parts);
        told(&["eval", &directory, "--data", &data]).refused(&parts);
        told(&["predict", &directory, "--data", &data]).refused(&parts);
        if mixer == MixerKind::MinGru {
            told(&["pack", &directory, "-o", &out]).refused(&parts);
            assert!(!Path::new(&out).exists());
        }
    }
}
