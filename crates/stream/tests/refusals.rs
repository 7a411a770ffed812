//! Sizes of zero, huge ones and those whose products wrap, and lengths that do not fit: every public function answers with a result.

mod common;

use std::fmt::Display;
use std::panic::{AssertUnwindSafe, catch_unwind};

use common::{model, small, tensors, weights};
use minrnn_model::{
    CheckpointConfig, FeedForwardKind, MixerKind, ModelConfig, WeightFormat, Weights, WiringKind, read_checkpoint, read_text,
    write_safetensors,
};
use minrnn_stream::{Error, ErrorKind, Model, PackedModel, Sampler, Sampling, SavedSessions, Sessions, State, Workspace};

/// Products of the last three with anything larger than 1 do not fit into memory, those of the last two not even into 64 bits.
const SIZES: [usize; 6] = [0, 1, 3, 1 << 40, 1 << 62, usize::MAX];
const NUMBERS: [f64; 9] = [0.0, -1.0, 1e-308, 0.5, 64.0, 1e308, f64::INFINITY, f64::NEG_INFINITY, f64::NAN];

/// What a call must answer.
#[derive(Clone, Copy, PartialEq)]
enum Answer {
    Done,
    Refused,
    /// Either, but no panic.
    Any,
}
use Answer::{Any, Done, Refused};

/// Runs `call`, and checks that it answers as expected, with a sentence when it refuses.
#[track_caller]
fn expect<T, E: Display>(what: &str, answer: Answer, call: impl FnOnce() -> Result<T, E>) {
    let Ok(result) = catch_unwind(AssertUnwindSafe(call)) else { panic!("{what} panics") };
    match result {
        Ok(_) => assert!(answer != Refused, "{what} is not refused"),
        Err(error) => {
            let sentence = error.to_string();
            assert!(answer != Done, "{what}: {sentence}");
            assert!(sentence.len() > 20, "{what}: {sentence}");
        }
    }
}

/// The same of a function that cannot fail.
#[track_caller]
fn runs<T>(what: &str, call: impl FnOnce() -> T) {
    expect(what, Done, || Ok::<_, Error>(call()));
}

