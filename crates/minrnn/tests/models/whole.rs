//! The behaviour of whole models: initial loss, causality, dropout, tied embeddings, initial biases; and what they refuse.

use std::sync::Arc;

use crate::common::configs::{label, language_models, small};
use crate::common::{
    OUTPUT, VOCAB_SIZE, assert_close, device, laws, parameters, random_below, random_tokens, subject, values, with_parameters,
};
use burn::tensor::{Device, Int, Tensor};
use minrnn::Segments;
use minrnn::model::SequenceModel;
use minrnn::nn::Mode;
use minrnn::ops::StepCodes;
use minrnn_model::{DropoutSite, InitialState, MixerKind, ModelConfig};

const TRAIN: Mode = Mode::Train { dropout_key: 9 };

fn model(config: &ModelConfig) -> SequenceModel {
    SequenceModel::new(config, 1, &Device::flex()).expect("a valid model")
}

/// Logits of a whole batch from the initial state.
fn logits(model: &SequenceModel, tokens: &Tensor<2, Int>, mode: Mode) -> Vec<f32> {
    let state = model.init_state(tokens.dims()[0]);
    values(model.forward(tokens.clone(), state, &StepCodes::dense(), mode).0)
}

fn tokens(batch_size: usize, seq_len: usize) -> Tensor<2, Int> {
    random_tokens(batch_size, seq_len, 1, &Device::flex())
}

#[test]
fn the_initial_loss_is_near_that_of_guessing() {
    for mixer in MixerKind::ALL {
        let config = ModelConfig { vocab_size: 65, d_model: 64, conv: true, ..small(*mixer) };
        let model = model(&config);
        let tokens = tokens(4, 64);
        let targets: Arc<[i32]> = random_below(65, 4 * 64, 2).into_iter().map(|token| token as i32).collect();
        let (loss, _) = model.loss(tokens, targets, None, model.init_state(4), &StepCodes::dense(), Mode::Evaluate);
        let excess = loss.into_scalar::<f32>() - 65f32.ln();
        // Independent logits of variance 1/3 cost about 1/6 nat more than equal ones.
        assert!((0.0..0.35).contains(&excess), "{mixer}: {excess}");
    }
}

#[test]
fn a_token_changes_nothing_before_it_to_the_last_bit() {
    for (name, model) in subject::language_models(language_models()) {
        let (batch_size, seq_len) = (2, 70);
        let device = device();
        let before = random_tokens(batch_size, seq_len, 1, &device);
        let forward = |tokens: &Tensor<2, Int>| logits(&model, tokens, Mode::Evaluate);
        let first = forward(&before);
        for at in [0, 1, 33, 64, 69] {
            let token = before.clone().slice([0..1, at..at + 1]);
            let other = token.add_scalar(1).remainder_scalar(VOCAB_SIZE as i64);
            let second = forward(&before.clone().slice_assign([0..1, at..at + 1], other));
            let changed = (0..seq_len).position(|t| (0..VOCAB_SIZE).any(|v| first[t * VOCAB_SIZE + v] != second[t * VOCAB_SIZE + v]));
            assert_eq!(changed, Some(at), "{name}");
            assert_eq!(first[seq_len * VOCAB_SIZE..], second[seq_len * VOCAB_SIZE..], "{name}: the other row");
        }
    }
}

#[test]
fn a_prompt_pass_gives_the_logits_after_each_row() {
    for (name, model) in subject::language_models(language_models()) {
        let lengths = [9, 1, 4];
        let tokens = random_tokens(3, 9, 1, &device());
        let steps = Segments::from_lengths(lengths.to_vec()).steps(3, 9).unwrap();
        let (all, _) = model.forward(tokens.clone(), model.init_state(3), &steps, Mode::Evaluate);
        let (last, _) = model.prefill(tokens, &lengths, model.init_state(3), &steps);
        let expected = (0..3).map(|b| all.clone().slice([b..b + 1, lengths[b] - 1..lengths[b]]));
        let expected = values(Tensor::cat(expected.collect(), 0));
        assert_close(&name, &values(last), &expected, OUTPUT);
    }
}

