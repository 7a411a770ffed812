//! Checkpoints for training: `config.json`, `tokenizer.json` (empty for none) and `model.safetensors`, with a zero byte between them.
#![no_main]

use burn::tensor::{Device, Int, Tensor};
use libfuzzer_sys::fuzz_target;
use minrnn::checkpoint::{TOKENIZER_FILE, load_model, load_table_task, save_weights};
use minrnn::data::Tokenizer;
use minrnn::model::SequenceModel;
use minrnn::nn::Mode;
use minrnn::ops::StepCodes;
use minrnn_fuzz::library::tokenizer_json;
use minrnn_fuzz::{file, folder, joined, parts, seeds};
use minrnn_model::{CONFIG_FILE, CheckpointConfig, FeedForwardKind, MixerKind, ModelConfig, WEIGHTS_FILE};

fuzz_target!(
    init: seeds("model", || {
        let tokenizer = tokenizer_json(&Tokenizer::characters_of("abcde"));
        let base = ModelConfig { vocab_size: 5, d_model: 4, n_layers: 1, n_heads: 2, d_state: 4, max_seq_len: 6, ..Default::default() };
        MixerKind::ALL.iter().filter_map(|&mixer| {
            let config = ModelConfig { mixer, ff: FeedForwardKind::None, ..base.clone() };
            let model = SequenceModel::new(&config, 1, &Device::flex()).ok()?;
            let path = folder().join(WEIGHTS_FILE);
            save_weights(&model, &path).expect("it can be written");
            let config = serde_json::to_vec(&CheckpointConfig::new(config)).expect("numbers and names serialise");
            Some(joined(&[&config, &tokenizer, &std::fs::read(path).expect("it was written")]))
        }).collect()
    }),
    |data: &[u8]| {
        let Some([config, tokenizer, weights]) = parts(data) else { return };
        file(CONFIG_FILE, config);
        file(WEIGHTS_FILE, weights);
        if tokenizer.is_empty() {
            let _ = std::fs::remove_file(folder().join(TOKENIZER_FILE));
        } else {
            file(TOKENIZER_FILE, tokenizer);
        }
        let Ok(loaded) = load_model(folder(), &Device::flex()) else { return };
        let config = &loaded.config.model;
        let _ = load_table_task(folder(), config);
        if config.input_width > 0 || config.d_model > 64 || config.max_seq_len > 64 || config.d_state > 64 || config.expansion > 8.0 {
            return;
        }
        let tokens = Tensor::<2, Int>::from_data([[0, 0, 0]], &Device::flex());
        let (logits, _) = loaded.model.forward(tokens, loaded.model.init_state(1), &StepCodes::dense(), Mode::Evaluate);
        assert_eq!(logits.dims(), [1, 3, config.outputs()]);
    }
);
