//! A minGRU in your own network: a Burn module with a loss and an optimiser that the library knows nothing about. It learns the moving
//! average of a series.
//!
//! Run with `cargo build --release --workspace --example own_network && target/release/examples/own_network`.

use burn::module::Module;
use burn::nn::Linear;
use burn::optim::{AdamWConfig, GradientsParams};
use burn::tensor::{Device, Tensor, TensorData};
use minrnn::Result;
use minrnn::nn::{Hidden, Initializer, MinGru, Mixer};
use minrnn::ops::StepCodes;
use minrnn::rng::{Purpose, stream};
use minrnn_model::{Candidate, ModelConfig};
use rand::Rng;

/// Series per batch, and steps of each.
const ROWS: usize = 16;
const STEPS: usize = 32;

/// A number in and a number out at every step, with a memory between.
#[derive(Module, Debug)]
pub struct Network {
    input: Linear,
    memory: MinGru,
    output: Linear,
}

impl Network {
    pub fn new(seed: u64, device: &Device) -> Result<Self> {
        let layer = ModelConfig { candidate: Candidate::Identity, ..ModelConfig::of_layer(16) }.checked()?;
        let mut init = Initializer::new(seed, device);
        Ok(Self { input: init.linear(1, 16), memory: MinGru::new(&layer, 0, &mut init), output: init.linear(16, 1) })
    }

    /// `[B, T, 1]` → `[B, T, 1]` starting from `state`, and the state after the last step.
    pub fn forward(&self, x: Tensor<3>, state: Hidden) -> (Tensor<3>, Hidden) {
        let (y, state) = self.memory.forward(self.input.forward(x), state, &StepCodes::dense());
        (self.output.forward(y), state)
    }
}

/// The output of `network` for all steps of `x` at once.
pub fn at_once(network: &Network, x: Tensor<3>) -> Tensor<3> {
    let state = network.memory.init_state(x.dims()[0]);
    network.forward(x, state).0
}

/// The same, one step after the other.
pub fn step_by_step(network: &Network, x: Tensor<3>) -> Tensor<3> {
    let [batch_size, seq_len, _] = x.dims();
    let mut state = network.memory.init_state(batch_size);
    let mut outputs = Vec::new();
    for t in 0..seq_len {
        let (y, next) = network.forward(x.clone().narrow(1, t, 1), state);
        outputs.push(y);
        state = next;
    }
    Tensor::cat(outputs, 1)
}

/// The mean absolute error.
fn loss(network: &Network, [x, expected]: [Tensor<3>; 2]) -> Tensor<1> {
    (at_once(network, x) - expected).abs().mean()
}

/// Numbers in [−1, 1) and their moving averages, both `[ROWS, STEPS, 1]`.
pub fn series(purpose: Purpose, index: u64, device: &Device) -> [Tensor<3>; 2] {
    let mut rng = stream(0, purpose, index);
    let numbers: Vec<f32> = (0..ROWS * STEPS).map(|_| (rng.next_u32() >> 8) as f32 / (1 << 23) as f32 - 1.0).collect();
    let mut averages = Vec::new();
    for row in numbers.chunks_exact(STEPS) {
        let mut average = 0.0;
        for number in row {
            average += 0.1 * (number - average);
            averages.push(average);
        }
    }
    [numbers, averages].map(|values| Tensor::from_data(TensorData::new(values, [ROWS, STEPS, 1]), device))
}

/// A trained network, with its loss on series that it has not learned from before and after.
pub fn learn() -> Result<(Network, [f32; 2])> {
    let device = Device::flex().autodiff();
    let held_out = || series(Purpose::ValidationData, 0, &device);
    let mut network = Network::new(1, &device)?;
    let before = loss(&network, held_out()).into_scalar::<f32>();
    let mut optimizer = AdamWConfig::new().init();
    for iteration in 0..300 {
        let error = loss(&network, series(Purpose::TrainData, iteration, &device));
        let gradients = GradientsParams::from_grads(error.backward(), &network);
        network = optimizer.step(1e-2, network, gradients);
    }
    let after = loss(&network, held_out()).into_scalar::<f32>();
    Ok((network.valid(), [before, after]))
}

fn main() -> Result<()> {
    let (network, [before, after]) = learn()?;
    println!("mean absolute error: {before:.3} before, {after:.3} after");

    let [x, _] = series(Purpose::TestData, 0, &Device::flex());
    let difference = at_once(&network, x.clone()) - step_by_step(&network, x);
    println!("between the whole and step by step: at most {:.1e}", difference.abs().max().into_scalar::<f32>());
    Ok(())
}
