//! minGRU (paper §3.1).
//!
//! ```text
//! k_t = W_z x_t + b_z          v_t = W_h x_t + b_h
//! z_t = σ(k_t)                 h̃_t = g(v_t)
//! h_t = (1 − z_t) ⊙ h_{t−1} + z_t ⊙ h̃_t
//! y_t = W_o h_t + b_o
//! ```
//! where: x input (D); h hidden state (E, the paper's d_h); z update gate; h̃ candidate; g(v) = v + ½ for v ≥ 0, σ(v) below
//! (`candidate = positive`), or v (`identity`), or tanh v.

use burn::config::Config;
use burn::module::{Module, Param};
use burn::nn::Linear;
use burn::tensor::Tensor;
use minrnn_stream::{Candidate, InitialState, ModelConfig, ScanKind};

use super::hidden::{Hidden, initial_hidden, initial_vector, learned_state};
use super::init::Initializer;
use super::kernel_names::kernel_candidate;
use super::linear::{apply, bias, product};
use super::mixer::Mixer;
use crate::Result;
use crate::ops::{self, Start, StepCodes};

/// Settings of a [`MinGru`].
#[derive(Config, Debug)]
pub struct MinGruConfig {
    /// Width D of input and output.
    pub d_model: usize,
    /// Width E of the hidden state.
    pub d_inner: usize,
    /// The candidate map.
    #[config(default = "Candidate::Positive")]
    pub candidate: Candidate,
    /// How the recurrence is evaluated.
    #[config(default = "ScanKind::Linear")]
    pub scan: ScanKind,
    /// Zero or learned state before the first step.
    #[config(default = "InitialState::Zero")]
    pub initial_state: InitialState,
}

/// A minGRU with its down-projection.
#[derive(Module, Debug)]
pub struct MinGru {
    /// D → 2E, rows candidate then update gate.
    pub in_proj: Linear,
    /// E → D.
    pub out_proj: Linear,
    /// θ, when the initial state is learned.
    pub initial_state: Option<Param<Tensor<1>>>,
    #[module(skip)]
    candidate: Candidate,
    #[module(skip)]
    scan: ScanKind,
}

impl MinGruConfig {
    /// The settings a model's configuration asks for.
    ///
    /// # Errors
    /// When the expansion gives no whole width.
    pub fn from_model(config: &ModelConfig, _layer: usize) -> Result<Self> {
        Ok(Self::new(config.d_model, config.d_inner()?)
            .with_candidate(config.candidate)
            .with_scan(config.scan)
            .with_initial_state(config.initial_state))
    }

    /// A new cell.
    pub fn init(&self, init: &mut Initializer) -> MinGru {
        MinGru {
            in_proj: init.linear(self.d_model, 2 * self.d_inner),
            out_proj: init.linear(self.d_inner, self.d_model),
            initial_state: learned_state(self.initial_state, self.d_inner, init),
            candidate: self.candidate,
            scan: self.scan,
        }
    }
}

impl MinGru {
    fn initial_vector(&self) -> Option<Tensor<1>> {
        initial_vector(self.initial_state.as_ref(), self.candidate)
    }
}

impl Mixer for MinGru {
    type State = Hidden;

    fn init_state(&self, batch_size: usize) -> Hidden {
        let [d_inner, _] = self.out_proj.weight.dims();
        initial_hidden(self.initial_vector(), batch_size, d_inner, &self.out_proj.weight.val().device())
    }

    fn forward(&self, x: Tensor<3>, state: Hidden, steps: &StepCodes) -> (Tensor<3>, Hidden) {
        let preact = product(&self.in_proj, x);
        let start = Start { h0: Some(state.h), init: self.initial_vector() };
        let (h, h_last) = match self.scan {
            ScanKind::Linear => ops::min_gru(preact, bias(&self.in_proj), kernel_candidate(self.candidate), start, steps),
            ScanKind::LogSpace => {
                let (log_coeffs, log_values) = ops::min_gru_log_coefficients(preact, bias(&self.in_proj));
                ops::log_space_scan(log_coeffs, log_values, start, steps)
            }
        };
        (apply(&self.out_proj, h), Hidden { h: h_last })
    }
}
