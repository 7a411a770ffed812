//! A state from the training model continues in the runtime, then elsewhere, and comes back: `.ci/web` passes it to C and the browser in between.
//!
//! ```text
//! cargo build --release --workspace --example handed_state
//! target/release/examples/handed_state leave FOLDER    for each mixer a packed model, the state as a saved session, and what others are to find
//! target/release/examples/handed_state return FOLDER   goes on from the sessions that others have saved
//! ```

use std::fs;
use std::path::{Path, PathBuf};

use burn::tensor::Device;
use minrnn::checkpoint::save_weights;
use minrnn::generate::{ModelIdentity, RuntimeSession, Session, TokenSession};
use minrnn::model::SequenceModel;
use minrnn_model::{MixerKind, ModelConfig, WeightFormat, Weights};
use minrnn_stream::{PackedModel, SavedSessions};

type Result<T> = std::result::Result<T, Box<dyn std::error::Error>>;

/// A constant state, one with two parts, one of a matrix, and one that grows.
const MIXERS: [MixerKind; 4] = [MixerKind::MinGru, MixerKind::MinLstm, MixerKind::Mamba, MixerKind::Attention];
const VOCAB_SIZE: usize = 40;
/// Number of tokens that the training model reads at once, and of each leg: runtime, C, browser, and training model again.
const READ: usize = 50;
const LEG: usize = 20;
/// Maximum difference of a logit; above 1, relative to it.
const TOLERANCE: f32 = 1e-5;

fn config(mixer: MixerKind) -> ModelConfig {
    ModelConfig { mixer, vocab_size: VOCAB_SIZE, d_model: 48, n_layers: 2, conv: true, max_seq_len: 256, ..Default::default() }
}

fn trained(mixer: MixerKind) -> Result<SequenceModel> {
    Ok(SequenceModel::new(&config(mixer), 7, &Device::flex())?)
}

fn tokens() -> Vec<u32> {
    (0..(READ + 4 * LEG) as u32).map(|i| (7 * i * i + 3 * i) % VOCAB_SIZE as u32).collect()
}

fn packed(folder: &Path, mixer: MixerKind) -> PathBuf {
    folder.join(format!("{mixer}.minrnn"))
}

/// Largest difference of the logits, relative for those above 1; infinite if one is NaN or some are missing.
fn apart(found: &[f32], expected: &[f32]) -> f32 {
    if found.len() != expected.len() {
        return f32::INFINITY;
    }
    let apart = found.iter().zip(expected).map(|(found, expected)| (found - expected).abs() / expected.abs().max(1.0));
    // A maximum would ignore NaN.
    apart.map(|apart| if apart.is_nan() { f32::INFINITY } else { apart }).fold(0.0, f32::max)
}

/// Steps through a leg, comparing the logits after each step with those expected.
fn walk(session: &mut impl TokenSession, tokens: &[u32], expected: &[Vec<f32>], what: &str) -> Result<()> {
    if expected.len() < tokens.len() {
        return Err(format!("{what}: {} steps, expected logits of {}", tokens.len(), expected.len()).into());
    }
    let mut worst = 0.0f32;
    for (&token, expected) in tokens.iter().zip(expected) {
        let found = session.step_rows(&[0], &[token])?;
        worst = worst.max(apart(found.row(0), expected));
    }
    println!("{what}: at most {worst:.1e} apart");
    if worst <= TOLERANCE { Ok(()) } else { Err(format!("{what}: {worst:.1e} apart, tolerance {TOLERANCE:.0e}").into()) }
}

fn leave(folder: &Path) -> Result<()> {
    fs::create_dir_all(folder)?;
    let tokens = tokens();
    let mut legs = serde_json::Map::new();
    for mixer in MIXERS {
        let (trained, packed) = (trained(mixer)?, packed(folder, mixer));
        let weights = tempfile::NamedTempFile::new()?;
        save_weights(&trained, weights.path())?;
        PackedModel::write(&packed, &config(mixer), &mut Weights::read(weights.path())?, WeightFormat::F32, &[])?;
        let model = PackedModel::read(&packed)?.model;

        let mut training = Session::new(&trained, 1);
        training.prefill(&[&tokens[..READ]])?;
        let mut runtime = RuntimeSession::new(&model, 1)?.restore(1, training.tensors())?;
        // The session that stays in the training model.
        let logits = |&token: &u32| training.step(&[token]).map(|logits| logits.row(0).to_vec());
        let expected: Vec<Vec<f32>> = tokens[READ..].iter().map(logits).collect::<minrnn::Result<_>>()?;
        walk(&mut runtime, &tokens[READ..READ + LEG], &expected, &format!("{mixer} in the runtime"))?;
        let saved = SavedSessions {
            names: vec!["0".into()],
            logits: Vec::new(),
            histories: Vec::new(),
            forecasts: Vec::new(),
            state: runtime.state().clone(),
        };
        fs::write(folder.join(format!("{mixer}.state")), saved.to_bytes(&model, ModelIdentity::of_files(&[&packed])?.as_str())?)?;
        let leg = |at: usize| serde_json::json!({ "tokens": tokens[READ + at * LEG..][..LEG], "logits": expected[at * LEG..][..LEG] });
        legs.insert(mixer.to_string(), serde_json::json!({ "c": leg(1), "browser": leg(2), "back": leg(3) }));
    }
    Ok(fs::write(folder.join("legs.json"), serde_json::to_vec(&legs)?)?)
}

fn come_back(folder: &Path) -> Result<()> {
    let legs: serde_json::Value = serde_json::from_slice(&fs::read(folder.join("legs.json"))?)?;
    for mixer in MIXERS {
        let (trained, packed) = (trained(mixer)?, packed(folder, mixer));
        let (model, identity) = (PackedModel::read(&packed)?.model, ModelIdentity::of_files(&[&packed])?);
        let saved = SavedSessions::from_bytes(&fs::read(folder.join(format!("{mixer}.browser")))?, &model, identity.as_str())?;
        let runtime = RuntimeSession::of(&model, saved.state);
        let mut training = Session::new(&trained, 1).restore(1, runtime.training_tensors()?)?;
        let leg = &legs[mixer.to_string()]["back"];
        let tokens: Vec<u32> = serde_json::from_value(leg["tokens"].clone())?;
        let expected: Vec<Vec<f32>> = serde_json::from_value(leg["logits"].clone())?;
        walk(&mut training, &tokens, &expected, &format!("{mixer} back in the training model"))?;
    }
    Ok(())
}

fn main() -> Result<()> {
    for at in 0..3 {
        let mut found = [0.0; 3];
        found[at] = f32::NAN;
        assert_eq!(apart(&found, &[0.0; 3]), f32::INFINITY, "what is no number is a difference wherever it stands");
    }
    let given: Vec<String> = std::env::args().skip(1).collect();
    match given.iter().map(String::as_str).collect::<Vec<_>>()[..] {
        ["leave", folder] => leave(Path::new(folder)),
        ["return", folder] => come_back(Path::new(folder)),
        _ => Err("expected: handed_state leave FOLDER, or handed_state return FOLDER".into()),
    }
}
