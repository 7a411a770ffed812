//! The runtime against the model it was trained as: the same logits from the same weights, for prompts and for steps.

mod common;

use burn::tensor::Device;
use common::{VOCAB_SIZE, configs, random, random_below};
use minrnn::checkpoint::{load_weights, save_weights};
use minrnn::generate::Session;
use minrnn::model::SequenceModel;
use minrnn_model::{MixerKind, ModelConfig, Positions, WeightFormat, Weights, WiringKind, write_safetensors};
use minrnn_stream::{Model, PackedModel, Workspace};

/// |error| ≤ this · max(1, largest logit).
const TOLERANCE: f32 = 1e-5;

/// A model for training and the same for the runtime, no parameter or running statistic being at its first value.
fn both(config: &ModelConfig) -> (SequenceModel, Model) {
    let file = tempfile::NamedTempFile::new().unwrap();
    let fresh = SequenceModel::new(config, 7, &Device::flex()).unwrap();
    save_weights(&fresh, file.path()).unwrap();
    let mut weights = Weights::read(file.path()).unwrap();
    let names: Vec<String> = weights.names().map(ToString::to_string).collect();
    let moved = names.into_iter().enumerate().map(|(i, name)| {
        let tensor = weights.take_any(&name).unwrap();
        let noise = random(tensor.data.len(), i as u64);
        let data: Vec<f32> = tensor.data.iter().zip(noise).map(|(value, noise)| value + 0.2 * noise).collect();
        (name, tensor.shape, data.into())
    });
    let moved: Vec<_> = moved.collect();
    write_safetensors(file.path(), moved, None).unwrap();
    let trained = load_weights(fresh, &mut Weights::read(file.path()).unwrap()).unwrap();
    let model = Model::new(config, &mut Weights::read(file.path()).unwrap(), WeightFormat::F32).unwrap();
    (trained, model)
}

#[track_caller]
fn assert_close(found: &[f32], expected: &[f32], what: &str) {
    let largest = expected.iter().fold(1.0f32, |largest, x| largest.max(x.abs()));
    for (found, expected) in found.iter().zip(expected) {
        assert!((found - expected).abs() <= TOLERANCE * largest, "{what}: {found}, expected {expected}");
    }
}

fn compare(config: &ModelConfig) {
    let (trained, model) = both(config);
    let what = configs::label(config);
    let prompts: Vec<Vec<u32>> = [30, 1, 7]
        .iter()
        .map(|&len| random_below(VOCAB_SIZE, len, 40 + len as u64).into_iter().map(|token| token as u32).collect())
        .collect();
    let mut session = Session::new(&trained, prompts.len());
    let (mut state, mut workspace) = (model.init_state(prompts.len()).unwrap(), Workspace::new());
    let v = config.vocab_size;
    let mut logits = vec![f32::NAN; prompts.len() * v];
    let expected = session.prefill(&prompts).unwrap();
    model.prefill(&prompts, &mut state, &mut logits, &mut workspace).unwrap();
    (0..prompts.len()).for_each(|row| assert_close(&logits[row * v..][..v], expected.row(row), &format!("prefill, {what}")));
    for step in 0..10 {
        let tokens = [step, step + 1, 10 - step];
        let expected = session.step(&tokens).unwrap();
        model.step(&tokens, &mut state, &mut logits, &mut workspace).unwrap();
        (0..prompts.len()).for_each(|row| assert_close(&logits[row * v..][..v], expected.row(row), &format!("step {step}, {what}")));
    }
}

#[test]
fn every_setting_of_every_mixer() {
    for &mixer in MixerKind::ALL.iter().filter(|&&kind| minrnn_stream::is_supported(kind)) {
        configs::mixers(mixer).iter().for_each(compare);
    }
}

#[test]
fn every_setting_of_a_block() {
    configs::blocks().iter().for_each(compare);
}

#[test]
fn every_wiring() {
    let configs = configs::wirings();
    let streamed: Vec<_> = configs.iter().filter(|config| minrnn_stream::check_supported(config).is_ok()).collect();
    assert_eq!(streamed.len() + 4, configs.len(), "all but the filter of Hyena and attention");
    streamed.into_iter().for_each(compare);
}

#[test]
fn a_packed_model_keeps_its_wiring() {
    for config in configs::wirings().iter().filter(|config| minrnn_stream::check_supported(config).is_ok()) {
        let (weights, packed) = (tempfile::NamedTempFile::new().unwrap(), tempfile::NamedTempFile::new().unwrap());
        save_weights(&SequenceModel::new(config, 7, &Device::flex()).unwrap(), weights.path()).unwrap();
        let read = || Weights::read(weights.path()).unwrap();
        PackedModel::write(packed.path(), config, &mut read(), WeightFormat::F32, None).unwrap();
        let models = [Model::new(config, &mut read(), WeightFormat::F32).unwrap(), Model::load(packed.path()).unwrap()];
        let [whole, unpacked] = models.map(|model| {
            let mut logits = vec![0.0; VOCAB_SIZE];
            model.prefill(&[[1, 2, 3, 4, 5]], &mut model.init_state(1).unwrap(), &mut logits, &mut Workspace::new()).unwrap();
            logits
        });
        assert_eq!(whole, unpacked, "{}", configs::label(config));
    }
}

#[test]
fn whole_models() {
    configs::language_models().iter().filter(|config| minrnn_stream::check_supported(config).is_ok()).for_each(compare);
    compare(&configs::xlstm_stack());
}

#[test]
fn what_the_runtime_does_not_run_is_a_sentence() {
    let file = tempfile::NamedTempFile::new().unwrap();
    save_weights(&SequenceModel::new(&configs::llama(), 7, &Device::flex()).unwrap(), file.path()).unwrap();
    let refused = Model::new(&configs::llama(), &mut Weights::read(file.path()).unwrap(), WeightFormat::F32).unwrap_err().to_string();
    assert!(refused.contains("does not run mixer = attention, expected one of min-gru"), "{refused}");
    let learned = ModelConfig { positions: Positions::Learned, ..configs::small(MixerKind::MinGru) };
    assert!(minrnn_stream::check_supported(&learned).unwrap_err().to_string().contains("positions = learned"));
}

/// Wide enough for every product to be cut over threads.
#[test]
fn wide_models() {
    for &mixer in MixerKind::ALL.iter().filter(|&&kind| minrnn_stream::is_supported(kind)) {
        compare(&ModelConfig { d_model: 160, n_layers: 2, conv: true, ..configs::small(mixer) });
    }
    for wiring in [WiringKind::H3, WiringKind::Mamba] {
        let mixers = vec![MixerKind::S6, MixerKind::MinGru];
        compare(&ModelConfig { d_model: 160, n_layers: 2, wiring, mixers, ..configs::small(MixerKind::S6) });
    }
}
