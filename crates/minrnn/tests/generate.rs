//! Sessions and text generation against the model they run.

mod common;

use std::ops::ControlFlow;
use std::path::Path;

use burn::nn::Embedding;
use burn::tensor::{Device, Int, Tensor, TensorData};
use common::distance;
use minrnn::data::Tokenizer;
use minrnn::generate::{ModelIdentity, RuntimeSession, Session, TextGenerator, TokenSession};
use minrnn::model::SequenceModel;
use minrnn::nn::Mode;
use minrnn::ops::StepCodes;
use minrnn_model::{InitialState, MixerKind, ModelConfig, NormKind, ScanKind, WeightFormat, Weights, write_safetensors};
use minrnn_stream::Sampling;

/// |error| ≤ this · max(1, largest logit).
const TOLERANCE: f32 = 2e-5;

const ALPHABET: &str = "\n abcdefghijklmnopqrstuvwxyz";

fn config(mixer: MixerKind) -> ModelConfig {
    let zero = ModelConfig { mixer, vocab_size: ALPHABET.len(), d_model: 16, conv: true, ..Default::default() };
    let learned = ModelConfig { initial_state: InitialState::Learned, ..zero.clone() };
    if learned.validate().is_ok() { learned } else { zero }
}

/// Every mixer, and a model with the other switches.
fn configs() -> Vec<ModelConfig> {
    let mut configs: Vec<ModelConfig> = MixerKind::ALL.iter().map(|&mixer| config(mixer)).collect();
    configs.push(ModelConfig { scan: ScanKind::LogSpace, norm: NormKind::Batch, tie_embeddings: true, ..config(MixerKind::MinGru) });
    configs
}

fn model(config: &ModelConfig) -> SequenceModel {
    SequenceModel::new(config, 7, &Device::flex()).unwrap()
}

fn prompt(len: usize, seed: u32) -> Vec<u32> {
    (0..len as u32).map(|i| (i * i + 3 * i + seed).wrapping_mul(2_654_435_761) % ALPHABET.len() as u32).collect()
}

/// Logits after every token, from one pass.
fn forward(model: &SequenceModel, tokens: &[u32]) -> Vec<Vec<f32>> {
    let ids: Vec<i64> = tokens.iter().map(|&token| token.into()).collect();
    let ids = Tensor::<2, Int>::from_data(TensorData::new(ids, [1, tokens.len()]), &model.device());
    let (logits, _) = model.forward(ids, model.init_state(1), &StepCodes::dense(), Mode::Evaluate);
    let values: Vec<f32> = logits.into_data().try_to_vec().unwrap();
    values.chunks(ALPHABET.len()).map(<[f32]>::to_vec).collect()
}

#[test]
fn prefill_and_steps_give_the_logits_of_one_pass() {
    let tokens = prompt(40, 1);
    for config in configs() {
        let model = model(&config);
        let expected = forward(&model, &tokens);
        for cut in [1, 7, 39] {
            let mut session = Session::new(&model, 1);
            assert!(distance(session.prefill(&[&tokens[..cut]]).unwrap().row(0), &expected[cut - 1]) <= TOLERANCE, "prefill");
            for (t, &token) in tokens.iter().enumerate().skip(cut) {
                assert!(distance(session.step(&[token]).unwrap().row(0), &expected[t]) <= TOLERANCE, "step");
            }
        }
    }
}

#[test]
fn a_batch_of_unequal_prompts_equals_each_alone() {
    let prompts = [prompt(5, 2), prompt(1, 3), prompt(60, 4), prompt(17, 5)];
    for config in configs() {
        let model = model(&config);
        let mut together = Session::new(&model, prompts.len());
        let first = together.prefill(&prompts).unwrap();
        let second = together.step(&[1, 2, 3, 4]).unwrap();
        for (row, prompt) in prompts.iter().enumerate() {
            let mut alone = Session::new(&model, 1);
            assert!(distance(first.row(row), alone.prefill(&[prompt]).unwrap().row(0)) <= TOLERANCE, "prefill");
            assert!(distance(second.row(row), alone.step(&[row as u32 + 1]).unwrap().row(0)) <= TOLERANCE, "step");
        }
    }
}

