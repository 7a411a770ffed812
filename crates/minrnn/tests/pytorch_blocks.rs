//! Whole models against PyTorch: logits, loss and the gradient of every parameter.
//!
//! The fixtures are made by `tools/reference_values.py` and `tools/transformer_values.py`; their names of parameters lack the prefix
//! `backbone.`.

mod common;

use std::path::Path;
use std::sync::Arc;

use burn::tensor::{Int, Tensor, TensorData};
use common::{GRADIENT, OUTPUT, assert_close, device, parameter_gradients, values, with_parameters};
use minrnn::model::SequenceModel;
use minrnn::nn::Mode;
use minrnn::ops::StepCodes;
use minrnn_model::ModelConfig;
use safetensors::{SafeTensors, tensor::TensorView};

#[test]
fn a_min_gru_model_equals_pytorch() {
    compare("block_min_gru");
}

#[test]
fn a_min_lstm_model_equals_pytorch() {
    compare("block_min_lstm");
}

#[test]
fn a_transformer_after_nano_gpt_equals_pytorch() {
    compare("block_nano_gpt");
}

#[test]
fn a_transformer_after_llama_equals_pytorch() {
    compare("block_llama");
}

fn compare(name: &str) {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join(format!("tests/fixtures/{name}.safetensors"));
    let bytes = std::fs::read(path).expect("the fixture is there");
    let fixture = SafeTensors::deserialize(&bytes).expect("a safetensors file");
    let (_, header) = SafeTensors::read_metadata(&bytes).expect("a safetensors file");
    let config: ModelConfig = serde_json::from_str(&header.metadata().as_ref().expect("metadata")["config"]).expect("a configuration");

    let given = |name: &&str| !["input.", "target.", "expect."].iter().any(|part| name.starts_with(part));
    let weights = fixture.names().into_iter().filter(given).map(|name| {
        let tensor = fixture.tensor(name).expect("listed");
        (ours(name), tensor.shape().to_vec(), floats(&tensor))
    });
    let directory = tempfile::tempdir().expect("a temporary directory");
    let model = SequenceModel::new(&config, 0, &device()).expect("a valid model");
    let model = with_parameters(model, &directory.path().join("weights.safetensors"), weights);

    let tokens = fixture.tensor("input.tokens").expect("tokens");
    let [batch_size, seq_len]: [usize; 2] = tokens.shape().try_into().expect("[B, T]");
    let tokens = TensorData::new(integers(&tokens).into_iter().map(i64::from).collect(), [batch_size, seq_len]);
    let tokens = Tensor::<2, Int>::from_data(tokens, &device());
    let targets: Arc<[i32]> = integers(&fixture.tensor("target.tokens").expect("targets")).into();
    let expected = |what: &str| floats(&fixture.tensor(&format!("expect.{what}")).expect("the fixture has it"));

    let (logits, _) = model.forward(tokens.clone(), model.init_state(batch_size), &StepCodes::dense(), Mode::Evaluate);
    assert_close("logits", &values(logits), &expected("logits"), OUTPUT);
    let (loss, _) = model.loss(tokens, targets, None, model.init_state(batch_size), &StepCodes::dense(), Mode::Evaluate);
    assert_close("loss", &values(loss.clone()), &expected("loss"), OUTPUT);

    let mut found = parameter_gradients(&model, &loss.backward());
    let given: Vec<&str> = fixture.names().into_iter().filter_map(|name| name.strip_prefix("expect.grad.")).collect();
    assert_eq!(found.len(), given.len(), "a gradient for every parameter");
    for name in given {
        let at = found.iter().position(|(found, _)| *found == ours(name)).expect("one of our parameters");
        let (_, gradient) = found.swap_remove(at);
        // Gradients of a mean are far below 1: they agree in proportion to their own largest element.
        let expected = expected(&format!("grad.{name}"));
        let scale = expected.iter().fold(0.0f32, |largest, x| largest.max(x.abs()));
        assert!(scale > 0.0, "{name} has a gradient");
        let in_proportion = |values: Vec<f32>| values.into_iter().map(|x| x / scale).collect::<Vec<_>>();
        assert_close(&format!("gradient of {name}"), &in_proportion(gradient), &in_proportion(expected), GRADIENT);
    }
}

fn ours(name: &str) -> String {
    let inside = name.starts_with("blocks.") || name.starts_with("final_norm.");
    if inside { format!("backbone.{name}") } else { name.to_owned() }
}

fn floats(tensor: &TensorView<'_>) -> Vec<f32> {
    assert_eq!(tensor.dtype(), safetensors::Dtype::F32);
    tensor.data().as_chunks::<4>().0.iter().map(|bytes| f32::from_le_bytes(*bytes)).collect()
}

fn integers(tensor: &TensorView<'_>) -> Vec<i32> {
    assert_eq!(tensor.dtype(), safetensors::Dtype::I32);
    tensor.data().as_chunks::<4>().0.iter().map(|bytes| i32::from_le_bytes(*bytes)).collect()
}
