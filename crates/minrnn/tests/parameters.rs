//! Names, shapes and numbers of parameters: what checkpoints and the published counts depend on.

mod common;

use burn::tensor::Device;
use common::configs::small;
use common::device;
use minrnn::checkpoint::{parameter_count, parameter_shapes};
use minrnn::model::LanguageModel;
use minrnn::nn::{AnyMixer, Initializer};
use minrnn_stream::{FeedForwardKind, ForgetFloor, GruForm, InitialState, MixerKind, ModelConfig, NormKind};

fn model(config: &ModelConfig) -> LanguageModel {
    LanguageModel::new(config, 0, &Device::flex()).expect("a valid model")
}

/// One line per parameter: name and shape.
fn listing(config: &ModelConfig) -> String {
    parameter_shapes(&model(config)).iter().map(|(name, shape)| format!("{name} {shape:?}\n")).collect()
}

fn expected(lines: &str) -> String {
    lines.trim().lines().map(|line| format!("{}\n", line.trim())).collect()
}

#[test]
fn names_of_a_min_gru_with_convolution_layer_norm_and_mlp() {
    let config = ModelConfig { conv: true, norm: NormKind::Layer, ..small(MixerKind::MinGru) };
    let lines = "
        embedding.weight [11, 8]
        backbone.blocks.0.conv.depthwise.weight [8, 1, 4]
        backbone.blocks.0.conv.depthwise.bias [8]
        backbone.blocks.0.conv.pointwise.weight [8, 8]
        backbone.blocks.0.conv.pointwise.bias [8]
        backbone.blocks.0.mixer_norm.weight [8]
        backbone.blocks.0.mixer_norm.bias [8]
        backbone.blocks.0.mixer.in_proj.weight [32, 8]
        backbone.blocks.0.mixer.in_proj.bias [32]
        backbone.blocks.0.mixer.out_proj.weight [8, 16]
        backbone.blocks.0.mixer.out_proj.bias [8]
        backbone.blocks.0.ff_norm.weight [8]
        backbone.blocks.0.ff_norm.bias [8]
        backbone.blocks.0.ff.up.weight [32, 8]
        backbone.blocks.0.ff.up.bias [32]
        backbone.blocks.0.ff.down.weight [8, 32]
        backbone.blocks.0.ff.down.bias [8]
        backbone.final_norm.weight [8]
        backbone.final_norm.bias [8]
        head.weight [11, 8]";
    assert_eq!(listing(&config), expected(lines));
}

#[test]
fn names_of_a_min_lstm_with_a_learned_state_rms_norm_and_gated_feed_forward() {
    let config =
        ModelConfig { ff: FeedForwardKind::Gated, ff_mult: 2.0, initial_state: InitialState::Learned, ..small(MixerKind::MinLstm) };
    let lines = "
        embedding.weight [11, 8]
        backbone.blocks.0.mixer_norm.gamma [8]
        backbone.blocks.0.mixer.in_proj.weight [48, 8]
        backbone.blocks.0.mixer.in_proj.bias [48]
        backbone.blocks.0.mixer.out_proj.weight [8, 16]
        backbone.blocks.0.mixer.out_proj.bias [8]
        backbone.blocks.0.mixer.initial_state [16]
        backbone.blocks.0.ff_norm.gamma [8]
        backbone.blocks.0.ff.up.weight [32, 8]
        backbone.blocks.0.ff.up.bias [32]
        backbone.blocks.0.ff.down.weight [8, 16]
        backbone.blocks.0.ff.down.bias [8]
        backbone.blocks.0.ff.scale [16]
        backbone.final_norm.gamma [8]
        head.weight [11, 8]";
    assert_eq!(listing(&config), expected(lines));
}

