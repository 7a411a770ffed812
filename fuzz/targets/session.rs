//! Saved sessions with text: the first byte chooses the model, then its header (JSON), a zero byte, and the tensors of the state.
#![no_main]

use std::sync::LazyLock;

use burn::tensor::Device;
use libfuzzer_sys::fuzz_target;
use minrnn::data::Tokenizer;
use minrnn::generate::{ModelIdentity, RuntimeSession, Session, TextGenerator, TokenSession};
use minrnn::model::SequenceModel;
use minrnn_fuzz::{NamedTensor, file, folder, joined, parts, safetensors_file, seeds, tensors, weights};
use minrnn_model::{MixerKind, ModelConfig, Positions, WeightFormat, Weights};
use minrnn_stream::{Model, Sampling};

const KEY: &str = "minrnn_session";
const TEXT: &str = "to be or not";

fn config(mixer: MixerKind) -> ModelConfig {
    let vocab_size = TOKENIZER.vocab_size();
    ModelConfig { mixer, vocab_size, d_model: 4, n_layers: 1, n_heads: 2, max_seq_len: 16, ..Default::default() }
}

static TOKENIZER: LazyLock<Tokenizer> = LazyLock::new(|| Tokenizer::characters_of(TEXT));
static IDENTITY: LazyLock<ModelIdentity> = LazyLock::new(|| ModelIdentity::of_files::<&str>(&[]).expect("there is nothing to read"));
static RUNTIME: LazyLock<Vec<Model>> = LazyLock::new(|| {
    let model =
        |config| Model::new(&config, &mut weights(&tensors(&config)), WeightFormat::F32).expect("the weights are those of the model");
    [MixerKind::MinGru, MixerKind::RetNet].map(|mixer| model(config(mixer))).into()
});
static TRAINED: LazyLock<Vec<SequenceModel>> = LazyLock::new(|| {
    let attention = config(MixerKind::Attention);
    let learned = ModelConfig { positions: Positions::Learned, window: 4, ..attention.clone() };
    let rotary = ModelConfig { positions: Positions::Rotary, ..attention };
    let model = |config| SequenceModel::new(&config, 1, &Device::flex()).expect("there is such a model");
    [learned, rotary, config(MixerKind::Hyena)].map(model).into()
});

fn runtime(model: &Model, rows: usize) -> RuntimeSession<'_> {
    RuntimeSession::new(model, rows).expect("there is room for a few rows")
}

/// Header and tensors of a saved generator.
fn seed<S: TokenSession>(session: S) -> Vec<u8> {
    let stops = ["be\n".to_owned(), "xyz".to_owned()];
    let sampling = Sampling { top_k: 3, repetition_penalty: 1.1, ..Sampling::default() };
    let mut generator = TextGenerator::new(session, &TOKENIZER, &["to b", ""], sampling, &stops[1..]).expect("the prompts can be read");
    generator.step().expect("the logits are numbers");
    let path = folder().join("seed");
    generator.save(&path, &IDENTITY).expect("it can be written");
    let mut saved = Weights::read(&path).expect("it was written");
    let header = saved.metadata()[KEY].clone();
    let names: Vec<String> = saved.names().map(str::to_owned).collect();
    let tensors: Vec<NamedTensor> = names
        .into_iter()
        .map(|name| {
            let (shape, data) = saved.take_any(&name).expect("it is named").into_parts();
            (name, shape, data)
        })
        .collect();
    let state = std::fs::read(safetensors_file("seed", &tensors, None)).expect("it was written");
    joined(&[header.as_bytes(), &state])
}

/// Loads a generator, continues, and continues in the same way from a saved copy.
fn go_on<S: TokenSession>(like: &S) {
    let path = folder().join("session");
    let Ok(mut generator) = TextGenerator::load(&path, like, &TOKENIZER, &IDENTITY) else { return };
    if generator.batch_size() > 8 {
        return;
    }
    generator.save(&path, &IDENTITY).expect("it can be written");
    let mut again = TextGenerator::load(&path, like, &TOKENIZER, &IDENTITY).expect("what was saved is loaded");
    for _ in 0..2 {
        let (pieces, pieces_again) = (generator.step(), again.step());
        assert_eq!(pieces.as_ref().ok(), pieces_again.as_ref().ok());
        if pieces.is_err() {
            return;
        }
    }
    let _ = generator.prompt(&vec!["to"; generator.batch_size()]);
    generator.finish();
}

fuzz_target!(
    init: seeds("session", || {
        let of_runtime = RUNTIME.iter().map(|model| seed(runtime(model, 2)));
        let trained = TRAINED.iter().map(|model| seed(Session::new(model, 2)));
        of_runtime.chain(trained).enumerate().map(|(number, seed)| [&[number as u8], &seed[..]].concat()).collect()
    }),
    |data: &[u8]| {
        let Some((&first, data)) = data.split_first() else { return };
        let Some([header, state]) = parts(data) else { return };
        let Ok(header) = std::str::from_utf8(header) else { return };
        let Ok(mut state) = Weights::read(file("state", state)) else { return };
        let names: Vec<String> = state.names().map(str::to_owned).collect();
        let tensors: Vec<NamedTensor> = names.into_iter().map(|name| {
            let (shape, data) = state.take_any(&name).expect("it is named").into_parts();
            (name, shape, data)
        }).collect();
        safetensors_file("session", &tensors, Some((KEY, header)));
        match usize::from(first) % 5 {
            number @ 0..2 => go_on(&runtime(&RUNTIME[number], 0)),
            number => go_on(&Session::new(&TRAINED[number - 2], 0)),
        }
    }
);
