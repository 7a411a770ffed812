//! The benefit of an associative memory: pairs of a key and a value are read once, then the value of every key is asked for, in another
//! order. The layers have the same number of weights.
//!
//! ```text
//! cargo build --release --workspace --examples && target/release/examples/recall [iterations]
//! ```

mod common;

use minrnn::data::Batch;
use minrnn::model::SequenceModel;
use minrnn::rng::{Purpose, stream};
use minrnn::{Result, Segments};
use minrnn_model::{MixerKind, ModelConfig};
use rand::{Rng, RngExt};

const BATCH_SIZE: usize = 32;
const PAIRS: usize = 12;
/// Keys are the tokens below this, values the others.
const KEYS: u32 = 32;

fn shuffle(values: &mut [u32], rng: &mut impl Rng) {
    for last in (1..values.len()).rev() {
        values.swap(last, rng.random_range(0..=last as u64) as usize);
    }
}

/// Rows of k v k v … k k k; the target under each of the last keys is its value.
fn lists(purpose: Purpose, index: u64) -> Batch {
    let mut rng = stream(0, purpose, index);
    let (mut inputs, mut targets, mut mask) = (Vec::new(), Vec::new(), Vec::new());
    for _ in 0..BATCH_SIZE {
        let mut keys: Vec<u32> = (0..KEYS).collect();
        shuffle(&mut keys, &mut rng);
        keys.truncate(PAIRS);
        let mut value_of = [0; KEYS as usize];
        for &key in &keys {
            value_of[key as usize] = KEYS + rng.random_range(0..KEYS);
            inputs.extend([key, value_of[key as usize]]);
        }
        shuffle(&mut keys, &mut rng);
        targets.extend([0; 2 * PAIRS]);
        mask.extend([0.0; 2 * PAIRS]);
        inputs.extend(&keys);
        targets.extend(keys.iter().map(|&key| value_of[key as usize]));
        mask.extend([1.0; PAIRS]);
    }
    let (inputs, targets, segments) = (inputs.into(), targets.into(), Segments::dense());
    Batch { inputs, targets, mask: Some(mask), segments, batch_size: BATCH_SIZE, seq_len: 3 * PAIRS }
}

fn main() -> Result<()> {
    let iterations = common::iterations(1500);
    println!("mixer            parameters  values recalled (chance {:.3})", 1.0 / f64::from(KEYS));
    // Three matrices of width 64 have as many weights as four of width 48.
    for (mixer, expansion) in [(MixerKind::MinGru, 4.0 / 3.0), (MixerKind::Delta, 1.0)] {
        let config = ModelConfig {
            mixer,
            expansion,
            vocab_size: 2 * KEYS as usize,
            d_model: 48,
            n_layers: 2,
            n_heads: 2,
            ff_mult: 1.0,
            conv: true,
            ..Default::default()
        };
        let model = SequenceModel::new(&config, 1, &common::device())?;
        let parameters = minrnn::checkpoint::parameter_count(&model);
        let train = |model: &SequenceModel, iteration| common::loss(model, &lists(Purpose::TrainData, iteration));
        let model = common::train(model, iterations, 5e-3, train)?;
        let recalled = (0..4).map(|i| common::accuracy(&model, &lists(Purpose::TestData, i))).sum::<f64>() / 4.0;
        println!("{mixer:<16} {parameters:>10}  {recalled:.3}");
    }
    Ok(())
}
