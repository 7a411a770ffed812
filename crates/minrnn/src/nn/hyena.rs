//! Hyena of order 2: gates around a convolution whose filter is a function of the lag (models.md §7).
//!
//! ```text
//! x0, x1, v = DW3(W x + b)      v ← x1 ⊙ v      v ← h * v + b ⊙ v      out = W_o (x0 ⊙ v) + b_o
//! h_l = F(z_l) ⊙ e^{−|δ| τ},  τ = l / (L − 1),  z_l = [τ, cos(β 2πl/L), −sin(β 2πl/L)],  F: linear, then sin(w ⊙ ·) and linear, 3 times
//! ```
//! where: * convolves causally over L = `max_seq_len` lags, beyond which nothing is seen; β one band, 10⁻⁴; z is trained too; δ is fixed
//! for each channel, from ln(0.01)/1.5 to ln(0.01)/0.3.
//!
//! The state is the last L − 1 gated inputs, zeros before the first, so that rows of different lengths lie side by side.

use burn::config::Config;
use burn::module::{Module, Param};
use burn::nn::Linear;
use burn::tensor::{Tensor, TensorData};
use minrnn_stream::ModelConfig;

use super::conv::{Depthwise, Window};
use super::init::Initializer;
use super::linear::apply;
use super::mixer::Mixer;
use super::state::{State, StateZip};
use crate::Result;
use crate::ops::{self, StepCodes, causal_conv};

/// Taps of the short convolution.
const SHORT: usize = 3;
/// Features of a lag: τ and one band.
const FEATURES: usize = 3;
/// Hidden width of the filter's network.
const HIDDEN: usize = 64;
const BAND: f64 = 1e-4;

/// Settings of a [`Hyena`].
#[derive(Config, Debug)]
pub struct HyenaConfig {
    /// Width D of input and output.
    pub d_model: usize,
    /// L, the lags of the filter.
    pub max_seq_len: usize,
}

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

/// h as a network of the lag; without weight decay.
#[derive(Module, Debug)]
pub struct Filter {
    /// z `[L, 3]`.
    pub features: Param<Tensor<2>>,
    /// 3 → 64, then twice 64 → 64, with biases, and 64 → D without.
    pub layers: Vec<Linear>,
    /// w `[64]`, of all sines.
    pub frequency: Param<Tensor<1>>,
    /// b `[D]`.
    pub skip: Param<Tensor<1>>,
}

/// What a [`Hyena`] carries.
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

impl HyenaConfig {
    /// The settings a model's configuration asks for.
    ///
    /// # Errors
    /// Never: the configuration was checked.
    pub fn from_model(config: &ModelConfig, _layer: usize) -> Result<Self> {
        Ok(Self::new(config.d_model, config.max_seq_len))
    }

    /// A new layer.
    pub fn init(&self, init: &mut Initializer) -> Hyena {
        let d = self.d_model;
        Hyena {
            in_proj: init.linear(d, 3 * d),
            short_conv: Depthwise { weight: init.uniform([3 * d, 1, SHORT], SHORT), bias: init.uniform([3 * d], SHORT) },
            filter: Filter::new(d, self.max_seq_len, init),
            out_proj: init.linear(d, d),
        }
    }
}

impl Filter {
    fn new(d_model: usize, lags: usize, init: &mut Initializer) -> Self {
        let lag = |l: usize| {
            let angle = BAND * std::f64::consts::TAU * l as f64 / lags as f64;
            [l as f64 / (lags - 1) as f64, angle.cos(), -angle.sin()].map(|x| x as f32)
        };
        let layers = [(FEATURES, HIDDEN, true), (HIDDEN, HIDDEN, true), (HIDDEN, HIDDEN, true), (HIDDEN, d_model, false)];
        Self {
            features: init.values([lags, FEATURES], (0..lags).flat_map(lag).collect()),
            layers: layers.into_iter().map(|(from, to, bias)| init.linear_with_bias(from, to, bias)).collect(),
            frequency: init.constant([HIDDEN], 1.0),
            skip: init.normal([d_model], 1.0),
        }
    }

    /// The filter as a convolution takes it, `[D, 1, L]`: the last tap meets the current step, and b is part of it.
    fn taps(&self) -> Tensor<3> {
        let features = self.features.val();
        let ([lags, _], [d]) = (features.dims(), self.skip.dims());
        let frequency: Tensor<2> = self.frequency.val().unsqueeze();
        let mut h = features;
        for (i, layer) in self.layers.iter().enumerate() {
            if i > 0 {
                h = (h * frequency.clone()).sin();
            }
            h = ops::product(h, layer.weight.val());
            if let Some(bias) = &layer.bias {
                h = h + bias.val().unsqueeze();
            }
        }
        let device = h.device();
        let h = h * Tensor::from_data(TensorData::new(decay(lags, d), [lags, d]), &device);
        let newest = h.clone().narrow(0, 0, 1) + self.skip.val().unsqueeze();
        let newest_last = Tensor::cat(vec![h.narrow(0, 1, lags - 1).flip([0]), newest], 0);
        newest_last.transpose().unsqueeze_dim(1)
    }
}

/// e^{−|δ| τ} `[L, D]`.
fn decay(lags: usize, d_model: usize) -> Vec<f32> {
    let [slowest, fastest] = [1.5, 0.3].map(|share| 0.01f64.ln() / share);
    let rate = |c: usize| slowest + (fastest - slowest) * c as f64 / (d_model.max(2) - 1) as f64;
    let value = |i: usize| (rate(i % d_model) * (i / d_model) as f64 / (lags - 1) as f64).exp() as f32;
    (0..lags * d_model).map(value).collect()
}

impl Mixer for Hyena {
    type State = HyenaState;

    fn init_state(&self, batch_size: usize) -> HyenaState {
        let ([lags, _], [d]) = (self.filter.features.dims(), self.filter.skip.dims());
        let zeros = |shape| Tensor::zeros(shape, &self.filter.skip.val().device());
        HyenaState { short: zeros([batch_size, SHORT - 1, 3 * d]), gated: Window { window: zeros([batch_size, lags - 1, d]) } }
    }

    fn forward(&self, x: Tensor<3>, state: HyenaState, steps: &StepCodes) -> (Tensor<3>, HyenaState) {
        let [batch, seq_len, d] = x.dims();
        if batch * seq_len == 0 {
            return (x, state);
        }
        let all = apply(&self.in_proj, x);
        let (all, short) = causal_conv(all, self.short_conv.weight.val(), self.short_conv.bias.val(), Some(state.short), steps);
        let [x0, x1, v] = [0, 1, 2].map(|i| all.clone().narrow(2, i * d, d));
        let no_bias = Tensor::zeros([d], &v.device());
        let (v, gated) = causal_conv(x1 * v, self.filter.taps(), no_bias, Some(state.gated.window), steps);
        (apply(&self.out_proj, x0 * v), HyenaState { short, gated: Window { window: gated } })
    }
}
