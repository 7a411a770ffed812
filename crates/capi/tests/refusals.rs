//! What cannot be done is refused with a status and a sentence, and changes nothing.

// The buffers of these calls are wrong on purpose, and each is still as long as it is said to be.
#![allow(clippy::undocumented_unsafe_blocks, reason = "every call hands over buffers of the test with lengths that they have")]

mod common;

use std::ptr::{null, null_mut, without_provenance_mut};
use std::sync::atomic::{AtomicBool, Ordering};

use common::{
    Packed, byte_model, classifier, column_code, column_name, forecaster, forecaster_without_rows, forked, ok, overflowing_forecaster,
    prefill, refused, restore, saved, sentence, session, site_classifier, step_tokens, step_values, table_step, table_surprise, text_model,
    value_model,
};
use minrnn_capi::*;
use minrnn_model::{MixerKind, PackedFile};
use proptest::prelude::*;

fn load(bytes: &[u8]) -> (Status, *mut ModelHandle) {
    let mut model = null_mut();
    (unsafe { minrnn_model_from_memory(bytes.as_ptr(), bytes.len(), &mut model) }, model)
}

fn open(path: &str) -> Status {
    let (path, mut model) = (std::ffi::CString::new(path).unwrap(), null_mut());
    unsafe { minrnn_model_open(path.as_ptr(), &mut model) }
}

#[test]
fn files_that_are_no_models_are_refused() {
    let packed = text_model(MixerKind::MinGru, 3);
    let path = packed.folder.path().join("changed.minrnn");
    let shown = path.to_str().unwrap();
    for (bytes, words) in [
        (&packed.bytes[..packed.bytes.len() / 2], "cut short"),
        (&packed.bytes[..5], "fewer than its first 24"),
        (&[], "fewer than its first 24"),
        (&packed.bytes[1..], "does not begin like one"),
    ] {
        refused(load(bytes).0, Status::Model, words);
        std::fs::write(&path, bytes).unwrap();
        refused(open(shown), Status::Model, words);
        assert!(sentence().contains("changed.minrnn"), "{}", sentence());
    }
    refused(open("no/such/file"), Status::File, "could not read 'no/such/file'");
    refused(open(packed.folder.path().to_str().unwrap()), Status::File, "could not read");
    refused(unsafe { minrnn_model_open(null(), &mut null_mut()) }, Status::Pointer, "path is a null pointer");
    refused(unsafe { minrnn_model_open(c"x".as_ptr(), null_mut()) }, Status::Pointer, "out is a null pointer");
    refused(unsafe { minrnn_model_from_memory(null(), 10, &mut null_mut()) }, Status::Pointer, "bytes is a null pointer, expected 10");
    refused(unsafe { minrnn_model_from_memory(null(), usize::MAX, &mut null_mut()) }, Status::Pointer, "null");
    let bytes = &packed.bytes;
    refused(unsafe { minrnn_model_from_memory(bytes.as_ptr(), usize::MAX, &mut null_mut()) }, Status::Length, "more than memory can hold");
}

