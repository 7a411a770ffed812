//! What a model has inside: the residual stream behind a block, and what the head reads.

mod common;

use common::{Tensors, assert_close, assert_same, drawn, numbers, small, tokens, weights};
use minrnn_model::{FeedForwardKind, MixerKind, ModelConfig, NormKind, Pooling, WeightFormat};
use minrnn_stream::{Inside, Model, Workspace};

fn model(config: &ModelConfig, tensors: &Tensors) -> Model {
    Model::new(config, &mut weights(tensors), WeightFormat::F32).unwrap()
}

/// Outputs, the stream behind block `layer`, and features of `inputs`, read in pieces of `piece` steps.
fn inside(model: &Model, inputs: &[u32], layer: usize, piece: usize) -> [Vec<f32>; 3] {
    let d = model.config().d_model;
    let (mut state, mut workspace) = (model.init_state(1).unwrap(), Workspace::new());
    let mut found = [Vec::new(), Vec::new(), Vec::new()];
    for inputs in inputs.chunks(piece) {
        let (mut outputs, mut hidden, mut features) =
            (vec![0.0; inputs.len() * model.outputs()], vec![0.0; inputs.len() * d], vec![0.0; inputs.len() * d]);
        let wanted = Inside { hidden: Some((layer, &mut hidden)), features: Some(&mut features) };
        model.forward_inside(inputs, &mut state, &mut outputs, wanted, &mut workspace).unwrap();
        found.iter_mut().zip([outputs, hidden, features]).for_each(|(found, more)| found.extend(more));
    }
    found
}

#[test]
fn outputs_are_the_same_and_the_head_reads_the_features() {
    for mixer in [MixerKind::MinGru, MixerKind::Mamba, MixerKind::Attention] {
        for pooling in [Pooling::Last, Pooling::Mean] {
            let config = ModelConfig { pooling, n_outputs: 3, ..small(mixer) };
            let tensors = drawn(&config, 7);
            let model = model(&config, &tensors);
            // Longer than one pass.
            let inputs = tokens(&config, 600, 3);
            let [outputs, _, features] = inside(&model, &inputs, 1, 600);
            let mut plain = vec![0.0; outputs.len()];
            model.forward(&inputs, &mut model.init_state(1).unwrap(), &mut plain, &mut Workspace::new()).unwrap();
            assert_same(&outputs, &plain, "outputs");
            let (weight, bias) = (&tensors["head.weight"].1, &tensors["head.bias"].1);
            let of_head = features.chunks_exact(config.d_model).flat_map(|x| {
                let product = |row: &[f32]| row.iter().zip(x).map(|(w, x)| w * x).sum::<f32>();
                weight.chunks_exact(config.d_model).zip(bias).map(move |(row, bias)| product(row) + bias).collect::<Vec<_>>()
            });
            assert_close(&of_head.collect::<Vec<_>>(), &outputs, 1e-4, &format!("{mixer} {pooling}"));
        }
    }
}

#[test]
fn a_block_hands_on_what_a_model_of_so_many_blocks_ends_with() {
    let config = ModelConfig { conv: true, ff: FeedForwardKind::Gated, norm: NormKind::Layer, n_layers: 3, ..small(MixerKind::MinLstm) };
    let tensors = drawn(&config, 5);
    let inputs = tokens(&config, 40, 9);
    for layer in 0..3 {
        let first = ModelConfig { n_layers: layer + 1, ..config.clone() };
        let kept = |name: &str| (layer + 1..3).all(|other| !name.starts_with(&format!("backbone.blocks.{other}.")));
        let of_first: Tensors =
            tensors.iter().filter(|(name, _)| kept(name)).map(|(name, tensor)| (name.clone(), tensor.clone())).collect();
        let [_, hidden, _] = inside(&model(&config, &tensors), &inputs, layer, 7);
        let [_, expected, features] = inside(&model(&first, &of_first), &inputs, layer, 40);
        assert_close(&hidden, &expected, 1e-5, "hidden");
        // LayerNorm of it is what the head reads.
        let (weight, bias) = (&tensors["backbone.final_norm.weight"].1, &tensors["backbone.final_norm.bias"].1);
        let normed = expected.chunks_exact(config.d_model).flat_map(|x| {
            let mean = x.iter().sum::<f32>() / x.len() as f32;
            let deviation = (x.iter().map(|x| (x - mean).powi(2)).sum::<f32>() / x.len() as f32 + 1e-5).sqrt();
            x.iter().zip(weight.iter().zip(bias)).map(|(x, (w, b))| (x - mean) / deviation * w + b).collect::<Vec<_>>()
        });
        assert_close(&normed.collect::<Vec<_>>(), &features, 1e-4, "features");
    }
}

#[test]
fn numbers_have_an_inside_too() {
    let config = ModelConfig { vocab_size: 0, input_width: 2, n_outputs: 3, pooling: Pooling::Mean, ..small(MixerKind::MinGru) };
    let model = model(&config, &drawn(&config, 7));
    let (values, d) = (numbers(2 * 30, 4), config.d_model);
    let read = |piece: usize| {
        let (mut state, mut workspace, mut all) = (model.init_state(1).unwrap(), Workspace::new(), Vec::new());
        for values in values.chunks(2 * piece) {
            let steps = values.len() / 2;
            let (mut outputs, mut features) = (vec![0.0; steps * 3], vec![0.0; steps * d]);
            let wanted = Inside { features: Some(&mut features), ..Inside::default() };
            model.forward_values_inside(values, &mut state, &mut outputs, wanted, &mut workspace).unwrap();
            all.extend(features);
        }
        all
    };
    assert_close(&read(4), &read(30), 1e-5, "features in pieces");
}

#[test]
fn what_does_not_fit_is_refused_and_nothing_is_read() {
    let config = small(MixerKind::MinGru);
    let model = model(&config, &drawn(&config, 7));
    let (mut state, mut workspace, mut outputs) = (model.init_state(1).unwrap(), Workspace::new(), vec![0.0; 2 * model.outputs()]);
    let before = state.to_bytes().unwrap();
    for (layer, len, part) in [(2, 48, "the model has 2 blocks"), (0, 47, "expected room for 2 steps of 24 numbers, found 47")] {
        let mut hidden = vec![0.0; len];
        let wanted = Inside { hidden: Some((layer, &mut hidden)), features: None };
        let refused = model.forward_inside(&[1, 2], &mut state, &mut outputs, wanted, &mut workspace).unwrap_err().to_string();
        assert!(refused.contains(part), "{refused}");
        assert_eq!(state.to_bytes().unwrap(), before);
    }
}
