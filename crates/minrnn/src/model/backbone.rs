//! A stack of blocks and the final norm.

use std::convert::Infallible;

use burn::module::Module;
use burn::tensor::Tensor;
use minrnn_model::CheckedConfig;

use super::pair_head::PairMemory;
use super::pooling::RunningMean;
use crate::nn::{AnyMixer, Block, BlockState, Initializer, Mixer, Mode, Norm, State, StateZip, zip_if_any};
use crate::ops::StepCodes;

/// `n_layers` blocks and a final norm around mixers of one kind; with [`AnyMixer`] the configuration chooses, a type of your own only needs
/// [`Mixer`].
#[derive(Module, Debug)]
pub struct Backbone<M: Module> {
    /// The blocks, first to last.
    pub blocks: Vec<Block<M>>,
    /// The norm after the last block.
    pub final_norm: Norm,
}

/// The state of a [`Backbone`]: one for each block, and what the model around it needs.
#[derive(Debug, Clone)]
pub struct BackboneState<S> {
    /// The states of the blocks, first to last.
    pub blocks: Vec<BlockState<S>>,
    /// Tokens since the last reset `[B, 1]`, for a language model with learned positions.
    pub position: Option<Tensor<2>>,
    /// The state of the model's pooling, if it has one.
    pub pooling: Option<RunningMean>,
    /// The state of the comparison, for a model of pairs.
    pub pair: Option<PairMemory>,
}

impl<S: State> State for BackboneState<S> {
    fn zip<F: StateZip>(self, other: Self, f: &mut F) -> Self {
        f.enter("blocks");
        let blocks = self.blocks.zip(other.blocks, f);
        f.exit();
        let position = zip_if_any(self.position, other.position, |a, b| f.tensor("position", a, b));
        f.enter("pooling");
        let pooling = State::zip(self.pooling, other.pooling, f);
        f.exit();
        f.enter("pair");
        let pair = State::zip(self.pair, other.pair, f);
        f.exit();
        Self { blocks, position, pooling, pair }
    }
}

impl Backbone<AnyMixer> {
    /// The stack described by `config`.
    pub fn new(config: &CheckedConfig, init: &mut Initializer) -> Self {
        let Ok(stack) = Self::with_mixers(config, init, |layer, init| Ok::<_, Infallible>(AnyMixer::new(config, layer, init)));
        stack
    }
}

impl<M: Mixer> Backbone<M> {
    /// The stack described by `config`, with the mixer that `mixer` returns for each block; `config.mixer` is ignored.
    ///
    /// # Errors
    /// Those of `mixer`.
    pub fn with_mixers<E>(
        config: &CheckedConfig,
        init: &mut Initializer,
        mut mixer: impl FnMut(usize, &mut Initializer) -> Result<M, E>,
    ) -> Result<Self, E> {
        let blocks = (0..config.n_layers).map(|layer| Block::new(config, layer, |init| mixer(layer, init), init));
        let blocks = blocks.collect::<Result<_, E>>()?;
        Ok(Self { blocks, final_norm: Norm::for_model(config, init) })
    }

    /// The initial state.
    pub fn init_state(&self, batch_size: usize) -> BackboneState<M::State> {
        let blocks = self.blocks.iter().map(|block| block.init_state(batch_size)).collect();
        BackboneState { blocks, position: None, pooling: None, pair: None }
    }

    /// The whole sequence `x` `[B, T, D]` → `[B, T, D]`, normalised, and the state after it.
    ///
    /// # Panics
    /// When the shapes of input, state and steps do not fit.
    pub fn forward(
        &self,
        mut x: Tensor<3>,
        mut state: BackboneState<M::State>,
        steps: &StepCodes,
        mode: Mode,
    ) -> (Tensor<3>, BackboneState<M::State>) {
        assert_eq!(self.blocks.len(), state.blocks.len(), "the state belongs to another model");
        let mut blocks = Vec::with_capacity(self.blocks.len());
        for (i, (block, block_state)) in self.blocks.iter().zip(std::mem::take(&mut state.blocks)).enumerate() {
            let (y, block_state) = block.forward(x, block_state, steps, mode, 2 * i as u64);
            x = y;
            blocks.push(block_state);
        }
        (self.final_norm.forward(x, steps, mode), BackboneState { blocks, ..state })
    }

    /// One step `x` `[B, D]` → `[B, D]`, normalised, in evaluation mode, and the state after it.
    ///
    /// # Panics
    /// When the shapes of input and state do not fit.
    pub fn step(&self, x: Tensor<2>, state: BackboneState<M::State>) -> (Tensor<2>, BackboneState<M::State>) {
        let (y, state) = self.forward(x.unsqueeze_dim(1), state, &StepCodes::dense(), Mode::Evaluate);
        (y.squeeze_dim(1), state)
    }
}