#[cfg(unix)]
#[test]
fn what_has_no_end_is_refused_by_how_it_begins_and_a_model_comes_through_a_pipe() {
    use std::io::Write;
    use std::os::fd::AsRawFd;

    refused(open("/dev/zero"), Status::Model, "does not begin like one");
    let packed = text_model(MixerKind::MinGru, 3);
    let piped = |parts: &[&[u8]]| {
        let (reader, mut writer) = std::io::pipe().unwrap();
        let bytes = parts.concat();
        let writes = std::thread::spawn(move || drop(writer.write_all(&bytes)));
        let status = open(&format!("/dev/fd/{}", reader.as_raw_fd()));
        drop(reader);
        writes.join().unwrap();
        status
    };
    ok(piped(&[&packed.bytes]));
    refused(piped(&[&packed.bytes[..packed.bytes.len() / 2]]), Status::Model, "cut short");
    // However much follows the model.
    refused(piped(&[&packed.bytes, &vec![0; 1 << 20]]), Status::Model, &format!("but has {}", packed.bytes.len() + 1));
    refused(piped(&[&[0; 1 << 20]]), Status::Model, "does not begin like one");
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(300))]

    #[test]
    fn a_flipped_byte_is_refused_or_changes_nothing_dangerous(at in any::<prop::sample::Index>(), flip in 1..=255u8, mended: bool) {
        let packed = classifier(4);
        let mut bytes = packed.bytes.clone();
        let at = at.index(bytes.len() - 4);
        bytes[at] ^= flip;
        if mended {
            let end = bytes.len() - 4;
            let checksum = minrnn_model::crc32c(&bytes[..end]).to_le_bytes();
            bytes[end..].copy_from_slice(&checksum);
        }
        let (status, model) = load(&bytes);
        prop_assert!(mended || status == Status::Model);
        if status == Status::Ok {
            let here = session(model, 1);
            let n = minrnn_model_size(model, 9);
            let mut predictions = vec![0.0; n];
            let _ = table_step(here, &[], &vec![1.0; minrnn_model_size(model, 4)], &mut predictions);
            ok(minrnn_session_free(here));
            ok(minrnn_model_free(model));
        }
    }

    #[test]
    fn a_changed_state_is_refused(at in any::<prop::sample::Index>(), flip in 1..=255u8, cut: bool) {
        let model = forecaster(2).in_c();
        let here = session(model, 2);
        ok(table_step(here, &[], &[40.0, 50.0], &mut [0.0; 24]));
        let mut bytes = saved(here);
        let at = at.index(bytes.len());
        if cut { bytes.truncate(at) } else { bytes[at] ^= flip }
        refused(restore(model, &bytes).0, Status::State, "the saved state");
        ok(minrnn_session_free(here));
        ok(minrnn_model_free(model));
    }
}

#[test]
fn a_header_that_lies_is_refused() {
    let packed = text_model(MixerKind::MinGru, 3);
    let file = PackedFile::parse(&packed.bytes).unwrap();
    let mut config = file.config().clone();
    config.d_model = 1 << 20;
    refused(load(&PackedFile::encode(&config, &[], &[])).0, Status::Model, "d_model must be between 1 and 65536");
    let claims = |number: u64, at: usize| {
        let mut bytes = packed.bytes.clone();
        bytes[at..at + 8].copy_from_slice(&number.to_le_bytes());
        bytes
    };
    refused(load(&claims(u64::MAX, 16)).0, Status::Model, "should have 18446744073709551615 bytes");
    refused(load(&claims(u64::MAX, 8)).0, Status::Model, "has version 4294967295");
}

#[test]
fn handles_that_are_none_are_refused() {
    let packed = text_model(MixerKind::MinGru, 1);
    let model = packed.in_c();
    let here = session(model, 1);
    let v = minrnn_model_size(model, 2);
    let mut outputs = vec![0.0; v];
    refused(step_tokens(null_mut(), &[], &[1], &mut outputs), Status::Pointer, "the session is a null pointer");
    refused(step_tokens(model.cast(), &[], &[1], &mut outputs), Status::Handle, "the session is none");
    refused(minrnn_session_free(model.cast()), Status::Handle, "the session is none");
    for wild in [1, 0xdead_beef, usize::MAX, here.addr() + (1 << 40)] {
        refused(step_tokens(without_provenance_mut(wild), &[], &[1], &mut outputs), Status::Handle, "the session is none");
        refused(minrnn_model_free(without_provenance_mut(wild)), Status::Handle, "the model is none");
    }
    ok(step_tokens(here, &[], &[1], &mut outputs));
    // Sessions outlive their model.
    ok(minrnn_model_free(model));
    refused(minrnn_model_free(model), Status::Handle, "it was freed");
    assert_eq!((minrnn_model_kind(model), minrnn_model_size(model, 0), minrnn_model_name(model, 4, 0).is_null()), (0, 0, true));
    ok(step_tokens(here, &[], &[1], &mut outputs));
    ok(minrnn_session_free(here));
    for _ in 0..100 {
        refused(minrnn_session_free(here), Status::Handle, "it was freed");
        let model = packed.in_c();
        let other = session(model, 1);
        refused(step_tokens(here, &[], &[1], &mut outputs), Status::Handle, "it was freed");
        ok(minrnn_session_free(other));
        ok(minrnn_model_free(model));
    }
    ok(minrnn_session_free(null_mut()));
    ok(minrnn_model_free(null_mut()));
    ok(minrnn_sampler_free(null_mut()));
    ok(minrnn_text_free(null_mut()));
}