#[test]
fn a_stack_of_blocks_equals_its_steps() {
    for (name, model) in subject::language_models(language_models()) {
        laws::forward_equals_steps(&name, &model.backbone, &[1, 7]);
    }
}

#[test]
fn dropout_acts_only_in_training_and_follows_its_key() {
    let tokens = tokens(2, 12);
    for site in DropoutSite::ALL {
        let config = ModelConfig { dropout: 0.3, dropout_sites: vec![*site], ..small(MixerKind::MinGru) };
        let (with, without) = (model(&config), model(&ModelConfig { dropout: 0.0, ..config.clone() }));
        let plain = logits(&without, &tokens, Mode::Evaluate);
        assert_eq!(logits(&with, &tokens, Mode::Evaluate), plain, "{site}: evaluation");
        assert_eq!(logits(&without, &tokens, TRAIN), plain, "{site}: training without dropout");
        let dropped = logits(&with, &tokens, TRAIN);
        assert_ne!(dropped, plain, "{site}: training");
        assert_eq!(logits(&with, &tokens, TRAIN), dropped, "{site}: the same key");
        assert_ne!(logits(&with, &tokens, Mode::Train { dropout_key: 10 }), dropped, "{site}: another key");
    }
    let nowhere = ModelConfig { dropout: 0.3, dropout_sites: vec![], ..small(MixerKind::MinGru) };
    assert_eq!(logits(&model(&nowhere), &tokens, TRAIN), logits(&model(&nowhere), &tokens, Mode::Evaluate));
}

#[test]
fn a_tied_head_is_the_embedding() {
    let tied = ModelConfig { tie_embeddings: true, ..small(MixerKind::MinGru) };
    let model_tied = model(&tied);
    assert!(model_tied.head.is_none());
    let untied = model(&ModelConfig { tie_embeddings: false, ..tied });
    let mut named: Vec<_> = {
        let shapes = minrnn::checkpoint::parameter_shapes(&model_tied);
        let data = parameters(&model_tied);
        let value = |name: &str| data.iter().find(|(n, _)| n == name).expect("listed").1.clone();
        shapes.into_iter().map(|(name, shape)| (name.clone(), shape, value(&name))).collect()
    };
    let embedding = named.iter().find(|(name, ..)| name == "embedding.weight").expect("an embedding").clone();
    named.push(("head.weight".to_owned(), embedding.1, embedding.2));
    let directory = tempfile::tempdir().unwrap();
    let untied = with_parameters(untied, &directory.path().join("weights"), named);
    let tokens = tokens(2, 5);
    assert_close("logits", &logits(&model_tied, &tokens, TRAIN), &logits(&untied, &tokens, TRAIN), OUTPUT);
}

#[test]
fn weights_depend_on_the_seed_alone() {
    let config = small(MixerKind::Lstm);
    let of = |seed| parameters(&SequenceModel::new(&config, seed, &Device::flex()).unwrap());
    assert_eq!(of(1), of(1));
    assert_ne!(of(1), of(2));
}

#[test]
fn the_forget_bias_shifts_the_bias_of_the_forget_gate_alone() {
    for mixer in [MixerKind::MinLstm, MixerKind::Lstm] {
        let config = ModelConfig { initial_state: InitialState::Learned, ..small(mixer) };
        let d_inner = config.checked().unwrap().d_inner();
        let (plain, shifted) = (parameters(&model(&config)), parameters(&model(&ModelConfig { forget_bias: 3.0, ..config.clone() })));
        assert_eq!(plain.len(), shifted.len());
        for ((name, plain), (_, shifted)) in plain.iter().zip(&shifted) {
            assert_eq!(plain.len(), shifted.len(), "{name}");
            for (i, (a, b)) in plain.iter().zip(shifted).enumerate() {
                let forget = name.ends_with("mixer.in_proj.bias") && (d_inner..2 * d_inner).contains(&i);
                assert_eq!(*b, if forget { a + 3.0 } else { *a }, "{}: {name}[{i}]", label(&config));
            }
        }
    }
}

