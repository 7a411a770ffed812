//! Sessions of tables: what belongs to another model or task is refused before anything is read, and what is saved can be read again.

mod common;

use common::tables::{classifier, forecaster, of_values, quantiles};
use common::{drawn_model, model, small};
use minrnn_model::{History, MixerKind, ModelConfig, TableTask, WeightFormat};
use minrnn_stream::{Error, ErrorKind, Model, SavedSessions, Sessions, State, TableSessions, Workspace, expect_numbers};
use proptest::prelude::*;

fn sentence<T: std::fmt::Debug>(result: Result<T, Error>) -> String {
    result.unwrap_err().to_string()
}

#[test]
fn the_present_row_alone_is_enough_only_where_nothing_is_looked_back_on() {
    let model = of_values(3);
    for task in [classifier(), forecaster()] {
        let (mut sessions, mut state) = (TableSessions::new(&model, &task, 1).unwrap(), model.init_state(1).unwrap());
        let (mut seen, mut outputs, mut workspace) = (vec![0.0; task.n_inputs()], vec![0.0; model.outputs()], Workspace::new());
        let (mut predicted, mut alone) = (Vec::new(), Vec::new());
        for value in [3.0, 8.0, 5.0] {
            let row = vec![value; task.columns().len()];
            predicted = sessions.step(&model, &task, &[0], &row).unwrap().to_vec();
            task.show(&row, &mut seen);
            model.step_values(&seen, &mut state, &mut outputs, &mut workspace).unwrap();
            task.predict_into(&row, &outputs, &mut alone);
        }
        assert_eq!(predicted == alone, task.reach() == 1);
    }
}

#[test]
fn sessions_are_not_made_for_the_task_of_another_model() {
    let (fitting, other) = (of_values(3), of_values(2));
    let of_tokens = model(&ModelConfig { d_model: 32, ..small(MixerKind::MinGru) }, WeightFormat::F32);
    for task in [classifier(), forecaster()] {
        TableSessions::new(&fitting, &task, 1).unwrap();
        let parts = |model: &Model, state: State| TableSessions::of_parts(model, &task, state, &[], &[]);
        for refused in [
            sentence(TableSessions::new(&other, &task, 1)),
            sentence(Sessions::new(&other, Some(&task), 1)),
            sentence(parts(&other, other.init_state(0).unwrap())),
        ] {
            assert!(refused.contains("2 inputs and 3 outputs, found one with 2 and 2; take the task of this model"), "{refused}");
        }
        let refused = sentence(TableSessions::new(&of_tokens, &task, 1));
        assert_eq!(refused, "the model reads tokens below 37, found rows of a table");
        let refused = sentence(parts(&fitting, of_tokens.init_state(0).unwrap()));
        assert_eq!(refused, "the state belongs to another model: its width is 32, expected 24; make one with init_state");
    }
}

#[test]
fn a_step_with_another_task_or_model_is_refused_and_nothing_is_read() {
    let (model, other) = (of_values(3), of_values(2));
    for (made_for, another) in [(classifier(), forecaster()), (forecaster(), classifier())] {
        let mut sessions = TableSessions::new(&model, &made_for, 2).unwrap();
        let row = vec![4.0; made_for.columns().len()];
        sessions.step(&model, &made_for, &[1], &row).unwrap();
        let before = sessions.clone();
        let another_row = vec![4.0; another.columns().len()];
        for refused in [
            sentence(sessions.step(&model, &another, &[1], &another_row).map(<[f64]>::to_vec)),
            sentence(sessions.advance(&model, &another, &[1], &[&another_row])),
            sentence(sessions.grow(&model, &another, 1)),
        ] {
            assert!(refused.contains("take the task that they were made for"), "{refused}");
        }
        for refused in [
            sentence(sessions.step(&other, &made_for, &[1], &row).map(<[f64]>::to_vec)),
            sentence(sessions.advance(&other, &made_for, &[1], &[&row])),
        ] {
            assert!(refused.contains("take the task of this model"), "{refused}");
        }
        let foreign = TableSessions::new(&model, &another, 1).unwrap();
        assert!(sentence(sessions.copy_row(1, &foreign, 0)).contains("sessions of different tasks"));
        assert_eq!((sessions.rows(), sessions.state()), (2, before.state()));
        assert!(sessions.histories().eq(before.histories()));
    }
}

