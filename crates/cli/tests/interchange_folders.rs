//! `minrnn import` and `minrnn export` of whole folders, of files in parts and of other types, and of graphs.

mod common;

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

use common::{Scratch, leftovers, shown, told};
use minrnn_model::{INDEX_FILE, Tensor, Tokenizer, Weights, write_safetensors};
use safetensors::tensor::{Dtype, TensorView};
use serde_json::{Value, json};

type Tensors = BTreeMap<String, Tensor>;

fn tensors(path: &Path) -> Tensors {
    let weights = Weights::read(path).unwrap();
    weights.names().map(|name| (name.to_owned(), weights.get(name).unwrap().clone())).collect()
}

/// The model of another library in the fixture `name`, without what a test of its logits needs.
fn model(name: &str) -> Tensors {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join(format!("../minrnn/tests/fixtures/interchange/{name}.safetensors"));
    tensors(&path).into_iter().filter(|(name, _)| !name.starts_with("case.")).collect()
}

fn write(path: &Path, tensors: &Tensors) {
    let items = tensors.iter().map(|(name, tensor)| (name.clone(), tensor.shape().to_vec(), tensor.data().into()));
    write_safetensors(path, items, None).unwrap();
}

fn read_json(path: &Path) -> Value {
    serde_json::from_slice(&fs::read(path).unwrap()).unwrap()
}

/// The names in a folder.
fn listed(folder: &Path) -> Vec<String> {
    let mut names: Vec<String> = fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect();
    names.sort();
    names
}

/// A folder of the fixture `name`, made by an import and an export.
fn folder_of(scratch: &Scratch, name: &str, format: &str) -> PathBuf {
    let (file, imported, folder) = (scratch.path(&format!("{name}.safetensors")), shown(&scratch.path("imported")), scratch.path("folder"));
    write(&file, &model(name));
    told(&["import", &shown(&file), "--format", format, "-o", &imported]).ok();
    told(&["export", &imported, "--format", format, "-o", &shown(&folder)]).ok();
    folder
}

#[test]
fn a_folder_that_was_exported_is_imported_as_the_model_that_it_was() {
    for (name, format) in
        [("mamba_hf", "mamba-hf"), ("mamba_hf_three_taps", "mamba-hf"), ("mamba_hf_untied", "mamba-hf"), ("xlstm", "xlstm")]
    {
        let scratch = Scratch::new();
        let folder = folder_of(&scratch, name, format);
        assert_eq!(tensors(&folder.join("model.safetensors")), model(name), "{name}");
        let (again, file) = (shown(&scratch.path("again")), scratch.path("again.safetensors"));
        told(&["import", &shown(&folder), "--format", format, "-o", &again]).ok();
        told(&["export", &again, "--format", format, "-o", &shown(&file)]).ok();
        assert_eq!(tensors(&file), model(name), "{name}");
        let config = |checkpoint: &str| read_json(&Path::new(checkpoint).join("config.json"))["model"].clone();
        assert_eq!(config(&again), config(&shown(&scratch.path("imported"))), "{name}");
        // What is there is never written over, and no half of a folder stays.
        told(&["export", &again, "--format", format, "-o", &shown(&folder)]).refused(&["folder", "already exists"]);
        told(&["export", &again, "--format", format, "-o", &shown(&scratch.path("none/folder"))]).failed(2, &["none"]);
        assert!(leftovers(&scratch.path("")).is_empty());
    }
}

#[test]
fn a_folder_says_what_its_library_asks_for() {
    let scratch = Scratch::new();
    let folder = folder_of(&scratch, "mamba_hf_three_taps", "mamba-hf");
    assert_eq!(listed(&folder), ["README.md", "config.json", "generation_config.json", "model.safetensors"]);
    let config = read_json(&folder.join("config.json"));
    let said = |key: &str| config[key].clone();
    let names =
        ["model_type", "vocab_size", "hidden_size", "num_hidden_layers", "conv_kernel", "layer_norm_epsilon", "tie_word_embeddings"];
    assert_eq!(names.map(said), [json!("mamba"), json!(11), json!(8), json!(2), json!(3), json!(1e-5), json!(true)]);
    assert!(fs::read_to_string(folder.join("README.md")).unwrap().contains("AutoModelForCausalLM.from_pretrained"));

    let scratch = Scratch::new();
    let folder = folder_of(&scratch, "xlstm", "xlstm");
    let config = read_json(&folder.join("config.json"));
    assert_eq!(
        (&config["slstm_at"], &config["slstm_block"]["slstm"]["num_heads"], &config["num_blocks"]),
        (&json!([1]), &json!(2), &json!(3))
    );
}

