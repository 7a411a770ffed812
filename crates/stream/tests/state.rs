//! States as values: forked, chosen, saved and restored.

mod common;

use common::{configs, drawn_model, model, small, tokens};
use minrnn_model::{MixerKind, ModelConfig, WeightFormat};
use minrnn_stream::{Model, SavedSessions, State, Workspace};

/// A state of `rows` sessions that have read different prompts.
fn read(model: &Model, rows: usize) -> State {
    let mut state = model.init_state(rows).unwrap();
    let prompts: Vec<Vec<u32>> = (0..rows).map(|row| tokens(model.config(), 3 + row, row as u64)).collect();
    model.advance(&prompts, &mut state, &mut Workspace::new()).unwrap();
    state
}

#[test]
fn a_state_survives_the_trip_through_bytes() {
    for config in configs() {
        let model = model(&config, WeightFormat::F32);
        for rows in [0, 1, 3] {
            let state = read(&model, rows);
            assert_eq!(State::from_bytes(&state.to_bytes().unwrap(), &model).unwrap(), state);
        }
    }
}

#[test]
fn a_session_takes_its_vectors_and_nothing_else() {
    let bytes = |config: ModelConfig| model(&config, WeightFormat::F32).init_state(1).unwrap().bytes();
    // Two layers of E = 48, and windows of 3 · D = 72.
    assert_eq!(bytes(small(MixerKind::MinGru)), 4 * 2 * 48);
    assert_eq!(bytes(small(MixerKind::Lstm)), 4 * 2 * 96);
    assert_eq!(bytes(ModelConfig { conv: true, ..small(MixerKind::Gru) }), 4 * 2 * (48 + 72));
}

#[test]
fn damaged_states_and_those_of_other_models_are_sentences() {
    let config = small(MixerKind::MinGru);
    let model = model(&config, WeightFormat::F32);
    let bytes = read(&model, 2).to_bytes().unwrap();
    let refusal = |bytes: &[u8], model: &Model| State::from_bytes(bytes, model).unwrap_err().to_string();
    for len in 0..bytes.len() {
        assert!(refusal(&bytes[..len], &model).starts_with("the saved state "), "cut to {len}");
    }
    for at in 0..bytes.len() {
        for bit in [1, 0x80] {
            let mut damaged = bytes.clone();
            damaged[at] ^= bit;
            assert!(refusal(&damaged, &model).starts_with("the saved state "), "byte {at}");
        }
    }
    let other = common::model(&ModelConfig { n_layers: 3, ..config }, WeightFormat::F32);
    assert!(refusal(&bytes, &other).contains("belongs to another model"));
}

/// `bytes` with another checksum, with a header that is no object, and with a header that is longer than they are.
fn damaged(bytes: &[u8]) -> [Vec<u8>; 3] {
    let sealed = |mut bytes: Vec<u8>| {
        let end = bytes.len() - 4;
        let checksum = crc32c::crc32c(&bytes[..end]).to_le_bytes();
        bytes[end..].copy_from_slice(&checksum);
        bytes
    };
    let [mut flipped, mut garbled, mut longer] = [(); 3].map(|()| bytes.to_vec());
    *flipped.last_mut().unwrap() ^= 1;
    garbled[12] = b'[';
    longer[8..12].fill(0xff);
    [flipped, sealed(garbled), sealed(longer)]
}

#[test]
fn damage_has_the_same_words_in_states_and_in_named_sessions() {
    let model = model(&small(MixerKind::MinGru), WeightFormat::F32);
    let state = read(&model, 1);
    let names = vec!["north".to_owned()];
    let sessions = SavedSessions { names, logits: vec![], histories: vec![], forecasts: vec![], state: state.clone() };
    let (of_state, of_sessions) = (state.to_bytes().unwrap(), sessions.to_bytes(&model, "m").unwrap());
    let cases = [
        (of_state[..12].to_vec(), of_sessions[..12].to_vec(), "the saved state was cut short; "),
        (of_state[1..].to_vec(), of_sessions[1..].to_vec(), "the saved state does not begin like one that minrnn saved; "),
    ];
    let words = ["is damaged: its checksum does not match; ", "has a header that cannot be read (", "is shorter than its header says; "];
    let changed = damaged(&of_state).into_iter().zip(damaged(&of_sessions)).zip(words);
    let changed = changed.map(|((state, sessions), words)| (state, sessions, words));
    for (state, sessions, words) in cases.into_iter().chain(changed) {
        let of_state = State::from_bytes(&state, &model).unwrap_err().to_string();
        let of_sessions = SavedSessions::from_bytes(&sessions, &model, "m").unwrap_err().to_string();
        assert!(of_state.contains(words) && of_state.ends_with("; save it again"), "{of_state}");
        assert!(of_sessions.contains(words) && of_sessions.ends_with("; begin without it or take another one"), "{of_sessions}");
    }
}

