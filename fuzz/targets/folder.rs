//! Folders of other libraries: `config.json`, a zero byte, the index of the tensors, a zero byte, the file that the index names `a.safetensors`.
#![no_main]

use std::collections::BTreeMap;

use libfuzzer_sys::fuzz_target;
use minrnn::interchange::{ForeignModel, Form, Format, Settings, export_folder, import};
use minrnn_fuzz::{file, folder, joined, parts, repository_files, seeds};
use minrnn_model::{INDEX_FILE, Weights};
use serde_json::json;

const CONFIGS: [&str; 2] = [
    r#"{"model_type": "mamba", "vocab_size": 11, "hidden_size": 8, "layer_norm_epsilon": 1e-05}"#,
    r#"{"slstm_block": {}, "vocab_size": 11, "embedding_dim": 16}"#,
];

fuzz_target!(
    init: seeds("folder", || {
        let files = repository_files("crates/minrnn/tests/fixtures/interchange", "safetensors", 1 << 14);
        let seed = |(config, shard): (&str, &Vec<u8>)| {
            let names = Weights::read(file("seed.safetensors", shard)).expect("a fixture");
            let map: BTreeMap<&str, &str> = names.names().map(|name| (name, "a.safetensors")).collect();
            joined(&[config.as_bytes(), json!({"weight_map": map}).to_string().as_bytes(), shard])
        };
        CONFIGS.iter().flat_map(|config| files.iter().map(move |file| seed((config, file)))).collect()
    }),
    |data: &[u8]| {
        let Some([config, index, shard]) = parts(data) else { return };
        file("config.json", config);
        file(INDEX_FILE, index);
        file("a.safetensors", shard);
        for format in [Format::MambaHf, Format::Xlstm] {
            let Ok(mut foreign) = ForeignModel::read(folder()) else { return };
            // The repository's files hold a test case beside the weights.
            let beside: Vec<String> = foreign.weights.names().filter(|name| name.starts_with("case.")).map(str::to_owned).collect();
            for name in beside {
                let _ = foreign.weights.take_any(&name);
            }
            let Ok(config) = foreign.config(format, &Settings::default()) else { continue };
            let form = Form::of(&foreign.weights);
            let Ok(ours) = import(format, &mut foreign.weights, &config) else { continue };
            // What can be read can be written, or is refused with a message; if written, it is the same model.
            let written = folder().join("written");
            let _ = std::fs::remove_dir_all(&written);
            let mut weights = Weights::of("ours", ours);
            if export_folder(&written, format, &mut weights, &config, form, None).is_ok() {
                let again = ForeignModel::read(&written).expect("what was written is read");
                assert_eq!(again.config(format, &Settings::default()).expect("it fits itself").d_model, config.d_model);
            }
        }
    }
);