#[test]
fn a_trained_model_takes_its_vocabulary_along() {
    let scratch = Scratch::new();
    let mamba = ["mixer=mamba", "ff=none", "expansion=2", "norm=rms"];
    scratch.training("run", &mamba).run().ok();
    let (run, folder, again) = (shown(&scratch.path("run")), scratch.path("folder"), shown(&scratch.path("again")));
    let told_of = told(&["export", &run, "--format", "mamba-hf", "-o", &shown(&folder)]).ok();
    assert!(told_of.stdout.contains("with its vocabulary"), "{}", told_of.stdout);
    assert_eq!(
        listed(&folder),
        ["README.md", "config.json", "generation_config.json", "model.safetensors", "tokenizer.json", "tokenizer_config.json"]
    );
    assert!(Tokenizer::load(folder.join("tokenizer.json")).is_ok());
    told(&["import", &shown(&folder), "--format", "mamba-hf", "-o", &again]).ok();
    let text = |model: &str| told(&["generate", model, "--prompt", "the ", "--max-tokens", "30", "--temperature", "0"]).ok().stdout;
    assert_eq!(text(&again), text(&run));

    // A vocabulary of another kind is left out, and said so.
    fs::write(folder.join("tokenizer.json"), r#"{"version": "1.0", "model": {"type": "Unigram", "vocab": []}}"#).unwrap();
    let other = told(&["import", &shown(&folder), "--format", "mamba-hf", "-o", &shown(&scratch.path("other"))]).ok();
    assert!(other.stdout.contains("left out") && other.stdout.contains("Unigram"), "{}", other.stdout);
    // What the library's configuration cannot express.
    scratch.training("wide", &["mixer=mamba", "ff=none", "expansion=1.5"]).run().ok();
    let wide = shown(&scratch.path("wide"));
    told(&["export", &wide, "--format", "mamba-hf", "-o", &shown(&scratch.path("none"))]).refused(&[
        "whole number for expand",
        "1.5",
        ".safetensors",
    ]);
    assert!(!scratch.path("none").exists());
    told(&["export", &wide, "--format", "mamba-hf", "-o", &shown(&scratch.path("wide.safetensors"))]).ok();
}

/// The tensors as bf16, each number without its last 16 bits.
fn write_bf16(path: &Path, tensors: &Tensors) {
    let bytes: Vec<Vec<u8>> =
        tensors.values().map(|tensor| tensor.data().iter().flat_map(|x| ((x.to_bits() >> 16) as u16).to_le_bytes()).collect()).collect();
    let views = tensors
        .iter()
        .zip(&bytes)
        .map(|((name, tensor), bytes)| (name.clone(), TensorView::new(Dtype::BF16, tensor.shape().to_vec(), bytes).unwrap()));
    fs::write(path, safetensors::serialize(views, None).unwrap()).unwrap();
}

#[test]
fn a_model_in_parts_of_16_bits_is_read_from_its_folder() {
    let scratch = Scratch::new();
    let folder = folder_of(&scratch, "mamba_hf", "mamba-hf");
    fs::remove_file(folder.join("model.safetensors")).unwrap();
    let mut whole = model("mamba_hf");
    whole.values_mut().flat_map(Tensor::data_mut).for_each(|x| *x = f32::from_bits(x.to_bits() & 0xffff_0000));
    let last = whole.keys().nth(whole.len() / 2).unwrap().clone();
    let mut first = whole.clone();
    let second = first.split_off(&last);
    let mut map = BTreeMap::new();
    for (name, part) in [("model-00001-of-00002.safetensors", &first), ("model-00002-of-00002.safetensors", &second)] {
        write_bf16(&folder.join(name), part);
        map.extend(part.keys().map(|tensor| (tensor.clone(), name)));
    }
    let index =
        |map: &BTreeMap<String, &str>| fs::write(folder.join(INDEX_FILE), json!({"metadata": {}, "weight_map": map}).to_string()).unwrap();
    index(&map);
    let (imported, file) = (shown(&scratch.path("of-parts")), scratch.path("of-parts.safetensors"));
    let import = |to: &str| told(&["import", &shown(&folder), "--format", "mamba-hf", "-o", to]);
    import(&imported).ok();
    told(&["export", &imported, "--format", "mamba-hf", "-o", &shown(&file)]).ok();
    let found = tensors(&file);
    for (name, tensor) in &whole {
        // A gain is kept as its distance from 1.
        let close = found[name].data().iter().zip(tensor.data()).all(|(x, y)| (x - y).abs() <= 2f32.powi(-24));
        assert!(close && found[name].shape() == tensor.shape(), "{name}");
    }

    let other = shown(&scratch.path("other"));
    let mut elsewhere = map.clone();
    elsewhere.insert(last.clone(), "model-00001-of-00002.safetensors");
    index(&elsewhere);
    import(&other).refused(&[INDEX_FILE, &last, "should be in 'model-00001-of-00002.safetensors'"]);
    elsewhere.insert(last.clone(), "../../secret.safetensors");
    index(&elsewhere);
    import(&other).refused(&["expected files beside it"]);
    fs::write(folder.join(INDEX_FILE), "[").unwrap();
    import(&other).refused(&["expected an index"]);
    index(&map);
    fs::remove_file(folder.join("model-00002-of-00002.safetensors")).unwrap();
    import(&other).refused(&["model-00002-of-00002.safetensors"]);
    assert!(!Path::new(&other).exists() && leftovers(&scratch.path("")).is_empty());
}

#[test]
fn folders_of_other_models_are_refused_by_what_they_say() {
    let scratch = Scratch::new();
    let folder = folder_of(&scratch, "mamba_hf", "mamba-hf");
    let other = shown(&scratch.path("other"));
    let import = |format: &str| told(&["import", &shown(&folder), "--format", format, "-o", &other]);
    let config = read_json(&folder.join("config.json"));
    let with = |key: &str, value: Value| {
        let mut changed = config.clone();
        changed[key] = value;
        fs::write(folder.join("config.json"), changed.to_string()).unwrap();
    };
    with("model_type", json!("llama"));
    import("mamba-hf").refused(&["config.json", "model_type = llama, expected mamba"]);
    with("hidden_act", json!("gelu"));
    import("mamba-hf").refused(&["hidden_act = gelu"]);
    with("hidden_size", json!(16));
    import("mamba-hf").refused(&["it says hidden_size = 16, but the tensors beside it have 8"]);
    with("layer_norm_epsilon", json!("small"));
    import("mamba-hf").refused(&["layer_norm_epsilon"]);
    with("layer_norm_epsilon", json!(-1.0));
    import("mamba-hf").refused(&["layer_norm_epsilon = -1"]);
    fs::write(folder.join("config.json"), "{").unwrap();
    import("mamba-hf").refused(&["config.json", "it is not JSON"]);
    fs::write(folder.join("config.json"), "[]").unwrap();
    import("mamba-hf").refused(&["model_type = none"]);
    fs::write(folder.join("config.json"), config.to_string()).unwrap();
    import("xlstm").refused(&["neither mlstm_block nor slstm_block"]);
    import("min-gru-pytorch").refused(&["token_emb.weight"]);

    // ε comes from the file; one that is set must be the same, unless the file has none.
    let set = |to: &str, settings: &[&str]| {
        let to = shown(&scratch.path(to));
        told(&[&["import", &shown(&folder), "--format", "mamba-hf", "-o", &to], settings].concat())
    };
    let eps = |to: &str, settings: &[&str]| {
        set(to, settings).ok();
        read_json(&scratch.path(to).join("config.json"))["model"]["rms_eps"].clone()
    };
    with("layer_norm_epsilon", json!(1e-3));
    assert_eq!((eps("own", &[]), eps("same", &["--set", "rms_eps=1e-3"])), (json!(1e-3), json!(1e-3)));
    set("other", &["--set", "rms_eps=0.5"]).refused(&["config.json", "the file says rms_eps = 0.001, but rms_eps = 0.5 was set"]);
    let mut silent = config.clone();
    silent.as_object_mut().unwrap().remove("layer_norm_epsilon");
    fs::write(folder.join("config.json"), silent.to_string()).unwrap();
    assert_eq!((eps("default", &[]), eps("set", &["--set", "rms_eps=0.5"])), (json!(1e-5), json!(0.5)));

    fs::remove_file(folder.join("model.safetensors")).unwrap();
    import("mamba-hf").refused(&["neither model.safetensors nor model.safetensors.index.json"]);
    fs::write(folder.join("pytorch_model.bin"), "").unwrap();
    import("mamba-hf").refused(&["pytorch_model.bin", "save the model as safetensors"]);
    assert!(!Path::new(&other).exists());
}

/// The text of `config` with `value` at `key`, in which dots lead into parts.
fn with(config: &Value, key: &str, value: &Value) -> String {
    let mut changed = config.clone();
    *key.split('.').fold(&mut changed, |part, name| &mut part[name]) = value.clone();
    changed.to_string()
}

#[test]
fn an_xlstm_folder_that_describes_another_model_than_its_tensors_is_refused_by_the_key() {
    let scratch = Scratch::new();
    let folder = folder_of(&scratch, "xlstm", "xlstm");
    let (path, other) = (folder.join("config.json"), shown(&scratch.path("other")));
    let config = read_json(&path);
    let cases = [
        ("slstm_block.feedforward.act_fn", json!("relu"), r#"= "relu", expected "gelu""#),
        ("slstm_block.feedforward.act_fn", json!("swish"), r#"= "swish", expected "gelu""#),
        ("slstm_block.feedforward.bias", json!(true), "expected false"),
        ("slstm_block.feedforward.proj_factor", json!(4.5), "have an inner width of 64 where it makes 128 of 16"),
        ("slstm_block.feedforward.proj_factor", json!("wide"), "expected a number"),
        ("slstm_block.feedforward", Value::Null, "have a feed-forward part"),
        ("slstm_block.slstm.function", json!("lstm"), r#"= "lstm", expected "slstm""#),
        ("slstm_block.slstm.num_heads", json!(8), "= 8, but the tensors beside it have 2"),
        ("slstm_block.slstm.conv1d_kernel_size", json!(0), "= 0, but the tensors beside it have 4"),
        ("mlstm_block.mlstm.num_heads", json!(1), "= 1, but the tensors beside it have 2"),
        ("mlstm_block.mlstm.conv1d_kernel_size", json!(3), "= 3, but the tensors beside it have 4"),
        ("mlstm_block.mlstm.qkv_proj_blocksize", json!(8), "= 8, but the tensors beside it have 4"),
        ("mlstm_block.mlstm.proj_factor", json!(8.0), "have an inner width of 64 where it makes 128 of 16"),
        ("slstm_at", json!([0]), "= [0], but the tensors beside it have sLSTM in the blocks [1]"),
        ("slstm_at", json!("all"), "have sLSTM in the blocks [1]"),
        ("bias", json!(true), "= true, expected false"),
        ("add_post_blocks_norm", json!(false), "= false, expected true"),
        ("tie_weights", json!(true), "have a head that is not the embedding"),
        ("embedding_dim", json!(32), "= 32, but the tensors beside it have 16"),
    ];
    for (key, value, told_of) in cases {
        fs::write(&path, with(&config, key, &value)).unwrap();
        let said = format!("it says {key} = ");
        told(&["import", &shown(&folder), "--format", "xlstm", "-o", &other]).refused(&["config.json", &said, told_of]);
    }
    assert!(!Path::new(&other).exists());

    // Other ways to describe the same model, and keys that no number depends on.
    let mut short = config.clone();
    short["slstm_block"] = json!({});
    short["mlstm_block"] = json!({"mlstm": {}});
    let same = [
        short.to_string(),
        with(&config, "slstm_at", &json!([-2])),
        with(&config, "slstm_block.feedforward.proj_factor", &json!(1.3)),
        with(&config, "mlstm_block.mlstm.proj_factor", &json!(2.0)),
        with(&config, "slstm_block.slstm.dropout", &json!(0.1)),
    ];
    for (i, text) in same.iter().enumerate() {
        fs::write(&path, text).unwrap();
        told(&["import", &shown(&folder), "--format", "xlstm", "-o", &shown(&scratch.path(&format!("same{i}")))]).ok();
    }

    // With sLSTM alone, there may be nothing about mLSTM, and any places.
    let scratch = Scratch::new();
    let folder = folder_of(&scratch, "xlstm_cuda_order", "xlstm");
    let config = read_json(&folder.join("config.json"));
    fs::write(folder.join("config.json"), with(&config, "slstm_at", &json!([]))).unwrap();
    told(&["import", &shown(&folder), "--format", "xlstm", "-o", &shown(&scratch.path("again"))]).ok();
}

#[test]
fn a_mamba_folder_that_describes_another_model_than_its_tensors_is_refused_by_the_key() {
    let cases = [
        ("mamba_hf", "time_step_rank", json!(2), "= 2, but the tensors beside it have 1"),
        ("mamba_hf", "conv_kernel", json!(3), "= 3, but the tensors beside it have 4"),
        ("mamba_hf", "expand", json!(3), "have an inner width of 16 for a width of 8"),
        ("mamba_hf", "intermediate_size", json!(24), "= 24, but the tensors beside it have 16"),
        ("mamba_hf", "use_conv_bias", json!(false), "have 'backbone.layers.0.mixer.conv1d.bias'"),
        ("mamba_hf", "use_bias", json!(true), "= true, expected false"),
        ("mamba_hf_three_taps", "conv_kernel", json!(4), "= 4, but the tensors beside it have 3"),
        ("mamba_hf_without_conv_bias", "use_conv_bias", json!(true), "have no 'backbone.layers.0.mixer.conv1d.bias'"),
        ("mamba_hf_untied", "tie_word_embeddings", json!(true), "have a head that is not the embedding"),
    ];
    for (name, key, value, told_of) in cases {
        let scratch = Scratch::new();
        let (folder, to) = (folder_of(&scratch, name, "mamba-hf"), shown(&scratch.path("to")));
        let config = read_json(&folder.join("config.json"));
        let import = |text: String| {
            fs::write(folder.join("config.json"), text).unwrap();
            told(&["import", &shown(&folder), "--format", "mamba-hf", "-o", &to])
        };
        import(with(&config, key, &value)).refused(&["config.json", &format!("it says {key} = "), told_of]);
        assert!(!Path::new(&to).exists());
        // If it says nothing, the tensors decide; and the library has a word for choosing the rank itself.
        let mut silent = config.clone();
        silent.as_object_mut().unwrap().remove(key);
        silent["time_step_rank"] = json!("auto");
        import(silent.to_string()).ok();
    }
}

#[test]
fn a_step_graph_has_the_vocabulary_and_is_refused_where_there_is_none() {
    let scratch = Scratch::new();
    scratch.training("run", &["mixer=min-lstm"]).run().ok();
    let (run, graph) = (shown(&scratch.path("run")), scratch.path("step.onnx"));
    let export = |run: &str, to: &Path| told(&["export", run, "--format", "onnx", "-o", &shown(to)]);
    assert!(export(&run, &graph).ok().stdout.contains("opset 17"));
    let bytes = fs::read(&graph).unwrap();
    let has = |text: &str| bytes.windows(text.len()).any(|window| window == text.as_bytes());
    assert!(["minrnn.tokenizer.json", "minrnn.state", "state.blocks.0.mixer.h", "next.blocks.0.mixer.h"].into_iter().all(has));
    // The same of a packed file, whose weights are f32.
    let packed = shown(&scratch.path("model.minrnn"));
    told(&["pack", &run, "--weights", "f32", "-o", &packed]).ok();
    let of_packed = scratch.path("packed.onnx");
    export(&packed, &of_packed).ok();
    assert_eq!(fs::read(&of_packed).unwrap(), bytes);
    export(&run, &of_packed).ok();
    let thesis = scratch.write("thesis", "Chapter 1");
    export(&run, &thesis).refused(&["exists and is not a step that was exported", "give another file to write"]);
    assert_eq!(fs::read(&thesis).unwrap(), b"Chapter 1");
    told(&["pack", &run, "--weights", "int8", "-o", &packed]).ok();
    export(&packed, &of_packed).refused(&["int8", "give the run or checkpoint"]);
    export(&run, &scratch.path("")).refused(&["is a directory"]);
    export(&run, &scratch.path("run/step.onnx")).refused(&["lies in the run"]);
    export(&shown(&scratch.path("none")), &graph).refused(&["none"]);
    scratch.training("attention", &["mixer=attention"]).run().ok();
    export(&shown(&scratch.path("attention")), &scratch.path("no.onnx")).refused(&["mixer = attention", "grows with every step"]);
    assert!(!scratch.path("no.onnx").exists());
    assert_eq!(told(&["import", &shown(&graph), "--format", "onnx", "-o", "x"]).code, Some(2));
}
