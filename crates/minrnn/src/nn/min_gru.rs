//! minGRU (Feng et al. 2024, arXiv:2410.01201, §3.1).
//!
//! ```text
//! k_t = W_z x_t + b_z          v_t = W_h x_t + b_h
//! z_t = σ(k_t)                 h̃_t = g(v_t)
//! h_t = (1 − z_t) ⊙ h_{t−1} + z_t ⊙ h̃_t
//! y_t = W_o h_t + b_o
//! ```
//! where: x input (D); h hidden state (E, the paper's d_h); z update gate; h̃ candidate; g(v) = v + ½ for v ≥ 0, σ(v) below (`candidate =
//! positive`), or v (`identity`), or tanh v. With `highway` y is mixed with x as described in `highway.rs`.
//!
//! With `forget_floor = learned`, beyond the paper, the forget gate of block ℓ of L has a lower bound in every channel:
//!
//! ```text
//! z'_t = (1 − γ) ⊙ z_t         γ = σ(θ) ℓ / L         1 − z'_t ≥ γ
//! ```
//! where: θ is learned (E), initially such that σ(θ) is spread evenly over (0, 1). Upper blocks may not forget faster than γ and take on
//! long-term memory, lower ones short-term memory. HGRN's bound (Qin et al. 2023, arXiv:2311.04823) is a cumulative softmax over the layers
//! of one matrix, so that γ rises with ℓ in every channel; here each block has its own θ and only the ceiling ℓ / L rises. The benefit is
//! measured by
//!
//! ```text
//! cargo build --release --workspace --examples && target/release/examples/highway_and_floor
//! ```

use burn::module::{Module, Param};
use burn::nn::Linear;
use burn::tensor::{Tensor, activation};
use minrnn_model::{Candidate, CheckedConfig, ForgetFloor, ScanKind};

use super::hidden::{Hidden, first_hidden, initial_vector, learned_state};
use super::highway::{highway_gate, project};
use super::init::Initializer;
use super::layer::expect_layer;
use super::linear::{bias, matmul};
use super::mixer::Mixer;
use crate::memory::activations::{Activations, Op};
use crate::ops::{self, Start, StepCodes};

/// A minGRU with its down-projection.
#[derive(Module, Debug)]
pub struct MinGru {
    /// D → 2E, rows candidate then update gate.
    pub in_proj: Linear,
    /// E → D.
    pub out_proj: Linear,
    /// D → D, the gate of the projected state in the output, if the output is a mixture.
    pub highway: Option<Linear>,
    /// θ, if the initial state is learned.
    pub initial_state: Option<Param<Tensor<1>>>,
    /// θ `[E]` of the forget gate's lower bound, if there is one.
    pub forget_floor: Option<Param<Tensor<1>>>,
    #[module(skip)]
    forget_ceiling: f64,
    #[module(skip)]
    candidate: Candidate,
    #[module(skip)]
    scan: ScanKind,
}

impl MinGru {
    /// The cell described by `config` in block `layer`, counted from 0; for a [`Gilr`](super::Gilr) the candidate is tanh.
    ///
    /// # Panics
    /// When `config` has no such block.
    pub fn new(config: &CheckedConfig, layer: usize, init: &mut Initializer) -> Self {
        expect_layer(config, layer);
        let (d, e) = (config.d_model, config.d_inner());
        // θ = logit of an even spread.
        let theta = |c: usize| ((c as f32 + 0.5) / (e as f32 - c as f32 - 0.5)).ln();
        let has_floor = config.forget_floor == ForgetFloor::Learned;
        Self {
            in_proj: init.linear(d, 2 * e),
            out_proj: init.linear(e, d),
            highway: highway_gate(config, init),
            initial_state: learned_state(config, init),
            forget_floor: has_floor.then(|| init.values([e], (0..e).map(theta).collect())),
            forget_ceiling: config.forget_ceiling(layer),
            candidate: config.mixer_at(layer).spec().candidate(config),
            scan: config.scan,
        }
    }

    pub(super) fn activations(config: &CheckedConfig, list: &mut Activations) {
        minimal_activations(config, 2, 3, list);
    }
}

impl Mixer for MinGru {
    type State = Hidden;

    fn init_state(&self, batch_size: usize) -> Hidden {
        first_hidden(self.initial_state.as_ref(), self.candidate, &self.out_proj, batch_size)
    }

    fn takes_bf16(&self) -> bool {
        self.scan == ScanKind::Linear && self.forget_floor.is_none() && self.highway.is_none()
    }

    fn forward(&self, x: Tensor<3>, state: Hidden, steps: &StepCodes) -> (Tensor<3>, Hidden) {
        let preact = matmul(&self.in_proj, x.clone());
        let start = Start { h0: Some(state.h), init: initial_vector(self.initial_state.as_ref(), self.candidate) };
        let candidate = self.candidate;
        let (h, h_last) = match (self.scan, &self.forget_floor) {
            (ScanKind::Linear, None) => ops::min_gru(preact, bias(&self.in_proj), candidate, start, steps),
            (ScanKind::Linear, Some(theta)) => {
                let share = activation::sigmoid(theta.val()) * -self.forget_ceiling + 1.0;
                ops::floored_min_gru(preact, bias(&self.in_proj), share, candidate, start, steps)
            }
            (ScanKind::LogSpace, _) => {
                let (log_coeffs, log_values) = ops::min_gru_log_coefficients(preact, bias(&self.in_proj));
                ops::log_space_scan(log_coeffs, log_values, start, steps)
            }
        };
        (project(&self.out_proj, self.highway.as_ref(), h, x), Hidden { h: h_last })
    }
}

/// What minGRU and minLSTM keep: their pre-activations have `parts` parts, and their logarithms take `softplus` softplus functions.
pub(super) fn minimal_activations(config: &CheckedConfig, parts: u128, softplus: usize, list: &mut Activations) {
    let [d, e] = [config.d_model, config.d_inner()].map(|x| x as u128);
    let inputs = parts * e;
    match config.scan {
        // The logarithms are composed of operations of Burn: four sequences for each softplus, two for ln(v + 1/2); then the scan's own.
        ScanKind::LogSpace => list.recurrence(d, e, inputs, &[e; 25][..4 * softplus + 2 + 3]),
        ScanKind::Linear => list.recurrence(d, e, inputs, &[inputs, e]),
    }
    if config.highway {
        list.op(Op { reads: e + d, gives: 2 * d, aside: d, ..Op::default() });
        list.op(Op { keeps: &[d; 2], reads: 3 * d, gives: d, ..Op::default() });
    } else {
        list.out(e, d, true);
    }
}