#[test]
fn prompts_longer_than_a_pass_are_read_in_several() {
    let prompts = [prompt(9000, 1), prompt(3, 2), prompt(4100, 3)];
    let model = model(&config(MixerKind::MinGru));
    let mut session = Session::new(&model, 3);
    let logits = session.prefill(&prompts).unwrap();
    for (row, prompt) in prompts.iter().enumerate() {
        assert!(distance(logits.row(row), forward(&model, prompt).last().unwrap()) <= TOLERANCE, "long prompt");
    }
}

#[test]
fn rows_that_are_not_stepped_stay_as_they_are() {
    let model = model(&config(MixerKind::Lstm));
    let mut some = Session::new(&model, 3);
    some.prefill(&[prompt(4, 0), prompt(6, 1), prompt(5, 2)]).unwrap();
    let mut each = some.clone();
    let all = each.step(&[9, 8, 7]).unwrap();
    let two = some.step_rows(&[0, 2], &[9, 7]).unwrap();
    let one = some.step_rows(&[1], &[8]).unwrap();
    assert!(distance(two.row(0), all.row(0)) <= TOLERANCE, "row 0");
    assert!(distance(two.row(1), all.row(2)) <= TOLERANCE, "row 2");
    assert!(distance(one.row(0), all.row(1)) <= TOLERANCE, "row 1");
    assert!(distance(some.step(&[1, 1, 1]).unwrap().row(2), each.step(&[1, 1, 1]).unwrap().row(2)) <= TOLERANCE, "after");
}

#[test]
fn a_fork_goes_its_own_way() {
    let model = model(&config(MixerKind::MinLstm));
    let mut session = Session::new(&model, 2);
    session.prefill(&[prompt(9, 1), prompt(3, 2)]).unwrap();
    let mut fork = session.clone();
    assert_eq!(fork.step(&[4, 5]).unwrap(), session.step(&[4, 5]).unwrap());
    fork.step(&[6, 6]).unwrap();
    session.step(&[7, 7]).unwrap();
    assert_ne!(fork.step(&[1, 1]).unwrap(), session.step(&[1, 1]).unwrap());
    let mut swapped = session.select(&[1, 0, 1]).unwrap();
    let (swapped, straight) = (swapped.step(&[2, 3, 2]).unwrap(), session.step(&[3, 2]).unwrap());
    for (row, source) in [1, 0, 1].into_iter().enumerate() {
        assert!(distance(swapped.row(row), straight.row(source)) <= TOLERANCE, "selected row");
    }
}

#[test]
fn impossible_tokens_and_rows_are_sentences() {
    let model = model(&config(MixerKind::MinGru));
    let mut session = Session::new(&model, 2);
    let refusal = |refused: minrnn::Result<minrnn::generate::Logits>| refused.unwrap_err().to_string();
    assert!(refusal(session.prefill(&[[1]])).contains("2 rows"));
    assert!(refusal(session.prefill(&[vec![1], vec![]])).contains("row 1 is empty"));
    assert!(refusal(session.step(&[1, 28])).contains("token id 28"));
    assert!(refusal(session.step_rows(&[1, 0], &[1, 1])).contains("ascending"));
    assert!(refusal(session.step_rows(&[2], &[1])).contains("below 2"));
    assert!(session.select(&[2]).unwrap_err().to_string().contains("no row 2"));
    session.advance(&[vec![], vec![]]).unwrap();
}

#[test]
fn a_saved_session_is_loaded_bit_for_bit() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("session");
    for config in configs() {
        let model = model(&config);
        let identity = ModelIdentity::of(&config, &model);
        let mut session = Session::new(&model, 2);
        session.prefill(&[prompt(9, 1), prompt(3, 2)]).unwrap();
        session.save(&path, &identity).unwrap();
        let mut loaded = Session::load(&path, &model, &identity).unwrap();
        assert_eq!(loaded.step(&[1, 2]).unwrap(), session.step(&[1, 2]).unwrap());
    }
}

fn tokenizer() -> Tokenizer {
    Tokenizer::characters_of(ALPHABET)
}

fn sampling(seed: u64) -> Sampling {
    Sampling { seed, top_k: 9, repetition_penalty: 1.2, ..Default::default() }
}

fn generator<'m>(
    model: &'m SequenceModel,
    tokenizer: &'m Tokenizer,
    prompts: &[&str],
    sampling: Sampling,
) -> TextGenerator<'m, Session<'m>> {
    TextGenerator::new(Session::new(model, prompts.len()), tokenizer, prompts, sampling, &[]).unwrap()
}