#[test]
fn a_model_is_freed_while_others_use_it() {
    let packed = byte_model(1);
    let text = vec![b'a'; 1 << 16];
    for _ in 0..20 {
        let model = packed.in_c();
        let (address, is_begun) = (model.addr(), AtomicBool::new(false));
        std::thread::scope(|scope| {
            scope.spawn(|| {
                let mut n = 0;
                let mut encode =
                    || unsafe { minrnn_encode(without_provenance_mut(address), text.as_ptr().cast(), text.len(), null_mut(), 0, &mut n) };
                let ended = loop {
                    let status = encode();
                    // Also if the call is refused: the other thread waits for this flag.
                    is_begun.store(true, Ordering::Relaxed);
                    // Busy while it is being freed.
                    if ![Status::Ok, Status::Busy].contains(&status) {
                        break status;
                    }
                };
                refused(ended, Status::Handle, "it was freed");
            });
            while !is_begun.load(Ordering::Relaxed) {
                std::hint::spin_loop();
            }
            ok(minrnn_model_free(model));
        });
    }
}

#[test]
fn a_handle_in_use_is_told() {
    let model = text_model(MixerKind::MinGru, 1).in_c();
    let here = session(model, 1);
    let tokens = vec![1u32; 20_000];
    let address = here.addr();
    let is_told = AtomicBool::new(false);
    // Either thread may find the handle in use by the other.
    let read = || match prefill(without_provenance_mut(address), 0, &tokens, &mut []) {
        Status::Busy => is_told.store(true, Ordering::Relaxed),
        status => ok(status),
    };
    std::thread::scope(|scope| {
        let reader = scope.spawn(|| (0..1000).take_while(|_| !is_told.load(Ordering::Relaxed)).for_each(|_| read()));
        while !reader.is_finished() {
            match minrnn_session_reset(without_provenance_mut(address), 7) {
                Status::Busy => is_told.store(true, Ordering::Relaxed),
                status => refused(status, Status::Input, "there is no session 7"),
            }
        }
    });
    assert!(is_told.into_inner(), "prompts of 20 000 tokens are read in the meantime");
    ok(minrnn_session_free(here));
    ok(minrnn_model_free(model));
}

