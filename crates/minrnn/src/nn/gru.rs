//! The traditional GRU (Cho et al. 2014, arXiv:1406.1078, §2.3), as compared by Feng et al. 2024.
//!
//! ```text
//! z = σ(W_z x + U_z h + b_z)     r = σ(W_r x + U_r h + b_r)
//! paper:  n = tanh(W_n x + U_n (r ⊙ h) + b_n)            h⁺ = (1 − z) ⊙ h + z ⊙ n
//! torch:  n = tanh(W_n x + b_n + r ⊙ (U_n h + b'_n))      h⁺ = (1 − z) ⊙ n + z ⊙ h
//! y = W_o h⁺ + b_o
//! ```
//! where: x input (D); h hidden state (E); r reset gate; z update gate; n candidate. Only PyTorch's form has recurrent biases.

use burn::module::{Module, Param};
use burn::nn::Linear;
use burn::tensor::Tensor;
use minrnn_model::{Candidate, CheckedConfig, GruForm};

use super::hidden::{Hidden, first_hidden, initial_vector, learned_state};
use super::init::Initializer;
use super::linear::{apply, bias, matmul};
use super::mixer::Mixer;
use super::recurrent::Recurrent;
use crate::memory::activations::Activations;
use crate::ops::{self, Start, StepCodes};

/// A GRU with its down-projection.
#[derive(Module, Debug)]
pub struct Gru {
    /// D → 3E, rows r, z, n.
    pub in_proj: Linear,
    /// The recurrent side, rows r, z, n.
    pub recurrent: Recurrent,
    /// E → D.
    pub out_proj: Linear,
    /// θ, if the initial state is learned.
    pub initial_state: Option<Param<Tensor<1>>>,
    #[module(skip)]
    form: GruForm,
}

impl Gru {
    /// The cell described by `config`; input side and recurrent side are uniform in ±1/√E.
    pub fn new(config: &CheckedConfig, _layer: usize, init: &mut Initializer) -> Self {
        let (d, e, form) = (config.d_model, config.d_inner(), config.gru_form);
        Self {
            in_proj: Linear { weight: init.uniform([d, 3 * e], e), bias: Some(init.uniform([3 * e], e)) },
            recurrent: Recurrent::new(3, e, form == GruForm::Torch, init),
            out_proj: init.linear(e, d),
            initial_state: learned_state(config, init),
            form,
        }
    }

    pub(super) fn activations(config: &CheckedConfig, list: &mut Activations) {
        let [d, e] = [config.d_model, config.d_inner()].map(|x| x as u128);
        list.recurrence(d, e, 3 * e, &[3 * e, e]);
        list.out(e, d, true);
    }
}

impl Mixer for Gru {
    type State = Hidden;

    fn init_state(&self, batch_size: usize) -> Hidden {
        first_hidden(self.initial_state.as_ref(), Candidate::Identity, &self.out_proj, batch_size)
    }

    fn forward(&self, x: Tensor<3>, state: Hidden, steps: &StepCodes) -> (Tensor<3>, Hidden) {
        let start = Start { h0: Some(state.h), init: initial_vector(self.initial_state.as_ref(), Candidate::Identity) };
        let preact = matmul(&self.in_proj, x);
        let (weight, recurrent_bias) = (self.recurrent.weight.val(), self.recurrent.bias());
        let (h, h_last) = ops::gru(self.form, preact, bias(&self.in_proj), weight, recurrent_bias, start, steps);
        (apply(&self.out_proj, h), Hidden { h: h_last })
    }
}
