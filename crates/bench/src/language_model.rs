//! The model of `lm`, `decode` and `prefill`: the one the paper trains on Shakespeare (Feng et al. 2024, arXiv:2410.01201).

use burn::module::Module;
use burn::tensor::{Device, Int, Tensor, TensorData};
use minrnn::checkpoint::save_weights;
use minrnn::model::SequenceModel;
use minrnn::rng::{self, Purpose};
use minrnn_model::{InitialState, ModelConfig, NormKind, Weights};
use minrnn_stream::Model;
use rand::Rng;

use crate::case::{Case, expect_room};
use crate::{Error, Result};

const VOCAB_SIZE: usize = 65;

/// Its configuration at the sizes of `case`; 6 711 552 parameters with minGRU at 384 → 768. The initial state is learned where the mixer
/// can learn one.
pub(crate) fn config(case: &Case) -> ModelConfig {
    let zero = ModelConfig {
        mixer: case.mixer,
        vocab_size: VOCAB_SIZE,
        d_model: case.d_model,
        expansion: case.d_hidden as f64 / case.d_model as f64,
        n_layers: 3,
        conv: true,
        norm: NormKind::Layer,
        dropout: 0.2,
        ..ModelConfig::default()
    };
    let learned = ModelConfig { initial_state: InitialState::Learned, ..zero.clone() };
    if learned.validate().is_ok() { learned } else { zero }
}

/// The model on `device`, if there is room for it and for `floats_per_token` numbers a token.
pub(crate) fn build(case: &Case, floats_per_token: u128, device: &Device) -> Result<SequenceModel> {
    let config = config(case);
    config.validate().map_err(|error| case.refused(error))?;
    expect_room(config.cost()?.parameters + case.tokens() * floats_per_token, device)?;
    Ok(SequenceModel::new(&config, 0, device)?)
}

/// The same in the inference runtime, its weights in the format of `case`, if there is room for it and for `floats_per_token` numbers a
/// token.
pub(crate) fn deploy(case: &Case, floats_per_token: u128) -> Result<Model> {
    let trained = build(case, floats_per_token, &Device::flex())?;
    let config = config(case);
    let file = tempfile::NamedTempFile::new().map_err(Error::Scratch)?;
    save_weights(&trained, file.path())?;
    let mut weights = Weights::read(file.path())?;
    Ok(Model::new(&config, &mut weights, case.precision)?)
}

/// Number of its parameters.
pub(crate) fn parameters(model: &SequenceModel) -> usize {
    model.num_params()
}

/// Operations of the matrix products in one pass forwards, 2 per weight and token.
pub(crate) fn forward_flop(case: &Case) -> Option<f64> {
    let products = config(case).cost().ok()?.matmul_macs;
    Some(2.0 * (products as f64 * case.tokens() as f64))
}

/// The same in one update, whose backward pass takes twice as many.
pub(crate) fn update_flop(case: &Case) -> Option<f64> {
    Some(3.0 * forward_flop(case)?)
}

/// Random tokens of iteration `index`, one more than `seq_len` in each row.
pub(crate) fn random_tokens(case: &Case, index: u64) -> Vec<i32> {
    let mut rng = rng::stream(0, Purpose::Bench, index);
    let count = case.batch_size * (case.seq_len + 1);
    (0..count).map(|_| (rng.next_u32() % VOCAB_SIZE as u32) as i32).collect()
}

/// The first `seq_len` of each row: `[B, T]`.
pub(crate) fn inputs(case: &Case, tokens: &[i32], device: &Device) -> Tensor<2, Int> {
    let rows = tokens.chunks(case.seq_len + 1).flat_map(|row| &row[..case.seq_len]);
    let values: Vec<i64> = rows.map(|&token| i64::from(token)).collect();
    Tensor::from_data(TensorData::new(values, [case.batch_size, case.seq_len]), device)
}