#[test]
fn buffers_of_other_lengths_are_refused() {
    let model = text_model(MixerKind::MinGru, 1).in_c();
    let here = session(model, 2);
    let v = minrnn_model_size(model, 2);
    let mut outputs = vec![0.0f32; 2 * v];
    let before = saved(here);
    refused(
        step_tokens(here, &[], &[1, 2], &mut outputs[1..]),
        Status::Length,
        &format!("outputs: expected {} elements, found {}", 2 * v, 2 * v - 1),
    );
    refused(step_tokens(here, &[], &[1], &mut outputs), Status::Length, "tokens: expected 2 elements, found 1: what a step reads");
    refused(step_tokens(here, &[1, 0], &[1, 2], &mut outputs), Status::Input, "ascending sessions below 2, found 0 behind 1");
    refused(step_tokens(here, &[0, 2], &[1, 2], &mut outputs), Status::Input, "ascending sessions below 2");
    refused(step_tokens(here, &[], &[1, 99], &mut outputs), Status::Input, "token id 99 is not known");
    refused(step_values(here, &[], &[1.0, 2.0], &mut outputs), Status::Kind, "the model reads tokens below");
    refused(table_step(here, &[], &[1.0], &mut [0.0]), Status::Kind, "not trained on a table");
    refused(table_surprise(here, &[], &[1.0], &mut [0.0]), Status::Kind, "not trained on a table");
    assert!(minrnn_model_threshold(model, 0.9).is_nan() && sentence().contains("does not say how surprising held-out rows were"));
    refused(prefill(here, 0, &[1], &mut outputs), Status::Length, "the outputs of the model after the last step, or none");
    refused(prefill(here, 0, &[], &mut outputs[..v]), Status::Input, "the sequence of session 0 is empty");
    refused(prefill(here, 2, &[1], &mut outputs[..v]), Status::Input, "sessions below 2");
    let null_tokens = unsafe { minrnn_step_tokens(here, null(), 0, null(), 2, outputs.as_mut_ptr(), outputs.len()) };
    refused(null_tokens, Status::Pointer, "tokens is a null pointer, expected 2 elements");
    let null_rows = unsafe { minrnn_step_tokens(here, null(), 1, [1].as_ptr(), 1, outputs.as_mut_ptr(), v) };
    refused(null_rows, Status::Pointer, "rows is a null pointer");
    let null_outputs = unsafe { minrnn_step_tokens(here, null(), 0, [1, 2].as_ptr(), 2, null_mut(), 2 * v) };
    refused(null_outputs, Status::Pointer, "outputs is a null pointer");
    let crooked = unsafe { minrnn_step_tokens(here, null(), 0, [1, 2].as_ptr(), 2, outputs.as_mut_ptr().byte_add(1), 2 * v - 1) };
    refused(crooked, Status::Pointer, "outputs is not aligned");
    let same = unsafe { minrnn_step_tokens(here, null(), 0, outputs.as_ptr().cast(), 2, outputs.as_mut_ptr(), 2 * v) };
    refused(same, Status::Pointer, "tokens and outputs overlap");
    let wide = unsafe { minrnn_step_tokens(here, null(), 0, [1].as_ptr(), usize::MAX, outputs.as_mut_ptr(), 2 * v) };
    refused(wide, Status::Length, "tokens is said to have");
    let rows: Vec<usize> = (0..1000).rev().collect();
    let mut room = vec![0.0; rows.len() * v];
    refused(step_tokens(here, &rows, &vec![1; rows.len()], &mut room), Status::Input, "found 998 behind 999");
    assert!(sentence().len() < 100, "{}", sentence());
    let many = unsafe { minrnn_forward_tokens(here, [1].as_ptr(), 1, outputs.as_mut_ptr(), v) };
    refused(many, Status::Input, "the session has 2 rows, expected 1");
    assert_eq!(saved(here), before, "what is refused changes nothing");

    let mut len = 0;
    let mut small = [0u8; 8];
    refused(unsafe { minrnn_session_save(here, small.as_mut_ptr(), 8, &mut len) }, Status::Length, "expected at least");
    assert_eq!(len, before.len());
    refused(unsafe { minrnn_session_save(here, small.as_mut_ptr(), 8, null_mut()) }, Status::Pointer, "len is a null pointer");
    refused(unsafe { minrnn_session_new(model, usize::MAX, &mut null_mut()) }, Status::Memory, "memory cannot hold");
    refused(unsafe { minrnn_session_new(model, 1 << 50, &mut null_mut()) }, Status::Memory, "memory cannot hold");
    refused(minrnn_session_reset(here, 2), Status::Input, "there is no session 2");
    refused(minrnn_session_copy_row(here, 0, here, 2), Status::Input, "there is no session 2");
    assert_eq!((minrnn_session_size(here, 2), minrnn_model_size(model, 13), minrnn_model_size(model, -1)), (0, 0, 0));
    ok(minrnn_session_free(here));

    // A session without rows may read nothing.
    let none = session(model, 0);
    ok(step_tokens(none, &[], &[], &mut []));
    ok(minrnn_session_free(none));
    ok(minrnn_model_free(model));
}

#[test]
fn rows_that_cannot_be_read_are_refused() {
    let model = classifier(1).in_c();
    let here = session(model, 1);
    let mut predictions = [0.0; 3];
    let before = saved(here);
    refused(table_step(here, &[], &[f64::NAN, 0.5], &mut predictions), Status::Input, "column 'heat': found NaN, expected a finite number");
    refused(table_step(here, &[], &[20.0, f64::INFINITY], &mut predictions), Status::Input, "column 'noise': found inf");
    refused(table_step(here, &[], &[1e30, 0.5], &mut predictions), Status::Input, "deviations from the mean 20 of the table");
    refused(table_step(here, &[], &[20.0], &mut predictions), Status::Length, "values: expected 2 elements, found 1");
    refused(table_step(here, &[], &[20.0, 0.5], &mut predictions[..2]), Status::Length, "predictions: expected 3 elements, found 2");
    refused(table_step(here, &[3], &[20.0, 0.5], &mut predictions), Status::Input, "ascending sessions below 1");
    refused(table_surprise(here, &[], &[20.0, 0.5], &mut [0.0]), Status::Kind, "labels whole sequences and predicts no rows");
    refused(step_values(here, &[], &[f32::NAN, 0.0], &mut [0.0; 3]), Status::Input, "is NaN, expected a finite number");
    assert_eq!(saved(here), before, "what is refused changes nothing");
    ok(table_step(here, &[], &[20.0, 0.5], &mut predictions));
    let far = forecaster(1).in_c();
    let other = session(far, 1);
    refused(table_step(other, &[], &[f64::NEG_INFINITY], &mut [0.0; 12]), Status::Input, "column 'load'");
    ok(table_step(other, &[], &[f64::NAN], &mut [0.0; 12]));
    refused(table_surprise(other, &[], &[20.0, 0.5], &mut [0.0]), Status::Length, "values: expected 1 elements, found 2");
    refused(table_surprise(other, &[], &[20.0], &mut [0.0; 2]), Status::Length, "surprises: expected 1 elements, found 2");
    refused(table_surprise(other, &[1], &[20.0], &mut [0.0]), Status::Input, "below 1, found 1");
    for share in [0.0, 1.5, f64::NAN] {
        assert!(minrnn_model_threshold(far, share).is_nan() && sentence().starts_with("share: expected a share of rows above 0"));
    }
    let new = forecaster_without_rows(1).in_c();
    assert!(minrnn_model_threshold(new, 0.9).is_nan() && sentence().starts_with("none of the rows to compare with has a surprise"));
    for session in [here, other] {
        ok(minrnn_session_free(session));
    }
    for model in [model, far, new] {
        ok(minrnn_model_free(model));
    }
}

