//! The benefit of signs in the recurrence: the parity of bit strings, read bit by bit. Trained on strings of up to 16 bits, tested on the
//! last 16 of 64.
//!
//! ```text
//! cargo build --release --workspace --examples && target/release/examples/parity [iterations]
//! ```

mod common;

use minrnn::data::Batch;
use minrnn::model::SequenceModel;
use minrnn::rng::{Purpose, stream};
use minrnn::{Result, Segments};
use minrnn_model::{Candidate, InitialState, MixerKind, ModelConfig};
use rand::Rng;

const BATCH_SIZE: usize = 64;

/// Strings of `seq_len` bits; the target of a step is the parity so far, scored from step `from` on.
fn strings(seq_len: usize, from: usize, purpose: Purpose, index: u64) -> Batch {
    let mut rng = stream(0, purpose, index);
    let inputs: Vec<u32> = (0..BATCH_SIZE * seq_len).map(|_| rng.next_u32() >> 31).collect();
    let parity = |(i, _): (usize, &u32)| inputs[i / seq_len * seq_len..=i].iter().sum::<u32>() % 2;
    let targets = inputs.iter().enumerate().map(parity).collect::<Vec<_>>().into();
    let mask = (0..BATCH_SIZE * seq_len).map(|i| f32::from(i % seq_len >= from)).collect();
    let segments = Segments::dense();
    Batch { inputs: inputs.into(), targets, mask: Some(mask), segments, batch_size: BATCH_SIZE, seq_len }
}

fn main() -> Result<()> {
    let iterations = common::iterations(1000);
    println!("mixer            parameters  accuracy at 1–16 bits  at 49–64 bits");
    for mixer in [MixerKind::MinGru, MixerKind::SignedMinGru] {
        let config = ModelConfig {
            mixer,
            vocab_size: 2,
            d_model: 32,
            n_layers: 1,
            ff_mult: 2.0,
            candidate: Candidate::Tanh,
            initial_state: InitialState::Learned,
            ..Default::default()
        };
        let model = SequenceModel::new(&config, 1, &common::device())?;
        let parameters = minrnn::checkpoint::parameter_count(&model);
        let batch = |iteration| strings(16, 0, Purpose::TrainData, iteration);
        let model = common::train(model, iterations, 5e-3, |model, iteration| common::loss(model, &batch(iteration)))?;
        let short = common::accuracy(&model, &strings(16, 0, Purpose::TestData, 0));
        let long = common::accuracy(&model, &strings(64, 48, Purpose::TestData, 1));
        println!("{mixer:<16} {parameters:>10}  {short:>21.3}  {long:>13.3}");
    }
    Ok(())
}