/// What each row generates with `n` more tokens, without releasing text that is held back.
fn more(generator: &mut TextGenerator<'_, impl TokenSession>, n: usize) -> Vec<String> {
    let mut texts = vec![String::new(); generator.batch_size()];
    generator
        .generate(n, |piece| {
            texts[piece.row] += &piece.text;
            ControlFlow::Continue(())
        })
        .unwrap();
    texts
}

#[test]
fn greedy_text_is_the_likeliest_token_of_each_pass() {
    let (model, tokenizer) = (model(&config(MixerKind::MinGru)), tokenizer());
    let text = more(&mut generator(&model, &tokenizer, &["abc"], Sampling::greedy()), 12).remove(0);
    let mut tokens = tokenizer.encode("abc").unwrap();
    for _ in 0..12 {
        let logits = forward(&model, &tokens).pop().unwrap();
        tokens.push((0..logits.len()).max_by(|&a, &b| logits[a].total_cmp(&logits[b])).unwrap() as u32);
    }
    assert_eq!(text, tokenizer.decode(&tokens[3..]).unwrap());
}

#[test]
fn the_same_seed_gives_the_same_text_and_rows_differ() {
    let (model, tokenizer) = (model(&config(MixerKind::MinLstm)), tokenizer());
    let texts = |seed| more(&mut generator(&model, &tokenizer, &["ab", "ab", "the cat"], sampling(seed)), 40);
    assert_eq!(texts(3), texts(3));
    assert_ne!(texts(3), texts(4));
    assert_ne!(texts(3)[0], texts(3)[1]);
}

#[test]
fn a_saved_generator_goes_on_as_if_never_interrupted() {
    let (directory, tokenizer) = (tempfile::tempdir().unwrap(), Tokenizer::Byte);
    let path = directory.path().join("session");
    for mixer in [MixerKind::MinGru, MixerKind::Lstm] {
        let config = ModelConfig { vocab_size: 256, ..config(mixer) };
        let model = model(&config);
        let identity = ModelIdentity::of(&config, &model);
        // Random bytes: characters are cut in the middle, and half of a stop string is often held back.
        let stops: Vec<String> = (0..26u8).flat_map(|c| ["qqqq", "zzzz"].map(|end| format!("{}{end}", char::from(b'a' + c)))).collect();
        let new = || {
            TextGenerator::new(Session::new(&model, 3), &tokenizer, &["ab", "", "日"], Sampling { seed: 5, ..Default::default() }, &stops)
                .unwrap()
        };
        let expected = more(&mut new(), 200);
        let mut interrupted = new();
        let mut found = more(&mut interrupted, 0);
        for n in [0, 1, 2, 3, 4, 90, 100] {
            interrupted.save(&path, &identity).unwrap();
            interrupted = TextGenerator::load(&path, &Session::new(&model, 0), &tokenizer, &identity).unwrap();
            for (found, more) in found.iter_mut().zip(more(&mut interrupted, n)) {
                *found += &more;
            }
        }
        assert_eq!(found, expected);
    }
}

#[test]
fn a_generator_that_training_saved_goes_on_in_the_runtime() {
    let (directory, tokenizer) = (tempfile::tempdir().unwrap(), tokenizer());
    let (path, weights) = (directory.path().join("session"), directory.path().join("weights"));
    for &mixer in MixerKind::ALL {
        let config = config(mixer);
        let model = model(&config);
        let identity = ModelIdentity::of(&config, &model);
        let sampling = Sampling { temperature: 0.0, ..Default::default() };
        let mut trained = generator(&model, &tokenizer, &["the cat", "a"], sampling);
        more(&mut trained, 5);
        trained.save(&path, &identity).unwrap();
        minrnn::checkpoint::save_weights(&model, &weights).unwrap();
        let runtime = minrnn_stream::Model::new(&config, &mut Weights::read(&weights).unwrap(), WeightFormat::F32).unwrap();
        let like = RuntimeSession::new(&runtime, 0).unwrap();
        let mut deployed = TextGenerator::load(&path, &like, &tokenizer, &identity).unwrap_or_else(|error| panic!("{mixer}: {error}"));
        assert_eq!(more(&mut deployed, 30), more(&mut trained, 30), "{mixer}");
    }
}