#[test]
fn rows_read_at_once_leave_what_single_steps_leave() {
    let model = of_values(3);
    for task in [classifier(), forecaster()] {
        let width = task.columns().len();
        let mut at_once = TableSessions::new(&model, &task, 3).unwrap();
        let mut stepped = at_once.clone();
        let rows: Vec<f64> = (0..5 * width).map(|i| 4.0 + i as f64).collect();
        for sequences in [[&rows[..], &rows[..width]], [&rows[width..], &[]]] {
            at_once.advance(&model, &task, &[0, 2], &sequences).unwrap();
            for (row, sequence) in [0, 2].into_iter().zip(sequences) {
                sequence.chunks_exact(width).for_each(|values| _ = stepped.step(&model, &task, &[row], values).unwrap());
            }
            assert_eq!(at_once.state(), stepped.state());
            assert!(at_once.histories().eq(stepped.histories()));
        }
    }
}

#[test]
fn rows_that_could_not_be_read_are_not_looked_back_on() {
    let (model, task) = (of_values(3), forecaster());
    let mut sessions = TableSessions::new(&model, &task, 2).unwrap();
    sessions.advance(&model, &task, &[0, 1], &[[4.0], [5.0]]).unwrap();
    let before = sessions.clone();
    let refuse = |inputs: Vec<Vec<f32>>| Error::Memory(format!("{} of them", inputs.iter().map(Vec::len).sum::<usize>()));
    let refused = sentence(sessions.read(&task, &[1], &[[6.0, 7.0]], |inputs, _, _| Err::<(), _>(refuse(inputs))));
    assert_eq!(refused, "4 of them");
    let stopped = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| {
        sessions.read(&task, &[1], &[[6.0, 7.0]], |_, _, _| -> Result<(), Error> { panic!("on the way") })
    }));
    assert!(stopped.is_err());
    for (rows, values, words) in [
        (&[1][..], &[&[6.0, f64::INFINITY][..]][..], "column 'x': found inf"),
        (&[0, 1], &[&[6.0], &[f64::INFINITY]], "row 1, column 'x': found inf"),
        (&[0, 1], &[&[6.0]], "for each of 2 sessions, found those for 1"),
        (&[1, 0], &[&[6.0], &[6.0]], "found 0 behind 1"),
        (&[2], &[&[6.0]], "below 2, found 2"),
    ] {
        let refused = sentence(sessions.advance(&model, &task, rows, values));
        assert!(refused.contains(words), "{refused}");
    }
    let two = classifier();
    let refused = sentence(TableSessions::new(&model, &two, 1).unwrap().advance(&model, &two, &[0], &[[1.0, 2.0, 3.0]]));
    assert_eq!(refused, "expected rows of 2 numbers for session 0, found 3 numbers");
    assert_eq!(sessions.state(), before.state());
    assert!(sessions.histories().eq(before.histories()));
}

#[test]
fn sessions_without_the_rows_that_they_look_back_on_are_refused() {
    let (model, task) = (of_values(3), forecaster());
    for rows in [1, 3] {
        let whole = TableSessions::new(&model, &task, 2).unwrap();
        let mut sessions = Sessions::Table(whole.clone());
        let replaced = sessions.read_inputs(&[], |state, _| {
            *state = model.init_state(rows)?;
            Ok::<_, Error>(())
        });
        replaced.unwrap();
        sessions.to_bytes("m").unwrap_err();
        let Sessions::Table(mut sessions) = sessions else { panic!("it reads a table") };
        for refused in [
            sentence(sessions.step(&model, &task, &[0], &[4.0]).map(<[f64]>::to_vec)),
            sentence(sessions.advance(&model, &task, &[0], &[[4.0]])),
            sentence(sessions.grow(&model, &task, 1)),
            sentence(sessions.select(&[0])),
            sentence(sessions.restart(&model, 0)),
            sentence(sessions.copy_row(0, &whole, 0)),
            sentence(whole.clone().copy_row(0, &sessions, 0)),
        ] {
            assert!(refused.starts_with(&format!("the state has {rows} sessions, expected the 2 whose last rows are kept")), "{refused}");
        }
        // Also where it happens within a call.
        let mut sessions = whole.clone();
        let replaced = sessions.read(&task, &[0], &[[4.0]], |_, state, _| {
            *state = model.init_state(rows)?;
            Ok::<_, Error>(())
        });
        assert!(sentence(replaced).contains("expected the 2 whose last rows are kept"));
    }
}

