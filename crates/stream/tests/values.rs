//! Models that read numbers: the same bits however steps are cut, batched and spread over threads; what does not fit is refused.

mod common;

use common::{assert_same, drawn_model, numbers, small};
use minrnn_model::{MixerKind, ModelConfig, Pooling, Positions, WeightFormat};
use minrnn_stream::{Error, Model, Reads, State, Workspace};

/// Steps of the longest sequence.
const LEN: usize = 43;

/// Two numbers in, three out, around every mixer; each with another end.
fn configs() -> Vec<ModelConfig> {
    let of = |(i, &mixer): (usize, &MixerKind)| {
        let base = ModelConfig { vocab_size: 0, input_width: 2, n_outputs: 3, max_seq_len: 20, ..small(mixer) };
        match i % 4 {
            0 => ModelConfig { pooling: Pooling::Mean, ..base },
            1 => ModelConfig { pair_head: true, ..base },
            2 => ModelConfig { pair_head: true, pooling: Pooling::Mean, positions: Positions::Learned, ..base },
            _ => base,
        }
    };
    let mixers = MixerKind::ALL.iter().enumerate().map(of);
    let windowed = ModelConfig { window: 6, positions: Positions::Rotary, ..of((3, &MixerKind::Attention)) };
    // So wide that products are cut over threads.
    let wide = [MixerKind::Attention, MixerKind::Hyena, MixerKind::MinGru].map(|mixer| ModelConfig {
        d_model: 160,
        pooling: Pooling::Mean,
        pair_head: true,
        ..of((3, &mixer))
    });
    mixers.chain([windowed]).chain(wide).collect()
}

/// What is predicted after every step, read one by one.
fn stepped(model: &Model, values: &[f32]) -> Vec<f32> {
    let (mut state, mut workspace) = (model.init_state(1).unwrap(), Workspace::new());
    let mut outputs = vec![f32::NAN; values.len() / 2 * 3];
    for (values, outputs) in values.chunks_exact(2).zip(outputs.chunks_exact_mut(3)) {
        model.step_values(values, &mut state, outputs, &mut workspace).unwrap();
    }
    outputs
}

fn on<R: Send>(threads: usize, work: impl FnOnce() -> R + Send) -> R {
    rayon::ThreadPoolBuilder::new().num_threads(threads).build().unwrap().install(work)
}

#[test]
fn cuts_batches_and_threads_change_no_bit_in_any_format() {
    for (i, config) in configs().iter().enumerate() {
        // Every mixer in f32, and in turn in another format.
        for format in [WeightFormat::F32, WeightFormat::ALL[1 + i % 3]] {
            let model = drawn_model(config, format);
            let what = format!("{format} {config:?}");
            assert_eq!((model.reads(), model.outputs(), model.vocab_size()), (Reads::Values { width: 2 }, 3, 0));
            let sequences: Vec<Vec<f32>> = [LEN, 1, 7].iter().map(|&len| numbers(2 * len, len as u64)).collect();
            let alone: Vec<Vec<f32>> = sequences.iter().map(|values| stepped(&model, values)).collect();
            assert!(alone[0].iter().all(|x| x.is_finite()), "{what}");
            for threads in [1, 3] {
                let (last, all) = on(threads, || {
                    let (mut state, mut workspace) = (model.init_state(3).unwrap(), Workspace::new());
                    let mut last = vec![f32::NAN; 9];
                    model.prefill_values(&sequences, &mut state, &mut last, &mut workspace).unwrap();
                    let mut all = vec![f32::NAN; 3 * LEN];
                    model.forward_values(&sequences[0], &mut model.init_state(1).unwrap(), &mut all, &mut workspace).unwrap();
                    (last, all)
                });
                let expected: Vec<f32> = alone.iter().flat_map(|outputs| outputs[outputs.len() - 3..].to_vec()).collect();
                assert_same(&last, &expected, &what);
                assert_same(&all, &alone[0], &what);
            }
        }
    }
}