#[test]
fn a_text_prompted_in_parts_goes_on_as_if_prompted_at_once() {
    let (model, tokenizer) = (model(&config(MixerKind::Gru)), tokenizer());
    let expected = more(&mut generator(&model, &tokenizer, &["the cat sat", "x"], sampling(1)), 30);
    let mut parts = generator(&model, &tokenizer, &["the c", "x"], sampling(1));
    assert_eq!(parts.prompt(&["at sat", ""]).unwrap(), ["", ""]);
    assert_eq!(more(&mut parts, 30), expected);
}

#[test]
fn forks_are_alike_until_they_sample_by_themselves() {
    let (model, tokenizer) = (model(&config(MixerKind::MinGru)), tokenizer());
    let mut one = generator(&model, &tokenizer, &["abc"], sampling(2));
    more(&mut one, 10);
    let mut two = one.select(&[0, 0]).unwrap();
    let mut fork = one.clone();
    let expected = more(&mut one, 30).remove(0);
    assert_eq!(more(&mut fork, 30), [expected.as_str()]);
    assert_eq!(more(&mut two.clone(), 30), [expected.as_str(); 2]);
    two.resample(sampling(2)).unwrap();
    let texts = more(&mut two, 30);
    assert_ne!(texts[0], texts[1]);
}

#[test]
fn a_row_ends_before_its_stop_string_and_the_others_go_on() {
    let (model, tokenizer) = (model(&config(MixerKind::MinGru)), tokenizer());
    let prompts = ["ab", "the", "x"];
    let free = more(&mut generator(&model, &tokenizer, &prompts, sampling(11)), 60);
    // Three characters from the middle of the first row: a stop string over three tokens.
    let stop = &free[0][20..23];
    let mut stopping =
        TextGenerator::new(Session::new(&model, prompts.len()), &tokenizer, &prompts, sampling(11), &[stop.to_owned()]).unwrap();
    let mut texts = more(&mut stopping, 60);
    for (text, rest) in texts.iter_mut().zip(stopping.finish()) {
        *text += &rest;
    }
    assert_eq!(texts.len(), free.len());
    for (text, free) in texts.iter().zip(&free) {
        assert_eq!(text, free.split(stop).next().unwrap());
    }
    // A stopped row can be prompted to continue.
    stopping.prompt(&["a", "", ""]).unwrap();
    assert!(!stopping.is_done());
}

#[test]
fn a_stop_string_inside_one_token_is_found() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("text");
    std::fs::write(&path, "abcd efgh\n".repeat(200)).unwrap();
    let tokenizer = minrnn::data::train_tokenizer(minrnn::data::TokenizerKind::Bpe, 270, &path).unwrap();
    let config = ModelConfig { vocab_size: tokenizer.vocab_size(), ..config(MixerKind::MinGru) };
    let model = model(&config);
    let texts = |stops: &[String]| {
        let mut generator =
            TextGenerator::new(Session::new(&model, 1), &tokenizer, &["ab"], Sampling { seed: 1, ..Default::default() }, stops).unwrap();
        let text = more(&mut generator, 2000).remove(0);
        text + &generator.finish()[0]
    };
    let free = texts(&[]);
    assert!(free.contains("bcd"));
    assert_eq!(texts(&["bcd".to_owned()]), free.split("bcd").next().unwrap());
}

#[test]
fn an_empty_prompt_starts_from_a_line_break_or_from_token_0() {
    assert_eq!(tokenizer().start_token(), 0);
    assert_eq!(Tokenizer::Byte.start_token(), u32::from(b'\n'));
    assert_eq!(Tokenizer::characters_of("\t\nx").start_token(), 1);
    assert_eq!(Tokenizer::characters_of("xyz").start_token(), 0);
    let (model, tokenizer) = (model(&config(MixerKind::MinGru)), tokenizer());
    let text = |prompt| more(&mut generator(&model, &tokenizer, &[prompt], sampling(0)), 20);
    assert_eq!(text(""), text("\n"));
}

#[test]
fn tokens_beyond_the_tokenizer_are_never_chosen() {
    let config = ModelConfig { vocab_size: 200, ..config(MixerKind::MinGru) };
    let (model, tokenizer) = (model(&config), tokenizer());
    assert_eq!(more(&mut generator(&model, &tokenizer, &["abc"], Sampling::default()), 200)[0].len(), 200);
}

