//! Block by block, the gradients equal those of the pass that keeps everything.

use burn::tensor::{Device, Int, Tensor, TensorData};
use minrnn::Segments;
use minrnn::model::{Decision, SequenceModel, Targets};
use minrnn::nn::{Mode, State};
use minrnn::train::{Experiment, GradientMap, MicroBatch, differentiate, differentiate_policy};
use minrnn_model::ModelConfig;

const BATCH: usize = 3;
const LEN: usize = 11;

fn model(settings: &str) -> SequenceModel {
    let config: ModelConfig = serde_json::from_str(settings).unwrap();
    SequenceModel::new(&ModelConfig { vocab_size: 7, d_model: 8, n_layers: 3, ..config }, 1, &Device::flex().autodiff()).unwrap()
}

fn batch(padded: bool) -> MicroBatch {
    let token = |i: usize| (i * i + i / 3) % 7;
    let inputs: Vec<i64> = (0..BATCH * LEN).map(|i| token(i) as i64).collect();
    let segments =
        if padded { Segments::from_lengths(vec![LEN, 4, 9]).with_resets(vec![vec![3], vec![], vec![0, 8]]) } else { Segments::dense() };
    let mask: Vec<f32> = (0..BATCH * LEN).map(|i| if padded && i % LEN >= [LEN, 4, 9][i / LEN] { 0.0 } else { 1.0 }).collect();
    MicroBatch {
        inputs: Tensor::<2, Int>::from_data(TensorData::new(inputs, [BATCH, LEN]), &Device::flex().autodiff()).into(),
        targets: (0..BATCH * LEN).map(|i| token(i + 1) as i32).collect::<Vec<i32>>().into(),
        mask: padded.then(|| mask.into()),
        steps: segments.steps(BATCH, LEN).unwrap(),
    }
}

/// Asserts that loss and gradients are the same both ways.
fn assert_same(what: &str, [(loss, whole), (loss_of_blocks, blocks)]: [(f64, &GradientMap); 2]) {
    assert!(loss.is_finite() && (loss - loss_of_blocks).abs() < 1e-6, "{what}: {loss} and {loss_of_blocks}");
    let (expected, found) = (whole.values(), blocks.values());
    assert_eq!(expected.keys().collect::<Vec<_>>(), found.keys().collect::<Vec<_>>(), "{what}");
    for (name, expected) in expected {
        let scale = expected.iter().fold(1e-3f32, |m, x| m.max(x.abs()));
        let found = &found[&name];
        assert_eq!(found.len(), expected.len(), "{what}: {name}");
        for (i, (a, b)) in found.iter().zip(&expected).enumerate() {
            assert!((a - b).abs() <= 1e-5 * scale, "{what}: {name}[{i}]: found {a}, expected {b}, the largest is {scale}");
        }
    }
}

#[test]
fn block_by_block_gives_the_loss_the_gradients_and_the_state_of_one_pass() {
    let settings = [
        r#"{"mixer": "min-gru", "conv": true, "norm": "layer", "dropout": 0.3, "initial_state": "learned"}"#,
        r#"{"mixer": "min-lstm", "tie_embeddings": true, "ff": "gated"}"#,
        r#"{"mixer": "gru", "ff": "none"}"#,
        r#"{"mixer": "lstm", "initial_state": "learned", "dropout": 0.1}"#,
        r#"{"mixer": "min-gru", "n_outputs": 7, "pooling": "mean"}"#,
        r#"{"mixer": "min-gru", "n_outputs": 7, "pooling": "mean", "pair_head": true}"#,
    ];
    for settings in settings {
        for padded in [false, true] {
            let model = model(settings);
            let mode = Mode::Train { dropout_key: 5 };
            let mut carried = [None, None];
            // The second window continues from the state of the first.
            for window in 0..2 {
                let [whole, blocks] = [false, true].map(|checkpoint_blocks| {
                    let state = carried[usize::from(checkpoint_blocks)].clone();
                    differentiate(&model, batch(padded), state, mode, checkpoint_blocks)
                });
                let what = format!("{settings}, padded {padded}, window {window}");
                assert_same(&what, [(whole.loss, &whole.gradients), (blocks.loss, &blocks.gradients)]);
                assert_eq!(whole.state.tensors(), blocks.state.tensors(), "{what}");
                carried = [Some(whole.state), Some(blocks.state)];
            }
        }
    }
}

#[test]
fn batch_norm_is_refused_block_by_block() {
    let settings = ["checkpoint_blocks=true", "norm=\"batch\""].map(str::to_owned);
    let refused = Experiment::parse("", &settings).and_then(|experiment| experiment.validate()).unwrap_err().to_string();
    assert!(refused.contains("checkpoint_blocks") && refused.contains("norm = batch"), "{refused}");
}

#[test]
fn block_by_block_gives_the_loss_and_the_gradients_of_a_policy() {
    let device = Device::flex().autodiff();
    for mixer in ["min-gru", "attention", "lstm"] {
        let text = format!(r#"{{"mixer": "{mixer}", "norm": "layer", "dropout": 0.3, "input_width": 6, "n_outputs": 2, "n_heads": 2}}"#);
        let config: ModelConfig = serde_json::from_str(&text).unwrap();
        let policy = Decision::new(&ModelConfig { d_model: 8, n_layers: 3, ..config }, 1, &device).unwrap();
        for padded in [false, true] {
            let number = |i: usize| (i as f32 * 0.7).sin();
            let rows: Vec<f32> = (0..BATCH * LEN * 6).map(number).collect();
            let MicroBatch { mask, steps, .. } = batch(padded);
            let batch = MicroBatch {
                inputs: Tensor::<3>::from_data(TensorData::new(rows, [BATCH, LEN, 6]), &device).into(),
                targets: Targets::Values((0..BATCH * LEN * 2).map(number).collect()),
                mask,
                steps,
            };
            let mode = Mode::Train { dropout_key: 5 };
            let [whole, blocks] =
                [false, true].map(|checkpoint_blocks| differentiate_policy(&policy, batch.clone(), mode, checkpoint_blocks));
            assert_same(&format!("{mixer}, padded {padded}"), [(whole.0, &whole.1), (blocks.0, &blocks.1)]);
        }
    }
}
