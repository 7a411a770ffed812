//! C gets what the runtime computes, to the last bit.

#![allow(clippy::undocumented_unsafe_blocks, reason = "every call hands over buffers of the test with lengths that they have")]

mod common;

use common::{
    ALPHABET, classifier, column_code, column_name, forecaster, forked, ok, pieces_model, prefill, regressor, restore, saved, session,
    site_classifier, step_tokens, step_values, table_step, table_surprise, text_model, value_model,
};
use minrnn_capi::*;
use minrnn_model::MixerKind;
use minrnn_stream::{SavedSessions, TableSessions, Workspace};
use proptest::prelude::*;
use sha2::{Digest, Sha256};

fn bits(numbers: &[f32]) -> Vec<u32> {
    numbers.iter().map(|x| x.to_bits()).collect()
}

fn bits_of(numbers: &[f64]) -> Vec<u64> {
    numbers.iter().map(|x| x.to_bits()).collect()
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(24))]

    #[test]
    fn tokens_give_the_bits_of_the_runtime_however_they_are_read(
        mixer in prop::sample::select(vec![MixerKind::MinGru, MixerKind::MinLstm, MixerKind::Mamba, MixerKind::Attention]),
        seed in 0..1000u64,
        rows in 1..4usize,
        prompt in prop::collection::vec(0..10u32, 1..20),
        steps in prop::collection::vec(0..10u32, 1..8),
    ) {
        let packed = text_model(mixer, seed);
        let (rust, model) = (packed.in_rust().model, packed.in_c());
        let (v, row) = (rust.outputs(), rows - 1);
        let (mut state, mut workspace) = (rust.init_state(rows).unwrap(), Workspace::new());
        let (mut expected, mut found) = (vec![0.0; v], vec![0.0; v]);
        rust.prefill_rows(&[row], &[&prompt], &mut state, &mut expected, &mut workspace).unwrap();
        let here = session(model, rows);
        ok(prefill(here, row, &prompt, &mut found));
        prop_assert_eq!(bits(&found), bits(&expected));

        // Token by token, after a pass that only updates the state, and after every token.
        let (each, other) = (session(model, 1), session(model, 1));
        ok(prefill(other, 0, &prompt[..prompt.len() - 1], &mut []));
        ok(step_tokens(other, &[], &prompt[prompt.len() - 1..], &mut found));
        prop_assert_eq!(bits(&found), bits(&expected));
        let mut all = vec![0.0; prompt.len() * v];
        // SAFETY: buffers and their lengths.
        ok(unsafe { minrnn_forward_tokens(each, prompt.as_ptr(), prompt.len(), all.as_mut_ptr(), all.len()) });
        prop_assert_eq!(bits(&all[all.len() - v..]), bits(&expected));

        for &token in &steps {
            rust.step_rows(&[row], &[token], &mut state, &mut expected, &mut workspace).unwrap();
            ok(step_tokens(here, &[row], &[token], &mut found));
            prop_assert_eq!(bits(&found), bits(&expected));
        }

        // A copy and a restored session continue alike; what one of them reads does not affect the others.
        let copy = forked(here);
        let (status, again) = restore(model, &saved(here));
        ok(status);
        ok(minrnn_session_copy_row(each, 0, here, row));
        ok(minrnn_session_reset(here, ALL_ROWS));
        rust.step_rows(&[row], &[3], &mut state, &mut expected, &mut workspace).unwrap();
        for (session, rows) in [(copy, &[row][..]), (again, &[row]), (each, &[])] {
            ok(step_tokens(session, rows, &[3], &mut found));
            prop_assert_eq!(bits(&found), bits(&expected));
        }
        ok(prefill(here, row, &prompt, &mut found));
        ok(step_tokens(copy, &[row], &[1], &mut expected));
        for session in [here, copy, again, each, other] {
            ok(minrnn_session_free(session));
        }
        ok(minrnn_model_free(model));
    }

    #[test]
    fn rows_of_a_table_give_what_the_runtime_gives(
        is_forecast: bool,
        seed in 0..1000u64,
        lines in prop::collection::vec((any::<bool>(), 0..3usize, -1.0..1.0f64), 1..40),
    ) {
        let packed = if is_forecast { forecaster(seed) } else { classifier(seed) };
        let (rust, model) = (packed.in_rust(), packed.in_c());
        let task = rust.table.as_ref().unwrap();
        let width = task.columns().len();
        let mut sessions = TableSessions::new(&rust.model, task, 3).unwrap();
        let mut at_once = sessions.clone();
        let mut here = session(model, 3);
        let mut predictions = vec![0.0; rust.model.outputs()];
        for (i, (gone, row, x)) in lines.into_iter().enumerate() {
            let mut values: Vec<f64> = (0..width).map(|column| task.of_table().mean[column] * (1.0 + x / (column + 1) as f64)).collect();
            if gone && is_forecast {
                values[0] = f64::NAN;
            }
            let expected = sessions.step(&rust.model, task, &[row], &values).unwrap();
            ok(table_step(here, &[row], &values, &mut predictions));
            prop_assert_eq!(bits_of(&predictions), bits_of(expected));
            // Reading without a prediction reads the same as a step.
            at_once.advance(&rust.model, task, &[row], &[&values]).unwrap();
            prop_assert!(at_once.state() == sessions.state());
            prop_assert!(at_once.histories().map(bits_of).eq(sessions.histories().map(bits_of)), "a number that is missing is one like another");
            if i % 7 == 3 {
                // The histories of rows are saved, too.
                let (status, again) = restore(model, &saved(here));
                ok(status);
                ok(minrnn_session_free(std::mem::replace(&mut here, again)));
            }
            if i % 11 == 5 {
                let copy = forked(here);
                ok(minrnn_session_free(std::mem::replace(&mut here, copy)));
            }
            if i % 13 == 9 {
                ok(minrnn_session_reset(here, row));
                sessions.restart(&rust.model, row).unwrap();
                at_once.restart(&rust.model, row).unwrap();
            }
        }
        // All at once.
        let values: Vec<f64> = (0..3).flat_map(|_| task.of_table().mean.clone()).collect();
        let expected = sessions.step(&rust.model, task, &[0, 1, 2], &values).unwrap().to_vec();
        let mut predictions = vec![0.0; 3 * rust.model.outputs()];
        ok(table_step(here, &[], &values, &mut predictions));
        prop_assert_eq!(bits_of(&predictions), bits_of(&expected));
        if !is_forecast {
            prop_assert!(predictions.chunks_exact(3).all(|shares| (shares.iter().sum::<f64>() - 1.0).abs() < 1e-12));
        }
        ok(minrnn_session_free(here));
        ok(minrnn_model_free(model));
    }

    #[test]
    fn text_cut_anywhere_comes_and_goes_whole(text in "[\\n abcdeé日🦀]{0,12}", cuts in prop::collection::vec(any::<prop::sample::Index>(), 0..4)) {
        let packed = text_model(MixerKind::MinGru, 1);
        let model = packed.in_c();
        let bytes = text.as_bytes();
        let (mut tokens, mut n) = (vec![0u32; bytes.len() + 1], 0);
        // SAFETY: buffers and their lengths, here and below.
        ok(unsafe { minrnn_encode(model, bytes.as_ptr().cast(), bytes.len(), tokens.as_mut_ptr(), tokens.len(), &mut n) });
        tokens.truncate(n);
        let mut cuts: Vec<usize> = cuts.iter().map(|cut| cut.index(bytes.len() + 1)).chain([0, bytes.len()]).collect();
        cuts.sort_unstable();
        let mut stream = std::ptr::null_mut();
        ok(unsafe { minrnn_text_new(model, &mut stream) });
        let mut pieces = Vec::new();
        for (i, pair) in cuts.windows(2).enumerate() {
            let piece = &bytes[pair[0]..pair[1]];
            let (mut found, mut n) = (vec![0u32; piece.len() + 4], 0);
            let last = i32::from(i + 2 == cuts.len());
            ok(unsafe { minrnn_text_encode(stream, piece.as_ptr().cast(), piece.len(), last, found.as_mut_ptr(), found.len(), &mut n) });
            pieces.extend_from_slice(&found[..n]);
        }
        prop_assert_eq!(&pieces, &tokens);
        let mut joined = Vec::new();
        for &token in &tokens {
            let (mut piece, mut n) = ([0u8; 8], 0);
            ok(unsafe { minrnn_text_decode(stream, token, piece.as_mut_ptr().cast(), piece.len(), &mut n) });
            joined.extend_from_slice(&piece[..n]);
        }
        prop_assert_eq!(joined, bytes);
        let (mut whole, mut n) = (vec![0u8; bytes.len()], 0);
        ok(unsafe { minrnn_decode(model, tokens.as_ptr(), tokens.len(), whole.as_mut_ptr().cast(), whole.len(), &mut n) });
        prop_assert_eq!(&whole, bytes);
        ok(minrnn_text_free(stream));
        ok(minrnn_model_free(model));
    }
}

