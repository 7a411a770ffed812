//! Hyena's long filter, an implicit function of the lag, and the layer that is this filter alone (Poli et al. 2023, arXiv:2302.10866, §3).
//!
//! ```text
//! y = h * u + b ⊙ u
//! h_l = F(z_l) ⊙ e^{−|δ| τ},  τ = l / (L − 1),  z_l = [τ, cos(β 2πl/L), −sin(β 2πl/L)],  F: linear, then sin(w ⊙ ·) and linear, 3 times
//! alone in its block: out = value ⊙ σ(gate),  [value, gate] = W GELU(y);      inside a wiring: out = y
//! ```
//! where: * convolves causally over L = `max_seq_len` lags, beyond which nothing is seen; β is one band, 10⁻⁴; z is trained too; δ is fixed
//! for each channel, from ln(0.01)/1.5 to ln(0.01)/0.3.
//!
//! [`Hyena`](super::Hyena) is a block around this filter with its own gates and short convolution. In another architecture's block the
//! filter replaces that block's sequence map, as in the comparisons of the literature.
//!
//! The state is the last L − 1 inputs, with zeros before the first, so that rows of different lengths fit in one tensor.

use burn::module::{Module, Param};
use burn::nn::Linear;
use burn::tensor::{Tensor, TensorData};
use minrnn_model::{CheckedConfig, HYENA_FEATURES, HYENA_HIDDEN, hyena_layers};

use super::conv::Window;
use super::init::Initializer;
use super::mixer::Mixer;
use super::output_mixing::{map_activations, mixed, output_mixing};
use super::state::expect_rows;
use crate::memory::activations::Activations;
use crate::ops::{self, StepCodes, causal_conv};

/// β.
const BAND: f64 = 1e-4;

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

/// A layer consisting of Hyena's filter.
#[derive(Module, Debug)]
pub struct HyenaFilter {
    /// h and b.
    pub filter: Filter,
    /// D → 2D, rows value then gate; absent inside a wiring.
    pub out_proj: Option<Linear>,
}

impl Filter {
    /// A new filter of `lags` lags for each of `d_model` channels.
    pub(super) fn new(d_model: usize, lags: usize, init: &mut Initializer) -> Self {
        let lag = |l: usize| {
            let angle = BAND * std::f64::consts::TAU * l as f64 / lags as f64;
            [l as f64 / (lags - 1) as f64, angle.cos(), -angle.sin()].map(|x| x as f32)
        };
        Self {
            features: init.values([lags, HYENA_FEATURES], (0..lags).flat_map(lag).collect()),
            layers: hyena_layers(d_model).into_iter().map(|(from, to, bias)| init.linear_with_bias(from, to, bias)).collect(),
            frequency: init.constant([HYENA_HIDDEN], 1.0),
            skip: init.normal([d_model], 1.0),
        }
    }

    /// Zeros before the first step.
    pub(super) fn init_state(&self, batch_size: usize) -> Window {
        let ([lags, _], [d]) = (self.features.dims(), self.skip.dims());
        Window { window: Tensor::zeros([batch_size, lags - 1, d], &self.skip.val().device()) }
    }

    /// h * u + b ⊙ u for `u` `[B, T, D]`, not empty.
    pub(super) fn forward(&self, u: Tensor<3>, state: Window, steps: &StepCodes) -> (Tensor<3>, Window) {
        let no_bias = Tensor::zeros(self.skip.dims(), &u.device());
        let (y, window) = causal_conv(u, self.taps(), no_bias, Some(state.window), steps);
        (y, Window { window })
    }

    /// Number of values in the taps, in the hidden layers that compute them, and in their gradients.
    pub(super) fn workspace(config: &CheckedConfig) -> u128 {
        (config.max_seq_len * (3 * config.d_model + 12 * HYENA_HIDDEN)) as u128
    }

    /// The filter as a convolution takes it, `[D, 1, L]`: the last tap applies to the current step and includes b.
    fn taps(&self) -> Tensor<3> {
        let features = self.features.val();
        let ([lags, _], [d]) = (features.dims(), self.skip.dims());
        let frequency: Tensor<2> = self.frequency.val().unsqueeze();
        let mut h = features;
        for (i, layer) in self.layers.iter().enumerate() {
            if i > 0 {
                h = (h * frequency.clone()).sin();
            }
            h = ops::matmul(h, layer.weight.val());
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

impl HyenaFilter {
    /// The layer described by `config`.
    pub fn new(config: &CheckedConfig, _layer: usize, init: &mut Initializer) -> Self {
        let filter = Filter::new(config.d_model, config.max_seq_len, init);
        Self { filter, out_proj: output_mixing(config, init) }
    }

    pub(super) fn activations(config: &CheckedConfig, list: &mut Activations) {
        map_activations(config, Filter::workspace(config), list);
    }
}

impl Mixer for HyenaFilter {
    type State = Window;

    fn init_state(&self, batch_size: usize) -> Window {
        self.filter.init_state(batch_size)
    }

    fn forward(&self, x: Tensor<3>, state: Window, steps: &StepCodes) -> (Tensor<3>, Window) {
        let [batch, seq_len, _] = x.dims();
        if batch * seq_len == 0 {
            expect_rows(&state, batch);
            return (x, state);
        }
        let (y, state) = self.filter.forward(x, state, steps);
        (mixed(y, self.out_proj.as_ref()), state)
    }
}
