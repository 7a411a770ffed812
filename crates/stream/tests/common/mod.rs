//! Models with drawn weights, and everything they are compared with.
#![allow(dead_code, reason = "every test file uses a part of it")]

pub mod allocator;
mod numbers;
pub mod reference;
pub mod tables;

use std::collections::BTreeMap;

use minrnn_model::{
    Candidate, FeedForwardKind, GruForm, InitialState, MixerKind, ModelConfig, NormKind, ScanKind, WeightFormat, Weights, write_safetensors,
};
use minrnn_stream::{Model, Workspace};
pub use numbers::Numbers;

pub type Tensors = BTreeMap<String, (Vec<usize>, Vec<f32>)>;

/// Every tensor of a checkpoint of `config`, in PyTorch's names and layouts, with weights of the size of trained ones.
pub fn tensors(config: &ModelConfig, seed: u64) -> Tensors {
    let mut numbers = Numbers::new(seed);
    let mut tensors = Tensors::new();
    let mut add = |name: String, shape: Vec<usize>, scale: f32, shift: f32| {
        let values = (0..shape.iter().product()).map(|_| numbers.next() * scale + shift).collect();
        tensors.insert(name, (shape, values));
    };
    let (d, e, v) = (config.d_model, config.checked().unwrap().d_inner(), config.vocab_size);
    let unit = |fan_in: usize| 1.7 / (fan_in as f32).sqrt();
    add("embedding.weight".into(), vec![v, d], 1.7, 0.0);
    for i in 0..config.n_layers {
        let at = |part: &str| format!("backbone.blocks.{i}.{part}");
        if config.conv {
            add(at("conv.depthwise.weight"), vec![d, 1, 4], 0.8, 0.0);
            add(at("conv.depthwise.bias"), vec![d], 0.3, 0.0);
            add(at("conv.pointwise.weight"), vec![d, d], unit(d), 0.0);
            add(at("conv.pointwise.bias"), vec![d], 0.3, 0.0);
        }
        norm(&mut add, config, &at("mixer_norm"));
        let gates = match config.mixer {
            MixerKind::MinGru => 2,
            MixerKind::MinLstm | MixerKind::Gru => 3,
            MixerKind::Lstm => 4,
            other => unreachable!("{other} has no reference"),
        };
        add(at("mixer.in_proj.weight"), vec![gates * e, d], 1.5 * unit(d), 0.0);
        add(at("mixer.in_proj.bias"), vec![gates * e], 0.5, 0.0);
        if matches!(config.mixer, MixerKind::Gru | MixerKind::Lstm) {
            add(at("mixer.recurrent.weight"), vec![gates * e, e], unit(e), 0.0);
            if config.mixer == MixerKind::Lstm || config.gru_form == GruForm::Torch {
                add(at("mixer.recurrent.bias"), vec![gates * e], 0.5, 0.0);
            }
        }
        if config.initial_state == InitialState::Learned {
            add(at("mixer.initial_state"), vec![e], 1.0, 0.0);
            if config.mixer == MixerKind::Lstm {
                add(at("mixer.initial_cell"), vec![e], 1.0, 0.0);
            }
        }
        add(at("mixer.out_proj.weight"), vec![d, e], unit(e), 0.0);
        add(at("mixer.out_proj.bias"), vec![d], 0.3, 0.0);
        if config.ff != FeedForwardKind::None {
            let d_ff = config.checked().unwrap().d_ff();
            let up = if config.ff == FeedForwardKind::Gated { 2 * d_ff } else { d_ff };
            norm(&mut add, config, &at("ff_norm"));
            add(at("ff.up.weight"), vec![up, d], unit(d), 0.0);
            add(at("ff.up.bias"), vec![up], 0.3, 0.0);
            add(at("ff.down.weight"), vec![d, d_ff], unit(d_ff), 0.0);
            add(at("ff.down.bias"), vec![d], 0.3, 0.0);
            if config.ff == FeedForwardKind::Gated {
                add(at("ff.scale"), vec![d_ff], 0.3, 1.0);
            }
        }
    }
    norm(&mut add, config, "backbone.final_norm");
    if !config.tie_embeddings {
        add("head.weight".into(), vec![v, d], unit(d), 0.0);
    }
    tensors
}

/// Every tensor that the specification of any model lists, with drawn numbers.
pub fn drawn(config: &ModelConfig, seed: u64) -> Tensors {
    let mut numbers = Numbers::new(seed);
    let listed = config.checked().unwrap().tensors().into_iter().map(|tensor| {
        let fan_in = tensor.shape.iter().skip(1).product::<usize>().max(1);
        // Variances are above 0.
        let shift = if tensor.name.ends_with("running_var") { 1.0 } else { 0.0 };
        let scale = if tensor.shape.len() > 1 { 1.7 / (fan_in as f32).sqrt() } else { 0.4 };
        let values = (0..tensor.shape.iter().product()).map(|_| numbers.next() * scale + shift).collect();
        (tensor.name, (tensor.shape, values))
    });
    listed.collect()
}

/// A model of such tensors.
pub fn drawn_model(config: &ModelConfig, format: WeightFormat) -> Model {
    Model::new(config, &mut weights(&drawn(config, 7)), format).unwrap()
}

/// `len` numbers in [−2, 2).
pub fn numbers(len: usize, seed: u64) -> Vec<f32> {
    let mut numbers = Numbers::new(seed + 2000);
    (0..len).map(|_| 2.0 * numbers.next()).collect()
}

