//! Initial values of parameters, from a seeded generator of our own.
//!
//! Linear and convolution weights and biases are uniform in ±1/√fan_in, embeddings and learned initial states standard normal
//! (models.md §2.8), or all of them GPT-2's (models.md §12). The values depend on the seed and the order in which a model is built, on nothing else.

use std::ops::Range;

use burn::module::Param;
use burn::nn::Linear;
use burn::tensor::{Device, Tensor, TensorData};
use minrnn_stream::{Initialization, ModelConfig};
use rand::Rng;

use crate::rng::{self, ChaCha8Rng, Purpose};

/// Deviation of GPT-2's weights.
const GPT_DEVIATION: f32 = 0.02;

/// Makes parameters on a device.
pub struct Initializer {
    rng: ChaCha8Rng,
    device: Device,
    kind: Initialization,
    /// Deviation of GPT-2's weights that end a residual branch, of which each block has two.
    residual_deviation: f32,
}

impl Initializer {
    /// Parameters on `device`, drawn from `seed`.
    pub fn new(seed: u64, device: &Device) -> Self {
        let rng = rng::stream(seed, Purpose::Init, 0);
        Self { rng, device: device.clone(), kind: Initialization::Default, residual_deviation: GPT_DEVIATION }
    }

    /// With the initialisation that `config` asks for.
    pub fn for_model(self, config: &ModelConfig) -> Self {
        Self { kind: config.init, residual_deviation: GPT_DEVIATION / (2.0 * config.n_layers as f32).sqrt(), ..self }
    }

    /// Where the parameters live.
    pub fn device(&self) -> &Device {
        &self.device
    }

    /// Uniform in ±1/√`fan_in`.
    pub fn uniform<const D: usize>(&mut self, shape: [usize; D], fan_in: usize) -> Param<Tensor<D>> {
        let bound = 1.0 / (fan_in as f32).sqrt();
        self.fill(shape, |init| (2.0 * init.unit() - 1.0) * bound)
    }

    /// Standard normal times `deviation`.
    pub fn normal<const D: usize>(&mut self, shape: [usize; D], deviation: f32) -> Param<Tensor<D>> {
        self.fill(shape, |init| init.gauss() * deviation)
    }

    /// All elements `value`.
    pub fn constant<const D: usize>(&mut self, shape: [usize; D], value: f32) -> Param<Tensor<D>> {
        self.fill(shape, |_| value)
    }

    /// The table of an embedding: `rows` vectors of width `d_model`.
    pub fn table(&mut self, rows: usize, d_model: usize) -> Param<Tensor<2>> {
        self.normal([rows, d_model], if self.kind == Initialization::Gpt { GPT_DEVIATION } else { 1.0 })
    }

    /// A linear layer `d_input` → `d_output` with PyTorch's default initialisation, or GPT-2's.
    pub fn linear(&mut self, d_input: usize, d_output: usize) -> Linear {
        self.linear_with_bias(d_input, d_output, true)
    }

    /// The same, with or without a bias.
    pub fn linear_with_bias(&mut self, d_input: usize, d_output: usize, bias: bool) -> Linear {
        self.linear_of(d_input, d_output, bias, GPT_DEVIATION)
    }

    /// The linear layer that ends a residual branch.
    pub fn residual_linear(&mut self, d_input: usize, d_output: usize, bias: bool) -> Linear {
        self.linear_of(d_input, d_output, bias, self.residual_deviation)
    }

    fn linear_of(&mut self, d_input: usize, d_output: usize, bias: bool, deviation: f32) -> Linear {
        match self.kind {
            Initialization::Default => {
                let weight = self.uniform([d_input, d_output], d_input);
                Linear { weight, bias: bias.then(|| self.uniform([d_output], d_input)) }
            }
            Initialization::Gpt => {
                let weight = self.normal([d_input, d_output], deviation);
                Linear { weight, bias: bias.then(|| self.constant([d_output], 0.0)) }
            }
        }
    }

    /// Adds `shift` to the biases of the outputs `range`.
    ///
    /// # Panics
    /// When the layer has no bias or not these outputs.
    pub fn shift_bias(&self, mut linear: Linear, range: Range<usize>, shift: f64) -> Linear {
        let bias = linear.bias.as_ref().expect("the layer has a bias").val();
        let mut values: Vec<f32> = bias.into_data().try_to_vec().expect("biases are f32");
        values[range].iter_mut().for_each(|value| *value += shift as f32);
        let shape = [values.len()];
        linear.bias = Some(Param::from_tensor(Tensor::from_data(TensorData::new(values, shape), &self.device)));
        linear
    }

    fn fill<const D: usize>(&mut self, shape: [usize; D], mut value: impl FnMut(&mut Self) -> f32) -> Param<Tensor<D>> {
        let values: Vec<f32> = (0..shape.iter().product()).map(|_| value(self)).collect();
        Param::from_tensor(Tensor::from_data(TensorData::new(values, shape), &self.device))
    }

    /// Uniform in [0, 1).
    fn unit(&mut self) -> f32 {
        (self.rng.next_u32() >> 8) as f32 / (1 << 24) as f32
    }

    /// Standard normal, by the Box–Muller transform.
    fn gauss(&mut self) -> f32 {
        let radius = (-2.0 * (1.0 - f64::from(self.unit())).ln()).sqrt();
        let angle = std::f64::consts::TAU * f64::from(self.unit());
        (radius * angle.cos()) as f32
    }
}
