//! minLSTM (Feng et al. 2024, arXiv:2410.01201, §3.2).
//!
//! ```text
//! f_t = σ(W_f x_t + b_f)       i_t = σ(W_i x_t + b_i)       h̃_t = g(W_h x_t + b_h)
//! f'_t = f_t / (f_t + i_t)     i'_t = i_t / (f_t + i_t)
//! h_t = f'_t ⊙ h_{t−1} + i'_t ⊙ h̃_t
//! y_t = W_o h_t + b_o
//! ```
//! where: x input (D); h hidden state (E, the paper's d_h); f forget gate; i input gate; h̃ candidate, as in minGRU. Without
//! normalisation f' = f and i' = i. With `highway` y mixes with x as `highway.rs` says.

use burn::config::Config;
use burn::module::{Module, Param};
use burn::nn::Linear;
use burn::tensor::Tensor;
use minrnn_model::{Candidate, CheckedConfig, InitialState, ScanKind};

use super::hidden::{Hidden, initial_hidden, initial_vector, learned_state};
use super::highway::{highway_gate, project};
use super::init::Initializer;
use super::linear::{bias, matmul};
use super::mixer::Mixer;
use crate::Result;
use crate::ops::{self, Gates, Start, StepCodes};

/// Settings of a [`MinLstm`].
#[derive(Config, Debug)]
pub struct MinLstmConfig {
    /// Width D of input and output.
    pub d_model: usize,
    /// Width E of the hidden state.
    pub d_inner: usize,
    /// The candidate map.
    #[config(default = "Candidate::Positive")]
    pub candidate: Candidate,
    /// Whether the gates are divided by their sum.
    #[config(default = true)]
    pub normalize_gates: bool,
    /// Added to the forget-gate bias after initialisation.
    #[config(default = 0.0)]
    pub forget_bias: f64,
    /// How the recurrence is evaluated.
    #[config(default = "ScanKind::Linear")]
    pub scan: ScanKind,
    /// Zero or learned state before the first step.
    #[config(default = "InitialState::Zero")]
    pub initial_state: InitialState,
    /// Whether the output is a learned mixture of the projected state and the input.
    #[config(default = false)]
    pub highway: bool,
}

/// A minLSTM with its down-projection.
#[derive(Module, Debug)]
pub struct MinLstm {
    /// D → 3E, rows candidate, forget gate, input gate.
    pub in_proj: Linear,
    /// E → D.
    pub out_proj: Linear,
    /// D → D, the share of the projected state in the output, where that is a mixture.
    pub highway: Option<Linear>,
    /// θ, when the initial state is learned.
    pub initial_state: Option<Param<Tensor<1>>>,
    #[module(skip)]
    candidate: Candidate,
    #[module(skip)]
    gates: Gates,
    #[module(skip)]
    scan: ScanKind,
}

impl MinLstmConfig {
    /// The settings a model's configuration asks for.
    ///
    /// # Errors
    /// When the expansion gives no whole width.
    pub fn from_model(config: &CheckedConfig, _layer: usize) -> Result<Self> {
        Ok(Self::new(config.d_model, config.d_inner())
            .with_candidate(config.candidate)
            .with_normalize_gates(config.normalize_gates)
            .with_forget_bias(config.forget_bias)
            .with_scan(config.scan)
            .with_initial_state(config.initial_state)
            .with_highway(config.highway))
    }

    /// A new cell.
    pub fn init(&self, init: &mut Initializer) -> MinLstm {
        let in_proj = init.linear(self.d_model, 3 * self.d_inner);
        let forget = self.d_inner..2 * self.d_inner;
        MinLstm {
            in_proj: init.shift_bias(in_proj, forget, self.forget_bias),
            out_proj: init.linear(self.d_inner, self.d_model),
            highway: highway_gate(self.highway, self.d_model, init),
            initial_state: learned_state(self.initial_state, self.d_inner, init),
            candidate: self.candidate,
            gates: if self.normalize_gates { Gates::Normalized } else { Gates::Unnormalized },
            scan: self.scan,
        }
    }
}

impl MinLstm {
    fn initial_vector(&self) -> Option<Tensor<1>> {
        initial_vector(self.initial_state.as_ref(), self.candidate)
    }
}

impl Mixer for MinLstm {
    type State = Hidden;

    fn init_state(&self, batch_size: usize) -> Hidden {
        let [d_inner, _] = self.out_proj.weight.dims();
        initial_hidden(self.initial_vector(), batch_size, d_inner, &self.out_proj.weight.val().device())
    }

    fn takes_bf16(&self) -> bool {
        self.scan == ScanKind::Linear && self.highway.is_none()
    }

    fn forward(&self, x: Tensor<3>, state: Hidden, steps: &StepCodes) -> (Tensor<3>, Hidden) {
        let preact = matmul(&self.in_proj, x.clone());
        let start = Start { h0: Some(state.h), init: self.initial_vector() };
        let (h, h_last) = match self.scan {
            ScanKind::Linear => ops::min_lstm(preact, bias(&self.in_proj), self.candidate, self.gates, start, steps),
            ScanKind::LogSpace => {
                let (log_coeffs, log_values) = ops::min_lstm_log_coefficients(preact, bias(&self.in_proj), self.gates);
                ops::log_space_scan(log_coeffs, log_values, start, steps)
            }
        };
        (project(&self.out_proj, self.highway.as_ref(), h, x), Hidden { h: h_last })
    }
}
