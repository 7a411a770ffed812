//! The models of the library's laws, with drawn weights.
#![allow(dead_code, reason = "every user takes a part of it")]

#[path = "../../../minrnn/tests/common/configs.rs"]
pub mod configs;
#[path = "../../../stream/tests/common/mod.rs"]
pub mod drawn;

use minrnn_model::{FeedForwardKind, MixerKind, ModelConfig};

/// The sizes of the library's tests.
pub const D_MODEL: usize = 8;
pub const VOCAB_SIZE: usize = 11;

/// Every setting of every mixer, block, wiring and end, whole models, and policies.
pub fn every_config() -> Vec<ModelConfig> {
    let of = |mixer: &MixerKind| [configs::mixers(*mixer), configs::ends(*mixer), policy(*mixer)].concat();
    let mixers = MixerKind::ALL.iter().flat_map(of);
    let others = [configs::blocks(), configs::wirings(), configs::sequence_models(), configs::language_models(), wide()];
    mixers.chain(others.concat()).chain([configs::xlstm_stack()]).collect()
}

fn policy(mixer: MixerKind) -> Vec<ModelConfig> {
    let small = configs::small(mixer);
    vec![ModelConfig { vocab_size: 0, input_width: 8, n_outputs: 2, n_layers: 2, max_seq_len: 70, decision: true, ..small }]
}

/// Models whose heads and blocks are not small.
pub fn wide() -> Vec<ModelConfig> {
    let of = |&mixer: &MixerKind| ModelConfig { d_model: 96, n_layers: 2, conv: true, ff: FeedForwardKind::Mlp, ..configs::small(mixer) };
    MixerKind::ALL.iter().map(of).collect()
}

/// Whether a graph of fixed shapes can hold what the model keeps.
pub fn has_fixed_state(config: &ModelConfig) -> bool {
    let checked = config.checked().unwrap();
    (0..config.n_layers).all(|layer| checked.block_past(layer).is_none())
}