#[test]
fn sessions_that_are_selected_take_as_many_threads_as_before() {
    let (model, task) = (of_values(3), forecaster());
    for table in [None, Some(&task)] {
        let mut sessions = Sessions::new(&model, table, 2).unwrap();
        sessions.set_threads(1);
        let mut selected = sessions.select(&[1, 1]).unwrap();
        let told = selected.read_inputs(&[], |_, workspace| Ok::<_, Error>(format!("{workspace:?}"))).unwrap();
        assert!(told.contains("most_threads: 1"), "{told}");
    }
}

#[test]
fn a_prediction_that_is_no_number_is_told_with_its_row() {
    expect_numbers(&[], &[]).unwrap();
    expect_numbers(&[3, 7], &[1.0, 2.0, 3.0, 4.0]).unwrap();
    let refused = expect_numbers(&[3, 7], &[1.0, 2.0, f64::INFINITY, f64::NAN]).unwrap_err();
    assert!(matches!(refused, Error::Prediction { row: 7, .. }) && refused.kind() == ErrorKind::Model);
    assert_eq!(refused.to_string(), "the model predicts inf for row 7, which is no number; train it anew, and begin the row anew");
}

#[test]
fn rows_that_sessions_look_back_on_are_not_dropped() {
    let (model, task) = (of_values(3), forecaster());
    let mut sessions = TableSessions::new(&model, &task, 1).unwrap();
    sessions.step(&model, &task, &[0], &[4.0]).unwrap();
    let saved = Sessions::Table(sessions).to_bytes("m").unwrap();
    let again = Sessions::from_bytes(&saved, &model, Some(&task), "m").unwrap();
    assert!(matches!(again, Sessions::Table(sessions) if sessions.histories().eq([&[4.0][..]])));
    let refused = sentence(Sessions::from_bytes(&saved, &model, None, "m"));
    assert_eq!(refused, "the saved state has rows of a table that its sessions look back on; give the task of that table");
    // A task that does not look back has no place for them.
    let refused = sentence(Sessions::from_bytes(&saved, &model, Some(&classifier()), "m"));
    assert!(refused.contains("has no rows, or forecasts, that fit the model"), "{refused}");
    // Without rows of a table nothing is lost.
    let plain = Sessions::new(&model, None, 2).unwrap().to_bytes("m").unwrap();
    assert_eq!(Sessions::from_bytes(&plain, &model, None, "m").unwrap().rows(), 2);
}

