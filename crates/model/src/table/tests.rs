//! What every task is read from and why it is refused, and what its outputs and rows become.

use super::*;
use alloc::string::ToString;
use alloc::vec;

fn classifier() -> TableTask {
    TableTask::Classify(Classifier {
        columns: vec!["x".into(), "y".into()],
        group: "machine".into(),
        target: "state".into(),
        time: None,
        classes: vec!["good".into(), "worn".into(), "broken".into()],
        normalization: Normalization { mean: vec![1.0, -2.0], deviation: vec![0.5, 4.0] },
        missing: Missing::Error,
        layout: Layout::Long,
        categories: Vec::new(),
        rows_per_step: None,
    })
}

fn regressor() -> TableTask {
    let TableTask::Classify(Classifier { columns, group, normalization, .. }) = classifier() else { panic!() };
    TableTask::Regress(Regressor {
        columns,
        group,
        target: "life".into(),
        time: None,
        normalization,
        target_normalization: Normalization { mean: vec![100.0], deviation: vec![20.0] },
        target_median: Some(90.0),
        missing: Missing::Error,
        layout: Layout::Long,
        categories: Vec::new(),
        rows_per_step: None,
    })
}

#[test]
fn a_number_of_a_sequence_is_in_the_units_of_the_table() {
    let task = regressor();
    assert_eq!((task.n_inputs(), task.numbers_per_step(), task.targets(), task.group()), (2, 1, &["life".into()][..], Some("machine")));
    assert_eq!(task.prediction(&[1.0, 2.0], &[-1.5]), Prediction::Values(vec![70.0]));
    let json = serde_json::to_string(&task).unwrap();
    assert!(TableTask::is_described_by(&serde_json::from_str(&json).unwrap()));
    assert_eq!(TableTask::from_bytes(json.as_bytes(), 2, 1).unwrap(), task);
    // Older files lack it.
    assert!(TableTask::from_bytes(json.replace(",\"target_median\":90.0", "").as_bytes(), 2, 1).is_ok_and(|before| before != task));
    assert!(TableTask::from_bytes(json.as_bytes(), 2, 2).is_err() && TableTask::from_bytes(json.as_bytes(), 1, 1).is_err());
    for (from, to) in [("[20.0]", "[0.0]"), ("[20.0]", "[20.0,1.0]"), ("[100.0]", "[]"), ("\"life\"", "\"x\""), ("regress", "guess")] {
        assert!(json.contains(from), "{json}");
        assert!(TableTask::from_bytes(json.replace(from, to).as_bytes(), 2, 1).is_err(), "{from} {to}");
    }
}

fn forecaster() -> TableTask {
    let target_normalization = Normalization { mean: vec![10.0, 20.0], deviation: vec![2.0, 3.0] };
    let normalization = Normalization { mean: vec![0.0], deviation: vec![1.0] };
    let (columns, target) = (vec!["a".into()], vec!["a".into(), "b".into()]);
    TableTask::Forecast(Forecaster {
        columns,
        group: None,
        target,
        time: None,
        horizon: 2,
        season: 0,
        normalization,
        target_normalization,
        scaling: Scaling::Standard,
        missing: Missing::Error,
        layout: Layout::Long,
        categories: Vec::new(),
        of_table: None,
        quantiles: Vec::new(),
    })
}

