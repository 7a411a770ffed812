//! Checkpoints for the runtime: `config.json`, a zero byte, `model.safetensors`.
#![no_main]

use libfuzzer_sys::fuzz_target;
use minrnn_fuzz::{configs, file, folder, joined, parts, safetensors_file, seeds, tensors, use_model};
use minrnn_model::{CONFIG_FILE, CheckpointConfig, Section, WEIGHTS_FILE, WeightFormat, read_checkpoint};
use minrnn_stream::{Model, PackedModel};

fuzz_target!(
    init: seeds("checkpoint", || {
        let seed = |config| {
            let weights = std::fs::read(safetensors_file("seed", &tensors(config), None)).expect("it was written");
            let config = serde_json::to_vec(&CheckpointConfig::new(config.clone())).expect("numbers and names serialise");
            joined(&[&config, &weights])
        };
        configs().iter().map(seed).collect()
    }),
    |data: &[u8]| {
        let Some([config, weights]) = parts(data) else { return };
        file(CONFIG_FILE, config);
        let Ok(config) = CheckpointConfig::read(folder()) else { return };
        config.write(folder()).expect("it can be written");
        assert_eq!(CheckpointConfig::read(folder()).expect("what was written is read"), config);
        file(WEIGHTS_FILE, weights);
        let Ok((config, weights)) = read_checkpoint(folder()) else { return };
        let format = WeightFormat::ALL[data.len() % WeightFormat::ALL.len()];
        let Ok(model) = Model::new(&config.model, &mut weights.clone(), format) else { return };
        use_model(&model);
        let path = folder().join("packed");
        let policy = model.is_policy().then(|| Section::policy(b"{}"));
        PackedModel::write(&path, &config.model, &mut weights.clone(), format, policy.as_slice()).expect("a model that loads is packed");
        assert_eq!(PackedModel::read(&path).expect("what was written is read").model.parameters(), model.parameters());
    }
);