const ALL_ROWS: usize = usize::MAX;

#[test]
fn numbers_give_the_bits_of_the_runtime() {
    let packed = value_model(5);
    let (rust, model) = (packed.in_rust().model, packed.in_c());
    let (mut state, mut workspace) = (rust.init_state(2).unwrap(), Workspace::new());
    let here = session(model, 2);
    let (mut expected, mut found) = ([0.0; 4], [0.0; 4]);
    for step in 0..5 {
        let values: Vec<f32> = (0..6).map(|i| (step * 6 + i) as f32 * 0.1 - 1.0).collect();
        rust.step_values(&values, &mut state, &mut expected, &mut workspace).unwrap();
        ok(step_values(here, &[], &values, &mut found));
        assert_eq!(bits(&found), bits(&expected));
    }
    let sequence: Vec<f32> = (0..9).map(|i| i as f32 * 0.2).collect();
    rust.prefill_rows_values(&[1], &[&sequence], &mut state, &mut expected[..2], &mut workspace).unwrap();
    // SAFETY: buffers and their lengths.
    ok(unsafe { minrnn_prefill_values(here, 1, sequence.as_ptr(), sequence.len(), found.as_mut_ptr(), 2) });
    assert_eq!(bits(&found[..2]), bits(&expected[..2]));
    ok(minrnn_session_free(here));
    ok(minrnn_model_free(model));
}