#[test]
fn narrow_models_are_cut_over_threads_without_a_change() {
    for mixer in [MixerKind::S4d, MixerKind::S4, MixerKind::H3, MixerKind::Hyena, MixerKind::MinLstm] {
        let config = ModelConfig {
            d_model: 64,
            conv: true,
            ..configs().swap_remove(MixerKind::ALL.iter().position(|&kind| kind == mixer).unwrap())
        };
        for format in [WeightFormat::F32, WeightFormat::Bf16, WeightFormat::Int8] {
            let model = drawn_model(&config, format);
            // Too few rows to be cut by rows, and more.
            for len in [40, 63, 64, 150] {
                let values = numbers(2 * len, len as u64);
                let read = || {
                    let mut all = vec![f32::NAN; 3 * len];
                    model.forward_values(&values, &mut model.init_state(1).unwrap(), &mut all, &mut Workspace::new()).unwrap();
                    all
                };
                let expected = on(1, read);
                for threads in [2, 4] {
                    assert_same(&on(threads, read), &expected, &format!("{format}, {threads} threads, {len} steps, {config:?}"));
                }
            }
        }
    }
}

#[test]
fn sessions_that_take_turns_do_not_touch_each_other() {
    for config in &configs() {
        let model = drawn_model(config, WeightFormat::F32);
        let sequences: Vec<Vec<f32>> = (0..4).map(|row| numbers(2 * 9, row)).collect();
        let (mut state, mut workspace, mut read) = (model.init_state(4).unwrap(), Workspace::new(), [0; 4]);
        for rows in [vec![0, 2], vec![1], vec![0, 1, 2, 3], vec![], vec![3], vec![0, 1, 3]] {
            let values: Vec<f32> = rows.iter().flat_map(|&row| sequences[row][2 * read[row]..][..2].to_vec()).collect();
            let mut outputs = vec![f32::NAN; 3 * rows.len()];
            model.step_rows_values(&rows, &values, &mut state, &mut outputs, &mut workspace).unwrap();
            for (&row, outputs) in rows.iter().zip(outputs.chunks_exact(3)) {
                read[row] += 1;
                let alone = stepped(&model, &sequences[row][..2 * read[row]]);
                assert_same(outputs, &alone[alone.len() - 3..], &format!("{config:?}"));
            }
        }
    }
}

#[test]
fn a_session_that_begins_anew_is_a_new_one_but_for_what_pairs_compare() {
    for config in &configs() {
        let model = drawn_model(config, WeightFormat::F32);
        let (mut state, mut workspace, mut outputs) = (model.init_state(2).unwrap(), Workspace::new(), vec![0.0; 6]);
        let sequence = numbers(2 * 30, 5);
        model.prefill_values(&[&sequence, &sequence], &mut state, &mut outputs, &mut workspace).unwrap();
        let other = state.select(&[1]).unwrap();
        model.restart(&mut state, 0).unwrap();
        assert_eq!(state.select(&[1]).unwrap(), other);
        assert_eq!(state.select(&[0]).unwrap() == model.init_state(1).unwrap(), !config.pair_head, "{config:?}");
        model.step_rows_values(&[0], &sequence[..2], &mut state, &mut outputs[..3], &mut workspace).unwrap();
        assert_eq!(outputs[..3] == stepped(&model, &sequence[..2]), !config.pair_head, "{config:?}");
        assert!(model.restart(&mut state, 2).unwrap_err().to_string().contains("no session 2"));
    }
}

