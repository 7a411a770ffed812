//! The traditional LSTM (Hochreiter and Schmidhuber 1997, Neural Computation 9(8), with the forget gate of Gers et al. 2000, Neural
//! Computation 12(10)), as compared by Feng et al. 2024.
//!
//! ```text
//! i, f, o = σ(W x + U h + b)      g = tanh(W_g x + U_g h + b_g)
//! c⁺ = f ⊙ c + i ⊙ g              h⁺ = o ⊙ tanh(c⁺)
//! y = W_o h⁺ + b_o
//! ```
//! where: x input (D); h hidden state and c cell state (E); i, f, o input, forget and output gate; g candidate.

use burn::module::{Module, Param};
use burn::nn::Linear;
use burn::tensor::Tensor;
use minrnn_model::{Candidate, CheckedConfig};

use super::hidden::{first_hidden, initial_vector, learned_state};
use super::init::Initializer;
use super::linear::{apply, bias, matmul};
use super::mixer::Mixer;
use super::recurrent::Recurrent;
use super::state::{State, StateZip};
use crate::memory::activations::Activations;
use crate::ops::{self, Start, StepCodes};

/// An LSTM with its down-projection.
#[derive(Module, Debug)]
pub struct Lstm {
    /// D → 4E, rows i, f, g, o.
    pub in_proj: Linear,
    /// The recurrent side, rows i, f, g, o.
    pub recurrent: Recurrent,
    /// E → D.
    pub out_proj: Linear,
    /// θ of the hidden state, if it is learned.
    pub initial_state: Option<Param<Tensor<1>>>,
    /// θ of the cell state, if it is learned.
    pub initial_cell: Option<Param<Tensor<1>>>,
}

/// The state of an [`Lstm`].
#[derive(Debug, Clone)]
pub struct LstmState {
    /// Hidden state `[B, E]`.
    pub h: Tensor<2>,
    /// Cell state `[B, E]`.
    pub c: Tensor<2>,
}

impl State for LstmState {
    fn zip<F: StateZip>(self, other: Self, f: &mut F) -> Self {
        Self { h: f.tensor("h", self.h, other.h), c: f.tensor("c", self.c, other.c) }
    }
}

impl Lstm {
    /// The cell described by `config`; input side and recurrent side are uniform in ±1/√E.
    pub fn new(config: &CheckedConfig, _layer: usize, init: &mut Initializer) -> Self {
        let (d, e) = (config.d_model, config.d_inner());
        let in_proj = Linear { weight: init.uniform([d, 4 * e], e), bias: Some(init.uniform([4 * e], e)) };
        Self {
            in_proj: init.shift_bias(in_proj, e..2 * e, config.forget_bias),
            recurrent: Recurrent::new(4, e, true, init),
            out_proj: init.linear(e, d),
            initial_state: learned_state(config, init),
            initial_cell: learned_state(config, init),
        }
    }

    pub(super) fn activations(config: &CheckedConfig, list: &mut Activations) {
        let [d, e] = [config.d_model, config.d_inner()].map(|x| x as u128);
        list.recurrence(d, e, 4 * e, &[4 * e, e, e]);
        list.out(e, d, true);
    }

    /// θ of the hidden state and of the cell state, if they are learned.
    fn thetas(&self) -> [Option<&Param<Tensor<1>>>; 2] {
        [self.initial_state.as_ref(), self.initial_cell.as_ref()]
    }
}

impl Mixer for Lstm {
    type State = LstmState;

    fn init_state(&self, batch_size: usize) -> LstmState {
        let [h, c] = self.thetas().map(|theta| first_hidden(theta, Candidate::Identity, &self.out_proj, batch_size).h);
        LstmState { h, c }
    }

    fn takes_bf16(&self) -> bool {
        true
    }

    fn forward(&self, x: Tensor<3>, state: LstmState, steps: &StepCodes) -> (Tensor<3>, LstmState) {
        let preact = matmul(&self.in_proj, x);
        let [init_h, init_c] = self.thetas().map(|theta| initial_vector(theta, Candidate::Identity));
        let hidden = Start { h0: Some(state.h), init: init_h };
        let cell = Start { h0: Some(state.c), init: init_c };
        let (weight, recurrent_bias) = (self.recurrent.weight.val(), self.recurrent.bias());
        let (y, h, c) = ops::lstm(preact, bias(&self.in_proj), weight, recurrent_bias, hidden, cell, steps);
        (apply(&self.out_proj, y), LstmState { h, c })
    }
}
