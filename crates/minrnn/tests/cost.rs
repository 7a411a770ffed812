//! The cost that a configuration states for a model, against the model itself.

mod common;

use burn::tensor::Device;
use common::{configs, random_tokens};
use minrnn::checkpoint::{parameter_count, parameter_shapes, save_weights};
use minrnn::model::SequenceModel;
use minrnn::nn::{Mode, State};
use minrnn::ops::StepCodes;
use minrnn_model::{FeedForwardKind, MixerKind, ModelConfig, Pooling, WeightFormat, Weights};
use minrnn_stream::Model;

const F32: u128 = 4;

/// Every setting of every mixer, block and model that the laws are tested with.
fn every_config() -> Vec<ModelConfig> {
    let mixers = MixerKind::ALL.iter().flat_map(|&kind| configs::mixers(kind));
    let whole = [configs::nano_gpt(), configs::llama(), configs::xlstm_stack()];
    mixers
        .chain(configs::wirings())
        .chain(configs::blocks())
        .chain(configs::language_models())
        .chain(configs::sequence_models())
        .chain(whole)
        .collect()
}

#[test]
fn parameters_and_state_are_those_of_the_built_model() {
    let device = Device::flex();
    for config in every_config() {
        let (what, cost) = (configs::label(&config), config.cost().expect("a valid model"));
        let model = SequenceModel::new(&config, 0, &device).expect("a valid model");
        assert_eq!(cost.parameters, parameter_count(&model) as u128, "parameters of {what}");
        let state = model.init_state(1);
        assert_eq!(F32 * cost.carried(0), state.bytes() as u128, "first state of {what}");
        if config.input_width > 0 {
            continue;
        }
        for tokens in [1, 7] {
            let (_, state) = model.forward(random_tokens(1, tokens, 0, &device), state.clone(), &StepCodes::dense(), Mode::Evaluate);
            assert_eq!(F32 * cost.carried(tokens), state.bytes() as u128, "state of {what} after {tokens} tokens");
        }
    }
}

#[test]
fn listed_tensors_are_those_of_the_built_model() {
    for config in every_config() {
        let mut listed: Vec<_> =
            config.checked().expect("a valid model").tensors().into_iter().map(|spec| (spec.name, spec.shape)).collect();
        let mut built = parameter_shapes(&SequenceModel::new(&config, 0, &Device::flex()).expect("a valid model"));
        listed.sort();
        built.sort();
        assert_eq!(listed, built, "tensors of {}", configs::label(&config));
    }
}

#[test]
fn the_runtime_carries_the_same_state() {
    let file = tempfile::NamedTempFile::new().expect("a temporary file");
    for config in every_config() {
        let trained = SequenceModel::new(&config, 0, &Device::flex()).expect("a valid model");
        save_weights(&trained, file.path()).expect("a file that can be written");
        let mut weights = Weights::read(file.path()).expect("the file just written");
        let model = Model::new(&config, &mut weights, WeightFormat::F32).expect("the weights just written");
        let cost = config.cost().expect("a valid model");
        // Beyond what training carries, RWKV-4 carries the rounding errors of its log-weights, and a mean those of its sums.
        let is_rwkv4 = |layer: &usize| config.mixer_at(*layer) == MixerKind::Rwkv4;
        let lost = (0..config.n_layers).filter(is_rwkv4).count() * config.checked().expect("a valid model").inside_wiring().d_inner();
        let lost = lost + if config.pooling == Pooling::Mean { config.d_model } else { 0 };
        let what = configs::label(&config);
        assert_eq!(F32 * (cost.state + lost as u128), model.init_state(1).unwrap().bytes_per_row() as u128, "{what}");
        // The runtime keeps the past tokens that the next one sees.
        let past = |steps: usize| cost.past.iter().map(|past| past.len_per_token * steps.min(past.window - 1) as u128).sum::<u128>();
        for steps in [0, 1, 3, 1 << 20] {
            assert_eq!(model.session_bytes(steps), F32 * (cost.state + lost as u128 + past(steps)), "{what} after {steps} steps");
        }
    }
}

#[test]
fn parts_add_up_to_the_model() {
    for config in every_config() {
        let config = config.checked().expect("a valid model");
        let blocks = (0..config.n_layers).map(|layer| config.block_cost(layer));
        let parts: Vec<_> = blocks.chain([config.embedding_cost(), config.head_cost()]).collect();
        let cost = config.cost();
        let what = configs::label(&config);
        assert_eq!(parts.iter().map(|part| part.flops(9)).sum::<u128>(), cost.flops(9), "{what}");
        assert_eq!(parts.iter().map(|part| part.carried(9)).sum::<u128>(), cost.carried(9), "{what}");
    }
}

/// D = 8, E = 16, V = 11, one block; each line is the matrices, then the recurrence, then the head.
#[test]
fn flops_are_those_worked_out_by_hand() {
    let cell = |mixer| ModelConfig { ff: FeedForwardKind::None, d_state: 5, ..configs::small(mixer) };
    let flops = |config: &ModelConfig, tokens| config.cost().expect("a valid model").flops(tokens);
    let min_gru = 8 * 32 + 16 * 8 + 2 * 16 + 8 * 11;
    let min_lstm = 8 * 48 + 16 * 8 + 2 * 16 + 8 * 11;
    // R = 1, N = 5: in, convolution, x, Δ, out; 4 per state for 16 · 5 states, and 3 per channel.
    let mamba = 8 * 32 + 16 * 4 + 16 * (1 + 2 * 5) + 16 + 16 * 8 + 4 * 16 * 5 + 3 * 16 + 8 * 11;
    for (mixer, products) in [(MixerKind::MinGru, min_gru), (MixerKind::MinLstm, min_lstm), (MixerKind::Mamba, mamba)] {
        assert_eq!(flops(&cell(mixer), 1), 2 * products, "{mixer}");
        assert_eq!(flops(&cell(mixer), 1000), 2 * products, "{mixer} does not look back");
    }
    assert_eq!([2 * min_gru, 2 * min_lstm, 2 * mamba], [1008, 1264, 2192]);
    // q, k, v and out, an MLP of 32, the head; 2 · 8 for each of the tokens seen, 150 at most.
    let transformer = 8 * 24 + 8 * 8 + 2 * 8 * 32 + 8 * 11;
    for (tokens, seen) in [(1, 1), (5, 5), (150, 150), (1000, 150)] {
        assert_eq!(flops(&configs::nano_gpt(), tokens), 2 * (transformer + 2 * 8 * seen), "{tokens} tokens");
    }
    assert_eq!(flops(&configs::nano_gpt(), 150), 6512);
}
