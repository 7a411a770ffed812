//! What is trained on, what is held out, and that the two never meet.

use std::collections::BTreeSet;

use proptest::prelude::*;

use super::*;
use crate::Error;
use crate::data::{Batch, SequenceTask};
use crate::rng::Purpose;

/// Sequence and step of a number of a [`counting`] table, given as the model sees it.
fn place(task: &Forecasting, x: f32) -> (usize, usize) {
    let Some(TableTask::Forecast(forecaster)) = task.description().map(|value| TableTask::from_json(value, 1, horizon_of(task)).unwrap())
    else {
        panic!("expected a forecaster")
    };
    let x = forecaster.normalization.restore(0, x).round() as usize;
    (x / 10_000, x % 10_000)
}

fn horizon_of(task: &Forecasting) -> usize {
    match task.predicts() {
        crate::data::IoKind::Values { width } => width,
        crate::data::IoKind::Tokens { .. } => panic!("expected values"),
    }
}

/// Sequence and step.
type Place = (usize, usize);

/// For each scored step of a batch: what is read there, and what is to be predicted, as far as it is not missing.
fn scored(task: &Forecasting, batch: &Batch) -> Vec<(Place, Vec<Place>)> {
    let horizon = horizon_of(task);
    let mask = batch.mask.as_ref().unwrap();
    let steps = (0..mask.len()).filter(|&at| mask[at] != 0.0);
    let targets = |at: usize| {
        let targets = batch.targets.values()[at * horizon..][..horizon].iter();
        targets.filter(|x| !x.is_nan()).map(|&x| place(task, x)).collect()
    };
    steps.map(|at| (place(task, batch.inputs.values()[at]), targets(at))).collect()
}

fn scored_values(batch: &Batch) -> impl Iterator<Item = f32> {
    let mask = batch.mask.as_ref().unwrap();
    batch.targets.values().iter().zip(mask).filter(|(_, mask)| **mask != 0.0).map(|(&x, _)| x)
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(24))]

    #[test]
    fn nothing_that_is_scored_was_trained_on(lengths in prop::collection::vec(2..40usize, 1..4), horizon in 1..4usize, batch_size in 1..4usize) {
        let file = counting(&lengths);
        let found = grouped(file.path(), horizon);
        // Two steps to learn from, and a forecast each for validation and for testing.
        prop_assert_eq!(found.is_err(), lengths.iter().all(|&length| length < 2 + 2 * horizon));
        let task = match found {
            Ok(task) => task,
            Err(refused) => {
                prop_assert!(refused.to_string().contains("no sequence is long enough to forecast"), "{}", refused);
                return Ok(());
            }
        };
        let predicted = |purpose| {
            let mut set = task.evaluation(batch_size, 7, purpose, 1).unwrap();
            let mut predicted = BTreeSet::new();
            for index in 0..set.n_batches() {
                for ((series, step), targets) in scored(&task, &set.batch(index).unwrap()) {
                    assert_eq!(targets, (1..=horizon).map(|ahead| (series, step + ahead)).collect::<Vec<_>>());
                    predicted.extend(targets);
                }
            }
            predicted
        };
        let (validated, tested) = (predicted(Purpose::ValidationData), predicted(Purpose::TestData));
        for (series, &length) in lengths.iter().enumerate() {
            let of = |part: &BTreeSet<Place>| part.iter().filter(|place| place.0 == series).map(|place| place.1).collect::<Vec<_>>();
            let (validated, tested) = (of(&validated), of(&tested));
            // Whole stretches at the end, the test part last, each with room for a forecast.
            let held_out = validated.len() + tested.len();
            prop_assert_eq!([validated.clone(), tested.clone()].concat(), (length - held_out..length).collect::<Vec<_>>());
            prop_assert!([&validated, &tested].iter().all(|part| part.is_empty() || part.len() >= horizon));
            prop_assert!(length < horizon + 2 || !tested.is_empty());
        }
        let mut source = task.training(batch_size, 7).unwrap();
        for iteration in 0..8 {
            let batch = source.batch(iteration, 0).unwrap();
            prop_assert!(batch.segments.codes(batch.batch_size, batch.seq_len).is_ok());
            for ((series, step), targets) in scored(&task, &batch) {
                prop_assert!(!targets.is_empty());
                for (ahead, target) in targets.into_iter().enumerate() {
                    prop_assert_eq!(target, (series, step + 1 + ahead));
                    prop_assert!(!validated.contains(&target) && !tested.contains(&target));
                }
            }
        }
        // When everything is learned from, no step is missing.
        let all = task.all().unwrap();
        let batch = all.training(256, 7).unwrap().batch(0, 0).unwrap();
        let last = lengths.iter().copied().enumerate().max_by_key(|&(_, length)| length).unwrap();
        let seen: BTreeSet<Place> = scored(&task, &batch).into_iter().flat_map(|(_, targets)| targets).collect();
        prop_assert!(seen.contains(&(last.0, last.1 - 1)));
    }
}