#[test]
fn states_with_a_past_survive_the_trip_through_bytes_and_parts() {
    for config in &configs() {
        let model = drawn_model(config, WeightFormat::F32);
        for lens in [[0, 0], [1, 3], [LEN, 19]] {
            let (mut state, mut workspace) = (model.init_state(2).unwrap(), Workspace::new());
            let sequences = lens.map(|len| numbers(2 * len, 1));
            model.advance_values(&sequences, &mut state, &mut workspace).unwrap();
            let bytes: u128 = lens.iter().map(|&len| model.session_bytes(len)).sum();
            assert_eq!(state.bytes() as u128, bytes, "{config:?} after {lens:?}");
            let pasts = (0..2).flat_map(|row| state.pasts(row).map(<[f32]>::to_vec).collect::<Vec<_>>()).collect();
            let copies = [
                State::from_bytes(&state.to_bytes().unwrap(), &model).unwrap(),
                State::from_parts(&model, 2, state.values().to_vec(), pasts).unwrap(),
                state.select(&[0, 1]).unwrap(),
                state.clone(),
            ];
            let next = |mut state: State| {
                let mut outputs = vec![f32::NAN; 6];
                model.step_values(&[0.1, 0.2, 0.3, 0.4], &mut state, &mut outputs, &mut Workspace::new()).unwrap();
                outputs
            };
            for copy in copies {
                assert_eq!(copy, state);
                assert_same(&next(copy), &next(state.clone()), &format!("{config:?}"));
            }
            let mut both = state.select(&[1]).unwrap();
            both.append(&state.select(&[0]).unwrap()).unwrap();
            both.copy_row(0, &state, 0).unwrap();
            assert_eq!(both, state.select(&[0, 0]).unwrap());
        }
    }
}

/// The bytes of a state with its header changed, under a checksum that fits.
fn forged(bytes: &[u8], from: &str, to: &str) -> Vec<u8> {
    let end = 12 + u32::from_le_bytes(bytes[8..12].try_into().unwrap()) as usize;
    let header = String::from_utf8(bytes[12..end].to_vec()).unwrap();
    assert!(header.contains(from), "{from} is not in {header}");
    let header = header.replacen(from, to, 1);
    let length = (header.len() as u32).to_le_bytes();
    let mut forged = [&bytes[..8], &length, header.as_bytes(), &bytes[end..bytes.len() - 4]].concat();
    forged.extend(crc32c::crc32c(&forged).to_le_bytes());
    forged
}