#[test]
fn a_bad_number_is_named_with_its_row() {
    let model = classifier(1).in_c();
    let here = session(model, 3);
    let mut predictions = [0.0; 6];
    let status = table_step(here, &[0, 2], &[20.0, 0.5, f64::NAN, 0.5], &mut predictions);
    refused(status, Status::Input, "row 2, column 'heat': found NaN, expected a finite number");
    ok(minrnn_session_free(here));
    ok(minrnn_model_free(model));
}

#[test]
fn what_stands_for_no_name_is_refused() {
    let (model, numbers, text) = (site_classifier(1).in_c(), classifier(1).in_c(), text_model(MixerKind::MinGru, 1).in_c());
    let here = session(model, 1);
    let before = saved(here);
    for code in [3.0, 0.5, -2.0, 1e9] {
        let status = table_step(here, &[], &[20.0, code], &mut [0.0; 3]);
        refused(status, Status::Input, "expected the number of a name (0 is 'east', 1 is 'süd', 2 is 'west'), or -1");
        assert!(sentence().starts_with(&format!("column 'site': found {code:?}")), "{}", sentence());
    }
    assert_eq!(saved(here), before, "what is refused changes nothing");
    for code in [0.0, 2.0, -1.0, f64::NAN] {
        ok(table_step(here, &[], &[20.0, code], &mut [0.0; 3]));
    }
    refused(column_code(model, 0, c"east").0, Status::Kind, "column 0 holds numbers");
    refused(column_code(numbers, 1, c"east").0, Status::Kind, "column 1 holds numbers");
    refused(column_code(model, 2, c"east").0, Status::Input, "there is no column 2 among 2");
    refused(column_code(text, 0, c"east").0, Status::Kind, "not trained on a table");
    refused(unsafe { minrnn_column_code(model, 1, null(), &mut 0.0) }, Status::Pointer, "name is a null pointer");
    refused(unsafe { minrnn_column_code(model, 1, c"east".as_ptr(), null_mut()) }, Status::Pointer, "code is a null pointer");
    assert_eq!((minrnn_column_names(model, 2), minrnn_column_names(text, 0), minrnn_column_names(null(), 0)), (0, 0, 0));
    assert_eq!((column_name(model, 1, 3), column_name(model, 0, 0), column_name(model, 2, 0)), (None, None, None));
    ok(minrnn_session_free(here));
    for model in [model, numbers, text] {
        ok(minrnn_model_free(model));
    }
}

#[test]
fn a_row_that_comes_to_no_number_costs_the_others_nothing() {
    let model = overflowing_forecaster(1).in_c();
    let here = session(model, 2);
    ok(table_step(here, &[], &[20.0, 20.0], &mut [0.0; 24]));
    let other = forked(here);
    let (mut predictions, mut alone) = ([0.0; 24], [0.0; 12]);
    refused(table_step(here, &[], &[1e7, 20.0], &mut predictions), Status::Model, "for row 0, which is no number");
    ok(table_step(other, &[1], &[20.0], &mut alone));
    assert!(predictions[..12].iter().all(|x| x.is_nan()), "{predictions:?}");
    assert_eq!(predictions[12..], alone);
    // The row has been read; the session cannot be saved before it is reset.
    let mut len = 7;
    refused(unsafe { minrnn_session_save(here, null_mut(), 0, &mut len) }, Status::State, "in session 0, expected finite numbers");
    assert_eq!(len, 7);
    ok(minrnn_session_reset(here, 0));
    let (status, again) = restore(model, &saved(here));
    ok(status);
    ok(table_step(here, &[], &[20.0, 20.0], &mut predictions));
    for session in [here, other, again] {
        ok(minrnn_session_free(session));
    }
    ok(minrnn_model_free(model));
}