#[test]
fn evaluation_reads_every_sequence_from_its_first_step() {
    let file = counting(&[1200, 700]);
    let task = grouped(file.path(), 2).unwrap();
    let mut set = task.evaluation(8, 7, Purpose::TestData, 1).unwrap();
    assert!(set.carries_state());
    let mut next = [0, 0];
    for index in 0..set.n_batches() {
        let batch = set.batch(index).unwrap();
        assert_eq!(batch.batch_size, 2);
        let lengths = batch.segments.lengths().unwrap();
        for (row, &length) in lengths.iter().enumerate() {
            for at in 0..length {
                let (series, step) = place(&task, batch.inputs.values()[row * batch.seq_len + at]);
                assert_eq!(step, next[series]);
                next[series] += 1;
            }
        }
    }
    // The last steps have nothing to predict.
    assert_eq!(next, [1198, 698]);
}

#[test]
fn files_for_validation_and_test_follow_the_sequences_of_the_same_name() {
    let [own, validation, test] =
        ["id,x\na,1\na,2\na,3\nb,1\nb,2\n", "id,x\na,4\na,5\n", "x,id\n6,a\n7,a\n1,c\n2,c\n3,c\n"].map(write_table);
    let config = ForecastingConfig {
        group: Some("id".to_owned()),
        division: Division { validation: Some(validation.path().to_owned()), test: Some(test.path().to_owned()), ..division(0.5) },
        ..forecasting(&["x"], 1)
    };
    let task = Forecasting::open(own.path(), &config).unwrap();
    let Some(TableTask::Forecast(forecaster)) = task.description().map(|value| TableTask::from_json(value, 1, 1).unwrap()) else {
        panic!()
    };
    let targets = |purpose| {
        let mut set = task.evaluation(8, 0, purpose, 1).unwrap();
        let batches = (0..set.n_batches()).map(|index| set.batch(index).unwrap()).collect::<Vec<_>>();
        let restore = |x: f32| forecaster.target_normalization.restore(0, x).round();
        batches.iter().flat_map(|batch| scored_values(batch).map(restore)).collect::<Vec<f64>>()
    };
    assert_eq!(targets(Purpose::ValidationData), [4.0, 5.0]);
    // The new sequence is scored from its first step on.
    assert_eq!(targets(Purpose::TestData), [6.0, 7.0, 2.0, 3.0]);
    assert!((forecaster.normalization.mean[0] - 9.0 / 5.0).abs() < 1e-12);
    assert!(task.has_test_file() && task.all().is_some_and(|all| all.all().is_none()));
}

#[test]
fn sequences_go_on_in_files_that_write_their_numbers_in_another_way_and_new_ones_are_told() {
    let open = |names: [&str; 2]| {
        let own = write_table("id,x\n1,1\n1,2\n1,3\n2,1\n2,2\n");
        let test = write_table(&names.iter().fold("id,x\n".to_owned(), |text, name| text + &format!("{name},6\n{name},7\n")));
        let division = Division { test: Some(test.path().to_owned()), validates: false, ..division(0.5) };
        Forecasting::open(own.path(), &ForecastingConfig { group: Some("id".to_owned()), division, ..forecasting(&["x"], 1) })
    };
    let scored = |task: &Forecasting| {
        let mut set = task.evaluation(8, 0, Purpose::TestData, 1).unwrap();
        (0..set.n_batches()).map(|index| set.batch(index).unwrap().n_scored()).sum::<usize>()
    };
    let told = |names| {
        let task = open(names).unwrap();
        (scored(&task), task.understood().map(str::to_owned))
    };
    assert_eq!(told(["1", "2"]), (4, None));
    assert_eq!(told(["2.0", "1.0"]), (4, None));
    let (n, one) = told(["1.0", "3.0"]);
    assert_eq!(n, 3);
    assert_eq!(
        one.unwrap(),
        "1 sequence of the test part, '3.0', is in no table before it: it is scored from its first step on, without a history"
    );
    let both = told(["01", "b"]).1.unwrap();
    assert!(both.starts_with("2 sequences of the test part, such as '01', are in no table before it: they are scored"), "{both}");
    let refused = open(["1", "1.0"]).unwrap_err().to_string();
    assert!(refused.contains("it names one sequence in two ways, '1' and '1.0', which are the same number"), "{refused}");
    // Learned rows are recognised in a table that writes the names so.
    let task = open(["1", "2"]).unwrap();
    let Some(TableTask::Forecast(forecaster)) = task.table_task() else { panic!("expected a forecaster") };
    let other = write_table("id,x\n1.0,1\n1.0,2\n1.0,3\n1.0,6\n1.0,7\n");
    let backtest = Backtest::open(other.path(), &forecaster, Origins { n: 9, stride: None }).unwrap();
    assert_eq!((backtest.n_forecasts(), backtest.n_learned(&task, false)), (3, 1));
}