#[test]
fn contradictions_in_a_saved_past_are_refused() {
    let config = ModelConfig { vocab_size: 0, input_width: 2, n_outputs: 3, max_seq_len: 8, n_layers: 1, ..small(MixerKind::Attention) };
    let model = drawn_model(&config, WeightFormat::F32);
    let mut state = model.init_state(1).unwrap();
    model.advance_values(&[numbers(2 * 5, 1)], &mut state, &mut Workspace::new()).unwrap();
    let bytes = state.to_bytes().unwrap();
    let refusal = |bytes: &[u8]| State::from_bytes(bytes, &model).unwrap_err().to_string();
    assert_eq!(State::from_bytes(&forged(&bytes, r#""kept":[5]"#, r#""kept":[5]"#), &model).unwrap(), state);
    let huge = format!(r#""kept":[{}]"#, usize::MAX);
    for kept in [r#""kept":[4]"#, r#""kept":[8]"#, r#""kept":[]"#, r#""kept":[5,0]"#, &huge] {
        assert!(refusal(&forged(&bytes, r#""kept":[5]"#, kept)).contains("claims 1 sessions"), "{kept}");
    }
    let tokens = format!(r#""tokens":{}"#, usize::MAX);
    assert!(refusal(&forged(&bytes, r#""tokens":7"#, &tokens)).contains("belongs to another model"));
    let rows = format!(r#""rows":{}"#, usize::MAX);
    assert!(refusal(&forged(&bytes, r#""rows":1"#, &rows)).contains("sessions"));
    let mut nan = bytes.clone();
    let end = nan.len() - 4;
    nan[end - 4..end].fill(0xff);
    let checksum = crc32c::crc32c(&nan[..end]).to_le_bytes();
    nan[end..].copy_from_slice(&checksum);
    assert!(refusal(&nan).contains("holds NaN in session 0"));
    let pasts = |past: Vec<f32>| State::from_parts(&model, 1, state.values().to_vec(), vec![past]).unwrap_err().to_string();
    assert!(pasts(vec![0.0; 48 * 8]).contains("other past tokens"));
    assert!(pasts(vec![0.0; 47]).contains("other past tokens"));
    assert!(pasts(vec![f32::INFINITY; 48]).contains("holds inf"));
    assert!(State::from_values(&model, 1, state.values().to_vec()).unwrap_err().to_string().contains("other past tokens"));
}

#[test]
fn what_does_not_fit_is_refused_and_nothing_is_read() {
    let of_values =
        drawn_model(&ModelConfig { vocab_size: 0, input_width: 2, n_outputs: 3, ..small(MixerKind::MinGru) }, WeightFormat::F32);
    let of_tokens = common::model(&small(MixerKind::MinGru), WeightFormat::F32);
    let (mut state, mut workspace, mut outputs) = (of_values.init_state(2).unwrap(), Workspace::new(), vec![0.0; 6]);
    let before = state.clone();
    let error = of_values.step(&[1, 2], &mut state, &mut outputs, &mut workspace).unwrap_err();
    assert!(matches!(error, Error::Reads { expected: Reads::Values { width: 2 }, .. }), "{error}");
    assert_eq!(error.to_string(), "the model reads 2 numbers at each step, found tokens");
    let mut tokens_state = of_tokens.init_state(1).unwrap();
    let error = of_tokens.step_values(&[1.0], &mut tokens_state, &mut outputs, &mut workspace).unwrap_err();
    assert_eq!(error.to_string(), "the model reads tokens below 37, found numbers");
    for value in [f32::NAN, f32::INFINITY, f32::NEG_INFINITY] {
        let error = of_values.step_values(&[0.0, 0.0, 0.0, value], &mut state, &mut outputs, &mut workspace).unwrap_err();
        assert!(matches!(error, Error::NotFinite { sequence: 0, step: 1, column: 1, .. }), "{error}");
        let error = of_values.advance_values(&[&[0.0, 0.0][..], &[0.0, 0.0, value, 0.0]], &mut state, &mut workspace).unwrap_err();
        assert!(matches!(error, Error::NotFinite { sequence: 1, step: 1, column: 0, .. }), "{error}");
    }
    let refused = |result: Result<(), Error>, words: &str| {
        let sentence = result.unwrap_err().to_string();
        assert!(sentence.contains(words), "{sentence}");
    };
    refused(of_values.step_values(&[0.0; 3], &mut state, &mut outputs, &mut workspace), "steps of 2 numbers, found 3 numbers");
    refused(of_values.step_values(&[0.0; 2], &mut state, &mut outputs, &mut workspace), "2 sessions");
    refused(of_values.step_values(&[0.0; 4], &mut state, &mut outputs[..5], &mut workspace), "room for 2 rows of 3 outputs");
    refused(of_values.step_rows_values(&[1, 0], &[0.0; 4], &mut state, &mut outputs, &mut workspace), "ascending");
    refused(of_values.step_rows_values(&[0], &[0.0; 4], &mut state, &mut outputs, &mut workspace), "one step for each");
    refused(of_values.prefill_values(&[&[0.0; 2][..], &[]], &mut state, &mut outputs, &mut workspace), "session 1 is empty");
    refused(of_values.forward_values(&[0.0; 2], &mut state, &mut outputs[..3], &mut workspace), "2 sessions");
    assert_eq!(state, before);
}

#[test]
fn the_past_of_a_model_that_claims_an_endless_one_grows_as_it_is_read() {
    let config = ModelConfig { max_seq_len: 1 << 24, ..small(MixerKind::Attention) };
    let model = common::drawn_model(&config, WeightFormat::F32);
    let mut state = model.init_state(3).unwrap();
    assert!(state.bytes() < 100 && model.session_bytes(usize::MAX) > 1 << 30);
    model.advance(&[[1, 2, 3]; 3], &mut state, &mut Workspace::new()).unwrap();
    assert_eq!(state.bytes() as u128, 3 * model.session_bytes(3));
}