#[test]
fn places_of_results_lie_apart() {
    let model = text_model(MixerKind::MinGru, 1).in_c();
    let (here, mut sampler, mut text) = (session(model, 1), null_mut(), null_mut());
    ok(unsafe { minrnn_sampler_new(1, &mut sampler) });
    ok(unsafe { minrnn_text_new(model, &mut text) });
    let mut room = [0usize; 4096];
    let bytes = size_of_val(&room);
    let at = room.as_mut_ptr();
    let overlap = |status, names: &str| refused(status, Status::Pointer, &format!("{names} overlap"));
    overlap(unsafe { minrnn_encode(model, c"abcd".as_ptr(), 4, at.cast(), 16, at) }, "tokens and n_tokens");
    overlap(unsafe { minrnn_encode(model, at.cast(), 4, null_mut(), 0, at) }, "text and n_tokens");
    overlap(unsafe { minrnn_decode(model, [1].as_ptr(), 1, at.cast(), 16, at) }, "text and len");
    overlap(unsafe { minrnn_decode(model, at.cast(), 1, null_mut(), 0, at) }, "tokens and len");
    overlap(unsafe { minrnn_text_encode(text, c"abcd".as_ptr(), 4, 1, at.cast(), 16, at) }, "tokens and n_tokens");
    overlap(unsafe { minrnn_text_encode(text, at.cast(), 4, 1, null_mut(), 0, at) }, "bytes and n_tokens");
    overlap(unsafe { minrnn_text_decode(text, 1, at.cast(), 16, at) }, "bytes and len");
    overlap(unsafe { minrnn_sampler_sample(sampler, at.cast(), 4, null(), 0, at.cast()) }, "logits and token");
    overlap(unsafe { minrnn_sampler_sample(sampler, [0.0f32; 4].as_mut_ptr(), 4, at.cast(), 2, at.cast()) }, "recent and token");
    overlap(unsafe { minrnn_session_save(here, at.cast(), bytes, at.wrapping_add(4095)) }, "buffer and len");
    overlap(unsafe { minrnn_session_restore(model, at.cast(), bytes, at.cast()) }, "bytes and out");
    overlap(unsafe { minrnn_model_from_memory(at.cast(), bytes, at.cast()) }, "bytes and out");
    overlap(unsafe { minrnn_model_open(at.cast(), at.cast()) }, "path and out");
    assert_eq!(room, [0; 4096]);
    ok(minrnn_text_free(text));
    ok(minrnn_sampler_free(sampler));
    ok(minrnn_session_free(here));
    ok(minrnn_model_free(model));
}

#[test]
fn sessions_of_other_models_are_refused() {
    let packed: [Packed; 4] = [text_model(MixerKind::MinGru, 1), text_model(MixerKind::MinGru, 2), byte_model(1), classifier(1)];
    let models = packed.each_ref().map(Packed::in_c);
    let sessions = models.map(|model| session(model, 1));
    let bytes = saved(sessions[0]);
    for other in &models[1..] {
        refused(restore(*other, &bytes).0, Status::State, "was saved with another model");
    }
    for other in &sessions[1..] {
        refused(minrnn_session_copy_row(sessions[0], 0, *other, 0), Status::State, "different models");
    }
    // The same file loaded twice is the same model.
    let twice = packed[0].in_c();
    let (status, again) = restore(twice, &bytes);
    ok(status);
    ok(minrnn_session_copy_row(again, 0, sessions[0], 0));
    ok(minrnn_session_free(again));
    sessions.into_iter().for_each(|session| ok(minrnn_session_free(session)));
    models.into_iter().chain([twice]).for_each(|model| ok(minrnn_model_free(model)));
}

