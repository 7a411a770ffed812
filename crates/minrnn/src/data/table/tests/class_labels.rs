//! Sequences with a class.

use super::*;
use crate::data::SequenceTask;
use crate::rng::Purpose;

#[test]
fn every_sequence_is_scored_once_at_its_last_step() {
    let file = classes(20);
    let task = classification(file.path()).unwrap();
    let Some(TableTask::Classify(classifier)) = task.description().map(|value| TableTask::from_json(value, 1, 2).unwrap()) else {
        panic!("expected a classifier")
    };
    assert_eq!(classifier.classes, ["down", "up"]);
    let mut seen = Vec::new();
    for purpose in [Purpose::TrainData, Purpose::ValidationData, Purpose::TestData] {
        let mut set = task.evaluation(3, 0, purpose, 1).unwrap();
        let mut numbers = Vec::new();
        for index in 0..set.n_batches() {
            let batch = set.batch(index).unwrap();
            for (row, &length) in batch.segments.lengths().unwrap().iter().enumerate().filter(|(_, length)| **length > 0) {
                let rows = row * batch.seq_len..(row + 1) * batch.seq_len;
                let mask = &batch.mask.as_ref().unwrap()[rows.clone()];
                assert_eq!(mask.iter().position(|&m| m != 0.0), Some(length - 1));
                assert_eq!(mask.iter().sum::<f32>(), 1.0);
                let sequence = (classifier.normalization.restore(0, batch.inputs.values()[rows.start]) / 1000.0).round() as usize;
                assert_eq!(batch.targets.tokens()[rows][length - 1], u32::from(sequence.is_multiple_of(2)));
                numbers.push(sequence);
            }
        }
        if purpose == Purpose::TrainData {
            // Means are those of the training part.
            let values = numbers.iter().flat_map(|&at| {
                let sign = if at % 2 == 0 { 1.0 } else { -1.0 };
                (0..2 + at % 5).map(move |step| 1000.0 * at as f64 + sign * step as f64)
            });
            let values: Vec<f64> = values.collect();
            let mean = values.iter().sum::<f64>() / values.len() as f64;
            assert!((classifier.normalization.mean[0] - mean).abs() < 1e-6);
        }
        seen.extend(numbers);
    }
    seen.sort_unstable();
    assert_eq!(seen, (0..20).collect::<Vec<_>>());
    let batch = task.training(4, 1).unwrap().batch(5, 0).unwrap();
    assert_eq!(batch.n_scored(), 4);
}

#[test]
fn a_sequence_of_a_single_row_is_a_case_as_any_other() {
    let file = |rows: &dyn Fn(usize) -> usize| {
        let class = |at: usize| ["down", "up"][at % 2];
        let of = |at: usize| (0..rows(at)).map(|t| format!("s{at},{},{}\n", class(at), at + t)).collect::<String>();
        write_table(&("id,class,x\n".to_owned() + &(0..20).map(of).collect::<String>()))
    };
    let scored = |task: &Labelling| {
        let parts = [Purpose::TrainData, Purpose::ValidationData, Purpose::TestData];
        parts.map(|purpose| {
            let mut set = task.evaluation(8, 0, purpose, 1).unwrap();
            (0..set.n_batches()).map(|index| set.batch(index).unwrap().n_scored()).sum::<usize>()
        })
    };
    let some = classification(file(&|at| 1 + at % 3).path()).unwrap();
    assert_eq!((scored(&some), some.understood()), ([12, 4, 4], None));
    let all = classification(file(&|_| 1).path()).unwrap();
    assert_eq!(scored(&all), [12, 4, 4]);
    let batch = all.training(4, 1).unwrap().batch(0, 0).unwrap();
    assert_eq!((batch.seq_len, batch.n_scored()), (1, 4));
    let told = "20 of 20 sequences have a single row: if some belong together, name the column that tells so as group";
    assert_eq!(all.understood(), Some(told));
}