fn norm(add: &mut impl FnMut(String, Vec<usize>, f32, f32), config: &ModelConfig, name: &str) {
    let shape = || vec![config.d_model];
    match config.norm {
        NormKind::Rms => add(format!("{name}.gamma"), shape(), 0.3, 0.0),
        NormKind::Layer | NormKind::Batch => {
            add(format!("{name}.weight"), shape(), 0.3, 1.0);
            add(format!("{name}.bias"), shape(), 0.3, 0.0);
        }
    }
    if config.norm == NormKind::Batch {
        add(format!("{name}.running_mean"), shape(), 0.3, 0.0);
        add(format!("{name}.running_var"), shape(), 0.5, 1.0);
    }
}

/// The tensors as a file holds them.
pub fn weights(tensors: &Tensors) -> Weights {
    let file = tempfile::NamedTempFile::new().unwrap();
    let items = tensors.iter().map(|(name, (shape, values))| (name.clone(), shape.clone(), values.as_slice().into()));
    write_safetensors(file.path(), items, None).unwrap();
    Weights::read(file.path()).unwrap()
}

pub fn model(config: &ModelConfig, format: WeightFormat) -> Model {
    Model::new(config, &mut weights(&tensors(config, 7)), format).unwrap()
}

/// The mixers that the reference model knows; the others are compared with the model they were trained as, in the library's tests.
pub const REFERENCED: [MixerKind; 4] = [MixerKind::MinGru, MixerKind::MinLstm, MixerKind::Gru, MixerKind::Lstm];

pub fn small(mixer: MixerKind) -> ModelConfig {
    ModelConfig { mixer, vocab_size: 37, d_model: 24, n_layers: 2, ..Default::default() }
}

/// Every mixer with every switch of its own and of the block.
pub fn configs() -> Vec<ModelConfig> {
    let mut configs = Vec::new();
    for mixer in REFERENCED {
        let base = small(mixer);
        let all = ModelConfig { conv: true, initial_state: InitialState::Learned, ff: FeedForwardKind::Gated, ..base.clone() };
        configs.extend([
            base.clone(),
            ModelConfig { tie_embeddings: true, norm: NormKind::Batch, ..all.clone() },
            ModelConfig { norm: NormKind::Layer, ff: FeedForwardKind::None, conv: true, ..base.clone() },
            ModelConfig { vocab_size: 131, d_model: 72, expansion: 1.5, ff_mult: 2.0, ..all.clone() },
            ModelConfig { d_model: 7, expansion: 1.0, n_layers: 1, ff_mult: 3.0, ..all.clone() },
        ]);
        match mixer {
            MixerKind::MinGru | MixerKind::MinLstm => {
                for candidate in [Candidate::Identity, Candidate::Tanh] {
                    configs.push(ModelConfig { candidate, initial_state: InitialState::Learned, ..base.clone() });
                    configs.push(ModelConfig { candidate, normalize_gates: false, ..base.clone() });
                }
                configs.push(ModelConfig { normalize_gates: false, ..all.clone() });
                configs.push(ModelConfig { scan: ScanKind::LogSpace, ..all });
            }
            MixerKind::Gru => configs.push(ModelConfig { gru_form: GruForm::Torch, ..all }),
            MixerKind::Lstm => {}
            other => unreachable!("{other} has no reference"),
        }
    }
    configs
}

pub fn tokens(config: &ModelConfig, len: usize, seed: u64) -> Vec<u32> {
    let mut numbers = Numbers::new(seed + 1000);
    (0..len).map(|_| (((numbers.next() + 1.0) / 2.0 * config.vocab_size as f32) as u32).min(config.vocab_size as u32 - 1)).collect()
}

/// Logits after every token, read step by step.
pub fn stepped(model: &Model, tokens: &[u32]) -> Vec<f32> {
    let (mut state, mut workspace) = (model.init_state(1).unwrap(), Workspace::new());
    let mut all = Vec::new();
    let mut logits = vec![f32::NAN; model.vocab_size()];
    for &token in tokens {
        model.step(&[token], &mut state, &mut logits, &mut workspace).unwrap();
        all.extend(&logits);
    }
    all
}

/// Asserts |found − expected| ≤ tolerance · max(1, largest |expected|) everywhere.
#[track_caller]
pub fn assert_close(found: &[f32], expected: &[f32], tolerance: f32, what: &str) {
    assert_eq!(found.len(), expected.len(), "{what}");
    let error = distance(found, expected);
    assert!(error <= tolerance, "{what}: error {error:e}, expected at most {tolerance:e}");
}

/// The bits of `values`: those of 0 and −0 differ. None may be NaN, which is what a buffer holds before anything is written to it.
#[track_caller]
pub fn bits(values: &[f32]) -> Vec<u32> {
    assert!(!values.iter().any(|x| x.is_nan()), "some are no numbers: {values:?}");
    values.iter().map(|x| x.to_bits()).collect()
}

/// Asserts equal bits.
#[track_caller]
pub fn assert_same(found: &[f32], expected: &[f32], what: &str) {
    assert!(bits(found) == bits(expected), "{what}: they differ by {:e}", distance(found, expected));
}

/// Largest |found − expected| / max(1, largest |expected|); NaN counts as infinite.
#[track_caller]
pub fn distance(found: &[f32], expected: &[f32]) -> f32 {
    assert_eq!(found.len(), expected.len(), "number of values");
    let largest = expected.iter().fold(1.0f32, |largest, x| largest.max(x.abs()));
    found.iter().zip(expected).fold(0.0f32, |worst, (a, b)| {
        let error = (a - b).abs() / largest;
        if error.is_nan() { f32::INFINITY } else { worst.max(error) }
    })
}
