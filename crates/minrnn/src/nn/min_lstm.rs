//! minLSTM (Feng et al. 2024, arXiv:2410.01201, §3.2).
//!
//! ```text
//! f_t = σ(W_f x_t + b_f)       i_t = σ(W_i x_t + b_i)       h̃_t = g(W_h x_t + b_h)
//! f'_t = f_t / (f_t + i_t)     i'_t = i_t / (f_t + i_t)
//! h_t = f'_t ⊙ h_{t−1} + i'_t ⊙ h̃_t
//! y_t = W_o h_t + b_o
//! ```
//! where: x input (D); h hidden state (E, the paper's d_h); f forget gate; i input gate; h̃ candidate, as in minGRU. Without normalisation
//! f' = f and i' = i. With `highway` y is mixed with x as described in `highway.rs`.

use burn::module::{Module, Param};
use burn::nn::Linear;
use burn::tensor::Tensor;
use minrnn_model::{Candidate, CheckedConfig, ScanKind};

use super::hidden::{Hidden, first_hidden, initial_vector, learned_state};
use super::highway::{highway_gate, project};
use super::init::Initializer;
use super::linear::{bias, matmul};
use super::min_gru::minimal_activations;
use super::mixer::Mixer;
use crate::memory::activations::Activations;
use crate::ops::{self, Gates, Start, StepCodes};

/// A minLSTM with its down-projection.
#[derive(Module, Debug)]
pub struct MinLstm {
    /// D → 3E, rows candidate, forget gate, input gate.
    pub in_proj: Linear,
    /// E → D.
    pub out_proj: Linear,
    /// D → D, the gate of the projected state in the output, if the output is a mixture.
    pub highway: Option<Linear>,
    /// θ, if the initial state is learned.
    pub initial_state: Option<Param<Tensor<1>>>,
    #[module(skip)]
    candidate: Candidate,
    #[module(skip)]
    gates: Gates,
    #[module(skip)]
    scan: ScanKind,
}

impl MinLstm {
    /// The cell described by `config`.
    pub fn new(config: &CheckedConfig, _layer: usize, init: &mut Initializer) -> Self {
        let (d, e) = (config.d_model, config.d_inner());
        let in_proj = init.linear(d, 3 * e);
        Self {
            in_proj: init.shift_bias(in_proj, e..2 * e, config.forget_bias),
            out_proj: init.linear(e, d),
            highway: highway_gate(config, init),
            initial_state: learned_state(config, init),
            candidate: config.candidate,
            gates: if config.normalize_gates { Gates::Normalized } else { Gates::Unnormalized },
            scan: config.scan,
        }
    }

    pub(super) fn activations(config: &CheckedConfig, list: &mut Activations) {
        minimal_activations(config, 3, 5, list);
    }
}

impl Mixer for MinLstm {
    type State = Hidden;

    fn init_state(&self, batch_size: usize) -> Hidden {
        first_hidden(self.initial_state.as_ref(), self.candidate, &self.out_proj, batch_size)
    }

    fn takes_bf16(&self) -> bool {
        self.scan == ScanKind::Linear && self.highway.is_none()
    }

    fn forward(&self, x: Tensor<3>, state: Hidden, steps: &StepCodes) -> (Tensor<3>, Hidden) {
        let preact = matmul(&self.in_proj, x.clone());
        let start = Start { h0: Some(state.h), init: initial_vector(self.initial_state.as_ref(), self.candidate) };
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
