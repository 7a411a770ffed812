//! Policies: `config.json`, `task.json` and `model.safetensors`, with a zero byte between them.
#![no_main]

use std::io::ErrorKind;
use std::path::PathBuf;

use burn::tensor::{Device, Tensor};
use libfuzzer_sys::fuzz_target;
use minrnn::Policy;
use minrnn::data::offline_rl::StepEncoding;
use minrnn::model::Decision;
use minrnn::nn::Mode;
use minrnn::ops::StepCodes;
use minrnn_fuzz::{file, folder, joined, parts, seeds};
use minrnn_model::{CONFIG_FILE, FeedForwardKind, MixerKind, ModelConfig, WEIGHTS_FILE};

const TASK_FILE: &str = minrnn::checkpoint::TASK_FILE;

/// Writes the checkpoint of `policy`, replacing an earlier one.
fn saved(policy: &Policy) -> PathBuf {
    let path = folder().join("saved");
    match std::fs::remove_dir_all(&path) {
        Err(error) if error.kind() != ErrorKind::NotFound => panic!("an earlier one goes: {error}"),
        _ => policy.save(&path).expect("it can be written"),
    }
    path
}

fuzz_target!(
    init: seeds("policy", || Vec::from([MixerKind::MinGru, MixerKind::Attention].map(|mixer| {
        let base = ModelConfig { input_width: 5, n_outputs: 1, d_model: 4, n_layers: 1, n_heads: 2, max_seq_len: 8, ..Default::default() };
        let config = ModelConfig { mixer, ff: FeedForwardKind::None, ..base };
        let encoding = StepEncoding { mean: vec![0.1, -3.0], deviation: vec![1.5, 0.25], action_width: 1, return_scale: 1000.0, best_return: None };
        let model = Decision::new(&config, 1, &Device::flex()).expect("there is such a model");
        let path = saved(&Policy { config, encoding, model });
        let files = [CONFIG_FILE, TASK_FILE, WEIGHTS_FILE].map(|name| std::fs::read(path.join(name)).expect("it was written"));
        joined(&[&files[0], &files[1], &files[2]])
    }))),
    |data: &[u8]| {
        let Some([config, task, weights]) = parts(data) else { return };
        file(CONFIG_FILE, config);
        file(TASK_FILE, task);
        file(WEIGHTS_FILE, weights);
        let Ok(policy) = Policy::load(folder(), &Device::flex()) else { return };
        let width = policy.encoding.width();
        let mut row = vec![0.0; width];
        policy.encoding.write(&mut row, 1.0, &vec![0.5; width - 2 - policy.encoding.action_width], &vec![0.0; policy.encoding.action_width], 3);
        if policy.config.d_model <= 64 {
            let rows = Tensor::<1>::from_floats(&row[..], &Device::flex()).reshape([1, 1, width]);
            let (action, _) = policy.model.forward(rows, None, &StepCodes::dense(), Mode::Evaluate);
            assert_eq!(action.dims(), [1, 1, policy.encoding.action_width]);
        }
        let again = Policy::load(saved(&policy), &Device::flex()).expect("what was written is read");
        assert_eq!((again.config, again.encoding), (policy.config, policy.encoding));
    }
);