#[test]
fn what_cannot_be_generated_is_a_sentence() {
    let (model, tokenizer) = (model(&config(MixerKind::MinGru)), tokenizer());
    let refusal = |tokenizer: &Tokenizer, prompt: &str, sampling: Sampling, stop: &[String]| {
        TextGenerator::new(Session::new(&model, 1), tokenizer, &[prompt], sampling, stop).unwrap_err().to_string()
    };
    assert!(refusal(&tokenizer, "abC", sampling(0), &[]).contains("'C' (U+0043)"));
    assert!(refusal(&tokenizer, "a", sampling(0), &[String::new()]).contains("stop string is empty"));
    assert!(refusal(&tokenizer, "a", Sampling { temperature: -1.0, ..sampling(0) }, &[]).contains("temperature"));
    assert!(refusal(&Tokenizer::Byte, "a", sampling(0), &[]).contains("256 tokens, but the model knows 28"));
}

/// Saves a session of one row with text to a file; returns what made it.
fn saved(path: &Path) -> (ModelConfig, SequenceModel, ModelIdentity) {
    let config = config(MixerKind::MinGru);
    let model = model(&config);
    let identity = ModelIdentity::of(&config, &model);
    generator(&model, &tokenizer(), &["abc"], sampling(0)).save(path, &identity).unwrap();
    (config, model, identity)
}

#[test]
fn a_session_of_another_model_is_refused() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("session");
    let (config, model, identity) = saved(&path);
    Session::load(&path, &model, &identity).unwrap();
    let other = SequenceModel::new(&config, 8, &Device::flex()).unwrap();
    let refused = Session::load(&path, &other, &ModelIdentity::of(&config, &other)).unwrap_err().to_string();
    assert!(refused.contains("another model or other weights"), "{refused}");
    let renamed = ModelConfig { candidate: minrnn_model::Candidate::Tanh, ..config.clone() };
    assert_ne!(ModelIdentity::of(&renamed, &model), identity);
    assert_eq!(ModelIdentity::of(&config, &model.clone()), identity);
    Session::new(&model, 1).save(&path, &identity).unwrap();
    let refused = TextGenerator::load(&path, &Session::new(&model, 0), &tokenizer(), &identity).unwrap_err().to_string();
    assert!(refused.contains("no text in it"), "{refused}");
}

#[test]
fn a_damaged_session_is_refused_and_never_panics() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("session");
    let (_, model, identity) = saved(&path);
    let bytes = std::fs::read(&path).unwrap();
    let tokenizer = tokenizer();
    let load = |bytes: &[u8]| {
        std::fs::write(&path, bytes).unwrap();
        TextGenerator::load(&path, &Session::new(&model, 0), &tokenizer, &identity).map(|_| ())
    };
    load(&bytes).unwrap();
    for len in (0..bytes.len()).step_by(7) {
        load(&bytes[..len]).unwrap_err();
    }
    for at in 0..bytes.len().min(1500) {
        let mut bytes = bytes.clone();
        bytes[at] ^= 1;
        let _ = load(&bytes);
    }
    // The checksum covers every bit of the numbers.
    for at in (bytes.len() - 200)..bytes.len() {
        let mut bytes = bytes.clone();
        bytes[at] ^= 1 << (at % 8);
        assert!(load(&bytes).unwrap_err().to_string().contains("its checksum does not match"));
    }
    // The same length, so that only the claim is wrong.
    let edited = |from: &str, to: &str| {
        let at = bytes.windows(from.len()).position(|window| window == from.as_bytes()).unwrap_or_else(|| panic!("no {from}"));
        let mut bytes = bytes.clone();
        bytes[at..at + from.len()].copy_from_slice(to.as_bytes());
        load(&bytes).unwrap_err().to_string()
    };
    assert!(edited("\\\"batch_size\\\":1", "\\\"batch_size\\\":9").contains("its checksum does not match"));
    assert!(edited("minrnn_session", "other__session").contains("another safetensors file"));
    // A session's claims are not believed without a checksum either, as in version 1.
    let unchecked = |from: &str, to: &str| {
        std::fs::write(&path, &bytes).unwrap();
        let mut weights = Weights::read(&path).unwrap();
        let header = weights.metadata()["minrnn_session"][8..].replacen("\"version\":2", "\"version\":1", 1).replacen(from, to, 1);
        let names: Vec<String> = weights.names().map(ToOwned::to_owned).collect();
        let tensors = names.into_iter().map(|name| {
            let (shape, data) = weights.take_any(&name).unwrap().into_parts();
            (name, shape, data.into())
        });
        write_safetensors(&path, tensors, Some(("minrnn_session", &header))).unwrap();
        TextGenerator::load(&path, &Session::new(&model, 0), &tokenizer, &identity).map(|_| ())
    };
    unchecked("", "").unwrap();
    let refused = |from, to| unchecked(from, to).unwrap_err().to_string();
    assert!(refused("\"batch_size\":1", "\"batch_size\":9").contains("claims 9 rows"));
    assert!(refused("\"version\":1", "\"version\":2").contains("session version 2"));
    assert!(refused("\"unread\":4", "\"unread\":-").contains("damaged"));
    let missing = TextGenerator::load(directory.path().join("none"), &Session::new(&model, 0), &tokenizer, &identity).unwrap_err();
    assert!(missing.is_wrong_input() && missing.to_string().starts_with("could not read"));
    let unwritable = Session::new(&model, 1).save(directory.path().join("none/session"), &identity).unwrap_err();
    assert!(unwritable.to_string().starts_with("could not write"), "{unwritable}");
}

