//! A common view of what the law is about: a mixer, a block, a stack of blocks, a language model.

use std::convert::Infallible;

use burn::module::{Module, ModuleDisplay};
use burn::tensor::Tensor;
use minrnn::model::{Backbone, BackboneState, SequenceModel};
use minrnn::nn::{AnyMixer, Block, BlockState, Initializer, Mixer, Mode, State};
use minrnn::ops::StepCodes;
use minrnn_model::ModelConfig;

use super::configs::label;
use super::{D_MODEL, VOCAB_SIZE, device, perturbed, random, random_below};

/// A causal map of sequences with a state.
pub trait Subject {
    type State: State;
    type Module: Module;

    /// The module whose parameters get gradients.
    fn module(&self) -> &Self::Module;

    /// Width of the input.
    fn width(&self) -> usize {
        D_MODEL
    }

    /// `len` elements of input.
    fn input(&self, len: usize, index: u64) -> Vec<f32> {
        random(len, index).into_iter().map(|x| 2.0 * x).collect()
    }

    fn init_state(&self, batch_size: usize) -> Self::State;

    fn forward(&self, x: Tensor<3>, state: Self::State, steps: &StepCodes) -> (Tensor<3>, Self::State);

    /// One step, using the subject's own method for it if it has one.
    fn step(&self, x: Tensor<2>, state: Self::State) -> (Tensor<2>, Self::State);
}

/// A mixer by itself.
pub struct Cell<M>(pub M);

impl<M: Mixer> Subject for Cell<M> {
    type State = M::State;
    type Module = M;

    fn module(&self) -> &M {
        &self.0
    }

    fn init_state(&self, batch_size: usize) -> M::State {
        self.0.init_state(batch_size)
    }

    fn forward(&self, x: Tensor<3>, state: M::State, steps: &StepCodes) -> (Tensor<3>, M::State) {
        self.0.forward(x, state, steps)
    }

    fn step(&self, x: Tensor<2>, state: M::State) -> (Tensor<2>, M::State) {
        self.0.step(x, state)
    }
}

impl<M: Mixer + ModuleDisplay> Subject for Block<M> {
    type State = BlockState<M::State>;
    type Module = Self;

    fn module(&self) -> &Self {
        self
    }

    fn init_state(&self, batch_size: usize) -> Self::State {
        self.init_state(batch_size)
    }

    fn forward(&self, x: Tensor<3>, state: Self::State, steps: &StepCodes) -> (Tensor<3>, Self::State) {
        self.forward(x, state, steps, Mode::Evaluate, 0)
    }

    fn step(&self, x: Tensor<2>, state: Self::State) -> (Tensor<2>, Self::State) {
        self.step(x, state)
    }
}

impl<M: Mixer + ModuleDisplay> Subject for Backbone<M> {
    type State = BackboneState<M::State>;
    type Module = Self;

    fn module(&self) -> &Self {
        self
    }

    fn init_state(&self, batch_size: usize) -> Self::State {
        self.init_state(batch_size)
    }

    fn forward(&self, x: Tensor<3>, state: Self::State, steps: &StepCodes) -> (Tensor<3>, Self::State) {
        self.forward(x, state, steps, Mode::Evaluate)
    }

    fn step(&self, x: Tensor<2>, state: Self::State) -> (Tensor<2>, Self::State) {
        self.step(x, state)
    }
}

/// The input is the token's number, unless the model reads values.
impl<M: Mixer + ModuleDisplay> Subject for SequenceModel<M> {
    type State = BackboneState<M::State>;
    type Module = Self;

    fn module(&self) -> &Self {
        self
    }

    fn width(&self) -> usize {
        self.input.as_ref().map_or(1, |input| input.weight.dims()[0])
    }

    fn input(&self, len: usize, index: u64) -> Vec<f32> {
        if self.input.is_some() {
            return random(len, index);
        }
        random_below(VOCAB_SIZE, len, index).into_iter().map(|token| token as f32).collect()
    }

    fn init_state(&self, batch_size: usize) -> Self::State {
        self.init_state(batch_size)
    }

    fn forward(&self, x: Tensor<3>, state: Self::State, steps: &StepCodes) -> (Tensor<3>, Self::State) {
        match self.input {
            Some(_) => self.forward(x, state, steps, Mode::Evaluate),
            None => self.forward(x.squeeze_dim::<2>(2).int(), state, steps, Mode::Evaluate),
        }
    }

    fn step(&self, x: Tensor<2>, state: Self::State) -> (Tensor<2>, Self::State) {
        if self.input.is_none() {
            return self.step(x.squeeze_dim::<1>(1).int(), state);
        }
        let (y, state) = self.forward(x.unsqueeze_dim::<3>(1), state, &StepCodes::dense(), Mode::Evaluate);
        (y.squeeze_dim(1), state)
    }
}

/// The mixer of each configuration, with its name.
pub fn mixers(configs: Vec<ModelConfig>) -> impl Iterator<Item = (String, Cell<AnyMixer>)> {
    each(configs, |config| {
        let config = config.checked().expect("a valid model");
        Cell(perturbed(AnyMixer::new(&config, 0, &mut Initializer::new(3, &device()))))
    })
}

/// The block of each configuration, with its name.
pub fn blocks(configs: Vec<ModelConfig>) -> impl Iterator<Item = (String, Block<AnyMixer>)> {
    each(configs, |config| {
        let config = config.checked().expect("a valid model");
        let mixer = |init: &mut Initializer| Ok::<_, Infallible>(AnyMixer::new(&config, 0, init));
        let Ok(block) = Block::new(&config, 0, mixer, &mut Initializer::new(4, &device()));
        perturbed(block)
    })
}

/// The language model of each configuration, with its name.
pub fn language_models(configs: Vec<ModelConfig>) -> impl Iterator<Item = (String, SequenceModel)> {
    each(configs, |config| perturbed(SequenceModel::new(config, 5, &device()).expect("a valid model")))
}

fn each<S>(configs: Vec<ModelConfig>, make: impl Fn(&ModelConfig) -> S) -> impl Iterator<Item = (String, S)> {
    configs.into_iter().map(move |config| (label(&config), make(&config)))
}
