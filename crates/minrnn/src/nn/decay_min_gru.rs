//! minGRU for irregular time steps, our own variant beyond the paper: the state also fades as time passes.
//!
//! ```text
//! k_t = W_z x_t + b_z          v_t = W_h x_t + b_h          λ = softplus(θ)
//! z_t = σ(k_t)                 h̃_t = g(v_t)
//! h_t = (1 − z_t) ⊙ e^{−λ Δt_t} ⊙ h_{t−1} + z_t ⊙ h̃_t
//! y_t = W_o h_t + b_o
//! ```
//! where: Δt_t is the time since the previous step, in any unit; λ the rate of a channel per unit of time, initially spread evenly on a log
//! scale from 1e-3 to 1; everything else as in minGRU.
//!
//! [`DecayMinGru::forward_timed`] takes the times; [`Mixer::forward`] and the runtime of `minrnn-stream` use Δt = 1. The benefit of times
//! in the recurrence over times as inputs is measured by
//!
//! ```text
//! cargo build --release --workspace --examples && target/release/examples/irregular
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
use crate::ops::{self, Start, StepCodes, softplus};

/// The smallest and the largest rate of a new cell.
const RATES: [f32; 2] = [1e-3, 1.0];

/// A minGRU that forgets with time, and its down-projection.
#[derive(Module, Debug)]
pub struct DecayMinGru {
    /// D → 2E, rows candidate then update gate.
    pub in_proj: Linear,
    /// E → D.
    pub out_proj: Linear,
    /// θ `[E]` of the rates.
    pub decay: Param<Tensor<1>>,
    /// θ, if the initial state is learned.
    pub initial_state: Option<Param<Tensor<1>>>,
    #[module(skip)]
    candidate: Candidate,
}

impl DecayMinGru {
    /// The cell described by `config`.
    pub fn new(config: &CheckedConfig, _layer: usize, init: &mut Initializer) -> Self {
        let (d, e) = (config.d_model, config.d_inner());
        let [least, greatest] = RATES;
        let rate = |c: usize| least * (greatest / least).powf((c as f32 + 0.5) / e as f32);
        Self {
            in_proj: init.linear(d, 2 * e),
            out_proj: init.linear(e, d),
            decay: init.values([e], (0..e).map(|c| rate(c).exp_m1().ln()).collect()),
            initial_state: learned_state(config, init),
            candidate: config.candidate,
        }
    }

    pub(super) fn activations(config: &CheckedConfig, list: &mut Activations) {
        let [d, e] = [config.d_model, config.d_inner()].map(|x| x as u128);
        // The exponent is the product of a rate and the time since the last step.
        list.recurrence(d, e, 2 * e, &[2 * e, e, e, e]);
        list.out(e, d, true);
    }

    /// The whole sequence `x` at irregular times, and the state after it.
    ///
    /// # Shapes
    /// * `x` `[B, T, D]`, `delta_t` `[B, T]`, the non-negative time since the previous step → `[B, T, D]`
    ///
    /// # Panics
    /// When the shapes of input, times, state and steps do not fit.
    pub fn forward_timed(&self, x: Tensor<3>, delta_t: Tensor<2>, state: Hidden, steps: &StepCodes) -> (Tensor<3>, Hidden) {
        let preact = matmul(&self.in_proj, x);
        let start = Start { h0: Some(state.h), init: initial_vector(self.initial_state.as_ref(), self.candidate) };
        let exponent = self.exponent(delta_t);
        let candidate = self.candidate;
        let (h, h_last) = ops::decay_min_gru(preact, exponent, bias(&self.in_proj), candidate, start, steps);
        (apply(&self.out_proj, h), Hidden { h: h_last })
    }

    /// λ Δt `[B, T, E]` for Δt `[B, T]`.
    fn exponent(&self, delta_t: Tensor<2>) -> Tensor<3> {
        let [batch, seq_len] = delta_t.dims();
        let theta = self.decay.val();
        let [d_inner] = theta.dims();
        if batch * seq_len == 0 {
            return Tensor::zeros([batch, seq_len, d_inner], &delta_t.device());
        }
        delta_t.unsqueeze_dim::<3>(2) * softplus(theta).unsqueeze::<3>()
    }
}

impl Mixer for DecayMinGru {
    type State = Hidden;

    fn init_state(&self, batch_size: usize) -> Hidden {
        first_hidden(self.initial_state.as_ref(), self.candidate, &self.out_proj, batch_size)
    }

    fn forward(&self, x: Tensor<3>, state: Hidden, steps: &StepCodes) -> (Tensor<3>, Hidden) {
        let [batch, seq_len, _] = x.dims();
        let delta_t = Tensor::ones([batch, seq_len], &x.device());
        self.forward_timed(x, delta_t, state, steps)
    }
}
