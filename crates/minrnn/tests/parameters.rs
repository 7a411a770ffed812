//! Names, shapes and numbers of parameters: what checkpoints and the published counts depend on.

mod common;

use burn::tensor::Device;
use common::configs::{llama, nano_gpt, small};
use common::{device, parameters};
use minrnn::checkpoint::{parameter_count, parameter_shapes};
use minrnn::model::SequenceModel;
use minrnn::nn::{AnyMixer, Initializer};
use minrnn::train::Experiment;
use minrnn_model::{FeedForwardKind, ForgetFloor, GruForm, InitialState, MixerKind, ModelConfig, NormKind, WiringKind};

fn layer(config: &ModelConfig, seed: u64) -> AnyMixer {
    AnyMixer::new(&config.checked().expect("a valid model"), 0, &mut Initializer::new(seed, &device()))
}

fn model(config: &ModelConfig) -> SequenceModel {
    SequenceModel::new(config, 0, &Device::flex()).expect("a valid model")
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

#[test]
fn names_of_a_mamba_are_those_of_its_best_known_implementation() {
    let config = ModelConfig { ff: FeedForwardKind::None, d_state: 5, ..small(MixerKind::Mamba) };
    let lines = "
        embedding.weight [11, 8]
        backbone.blocks.0.mixer_norm.gamma [8]
        backbone.blocks.0.mixer.in_proj.weight [32, 8]
        backbone.blocks.0.mixer.conv1d.weight [16, 1, 4]
        backbone.blocks.0.mixer.conv1d.bias [16]
        backbone.blocks.0.mixer.x_proj.weight [11, 16]
        backbone.blocks.0.mixer.dt_proj.weight [16, 1]
        backbone.blocks.0.mixer.dt_proj.bias [16]
        backbone.blocks.0.mixer.A_log [16, 5]
        backbone.blocks.0.mixer.D [16]
        backbone.blocks.0.mixer.out_proj.weight [8, 16]
        backbone.final_norm.gamma [8]
        head.weight [11, 8]";
    assert_eq!(listing(&config), expected(lines));
}

/// Mamba (Gu and Dao 2023, arXiv:2312.00752), counted from its equations.
#[test]
fn mamba_models_have_the_published_counts() {
    let config = |d_model| ModelConfig {
        mixer: MixerKind::Mamba,
        vocab_size: 65,
        d_model,
        n_layers: 3,
        ff: FeedForwardKind::None,
        tie_embeddings: true,
        ..Default::default()
    };
    for (d_model, published) in [(64, 32_640), (384, 963_840)] {
        let layer = layer(&config(d_model), 0);
        assert_eq!(parameter_count(&layer), published);
    }
    assert_eq!(parameter_count(&model(&config(384))), 2_918_016);
}

/// Mamba (Gu and Dao 2023, arXiv:2312.00752, §3.6): A, D, and the step sizes that the biases stand for.
#[test]
fn a_new_mamba_starts_from_the_published_values() {
    let config = ModelConfig { d_state: 3, n_layers: 4, ..small(MixerKind::Mamba) };
    let mixer = layer(&config, 1);
    let values: std::collections::BTreeMap<_, _> = common::parameters(&mixer).into_iter().collect();
    for (i, a_log) in values["A_log"].iter().enumerate() {
        assert!((a_log.exp() - (i % 3 + 1) as f32).abs() < 1e-5, "{a_log}");
    }
    assert!(values["D"].iter().all(|&d| d == 1.0));
    let steps: Vec<f32> = values["dt_proj.bias"].iter().map(|bias| bias.exp().ln_1p()).collect();
    assert!(steps.iter().all(|step| (1e-3 * 0.999..0.1 * 1.001).contains(step)), "{steps:?}");
    assert!(values["out_proj.weight"].iter().all(|x| x.abs() <= 1.0 / (4.0 * 16.0f32).sqrt()));
    assert!(values["dt_proj.weight"].iter().all(|x| x.abs() <= 1.0));
}

/// The selective copying models of Feng et al. 2024 (arXiv:2410.01201), counted from their released settings: one RMSNorm and a learned
/// state per layer, no feed-forward part.
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

/// The Shakespeare models of Feng et al. 2024 (arXiv:2410.01201), counted from their settings: convolution, 4× MLP, two RMSNorms and a
/// learned state per layer, untied head.
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

/// Feng et al. 2024, arXiv:2410.01201, §3: minGRU/GRU = 2/(3(1 + α)), minLSTM/LSTM = 3/(4(1 + α)), excluding biases and the projection back
/// to D.
#[test]
fn minimal_cells_have_the_published_fractions_of_parameters() {
    let cell_weights = |mixer, expansion: usize| {
        let config = ModelConfig { expansion: expansion as f64, ..small(mixer) };
        let mixer = layer(&config, 0);
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

#[test]
fn names_of_an_rwkv_with_its_channel_mixing() {
    let block = ModelConfig { expansion: 1.0, ff: FeedForwardKind::ChannelMix, norm: NormKind::Layer, ..small(MixerKind::Rwkv4) };
    let lines = "
        embedding.weight [11, 8]
        backbone.blocks.0.mixer_norm.weight [8]
        backbone.blocks.0.mixer_norm.bias [8]
        backbone.blocks.0.mixer.receptance.weight [8, 8]
        backbone.blocks.0.mixer.key.weight [8, 8]
        backbone.blocks.0.mixer.value.weight [8, 8]
        backbone.blocks.0.mixer.out_proj.weight [8, 8]
        backbone.blocks.0.mixer.mix_receptance [8]
        backbone.blocks.0.mixer.mix_key [8]
        backbone.blocks.0.mixer.mix_value [8]
        backbone.blocks.0.mixer.decay [8]
        backbone.blocks.0.mixer.bonus [8]
        backbone.blocks.0.ff_norm.weight [8]
        backbone.blocks.0.ff_norm.bias [8]
        backbone.blocks.0.ff.key.weight [32, 8]
        backbone.blocks.0.ff.receptance.weight [8, 8]
        backbone.blocks.0.ff.value.weight [8, 32]
        backbone.blocks.0.ff.mix_key [8]
        backbone.blocks.0.ff.mix_receptance [8]
        backbone.final_norm.weight [8]
        backbone.final_norm.bias [8]
        head.weight [11, 8]";
    assert_eq!(listing(&block), expected(lines));
}

/// Counted from the equations at the head of each mixer's file, for D = 64 and E = 128.
#[test]
fn linear_mixers_have_the_parameters_of_their_equations() {
    let (d, e, heads) = (64, 128, 4);
    let count = |mixer| {
        let config = ModelConfig { d_model: d, n_heads: heads, ..small(mixer) };
        parameter_count(&layer(&config, 0))
    };
    assert_eq!(count(MixerKind::Gilr), 3 * d * e + 2 * e + d);
    assert_eq!(count(MixerKind::Rwkv4), 4 * d * e + 2 * e + 3 * d);
    assert_eq!(count(MixerKind::Aaren), 3 * d * e + e);
    assert_eq!(count(MixerKind::LinearAttention), 4 * d * e);
    assert_eq!(count(MixerKind::RetNet), 2 * d * d + 3 * d * e);
}

#[test]
fn names_of_a_stack_of_both_cells_of_xlstm() {
    let mixers = vec![MixerKind::MLstm, MixerKind::SLstm];
    let config = ModelConfig { mixers, n_layers: 2, ff: FeedForwardKind::GeGlu, ff_mult: 1.3, n_heads: 2, ..small(MixerKind::MinGru) };
    let lines = "
        embedding.weight [11, 8]
        backbone.blocks.0.mixer_norm.gamma [8]
        backbone.blocks.0.mixer.in_proj.weight [128, 8]
        backbone.blocks.0.mixer.conv1d.weight [64, 1, 4]
        backbone.blocks.0.mixer.conv1d.bias [64]
        backbone.blocks.0.mixer.q_proj.weight [16, 4, 4]
        backbone.blocks.0.mixer.k_proj.weight [16, 4, 4]
        backbone.blocks.0.mixer.v_proj.weight [16, 4, 4]
        backbone.blocks.0.mixer.igate.weight [2, 192]
        backbone.blocks.0.mixer.igate.bias [2]
        backbone.blocks.0.mixer.fgate.weight [2, 192]
        backbone.blocks.0.mixer.fgate.bias [2]
        backbone.blocks.0.mixer.outnorm.weight [64]
        backbone.blocks.0.mixer.learnable_skip [64]
        backbone.blocks.0.mixer.out_proj.weight [8, 64]
        backbone.blocks.1.mixer_norm.gamma [8]
        backbone.blocks.1.mixer.conv1d.weight [8, 1, 4]
        backbone.blocks.1.mixer.conv1d.bias [8]
        backbone.blocks.1.mixer.igate.weight [2, 4, 4]
        backbone.blocks.1.mixer.fgate.weight [2, 4, 4]
        backbone.blocks.1.mixer.zgate.weight [2, 4, 4]
        backbone.blocks.1.mixer.ogate.weight [2, 4, 4]
        backbone.blocks.1.mixer.recurrent.weight [2, 16, 4]
        backbone.blocks.1.mixer.bias [32]
        backbone.blocks.1.mixer.group_norm.weight [8]
        backbone.blocks.1.ff_norm.gamma [8]
        backbone.blocks.1.ff.up.weight [128, 8]
        backbone.blocks.1.ff.down.weight [8, 64]
        backbone.final_norm.gamma [8]
        head.weight [11, 8]";
    assert_eq!(listing(&config), expected(lines));
}

/// xLSTM's blocks (Beck et al. 2024, arXiv:2405.04517, §2.4), d = 64 and one head. A norm there has a gain and no bias, like our RMSNorm.
#[test]
fn blocks_of_xlstm_have_the_published_counts() {
    let block = |mixer| {
        let config = ModelConfig { mixer, d_model: 64, n_heads: 1, ff: FeedForwardKind::GeGlu, ff_mult: 1.3, ..small(mixer) };
        let shapes = parameter_shapes(&model(&config));
        let of_block = shapes.iter().filter(|(name, _)| name.starts_with("backbone.blocks."));
        of_block.map(|(_, shape)| shape.iter().product::<usize>()).sum::<usize>()
    };
    assert_eq!(block(MixerKind::MLstm), 27_842);
    assert_eq!(block(MixerKind::SLstm), 58_112);
}

#[test]
fn gates_of_xlstm_begin_as_published() {
    let mixers = vec![MixerKind::MLstm, MixerKind::SLstm];
    let config = ModelConfig { mixers, d_model: 16, n_layers: 4, n_heads: 4, ..small(MixerKind::MinGru) };
    let parameters = common::parameters(&model(&config));
    let values = |name: &str| &parameters.iter().find(|(found, _)| found == &format!("backbone.blocks.{name}")).expect("a parameter").1;
    assert_eq!(values("0.mixer.fgate.bias"), &[3.0, 4.0, 5.0, 6.0]);
    assert!(values("0.mixer.igate.weight").iter().chain(values("1.mixer.recurrent.weight")).all(|&x| x == 0.0));
    // 5 − 12 (j/3)^p with p = 0.3 + 1.3 · 1/3 in the second of four blocks and 1.6 in the last, the same in each head.
    for (layer, power) in [(1, 0.3 + 1.3 / 3.0), (3, 1.6)] {
        let bias = values(&format!("{layer}.mixer.bias"));
        for (i, found) in bias.iter().enumerate() {
            let expected = if i / 16 == 1 { 5.0 - 12.0 * ((i % 4) as f64 / 3.0).powf(power) } else { 0.0 };
            assert!((f64::from(*found) - expected).abs() < 1e-5, "{i}: {found}, expected {expected}");
        }
    }
}

#[test]
fn names_of_a_transformer_after_nano_gpt() {
    let config = ModelConfig { max_seq_len: 40, ..nano_gpt() };
    let lines = "
        embedding.weight [11, 8]
        positions.weight [40, 8]
        backbone.blocks.0.mixer_norm.weight [8]
        backbone.blocks.0.mixer.in_proj.weight [24, 8]
        backbone.blocks.0.mixer.out_proj.weight [8, 8]
        backbone.blocks.0.ff_norm.weight [8]
        backbone.blocks.0.ff.up.weight [32, 8]
        backbone.blocks.0.ff.down.weight [8, 32]
        backbone.final_norm.weight [8]";
    assert_eq!(listing(&config), expected(lines));
}

#[test]
fn names_of_a_transformer_after_llama() {
    let lines = "
        embedding.weight [11, 8]
        backbone.blocks.0.mixer_norm.gamma [8]
        backbone.blocks.0.mixer.in_proj.weight [24, 8]
        backbone.blocks.0.mixer.out_proj.weight [8, 8]
        backbone.blocks.0.ff_norm.gamma [8]
        backbone.blocks.0.ff.up.weight [128, 8]
        backbone.blocks.0.ff.down.weight [8, 64]
        backbone.final_norm.gamma [8]
        head.weight [11, 8]";
    assert_eq!(listing(&llama()), expected(lines));
}

/// nanoGPT's block, 3 layers of width 384, 256 positions.
#[test]
fn the_shakespeare_transformer_has_the_published_count() {
    let Experiment { model: config, .. } = Experiment::load("shakespeare-transformer", &[]).expect("a built-in experiment");
    let config = ModelConfig { vocab_size: 65, ..config };
    assert_eq!(parameter_count(&model(&config)), 5_434_368);
    assert_eq!(config.cost().expect("a valid model").parameters, 5_434_368);
}

/// GPT-2's initialisation, as in nanoGPT: normal 0.02, and 0.02/√(2 n_layers) for the matrices that end a residual branch; no biases, unit
/// gains.
#[test]
fn gpt_weights_have_the_published_deviations() {
    let config = ModelConfig { d_model: 64, n_layers: 2, bias: true, ..nano_gpt() };
    let mut seen = 0;
    for (name, values) in parameters(&model(&config)) {
        let deviation = (values.iter().map(|x| x * x).sum::<f32>() / values.len() as f32).sqrt();
        let expected = match name.as_str() {
            name if name.contains("norm.weight") => 1.0,
            name if name.ends_with("bias") => 0.0,
            name if name.ends_with("out_proj.weight") || name.ends_with("down.weight") => 0.01,
            _ => 0.02,
        };
        assert!((deviation - expected).abs() <= 0.1 * expected, "{name}: {deviation}, expected {expected}");
        seen += 1;
    }
    assert_eq!(seen, 2 + 2 * 12 + 2);
}

fn mixer_listing(config: &ModelConfig) -> String {
    let mixer = layer(config, 0);
    parameter_shapes(&mixer).iter().map(|(name, shape)| format!("{name} {shape:?}\n")).collect()
}

#[test]
fn names_of_state_spaces() {
    let diagonal = "
        ssm.log_dt [8]
        ssm.log_a_real [8, 3]
        ssm.a_imag [8, 3]
        ssm.c [8, 3, 2]
        ssm.skip [8]";
    let config = |mixer| ModelConfig { d_state: 6, ..small(mixer) };
    let out = "
        out_proj.weight [16, 8]
        out_proj.bias [16]";
    assert_eq!(mixer_listing(&config(MixerKind::S4d)), expected(&format!("{diagonal}{out}")));
    let low_rank = "
        ssm.p [8, 3, 2]
        ssm.b [8, 3, 2]";
    assert_eq!(mixer_listing(&config(MixerKind::S4)), expected(&format!("{diagonal}{low_rank}{out}")));
    let h3 = "
        in_proj.weight [24, 8]
        in_proj.bias [24]
        shift_ssm.taps [8, 1, 6]
        shift_ssm.skip [8]
        ssm.log_dt [4]
        ssm.log_a_real [4, 3]
        ssm.a_imag [4, 3]
        ssm.c [4, 3, 2]
        ssm.skip [4]
        out_proj.weight [8, 8]
        out_proj.bias [8]";
    assert_eq!(mixer_listing(&ModelConfig { head_width: 2, ..config(MixerKind::H3) }), expected(h3));
}

#[test]
fn names_of_a_hyena() {
    let lines = "
        in_proj.weight [24, 8]
        in_proj.bias [24]
        short_conv.weight [24, 1, 3]
        short_conv.bias [24]
        filter.features [150, 3]
        filter.layers.0.weight [64, 3]
        filter.layers.0.bias [64]
        filter.layers.1.weight [64, 64]
        filter.layers.1.bias [64]
        filter.layers.2.weight [64, 64]
        filter.layers.2.bias [64]
        filter.layers.3.weight [8, 64]
        filter.frequency [64]
        filter.skip [8]
        out_proj.weight [8, 8]
        out_proj.bias [8]";
    assert_eq!(mixer_listing(&small(MixerKind::Hyena)), expected(lines));
}

#[test]
fn sequence_maps_leave_the_mixing_of_channels_to_a_wiring() {
    let alone = |mixer| ModelConfig { d_state: 6, expansion: 1.0, ..small(mixer) };
    for mixer in [MixerKind::S4, MixerKind::S4d, MixerKind::S6, MixerKind::HyenaFilter] {
        let listing = mixer_listing(&alone(mixer));
        let mixing = "out_proj.weight [16, 8]\nout_proj.bias [16]\n";
        assert!(listing.ends_with(mixing), "{listing}");
        for wiring in [WiringKind::H3, WiringKind::Mamba] {
            assert_eq!(mixer_listing(&ModelConfig { wiring, ..alone(mixer) }), listing.replace(mixing, ""));
        }
    }
}

#[test]
fn names_of_an_s6_in_each_wiring() {
    let config = |wiring| ModelConfig { wiring, ff: FeedForwardKind::None, d_state: 5, ..small(MixerKind::S6) };
    let lines = "
        embedding.weight [11, 8]
        backbone.blocks.0.mixer_norm.gamma [8]
        backbone.blocks.0.wiring.in_proj.weight [32, 8]
        backbone.blocks.0.wiring.conv1d.weight [16, 1, 4]
        backbone.blocks.0.wiring.conv1d.bias [16]
        backbone.blocks.0.wiring.out_proj.weight [8, 16]
        backbone.blocks.0.mixer.x_proj.weight [11, 16]
        backbone.blocks.0.mixer.dt_proj.weight [16, 1]
        backbone.blocks.0.mixer.dt_proj.bias [16]
        backbone.blocks.0.mixer.A_log [16, 5]
        backbone.blocks.0.mixer.D [16]
        backbone.final_norm.gamma [8]
        head.weight [11, 8]";
    assert_eq!(listing(&config(WiringKind::Mamba)), expected(lines));
    let lines = "
        embedding.weight [11, 8]
        backbone.blocks.0.mixer_norm.gamma [8]
        backbone.blocks.0.wiring.in_proj.weight [24, 8]
        backbone.blocks.0.wiring.in_proj.bias [24]
        backbone.blocks.0.wiring.shift_ssm.taps [8, 1, 5]
        backbone.blocks.0.wiring.shift_ssm.skip [8]
        backbone.blocks.0.wiring.out_proj.weight [8, 8]
        backbone.blocks.0.wiring.out_proj.bias [8]
        backbone.blocks.0.mixer.x_proj.weight [11, 8]
        backbone.blocks.0.mixer.dt_proj.weight [8, 1]
        backbone.blocks.0.mixer.dt_proj.bias [8]
        backbone.blocks.0.mixer.A_log [8, 5]
        backbone.blocks.0.mixer.D [8]
        backbone.final_norm.gamma [8]
        head.weight [11, 8]";
    assert_eq!(listing(&config(WiringKind::H3)), expected(lines));
}

/// Counted from the equations at the head of `nn/wiring.rs` and of each mixer's file, for D = 64, N = 16, R = 4.
#[test]
fn wired_blocks_have_the_parameters_of_their_equations() {
    let (d, n, r) = (64, 16, 4);
    let count = |wiring, mixer| {
        let config = ModelConfig { wiring, d_model: d, ff: FeedForwardKind::None, ..small(mixer) };
        let shapes = parameter_shapes(&model(&config));
        let of_block = shapes.iter().filter(|(name, _)| name.contains(".wiring.") || name.contains(".mixer."));
        of_block.map(|(_, shape)| shape.iter().product::<usize>()).sum::<usize>()
    };
    // Mamba's published count, for Mamba and for its parts.
    assert_eq!(count(WiringKind::Mamba, MixerKind::S6), 32_640);
    let s6 = |e: usize| e * (r + 2 * n) + r * e + e + e * n + e;
    let s4 = |e: usize| 2 * e + 6 * e * n / 2 + 2 * e * n / 2;
    let mixing = 2 * d * d + 2 * d;
    let mamba = |e: usize| 2 * d * e + 5 * e + e * d;
    let h3 = 4 * d * d + 4 * d + d * n + d;
    assert_eq!(count(WiringKind::None, MixerKind::S6), s6(d) + mixing);
    assert_eq!(count(WiringKind::H3, MixerKind::S6), s6(d) + h3);
    assert_eq!(count(WiringKind::None, MixerKind::S4), s4(d) + mixing);
    assert_eq!(count(WiringKind::H3, MixerKind::S4), s4(d) + h3);
    assert_eq!(count(WiringKind::Mamba, MixerKind::S4), s4(2 * d) + mamba(2 * d));
    let filter = |e: usize| 3 * 150 + 3 * 64 + 64 + 2 * (64 * 64 + 64) + 64 * e + 64 + e;
    assert_eq!(count(WiringKind::H3, MixerKind::HyenaFilter), filter(d) + h3);
    assert_eq!(count(WiringKind::Mamba, MixerKind::HyenaFilter), filter(2 * d) + mamba(2 * d));
    // A cell is used whole; Mamba's wiring has already expanded.
    let min_gru = |d: usize, e: usize| 2 * e * (d + 1) + d * (e + 1);
    assert_eq!(count(WiringKind::H3, MixerKind::MinGru), min_gru(d, 2 * d) + h3);
    assert_eq!(count(WiringKind::Mamba, MixerKind::MinGru), min_gru(2 * d, 2 * d) + mamba(2 * d));
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
fn rg_lru_has_the_parameters_of_its_equations() {
    let lines = "
        in_proj.weight [16, 8]
        in_proj.bias [16]
        recurrence_gate.weight [4, 4, 4]
        input_gate.weight [4, 4, 4]
        bias [32]
        decay [16]
        out_proj.weight [8, 16]
        out_proj.bias [8]";
    let config = ModelConfig { n_heads: 4, ..small(MixerKind::RgLru) };
    assert_eq!(mixer_listing(&config), expected(lines));
    let (d, e, head) = (8, 16, 4);
    assert_eq!(parameter_count(&layer(&config, 0)), 2 * d * e + e + d + 2 * e * head + 2 * e + e);
}

#[test]
fn mixers_beyond_the_paper_have_the_parameters_of_their_equations() {
    let count = |config: &ModelConfig| parameter_count(&layer(config, 0));
    let (d, e) = (8, 16);
    let plain = count(&small(MixerKind::MinGru));
    assert_eq!(count(&small(MixerKind::SignedMinGru)), plain + e * d + e);
    assert_eq!(count(&small(MixerKind::DecayMinGru)), plain + e);
    assert_eq!(count(&ModelConfig { n_heads: 2, ..small(MixerKind::Delta) }), plain + e * d + e + 2 * (d + 1));
    assert_eq!(count(&ModelConfig { highway: true, ..small(MixerKind::MinGru) }), plain + d * d + d);
    assert_eq!(count(&ModelConfig { forget_floor: ForgetFloor::Learned, ..small(MixerKind::MinGru) }), plain + e);
}