#[test]
fn a_test_file_is_scored_and_never_learned_from() {
    let (own, test) = (classes(20), write_table("id,class,x\ns0,up,0\ns0,up,1\nt,down,0\nt,down,-1\n"));
    let config = LabellingConfig { division: Division { test: Some(test.path().to_owned()), ..division(0.6) }, ..of_classes() };
    let n = |task: &dyn SequenceTask, purpose| {
        let mut set = task.evaluation(64, 0, purpose, 1).unwrap();
        (0..set.n_batches()).map(|index| set.batch(index).unwrap().n_scored()).sum::<usize>()
    };
    let task = Labelling::open(own.path(), config.clone()).unwrap();
    let parts = [Purpose::TrainData, Purpose::ValidationData, Purpose::TestData];
    assert_eq!(parts.map(|purpose| n(&task, purpose)), [12, 8, 2]);
    assert_eq!(parts.map(|purpose| n(&*task.all().unwrap(), purpose)), [20, 0, 2]);
    let without = Labelling::open(
        own.path(),
        LabellingConfig { division: Division { validates: false, ..config.division.clone() }, ..config.clone() },
    )
    .unwrap();
    assert_eq!(parts.map(|purpose| n(&without, purpose)), [20, 0, 2]);
    assert!(without.all().is_none(), "nothing is left to learn from");
    let divided = Labelling::open(
        own.path(),
        LabellingConfig { division: Division { test: None, validates: false, ..config.division.clone() }, ..config.clone() },
    )
    .unwrap();
    assert_eq!(parts.map(|purpose| n(&divided, purpose)), [12, 0, 8]);
    assert_eq!(parts.map(|purpose| n(&*divided.all().unwrap(), purpose)), [20, 0, 0]);
    let strange = write_table("id,class,x\na,sideways,0\na,sideways,1\n");
    let refused = Labelling::open(
        own.path(),
        LabellingConfig { division: Division { test: Some(strange.path().to_owned()), ..division(0.6) }, ..config },
    )
    .unwrap_err();
    assert!(refused.to_string().contains("the class 'sideways' was not seen in training"), "{refused}");
}

#[test]
fn sequences_are_drawn_as_their_classes_weigh() {
    // One sequence in four is up.
    let rows: String = (0..40).map(|id| format!("s{id},{},{id}\ns{id},{0},1\n", if id % 4 == 0 { "up" } else { "down" })).collect();
    let file = write_table(&("id,class,x\n".to_owned() + &rows));
    let share_of_up = |class_weights| {
        let task = Labelling::open(file.path(), LabellingConfig { class_weights, ..of_classes() }).unwrap();
        let mut batches = task.training(50, 1).unwrap();
        let drawn: Vec<u32> = (0..40)
            .flat_map(|iteration| {
                let batch = batches.batch(iteration, 0).unwrap();
                let (classes, mask) = (batch.targets.tokens().to_vec(), batch.mask.unwrap());
                classes.into_iter().zip(mask).filter(|(_, mask)| *mask != 0.0).map(|(class, _)| class)
            })
            .collect();
        assert_eq!(drawn.len(), 2000);
        f64::from(drawn.iter().sum::<u32>()) / 2000.0
    };
    for (weights, expected) in [
        (ClassWeights::Equal, 0.25),
        (ClassWeights::Balanced, 0.5),
        (ClassWeights::Named(vec![("up".to_owned(), 9.0)]), 0.75),
        (ClassWeights::Named(vec![("down".to_owned(), 2.0)]), 1.0 / 7.0),
    ] {
        let found = share_of_up(weights.clone());
        assert!((found - expected).abs() < 0.04, "{weights:?}: {found}, expected {expected}");
    }
    let unknown = LabellingConfig { class_weights: ClassWeights::Named(vec![("upp".to_owned(), 2.0)]), ..of_classes() };
    assert!(Labelling::open(file.path(), unknown).unwrap_err().to_string().contains("did you mean 'up'?"));
}

#[test]
fn a_class_that_is_a_number_is_known_however_a_file_writes_it() {
    let table = |[a, b]: [&str; 2]| {
        let rows = (0..20).map(|id| format!("s{id},{0},{id}\ns{id},{0},1\n", if id % 2 == 0 { a } else { b }));
        write_table(&("id,class,x\n".to_owned() + &rows.collect::<String>()))
    };
    let (whole, real) = (table(["0", "1"]), table(["0.0", "1.0"]));
    let classes = |task: &Labelling| {
        let batch = task.evaluation(64, 0, Purpose::TestData, 1).unwrap().batch(0).unwrap();
        let (classes, mask) = (batch.targets.tokens().to_vec(), batch.mask.unwrap());
        classes.into_iter().zip(mask).filter(|(_, mask)| *mask != 0.0).map(|(class, _)| class).collect::<Vec<u32>>()
    };
    for (own, other) in [(&whole, &real), (&real, &whole)] {
        let division = Division { test: Some(other.path().to_owned()), ..division(0.6) };
        let tested = Labelling::open(own.path(), LabellingConfig { division, ..of_classes() }).unwrap();
        let unseen = Labelling::unseen(other.path(), &tested.table_task().unwrap()).unwrap();
        for task in [&tested, &unseen] {
            assert_eq!(classes(task), [0, 1].repeat(10));
        }
    }
    let task = classification(whole.path()).unwrap().table_task().unwrap();
    let both = write_table("id,class,x\na,1,0\na,1.0,1\nb,0.00,3\nb,0,4\n");
    assert_eq!(classes(&Labelling::unseen(both.path(), &task).unwrap()), [1, 0]);
    let labels = |text: &str| read_labels(&task, TableSource::File(write_table(text).path()));
    assert_eq!(read_labels(&task, TableSource::File(both.path())).unwrap(), owned(&["1", "0"]));
    assert_eq!(labels("id,class,x\na,1.0,0\na,1.0,1\nb,7.0,3\nb,7.0,4\n").unwrap(), owned(&["1", "7.0"]));
    assert!(labels("id,class,x\na,1.0,0\na,0,1\n").unwrap_err().to_string().contains("has the class '1.0' and, in row 2"));
    let refused = Labelling::unseen(table(["0", "2.0"]).path(), &task).unwrap_err().to_string();
    assert!(refused.contains("the class '2.0' was not seen in training"), "{refused}");
}

