//! Sessions of a model that reads several rows of a table as one step.

mod common;

use common::tables::{classifier, of_values, several};
use common::{drawn_model, small};
use minrnn_model::{Missing, MixerKind, ModelConfig, TableTask, WeightFormat};
use minrnn_stream::{Error, Model, Sessions, TableSessions, Workspace};
use proptest::prelude::*;

fn sentence<T: std::fmt::Debug>(result: Result<T, Error>) -> String {
    result.unwrap_err().to_string()
}

/// The prediction after all of `rows`, whose steps are read by the model alone.
fn by_hand(model: &Model, task: &TableTask, rows: &[f64]) -> Vec<f64> {
    let (width, n) = (task.columns().len(), task.rows_per_step());
    let (mut state, mut workspace) = (model.init_state(1).unwrap(), Workspace::new());
    let (mut seen, mut outputs, mut numbers) = (vec![0.0; task.n_inputs()], vec![0.0; model.outputs()], Vec::new());
    for step in 0..(rows.len() / width).div_ceil(n) {
        let shown = task.rows_of_step(step, rows.len() / width);
        task.show(&rows[shown.start * width..shown.end * width], &mut seen);
        model.step_values(&seen, &mut state, &mut outputs, &mut workspace).unwrap();
    }
    task.predict_into(rows, &outputs, &mut numbers);
    numbers
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 40, ..ProptestConfig::default() })]

    #[test]
    fn after_every_row_comes_the_prediction_for_the_sequence_so_far_however_it_is_cut(
        rows in prop::collection::vec(prop::option::weighted(0.8, -5.0..5.0f64), 2..160), n in 2..9usize,
        parts in prop::collection::vec((0..12usize, 0..4usize), 1..12), mixer in prop::sample::select(vec![MixerKind::MinGru, MixerKind::Attention]),
    ) {
        let (model, task) = several(mixer, n, Missing::Mask);
        let rows: Vec<f64> = rows.iter().map(|x| x.unwrap_or(f64::NAN)).collect();
        let rows = &rows[..rows.len() / 2 * 2];
        let mut stepped = TableSessions::new(&model, &task, 1).unwrap();
        for end in (2..=rows.len()).step_by(2) {
            let found = stepped.step(&model, &task, &[0], &rows[end - 2..end]).unwrap().to_vec();
            prop_assert_eq!(found, by_hand(&model, &task, &rows[..end]));
        }
        // The same in parts, read at once or row by row, saved and copied in between.
        let (mut cut, mut at) = (TableSessions::new(&model, &task, 2).unwrap(), 0);
        for (len, way) in parts.into_iter().chain([(usize::MAX, 0)]) {
            let end = at + len.min(rows.len() / 2 - at);
            let part = &rows[2 * at..2 * end];
            match way {
                0 | 1 => cut.advance(&model, &task, &[1], &[part]).unwrap(),
                _ => part.chunks_exact(2).for_each(|row| _ = cut.step(&model, &task, &[1], row).unwrap()),
            }
            at = end;
            if way % 2 == 1 {
                let saved = Sessions::Table(cut).to_bytes("m").unwrap();
                let Sessions::Table(restored) = Sessions::from_bytes(&saved, &model, Some(&task), "m").unwrap() else {
                    panic!("it reads a table")
                };
                cut = restored.select(&[1, 1]).unwrap();
            }
        }
        let alone = cut.select(&[1]).unwrap();
        prop_assert_eq!(alone.state(), stepped.state());
        let rows = |sessions: &TableSessions| -> Vec<u64> { sessions.histories().flatten().map(|x| x.to_bits()).collect() };
        prop_assert_eq!(rows(&alone), rows(&stepped));
    }
}

#[test]
fn sessions_at_different_rows_of_their_steps_do_not_affect_each_other() {
    for mixer in [MixerKind::MinGru, MixerKind::Attention] {
        let (model, task) = several(mixer, 3, Missing::Error);
        let mut together = TableSessions::new(&model, &task, 4).unwrap();
        let mut read: Vec<Vec<f64>> = vec![Vec::new(); 4];
        for turn in 0..40 {
            let rows: Vec<usize> = (0..4).filter(|row| (turn + row) % (row + 2) != 0).collect();
            let values: Vec<f64> = rows.iter().flat_map(|&row| [turn as f64 / 8.0, row as f64 - 1.5]).collect();
            let found = together.step(&model, &task, &rows, &values).map(<[f64]>::to_vec);
            if rows.is_empty() {
                continue;
            }
            let found = found.unwrap();
            for ((&row, values), found) in rows.iter().zip(values.chunks_exact(2)).zip(found.chunks_exact(3)) {
                read[row].extend(values);
                assert_eq!(found, by_hand(&model, &task, &read[row]));
            }
        }
        together.restart(&model, 2).unwrap();
        assert_eq!(together.step(&model, &task, &[2], &[1.0, 2.0]).unwrap(), by_hand(&model, &task, &[1.0, 2.0]));
    }
}