#[test]
fn a_session_that_is_not_finite_is_refused_under_a_right_checksum() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("session");
    for mixer in [MixerKind::MinGru, MixerKind::Attention, MixerKind::Hyena] {
        let config = config(mixer);
        let model = model(&config);
        let identity = ModelIdentity::of(&config, &model);
        let mut broken = model.clone();
        broken.embedding = broken.embedding.map(|table| Embedding { weight: table.weight.map(|weight| weight * f32::NAN) });
        let mut session = Session::new(&broken, 2);
        session.advance(&[prompt(3, 1), prompt(2, 2)]).unwrap();
        session.save(&path, &identity).unwrap();
        let refused = Session::load(&path, &model, &identity).unwrap_err();
        let sentence = refused.to_string();
        assert!(refused.is_wrong_input() && sentence.contains("holds NaN, expected finite numbers"), "{mixer}: {sentence}");
        assert!(sentence.contains("its state 'block"), "{sentence}");
    }
}

#[test]
fn a_state_that_is_not_finite_is_not_gone_on_from() {
    fn refused<S: TokenSession>(session: &S) {
        for value in [f32::NAN, f32::INFINITY, f32::NEG_INFINITY] {
            let mut tensors = session.tensors();
            let (name, _, values) = tensors.last_mut().unwrap();
            *values.last_mut().unwrap() = value;
            let expected = format!("its state '{name}' holds {value}, expected finite numbers; start a new session");
            let error = session.restore(session.batch_size(), tensors).err().unwrap();
            assert!(error.is_wrong_input() && error.to_string() == expected, "{error}");
        }
        session.restore(session.batch_size(), session.tensors()).ok().unwrap();
    }
    for mixer in MixerKind::ALL {
        let model = model(&config(*mixer));
        let mut session = Session::new(&model, 2);
        assert!(session.tensors().iter().all(|(_, _, values)| values.iter().all(|value| value.is_finite())), "{mixer}");
        session.advance(&[prompt(3, 1), prompt(2, 2)]).unwrap();
        refused(&session);
    }
    let (directory, config) = (tempfile::tempdir().unwrap(), config(MixerKind::MinGru));
    let weights = directory.path().join("weights");
    minrnn::checkpoint::save_weights(&model(&config), &weights).unwrap();
    let runtime = minrnn_stream::Model::new(&config, &mut Weights::read(&weights).unwrap(), WeightFormat::F32).unwrap();
    let mut session = RuntimeSession::new(&runtime, 2).unwrap();
    session.advance(&[prompt(3, 1), prompt(2, 2)]).unwrap();
    refused(&session);
}

#[test]
fn a_model_whose_logits_are_not_numbers_is_named() {
    let mut model = model(&config(MixerKind::MinGru));
    model.embedding = model.embedding.map(|table| Embedding { weight: table.weight.map(|weight| weight * f32::NAN) });
    let refused = generator(&model, &tokenizer(), &["abc"], sampling(0)).step().unwrap_err().to_string();
    assert!(refused.contains("for text 1 is not finite (NaN)") && refused.contains("weights"), "{refused}");
}