#[test]
fn classes_that_are_one_number_stay_as_they_are_written_and_are_told() {
    let classes = |names: &[&str]| {
        let rows = (0..20).map(|id| format!("s{id},{0},{id}\ns{id},{0},1\n", names[id % names.len()]));
        let task = classification(write_table(&("id,class,x\n".to_owned() + &rows.collect::<String>())).path());
        let task = task.unwrap();
        let told = task.understood().is_some_and(|told| told.contains("are one number, and two classes"));
        (task.table_task().unwrap().classes().to_vec(), told)
    };
    let are = |names: &[&str], told: bool| (names.iter().map(|&name| name.to_owned()).collect::<Vec<_>>(), told);
    assert_eq!(classes(&["1.1", "1.2", "1.10"]), are(&["1.1", "1.10", "1.2"], true));
    assert_eq!(classes(&["1.0", "1"]), are(&["1", "1.0"], true));
    assert_eq!(classes(&["1.0", "2.0"]), are(&["1.0", "2.0"], false));
    assert_eq!(classes(&["01", "1", "b"]), are(&["01", "1", "b"], false));
}

#[test]
fn rows_that_are_missing_are_told_of_sequences_with_labels_too() {
    let table = |missing: Option<usize>| {
        let days = |id: usize| (0..10).filter(move |&day| id > 0 || Some(day) != missing);
        let row = |id: usize, day: usize| format!("s{id},{},2024-01-{:02},{day}\n", ["up", "down"][id % 2], day + 1);
        let rows = (0..20).flat_map(|id| days(id).map(move |day| row(id, day)));
        write_table(&("id,class,ds,x\n".to_owned() + &rows.collect::<String>()))
    };
    let open = |file: &Path| {
        let division = Division { time: TimeColumn::Found, ..division(0.6) };
        Labelling::open(file, LabellingConfig { division, ..of_classes() }).unwrap()
    };
    assert_eq!(open(table(None).path()).understood(), None);
    let with_gap = table(Some(4));
    let told = "1 of 179 steps is longer than the usual day: rows are read one after the other; insert rows with empty values, with missing = mask, \
                where time should pass";
    let task = open(with_gap.path());
    assert_eq!(task.understood(), Some(told));
    let task = task.table_task().unwrap();
    assert_eq!(Labelling::unseen(with_gap.path(), &task).unwrap().understood(), Some(told));
    assert_eq!(notes(&task, &read_series(&task, with_gap.path()).unwrap(), &[]), [told]);
}

#[test]
fn a_table_without_names_that_lacks_the_classes_is_not_read_with_values_in_their_place() {
    let row = |class: usize, at: usize| format!("{class},{},{},{},{}\n", 0.25 + at as f64, at % 3, at % 5, -0.5);
    let own = write_table(&(0..20).map(|at| row(1 + at % 2, at)).collect::<String>());
    let config = LabellingConfig {
        target: String::new(),
        group: String::new(),
        division: Division { validates: false, ..division(0.6) },
        ..of_classes()
    };
    let task = Labelling::open(own.path(), config).unwrap().table_task().unwrap();
    let read = |text: &str| read_series(&task, write_table(text).path());
    for text in ["1,0.5,1,3,2\n2,4,5,6,7\n", "?,0.5,1,3,2\n,4,5,6,7\n", "NaN,0.5,1,3,2\n1.0,4,5,6,7\n"] {
        let read = read(text).unwrap();
        let values: Vec<&[f64]> = read.iter().map(|series| &series.values[..]).collect();
        assert_eq!(values, [&[0.5, 1.0, 3.0, 2.0][..], &[4.0, 5.0, 6.0, 7.0]], "{text}");
    }
    let refused = |text: &str| read(text).unwrap_err().to_string();
    let sentence = refused("-0.1086,0.5,1,2\n1,5,6,7\n");
    let expected = "line 1: without names of columns the first cell of a row is its class, or ? where that is not known; expected '1', '2', found \
                    '-0.1086'; put the class or ? in front of the values of every row";
    assert!(sentence.contains(expected), "{sentence}");
    assert!(refused("1,0.5,1,2\n3,5,6,7\n").contains("line 2: without names of columns"));
    // If classes are read, they need names.
    assert!(Labelling::unseen(write_table("3,0.5,1,2,3\n").path(), &task).unwrap_err().to_string().contains("the class '3' was not seen"));
}

