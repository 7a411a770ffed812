//! Initial values of parameters, from a seeded generator of our own.
//!
//! Linear and convolution weights and biases are uniform in ±1/√fan_in, embeddings and learned initial states standard normal
//! (models.md §2.8). The values depend on the seed and the order in which a model is built, on nothing else.

use std::ops::Range;

use burn::module::Param;
use burn::nn::Linear;
use burn::tensor::{Device, Tensor, TensorData};
use rand::Rng;

use crate::rng::{self, ChaCha8Rng, Purpose};

/// Makes parameters on a device.
pub struct Initializer {
    rng: ChaCha8Rng,
    device: Device,
}

impl Initializer {
    /// Parameters on `device`, drawn from `seed`.
    pub fn new(seed: u64, device: &Device) -> Self {
        Self { rng: rng::stream(seed, Purpose::Init, 0), device: device.clone() }
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

    /// The elements `values`.
    pub fn vector(&self, values: Vec<f32>) -> Param<Tensor<1>> {
        let shape = [values.len()];
        Param::from_tensor(Tensor::from_data(TensorData::new(values, shape), &self.device))
    }

    /// A linear layer `d_input` → `d_output` with PyTorch's default initialisation.
    pub fn linear(&mut self, d_input: usize, d_output: usize) -> Linear {
        self.linear_with_bias(d_input, d_output, true)
    }

    /// The same, with or without a bias.
    pub fn linear_with_bias(&mut self, d_input: usize, d_output: usize, bias: bool) -> Linear {
        let weight = self.uniform([d_input, d_output], d_input);
        let bias = bias.then(|| self.uniform([d_output], d_input));
        Linear { weight, bias }
    }

    /// Adds `shift` to the biases of the outputs `range`.
    ///
    /// # Panics
    /// When the layer has no bias or not these outputs.
    pub fn shift_bias(&self, mut linear: Linear, range: Range<usize>, shift: f64) -> Linear {
        let bias = linear.bias.as_ref().expect("the layer has a bias").val();
        let mut values: Vec<f32> = bias.into_data().try_to_vec().expect("biases are f32");
        values[range].iter_mut().for_each(|value| *value += shift as f32);
        linear.bias = Some(self.vector(values));
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
