//! Packed models with drawn weights, and the C functions under names that fail loudly.
#![allow(dead_code, reason = "every test file uses a part of it")]

#[path = "../../../stream/tests/common/allocator.rs"]
pub mod allocator;
#[path = "../../../stream/tests/common/numbers.rs"]
mod numbers;

use std::ffi::CStr;
use std::path::PathBuf;

use minrnn_capi::*;
use minrnn_model::{
    Calibration, Category, Classifier, Forecaster, Missing, MixerKind, ModelConfig, Normalization, Regressor, Scaling, Section, TableTask,
    Tokenizer, Transform, WeightFormat, Weights, write_safetensors,
};
use minrnn_stream::PackedModel;
pub use numbers::Numbers;

/// The text that the vocabulary of characters is made of.
pub const ALPHABET: &str = "\n abcdeé日🦀";

/// A packed model with weights drawn from `seed`, and the folder that its file `model.minrnn` lies in.
pub struct Packed {
    pub folder: tempfile::TempDir,
    pub bytes: Vec<u8>,
}

impl Packed {
    pub fn new(config: &ModelConfig, sections: &[Section<'_>], seed: u64) -> Self {
        Self::of(config, sections, seed, |_, weight| weight)
    }

    /// The same with every number changed by `change`, which is given the name of its tensor.
    fn of(config: &ModelConfig, sections: &[Section<'_>], seed: u64, change: impl Fn(&str, f32) -> f32) -> Self {
        let (folder, mut numbers) = (tempfile::tempdir().unwrap(), Numbers::new(seed));
        let tensors = config.checked().unwrap().tensors().into_iter().map(|tensor| {
            let values: Vec<f32> = (0..tensor.elements()).map(|_| change(&tensor.name, numbers.next() * 0.7)).collect();
            (tensor.name, tensor.shape, values.into())
        });
        let weights = folder.path().join("drawn.safetensors");
        write_safetensors(&weights, tensors.collect::<Vec<_>>(), None).unwrap();
        let path = folder.path().join("model.minrnn");
        PackedModel::write(&path, config, &mut Weights::read(&weights).unwrap(), WeightFormat::Bf16, sections).unwrap();
        let bytes = std::fs::read(path).unwrap();
        Self { folder, bytes }
    }

    pub fn path(&self) -> PathBuf {
        self.folder.path().join("model.minrnn")
    }

    pub fn in_rust(&self) -> PackedModel {
        PackedModel::from_bytes(&self.bytes).unwrap()
    }

    pub fn in_c(&self) -> *mut ModelHandle {
        let mut model = std::ptr::null_mut();
        // SAFETY: a buffer and its length.
        ok(unsafe { minrnn_model_from_memory(self.bytes.as_ptr(), self.bytes.len(), &mut model) });
        model
    }
}

/// A model of characters with this mixer.
pub fn text_model(mixer: MixerKind, seed: u64) -> Packed {
    let tokenizer = Tokenizer::characters_of(ALPHABET);
    let config = ModelConfig { mixer, ..text_config(tokenizer.vocab_size()) };
    Packed::new(&config, &[Section::tokenizer(tokenizer.to_json().unwrap().as_bytes())], seed)
}

/// A model of characters with attention that sees 400 of them.
pub fn attention_model(seed: u64) -> Packed {
    let tokenizer = Tokenizer::characters_of(ALPHABET);
    let config = ModelConfig { mixer: MixerKind::Attention, max_seq_len: 400, ..text_config(tokenizer.vocab_size()) };
    Packed::new(&config, &[Section::tokenizer(tokenizer.to_json().unwrap().as_bytes())], seed)
}

pub fn byte_model(seed: u64) -> Packed {
    Packed::new(&text_config(256), &[Section::tokenizer(Tokenizer::Byte.to_json().unwrap().as_bytes())], seed)
}

/// Byte-level BPE with the one piece "ab", as Hugging Face's `tokenizer.json` has it.
pub fn pieces_model(seed: u64) -> Packed {
    let visible = |byte: u8| matches!(byte, b'!'..=b'~' | 0xA1..=0xAC | 0xAE..=0xFF);
    let mut hidden = '\u{100}'..;
    let mut sign = |byte: u8| if visible(byte) { char::from(byte) } else { hidden.next().unwrap() };
    let mut vocab: serde_json::Map<String, serde_json::Value> = (0..=255).map(|byte| (sign(byte).to_string(), byte.into())).collect();
    vocab.insert("ab".into(), 256.into());
    let bytes = serde_json::json!({ "type": "ByteLevel", "add_prefix_space": false, "trim_offsets": true, "use_regex": true });
    let model = serde_json::json!({ "type": "BPE", "vocab": vocab, "merges": ["a b"] });
    let tokenizer = serde_json::json!({ "version": "1.0", "pre_tokenizer": bytes, "decoder": bytes, "model": model });
    Packed::new(&text_config(257), &[Section::tokenizer(tokenizer.to_string().as_bytes())], seed)
}

fn text_config(vocab_size: usize) -> ModelConfig {
    ModelConfig { vocab_size, d_model: 16, n_layers: 2, n_heads: 2, d_state: 4, max_seq_len: 12, conv: true, ..Default::default() }
}

fn values_config(input_width: usize, n_outputs: usize) -> ModelConfig {
    ModelConfig { input_width, n_outputs, d_model: 16, n_layers: 1, ..Default::default() }
}

/// A model of numbers without a description.
pub fn value_model(seed: u64) -> Packed {
    Packed::new(&values_config(3, 2), &[], seed)
}

/// A classifier of two columns into three classes, with no missing values.
pub fn classifier(seed: u64) -> Packed {
    let task = TableTask::Classify(Classifier {
        columns: vec!["heat".into(), "noise".into()],
        group: "machine".into(),
        target: "state".into(),
        time: None,
        classes: vec!["good".into(), "worn".into(), "broken".into()],
        normalization: Normalization { mean: vec![20.0, 0.5], deviation: vec![5.0, 0.2] },
        missing: Missing::Error,
        layout: Default::default(),
        categories: Vec::new(),
        rows_per_step: None,
    });
    Packed::new(&values_config(2, 3), &[Section::table(&serde_json_bytes(&task))], seed)
}

/// The same for a column of numbers and a column of names, where values may be missing.
pub fn site_classifier(seed: u64) -> Packed {
    let task = TableTask::Classify(Classifier {
        columns: vec!["heat".into(), "site".into()],
        group: "machine".into(),
        target: "state".into(),
        time: None,
        classes: vec!["good".into(), "worn".into(), "broken".into()],
        normalization: Normalization { mean: vec![20.0, 0.0], deviation: vec![5.0, 1.0] },
        missing: Missing::Mask,
        layout: Default::default(),
        categories: vec![Category { column: 1, values: vec!["east".into(), "süd".into(), "west".into()] }],
        rows_per_step: None,
    });
    // Each column has an input that tells what is missing.
    Packed::new(&values_config(1 + 1 + 3 + 1, 3), &[Section::table(&serde_json_bytes(&task))], seed)
}

/// A model that predicts one number for a machine's sequence of two columns.
pub fn regressor(seed: u64) -> Packed {
    let task = TableTask::Regress(Regressor {
        columns: vec!["heat".into(), "noise".into()],
        group: "machine".into(),
        target: "life".into(),
        time: None,
        normalization: Normalization { mean: vec![20.0, 0.5], deviation: vec![5.0, 0.2] },
        target_normalization: Normalization { mean: vec![1000.0], deviation: vec![300.0] },
        target_median: None,
        missing: Missing::Error,
        layout: Default::default(),
        categories: Vec::new(),
        rows_per_step: None,
    });
    Packed::new(&values_config(2, 1), &[Section::table(&serde_json_bytes(&task))], seed)
}

/// Two quantiles and the median of the next four values, relative to the level of the series; numbers may be missing. Of its 20 held-out rows the k-th
/// least surprising has a surprise of k nats.
pub fn forecaster(seed: u64) -> Packed {
    forecaster_of(seed, 20, |_, weight| weight)
}

/// The same without held-out rows.
pub fn forecaster_without_rows(seed: u64) -> Packed {
    forecaster_of(seed, 0, |_, weight| weight)
}

/// The same with weights so large that what is not at the level of the series leads to NaN.
pub fn overflowing_forecaster(seed: u64) -> Packed {
    forecaster_of(seed, 20, |name, weight| if name == "input.weight" { 3e38 } else { weight })
}

fn forecaster_of(seed: u64, held_out: u32, change: impl Fn(&str, f32) -> f32) -> Packed {
    let one = || Normalization { mean: vec![0.0], deviation: vec![1.0] };
    let task = TableTask::Forecast(Forecaster {
        columns: vec!["load".into()],
        group: None,
        target: vec!["load".into()],
        time: None,
        horizon: 4,
        season: 0,
        normalization: one(),
        target_normalization: one(),
        scaling: Scaling::Level { transforms: vec![Transform::Log1p], span: 5, lags: vec![2] },
        missing: Missing::Mask,
        layout: Default::default(),
        categories: Vec::new(),
        of_table: Some(Normalization { mean: vec![50.0], deviation: vec![20.0] }),
        quantiles: vec![0.1, 0.5, 0.9],
    });
    let (task, surprise) = (serde_json_bytes(&task), Calibration::of((1..=held_out).map(f64::from)).to_json());
    Packed::of(&values_config(3, 12), &[Section::table(&task), Section::surprise(surprise.as_bytes())], seed, change)
}

fn serde_json_bytes(task: &TableTask) -> Vec<u8> {
    serde_json::to_vec(task).unwrap()
}

/// The message of the last failure.
pub fn sentence() -> String {
    // SAFETY: the library's own text.
    unsafe { CStr::from_ptr(minrnn_last_error()) }.to_str().unwrap().to_owned()
}

#[track_caller]
pub fn ok(status: Status) {
    assert_eq!(status, Status::Ok, "{}", sentence());
}

/// Checks that a call was refused with this status and with a message that contains `words`.
#[track_caller]
pub fn refused(status: Status, expected: Status, words: &str) {
    assert!(status == expected && sentence().contains(words), "{status:?}: {}", sentence());
}

pub fn session(model: *const ModelHandle, rows: usize) -> *mut SessionHandle {
    let mut session = std::ptr::null_mut();
    // SAFETY: there is room for a pointer.
    ok(unsafe { minrnn_session_new(model, rows, &mut session) });
    session
}

pub fn forked(session: *const SessionHandle) -> *mut SessionHandle {
    let mut other = std::ptr::null_mut();
    // SAFETY: there is room for a pointer.
    ok(unsafe { minrnn_session_fork(session, &mut other) });
    other
}

pub fn saved(session: *const SessionHandle) -> Vec<u8> {
    let mut len = 0;
    // SAFETY: no buffer, and room for a number.
    ok(unsafe { minrnn_session_save(session, std::ptr::null_mut(), 0, &mut len) });
    let mut bytes = vec![0; len];
    // SAFETY: a buffer and its length.
    ok(unsafe { minrnn_session_save(session, bytes.as_mut_ptr(), len, &mut len) });
    bytes
}

/// The name with code `code` in a column of names.
pub fn column_name(model: *const ModelHandle, column: usize, code: usize) -> Option<String> {
    let name = minrnn_column_name(model, column, code);
    // SAFETY: the library's own text.
    (!name.is_null()).then(|| unsafe { CStr::from_ptr(name) }.to_str().unwrap().to_owned())
}

/// The code of `name` in a column of names.
pub fn column_code(model: *const ModelHandle, column: usize, name: &CStr) -> (Status, f64) {
    let mut code = f64::NAN;
    // SAFETY: a text, and room for a number.
    (unsafe { minrnn_column_code(model, column, name.as_ptr(), &mut code) }, code)
}

pub fn restore(model: *const ModelHandle, bytes: &[u8]) -> (Status, *mut SessionHandle) {
    let mut session = std::ptr::null_mut();
    // SAFETY: a buffer and its length.
    let status = unsafe { minrnn_session_restore(model, bytes.as_ptr(), bytes.len(), &mut session) };
    (status, session)
}

/// The pointer and the length of `rows`; null and 0 if it is empty.
fn listed(rows: &[usize]) -> (*const usize, usize) {
    if rows.is_empty() { (std::ptr::null(), 0) } else { (rows.as_ptr(), rows.len()) }
}

pub fn step_tokens(session: *mut SessionHandle, rows: &[usize], tokens: &[u32], outputs: &mut [f32]) -> Status {
    let (list, n) = listed(rows);
    // SAFETY: buffers and their lengths.
    unsafe { minrnn_step_tokens(session, list, n, tokens.as_ptr(), tokens.len(), outputs.as_mut_ptr(), outputs.len()) }
}

pub fn step_values(session: *mut SessionHandle, rows: &[usize], values: &[f32], outputs: &mut [f32]) -> Status {
    let (list, n) = listed(rows);
    // SAFETY: buffers and their lengths.
    unsafe { minrnn_step_values(session, list, n, values.as_ptr(), values.len(), outputs.as_mut_ptr(), outputs.len()) }
}

pub fn table_step(session: *mut SessionHandle, rows: &[usize], values: &[f64], predictions: &mut [f64]) -> Status {
    let (list, n) = listed(rows);
    // SAFETY: buffers and their lengths.
    unsafe { minrnn_table_step(session, list, n, values.as_ptr(), values.len(), predictions.as_mut_ptr(), predictions.len()) }
}

pub fn table_surprise(session: *mut SessionHandle, rows: &[usize], values: &[f64], surprises: &mut [f64]) -> Status {
    let (list, n) = listed(rows);
    // SAFETY: buffers and their lengths.
    unsafe { minrnn_table_surprise(session, list, n, values.as_ptr(), values.len(), surprises.as_mut_ptr(), surprises.len()) }
}

pub fn prefill(session: *mut SessionHandle, row: usize, tokens: &[u32], outputs: &mut [f32]) -> Status {
    // SAFETY: buffers and their lengths.
    unsafe { minrnn_prefill_tokens(session, row, tokens.as_ptr(), tokens.len(), outputs.as_mut_ptr(), outputs.len()) }
}
