//! RWKV-4's time mixing (Peng et al. 2023, arXiv:2305.13048). Its channel mixing is the feed-forward part
//! [`ChannelMix`](super::ChannelMix).
//!
//! ```text
//! r = W_r Mix(μ_r)      k = W_k Mix(μ_k)      v = W_v Mix(μ_v)      Mix(μ)_t = μ ⊙ x_t + (1 − μ) ⊙ x_{t−1}
//! wkv_t = (P_{t−1} + e^{u + k_t} v_t) / (Q_{t−1} + e^{u + k_t})
//! P_t = e^w P_{t−1} + e^{k_t} v_t       Q_t = e^w Q_{t−1} + e^{k_t}       w = −e^decay
//! y_t = W_o (σ(r_t) ⊙ wkv_t)
//! ```
//! where: x input (D); r receptance, k key, v value, P, Q sums and u bonus (E; the authors have E = D: `expansion = 1`).
//!
//! The authors' small initial embedding and the norm after it are not part of a mixer, and this model has neither.

use burn::module::{Module, Param};
use burn::nn::Linear;
use burn::tensor::Tensor;
use minrnn_kernels::rwkv4::CHUNK;
use minrnn_model::CheckedConfig;

use super::conv::Window;
use super::init::Initializer;
use super::layer::expect_layer;
use super::linear::matmul;
use super::mixer::Mixer;
use super::state::{State, StateZip};
use super::token_shift::{init_window, mixtures};
use crate::memory::activations::{Activations, Op};
use crate::ops::{self, EMPTY_LOG_WEIGHT, Rwkv4Memory, StepCodes};

/// RWKV-4's time mixing.
#[derive(Module, Debug)]
pub struct Rwkv4 {
    /// D → E.
    pub receptance: Linear,
    /// D → E.
    pub key: Linear,
    /// D → E.
    pub value: Linear,
    /// E → D.
    pub out_proj: Linear,
    /// μ_r `[D]`.
    pub mix_receptance: Param<Tensor<1>>,
    /// μ_k `[D]`.
    pub mix_key: Param<Tensor<1>>,
    /// μ_v `[D]`.
    pub mix_value: Param<Tensor<1>>,
    /// `[E]`: w = −e^decay.
    pub decay: Param<Tensor<1>>,
    /// u `[E]`.
    pub bonus: Param<Tensor<1>>,
}

/// The state of an [`Rwkv4`].
#[derive(Debug, Clone)]
pub struct Rwkv4State {
    /// The previous input.
    pub shift: Window,
    /// P / Q and ln Q.
    pub memory: Rwkv4Memory,
}

impl State for Rwkv4State {
    fn zip<F: StateZip>(self, other: Self, f: &mut F) -> Self {
        f.enter("shift");
        let shift = self.shift.zip(other.shift, f);
        f.exit();
        let mean = f.tensor("mean", self.memory.mean, other.memory.mean);
        let log_weight = f.tensor("log_weight", self.memory.log_weight, other.memory.log_weight);
        Self { shift, memory: Rwkv4Memory { mean, log_weight } }
    }
}

/// The relative position of a block: ρ = layer / (n − 1) from the first to the last, and κ = 1 − layer / n.
pub(super) fn place(layer: usize, n_layers: usize) -> (f64, f64) {
    let n = n_layers.max(1);
    (layer as f64 / (n - 1).max(1) as f64, 1.0 - layer as f64 / n as f64)
}

/// A linear layer with a matrix `[in, out]` and no bias.
pub(super) fn unbiased(weight: Param<Tensor<2>>) -> Linear {
    Linear { weight, bias: None }
}

/// An orthogonal matrix `[in, out]`, with a larger gain if it widens.
pub(super) fn widening(d_input: usize, d_output: usize, init: &mut Initializer) -> Linear {
    let gain = (d_output as f64 / d_input as f64).max(1.0).sqrt();
    unbiased(init.orthogonal([d_input, d_output], gain))
}