/// `n` sequences of `rows` rows each, and one more row in every third, counting up from 1000 for each.
fn counting(n: usize, rows: usize) -> tempfile::NamedTempFile {
    let mut text = String::from("id,class,x\n");
    for at in 0..n {
        let class = if at % 2 == 0 { "up" } else { "down" };
        let numbers = 1000 * at..1000 * at + rows + usize::from(at % 3 == 0);
        numbers.for_each(|x| writeln!(text, "s{at},{class},{x}").unwrap());
    }
    write_table(&text)
}

#[test]
fn of_long_sequences_several_rows_are_a_step() {
    let opened = |rows: usize, rows_per_step: usize| {
        let config = LabellingConfig { rows_per_step, division: Division { validates: false, ..division(0.5) }, ..of_classes() };
        Labelling::open(counting(12, rows).path(), config).unwrap()
    };
    for (rows, wanted, expected) in [(500, 0, 1), (520, 0, 3), (1023, 0, 4), (1200, 0, 5), (1200, 1, 1), (100, 7, 7)] {
        let task = opened(rows, wanted);
        assert_eq!(task.table_task().unwrap().rows_per_step(), expected, "{rows}, {wanted}");
        assert_eq!(task.longest(), (rows + 1).div_ceil(expected));
        assert_eq!(task.understood().is_some_and(|said| said.contains(&format!("long: {expected} rows"))), wanted == 0 && expected > 1);
    }
    let task = opened(100, 7);
    let Some(TableTask::Classify(classifier)) = task.table_task() else { panic!("it classifies") };
    let scale = classifier.rows_per_step.unwrap().normalization;
    let mut set = task.evaluation(4, 0, Purpose::TrainData, 1).unwrap();
    let [mut means, mut deviations]: [Vec<f64>; 2] = Default::default();
    for index in 0..set.n_batches() {
        let batch = set.batch(index).unwrap();
        let (inputs, lengths) = (batch.inputs.values(), batch.segments.lengths().unwrap().to_vec());
        for (row, length) in lengths.into_iter().enumerate().filter(|(_, length)| *length > 0) {
            // The last of 15 steps has the rows that are left, 2 or 3 of 100 or 101.
            assert_eq!(length, 15);
            let step = |at: usize| {
                let seen = &inputs[3 * (row * batch.seq_len + at)..][..3];
                {
                    let [mean, deviation, change] = [0, 1, 2].map(|which| scale.restore(which, seen[which]));
                    (mean, deviation, change)
                }
            };
            let first = step(0).0 - 3.0;
            let whole = (0..14).map(|at| (first + 7.0 * at as f64 + 3.0, 2.0));
            let mut expected: Vec<(f64, f64)> = whole.collect();
            let sequence = (first / 1000.0).round() as usize;
            let left = if sequence.is_multiple_of(3) { (first + 99.0, (2.0f64 / 3.0).sqrt()) } else { (first + 98.5, 0.5) };
            expected.push(left);
            for (at, expected) in expected.into_iter().enumerate() {
                let found = step(at);
                assert!((found.0 - expected.0).abs() < 0.01 && (found.1 - expected.1).abs() < 1e-4, "{at}: {found:?}, {expected:?}");
                means.push(expected.0);
                deviations.push(expected.1);
                assert!((found.2 - 1.0).abs() < 1e-6, "{at}: {found:?}");
            }
            let mask = &batch.mask.as_ref().unwrap()[row * batch.seq_len..][..batch.seq_len];
            assert_eq!(mask.iter().position(|&m| m != 0.0), Some(14));
        }
    }
    assert_eq!(means.len(), 6 * 15);
    assert!((scale.mean[2] - 1.0).abs() < 1e-9 && scale.deviation[2] == 1.0, "{scale:?}");
    for (which, numbers) in [means, deviations].into_iter().enumerate() {
        let n = numbers.len() as f64;
        let mean = numbers.iter().sum::<f64>() / n;
        let deviation = (numbers.iter().map(|x| (x - mean) * (x - mean)).sum::<f64>() / n).sqrt();
        assert!((scale.mean[which] - mean).abs() < 0.01, "{scale:?} {mean}");
        assert!((scale.deviation[which] / deviation - 1.0).abs() < 1e-3, "{scale:?} {deviation}");
    }
}
