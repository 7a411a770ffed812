//! H3: a shift and a diagonal state space between products of queries, keys and values (Fu et al. 2023, arXiv:2212.14052, §3).
//!
//! ```text
//! q, k, v = W x + b      k̄_t = Σ_{l<N} K_l ⊙ k_{t−l} + D_k ⊙ k_t      m_ab = k̄_a v_b      y_b = Σ_a q_a S4D(m_ab)      out = W_o y + b_o
//! ```
//! where: a, b are channels of one head, which has e of them; all e² products of a head go through its one state space (its skip is S4D's
//! D); head h has the channels h·e …, and for e = 1 the products are element-wise.

use burn::module::{Module, Param};
use burn::nn::Linear;
use burn::tensor::Tensor;
use minrnn_model::{CheckedConfig, S4Init};

use super::conv::Window;
use super::init::Initializer;
use super::linear::apply;
use super::mixer::Mixer;
use super::state::{State, StateZip, expect_rows};
use super::state_space::{StateSpace, StateSpaceState};
use crate::memory::activations::{Activations, Op};
use crate::ops::{StepCodes, causal_conv};

/// An H3 layer.
#[derive(Module, Debug)]
pub struct H3 {
    /// D → 3D, rows query, key, value.
    pub in_proj: Linear,
    /// The state space applied to keys.
    pub shift_ssm: Shift,
    /// The state spaces of the heads.
    pub ssm: StateSpace,
    /// D → D.
    pub out_proj: Linear,
}

/// The state space that stores the last N inputs; without weight decay.
#[derive(Module, Debug)]
pub struct Shift {
    /// `[D, 1, N]`; the last tap applies to the current step.
    pub taps: Param<Tensor<3>>,
    /// D_k `[D]`.
    pub skip: Param<Tensor<1>>,
}

/// The state of an [`H3`].
#[derive(Debug, Clone)]
pub struct H3State {
    /// The last keys `[B, N − 1, D]`.
    pub keys: Window,
    /// The state spaces of all products.
    pub ssm: StateSpaceState,
}

impl State for H3State {
    fn zip<F: StateZip>(self, other: Self, f: &mut F) -> Self {
        Self { keys: self.keys.zip(other.keys, f), ssm: self.ssm.zip(other.ssm, f) }
    }
}

impl Shift {
    /// A new shift of `d_state` taps.
    pub fn new(d_model: usize, d_state: usize, init: &mut Initializer) -> Self {
        Self { taps: init.uniform([d_model, 1, d_state], d_state), skip: init.normal([d_model], 1.0) }
    }

    /// Zeros before the first step.
    pub(super) fn init_state(&self, batch_size: usize) -> Window {
        let [d_model, _, taps] = self.taps.dims();
        Window { window: Tensor::zeros([batch_size, taps - 1, d_model], &self.skip.val().device()) }
    }

    pub(super) fn forward(&self, keys: Tensor<3>, state: Window, steps: &StepCodes) -> (Tensor<3>, Window) {
        let (taps, skip) = (self.taps.val(), self.skip.val());
        let [d_model, _, count] = taps.dims();
        let newest = taps.clone().narrow(2, count - 1, 1) + skip.clone().reshape([d_model, 1, 1]);
        let taps = match count {
            1 => newest,
            _ => Tensor::cat(vec![taps.narrow(2, 0, count - 1), newest], 2),
        };
        let (y, window) = causal_conv(keys, taps, skip.zeros_like(), Some(state.window), steps);
        (y, Window { window })
    }
}

impl H3 {
    /// The layer described by `config`.
    pub fn new(config: &CheckedConfig, _layer: usize, init: &mut Initializer) -> Self {
        let (d, n) = (config.d_model, config.d_state);
        Self {
            in_proj: init.linear(d, 3 * d),
            shift_ssm: Shift::new(d, n, init),
            ssm: StateSpace::diagonal(d / config.head_width, n, S4Init::Lin, init),
            out_proj: init.linear(d, d),
        }
    }

    pub(super) fn activations(config: &CheckedConfig, list: &mut Activations) {
        let [d, w] = [config.d_model, config.head_width].map(|x| x as u128);
        list.biased(d, 3 * d, true);
        list.op(Op { keeps: &[3 * d], reads: d, gives: d, aside: 2 * d, ..Op::default() });
        list.op(Op { keeps: &[d], reads: 2 * d, gives: d * w, aside: 3 * d, ..Op::default() });
        list.op(Op { keeps: &[d * w], reads: d * w, gives: d * w, aside: 3 * d, ..Op::default() });
        list.op(Op { keeps: &[d * w], reads: d + d * w, gives: d * w, aside: 3 * d, ..Op::default() });
        list.biased(d, d, true);
    }

    /// Heads and their width.
    fn heads(&self) -> [usize; 2] {
        let [heads] = self.ssm.skip.dims();
        [heads, self.shift_ssm.skip.dims()[0] / heads]
    }
}

impl Mixer for H3 {
    type State = H3State;

    fn init_state(&self, batch_size: usize) -> H3State {
        let [_, width] = self.heads();
        H3State { keys: self.shift_ssm.init_state(batch_size), ssm: self.ssm.init_state(batch_size, width * width) }
    }

    fn forward(&self, x: Tensor<3>, state: H3State, steps: &StepCodes) -> (Tensor<3>, H3State) {
        let [batch, seq_len, d] = x.dims();
        if batch * seq_len == 0 {
            expect_rows(&state, batch);
            return (x, state);
        }
        let all = apply(&self.in_proj, x);
        let [query, key, value] = [0, 1, 2].map(|i| all.clone().narrow(2, i * d, d));
        let (key, keys) = self.shift_ssm.forward(key, state.keys, steps);
        let [heads, e] = self.heads();
        let by_key = |x: Tensor<3>| x.reshape([batch, seq_len, heads, e, 1]);
        let products = match e {
            1 => key * value,
            _ => (by_key(key) * value.reshape([batch, seq_len, heads, 1, e])).reshape([batch, seq_len, d * e]),
        };
        let (memory, ssm) = self.ssm.forward(products, state.ssm, steps, e * e);
        let y = match e {
            1 => query * memory,
            _ => (by_key(query) * memory.reshape([batch, seq_len, heads, e, e])).sum_dim(3).reshape([batch, seq_len, d]),
        };
        (apply(&self.out_proj, y), H3State { keys, ssm })
    }
}
