//! Signed minGRU, our own variant beyond the paper.
//!
//! ```text
//! k_t = W_z x_t + b_z          v_t = W_h x_t + b_h          s_t = W_s x_t + b_s
//! z_t = σ(k_t)                 h̃_t = g(v_t)
//! h_t = (1 − z_t) ⊙ tanh(s_t) ⊙ h_{t−1} + z_t ⊙ h̃_t
//! y_t = W_o h_t + b_o
//! ```
//! where: tanh(s) is the sign and magnitude of what is kept; everything else as in minGRU.
//!
//! minGRU's coefficients lie in (0, 1), so its state decays but never changes sign; no stack of layers of such a recurrence can compute the
//! parity of bit strings of any length. Coefficients in (−1, 1) can: a 1 multiplies the state by about −1, a 0 by about 1. The benefit is
//! measured by
//!
//! ```text
//! cargo build --release --workspace --examples && target/release/examples/parity
//! ```

use burn::module::{Module, Param};
use burn::nn::Linear;
use burn::tensor::Tensor;
use minrnn_model::{Candidate, CheckedConfig};

use super::hidden::{Hidden, first_hidden, initial_vector, learned_state};
use super::init::Initializer;
use super::linear::{apply, bias, matmul};
use super::mixer::Mixer;
use crate::memory::activations::Activations;
use crate::ops::{self, Start, StepCodes};

/// A signed minGRU with its down-projection.
#[derive(Module, Debug)]
pub struct SignedMinGru {
    /// D → 3E, rows candidate, update gate, sign.
    pub in_proj: Linear,
    /// E → D.
    pub out_proj: Linear,
    /// θ, if the initial state is learned.
    pub initial_state: Option<Param<Tensor<1>>>,
    #[module(skip)]
    candidate: Candidate,
}

impl SignedMinGru {
    /// The cell described by `config`.
    pub fn new(config: &CheckedConfig, _layer: usize, init: &mut Initializer) -> Self {
        let (d, e) = (config.d_model, config.d_inner());
        Self {
            in_proj: init.linear(d, 3 * e),
            out_proj: init.linear(e, d),
            initial_state: learned_state(config, init),
            candidate: config.candidate,
        }
    }

    pub(super) fn activations(config: &CheckedConfig, list: &mut Activations) {
        let [d, e] = [config.d_model, config.d_inner()].map(|x| x as u128);
        list.recurrence(d, e, 3 * e, &[3 * e, e]);
        list.out(e, d, true);
    }
}

impl Mixer for SignedMinGru {
    type State = Hidden;

    fn init_state(&self, batch_size: usize) -> Hidden {
        first_hidden(self.initial_state.as_ref(), self.candidate, &self.out_proj, batch_size)
    }

    fn forward(&self, x: Tensor<3>, state: Hidden, steps: &StepCodes) -> (Tensor<3>, Hidden) {
        let preact = matmul(&self.in_proj, x);
        let start = Start { h0: Some(state.h), init: initial_vector(self.initial_state.as_ref(), self.candidate) };
        let (h, h_last) = ops::signed_min_gru(preact, bias(&self.in_proj), self.candidate, start, steps);
        (apply(&self.out_proj, h), Hidden { h: h_last })
    }
}