/// The message with which `work` panics.
fn refusal<T>(work: impl FnOnce() -> T) -> String {
    let panic = std::panic::catch_unwind(std::panic::AssertUnwindSafe(work)).err().expect("a panic");
    panic.downcast_ref::<String>().cloned().unwrap_or_default()
}

#[test]
fn targets_and_weights_of_other_positions_are_refused_where_few_are_scored() {
    let model = model(&small(MixerKind::MinGru));
    let loss = |n_targets: usize, mask: Option<Vec<f32>>| {
        let mask = mask.map(Into::into);
        model.loss(tokens(2, 4), vec![1; n_targets], mask, model.init_state(2), &StepCodes::dense(), Mode::Evaluate).0
    };
    let one_of = |n: usize, at: usize| Some((0..n).map(|i| if i == at { 1.0 } else { 0.0 }).collect());
    loss(8, one_of(8, 1));
    for (n, at) in [(4, 1), (16, 1), (16, 9)] {
        let said = refusal(|| loss(8, one_of(n, at)));
        assert!(said.contains(&format!("loss: expected 8 weights in mask, found {n}")), "{said}");
    }
    for n in [4, 16] {
        let said = refusal(|| loss(n, one_of(8, 1)));
        assert!(said.contains(&format!("loss: expected 8 targets, found {n}")), "{said}");
        assert!(refusal(|| loss(n, None)).contains(&format!("loss: expected 8 targets, found {n}")));
    }
}

#[test]
fn the_loss_of_a_weight_that_is_nan_is_nan() {
    let model = model(&small(MixerKind::MinGru));
    let mask: Vec<f32> = vec![f32::NAN, 1.0, 1.0, 1.0, 1.0, 0.0, 0.0, 0.0];
    let (loss, _) = model.loss(tokens(2, 4), vec![1; 8], Some(mask.into()), model.init_state(2), &StepCodes::dense(), Mode::Evaluate);
    assert!(loss.into_scalar::<f32>().is_nan());
}

#[test]
fn a_prompt_pass_refuses_lengths_that_are_not_those_of_its_rows() {
    let model = model(&small(MixerKind::MinGru));
    let prefill = |lengths: &[usize], steps: &StepCodes| model.prefill(tokens(2, 4), lengths, model.init_state(2), steps).0;
    let dense = StepCodes::dense();
    prefill(&[4, 4], &dense);
    for (lengths, row) in [([4, 0], 1), ([0, 4], 0), ([4, 5], 1)] {
        let said = refusal(|| prefill(&lengths, &dense));
        assert!(said.contains(&format!("a length between 1 and 4 of row {row}")), "{said}");
    }
    assert!(refusal(|| prefill(&[4], &dense)).contains("one length for each of 2 rows, found 1"));
    let steps = Segments::from_lengths(vec![4, 2]).steps(2, 4).unwrap();
    prefill(&[4, 2], &steps);
    assert!(refusal(|| prefill(&[4, 3], &steps)).contains("the length that the steps give row 1, 2, found 3"));
}

#[test]
fn a_state_of_other_rows_is_refused_also_without_a_step() {
    for mixer in MixerKind::ALL {
        let model = model(&small(*mixer));
        let none = || Tensor::<2, Int>::zeros([2, 0], &Device::flex());
        let forward = |rows: usize| model.forward(none(), model.init_state(rows), &StepCodes::dense(), Mode::Evaluate);
        forward(2);
        assert!(std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| forward(3))).is_err(), "{mixer}");
    }
}
