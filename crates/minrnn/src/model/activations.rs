//! Memory held by a batch as it passes through a model.

use minrnn_model::CheckedConfig;

use super::decision::Decision;
use super::sequence_model::SequenceModel;
use crate::memory::activations::Sizes;
use crate::memory::tape::Tape;
use crate::nn::Block;

/// The parts of a model that a batch passes.
pub(crate) struct Pass {
    pub embedding: Tape,
    pub blocks: Vec<Tape>,
    pub head: Tape,
    /// States and caches of all blocks, before and after the batch.
    pub states: u128,
    /// The peak of a pass without gradients, excluding states.
    pub forward: u128,
}

impl Pass {
    pub fn of(config: &CheckedConfig, sizes: Sizes) -> Self {
        let mut blocks: Vec<Tape> = Vec::with_capacity(config.n_layers);
        for layer in 0..config.n_layers {
            // Mixers repeat in the same order, and blocks with the same mixer are alike.
            let alike = (0..layer).find(|&other| config.mixer_at(other) == config.mixer_at(layer));
            blocks.push(match alike {
                Some(other) => blocks[other],
                None => Block::activations(config, layer, sizes),
            });
        }
        let (embedding, head) = match config.decision {
            true => (Decision::embedding_activations(config, sizes), Decision::head_activations(config, sizes)),
            false => (SequenceModel::embedding_activations(config, sizes), SequenceModel::head_activations(config, sizes)),
        };
        let states = blocks.iter().map(|block| block.held).sum();
        let forward = blocks.iter().chain([&embedding, &head]).map(|part| part.forward).max().unwrap_or(0);
        Self { embedding, blocks, head, states, forward }
    }
}
