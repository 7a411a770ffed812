//! Shared by the experiments: training a module on batches generated for every iteration, and the accuracy of a language model.
#![allow(dead_code, reason = "every experiment uses its own part")]

use burn::module::Module;
use burn::tensor::{Device, Tensor};
use minrnn::Result;
use minrnn::data::Batch;
use minrnn::model::SequenceModel;
use minrnn::nn::Mode;
use minrnn::train::{GradientMap, MicroBatch, Optimizer, TrainConfig};

/// The CPU, with gradients.
pub fn device() -> Device {
    Device::flex().autodiff()
}

/// The first command-line argument as a number of iterations, otherwise `default`.
pub fn iterations(default: u64) -> u64 {
    std::env::args().nth(1).and_then(|text| text.parse().ok()).unwrap_or(default)
}

/// `module` after `iterations` updates of AdamW, with a learning rate that rises to `lr` and falls along a cosine; `loss` returns the loss
/// of an iteration.
pub fn train<M: Module>(mut module: M, iterations: u64, lr: f64, loss: impl Fn(&M, u64) -> Tensor<1>) -> Result<M> {
    const WARMUP: f64 = 50.0;
    let mut optimizer = Optimizer::new(&TrainConfig { weight_decay: 0.0, ..Default::default() });
    for iteration in 0..iterations {
        let value = loss(&module, iteration);
        let gradients = GradientMap::new(&module, &value.backward());
        let done = iteration as f64 / iterations as f64;
        let now = lr * ((iteration + 1) as f64 / WARMUP).min(1.0) * (0.55 + 0.45 * (std::f64::consts::PI * done).cos());
        module = optimizer.update(module, gradients, 1.0, now, iteration)?.0;
    }
    Ok(module)
}

/// The masked cross-entropy of `model` on `batch`, from its initial state.
pub fn loss(model: &SequenceModel, batch: &Batch) -> Tensor<1> {
    let MicroBatch { inputs, targets, mask, steps } = MicroBatch::new(batch, &device()).expect("a batch fits itself");
    model.loss(inputs, targets, mask, model.init_state(batch.batch_size), &steps, Mode::Evaluate).0
}

/// The share of scored steps at which the most likely token is the right one.
pub fn accuracy(model: &SequenceModel, batch: &Batch) -> f64 {
    let MicroBatch { inputs, steps, .. } = MicroBatch::new(batch, &device()).expect("a batch fits itself");
    let (logits, _) = model.forward(inputs, model.init_state(batch.batch_size), &steps, Mode::Evaluate);
    let vocab_size = logits.dims()[2];
    let logits: Vec<f32> = logits.into_data().try_to_vec().expect("logits are f32");
    let scored = |i: usize| batch.mask.as_ref().is_none_or(|mask| mask[i] > 0.0);
    let right = |i: usize| {
        let row = &logits[i * vocab_size..][..vocab_size];
        row.iter().all(|&logit| logit <= row[batch.targets.tokens()[i] as usize])
    };
    let places: Vec<usize> = (0..batch.targets.tokens().len()).filter(|&i| scored(i)).collect();
    places.iter().filter(|&&i| right(i)).count() as f64 / places.len() as f64
}
