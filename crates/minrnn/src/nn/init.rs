//! Initial values of parameters, from our own seeded generator.
//!
//! Linear and convolution weights and biases are uniform in ±1/√fan_in, embeddings and learned initial states standard normal (PyTorch's
//! defaults), or all of them as in GPT-2 (Radford et al. 2019, as in nanoGPT's code). The values depend only on the seed and the order in
//! which a model is built.

use std::ops::Range;

use burn::module::Param;
use burn::nn::Linear;
use burn::tensor::{Device, Tensor, TensorData};
use minrnn_model::{CheckedConfig, Initialization};
use rand::Rng;

use crate::rng::{self, ChaCha8Rng, Purpose};

/// Deviation of xLSTM's weights, √(2/(5D)) (Beck et al. 2024, arXiv:2405.04517, as in the authors' code).
pub(super) fn xlstm_deviation(d_model: usize) -> f32 {
    (2.0 / (5 * d_model) as f32).sqrt()
}

/// Deviation of xLSTM's projections back to the residual stream, 2/(blocks · √D).
pub(super) fn xlstm_output_deviation(d_model: usize, n_layers: usize) -> f32 {
    2.0 / (n_layers as f32 * (d_model as f32).sqrt())
}
/// Deviation of GPT-2's weights.
const GPT_DEVIATION: f32 = 0.02;

/// Creates parameters on a device.
pub struct Initializer {
    rng: ChaCha8Rng,
    device: Device,
    kind: Initialization,
    /// Deviation of GPT-2's weights at the end of a residual branch, of which each block has two.
    residual_deviation: f32,
}

impl Initializer {
    /// Parameters on `device`, drawn from `seed`.
    pub fn new(seed: u64, device: &Device) -> Self {
        let rng = rng::stream(seed, Purpose::Init, 0);
        Self { rng, device: device.clone(), kind: Initialization::Default, residual_deviation: GPT_DEVIATION }
    }

    /// Uses the initialisation described by `config`.
    pub fn for_model(self, config: &CheckedConfig) -> Self {
        Self { kind: config.init, residual_deviation: GPT_DEVIATION / (2.0 * config.n_layers as f32).sqrt(), ..self }
    }

    /// The device of the parameters.
    pub fn device(&self) -> &Device {
        &self.device
    }

    /// Uniform in ±1/√`fan_in`.
    pub fn uniform<const D: usize>(&mut self, shape: [usize; D], fan_in: usize) -> Param<Tensor<D>> {
        let bound = 1.0 / (fan_in as f32).sqrt();
        self.fill(shape, |init| (2.0 * init.unit() - 1.0) * bound)
    }

    /// Standard normal, scaled by `deviation`.
    pub fn normal<const D: usize>(&mut self, shape: [usize; D], deviation: f32) -> Param<Tensor<D>> {
        self.fill(shape, |init| init.gauss() * deviation)
    }

    /// `map` applied to numbers uniform in [0, 1).
    pub fn map_uniform<const D: usize>(&mut self, shape: [usize; D], map: impl Fn(f32) -> f32) -> Param<Tensor<D>> {
        self.fill(shape, |init| map(init.unit()))
    }

    /// Uniform from `low` to `high`.
    pub fn between<const D: usize>(&mut self, shape: [usize; D], [low, high]: [f64; 2]) -> Param<Tensor<D>> {
        self.fill(shape, |init| (low + (high - low) * f64::from(init.unit())) as f32)
    }

    /// All elements equal to `value`.
    pub fn constant<const D: usize>(&mut self, shape: [usize; D], value: f32) -> Param<Tensor<D>> {
        self.fill(shape, |_| value)
    }

    /// Uniform in ±`gain` √(6 / (rows + columns)).
    pub fn xavier(&mut self, [rows, columns]: [usize; 2], gain: f64) -> Param<Tensor<2>> {
        let bound = (gain * (6.0 / (rows + columns) as f64).sqrt()) as f32;
        self.fill([rows, columns], |init| (2.0 * init.unit() - 1.0) * bound)
    }

