//! Weights written to a file and read back, and the errors for a file that does not fit.

use std::path::Path;

use crate::common::configs::{label, language_models, small};
use crate::common::{parameters, random_tokens, saved, values};
use burn::tensor::Device;
use minrnn::checkpoint::{load_model, load_weights, parameter_shapes, save_weights};
use minrnn::model::SequenceModel;
use minrnn::nn::Mode;
use minrnn::ops::StepCodes;
use minrnn_model::{CheckpointConfig, MixerKind, ModelConfig, NormKind, WEIGHTS_FILE, Weights, write_safetensors};

/// Name, shape and values of tensors.
type Tensors = Vec<(String, Vec<usize>, Vec<f32>)>;

fn model(config: &ModelConfig, seed: u64) -> SequenceModel {
    SequenceModel::new(config, seed, &Device::flex()).expect("a valid model")
}

fn logits(model: &SequenceModel) -> Vec<f32> {
    let tokens = random_tokens(2, 6, 1, &model.device());
    values(model.forward(tokens, model.init_state(2), &StepCodes::dense(), Mode::Evaluate).0)
}

#[test]
fn weights_come_back_bit_for_bit() {
    for config in language_models() {
        let (original, other) = (crate::common::perturbed(model(&config, 1)), model(&config, 2));
        let mut weights = saved(&original);
        let loaded = load_weights(other, &mut weights).unwrap();
        weights.expect_empty().unwrap();
        assert_eq!(parameters(&loaded), parameters(&original), "{}", label(&config));
        assert_eq!(logits(&loaded), logits(&original), "{}", label(&config));
    }
}

#[test]
fn running_statistics_of_a_training_model_are_saved_and_replaced() {
    let config = ModelConfig { norm: NormKind::Batch, ..small(MixerKind::MinGru) };
    let (trained, other) = (model(&config, 1), model(&config, 2));
    for model in [&trained, &other] {
        let tokens = random_tokens(2, 6, 1, &model.device());
        model.forward(tokens, model.init_state(2), &StepCodes::dense(), Mode::Train { dropout_key: 0 });
    }
    let loaded = load_weights(other, &mut saved(&trained)).unwrap();
    assert_eq!(logits(&loaded), logits(&trained));
}

#[test]
fn loaded_parameters_still_get_gradients() {
    let config = small(MixerKind::MinLstm);
    let on = |seed| SequenceModel::new(&config, seed, &crate::common::device()).unwrap();
    let loaded = load_weights(on(2), &mut saved(&on(1))).unwrap();
    let tokens = random_tokens(2, 6, 1, &crate::common::device());
    let (y, _) = loaded.forward(tokens, loaded.init_state(2), &StepCodes::dense(), Mode::Evaluate);
    let gradients = crate::common::parameter_gradients(&loaded, &y.powi_scalar(2).sum().backward());
    for (name, gradient) in gradients {
        assert!(gradient.iter().any(|&g| g != 0.0), "{name} has no gradient");
    }
}

/// Writes a checkpoint of a small model, with its tensors changed by `change`.
fn checkpoint(directory: &Path, change: impl FnOnce(&mut Tensors)) {
    let config = small(MixerKind::MinGru);
    CheckpointConfig::new(config.clone()).write(directory).unwrap();
    let path = directory.join(WEIGHTS_FILE);
    let model = model(&config, 1);
    save_weights(&model, &path).unwrap();
    let weights = Weights::read(&path).unwrap();
    let shapes = parameter_shapes(&model).into_iter();
    let mut tensors = shapes.map(|(name, shape)| (name.clone(), shape, weights.get(&name).unwrap().data().to_vec())).collect();
    change(&mut tensors);
    write_safetensors(path, tensors.into_iter().map(|(name, shape, data)| (name, shape, data.into())), None).unwrap();
}

#[test]
fn a_checkpoint_directory_loads() {
    let directory = tempfile::tempdir().unwrap();
    checkpoint(directory.path(), |_| ());
    let loaded = load_model(directory.path(), &Device::flex()).unwrap();
    assert_eq!(logits(&loaded.model), logits(&model(&small(MixerKind::MinGru), 1)));
    assert!(loaded.tokenizer.is_none());
}

#[test]
fn weights_that_do_not_fit_are_refused_by_name() {
    let refusal = |change: fn(&mut Tensors)| {
        let directory = tempfile::tempdir().unwrap();
        checkpoint(directory.path(), change);
        let error = load_model(directory.path(), &Device::flex()).unwrap_err();
        assert!(error.is_wrong_input());
        error.to_string()
    };
    let missing = refusal(|tensors| tensors.retain(|(name, ..)| name != "backbone.blocks.0.mixer.in_proj.bias"));
    assert!(missing.contains("'backbone.blocks.0.mixer.in_proj.bias' is missing"), "{missing}");
    let transposed = refusal(|tensors| {
        let head = tensors.iter_mut().find(|(name, ..)| name == "head.weight").unwrap();
        head.1.reverse();
    });
    assert!(transposed.contains("'head.weight' has shape [8, 11], expected [11, 8]"), "{transposed}");
    let extra = refusal(|tensors| tensors.push(("backbone.blocks.1.mixer.in_proj.bias".to_owned(), vec![2], vec![0.0; 2])));
    assert!(extra.contains("'backbone.blocks.1.mixer.in_proj.bias' is not part of this model"), "{extra}");
}