impl Rwkv4 {
    /// The layer of block `layer`, counted from 0, with the authors' initial values for that layer.
    ///
    /// # Panics
    /// When `config` has no such block.
    pub fn new(config: &CheckedConfig, layer: usize, init: &mut Initializer) -> Self {
        expect_layer(config, layer);
        let (d, e) = (config.d_model, config.d_inner());
        let (rho, kappa) = place(layer, config.n_layers);
        let share = |j: usize, power: f64| (j as f64 / d as f64).powf(power);
        let along = |j: usize| j as f64 / (e - 1).max(1) as f64;
        Self {
            receptance: unbiased(init.constant([d, e], 0.0)),
            key: unbiased(init.constant([d, e], 0.0)),
            value: widening(d, e, init),
            out_proj: unbiased(init.constant([e, d], 0.0)),
            mix_receptance: init.vector(d, |j| share(j, 0.5 * kappa)),
            mix_key: init.vector(d, |j| share(j, kappa)),
            mix_value: init.vector(d, |j| share(j, kappa) + 0.3 * rho),
            decay: init.vector(e, |j| -5.0 + 8.0 * along(j).powf(0.7 + 1.3 * rho)),
            bonus: init.vector(e, |j| 0.3f64.ln() + 0.5 * (((j + 1) % 3) as f64 - 1.0)),
        }
    }

    pub(super) fn activations(config: &CheckedConfig, list: &mut Activations) {
        let [d, e] = [config.d_model, config.d_inner()].map(|x| x as u128);
        list.op(Op { keeps: &[d], reads: d, gives: 3 * d, ..Op::default() });
        list.op(Op { keeps: &[d; 3], reads: 3 * d, gives: 3 * e, ..Op::default() });
        list.keep(list.batch() * list.length().div_ceil(CHUNK as u128) * 2 * e);
        list.op(Op { keeps: &[e; 3], reads: 3 * e, gives: e, ..Op::default() });
        list.biased(e, d, false);
    }
}

impl Mixer for Rwkv4 {
    type State = Rwkv4State;

    fn init_state(&self, batch_size: usize) -> Rwkv4State {
        let [d, e] = self.value.weight.dims();
        let device = self.decay.val().device();
        let mean = Tensor::zeros([batch_size, e], &device);
        let log_weight = Tensor::full([batch_size, e], EMPTY_LOG_WEIGHT, &device);
        Rwkv4State { shift: init_window(batch_size, d, &device), memory: Rwkv4Memory { mean, log_weight } }
    }

    fn forward(&self, x: Tensor<3>, state: Rwkv4State, steps: &StepCodes) -> (Tensor<3>, Rwkv4State) {
        let shares = [&self.mix_receptance, &self.mix_key, &self.mix_value].map(Param::val);
        let ([r, k, v], shift) = mixtures(&x, shares, &state.shift, steps);
        let inputs = [matmul(&self.receptance, r), matmul(&self.key, k), matmul(&self.value, v)];
        let (y, memory) = ops::rwkv4(inputs, self.decay.val(), self.bonus.val(), state.memory, steps);
        (matmul(&self.out_proj, y), Rwkv4State { shift, memory })
    }
}

#[cfg(test)]
mod tests {
    use burn::tensor::Device;
    use minrnn_model::ModelConfig;

    use super::*;

    fn close<const N: usize>(param: &Param<Tensor<1>>, expected: [f64; N]) {
        for (found, expected) in param.val().into_data().try_to_vec::<f32>().unwrap().into_iter().zip(expected) {
            assert!((f64::from(found) - expected).abs() < 1e-6, "{found}, expected {expected}");
        }
    }

    #[test]
    fn initial_values_depend_on_the_layer() {
        let mut init = Initializer::new(0, &Device::flex());
        let of = |layer, n_layers, init: &mut Initializer| {
            let config = ModelConfig { vocab_size: 2, d_model: 4, expansion: 1.25, n_layers, ..Default::default() };
            Rwkv4::new(&config.checked().unwrap(), layer, init)
        };
        let first = of(0, 2, &mut init);
        close(&first.mix_key, [0.0, 0.25, 0.5, 0.75]);
        close(&first.mix_receptance, [0.0, 0.5, 0.5f64.sqrt(), 0.75f64.sqrt()]);
        close(&first.decay, [-5.0, -5.0 + 8.0 * 0.25f64.powf(0.7), -5.0 + 8.0 * 0.5f64.powf(0.7)]);
        let (low, middle, high) = (0.3f64.ln() - 0.5, 0.3f64.ln(), 0.3f64.ln() + 0.5);
        close(&first.bonus, [middle, high, low, middle, high]);
        let last = of(1, 2, &mut init);
        close(&last.mix_value, [0.3, 0.8, 0.5f64.sqrt() + 0.3, 0.75f64.sqrt() + 0.3]);
        close(&last.decay, [-5.0, -5.0 + 8.0 * 0.0625, -3.0, -5.0 + 8.0 * 0.5625, 3.0]);
        close(&of(0, 1, &mut init).mix_value, [0.0, 0.25, 0.5, 0.75]);
    }
}
