//! Hyena of order 2: gates around a convolution whose filter is a function of the lag (Poli et al. 2023, arXiv:2302.10866, §3).
//!
//! ```text
//! x0, x1, v = DW3(W x + b)      v ← x1 ⊙ v      v ← h * v + b ⊙ v      out = W_o (x0 ⊙ v) + b_o
//! ```
//! where: * convolves causally over L = `max_seq_len` lags; h and b as in [`Filter`].
//!
//! The state is the last L − 1 gated inputs, with zeros before the first, so that rows of different lengths fit in one tensor.

use burn::module::Module;
use burn::nn::Linear;
use burn::tensor::Tensor;
use minrnn_model::{CheckedConfig, HYENA_TAPS};

use super::conv::{Depthwise, Window};
use super::hyena_filter::Filter;
use super::init::Initializer;
use super::linear::apply;
use super::mixer::Mixer;
use super::state::{State, StateZip, expect_rows};
use crate::memory::activations::{Activations, Op};
use crate::ops::{StepCodes, causal_conv};

/// A Hyena layer.
#[derive(Module, Debug)]
pub struct Hyena {
    /// D → 3D, rows x0, x1, v.
    pub in_proj: Linear,
    /// The short convolution of all three.
    pub short_conv: Depthwise,
    /// The long filter.
    pub filter: Filter,
    /// D → D.
    pub out_proj: Linear,
}

/// The state of a [`Hyena`].
#[derive(Debug, Clone)]
pub struct HyenaState {
    /// Inputs that the short convolution still needs `[B, 2, 3D]`.
    pub short: Tensor<3>,
    /// The last gated inputs `[B, L − 1, D]`.
    pub gated: Window,
}

impl State for HyenaState {
    fn zip<F: StateZip>(self, other: Self, f: &mut F) -> Self {
        Self { short: f.tensor("short", self.short, other.short), gated: self.gated.zip(other.gated, f) }
    }
}

impl Hyena {
    /// The layer described by `config`.
    pub fn new(config: &CheckedConfig, _layer: usize, init: &mut Initializer) -> Self {
        let d = config.d_model;
        Self {
            in_proj: init.linear(d, 3 * d),
            short_conv: Depthwise { weight: init.uniform([3 * d, 1, HYENA_TAPS], HYENA_TAPS), bias: init.uniform([3 * d], HYENA_TAPS) },
            filter: Filter::new(d, config.max_seq_len, init),
            out_proj: init.linear(d, d),
        }
    }

    pub(super) fn activations(config: &CheckedConfig, list: &mut Activations) {
        let d = config.d_model as u128;
        list.biased(d, 3 * d, true);
        list.op(Op { keeps: &[3 * d], reads: 3 * d, gives: 3 * d, ..Op::default() });
        list.op(Op { keeps: &[3 * d], reads: 2 * d, gives: d, aside: 3 * d, ..Op::default() });
        list.op(Op { keeps: &[d], reads: d, gives: d, aside: 3 * d, works: Filter::workspace(config) });
        list.op(Op { keeps: &[d], reads: 2 * d, gives: d, aside: 3 * d, ..Op::default() });
        list.biased(d, d, true);
    }
}

impl Mixer for Hyena {
    type State = HyenaState;

    fn init_state(&self, batch_size: usize) -> HyenaState {
        let skip = self.filter.skip.val();
        let short = Tensor::zeros([batch_size, HYENA_TAPS - 1, 3 * skip.dims()[0]], &skip.device());
        HyenaState { short, gated: self.filter.init_state(batch_size) }
    }

    fn forward(&self, x: Tensor<3>, state: HyenaState, steps: &StepCodes) -> (Tensor<3>, HyenaState) {
        let [batch, seq_len, d] = x.dims();
        if batch * seq_len == 0 {
            expect_rows(&state, batch);
            return (x, state);
        }
        let all = apply(&self.in_proj, x);
        let (all, short) = causal_conv(all, self.short_conv.weight.val(), self.short_conv.bias.val(), Some(state.short), steps);
        let [x0, x1, v] = [0, 1, 2].map(|i| all.clone().narrow(2, i * d, d));
        let (v, gated) = self.filter.forward(x1 * v, state.gated, steps);
        (apply(&self.out_proj, x0 * v), HyenaState { short, gated })
    }
}
