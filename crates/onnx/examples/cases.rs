//! Writes what `tools/check_onnx.py` compares: for every model of the library's laws, a step graph with inputs and outputs of the runtime.
//!
//! ```sh
//! cargo run --release -p minrnn-onnx --example cases -- FOLDER
//! ```
//!
//! `FOLDER/<n>.onnx` is the graph, `FOLDER/<n>.safetensors` has `inputs` `[T, B]` or `[T, B, F]` and `outputs` `[T, B, V]` of 1000 carried steps
//! of three sessions; `FOLDER/speed-<mixer>.onnx` and `.json` are models of one session and the seconds that the runtime takes for a step of
//! each on one thread.

#[path = "../tests/common/mod.rs"]
mod common;

use std::path::Path;
use std::time::Instant;

use common::drawn::{drawn, numbers, tokens, weights};
use common::{configs, every_config, has_fixed_state};
use minrnn_model::{MixerKind, ModelConfig, WeightFormat, write_safetensors};
use minrnn_onnx::{Attached, step_graph};
use minrnn_stream::{Model, Reads, State, Workspace};

const STEPS: usize = 1000;
const SESSIONS: usize = 3;
/// Steps that are timed, after as many to warm up.
const TIMED: usize = 2000;

fn main() {
    let folder = std::env::args().nth(1).expect("give a folder to write to");
    let folder = Path::new(&folder);
    let mut written = 0;
    for config in every_config().iter().filter(|config| has_fixed_state(config)) {
        case(folder, &written.to_string(), config);
        written += 1;
    }
    for &mixer in MixerKind::ALL {
        let config = ModelConfig { vocab_size: 256, d_model: 128, n_layers: 2, ..configs::small(mixer) };
        if has_fixed_state(&config) {
            speed(folder, &format!("speed-{mixer}"), &config);
        }
    }
    println!("{written} models");
}

fn models(folder: &Path, name: &str, config: &ModelConfig) -> Model {
    let tensors = drawn(config, 7);
    let graph = step_graph(config, &mut weights(&tensors), Attached::default()).expect("a graph");
    std::fs::write(folder.join(format!("{name}.onnx")), graph).expect("a file");
    Model::new(config, &mut weights(&tensors), WeightFormat::F32).expect("a model")
}

/// The inputs of `steps` steps, as numbers.
fn inputs(model: &Model, config: &ModelConfig, steps: usize) -> (Vec<usize>, Vec<f32>) {
    match model.reads() {
        Reads::Tokens { .. } => {
            (vec![steps / SESSIONS, SESSIONS], tokens(config, steps, 5).into_iter().map(|token| token as f32).collect())
        }
        Reads::Values { width } => {
            let mut values = numbers(steps * width, 5);
            if model.is_policy() {
                // The times of an episode.
                values.chunks_exact_mut(width).enumerate().for_each(|(i, row)| row[width - 1] = (i / SESSIONS) as f32 / 1000.0);
            }
            (vec![steps / SESSIONS, SESSIONS, width], values)
        }
    }
}

fn step(model: &Model, inputs: &[f32], state: &mut State, outputs: &mut [f32], workspace: &mut Workspace) {
    match model.reads() {
        Reads::Tokens { .. } => {
            let tokens: Vec<u32> = inputs.iter().map(|&token| token as u32).collect();
            model.step(&tokens, state, outputs, workspace).expect("a step");
        }
        Reads::Values { .. } => model.step_values(inputs, state, outputs, workspace).expect("a step"),
    }
}

fn case(folder: &Path, name: &str, config: &ModelConfig) {
    let model = models(folder, name, config);
    let (shape, inputs) = inputs(&model, config, STEPS * SESSIONS);
    let (mut state, mut workspace) = (model.init_state(SESSIONS).expect("a state"), Workspace::new());
    let mut outputs = vec![0.0; STEPS * SESSIONS * model.outputs()];
    let rows = inputs.chunks_exact(inputs.len() / STEPS).zip(outputs.chunks_exact_mut(SESSIONS * model.outputs()));
    rows.for_each(|(inputs, outputs)| step(&model, inputs, &mut state, outputs, &mut workspace));
    let outputs = ("outputs".to_owned(), vec![STEPS, SESSIONS, model.outputs()], outputs.into());
    let tensors = [("inputs".to_owned(), shape, inputs.into()), outputs];
    write_safetensors(folder.join(format!("{name}.safetensors")), tensors, Some(("model", &configs::label(config)))).expect("a file");
}

fn speed(folder: &Path, name: &str, config: &ModelConfig) {
    let model = models(folder, name, config);
    let pool = rayon::ThreadPoolBuilder::new().num_threads(1).build().expect("a thread");
    let seconds: Vec<f64> = pool.install(|| {
        let (mut state, mut workspace) = (model.init_state(1).expect("a state"), Workspace::new());
        let mut outputs = vec![0.0; model.outputs()];
        let all = (0..2 * TIMED).map(|i| {
            let start = Instant::now();
            model.step(&[(i % 200) as u32], &mut state, &mut outputs, &mut workspace).expect("a step");
            start.elapsed().as_secs_f64()
        });
        all.skip(TIMED).collect()
    });
    std::fs::write(folder.join(format!("{name}.json")), format!("{seconds:?}")).expect("a file");
}