/// A key, and what sets it.
type Change<T, C = ModelConfig> = (&'static str, fn(&mut C, T));

const SIZED: [Change<usize>; 13] = [
    ("vocab_size", |c, x| c.vocab_size = x),
    ("input_width", |c, x| (c.input_width, c.vocab_size) = (x, 0)),
    ("n_outputs", |c, x| c.n_outputs = x),
    ("d_model", |c, x| c.d_model = x),
    ("n_layers", |c, x| c.n_layers = x),
    ("n_heads", |c, x| c.n_heads = x),
    ("d_state", |c, x| c.d_state = x),
    ("dt_rank", |c, x| c.dt_rank = x),
    ("head_width", |c, x| c.head_width = x),
    ("max_seq_len", |c, x| c.max_seq_len = x),
    ("window", |c, x| c.window = x),
    ("vocab_size and d_model", |c, x| (c.vocab_size, c.d_model) = (x, x)),
    ("everything", |c, x| {
        (c.vocab_size, c.d_model, c.n_layers, c.n_heads, c.d_state, c.dt_rank) = (x, x, x, x, x, x);
        (c.head_width, c.max_seq_len, c.window) = (x, x, x);
    }),
];

const NUMBERED: [Change<f64>; 5] = [
    ("expansion", |c, x| c.expansion = x),
    ("ff_mult", |c, x| c.ff_mult = x),
    ("rms_eps", |c, x| c.rms_eps = x),
    ("dropout", |c, x| c.dropout = x),
    ("forget_bias", |c, x| c.forget_bias = x),
];

/// Configurations made by hand with a size or a number that no model has, and what was changed.
fn hand_made(base: &ModelConfig) -> Vec<(String, ModelConfig)> {
    let changed = |change: &dyn Fn(&mut ModelConfig)| {
        let mut config = base.clone();
        change(&mut config);
        config
    };
    let sized = SIZED.iter().flat_map(|(key, set)| SIZES.map(|x| (format!("{key} = {x}"), changed(&|c| set(c, x)))));
    let numbered = NUMBERED.iter().flat_map(|(key, set)| NUMBERS.map(|x| (format!("{key} = {x}"), changed(&|c| set(c, x)))));
    sized.chain(numbered).collect()
}

#[test]
fn no_configuration_made_by_hand_panics() {
    for &mixer in MixerKind::ALL {
        for &wiring in WiringKind::ALL {
            for (key, config) in hand_made(&ModelConfig { mixer, wiring, ff: FeedForwardKind::SwiGlu, ..small(mixer) }) {
                let what = |call: &str| format!("{call} of {mixer} in {wiring} with {key}");
                expect(&what("validate"), Any, || config.validate());
                expect(&what("cost"), Any, || {
                    let cost = config.cost()?;
                    Ok::<_, Error>(SIZES.map(|tokens| (cost.carried(tokens), cost.flops(tokens))))
                });
                runs(&what("the rest"), || {
                    let checked = config.checked().map(|checked| {
                        let costs = [checked.embedding_cost(), checked.head_cost(), checked.block_cost(usize::MAX)];
                        (
                            costs,
                            checked.block_state_len(usize::MAX),
                            checked.block_past(usize::MAX),
                            checked.inside_wiring(),
                            checked.tensors().len(),
                        )
                    });
                    let sizes = [config.outputs(), config.step_rank(), config.attention_window(), config.mixer_kinds().len()];
                    (checked, sizes, config.forget_ceiling(usize::MAX), config.mixer_at(usize::MAX), config.ff_at(usize::MAX))
                });
            }
        }
    }
}

#[test]
fn a_size_that_no_model_has_is_refused() {
    let huge = |key: &str| key.ends_with(&format!("= {}", usize::MAX)) || key.ends_with(&format!("= {}", 1usize << 62));
    // A key that minGRU does not use is checked as well: nobody should write such a file.
    for (key, config) in hand_made(&small(MixerKind::MinGru)).into_iter().filter(|(key, _)| huge(key)) {
        // A mixer without heads accepts any width of them.
        let answer = if key.starts_with("head_width") { Any } else { Refused };
        expect(&format!("validate with {key}"), answer, || config.validate());
    }
}

#[test]
fn models_of_such_configurations_are_not_made() {
    let directory = tempfile::tempdir().unwrap();
    for base in [small(MixerKind::MinGru), small(MixerKind::Lstm)] {
        let tensors = tensors(&base, 1);
        for (key, config) in hand_made(&base).into_iter().filter(|(_, config)| *config != base) {
            let answer = if config.validate().is_ok() { Any } else { Refused };
            expect(&format!("Model::new with {key}"), answer, || Model::new(&config, &mut weights(&tensors), WeightFormat::Int8));
            let path = directory.path().join("model.minrnn");
            let write = || PackedModel::write(&path, &config, &mut weights(&tensors), WeightFormat::Bf16, &[]);
            expect(&format!("PackedModel::write with {key}"), answer, write);
            expect(&format!("CheckpointConfig::write with {key}"), answer, || {
                CheckpointConfig::new(config.clone()).write(directory.path())
            });
            if directory.path().join("config.json").exists() {
                expect(&format!("CheckpointConfig::read with {key}"), Done, || CheckpointConfig::read(directory.path()));
                std::fs::remove_file(directory.path().join("config.json")).unwrap();
            }
        }
    }
}

/// Prompts that answer with fewer and unknown tokens when they are asked again.
struct Changing(std::cell::Cell<usize>);

impl AsRef<[u32]> for Changing {
    fn as_ref(&self) -> &[u32] {
        self.0.set(self.0.get() + 1);
        [&[1, 2, 3][..], &[u32::MAX], &[]][self.0.get().min(3) - 1]
    }
}

#[test]
fn sessions_and_tokens_that_do_not_fit_are_refused() {
    let config = small(MixerKind::Lstm);
    let (v, other) = (config.vocab_size, common::model(&ModelConfig { conv: true, ..config.clone() }, WeightFormat::F32));
    let model = model(&config, WeightFormat::Bf16);
    for rows in SIZES {
        let answer = if rows < 1 << 40 { Done } else { Refused };
        expect(&format!("init_state({rows})"), answer, || model.init_state(rows));
    }
    let (state, mut workspace) = (model.init_state(2).unwrap(), Workspace::new());
    let per_row = state.values().len() / 2;
    for rows in SIZES {
        for len in [0, 1, per_row, 2 * per_row, 3 * per_row + 1] {
            let answer = if rows * usize::from(rows < 4) * per_row == len && rows < 4 { Done } else { Refused };
            expect(&format!("from_values({rows}, {len})"), answer, || State::from_values(&model, rows, vec![0.0; len]));
        }
        let answer = if rows < 2 { Done } else { Refused };
        expect(&format!("select([0, {rows}])"), answer, || state.select(&[0, rows]));
        expect(&format!("copy_row({rows}, 0)"), answer, || state.clone().copy_row(rows, &state, 0));
        expect(&format!("copy_row(0, {rows})"), answer, || state.clone().copy_row(0, &state, rows));
        let mut logits = vec![0.0; v];
        expect(&format!("step_rows([{rows}])"), answer, || model.step_rows(&[rows], &[1], &mut state.clone(), &mut logits, &mut workspace));
    }
    expect("append of another model's", Refused, || state.clone().append(&other.init_state(1)?));
    expect("copy_row of another model's", Refused, || state.clone().copy_row(0, &other.init_state(1)?, 0));
    for tokens in [0, 1, 2, 3] {
        for room in [0, 1, v, 2 * v - 1, 2 * v, 3 * v] {
            let fits = tokens == 2 && room == 2 * v;
            let answer = if fits { Done } else { Refused };
            let what = |call: &str| format!("{call} of {tokens} tokens with room for {room} logits");
            let (tokens, mut logits) = (vec![1; tokens], vec![0.0; room]);
            expect(&what("step"), answer, || model.step(&tokens, &mut state.clone(), &mut logits, &mut workspace));
            let prompts: Vec<[u32; 1]> = tokens.iter().map(|&token| [token]).collect();
            expect(&what("prefill"), answer, || model.prefill(&prompts, &mut state.clone(), &mut logits, &mut workspace));
            let rows: Vec<usize> = (0..tokens.len()).collect();
            expect(&what("step_rows"), if tokens.len() * v == room && tokens.len() < 3 { Done } else { Refused }, || {
                model.step_rows(&rows, &tokens, &mut state.clone(), &mut logits, &mut workspace)
            });
            expect(&what("forward"), if tokens.len() * v == room { Done } else { Refused }, || {
                model.forward(&tokens, &mut model.init_state(1)?, &mut logits, &mut workspace)
            });
        }
        let prompts = vec![vec![1, 2]; tokens];
        let answer = if tokens == 2 { Done } else { Refused };
        expect("advance", answer, || model.advance(&prompts, &mut state.clone(), &mut workspace));
    }
    for token in [v as u32, u32::MAX] {
        let mut logits = vec![0.0; 2 * v];
        expect("an unknown token in a step", Refused, || model.step(&[0, token], &mut state.clone(), &mut logits, &mut workspace));
        expect("an unknown token in a prompt", Refused, || model.advance(&[[0], [token]], &mut state.clone(), &mut workspace));
        let call = || model.forward(&[0, token], &mut model.init_state(1)?, &mut logits, &mut workspace);
        expect("an unknown token in a text", Refused, call);
    }
    let call = || model.advance(&[Changing(0.into()), Changing(0.into())], &mut state.clone(), &mut workspace);
    expect("prompts that change while they are read", Done, call);
    runs("the sizes of a workspace", || workspace.bytes());
}

#[test]
fn states_with_numbers_that_are_not_finite_are_refused() {
    let model = model(&small(MixerKind::MinGru), WeightFormat::F32);
    for value in [f32::NAN, f32::INFINITY, f32::NEG_INFINITY] {
        let mut values = model.init_state(2).unwrap().values().to_vec();
        let at = values.len() - 1;
        values[at] = value;
        let told = State::from_values(&model, 2, values).unwrap_err().to_string();
        assert!(told.contains(&format!("holds {value} in session 1")), "{told}");
    }
    // Bytes that say so under a checksum that fits.
    let mut state = model.init_state(1).unwrap();
    let bytes = state.to_bytes().unwrap();
    let nan = 0.0f32.to_le_bytes().map(|_| 0xff);
    let mut damaged = bytes.clone();
    let end = bytes.len() - 4;
    damaged[end - 4..end].copy_from_slice(&nan);
    let checksum = crc32c::crc32c(&damaged[..end]).to_le_bytes();
    damaged[end..].copy_from_slice(&checksum);
    let told = State::from_bytes(&damaged, &model).unwrap_err().to_string();
    assert!(told.contains("holds NaN in session 0"), "{told}");
    state.append(&State::from_bytes(&bytes, &model).unwrap()).unwrap();
}

#[test]
fn states_with_numbers_that_are_not_finite_are_not_saved() {
    let config = small(MixerKind::MinGru);
    let mut overflowing = tensors(&config, 7);
    overflowing.get_mut("embedding.weight").unwrap().1.fill(f32::MAX);
    let model = Model::new(&config, &mut weights(&overflowing), WeightFormat::F32).unwrap();
    let (mut state, mut workspace) = (model.init_state(2).unwrap(), Workspace::new());
    let finite = state.to_bytes().unwrap();
    model.step_rows(&[1], &[3], &mut state, &mut vec![0.0; model.outputs()], &mut workspace).unwrap();
    let told = state.to_bytes().unwrap_err();
    assert_eq!(told.kind(), ErrorKind::State);
    assert_eq!(told.to_string(), "the saved state holds NaN in session 1, expected finite numbers; begin that session anew");
    let names = vec!["north".to_owned(), "south".to_owned()];
    let named = SavedSessions { names, logits: vec![], histories: vec![], forecasts: vec![], state: state.clone() };
    assert_eq!(named.to_bytes(&model, "m").unwrap_err().to_string(), told.to_string());
    assert_eq!(Sessions::Plain(state.clone(), Workspace::new()).to_bytes("m").unwrap_err().to_string(), told.to_string());
    model.restart(&mut state, 1).unwrap();
    assert_eq!(state.to_bytes().unwrap(), finite);
}

#[test]
fn weights_that_are_not_finite_are_refused_by_name() {
    let config = ModelConfig { tie_embeddings: true, conv: true, ..small(MixerKind::Gru) };
    let good = tensors(&config, 3);
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("model.minrnn");
    for (name, (shape, values)) in &good {
        let at = values.len() / 2;
        for value in [f32::NAN, f32::INFINITY, f32::NEG_INFINITY] {
            let mut bad = good.clone();
            bad.get_mut(name).unwrap().1[at] = value;
            for &format in WeightFormat::ALL {
                let told = Model::new(&config, &mut weights(&bad), format).unwrap_err().to_string();
                assert!(told.contains(&format!("tensor '{name}' holds {value} at position {at}")), "{told}");
                let told = PackedModel::write(&path, &config, &mut weights(&bad), format, &[]).unwrap_err().to_string();
                assert!(told.contains(&format!("tensor '{name}' holds {value}")) && !path.exists(), "{told}");
            }
        }
        // What bf16 rounds to infinity.
        let mut large = good.clone();
        large.get_mut(name).unwrap().1[at] = f32::MAX;
        let told = Model::new(&config, &mut weights(&large), WeightFormat::Bf16);
        assert_eq!(told.is_err(), matches!(shape[..], [_, _]), "{name}");
        large.get_mut(name).unwrap().1[at] = f32::from_bits(0x7f7f_7fff);
        PackedModel::write(&path, &config, &mut weights(&large), WeightFormat::Bf16, &[]).unwrap();
        PackedModel::read(&path).unwrap();
        std::fs::remove_file(&path).unwrap();
    }
}

#[test]
fn packed_weights_that_are_not_finite_are_refused_by_name() {
    let config = small(MixerKind::MinLstm);
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("model.minrnn");
    for &format in WeightFormat::ALL {
        let entries = PackedModel::write(&path, &config, &mut weights(&tensors(&config, 3)), format, &[]).unwrap();
        let bytes = std::fs::read(&path).unwrap();
        let header = u32::from_le_bytes(bytes[12..16].try_into().unwrap()) as usize;
        let mut at = 24 + header;
        for entry in entries {
            at = at.next_multiple_of(64);
            // The first number of a float tensor, the last scale of a quantised one: all bits set are NaN in each.
            let place = if matches!(entry.format, WeightFormat::F32 | WeightFormat::Bf16) { at } else { at + entry.bytes - 64 };
            let mut damaged = bytes.clone();
            damaged[place..place + 4].fill(0xff);
            let end = bytes.len() - 4;
            let checksum = crc32c::crc32c(&damaged[..end]).to_le_bytes();
            damaged[end..].copy_from_slice(&checksum);
            let told = PackedModel::from_bytes(&damaged).unwrap_err().to_string();
            assert!(told.starts_with("the packed model ") && told.contains(&format!("tensor '{}'", entry.name)), "{format}: {told}");
            at += entry.bytes;
        }
    }
}

#[test]
fn files_of_no_use_are_refused() {
    let config = small(MixerKind::MinGru);
    let directory = tempfile::tempdir().unwrap();
    let at = |name: &str| directory.path().join(name);
    for shape in [vec![1 << 32, 1 << 32], vec![usize::MAX, 2], vec![1 << 62, 4], vec![2], vec![0]] {
        let answer = if shape == [0] { Done } else { Refused };
        let tensor = || ("w".to_owned(), shape.clone(), Vec::new().into());
        expect(&format!("write_safetensors of {shape:?}"), answer, || write_safetensors(at("w"), [tensor()], None));
        let mut file = weights(&tensors(&config, 1));
        expect(&format!("take of {shape:?}"), Refused, || file.take("embedding.weight", &shape));
        runs("missing", || file.missing("", Some(&shape)).to_string());
        expect("take_any", Refused, || file.take_any(""));
    }
    std::fs::write(at("text"), "text").unwrap();
    for (limit, answer) in [(0, Refused), (3, Refused), (4, Done), (u64::MAX, Done)] {
        expect(&format!("read_text of at most {limit} bytes"), answer, || {
            assert_eq!(read_text(at("text"), limit)?, "text");
            Ok::<_, Error>(())
        });
    }
    for path in [at("text"), at("none"), directory.path().to_owned()] {
        expect("Weights::read", Refused, || Weights::read(&path));
        expect("Model::load", Refused, || Model::load(&path));
        expect("PackedModel::read", Refused, || PackedModel::read(&path));
        expect("CheckpointConfig::read_file", Refused, || CheckpointConfig::read_file(&path));
        expect("read_checkpoint", Refused, || read_checkpoint(&path));
    }
    for bytes in [&[][..], &[0], &PackedModel::MAGIC, &[0xff; 24], &[0xff; 100]] {
        expect("PackedModel::from_bytes", Refused, || PackedModel::from_bytes(bytes));
        expect("State::from_bytes", Refused, || State::from_bytes(bytes, &model(&config, WeightFormat::F32)));
    }
    expect("an unknown mixer", Refused, || "".parse::<MixerKind>());
}

#[test]
fn settings_and_logits_of_no_use_are_refused() {
    let settings: [Change<f64, Sampling>; 4] = [
        ("temperature", |s, x| s.temperature = x),
        ("top_p", |s, x| s.top_p = x),
        ("min_p", |s, x| s.min_p = x),
        ("repetition_penalty", |s, x| s.repetition_penalty = x),
    ];
    for (key, set) in settings {
        for x in NUMBERS {
            let mut sampling = Sampling::default();
            set(&mut sampling, x);
            let answer = if sampling.validate().is_ok() { Done } else { Refused };
            expect(&format!("{key} = {x}"), answer, || Sampler::new(sampling)?.sample(&mut [0.0, 1.0], &[u32::MAX]));
        }
    }
    for top_k in SIZES {
        let mut sampler = Sampler::new(Sampling { top_k, ..Default::default() }).unwrap();
        expect(&format!("top_k = {top_k}"), Done, || sampler.sample(&mut [0.0, f32::MIN, f32::MAX], &[0, 0, 7]));
        for logits in [&mut [][..], &mut [f32::NAN], &mut [f32::INFINITY], &mut [f32::NEG_INFINITY; 3]] {
            expect(&format!("top_k = {top_k} of {logits:?}"), Refused, || sampler.sample(logits, &[]));
        }
    }
}