#[test]
fn only_complete_steps_are_given_to_read() {
    let (model, task) = several(MixerKind::MinGru, 4, Missing::Error);
    let mut sessions = TableSessions::new(&model, &task, 2).unwrap();
    let mut steps = |row: usize, n: usize| {
        let values = vec![1.0; 2 * n];
        let read = |inputs: Vec<Vec<f32>>, _: &mut _, _: &mut _| Ok::<_, Error>(inputs[0].len() / 6);
        sessions.read(&task, &[row], &[values], read).unwrap()
    };
    assert_eq!([steps(0, 3), steps(0, 0), steps(0, 1), steps(0, 9), steps(0, 2), steps(0, 1), steps(1, 4)], [0, 0, 1, 2, 0, 1, 1]);
}

#[test]
fn a_row_that_is_refused_leaves_its_step_as_it_was() {
    let (model, task) = several(MixerKind::MinGru, 2, Missing::Error);
    let mut sessions = TableSessions::new(&model, &task, 2).unwrap();
    sessions.step(&model, &task, &[0], &[1.0, 2.0]).unwrap();
    let before = sessions.clone();
    let refused = sentence(sessions.step(&model, &task, &[0, 1], &[1.0, 2.0, f64::INFINITY, 2.0]).map(<[f64]>::to_vec));
    assert_eq!(refused, "row 1, column 'x': found inf, expected a finite number");
    let refused = sentence(sessions.advance(&model, &task, &[0], &[[1.0, f64::NAN]]));
    assert_eq!(refused, "column 'y': found NaN, expected a finite number");
    // Sessions of single rows, and of steps of other lengths, are others.
    for (model, other) in [(of_values(3), classifier()), several(MixerKind::MinGru, 3, Missing::Error)] {
        let foreign = TableSessions::new(&model, &other, 1).unwrap();
        let refused = sentence(sessions.copy_row(0, &foreign, 0));
        assert_eq!(refused, "the rows belong to sessions of different tasks; take both from sessions of one");
    }
    assert_eq!(sessions.state(), before.state());
    assert!(sessions.histories().eq(before.histories()));
    let found = sessions.step(&model, &task, &[0, 1], &[3.0, 4.0, 5.0, 6.0]).unwrap().to_vec();
    assert_eq!(found, [by_hand(&model, &task, &[1.0, 2.0, 3.0, 4.0]), by_hand(&model, &task, &[5.0, 6.0])].concat());
    assert_eq!(sessions.histories().map(<[f64]>::len).collect::<Vec<_>>(), [4, 2]);
}

#[test]
fn a_model_that_refuses_a_step_leaves_every_session_as_it_was() {
    let (model, task) = several(MixerKind::MinGru, 2, Missing::Error);
    let (input_width, n_outputs) = (task.n_inputs(), 3);
    // Of the same inputs and outputs, and another size.
    let other = ModelConfig { vocab_size: 0, input_width, n_outputs, d_model: 32, ..small(MixerKind::MinGru) };
    let other = drawn_model(&other, WeightFormat::F32);
    let mut sessions = TableSessions::new(&model, &task, 2).unwrap();
    sessions.step(&model, &task, &[0], &[1.0, 2.0]).unwrap();
    for _ in 0..2 {
        let before = sessions.clone();
        for rows in [&[0][..], &[1], &[0, 1]] {
            let refused = sessions.step(&other, &task, rows, &[3.0, 4.0, 5.0, 6.0][..2 * rows.len()]).map(<[f64]>::to_vec).unwrap_err();
            assert!(refused.to_string().contains("another model"), "{refused}");
            assert_eq!(sessions.state(), before.state());
            assert!(sessions.histories().eq(before.histories()));
        }
        // Once more after copies were made.
        sessions.step(&model, &task, &[0, 1], &[3.0, 4.0, 5.0, 6.0]).unwrap();
    }
    let found = sessions.step(&model, &task, &[0], &[7.0, 8.0]).unwrap().to_vec();
    assert_eq!(found, by_hand(&model, &task, &[1.0, 2.0, 3.0, 4.0, 3.0, 4.0, 7.0, 8.0]));
}