#[test]
fn saved_sessions_that_would_not_be_read_are_not_written() {
    let model = of_values(3);
    let other = drawn_model(&ModelConfig { n_layers: 3, ..small(MixerKind::MinGru) }, WeightFormat::F32);
    let with = |names: &[&str], logits: usize, histories: usize, forecasts: usize| SavedSessions {
        names: names.iter().map(ToString::to_string).collect(),
        logits: vec![0.5; logits],
        histories: vec![vec![4.0]; histories],
        forecasts: vec![vec![0.25, 0.5]; forecasts],
        state: model.init_state(2).unwrap(),
    };
    let saved = |names: &[&str], logits: usize, histories: usize| with(names, logits, histories, 0);
    for (saved, words) in [
        (with(&["a", "b"], 0, 0, 1), "would have 1 forecasts for 2 sessions"),
        (SavedSessions { forecasts: vec![vec![f32::NAN], Vec::new()], ..saved(&["a", "b"], 0, 0) }, "holds the forecast NaN"),
        (saved(&["a", "a"], 0, 0), "would have two sessions with the name 'a'"),
        (saved(&["a"], 0, 0), "would have 1 names for 2 sessions"),
        (saved(&["a", "b", "c"], 0, 0), "would have 3 names for 2 sessions"),
        (saved(&["a", "b"], 2, 0), "would have 2 logits, expected the 3 of the model or none"),
        (saved(&["a", "b"], 6, 0), "would have 6 logits"),
        (saved(&["a", "b"], 0, 1), "would have 1 histories for 2 sessions"),
    ] {
        let refused = saved.to_bytes(&model, "m").unwrap_err();
        assert!(matches!(refused, Error::State(_)) && refused.to_string().contains(words), "{refused}");
    }
    for (logits, histories, forecasts, version) in [(0, 0, 0, 1), (3, 0, 0, 1), (0, 2, 0, 2), (3, 2, 0, 2), (0, 0, 2, 3), (3, 2, 2, 3)] {
        let saved = with(&["a", "b"], logits, histories, forecasts);
        let bytes = saved.to_bytes(&model, "m").unwrap();
        assert!(String::from_utf8_lossy(&bytes).contains(&format!("\"version\":{version}")));
        assert_eq!(SavedSessions::from_bytes(&bytes, &model, "m").unwrap(), saved);
    }
    let refused = sentence(saved(&["a", "b"], 0, 0).to_bytes(&other, "m"));
    assert!(refused.contains("belongs to another model"), "{refused}");
}

#[test]
fn sessions_are_told_by_their_sizes() {
    let (model, task) = (of_values(3), forecaster());
    let mut sessions = TableSessions::new(&model, &task, 50).unwrap();
    (0..50).for_each(|row| _ = sessions.step(&model, &task, &[row], &[4.0]).unwrap());
    let told = format!("{:?}", Sessions::Table(sessions));
    assert!(told.contains("rows: 50, columns: 1, reach: 2") && told.len() < 200, "{told}");
}

#[test]
fn a_session_takes_what_its_model_says_with_what_it_looks_back_on_and_expects() {
    for (model, task, steps) in [
        (of_values(3), classifier(), 1),
        (of_values(3), forecaster(), 9),
        (of_quantiles(false), quantiles(false), 1),
        (of_quantiles(true), quantiles(true), 20),
    ] {
        let mut sessions = TableSessions::new(&model, &task, 3).unwrap();
        for row in (0..3).cycle().take(3 * steps) {
            sessions.step(&model, &task, &[row], &vec![4.0; task.columns().len()]).unwrap();
        }
        assert_eq!(sessions.bytes() as u128, 3 * model.session_bytes_of(Some(&task), steps));
        assert_eq!(model.session_bytes_of(None, steps), model.session_bytes(steps));
    }
}

/// A model for [`quantiles`].
fn of_quantiles(is_level: bool) -> Model {
    let config = ModelConfig { vocab_size: 0, input_width: if is_level { 6 } else { 3 }, n_outputs: 6, ..small(MixerKind::MinGru) };
    drawn_model(&config, WeightFormat::F32)
}

/// How surprising each of `rows` is after those before it, by the model's outputs alone.
fn surprises_by_hand(model: &Model, task: &TableTask, rows: &[[f64; 3]]) -> Vec<Option<f64>> {
    let TableTask::Forecast(forecaster) = task else { panic!("it forecasts") };
    let (mut state, mut workspace, mut history) = (model.init_state(1).unwrap(), Workspace::new(), History::new(3, task.reach()));
    let (mut seen, mut outputs) = (vec![0.0; task.n_inputs()], vec![0.0; model.outputs()]);
    let mut surprises = Vec::new();
    for (at, row) in rows.iter().enumerate() {
        surprises.push((at > 0).then(|| forecaster.surprise(history.rows(), &outputs, &[row[1], row[0]])).flatten());
        history.push(row);
        task.show(history.rows(), &mut seen);
        model.step_values(&seen, &mut state, &mut outputs, &mut workspace).unwrap();
    }
    surprises
}