#[test]
fn pieces_are_read_and_written() {
    let packed = pieces_model(2);
    let (model, tokenizer) = (packed.in_c(), minrnn_model::Tokenizer::from_json(&packed.in_rust().tokenizer.unwrap()).unwrap());
    assert_eq!(minrnn_model_kind(model), 1);
    let (mut tokens, mut n) = ([0u32; 32], 0);
    for text in ["abba cab", "日ab", ""] {
        let mut expected = Vec::new();
        tokenizer.encode_bytes_into(text.as_bytes(), 0, &mut expected).unwrap();
        // SAFETY: buffers and their lengths.
        ok(unsafe { minrnn_encode(model, text.as_ptr().cast(), text.len(), tokens.as_mut_ptr(), tokens.len(), &mut n) });
        assert_eq!(tokens[..n], expected);
        let (mut bytes, mut len) = ([0u8; 32], 0);
        // SAFETY: the same.
        ok(unsafe { minrnn_decode(model, tokens.as_ptr(), n, bytes.as_mut_ptr().cast(), bytes.len(), &mut len) });
        assert_eq!(&bytes[..len], text.as_bytes());
    }
    assert_eq!(tokenizer.vocab_size(), minrnn_model_size(model, 0));
    ok(minrnn_model_free(model));
}

#[test]
fn a_line_of_pieces_that_comes_byte_by_byte_is_read_as_the_whole() {
    let packed = pieces_model(2);
    let model = packed.in_c();
    let text = "abba cab 日ab\nabab";
    let (mut whole, mut n, mut stream) = ([0u32; 64], 0, std::ptr::null_mut());
    // SAFETY: buffers and their lengths.
    ok(unsafe { minrnn_encode(model, text.as_ptr().cast(), text.len(), whole.as_mut_ptr(), whole.len(), &mut n) });
    let whole = &whole[..n];
    // SAFETY: there is room for a pointer.
    ok(unsafe { minrnn_text_new(model, &mut stream) });
    let mut found = Vec::new();
    for (at, byte) in text.bytes().enumerate() {
        let last = i32::from(at + 1 == text.len());
        let (mut tokens, mut n) = ([0u32; 64], 0);
        // SAFETY: buffers and their lengths.
        let mut push = |room| unsafe { minrnn_text_encode(stream, [byte].as_ptr().cast(), 1, last, tokens.as_mut_ptr(), room, &mut n) };
        // A refused byte was not taken.
        if byte == b'\n' || last == 1 {
            assert_eq!([push(0), push(1)], [Status::Length; 2]);
        }
        ok(push(64));
        found.extend_from_slice(&tokens[..n]);
    }
    assert_eq!(found, whole);
    ok(minrnn_text_free(stream));
    ok(minrnn_model_free(model));
}

