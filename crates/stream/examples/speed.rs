//! Prints tokens per second of steps and prompts, and the time of one update of a tiny session, best of many repetitions.
//!
//! `cargo run --release -p minrnn-stream --example speed -- [threads] [mixer] [weights]`. The model is that of the Shakespeare experiments
//! (D = 384, E = 768, three layers with convolution and MLP, 65 tokens) with drawn weights.

use std::error::Error;
use std::time::Instant;

use minrnn_model::{FeedForwardKind, MixerKind, ModelConfig, Pooling, WeightFormat, Weights, write_safetensors};
use minrnn_stream::{Model, PackedModel, Workspace};

#[path = "../tests/common/mod.rs"]
mod common;

fn weights(config: &ModelConfig) -> Result<Weights, Box<dyn Error>> {
    let file = tempfile::NamedTempFile::new()?;
    let tensors = common::tensors(config, 1);
    let items = tensors.into_iter().map(|(name, (shape, values))| (name, shape, values.into()));
    write_safetensors(file.path(), items, None)?;
    Ok(Weights::read(file.path())?)
}

/// Seconds of the fastest of `repetitions` runs.
fn best(repetitions: usize, mut run: impl FnMut()) -> f64 {
    let time = |_| {
        let start = Instant::now();
        run();
        start.elapsed().as_secs_f64()
    };
    (0..repetitions).map(time).fold(f64::INFINITY, f64::min)
}

/// Tokens per second of `steps` steps of `batch` sessions.
fn decode(model: &Model, batch: usize, steps: usize) -> f64 {
    let (mut state, mut workspace) = (model.init_state(batch).unwrap(), Workspace::new());
    let mut logits = vec![0.0; batch * model.vocab_size()];
    let tokens: Vec<u32> = (0..batch as u32).collect();
    let seconds = best(100, || (0..steps).for_each(|_| model.step(&tokens, &mut state, &mut logits, &mut workspace).unwrap()));
    (batch * steps) as f64 / seconds
}

/// Seconds per update when `sessions` sessions take turns.
fn updates(model: &Model, sessions: usize, steps: usize) -> f64 {
    let (mut state, mut workspace, mut outputs) = (model.init_state(sessions).unwrap(), Workspace::new(), vec![0.0; model.outputs()]);
    let mut row = 0;
    let seconds = best(100, || {
        for _ in 0..steps {
            row = (row + 1) % sessions;
            model.step_rows_values(&[row], &[0.5, -0.25], &mut state, &mut outputs, &mut workspace).unwrap();
        }
    });
    seconds / steps as f64
}

fn prefill(model: &Model, len: usize) -> f64 {
    let prompt: Vec<u32> = (0..len as u32).map(|i| i % model.vocab_size() as u32).collect();
    let (mut workspace, mut logits) = (Workspace::new(), vec![0.0; model.vocab_size()]);
    len as f64 / best(50, || model.prefill(&[&prompt], &mut model.init_state(1).unwrap(), &mut logits, &mut workspace).unwrap())
}

fn main() -> Result<(), Box<dyn Error>> {
    let threads = std::env::args().nth(1).map_or(Ok(0), |threads| threads.parse())?;
    let mixer = std::env::args().nth(2).map_or(Ok(MixerKind::MinGru), |mixer| mixer.parse())?;
    let only = std::env::args().nth(3);
    let formats = || WeightFormat::ALL.iter().copied().filter(|format| only.as_deref().is_none_or(|only| only == format.name()));
    let pool = rayon::ThreadPoolBuilder::new().num_threads(threads).build()?;
    let config = ModelConfig { mixer, vocab_size: 65, d_model: 384, n_layers: 3, conv: true, ..Default::default() };
    let directory = tempfile::tempdir()?;
    println!("{mixer}, {} threads: tokens per second", pool.current_num_threads());
    for format in formats() {
        let path = directory.path().join(format.name());
        PackedModel::write(&path, &config, &mut weights(&config)?, format, &[])?;
        let start = Instant::now();
        let model = Model::load(&path)?;
        let load = start.elapsed().as_secs_f64() * 1e3;
        let [one, many, prompt] = pool.install(|| [decode(&model, 1, 16), decode(&model, 64, 1), prefill(&model, 2048)]);
        let size = std::fs::metadata(&path)?.len() as f64 / 1e6;
        println!("{format:>5} {size:6.1} MB, load {load:5.1} ms: decode {one:7.0}, batch 64 {many:8.0}, prefill of 2048 {prompt:8.0}");
    }
    let tiny = ModelConfig { vocab_size: 64, d_model: 64, expansion: 1.0, n_layers: 1, conv: false, ff: FeedForwardKind::None, ..config };
    for format in formats() {
        let model = Model::new(&tiny, &mut weights(&tiny)?, format)?;
        println!("{format:>5} one layer 64 wide: {:.2} µs an update", 1e6 / pool.install(|| decode(&model, 1, 500)));
    }
    // A classifier for a table of two columns; all other settings are the defaults.
    let classifier =
        ModelConfig { mixer, input_width: 2, n_outputs: 3, pooling: Pooling::Mean, d_model: 64, n_layers: 1, ..ModelConfig::default() };
    for format in formats() {
        let model = common::drawn_model(&classifier, format);
        for sessions in [1, 1000] {
            let seconds = pool.install(|| updates(&model, sessions, 1000));
            println!(
                "{format:>5} a classifier of two columns, one layer 64 wide, {sessions:4} sessions in turn: {:.2} µs an update",
                1e6 * seconds
            );
        }
    }
    Ok(())
}
