//! The convolution at the start of a block, x + PW(DW4(x)), and the one inside a mixer, SiLU(DW4(x)); windows are carried as state (the
//! blocks of Feng et al. 2024, arXiv:2410.01201, and of Beck et al. 2024, arXiv:2405.04517).

use burn::module::{Module, Param};
use burn::nn::Linear;
use burn::tensor::{FloatDType, Tensor};
use minrnn_model::{CONV_TAPS, CheckedConfig};

use super::init::Initializer;
use super::linear::{bias, matmul_rows, rows, sequences};
use super::state::{State, StateZip};
use crate::memory::activations::{Activations, Op};
use crate::ops::{Dropout, StepCodes, bias_dropout_residual, causal_conv, causal_conv_residual, silu};

/// Causal depthwise convolution followed by a pointwise one, with a residual connection.
#[derive(Module, Debug)]
pub struct CausalConv {
    /// One filter per channel.
    pub depthwise: Depthwise,
    /// D → D.
    pub pointwise: Linear,
}

/// Filters and biases of a depthwise convolution.
#[derive(Module, Debug)]
pub struct Depthwise {
    /// `[D, 1, K]`, PyTorch's layout: the last tap applies to the current step.
    pub weight: Param<Tensor<3>>,
    /// `[D]`.
    pub bias: Param<Tensor<1>>,
}

/// The inputs a convolution still needs.
#[derive(Debug, Clone)]
pub struct Window {
    /// `[B, K − 1, D]`, oldest first.
    pub window: Tensor<3>,
}

impl State for Window {
    fn zip<F: StateZip>(self, other: Self, f: &mut F) -> Self {
        Self { window: f.tensor("window", self.window, other.window) }
    }
}

impl Depthwise {
    /// New filters for `width` channels, uniform in ±1/√K.
    pub fn new(width: usize, init: &mut Initializer) -> Self {
        Self { weight: init.uniform([width, 1, CONV_TAPS], CONV_TAPS), bias: init.uniform([width], CONV_TAPS) }
    }

    /// Zeros before the first step.
    pub fn init_state(&self, batch_size: usize) -> Window {
        let weight = self.weight.val();
        let [width, _, k] = weight.dims();
        Window { window: Tensor::zeros([batch_size, k - 1, width], &weight.device()) }
    }

    /// What [`forward_silu`](Self::forward_silu) keeps for `width` channels.
    pub(super) fn silu_activations(width: u128, list: &mut Activations) {
        for _ in 0..2 {
            list.op(Op { keeps: &[width], reads: width, gives: width, ..Op::default() });
        }
    }

    /// SiLU(DW(x)).
    ///
    /// # Shapes
    /// * `x` `[B, T, D]` → `[B, T, D]`
    ///
    /// # Panics
    /// When shapes do not fit.
    pub fn forward_silu(&self, x: Tensor<3>, state: Window, steps: &StepCodes) -> (Tensor<3>, Window) {
        let (y, window) = causal_conv(x, self.weight.val(), self.bias.val(), Some(state.window), steps);
        (silu(y), Window { window })
    }
}

impl CausalConv {
    /// A new convolution of width `d_model`.
    pub fn new(d_model: usize, init: &mut Initializer) -> Self {
        Self { depthwise: Depthwise::new(d_model, init), pointwise: init.linear(d_model, d_model) }
    }

    /// Zeros before the first step.
    pub fn init_state(&self, batch_size: usize) -> Window {
        self.depthwise.init_state(batch_size)
    }

    pub(super) fn activations(config: &CheckedConfig, list: &mut Activations) {
        let d = config.d_model as u128;
        for _ in 0..2 {
            list.op(Op { keeps: &[d], reads: d, gives: d, aside: d, ..Op::default() });
        }
        list.residual(d);
    }

    /// x + PW(DW(x)), with values in `format` between the two convolutions.
    ///
    /// # Shapes
    /// * `x` `[B, T, D]` → `[B, T, D]`
    ///
    /// # Panics
    /// When shapes do not fit.
    pub fn forward(&self, x: Tensor<3>, state: Window, steps: &StepCodes, format: FloatDType) -> (Tensor<3>, Window) {
        let [batch, seq_len, _] = x.dims();
        let Depthwise { weight, bias: shift } = &self.depthwise;
        let (y, window, x) = causal_conv_residual(x, weight.val(), shift.val(), Some(state.window), steps, format);
        let y = matmul_rows(rows(y), self.pointwise.weight.val());
        let y = bias_dropout_residual(y, bias(&self.pointwise), Some(rows(x)), Dropout::OFF);
        (sequences(y, batch, seq_len), Window { window })
    }
}