#[test]
fn names_of_a_tied_gru_with_batch_norm_and_no_feed_forward() {
    let plain = ModelConfig { ff: FeedForwardKind::None, tie_embeddings: true, ..small(MixerKind::Gru) };
    let config = ModelConfig { norm: NormKind::Batch, gru_form: GruForm::Torch, ..plain };
    let lines = "
        embedding.weight [11, 8]
        backbone.blocks.0.mixer_norm.weight [8]
        backbone.blocks.0.mixer_norm.bias [8]
        backbone.blocks.0.mixer_norm.running_mean [8]
        backbone.blocks.0.mixer_norm.running_var [8]
        backbone.blocks.0.mixer.in_proj.weight [48, 8]
        backbone.blocks.0.mixer.in_proj.bias [48]
        backbone.blocks.0.mixer.recurrent.weight [48, 16]
        backbone.blocks.0.mixer.recurrent.bias [48]
        backbone.blocks.0.mixer.out_proj.weight [8, 16]
        backbone.blocks.0.mixer.out_proj.bias [8]
        backbone.final_norm.weight [8]
        backbone.final_norm.bias [8]
        backbone.final_norm.running_mean [8]
        backbone.final_norm.running_var [8]";
    assert_eq!(listing(&config), expected(lines));
    let paper = ModelConfig { gru_form: GruForm::Paper, ..config };
    assert_eq!(listing(&paper), expected(lines).replace("backbone.blocks.0.mixer.recurrent.bias [48]\n", ""));
}

#[test]
fn names_of_an_lstm_with_a_learned_state() {
    let config = ModelConfig { ff: FeedForwardKind::None, initial_state: InitialState::Learned, ..small(MixerKind::Lstm) };
    let lines = "
        embedding.weight [11, 8]
        backbone.blocks.0.mixer_norm.gamma [8]
        backbone.blocks.0.mixer.in_proj.weight [64, 8]
        backbone.blocks.0.mixer.in_proj.bias [64]
        backbone.blocks.0.mixer.recurrent.weight [64, 16]
        backbone.blocks.0.mixer.recurrent.bias [64]
        backbone.blocks.0.mixer.out_proj.weight [8, 16]
        backbone.blocks.0.mixer.out_proj.bias [8]
        backbone.blocks.0.mixer.initial_state [16]
        backbone.blocks.0.mixer.initial_cell [16]
        backbone.final_norm.gamma [8]
        head.weight [11, 8]";
    assert_eq!(listing(&config), expected(lines));
}

/// The mixer's own parameters, one line each.
fn mixer_listing(config: &ModelConfig) -> String {
    let own = listing(&ModelConfig { ff: FeedForwardKind::None, ..config.clone() });
    own.lines().filter_map(|line| line.strip_prefix("backbone.blocks.0.mixer.")).map(|line| format!("{line}\n")).collect()
}

#[test]
fn names_of_the_mixers_beyond_the_paper() {
    let lines = "
        in_proj.weight [48, 8]
        in_proj.bias [48]
        out_proj.weight [8, 16]
        out_proj.bias [8]";
    assert_eq!(mixer_listing(&small(MixerKind::SignedMinGru)), expected(lines));
    let lines = "
        in_proj.weight [32, 8]
        in_proj.bias [32]
        out_proj.weight [8, 16]
        out_proj.bias [8]
        decay [16]";
    assert_eq!(mixer_listing(&small(MixerKind::DecayMinGru)), expected(lines));
    let lines = "
        in_proj.weight [50, 8]
        in_proj.bias [50]
        out_proj.weight [8, 16]
        out_proj.bias [8]";
    assert_eq!(mixer_listing(&ModelConfig { n_heads: 2, ..small(MixerKind::Delta) }), expected(lines));
    let lines = "
        in_proj.weight [32, 8]
        in_proj.bias [32]
        out_proj.weight [8, 16]
        out_proj.bias [8]
        highway.weight [8, 8]
        highway.bias [8]
        forget_floor [16]";
    let config = ModelConfig { highway: true, forget_floor: ForgetFloor::Learned, ..small(MixerKind::MinGru) };
    assert_eq!(mixer_listing(&config), expected(lines));
}