/// The sessions by another way, as they were.
fn carried(sessions: TableSessions, model: &Model, task: &TableTask, way: usize) -> TableSessions {
    match way {
        0 => sessions.select(&[1, 0]).unwrap().select(&[1, 0]).unwrap(),
        1 => {
            let saved = Sessions::Table(sessions).to_bytes("m").unwrap();
            let Sessions::Table(restored) = Sessions::from_bytes(&saved, model, Some(task), "m").unwrap() else {
                panic!("it reads a table")
            };
            restored
        }
        2 => {
            let mut copied = TableSessions::new(model, task, 3).unwrap();
            (0..2).for_each(|row| copied.copy_row(row, &sessions, row).unwrap());
            copied
        }
        3 => {
            let mut grown = sessions;
            grown.grow(model, task, 2).unwrap();
            grown
        }
        _ => sessions,
    }
}

proptest! {
    #[test]
    fn a_row_is_as_surprising_as_the_forecast_before_it_says_however_sessions_are_carried(
        is_level: bool,
        rows in proptest::collection::vec((5.0..15.0, 10.0..30.0, 20.0..40.0).prop_map(|(x, y, z)| [x, y, z]), 1..12),
        ways in proptest::collection::vec(0..5usize, 12),
    ) {
        let (model, task) = (of_quantiles(is_level), quantiles(is_level));
        let expected = surprises_by_hand(&model, &task, &rows);
        let mut sessions = TableSessions::new(&model, &task, 2).unwrap();
        for ((row, &expected), &way) in rows.iter().zip(&expected).zip(&ways) {
            prop_assert_eq!(sessions.surprise(&task, 1, row).unwrap(), expected);
            // Asking changes nothing, and another session does not matter.
            sessions.step(&model, &task, &[0], &[9.0, 9.0, 9.0]).unwrap();
            prop_assert_eq!(sessions.surprise(&task, 1, row).unwrap(), expected);
            sessions.step(&model, &task, &[1], row).unwrap();
            sessions = carried(sessions, &model, &task, way);
        }
        let reach = if is_level { task.reach() } else { 1 };
        prop_assert_eq!(expected.iter().take_while(|surprise| surprise.is_none()).count(), reach.min(rows.len()));
        sessions.restart(&model, 1).unwrap();
        prop_assert_eq!(sessions.surprise(&task, 1, &rows[0]).unwrap(), None);
    }
}

#[test]
fn without_a_forecast_nothing_is_surprising_and_what_tells_none_is_refused() {
    let (model, task) = (of_quantiles(false), quantiles(false));
    let row = [10.0, 20.0, 30.0];
    let new = || {
        let mut sessions = TableSessions::new(&model, &task, 2).unwrap();
        sessions.step(&model, &task, &[0, 1], &[row, row].concat()).unwrap();
        assert!(sessions.surprise(&task, 1, &row).unwrap().is_some());
        sessions
    };
    let mut sessions = new();
    sessions.advance(&model, &task, &[0, 1], &[&[][..], &row]).unwrap();
    assert!(sessions.surprise(&task, 0, &row).unwrap().is_some() && sessions.surprise(&task, 1, &row).unwrap().is_none());
    // Only rows that were read lose theirs, and only where the reading did not fail.
    let mut stepped = Sessions::Table(new());
    let mut step = |rows: &[usize], input: f32| {
        let (mut outputs, inputs) = (vec![0.0; 6 * rows.len()], vec![input; 3 * rows.len()]);
        stepped.read_inputs(rows, |state, workspace| model.step_rows_values(rows, &inputs, state, &mut outputs, workspace))
    };
    step(&[0, 1], f32::NAN).unwrap_err();
    step(&[1], 0.5).unwrap();
    let Sessions::Table(stepped) = stepped else { panic!("it reads a table") };
    assert!(stepped.surprise(&task, 0, &row).unwrap().is_some() && stepped.surprise(&task, 1, &row).unwrap().is_none());
    // Those of before say nothing of the next row.
    let mut sessions = new();
    sessions.restart(&model, 0).unwrap();
    let of_parts = |forecasts: &[Vec<f32>]| TableSessions::of_parts(&model, &task, sessions.state().clone(), &[], forecasts);
    let old = of_parts(&[]).unwrap();
    assert_eq!(old.surprise(&task, 1, &row).unwrap(), None);
    for forecasts in [vec![vec![0.5; 6]], vec![vec![0.5; 5], Vec::new()], vec![vec![f32::NAN; 6], Vec::new()]] {
        let refused = sentence(of_parts(&forecasts));
        assert!(refused.contains("forecasts, that fit the model"), "{refused}");
    }
    for (asked, row, words) in [
        ((1, &quantiles(true)), &row[..], "take the task that they were made for"),
        ((1, &task), &[1.0], "expected 3"),
        ((1, &task), &[1.0, f64::INFINITY, 3.0], "column 'y': found inf"),
        ((1, &task), &[1e9, 2.0, 3.0], "column 'x'"),
        ((2, &task), &row, "below 2, found 2"),
    ] {
        let refused = sentence(sessions.surprise(asked.1, asked.0, row));
        assert!(refused.contains(words), "{refused}");
    }
    let TableTask::Forecast(known) = quantiles(false) else { panic!("it forecasts") };
    let unread = TableTask::Forecast(minrnn_model::Forecaster { target: vec!["y".into(), "w".into()], ..known });
    let unread_row = sentence(TableSessions::new(&model, &unread, 1).unwrap().surprise(&unread, 0, &row));
    assert!(unread_row.starts_with("column 'w': it is forecast but not read"), "{unread_row}");
    let model = of_values(3);
    for (task, words) in [(classifier(), "labels whole sequences"), (forecaster(), "forecasts a single number without a spread")] {
        let sessions = TableSessions::new(&model, &task, 1).unwrap();
        let refused = sessions.surprise(&task, 0, &vec![4.0; task.columns().len()]).unwrap_err();
        assert!(refused.kind() == ErrorKind::Kind && refused.to_string().contains(words), "{refused}");
    }
}