#[test]
fn names_stand_in_a_row_as_the_numbers_that_are_told() {
    let packed = site_classifier(4);
    let (rust, model) = (packed.in_rust(), packed.in_c());
    assert_eq!([minrnn_column_names(model, 0), minrnn_column_names(model, 1)], [0, 3]);
    let names: Vec<_> = (0..3).map(|code| column_name(model, 1, code).unwrap()).collect();
    assert_eq!(names, ["east", "süd", "west"]);
    let codes = [c"east", c"süd", c"west", c"north", c""].map(|name| column_code(model, 1, name));
    assert_eq!(codes, [0.0, 1.0, 2.0, -1.0, -1.0].map(|code| (Status::Ok, code)));
    // Blanks around a name do not count.
    let blanks = [c" west", c"s\xc3\xbcd\t", c" ", c"we st"].map(|name| column_code(model, 1, name));
    assert_eq!(blanks, [2.0, 1.0, -1.0, -1.0].map(|code| (Status::Ok, code)));
    let task = rust.table.unwrap();
    let mut sessions = TableSessions::new(&rust.model, &task, 1).unwrap();
    let (here, mut predictions) = (session(model, 1), [0.0; 3]);
    let mut different = std::collections::BTreeSet::new();
    for (_, code) in codes {
        ok(minrnn_session_reset(here, 0));
        sessions.restart(&rust.model, 0).unwrap();
        ok(table_step(here, &[], &[21.0, code], &mut predictions));
        assert_eq!(predictions[..], *sessions.step(&rust.model, &task, &[0], &[21.0, code]).unwrap());
        different.insert(bits_of(&predictions));
    }
    assert_eq!(different.len(), 4, "each name counts, and those that training never saw count alike");
    ok(minrnn_session_free(here));
    ok(minrnn_model_free(model));
}

#[test]
fn the_only_row_of_a_table_without_sequences_is_saved_without_a_name() {
    let (one, named) = (forecaster(3), classifier(3));
    for (packed, rows, expected) in [(&one, 1, &[""][..]), (&one, 2, &["0", "1"]), (&named, 1, &["0"])] {
        let (rust, model) = (packed.in_rust().model, packed.in_c());
        let identity = minrnn_model::hex(Sha256::digest(&packed.bytes).as_slice());
        let here = session(model, rows);
        let saved = SavedSessions::from_bytes(&saved(here), &rust, &identity).unwrap();
        assert_eq!(saved.names, expected);
        // Any names are accepted.
        let names = (5..5 + rows).map(|name| name.to_string()).collect();
        let (status, again) = restore(model, &SavedSessions { names, ..saved }.to_bytes(&rust, &identity).unwrap());
        ok(status);
        assert_eq!(minrnn_session_size(again, 0), rows);
        for session in [here, again] {
            ok(minrnn_session_free(session));
        }
        ok(minrnn_model_free(model));
    }
}

#[test]
fn rows_are_as_surprising_as_the_runtime_says() {
    let packed = forecaster(5);
    let (rust, model) = (packed.in_rust(), packed.in_c());
    let task = rust.table.unwrap();
    let mut sessions = TableSessions::new(&rust.model, &task, 2).unwrap();
    let (mut here, mut known) = (session(model, 2), 0);
    for (at, rows) in [[40.0, 9.0], [44.0, 12.0], [41.0, 9.5], [43.0, 8.0], [39.0, 30.0], [f64::NAN, 9.0], [42.0, 8.5]].iter().enumerate() {
        let mut found = [0.0; 2];
        ok(table_surprise(here, &[], rows, &mut found));
        let expected = [0, 1].map(|row| sessions.surprise(&task, row, &rows[row..=row]).unwrap().unwrap_or(f64::NAN));
        assert_eq!(bits_of(&found), bits_of(&expected));
        ok(table_surprise(here, &[1], &rows[1..], &mut found[..1]));
        assert_eq!(found[0].to_bits(), expected[1].to_bits());
        known += expected.iter().filter(|surprise| surprise.is_finite()).count();
        ok(table_step(here, &[], rows, &mut [0.0; 24]));
        sessions.step(&rust.model, &task, &[0, 1], rows).unwrap();
        if at == 4 {
            // What is expected of the next row is saved.
            let (status, again) = restore(model, &saved(here));
            ok(status);
            ok(minrnn_session_free(here));
            here = again;
        }
    }
    assert_eq!(known, 3, "as many rows as come before the level is known have no surprise, nor has a missing value");
    assert_eq!([0.5, 0.9, 0.999].map(|share| minrnn_model_threshold(model, share)), [11.0, 19.0, 20.0]);
    ok(minrnn_session_free(here));
    ok(minrnn_model_free(model));
}