#[test]
fn a_description_is_read_back_for_its_own_model_and_refused_for_others() {
    for (task, [inputs, outputs]) in [(classifier(), [2, 3]), (forecaster(), [1, 4])] {
        let json = serde_json::to_vec(&task).unwrap();
        assert_eq!(TableTask::from_bytes(&json, inputs, outputs).unwrap(), task);
        for [inputs, outputs] in [[inputs + 1, outputs], [inputs, outputs + 1], [0, 0], [usize::MAX; 2]] {
            let refused = TableTask::from_bytes(&json, inputs, outputs).unwrap_err().to_string();
            assert!(refused.contains("cannot be used: expected"), "{refused}");
        }
    }
    let change = |from: &str, to: &str| {
        let json = serde_json::to_string(&classifier()).unwrap();
        assert!(json.contains(from));
        TableTask::from_bytes(json.replace(from, to).as_bytes(), 2, 3).unwrap_err().to_string()
    };
    assert!(change(r#""y""#, r#""x""#).contains("the column 'x' twice"));
    assert!(change("0.5", "0.0").contains("deviations of 2 inputs"));
    assert!(change("[0.5,", "[").contains("deviations of 2 inputs"));
    assert!(change("classify", "guess").contains("guess"));
    assert!(TableTask::from_bytes(b"{", 2, 3).unwrap_err().to_string().contains("cannot be used"));
}

#[test]
fn every_task_on_tables_is_described_as_one() {
    for task in [classifier(), regressor(), forecaster()] {
        assert!(TableTask::is_described_by(&serde_json::to_value(&task).unwrap()), "{task:?}");
    }
    for other in [serde_json::json!({"task": "policy"}), serde_json::json!({"task": 1}), serde_json::json!([]), serde_json::json!({})] {
        assert!(!TableTask::is_described_by(&other), "{other}");
    }
}

#[test]
fn a_task_made_by_hand_of_parts_that_do_not_fit_is_refused() {
    let (TableTask::Classify(mut unscaled), TableTask::Regress(mut untold)) = (classifier(), regressor()) else { panic!() };
    unscaled.normalization.deviation.pop();
    untold.target_normalization.mean.clear();
    let TableTask::Forecast(of_levels) = of_levels() else { panic!() };
    // The first needs the level of a column that is not read, the second has no mean of the table to begin with.
    let (mut unread, mut unknown) = (of_levels.clone(), of_levels);
    unread.target = vec!["b".into()];
    unknown.of_table = None;
    let tasks = [TableTask::Classify(unscaled), TableTask::Regress(untold), TableTask::Forecast(unread), TableTask::Forecast(unknown)];
    for task in tasks {
        let refused = task.expect_usable(task.n_inputs(), task.n_outputs()).unwrap_err().to_string();
        assert!(refused.contains("cannot be used: expected"), "{refused}");
    }
}

#[test]
fn outputs_become_shares_or_numbers_in_the_units_of_the_table() {
    let Prediction::Classes(shares) = classifier().prediction(&[], &[0.0, core::f32::consts::LN_2, f32::NEG_INFINITY]) else { panic!() };
    assert!((shares[0] - 1.0 / 3.0).abs() < 1e-7 && (shares[1] - 2.0 / 3.0).abs() < 1e-7 && shares[2] == 0.0, "{shares:?}");
    assert_eq!(forecaster().prediction(&[], &[0.0, 1.0, -1.0, 2.0]), Prediction::Values(vec![10.0, 23.0, 8.0, 26.0]));
    let mut numbers = vec![7.0; 9];
    forecaster().predict_into(&[], &[0.0; 4], &mut numbers);
    assert_eq!(numbers, [10.0, 20.0, 10.0, 20.0]);
}

#[test]
fn a_task_fits_a_model_of_its_inputs_and_outputs_and_no_other() {
    for (task, inputs, outputs) in [(classifier(), 2, 3), (regressor(), 2, 1), (forecaster(), 1, 4), (of_levels(), 3, 6)] {
        assert_eq!((task.n_inputs(), task.n_outputs()), (inputs, outputs));
        task.expect_fits(inputs, outputs).unwrap();
        for (other_inputs, other_outputs) in [(inputs + 1, outputs), (inputs, outputs + 1), (outputs, inputs)] {
            let refused = task.expect_fits(other_inputs, other_outputs).unwrap_err().to_string();
            let words = format!("{inputs} inputs and {outputs} outputs, found one with {other_inputs} and {other_outputs}; take the task");
            assert!(refused.contains(&words), "{refused}");
        }
    }
}

#[test]
#[should_panic(expected = "expected the 3 outputs of a step, found 2")]
fn outputs_of_another_model_have_no_classes() {
    classifier().prediction(&[1.0, 2.0], &[0.0, 1.0]);
}

#[test]
#[should_panic(expected = "expected the 6 outputs of a step, found 7")]
fn outputs_of_another_model_are_no_forecast() {
    of_levels().prediction(&[6.0, 10.0], &[0.0; 7]);
}

#[test]
#[should_panic(expected = "expected whole rows of 2 numbers, found 3 numbers")]
fn a_row_that_is_not_whole_is_not_shown_as_the_one_before() {
    classifier().show(&[1.0, 2.0, 3.0], &mut [0.0; 2]);
}

#[test]
#[should_panic(expected = "expected whole rows of 2 numbers, found 3 numbers")]
fn nothing_is_predicted_after_a_row_that_is_not_whole() {
    regressor().prediction(&[1.0, 2.0, 3.0], &[0.0]);
}

#[test]
#[should_panic(expected = "expected at least one row of 2 numbers, found none")]
fn nothing_is_shown_without_a_row() {
    classifier().show(&[], &mut [0.0; 2]);
}

#[test]
fn numbers_far_from_their_mean_are_told_apart() {
    let task = classifier();
    let near = |x| task.normalization().is_near(0, x);
    assert!(near(1.0) && near(5e5) && !near(6e5) && !near(f64::NAN) && !near(f64::INFINITY));
    let refused = task.expect_readable(&[6e5, 0.0]).unwrap_err().to_string();
    assert!(refused.ends_with("of the table that was trained on, expected at most 1e6"), "{refused}");
    assert_eq!(task.normalization().apply(1, 2.0), 1.0);
    assert_eq!(task.normalization().restore(1, 1.0), 2.0);
    assert_eq!((task.columns().len(), task.group(), forecaster().group()), (2, Some("machine"), None));
}

fn of_levels() -> TableTask {
    let TableTask::Forecast(forecaster) = forecaster() else { panic!() };
    TableTask::Forecast(Forecaster {
        target: vec!["a".into()],
        normalization: Normalization { mean: vec![0.0], deviation: vec![0.5] },
        target_normalization: Normalization { mean: vec![0.0], deviation: vec![0.25] },
        scaling: Scaling::Level { transforms: vec![Transform::Identity], span: 2, lags: vec![1, 3] },
        of_table: Some(Normalization { mean: vec![8.0], deviation: vec![3.0] }),
        quantiles: vec![0.1, 0.5, 0.9],
        ..forecaster
    })
}

#[test]
fn numbers_are_seen_relative_to_the_level_of_their_own_series() {
    let task = of_levels();
    assert_eq!((task.reach(), task.n_inputs()), (4, 3));
    let mut inputs = [0.0; 3];
    // The level is the mean of 6 and 10, and so is the unit; the number of three steps before is not there yet.
    task.show(&[2.0, 6.0, 10.0], &mut inputs);
    assert_eq!(inputs, [0.5, -0.5, -1.5]);
    task.show(&[1e9, 4.0, 2.0, 6.0, 10.0], &mut inputs);
    assert_eq!(inputs, [0.5, -0.5, -1.0]);
    // Quantiles that cross are put in order: 8 + 8 · x / 4.
    let Prediction::Values(values) = task.prediction(&[6.0, 10.0], &[0.0, -1.0, 1.0, 2.0, 3.0, 2.5]) else { panic!() };
    assert_eq!(values, [6.0, 8.0, 10.0, 12.0, 13.0, 14.0]);
    let TableTask::Forecast(forecaster) = &task else { panic!() };
    let names = ["a", "a q0.1", "a q0.9"].map(str::to_string).into_iter().zip([1, 0, 2]);
    assert_eq!(forecaster.value_names(), names.collect::<Vec<_>>());
    // Targets that are called as quantiles of another one are.
    let target = ["a", "a q0.1", "a q0.9", "a q0.9_quantile"].map(str::to_string).to_vec();
    let names = Forecaster { target, ..forecaster.clone() }.value_names();
    let all: Vec<&str> = names.iter().map(|(name, _)| name.as_str()).collect();
    assert_eq!(all[..6], ["a", "a q0.1_quantile", "a q0.9_quantile_quantile", "a q0.1", "a q0.1 q0.1", "a q0.1 q0.9"]);
    assert!((0..all.len()).all(|at| !all[..at].contains(&all[at])), "{all:?}");
    // A series that is 0 so far.
    task.show(&[0.0, 0.0], &mut inputs);
    assert_eq!(inputs, [0.0; 3]);
}

#[test]
fn a_missing_number_is_the_last_that_is_known_and_can_be_told_from_it() {
    let TableTask::Forecast(forecaster) = of_levels() else { panic!() };
    let of = |missing| TableTask::Forecast(Forecaster { missing, ..forecaster.clone() });
    let (filled, masked) = (of(Missing::ForwardFill), of(Missing::Mask));
    assert_eq!((filled.reach(), filled.n_inputs(), masked.n_inputs()), (FILLED, 3, 4));
    let rows = [2.0, 6.0, f64::NAN, 10.0, f64::NAN];
    let [mut inputs, mut with_mask] = [[0.0; 3], [0.0; 3]].map(|inputs| inputs.to_vec());
    with_mask.push(0.0);
    // The level of the last two rows is 10, and so is the unit.
    filled.show(&rows, &mut inputs);
    assert_eq!(inputs, [0.0, 0.0, -0.8]);
    masked.show(&rows, &mut with_mask);
    assert_eq!(with_mask, [0.0, 0.0, -0.8, 1.0]);
    masked.show(&rows[..4], &mut with_mask);
    assert_eq!(with_mask, [0.0, -0.8, -1.6, 0.0]);
    // For a series of which nothing is known, forecasts are relative to the mean of the table.
    filled.show(&[f64::NAN], &mut inputs);
    assert_eq!(inputs, [0.0; 3]);
    assert_eq!(filled.prediction(&[f64::NAN], &[0.0; 6]), Prediction::Values(vec![8.0; 6]));
    let TableTask::Classify(classifier) = classifier() else { panic!() };
    let task = TableTask::Classify(Classifier { missing: Missing::Mask, ..classifier });
    let mut inputs = [7.0; 4];
    task.show(&[2.0, f64::NAN, f64::NAN, 2.0], &mut inputs);
    assert_eq!(inputs, [2.0, 1.0, 1.0, 0.0]);
}

#[test]
fn a_gap_at_the_end_leaves_the_level_where_it_was() {
    let TableTask::Forecast(forecaster) = of_levels() else { panic!() };
    let forecaster = Forecaster { missing: Missing::ForwardFill, ..forecaster };
    let level = |gap: usize| {
        let rows = [&[2.0, 60.0, 100.0][..], &vec![f64::NAN; gap][..]].concat();
        let Scale { center, unit, .. } = forecaster.target_scale(0, &rows);
        (center, unit * 4.0, forecaster.knows(0, &rows))
    };
    assert_eq!((level(0), level(1)), ((80.0, 80.0, true), (100.0, 100.0, true)));
    for gap in 2..FILLED - 1 {
        assert_eq!(level(gap), (80.0, 80.0, true), "{gap}");
    }
    assert_eq!(level(FILLED - 1), (100.0, 100.0, true));
    assert_eq!(level(FILLED), (8.0, 1.0, false));
    // A target that is not read does not count as unknown.
    let other = Forecaster { target: vec!["b".into()], scaling: Scaling::Standard, ..forecaster };
    assert!(other.knows(0, &[f64::NAN]));
}

#[test]
fn a_column_of_names_is_an_input_for_each() {
    let category = |column, values: &[&str]| Category { column, values: values.iter().map(ToString::to_string).collect() };
    let TableTask::Classify(classifier) = classifier() else { panic!() };
    let task = TableTask::Classify(Classifier { categories: vec![category(1, &["north", "south", "west"])], ..classifier });
    assert_eq!((task.columns().len(), task.n_inputs()), (2, 4));
    let shown = |task: &TableTask, rows: &[f64]| {
        let mut inputs = vec![7.0; task.n_inputs()];
        task.show(rows, &mut inputs);
        inputs
    };
    assert_eq!(shown(&task, &[2.0, 2.0]), [2.0, 0.0, 0.0, 1.0]);
    assert_eq!(shown(&task, &[2.0, UNSEEN]), [2.0, 0.0, 0.0, 0.0]);
    // With a level too it is read as it is, and what is missing is the last that is known.
    let TableTask::Forecast(forecaster) = of_levels() else { panic!() };
    let task = TableTask::Forecast(Forecaster {
        columns: vec!["kind".into(), "a".into()],
        normalization: Normalization { mean: vec![0.0; 2], deviation: vec![1.0, 0.5] },
        of_table: Some(Normalization { mean: vec![0.0, 8.0], deviation: vec![1.0, 3.0] }),
        scaling: Scaling::Level { transforms: vec![Transform::Identity; 2], span: 2, lags: vec![1] },
        categories: vec![category(0, &["feast", "work"])],
        missing: Missing::Mask,
        ..forecaster
    });
    assert_eq!(task.n_inputs(), 6);
    assert_eq!(shown(&task, &[1.0, 6.0, f64::NAN, 10.0]), [0.0, 1.0, 1.0, 0.5, -0.5, 0.0]);
    // It is read back, older files lack it, and what makes no sense is refused.
    let json = serde_json::to_string(&task).unwrap();
    assert_eq!(TableTask::from_bytes(json.as_bytes(), 6, 6).unwrap(), task);
    let before = serde_json::to_string(&of_levels()).unwrap();
    assert!(!before.contains("categories") && !before.contains("layout"), "files of before stay as they are");
    for (from, to) in [
        ("\"column\":0", "\"column\":2"),
        ("\"column\":0", "\"column\":1"),
        ("\"feast\",", "\"work\","),
        ("\"feast\",", ""),
        ("[\"feast\",\"work\"]", "[]"),
    ] {
        assert!(json.contains(from), "{json}");
        assert!(TableTask::from_bytes(json.replace(from, to).as_bytes(), 6, 6).is_err(), "{from} {to}");
    }
}

#[test]
fn a_description_with_levels_is_read_back_and_refused_where_it_makes_no_sense() {
    let json = serde_json::to_string(&of_levels()).unwrap();
    assert_eq!(TableTask::from_bytes(json.as_bytes(), 3, 6).unwrap(), of_levels());
    assert!(!serde_json::to_string(&forecaster()).unwrap().contains("scaling"), "files of before stay as they are");
    for (from, to) in [
        ("\"span\":2", "\"span\":0"),
        ("[1,3]", "[0,3]"),
        ("[1,3]", "[1,65536]"),
        ("[0.1,0.5,0.9]", "[0.1,0.6,0.9]"),
        ("[0.1,0.5,0.9]", "[0.5,0.5,0.9]"),
        ("[0.1,0.5,0.9]", "[0.5,0.9,1.0]"),
        ("\"target\":[\"a\"]", "\"target\":[\"b\"]"),
    ] {
        assert!(json.contains(from), "{json}");
        let refused = TableTask::from_bytes(json.replace(from, to).as_bytes(), 3, 6).unwrap_err().to_string();
        assert!(refused.contains("cannot be used"), "{refused}");
    }
}

#[test]
fn a_task_without_columns_is_none() {
    let none = r#"{"task": "classify", "columns": [], "group": "id", "target": "class", "classes": ["a", "b"], "normalization": {"mean": [], "deviation": []}}"#;
    let refused = TableTask::from_bytes(none.as_bytes(), 0, 2).unwrap_err().to_string();
    assert!(refused.contains("it reads no column, expected at least one"), "{refused}");
}

#[test]
fn a_number_that_stands_for_no_name_is_refused() {
    let TableTask::Classify(classifier) = classifier() else { panic!() };
    let category = Category { column: 1, values: (1..=10).map(|name| name.to_string()).collect() };
    assert_eq!(["1", "10", " 10\t", "11", "1 0", "", " "].map(|name| category.code(name)), [0.0, 9.0, 9.0, UNSEEN, UNSEEN, UNSEEN, UNSEEN]);
    let mut task = Classifier { categories: vec![category], ..classifier };
    let read = |task: &Classifier, code: f64| TableTask::Classify(task.clone()).expect_readable(&[1.0, code]);
    assert!([-0.0, 0.0, 9.0, UNSEEN].iter().all(|&code| read(&task, code).is_ok()));
    for code in [10.0, 0.5, -2.0, 1e300, f64::INFINITY, f64::NAN] {
        let refused = read(&task, code).unwrap_err().to_string();
        assert!(refused.contains(&format!("column 'y': found {code:?}, expected")), "{refused}");
    }
    let refused = read(&task, 10.0).unwrap_err().to_string();
    assert!(refused.contains("(0 is '1', 1 is '2', ") && refused.contains("7 is '8' and 2 more), or -1 for one"), "{refused}");
    task.missing = Missing::Mask;
    assert!(read(&task, f64::NAN).is_ok() && read(&task, 0.5).is_err());
}

#[test]
fn a_row_below_0_has_no_logarithm() {
    let TableTask::Forecast(mut forecaster) = of_levels() else { panic!() };
    forecaster.scaling = Scaling::Level { transforms: vec![Transform::Log { floor: 4.0 }], span: 2, lags: vec![1] };
    let task = TableTask::Forecast(forecaster);
    assert!([0.0, 1e-9, 3.0].iter().all(|&x| task.expect_readable(&[x]).is_ok()));
    let refused = task.expect_readable(&[-0.5]).unwrap_err().to_string();
    assert!(refused.contains("found -0.5, of which the model, which reads logarithms, has none"), "{refused}");
    // 0 is replaced by the floor, the least number of training; numbers below the floor stay as they are.
    let transform = Transform::Log { floor: 4.0 };
    assert_eq!([0.0, 4.0, 1.0].map(|x| transform.apply(x)), [libm::log(4.0), libm::log(4.0), 0.0]);
    assert!(transform.apply(f64::NAN).is_nan());
}

proptest::proptest! {
    #[test]
    fn a_history_with_gaps_shows_what_the_whole_series_shows(
        rows in proptest::collection::vec(proptest::option::weighted(0.05, 0.1..100.0f64), 1..300), span in 1..100usize, lag in 1..100usize,
    ) {
        let TableTask::Forecast(mut forecaster) = of_levels() else { panic!() };
        forecaster.scaling = Scaling::Level { transforms: vec![Transform::Identity], span, lags: vec![lag] };
        forecaster.missing = Missing::Mask;
        let task = TableTask::Forecast(forecaster.clone());
        let rows: Vec<f64> = rows.into_iter().map(|row| row.unwrap_or(f64::NAN)).collect();
        let mut history = History::new(1, task.reach());
        for (t, row) in rows.iter().enumerate() {
            history.push(&[*row]);
            let [mut from_history, mut from_series] = [[0.0; 3]; 2];
            task.show(history.rows(), &mut from_history);
            task.show(&rows[..=t], &mut from_series);
            proptest::prop_assert_eq!(from_history, from_series);
            proptest::prop_assert_eq!(forecaster.target_scale(0, history.rows()), forecaster.target_scale(0, &rows[..=t]));
            proptest::prop_assert_eq!(forecaster.knows(0, history.rows()), forecaster.knows(0, &rows[..=t]));
        }
    }

    #[test]
    fn a_history_shows_what_the_whole_series_shows(
        rows in proptest::collection::vec(0.1..100.0f64, 1..40), span in 1..6usize, lag in 1..7usize, which in 0..3usize, reach in 0..9usize,
    ) {
        let TableTask::Forecast(mut forecaster) = of_levels() else { panic!() };
        let transform = [Transform::Identity, Transform::Log { floor: 0.01 }, Transform::Log1p][which];
        forecaster.scaling = Scaling::Level { transforms: vec![transform], span, lags: vec![lag] };
        let task = TableTask::Forecast(forecaster.clone());
        let mut history = History::new(1, task.reach() + reach);
        for (t, row) in rows.iter().enumerate() {
            history.push(&[7.0]);
            history.pop();
            history.push(&[*row]);
            let [mut from_history, mut from_series] = [[0.0; 2]; 2];
            task.show(history.rows(), &mut from_history);
            task.show(&rows[..=t], &mut from_series);
            proptest::prop_assert_eq!(from_history, from_series);
            let scale = forecaster.target_scale(0, history.rows());
            let back = scale.restore(scale.apply(*row));
            proptest::prop_assert!((back - row).abs() < 1e-4 * (1.0 + row + scale.center.abs()), "{} {}", back, row);
            let again = History::new(1, task.reach() + reach).after(history.rows()).unwrap();
            proptest::prop_assert_eq!(again.rows(), history.rows());
        }
    }
}