    /// Element i is `value(i)`.
    pub fn vector(&self, len: usize, value: impl Fn(usize) -> f64) -> Param<Tensor<1>> {
        self.values([len], (0..len).map(|i| value(i) as f32).collect())
    }

    /// A matrix whose rows or columns, whichever are fewer, are orthogonal with length `gain`.
    pub fn orthogonal(&mut self, [rows, columns]: [usize; 2], gain: f64) -> Param<Tensor<2>> {
        let (vectors, len) = (rows.min(columns), rows.max(columns));
        let mut basis: Vec<Vec<f64>> = Vec::with_capacity(vectors);
        while basis.len() < vectors {
            let mut next: Vec<f64> = (0..len).map(|_| self.gauss().into()).collect();
            for old in &basis {
                let along: f64 = old.iter().zip(&next).map(|(a, b)| a * b).sum();
                next.iter_mut().zip(old).for_each(|(x, old)| *x -= along * old);
            }
            let norm = next.iter().map(|x| x * x).sum::<f64>().sqrt();
            // A draw in the span of the others is discarded for the next one.
            if norm > 1e-6 {
                next.iter_mut().for_each(|x| *x /= norm);
                basis.push(next);
            }
        }
        let at = |i: usize, j: usize| if rows <= columns { basis[i][j] } else { basis[j][i] };
        self.values([rows, columns], (0..rows * columns).map(|k| (gain * at(k / columns, k % columns)) as f32).collect())
    }

    /// A linear layer `d_input` → `d_output` with PyTorch's default initialisation, or GPT-2's.
    pub fn linear(&mut self, d_input: usize, d_output: usize) -> Linear {
        self.linear_with_bias(d_input, d_output, true)
    }

    /// The same, with or without a bias.
    pub fn linear_with_bias(&mut self, d_input: usize, d_output: usize, bias: bool) -> Linear {
        self.linear_of(d_input, d_output, bias, GPT_DEVIATION)
    }

    /// The linear layer at the end of a residual branch.
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
    /// When the layer has no bias or lacks these outputs.
    pub fn shift_bias(&self, mut linear: Linear, range: Range<usize>, shift: f64) -> Linear {
        let bias = linear.bias.as_ref().expect("the layer has a bias").val();
        let mut values: Vec<f32> = bias.into_data().try_to_vec().expect("biases are f32");
        values[range].iter_mut().for_each(|value| *value += shift as f32);
        linear.bias = Some(self.values([values.len()], values));
        linear
    }

    /// The given elements.
    ///
    /// # Panics
    /// When their number does not match the shape.
    pub fn values<const D: usize>(&self, shape: [usize; D], values: Vec<f32>) -> Param<Tensor<D>> {
        Param::from_tensor(Tensor::from_data(TensorData::new(values, shape), &self.device))
    }

    fn fill<const D: usize>(&mut self, shape: [usize; D], mut value: impl FnMut(&mut Self) -> f32) -> Param<Tensor<D>> {
        let values = (0..shape.iter().product()).map(|_| value(self)).collect();
        self.values(shape, values)
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn orthogonal_matrices_have_orthogonal_rows_or_columns() {
        let mut init = Initializer::new(1, &Device::flex());
        for shape in [[3, 7], [7, 3], [4, 4], [1, 5]] {
            let matrix = init.orthogonal(shape, 2.0).val();
            let gram =
                if shape[0] <= shape[1] { matrix.clone().matmul(matrix.transpose()) } else { matrix.clone().transpose().matmul(matrix) };
            let n = gram.dims()[0];
            for (i, x) in gram.into_data().try_to_vec::<f32>().unwrap().into_iter().enumerate() {
                let expected = if i / n == i % n { 4.0 } else { 0.0 };
                assert!((x - expected).abs() < 1e-5, "{shape:?}: {x}, expected {expected}");
            }
        }
    }
}
