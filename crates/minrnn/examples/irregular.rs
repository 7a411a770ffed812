//! The benefit of times in the recurrence: from events at irregular times, every step is to predict a trace that decays with time, Σ x_i
//! e^{−r (t − t_i)}. Both cells read the event and the time since the previous one; one of them also forgets by that time. Trained on gaps
//! of 1 on average, tested on these and on gaps of 4.
//!
//! ```text
//! cargo build --release --workspace --examples && target/release/examples/irregular [iterations]
//! ```

mod common;

use burn::module::Module;
use burn::nn::Linear;
use burn::tensor::{Tensor, TensorData};
use minrnn::Result;
use minrnn::nn::{DecayMinGru, Initializer, MinGru, Mixer};
use minrnn::ops::StepCodes;
use minrnn::rng::{Purpose, stream};
use minrnn_model::{Candidate, ModelConfig};
use rand::Rng;

const BATCH_SIZE: usize = 32;
const SEQ_LEN: usize = 64;
const RATE: f32 = 0.1;
const D_MODEL: usize = 16;

#[derive(Module, Debug)]
#[allow(clippy::large_enum_variant, reason = "there is one of it")]
enum Cell {
    Plain(MinGru),
    Timed(DecayMinGru),
}

#[derive(Module, Debug)]
struct Model {
    embedding: Linear,
    cell: Cell,
    head: Linear,
}

impl Model {
    fn new(timed: bool) -> Self {
        let mut init = Initializer::new(1, &common::device());
        let config = ModelConfig { input_width: 2, n_outputs: 1, d_model: D_MODEL, candidate: Candidate::Identity, ..Default::default() };
        let config = config.checked().expect("a valid model");
        let cell = match timed {
            false => Cell::Plain(MinGru::new(&config, 0, &mut init)),
            true => Cell::Timed(DecayMinGru::new(&config, 0, &mut init)),
        };
        Self { embedding: init.linear(2, D_MODEL), cell, head: init.linear(D_MODEL, 1) }
    }

    /// The trace after every step, `[B, T, 1]`.
    fn forward(&self, signal: &IoKind) -> Tensor<3> {
        let (events, gaps) = (tensor(&signal.events), tensor(&signal.gaps));
        let x = Tensor::cat(vec![events.unsqueeze_dim::<3>(2), gaps.clone().unsqueeze_dim(2)], 2);
        let (x, steps) = (self.embedding.forward(x), StepCodes::dense());
        let y = match &self.cell {
            Cell::Plain(cell) => cell.forward(x, cell.init_state(BATCH_SIZE), &steps).0,
            Cell::Timed(cell) => cell.forward_timed(x, gaps, cell.init_state(BATCH_SIZE), &steps).0,
        };
        self.head.forward(y)
    }

    /// Mean squared error.
    fn loss(&self, signal: &IoKind) -> Tensor<1> {
        let difference = self.forward(signal).squeeze_dim::<2>(2) - tensor(&signal.traces);
        (difference.clone() * difference).mean()
    }
}

/// Rows of `SEQ_LEN` steps.
struct IoKind {
    events: Vec<f32>,
    /// Time since the previous event, exponentially distributed.
    gaps: Vec<f32>,
    traces: Vec<f32>,
}

fn signal(mean_gap: f32, purpose: Purpose, index: u64) -> IoKind {
    let mut rng = stream(0, purpose, index);
    let mut unit = || (rng.next_u32() >> 8) as f32 / (1 << 24) as f32;
    let mut signal = IoKind { events: Vec::new(), gaps: Vec::new(), traces: Vec::new() };
    for step in 0..BATCH_SIZE * SEQ_LEN {
        let (event, gap) = (2.0 * unit() - 1.0, -mean_gap * (1.0 - unit()).ln());
        let before = if step % SEQ_LEN == 0 { 0.0 } else { signal.traces[step - 1] };
        signal.events.push(event);
        signal.gaps.push(gap);
        signal.traces.push(before * (-RATE * gap).exp() + event);
    }
    signal
}

fn tensor(values: &[f32]) -> Tensor<2> {
    Tensor::from_data(TensorData::new(values.to_vec(), [BATCH_SIZE, SEQ_LEN]), &common::device())
}

fn main() -> Result<()> {
    let iterations = common::iterations(1000);
    println!("cell           parameters  error / variance at gaps of 1  at gaps of 4");
    for (name, timed) in [("min-gru", false), ("decay-min-gru", true)] {
        let model = Model::new(timed);
        let parameters = minrnn::checkpoint::parameter_count(&model);
        let train = |model: &Model, iteration| model.loss(&signal(1.0, Purpose::TrainData, iteration));
        let model = common::train(model, iterations, 1e-2, train)?;
        let error = |mean_gap| {
            let signal = signal(mean_gap, Purpose::TestData, 0);
            let variance = signal.traces.iter().map(|x| x * x).sum::<f32>() / signal.traces.len() as f32;
            model.loss(&signal).into_scalar::<f32>() / variance
        };
        println!("{name:<14} {parameters:>10}  {:>29.5}  {:>12.5}", error(1.0), error(4.0));
    }
    Ok(())
}