#[test]
fn of_two_models_the_first_difference_is_told_and_no_more() {
    let base = small(MixerKind::MinGru);
    let attention = ModelConfig { max_seq_len: 8, ..small(MixerKind::Attention) };
    for (one, other, words) in [
        (&base, ModelConfig { d_model: 32, n_layers: 3, ..base.clone() }, "its width is 24, expected 32"),
        (&base, ModelConfig { n_layers: 3, ..base.clone() }, "its number of blocks is 2, expected 3"),
        (&base, ModelConfig { conv: true, ..base.clone() }, "its convolution is off, expected on"),
        (&base, small(MixerKind::MinLstm), "its mixer of block 0 is min-gru, expected min-lstm"),
        (&base, ModelConfig { expansion: 3.0, ..base.clone() }, "its size of block 0 in numbers is 48, expected 72"),
        (
            &attention,
            ModelConfig { max_seq_len: 9, ..attention.clone() },
            "its past is 7 tokens of 48 numbers in block 0, expected 8 tokens of 48",
        ),
    ] {
        let [one, other] = [one, &other].map(|config| drawn_model(config, WeightFormat::F32));
        let mut state = read(&one, 1);
        let saved = State::from_bytes(&state.to_bytes().unwrap(), &other).unwrap_err().to_string();
        assert!(saved.contains(&format!("the saved state belongs to another model: {words}")) && saved.len() < 200, "{saved}");
        let stepped = other.step(&[1], &mut state, &mut vec![0.0; other.outputs()], &mut Workspace::new()).unwrap_err().to_string();
        assert!(stepped.contains(&format!("the state belongs to another model: {words}")) && stepped.len() < 200, "{stepped}");
    }
}

#[test]
fn models_states_and_memory_are_told_by_their_sizes() {
    let model = model(&small(MixerKind::Lstm), WeightFormat::F32);
    let mut state = read(&model, 9);
    let (mut workspace, mut logits) = (Workspace::new(), vec![0.0; 9 * model.outputs()]);
    model.step(&[1; 9], &mut state, &mut logits, &mut workspace).unwrap();
    let told = [format!("{model:?}"), format!("{state:?}"), format!("{workspace:?}")];
    assert!(told.iter().all(|told| told.len() < 300), "{told:?}");
    assert!(told[0].contains("Lstm") && told[0].contains(&format!("parameters: {}", model.parameters())), "{}", told[0]);
    assert!(told[1].contains(&format!("rows: 9, bytes_per_row: {}, bytes: {}", state.bytes_per_row(), state.bytes())), "{}", told[1]);
}

#[test]
fn chosen_copied_and_appended_sessions_keep_their_numbers() {
    let model = model(&ModelConfig { conv: true, ..small(MixerKind::Lstm) }, WeightFormat::F32);
    let state = read(&model, 4);
    let chosen = state.select(&[2, 0, 2]).unwrap();
    assert_eq!((chosen.rows(), chosen.bytes()), (3, 3 * state.bytes_per_row()));
    assert_eq!(chosen.select(&[1]).unwrap(), state.select(&[0]).unwrap());
    assert_eq!(chosen.select(&[0]).unwrap(), chosen.select(&[2]).unwrap());
    let mut copied = model.init_state(4).unwrap();
    (0..4).for_each(|row| copied.copy_row(row, &state, row).unwrap());
    assert_eq!(copied, state);
    let mut appended = state.select(&[0, 1]).unwrap();
    appended.append(&state.select(&[2, 3]).unwrap()).unwrap();
    assert_eq!(appended, state);
    assert!(state.select(&[4]).unwrap_err().to_string().contains("no session 4"));
    assert!(copied.copy_row(4, &state, 0).unwrap_err().to_string().contains("no session 4"));
    let other = common::model(&small(MixerKind::Lstm), WeightFormat::F32).init_state(1).unwrap();
    assert!(copied.copy_row(0, &other, 0).unwrap_err().to_string().contains("another model"));
}

#[test]
fn a_fork_goes_its_own_way() {
    let model = model(&small(MixerKind::Gru), WeightFormat::F32);
    let mut workspace = Workspace::new();
    let mut logits = vec![0.0; model.vocab_size()];
    let mut original = read(&model, 1);
    let fork = original.clone();
    model.step(&[5], &mut original, &mut logits, &mut workspace).unwrap();
    assert_ne!(original, fork);
    let mut again = fork.clone();
    let mut repeated = vec![0.0; model.vocab_size()];
    model.step(&[5], &mut again, &mut repeated, &mut workspace).unwrap();
    assert_eq!((again, repeated), (original, logits));
}