#[test]
fn a_regressor_answers_as_the_runtime_does() {
    let packed = regressor(3);
    let (rust, model) = (packed.in_rust(), packed.in_c());
    assert_eq!((minrnn_model_kind(model), minrnn_model_size(model, 9)), (7, 1));
    let task = rust.table.unwrap();
    let mut sessions = TableSessions::new(&rust.model, &task, 1).unwrap();
    let (here, mut found) = (session(model, 1), [0.0]);
    for row in [[20.0, 0.5], [31.5, 0.25], [-4.0, 0.75]] {
        ok(table_step(here, &[], &row, &mut found));
        assert_eq!(found, sessions.step(&rust.model, &task, &[0], &row).unwrap());
        assert!(found[0] > 0.0 && found[0] < 2000.0, "in the units of the table: {}", found[0]);
    }
    ok(minrnn_session_free(here));
    ok(minrnn_model_free(model));
}

#[test]
fn a_sampler_chooses_what_the_runtime_chooses() {
    let mut rust = minrnn_stream::Sampler::new(minrnn_stream::Sampling {
        temperature: 0.7,
        top_k: 9,
        top_p: 0.9,
        min_p: 0.01,
        repetition_penalty: 1.3,
        seed: 11,
    })
    .unwrap();
    let mut sampler = std::ptr::null_mut();
    // SAFETY: there is room for a pointer.
    ok(unsafe { minrnn_sampler_new(11, &mut sampler) });
    for (setting, value) in [(0, 0.7), (1, 9.0), (2, 0.9), (3, 0.01), (4, 1.3)] {
        ok(minrnn_sampler_set(sampler, setting, value));
    }
    for draw in 0..50 {
        let logits: Vec<f32> = (0..20).map(|i| ((i * 7 + draw * 3) as f32).sin() * 3.0).collect();
        let recent = [draw as u32 % 20, 3];
        let (mut here, mut token) = (logits.clone(), 0);
        // SAFETY: buffers and their lengths.
        ok(unsafe { minrnn_sampler_sample(sampler, here.as_mut_ptr(), here.len(), recent.as_ptr(), 2, &mut token) });
        assert_eq!(token, rust.sample(&mut logits.clone(), &recent).unwrap());
    }
    ok(minrnn_sampler_free(sampler));
}

#[test]
fn a_model_tells_what_it_is() {
    let name = |model, what, index| {
        let name = minrnn_model_name(model, what, index);
        // SAFETY: the library's own text.
        (!name.is_null()).then(|| unsafe { std::ffi::CStr::from_ptr(name) }.to_str().unwrap().to_owned())
    };
    let sizes = |model| (0..13).map(|what| minrnn_model_size(model, what)).collect::<Vec<_>>();
    let (text, classes, values, numbers) = (text_model(MixerKind::MinGru, 1), classifier(1), forecaster(1), value_model(1));
    let models = [&text, &classes, &values, &numbers].map(|packed| packed.in_c());
    assert_eq!(models.map(|model| minrnn_model_kind(model)), [1, 2, 3, 6]);
    let [text_model, classes, values, numbers] = models;
    let v = ALPHABET.chars().count();
    let parameters = |packed: &common::Packed| packed.in_rust().model.parameters();
    assert_eq!(sizes(text_model), [v, 0, v, parameters(&text), 0, 0, 0, 0, 0, 0, 0, 0, 0]);
    assert_eq!(sizes(classes)[4..], [2, 3, 1, 0, 0, 3, 0, 0, 1]);
    assert_eq!(sizes(values)[4..], [1, 0, 1, 4, 3, 12, 1, 0, 0]);
    assert_eq!(sizes(numbers)[..3], [0, 3, 2]);
    assert_eq!(
        (name(classes, 4, 1), name(classes, 5, 2), name(classes, 6, 0)),
        (Some("noise".into()), Some("broken".into()), Some("state".into()))
    );
    assert_eq!((name(classes, 12, 0).as_deref(), name(values, 12, 0)), (Some("machine"), None));
    assert_eq!((name(classes, 4, 2), name(classes, 3, 0), name(text_model, 4, 0)), (None, None, None));
    assert_eq!((minrnn_model_quantile(values, 2), minrnn_model_quantile(values, 3).is_nan()), (0.9, true));
    let here = session(text_model, 3);
    assert_eq!(minrnn_session_size(here, 0), 3);
    assert_eq!(minrnn_session_size(here, 1), 3 * minrnn_model_session_bytes(text_model, 100));
    ok(minrnn_session_free(here));
    models.into_iter().for_each(|model| ok(minrnn_model_free(model)));
}