/// Saved sessions with `from` in their header replaced by `to`, under a checksum that fits.
fn forged(saved: &[u8], from: &str, to: &str) -> Vec<u8> {
    let (start, len) = (12, u32::from_le_bytes(saved[8..12].try_into().unwrap()) as usize);
    let header = std::str::from_utf8(&saved[start..start + len]).unwrap();
    assert!(header.contains(from), "{header}");
    let header = header.replace(from, to);
    let mut bytes = saved[..8].to_vec();
    bytes.extend((header.len() as u32).to_le_bytes());
    bytes.extend(header.as_bytes());
    bytes.extend(&saved[start + len..saved.len() - 4]);
    let checksum = crc32c::crc32c(&bytes);
    bytes.extend(checksum.to_le_bytes());
    bytes
}

#[test]
fn saved_sessions_whose_header_lies_are_refused_by_what_it_says() {
    let (model, task) = (of_quantiles(true), quantiles(true));
    let mut sessions = TableSessions::new(&model, &task, 2).unwrap();
    sessions.step(&model, &task, &[0, 1], &[10.0, 20.0, 30.0, 11.0, 21.0, 31.0]).unwrap();
    let saved = Sessions::Table(sessions).to_bytes("m").unwrap();
    let refused = |from: &str, to: &str| sentence(Sessions::from_bytes(&forged(&saved, from, to), &model, Some(&task), "m"));
    assert!(Sessions::from_bytes(&forged(&saved, "\"version\":3", "\"version\":3"), &model, Some(&task), "m").is_ok());
    for (from, to, words) in [
        ("\"forecasts\":[6,6]", "\"forecasts\":[6,6,0]", "has 3 forecasts of 2 sessions"),
        ("\"forecasts\":[6,6]", "\"forecasts\":[12]", "has 1 forecasts of 2 sessions"),
        ("\"histories\":[3,3]", "\"histories\":[3,3,0,0]", "has 4 histories of 2 sessions"),
        ("\"forecasts\":[6,6]", "\"forecasts\":[6,4611686018427387904]", "shorter than its header says"),
        ("\"forecasts\":[6,6]", "\"forecasts\":[5,7]", "that fit the model"),
        ("\"version\":3", "\"version\":2", "has version 2, which does not fit its parts"),
        ("\"version\":3", "\"version\":4", "has version 4, expected 1 to 3"),
    ] {
        let told = refused(from, to);
        assert!(told.contains(words), "{to}: {told}");
    }
}