#[test]
fn a_sequence_of_a_single_row_is_left_out_of_a_forecast_which_is_told() {
    let file = counting(&[12, 1, 12, 12]);
    let task = grouped(file.path(), 1).unwrap();
    assert_eq!(task.understood(), Some("1 of 4 sequences has a single row and is left out, as training needs two: 's1'"));
    let Some(TableTask::Forecast(forecaster)) = task.table_task() else { panic!("expected a forecaster") };
    // The first 6 steps of the others.
    assert!((forecaster.normalization.mean[0] - (50_000.0 / 3.0 + 2.5)).abs() < 1e-6);
    assert_eq!([task.extent(), task.all().unwrap().extent()].map(|extent| extent.unwrap().steps), [15, 33]);
    let unseen = Forecasting::unseen(file.path(), &forecaster).unwrap();
    assert_eq!(unseen.understood(), Some("1 of 4 sequences has a single row and is left out, as scoring needs two: 's1'"));
    let rows = ForecastRows::read(TableSource::File(file.path()), &forecaster).unwrap();
    assert_eq!(rows.notes(), ["1 of 4 sequences has a single row and is not judged, as nothing is before it: 's1'"]);
    assert_eq!(rows.series().len(), 4);
    let backtest = Backtest::open(file.path(), &forecaster, Origins { n: 2, stride: None }).unwrap();
    assert_eq!((backtest.n_forecasts(), backtest.understood()), (6, None));
    assert_eq!(backtest.too_short(), [TooShort { name: "s1".to_owned(), steps: 1, origins: 0 }]);
}

#[test]
fn a_single_row_is_the_history_of_those_that_follow_in_a_test_file() {
    let [own, test] = ["id,x\na,1\na,2\na,3\na,4\nz,7\n", "id,x\nz,8\nz,9\nq,3\na,5\n"].map(write_table);
    let division = Division { test: Some(test.path().to_owned()), validates: false, ..division(0.5) };
    let config = ForecastingConfig { group: Some("id".to_owned()), division, ..forecasting(&["x"], 1) };
    let task = Forecasting::open(own.path(), &config).unwrap();
    let mut set = task.evaluation(8, 0, Purpose::TestData, 1).unwrap();
    assert_eq!((0..set.n_batches()).map(|index| set.batch(index).unwrap().n_scored()).sum::<usize>(), 3);
    let told = "1 of 2 sequences has a single row and is left out, as training needs two: 'z'\n1 sequence of the test part, 'q', has a single row \
                and none in a table before it: it is not scored";
    assert_eq!(task.understood(), Some(told));
}

#[test]
fn what_cannot_be_learned_from_is_a_sentence_with_the_file() {
    let refusal = |found: crate::Result<()>| match found.unwrap_err() {
        Error::Malformed { problem, .. } => problem,
        other => panic!("{other}"),
    };
    let classify = |text: &str| refusal(classification(write_table(text).path()).map(drop));
    assert_eq!(
        classify("id,class,x\na,u,1\na,v,1\n"),
        "the sequence 'a' has the class 'u' and, in row 2 of the data, 'v'; expected one value of 'class' in all of its rows"
    );
    assert!(classify("id,class,x\na,u,1\na,u,1\n").contains("expected at least two classes"));
    let single = classify("id,class,x\na,u,1\na,u,1\nb,v,1\n");
    assert!(single.contains("0 of its 2 sequences are held out") && single.ends_with("so give at least two of each"), "{single}");
    let forecast = |text: &str, horizon| refusal(Forecasting::open(write_table(text).path(), &forecasting(&["x"], horizon)).map(drop));
    assert_eq!(forecast("x\n1\n", 1), "it has 1 row, expected a sequence of at least 2");
    let most = refusal(grouped(write_table("id,x\na,1\nb,1\nc,1\nc,2\n").path(), 1).map(drop));
    assert_eq!(most, "2 of 3 sequences, such as 'a', have 1 step, expected at least 2; is the group column the right one?");
    assert!(forecast("x\n1\n2\n3\n", 2).contains("to forecast 2 steps within its validation part: the longest has 3 steps"));
    assert!(forecast("x\n1\n2\n3\n4\n5\n", 2).contains("within its validation part"));
}