#[test]
fn text_that_a_model_does_not_know_is_refused() {
    let (model, bytes, numbers) = (text_model(MixerKind::MinGru, 1).in_c(), byte_model(1).in_c(), value_model(1).in_c());
    let mut n = 0;
    let mut tokens = [0u32; 16];
    let mut encode = |model, text: &[u8], room: usize| {
        let status = unsafe { minrnn_encode(model, text.as_ptr().cast(), text.len(), tokens.as_mut_ptr(), room, &mut n) };
        (status, n)
    };
    refused(encode(model, b"abz", 16).0, Status::Input, "character 3 of the text is 'z'");
    refused(encode(model, b"ab\xff", 16).0, Status::Input, "byte 2 of the text is 0xff, where it is not UTF-8");
    refused(encode(numbers, b"a", 16).0, Status::Kind, "does not read text");
    let (status, needed) = encode(model, b"abc", 2);
    refused(status, Status::Length, "tokens has room for 2, expected at least 3");
    assert_eq!(needed, 3);
    assert_eq!(encode(bytes, b"\xff\xfe", 16), (Status::Ok, 2));
    let mut letters = [0u8; 4];
    let unknown = unsafe { minrnn_decode(model, [99].as_ptr(), 1, letters.as_mut_ptr().cast(), 4, &mut n) };
    refused(unknown, Status::Input, "token id 99 is outside the vocabulary");

    let mut stream = null_mut();
    refused(unsafe { minrnn_text_new(numbers, &mut stream) }, Status::Kind, "does not read text");
    ok(unsafe { minrnn_text_new(model, &mut stream) });
    let mut push = |text: &[u8], last, room: usize| {
        let status = unsafe { minrnn_text_encode(stream, text.as_ptr().cast(), text.len(), last, tokens.as_mut_ptr(), room, &mut n) };
        (status, n)
    };
    assert_eq!(push("日".as_bytes().split_at(2).0, 0, 16), (Status::Ok, 0));
    refused(push(b"z", 0, 16).0, Status::Input, "not UTF-8");
    refused(push("日a".as_bytes().split_at(2).1, 0, 1).0, Status::Length, "expected at least 2");
    // Neither byte was taken.
    assert_eq!(push("日a".as_bytes().split_at(2).1, 0, 16), (Status::Ok, 2));
    assert_eq!(push(b"\xe6", 0, 16), (Status::Ok, 0));
    refused(push(b"", 1, 16).0, Status::Input, "not UTF-8");
    // Pending bytes make all that follows invalid, until they are dropped.
    refused(push(b"a", 0, 16).0, Status::Input, "not UTF-8");
    ok(minrnn_text_reset(stream));
    assert_eq!(push(b"ab", 1, 16), (Status::Ok, 2));
    refused(minrnn_text_reset(null_mut()), Status::Pointer, "the text is a null pointer");
    ok(minrnn_text_free(stream));

    let mut sampler = null_mut();
    ok(unsafe { minrnn_sampler_new(1, &mut sampler) });
    for (setting, value, words) in [
        (0, -1.0, "temperature must be"),
        (0, f64::NAN, "temperature must be"),
        (1, 0.5, "top_k must be a whole number"),
        (1, 1e30, "top_k must be a whole number"),
        (2, 0.0, "top_p must be"),
        (3, 2.0, "min_p must be"),
        (4, 0.0, "repetition_penalty must be"),
        (5, 1.0, "there is no setting 5"),
    ] {
        refused(minrnn_sampler_set(sampler, setting, value), Status::Input, words);
    }
    let mut token = 0;
    let mut logits = [f32::NAN, 0.0];
    refused(
        unsafe { minrnn_sampler_sample(sampler, logits.as_mut_ptr(), 2, null(), 0, &mut token) },
        Status::Input,
        "the logit of token 0 is NaN",
    );
    refused(unsafe { minrnn_sampler_sample(sampler, null_mut(), 0, null(), 0, &mut token) }, Status::Input, "no token to choose from");
    refused(unsafe { minrnn_sampler_sample(sampler, logits.as_mut_ptr(), 2, null(), 0, null_mut()) }, Status::Pointer, "token is a null");
    ok(minrnn_sampler_free(sampler));
    for model in [model, bytes, numbers] {
        ok(minrnn_model_free(model));
    }
}

#[test]
fn the_sentence_is_that_of_the_calling_thread() {
    refused(minrnn_session_free(without_provenance_mut(1)), Status::Handle, "the session is none");
    std::thread::spawn(|| assert_eq!(sentence(), "")).join().unwrap();
    assert!(sentence().contains("the session is none"));
}
