//! Your own training loop on your own data: the library provides the model, its gradients, the optimiser and the evaluation.
//!
//! Rows are endless streams of tokens, few of which are signs, and at every step the last sign is asked for. They are read in windows, many of which
//! have no sign for a while: a model whose state is carried from window to window still knows it.
//!
//! Run with `cargo build --release --workspace --example own_loop && target/release/examples/own_loop`.

use std::path::Path;
use std::sync::atomic::AtomicBool;

use minrnn::burn::module::Module;
use minrnn::burn::tensor::Device;
use minrnn::checkpoint::save_model;
use minrnn::data::{Carry, FixedBatches};
use minrnn::prelude::*;
use minrnn::rng::{Purpose, key};
use minrnn::train::{Evaluation, MicroBatch, Optimizer, Schedule, TrainConfig, differentiate, evaluate};
use minrnn_model::{CheckpointConfig, WeightFormat, likeliest, read_checkpoint};
use minrnn_stream::Workspace;

/// Number of tokens; those below `SIGNS` are signs.
const TOKENS: u32 = 32;
const SIGNS: u32 = 4;
/// Sequences per batch, and steps per window.
const ROWS: usize = 16;
const STEPS: usize = 16;

/// Batch i holds window i of every stream.
struct LastSign {
    purpose: Purpose,
    carry: Carry,
}

impl LastSign {
    fn token(&self, row: usize, step: u64) -> u32 {
        (key(0, self.purpose, ((row as u64) << 32) | step) % u64::from(TOKENS)) as u32
    }
}

impl BatchSource for LastSign {
    fn batch(&mut self, iteration: u64, _micro: u64) -> Result<Batch> {
        let (mut inputs, mut targets, mut mask) = (Vec::new(), Vec::new(), Vec::new());
        for row in 0..ROWS {
            for step in (iteration * STEPS as u64..).take(STEPS) {
                let sign = (0..=step).rev().map(|step| self.token(row, step)).find(|&token| token < SIGNS);
                inputs.push(self.token(row, step));
                targets.push(sign.unwrap_or(0));
                // Nothing is asked before the first sign of a stream.
                mask.push(f32::from(sign.is_some()));
            }
        }
        let segments = Segments::dense();
        Ok(Batch { inputs: inputs.into(), targets: targets.into(), mask: Some(mask), segments, batch_size: ROWS, seq_len: STEPS })
    }

    fn carry(&self) -> Carry {
        self.carry
    }

    fn tokens_per_batch(&self) -> usize {
        ROWS * STEPS
    }
}

/// `model` after all the updates of `settings`.
fn train(mut model: SequenceModel, source: &mut impl BatchSource, settings: &TrainConfig) -> Result<SequenceModel> {
    let (mut optimizer, schedule) = (Optimizer::new(settings), Schedule::new(settings));
    let mut carried = None;
    for iteration in 0..settings.max_iterations {
        let batch = MicroBatch::new(&source.batch(iteration, 0)?, &model.device())?;
        let mode = Mode::Train { dropout_key: key(settings.seed, Purpose::Dropout, iteration) };
        let found = differentiate(&model, batch, carried.take(), mode, settings.checkpoint_blocks);
        // If the source says so, the next batch continues where this one ended.
        carried = (source.carry() != Carry::Nowhere).then_some(found.state);
        let lr = schedule.lr(iteration);
        (model, _) = optimizer.update(model, found.gradients, 1.0, lr, iteration)?;
    }
    Ok(model)
}

/// The measures of `model` on streams that it has not learned from.
fn measure(model: &SequenceModel, carry: Carry) -> Result<Evaluation> {
    let held_out = LastSign { purpose: Purpose::ValidationData, carry };
    let found = evaluate(&model.valid(), &mut FixedBatches::new(held_out, 10), &AtomicBool::new(false))?;
    Ok(found.expect("nobody stops it"))
}

/// A trained model, and its measures.
pub struct Learned {
    pub model: SequenceModel,
    pub before: Evaluation,
    pub after: Evaluation,
}

/// The model to train.
pub fn config() -> ModelConfig {
    ModelConfig { vocab_size: TOKENS as usize, n_outputs: SIGNS as usize, d_model: 64, n_layers: 1, ..Default::default() }
}

/// Trains with the state carried according to `carry`.
pub fn learn(carry: Carry) -> Result<Learned> {
    let settings = TrainConfig { max_iterations: 300, lr: 1e-2, warmup: 20, ..Default::default() };
    let model = SequenceModel::new(&config(), settings.seed, &Device::flex().autodiff())?;
    let before = measure(&model, carry)?;
    let model = train(model, &mut LastSign { purpose: Purpose::TrainData, carry }, &settings)?;
    Ok(Learned { before, after: measure(&model, carry)?, model })
}

/// The last sign of `tokens` as predicted by the model in `directory`, with the runtime reading one token at a time.
pub fn last_sign(directory: &Path, tokens: &[u32]) -> Result<usize> {
    let (config, mut weights) = read_checkpoint(directory)?;
    let model = minrnn_stream::Model::new(&config.model, &mut weights, WeightFormat::F32)?;
    let (mut session, mut workspace) = (model.init_state(1)?, Workspace::new());
    let mut scores = vec![0.0; model.outputs()];
    for &token in tokens {
        model.step(&[token], &mut session, &mut scores, &mut workspace)?;
    }
    Ok(likeliest(&scores))
}

fn main() -> Result<()> {
    let folder = tempfile::tempdir().expect("a folder that goes away");
    for (name, carry) in [("every-window-anew", Carry::Nowhere), ("carried", Carry::ToNextBatch)] {
        let Learned { model, before, after } = learn(carry)?;
        println!("{name}: loss {:.3} before, {:.3} after", before.loss, after.loss);

        let directory = folder.path().join(name);
        save_model(&directory, &CheckpointConfig::new(config()), &model, None)?;
        let tokens = [2, 20, 9, 31];
        println!("the last sign of {tokens:?}: {}", last_sign(&directory, &tokens)?);
    }
    Ok(())
}