#[test]
fn mixers_beyond_the_paper_have_the_parameters_of_their_equations() {
    let count = |config: &ModelConfig| {
        parameter_count(&AnyMixer::from_config(config, 0, &mut Initializer::new(0, &device())).expect("a valid mixer"))
    };
    let (d, e) = (8, 16);
    let plain = count(&small(MixerKind::MinGru));
    assert_eq!(count(&small(MixerKind::SignedMinGru)), plain + e * d + e);
    assert_eq!(count(&small(MixerKind::DecayMinGru)), plain + e);
    assert_eq!(count(&ModelConfig { n_heads: 2, ..small(MixerKind::Delta) }), plain + e * d + e + 2 * (d + 1));
    assert_eq!(count(&ModelConfig { highway: true, ..small(MixerKind::MinGru) }), plain + d * d + d);
    assert_eq!(count(&ModelConfig { forget_floor: ForgetFloor::Learned, ..small(MixerKind::MinGru) }), plain + e);
}

/// models.md §2.8: one RMSNorm and a learned state per layer, no feed-forward part.
#[test]
fn selective_copying_models_have_the_published_counts() {
    let config = |mixer| ModelConfig {
        mixer,
        vocab_size: 16,
        d_model: 64,
        expansion: 6.0,
        n_layers: 3,
        ff: FeedForwardKind::None,
        initial_state: InitialState::Learned,
        ..Default::default()
    };
    assert_eq!(parameter_count(&model(&config(MixerKind::MinGru))), 227_136);
    assert_eq!(parameter_count(&model(&config(MixerKind::MinLstm))), 302_016);
}

/// models.md §2.8: convolution, 4× MLP, two RMSNorms and a learned state per layer, untied head.
#[test]
fn shakespeare_models_have_the_published_counts() {
    let config = |mixer| ModelConfig {
        mixer,
        vocab_size: 65,
        d_model: 384,
        n_layers: 3,
        conv: true,
        initial_state: InitialState::Learned,
        ..Default::default()
    };
    assert_eq!(parameter_count(&model(&config(MixerKind::MinGru))), 6_708_864);
    assert_eq!(parameter_count(&model(&config(MixerKind::MinLstm))), 7_595_904);
    // The other settings of the same size: zero state, and the paper's LayerNorm.
    let zero = ModelConfig { initial_state: InitialState::Zero, ..config(MixerKind::MinGru) };
    assert_eq!(parameter_count(&model(&zero)), 6_708_864 - 3 * 768);
    assert_eq!(parameter_count(&model(&ModelConfig { norm: NormKind::Layer, ..zero })), 6_708_864 - 3 * 768 + 7 * 384);
}

#[test]
fn running_statistics_are_not_counted() {
    let config = small(MixerKind::MinGru);
    let batch = ModelConfig { norm: NormKind::Batch, ..config.clone() };
    let layer = ModelConfig { norm: NormKind::Layer, ..config };
    assert_eq!(parameter_count(&model(&batch)), parameter_count(&model(&layer)));
}

/// tasks.md §7.4: minGRU/GRU = 2/(3(1 + α)), minLSTM/LSTM = 3/(4(1 + α)), biases and the projection back to D left out.
#[test]
fn minimal_cells_have_the_published_fractions_of_parameters() {
    let cell_weights = |mixer, expansion: usize| {
        let config = ModelConfig { expansion: expansion as f64, ..small(mixer) };
        let mixer = AnyMixer::from_config(&config, 0, &mut Initializer::new(0, &device())).expect("a valid mixer");
        let shapes = parameter_shapes(&mixer);
        let matrices = shapes.iter().filter(|(name, _)| name.ends_with("weight") && !name.starts_with("out_proj"));
        matrices.map(|(_, shape)| shape.iter().product::<usize>()).sum::<usize>() as f64
    };
    let published = [(33.3, 37.5), (22.2, 25.0), (16.7, 18.75), (13.3, 15.0)];
    for (expansion, (gru, lstm)) in (1..).zip(published) {
        let fraction = |small, large| 100.0 * cell_weights(small, expansion) / cell_weights(large, expansion);
        let (found_gru, found_lstm) = (fraction(MixerKind::MinGru, MixerKind::Gru), fraction(MixerKind::MinLstm, MixerKind::Lstm));
        assert!((found_gru - 200.0 / (3.0 * (1 + expansion) as f64)).abs() < 1e-9 && (found_gru - gru).abs() < 0.05, "{found_gru}");
        assert!((found_lstm - 300.0 / (4.0 * (1 + expansion) as f64)).abs() < 1e-9 && (found_lstm - lstm).abs() < 0.05, "{found_lstm}");
    }
}
