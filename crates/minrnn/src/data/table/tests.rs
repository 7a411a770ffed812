//! The tasks: what is trained on, what is scored, and what is reported.

use std::collections::BTreeSet;
use std::fmt::Write;
use std::path::Path;

use proptest::prelude::*;

use super::*;
use crate::Error;
use crate::data::{Batch, IoKind, SequenceTask};
use crate::rng::Purpose;

fn write_table(text: &str) -> tempfile::NamedTempFile {
    let file = tempfile::NamedTempFile::new().unwrap();
    std::fs::write(file.path(), text).unwrap();
    file
}

fn owned(names: &[&str]) -> Vec<String> {
    names.iter().map(ToString::to_string).collect()
}

fn division(train_fraction: f64) -> Division {
    Division {
        time: TimeColumn::None,
        layout: LayoutChoice::Auto,
        missing: Missing::Error,
        train_fraction,
        validates: true,
        validation: None,
        test: None,
    }
}

fn forecasting(target: &[&str], horizon: usize) -> ForecastingConfig {
    ForecastingConfig {
        columns: Vec::new(),
        calendar: Vec::new(),
        known_ahead: Vec::new(),
        target: owned(target),
        group: None,
        horizon,
        season: 0,
        scaling: ScalingChoice::Standard,
        quantiles: Vec::new(),
        like: None,
        division: division(0.5),
        seq_len: 4,
    }
}

/// Sequences `a`, `b`, … of these lengths, row by row in turn, whose value `x` is 10 000 times the number of the sequence plus the step.
fn counting(lengths: &[usize]) -> tempfile::NamedTempFile {
    let mut text = String::from("id,x\n");
    for step in 0..lengths.iter().copied().max().unwrap_or(0) {
        for (at, _) in lengths.iter().enumerate().filter(|&(_, &length)| step < length) {
            writeln!(text, "s{at},{}", 10_000 * at + step).unwrap();
        }
    }
    write_table(&text)
}

fn grouped(file: &Path, horizon: usize) -> crate::Result<Forecasting> {
    Forecasting::open(file, &ForecastingConfig { group: Some("id".to_owned()), ..forecasting(&["x"], horizon) })
}

/// Sequence and step of a number of a [`counting`] table as a model sees it.
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

/// For each scored step of a batch: what is read there, and what is to be predicted as far as it is not missing.
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

proptest! {
    #![proptest_config(ProptestConfig::with_cases(24))]

    #[test]
    fn nothing_that_is_scored_was_trained_on(lengths in prop::collection::vec(2..40usize, 1..4), horizon in 1..4usize, batch_size in 1..4usize) {
        let file = counting(&lengths);
        let Ok(task) = grouped(file.path(), horizon) else { return Ok(()) };
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
        // Learned from all of it, no step is missing.
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
fn the_baseline_and_the_errors_are_those_by_hand() {
    // Training 0..4 (mean 2.5, deviation √1.25), validation 4..6, test 6..8.
    let file = write_table("x\n1\n2\n3\n4\n5\n6\n10\n30\n");
    let task = Forecasting::open(file.path(), &ForecastingConfig { horizon: 1, season: 3, ..forecasting(&["x"], 1) }).unwrap();
    let mut comparison = task.comparison(Purpose::TestData).unwrap();
    let batch = task.evaluation(1, 0, Purpose::TestData, 1).unwrap().batch(0).unwrap();
    let mut outputs = batch.targets.values().to_vec();
    // Scored at steps 5 and 6; the forecasts are 2 too large and 4 too small.
    let deviation = 1.25f32.sqrt();
    outputs[5] += 2.0 / deviation;
    outputs[6] -= 4.0 / deviation;
    comparison.add(0, &batch, &outputs);
    let measures = comparison.measures();
    let names: Vec<&str> = measures.iter().map(|measure| measure.name.as_str()).collect();
    assert_eq!(
        names,
        [
            "mean absolute error of x",
            "root mean squared error of x",
            "symmetric mean absolute percentage error of x",
            "mean absolute scaled error of x"
        ]
    );
    let close = |found: f64, expected: f64| assert!((found - expected).abs() < 1e-5, "{found} {expected}");
    let found = measures.iter().map(|measure| measure.found).collect::<Vec<_>>();
    let baseline = measures.iter().map(|measure| measure.baseline.as_ref().unwrap().found).collect::<Vec<_>>();
    // One stretch of two steps, 10 and 30, forecast as 12 and 26; a season of 3 steps earlier stood 4 and 5.
    close(found[0], 3.0);
    close(found[1], 10f64.sqrt());
    close(found[2], 100.0 * (4.0 / 22.0 + 8.0 / 56.0) / 2.0);
    // What is 3 steps apart before the test part differs by 3.
    close(found[3], 1.0);
    close(baseline[0], 15.5);
    close(baseline[1], (661.0f64 / 2.0).sqrt());
    close(baseline[2], 100.0 * (12.0 / 14.0 + 50.0 / 35.0) / 2.0);
    let of = measures[0].baseline.as_ref().unwrap();
    assert_eq!((of.name.as_str(), of.verdict), ("seasonal naive, 3 steps", Verdict::Undecided));
    assert_eq!((measures[0].n, measures[0].cases, measures[0].interval), (1, Cases::Stretches(2), None));
}

#[test]
fn a_season_that_no_sequence_has_is_nothing_to_begin_with_and_scored_as_the_last_value() {
    let file = write_table(&counted_up(120));
    let open = |season| {
        let division = Division { validates: false, ..division(0.5) };
        Forecasting::open(file.path(), &ForecastingConfig { season, division, ..forecasting(&["x"], 5) }).unwrap()
    };
    // Rows 90 to 120 are the test part.
    [0, 1, 89].into_iter().for_each(|season| open(season).expect_to_begin().unwrap());
    for season in [90, 1000] {
        let refused = open(season).expect_to_begin().unwrap_err().to_string();
        let sentence =
            "is too long: the longest sequence has 90 steps to learn from, expected more than a season; give a shorter one, or 0";
        assert!(refused.contains(&format!("season = {season} {sentence}")), "{refused}");
    }
    // A model that began so is scored.
    let baseline = |season| {
        let task = open(season);
        let mut comparison = task.comparison(Purpose::TestData).unwrap();
        let batch = task.evaluation(1, 0, Purpose::TestData, 1).unwrap().batch(0).unwrap();
        comparison.add(0, &batch, &vec![0.0; batch.batch_size * batch.seq_len * 5]);
        let measure = comparison.measures().swap_remove(0);
        (measure.n_shown(), measure.baseline.map(|baseline| (baseline.name, baseline.found)))
    };
    let ((n, long), (_, last)) = (baseline(1000), baseline(1));
    assert_eq!((n.as_str(), &long), ("n = 1 stretches of 30 steps", &last));
    assert_eq!(last.unwrap().0, "last value");
    assert_eq!(baseline(7).1.unwrap().0, "seasonal naive, 7 steps");
}

#[test]
fn a_test_file_that_is_shorter_than_the_horizon_is_told_with_what_is_scored_of_it() {
    let own = counting(&[20, 20, 20]);
    let open = |rows: [usize; 3]| {
        let steps = rows.into_iter().enumerate().flat_map(|(at, n)| (0..n).map(move |step| format!("s{at},{}\n", 10_000 * at + 20 + step)));
        let test = write_table(&("id,x\n".to_owned() + &steps.collect::<String>()));
        let division = Division { validates: false, test: Some(test.path().to_owned()), ..division(0.5) };
        let config = ForecastingConfig { group: Some("id".to_owned()), division, ..forecasting(&["x"], 7) };
        let task = Forecasting::open(own.path(), &config).unwrap();
        let mut comparison = task.comparison(Purpose::TestData).unwrap();
        let batch = task.evaluation(8, 0, Purpose::TestData, 1).unwrap().batch(0).unwrap();
        comparison.add(0, &batch, &vec![0.0; batch.batch_size * batch.seq_len * 7]);
        (task.understood().map(str::to_owned), comparison.measures()[0].n_shown())
    };
    let behind = "of the 7 steps that are forecast: the steps behind them are not scored";
    let (told, n) = open([3, 3, 3]);
    assert_eq!((told.unwrap(), n.as_str()), (format!("the test part has values for at most 3 {behind}"), "n = 3 stretches of 3 steps"));
    let (told, n) = open([7, 2, 8]);
    assert_eq!(
        (told.unwrap(), n.as_str()),
        (format!("the test part of 1 of 3 sequences has values for 2 {behind}"), "n = 3 stretches of 7 steps")
    );
    assert_eq!(open([7, 8, 9]).0, None);
}

#[test]
fn every_row_of_the_test_part_may_be_a_surprise_whatever_the_horizon() {
    // 26 rows, and of those that are scored at a horizon of 18 none is in the last batch.
    let file = write_table(&counted_up(520));
    for (horizon, n_scored) in [(1, 26), (18, 9)] {
        let config = ForecastingConfig {
            scaling: ScalingChoice::Auto,
            quantiles: vec![0.1, 0.5, 0.9],
            division: Division { validates: false, ..division(0.9) },
            ..forecasting(&["x"], horizon)
        };
        let task = Forecasting::open(file.path(), &config).unwrap();
        let mut comparison = task.comparison(Purpose::TestData).unwrap();
        let mut set = task.evaluation(1, 0, Purpose::TestData, 1).unwrap();
        let mut found = 0;
        assert_eq!(set.n_batches(), 2);
        for index in 0..set.n_batches() {
            let batch = set.batch(index).unwrap();
            found += batch.n_scored();
            assert!(batch.n_targets() > 0 || comparison.looks_past(index, &batch));
            comparison.add(index, &batch, &vec![0.0; batch.batch_size * batch.seq_len * 3 * horizon]);
        }
        assert_eq!((found, comparison.surprises().len()), (n_scored, 26));
    }
}

#[test]
fn what_the_calendar_tells_is_known_ahead_by_the_times_of_the_rows_to_come() {
    // The first is a Monday, the 28th a Sunday.
    let rows = |header: &str, name: &str| {
        (0..28).fold(format!("{header}\n"), |text, day| text + &format!("{name}2024-01-{:02},{}\n", day + 1, day % 7))
    };
    let file = write_table(&rows("store,ds,y", "a,"));
    let config = ForecastingConfig {
        calendar: vec![CalendarPart::Weekday],
        known_ahead: owned(&["ds.weekday"]),
        group: Some("store".to_owned()),
        division: Division { time: TimeColumn::Found, validates: false, ..division(0.8) },
        ..forecasting(&["y"], 2)
    };
    let task = Forecasting::open(file.path(), &config).unwrap().table_task().unwrap();
    assert_eq!(task.columns(), ["y", "ds.weekday", "ds.weekday+1", "ds.weekday+2"]);
    for future in ["store,ds\na,2024-01-29\na,2024-01-30\n", "note,ds,store\n1,2024-01-29,a\n2,2024-01-30,a\n"] {
        let read = read_series_to_forecast(&task, file.path(), Some(write_table(future).path())).unwrap();
        assert_eq!((read[0].len(), read[0].step(27)), (28, &[6.0, 6.0, 0.0, 1.0][..]), "{future}");
    }
    // What reads nothing but the calendar needs nothing but times.
    let blind = ForecastingConfig { columns: owned(&["ds.weekday"]), calendar: Vec::new(), known_ahead: Vec::new(), ..config.clone() };
    let task = Forecasting::open(file.path(), &blind).unwrap().table_task().unwrap();
    let read = read_series(&task, write_table("store,ds\na,2024-01-30\na,2024-01-31\n").path()).unwrap();
    assert_eq!(read[0].values, [1.0, 2.0]);
    // A wide table has no place for the rows to come; runs that began with one are scored.
    let division = Division { layout: LayoutChoice::WideColumns, ..config.division.clone() };
    let wide = ForecastingConfig { group: None, target: Vec::new(), division, ..config };
    let opened = Forecasting::open(write_table(&rows("ds,a", "")).path(), &wide).unwrap();
    let refused = opened.expect_to_begin().unwrap_err().to_string();
    assert!(refused.contains("known_ahead names the column 'ds.weekday', and the rows to come of a wide table"), "{refused}");
}

#[test]
fn columns_of_the_table_in_place_of_what_is_known_ahead_are_told() {
    let open = |header: &str| {
        let file = write_table(&(0..40).fold(format!("{header}\n"), |text, t| text + &format!("{},{},{}\n", t % 3, t % 5, t % 7)));
        let division = Division { validates: false, ..division(0.8) };
        let config = ForecastingConfig { known_ahead: owned(&["offer"]), division, ..forecasting(&["y"], 2) };
        Forecasting::open(file.path(), &config).unwrap().understood().map(str::to_owned)
    };
    let told = "the table has columns that are called as what is known ahead, 'offer+1': they are read in its place; rename them if they are \
                something else";
    assert_eq!(open("offer,offer+1,y").as_deref(), Some(told));
    assert_eq!(open("offer,offer+3,y"), None);
}

#[test]
fn a_backtest_forecasts_from_the_last_origins_and_is_scored_by_each() {
    let forecaster = Forecaster {
        columns: owned(&["x"]),
        group: Some("id".to_owned()),
        target: owned(&["x"]),
        time: None,
        horizon: 2,
        season: 0,
        normalization: Normalization { mean: vec![0.0], deviation: vec![1.0] },
        target_normalization: Normalization { mean: vec![0.0], deviation: vec![1.0] },
        scaling: Scaling::Standard,
        missing: Missing::Error,
        layout: Default::default(),
        categories: Vec::new(),
        of_table: None,
        quantiles: Vec::new(),
    };
    let file = counting(&[9, 5, 3]);
    let open = |n, stride| Backtest::open(file.path(), &forecaster, Origins { n, stride });
    let backtest = open(3, None).unwrap();
    assert_eq!((backtest.n_forecasts(), backtest.n_sequences()), (4, 2));
    let short = |name: &str, steps, origins| TooShort { name: name.to_owned(), steps, origins };
    assert_eq!(backtest.too_short(), [short("s1", 5, 1), short("s2", 3, 0)]);

    let (mut set, mut errors) = (backtest.evaluation(8), backtest.errors());
    let mut origins = Vec::new();
    for index in 0..set.n_batches() {
        let batch = set.batch(index).unwrap();
        let mut outputs = batch.targets.values().to_vec();
        for (place, outputs) in outputs.chunks_exact_mut(2).enumerate().filter(|&(place, _)| batch.mask.as_ref().unwrap()[place] > 0.0) {
            let last = batch.inputs.values()[place];
            origins.push(last as usize);
            // The forecast lies off by the step of its origin.
            outputs.iter_mut().for_each(|x| *x += last % 100.0);
        }
        errors.add(index, &batch, &outputs);
    }
    origins.sort_unstable();
    // Sequence and step.
    assert_eq!(origins, [2, 4, 6, 10_002]);
    let by_origin = errors.by_origin();
    let found: Vec<_> = by_origin.iter().map(|origin| (origin.steps_to_end, origin.n, origin.measures[0].found)).collect();
    assert_eq!(found, [(6, 1, 2.0), (4, 1, 4.0), (2, 2, 4.0)]);
    // The last value is 1 and 2 off.
    assert_eq!(by_origin[2].measures[0].baseline.as_ref().unwrap().found, 1.5);
    // Four stretches of two steps, a case each.
    let all = &errors.measures()[0];
    assert_eq!((all.found, all.n, all.cases), (3.5, 4, Cases::Stretches(2)));

    // Nothing behind the last origin is read, though values there may be surprises.
    let quantiles = Forecaster { quantiles: vec![0.1, 0.5, 0.9], ..forecaster.clone() };
    let backtest_of_quantiles = Backtest::open(file.path(), &quantiles, Origins { n: 1, stride: None }).unwrap();
    assert_eq!(backtest_of_quantiles.evaluation(8).batch(0).unwrap().seq_len, 7);

    let strided = open(3, Some(1)).unwrap();
    assert_eq!((strided.n_forecasts(), strided.too_short()), (5, vec![short("s1", 5, 2), short("s2", 3, 0)]));
    let refused = Backtest::open(file.path(), &Forecaster { horizon: 8, ..forecaster.clone() }, Origins { n: 1, stride: None });
    assert!(refused.unwrap_err().to_string().contains("the longest has 9 steps, expected at least 10"));
    assert!(open(0, None).is_err() && open(1, Some(0)).is_err());

    // The model that it is compared with learned the first half of the rows, or all.
    let trained = grouped(file.path(), 2).unwrap();
    let [half, all] = [false, true].map(|learned_all| backtest.n_learned(&trained, learned_all));
    assert_eq!(all, 4);
    assert!(half < all, "{half}");
}

#[test]
fn quantiles_are_reported_by_what_they_cover() {
    let file = write_table(&counted_up(60));
    let config = ForecastingConfig { scaling: ScalingChoice::Auto, quantiles: vec![0.1, 0.5, 0.9], ..forecasting(&["x"], 2) };
    let task = Forecasting::open(file.path(), &config).unwrap();
    let mut comparison = task.comparison(Purpose::TestData).unwrap();
    let batch = task.evaluation(1, 0, Purpose::TestData, 1).unwrap().batch(0).unwrap();
    // Every quantile where the value will be, the first of two steps; of the second, all lie below it.
    let outputs: Vec<f32> =
        batch.targets.values().as_chunks::<2>().0.iter().flat_map(|[a, b]| [*a, *a + 1e-3, *a - 1e-3, b - 2.0, b - 1.0, b - 3.0]).collect();
    comparison.add(0, &batch, &outputs);
    let measures = comparison.measures();
    let covers = &measures[measures.len() - 2];
    assert_eq!((covers.name.as_str(), covers.found), ("80 % interval of x: covers", 0.5));
    assert!(measures[measures.len() - 1].name.ends_with("width") && measures[measures.len() - 1].found > 0.0);
}

/// A column x of so many numbers, each one more.
fn counted_up(n: usize) -> String {
    (1..=n).fold("x\n".to_owned(), |text, x| text + &format!("{x}\n"))
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
    // The sequence that is new is scored from its first step on.
    assert_eq!(targets(Purpose::TestData), [6.0, 7.0, 2.0, 3.0]);
    assert!((forecaster.normalization.mean[0] - 9.0 / 5.0).abs() < 1e-12);
    assert!(task.has_test_file() && task.all().is_some_and(|all| all.all().is_none()));
}

#[test]
fn missing_numbers_are_read_as_the_last_ones_and_never_learned() {
    let file = write_table("x\n4\n8\n\nNA\n2\nnull\n6\n8\n?\n4\n5\n".replace("\n\n", "\n\"\"\n").as_str());
    let refused = Forecasting::open(file.path(), &forecasting(&["x"], 1)).unwrap_err().to_string();
    assert!(refused.contains("line 4, column 'x': the cell is empty") && refused.contains("missing = mask"), "{refused}");
    let config = ForecastingConfig {
        division: Division { missing: Missing::Mask, validates: false, ..division(0.8) },
        seq_len: 20,
        ..forecasting(&["x"], 1)
    };
    let task = Forecasting::open(file.path(), &config).unwrap();
    let Some(TableTask::Forecast(forecaster)) = task.description().map(|value| TableTask::from_json(value, 2, 1).unwrap()) else {
        panic!()
    };
    assert!((forecaster.normalization.mean[0] - 28.0 / 5.0).abs() < 1e-12);
    let batch = task.training(1, 0).unwrap().batch(0, 0).unwrap();
    let seen = |x: f32| forecaster.normalization.restore(0, x).round();
    let inputs: Vec<(f64, f32)> = batch.inputs.values().as_chunks::<2>().0.iter().map(|&[x, is_missing]| (seen(x), is_missing)).collect();
    assert_eq!(inputs, [(4.0, 0.0), (8.0, 0.0), (8.0, 1.0), (8.0, 1.0), (2.0, 0.0), (2.0, 1.0), (6.0, 0.0), (8.0, 0.0)]);
    let targets: Vec<f64> = batch.targets.values().iter().map(|&x| seen(x)).collect();
    assert_eq!(targets.iter().map(|x| x.is_nan()).collect::<Vec<_>>(), [false, true, true, false, true, false, false, true]);
    assert_eq!(batch.n_targets(), 4);
    // Scored beside the last value that is known.
    let mut comparison = task.comparison(Purpose::TestData).unwrap();
    let batch = task.evaluation(1, 0, Purpose::TestData, 1).unwrap().batch(0).unwrap();
    comparison.add(0, &batch, &vec![0.0; batch.batch_size * batch.seq_len]);
    assert!((comparison.measures()[0].baseline.as_ref().unwrap().found - 2.5).abs() < 1e-9);
}

#[test]
fn a_column_that_alone_holds_dates_is_that_of_times() {
    let rows = |dates: [&str; 8]| dates.iter().enumerate().map(|(i, date)| format!("{date},{}\n", i % 3)).collect::<String>();
    let weeks = ["1990-01-06", "1990-01-13", "1990-01-20", "1990-01-27", "1990-02-03", "1990-02-10", "1990-02-17", "1990-02-24"];
    let open = |text: &str, layout| {
        let target: &[&str] = if layout == LayoutChoice::WideColumns { &[] } else { &["x"] };
        let division = Division { time: TimeColumn::Found, layout, validates: false, ..division(0.7) };
        let config = ForecastingConfig { division, ..forecasting(target, 1) };
        let file = write_table(text);
        let task = Forecasting::open(file.path(), &config).unwrap();
        let Some(TableTask::Forecast(found)) = task.description().map(|value| TableTask::from_json(value, 1, 1).unwrap()) else { panic!() };
        (found.time, found.season, task.understood().map(str::to_owned))
    };
    let (time, season, told) = open(&format!("week,x\n{}", rows(weeks)), LayoutChoice::Auto);
    assert_eq!((time.as_deref(), season, told.as_deref()), (Some("week"), 52, Some("read with time = week, which holds dates")));
    let (time, _, told) = open(&format!("week,x\n{}", rows(weeks)), LayoutChoice::WideColumns);
    assert_eq!((time.as_deref(), told.unwrap().contains("with times in 'week'")), (Some("week"), true));
    // One that is called so comes first; of two that hold dates neither is taken; numbers are no dates.
    let other = |row: &str| row.replace(',', ",2001-01-01,");
    let (time, _, told) = open(&format!("ds,born,x\n{}", other(&rows(weeks))), LayoutChoice::Auto);
    assert_eq!((time.as_deref(), told), (Some("ds"), None));
    let (time, _, told) = open(&format!("week,born,x\n{}", other(&rows(weeks))), LayoutChoice::Auto);
    assert_eq!((time, told), (None, None));
    let (time, _, told) = open(&format!("week,x\n{}", rows(["1", "2", "3", "4", "5", "6", "7", "8"])), LayoutChoice::Auto);
    assert_eq!((time, told), (None, None));
}

#[test]
fn times_put_rows_in_order_and_tell_the_season() {
    let file = write_table("ds,id,x\n2024-03,a,3\n2024-01,a,1\n2024-02,a,2\n2024-04,a,4\n2024-05,a,5\n2024-01,b,9\n2024-02,b,8\n");
    let config = ForecastingConfig {
        group: Some("id".to_owned()),
        division: Division { time: TimeColumn::Found, ..division(0.5) },
        ..forecasting(&["x"], 1)
    };
    let task = Forecasting::open(file.path(), &config).unwrap();
    let Some(TableTask::Forecast(forecaster)) = task.description().map(|value| TableTask::from_json(value, 1, 1).unwrap()) else {
        panic!()
    };
    assert_eq!((forecaster.season, forecaster.time.as_deref()), (12, Some("ds")));
    let task = TableTask::Forecast(forecaster);
    // A single step goes on as the others do, on its own day.
    let alone = read_series(&task, write_table("ds,id,x\n2024-01-01,a,3\n2024-02-01,a,1\n2024-04-15,new,7\n").path()).unwrap();
    assert_eq!((alone[1].len(), alone[1].next_times(2).unwrap()), (1, owned(&["2024-05-15", "2024-06-15"])));
    // As most rows do, not as the first sequence does.
    let mixed = "ds,id,x\n2024-01-01,a,3\n2024-02-01,a,1\n2024-04-15,new,7\n2024-03-01,b,1\n2024-03-02,b,1\n2024-03-03,b,1\n";
    let alone = read_series(&task, write_table(mixed).path()).unwrap();
    assert_eq!(alone[1].next_times(2).unwrap(), owned(&["2024-04-16", "2024-04-17"]));
    let alone = read_series(&task, write_table("ds,id,x\n2024-04,new,7\n").path()).unwrap();
    assert_eq!((alone[0].len(), alone[0].next_times(2)), (1, None));
    let series = read_series(&task, file.path()).unwrap();
    assert_eq!(
        (&series[0].values, series[0].next_times(2).unwrap()),
        (&vec![1.0, 2.0, 3.0, 4.0, 5.0].into(), owned(&["2024-06", "2024-07"]))
    );
    let refused = |text: &str| Forecasting::open(write_table(text).path(), &config).unwrap_err().to_string();
    assert!(refused("ds,id,x\n2024-01,a,3\n2024-01,a,1\n2024-02,a,2\n").contains("the sequence 'a' has two rows of the time 2024-01"));
    assert!(refused("ds,id,x\n2024-01,a,3\nlater,a,1\n").contains("the column 'ds' holds 'later'"));
    // The test file goes on, or is refused.
    let open = |text: &str| {
        let test = write_table(text);
        Forecasting::open(
            file.path(),
            &ForecastingConfig {
                division: Division { test: Some(test.path().to_owned()), validates: false, ..config.division.clone() },
                ..config.clone()
            },
        )
        .map(drop)
    };
    open("id,x,ds\na,7,2024-07\na,6,2024-06\n").unwrap();
    assert!(open("id,x,ds\na,6,2024-05\n").unwrap_err().to_string().contains("two rows of the time 2024-05"));
    assert!(open("id,x,ds\na,6,2023-05\n").unwrap_err().to_string().contains("goes on with 2023-05 after 2024-05"));
    // A column that is asked for is no column of times.
    let read = ForecastingConfig {
        columns: owned(&["x", "time"]),
        division: Division { time: TimeColumn::Found, ..division(0.5) },
        ..forecasting(&["x"], 1)
    };
    let numbers = write_table("time,x\n1,1\n0,2\n1,3\n0,4\n1,5\n0,6\n");
    assert_eq!(Forecasting::open(numbers.path(), &read).unwrap().reads(), crate::data::IoKind::Values { width: 2 });
}

fn scored_values(batch: &Batch) -> impl Iterator<Item = f32> {
    let mask = batch.mask.as_ref().unwrap();
    batch.targets.values().iter().zip(mask).filter(|(_, mask)| **mask != 0.0).map(|(&x, _)| x)
}

#[test]
fn several_columns_are_read_and_others_forecast() {
    let file = write_table("a,b,c\n0,1,2\n10,11,12\n20,21,22\n30,31,32\n40,41,42\n50,51,52\n60,61,62\n70,71,72\n80,81,82\n");
    let config = ForecastingConfig { columns: owned(&["c"]), ..forecasting(&["b", "a"], 2) };
    let task = Forecasting::open(file.path(), &config).unwrap();
    let batch = task.evaluation(1, 0, Purpose::TestData, 1).unwrap().batch(0).unwrap();
    assert_eq!((batch.inputs.values().len() / batch.seq_len, batch.targets.values().len() / batch.seq_len), (1, 4));
    let Some(TableTask::Forecast(forecaster)) = task.description().map(|value| TableTask::from_json(value, 1, 4).unwrap()) else {
        panic!("expected a forecaster")
    };
    // The means are those of the first four rows.
    assert_eq!((forecaster.normalization.mean[0], &forecaster.target_normalization.mean), (17.0, &vec![16.0, 15.0]));
    let Prediction::Values(values) = TableTask::Forecast(forecaster).prediction(&[], &batch.targets.values()[6 * 4..][..4]) else {
        panic!("expected values")
    };
    for (found, expected) in values.iter().zip([71.0, 70.0, 81.0, 80.0]) {
        assert!((found - expected).abs() < 1e-4, "{values:?}");
    }
}

/// `n` sequences of different lengths, every other one of class `up`.
fn classes(n: usize) -> tempfile::NamedTempFile {
    let mut text = String::from("id,class,x\n");
    for at in 0..n {
        for step in 0..2 + at % 5 {
            let (class, x) = if at % 2 == 0 { ("up", step as f64) } else { ("down", -(step as f64)) };
            writeln!(text, "s{at},{class},{}", 1000.0 * at as f64 + x).unwrap();
        }
    }
    write_table(&text)
}

fn classification(file: &Path) -> crate::Result<Labelling> {
    Labelling::open(file, of_classes())
}

fn of_classes() -> LabellingConfig {
    LabellingConfig {
        label: Label::Class,
        columns: Vec::new(),
        target: "class".to_owned(),
        group: "id".to_owned(),
        class_weights: ClassWeights::Equal,
        division: division(0.6),
        like: None,
        seed: 3,
    }
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
    // Of four sequences one is up.
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
    // Where classes are read, they are named.
    assert!(Labelling::unseen(write_table("3,0.5,1,2,3\n").path(), &task).unwrap_err().to_string().contains("the class '3' was not seen"));
}

fn of_numbers() -> LabellingConfig {
    LabellingConfig { label: Label::Number, target: "life".to_owned(), ..of_classes() }
}

#[test]
fn a_number_stands_at_the_last_step_and_is_compared_with_the_median() {
    let rows: String = (0..20).map(|id| format!("s{id},{0}.5,{id}\ns{id},{0}.5,1\n", 100 * id)).collect();
    let file = write_table(&("id,life,x\n".to_owned() + &rows));
    let task =
        Labelling::open(file.path(), LabellingConfig { division: Division { validates: false, ..division(0.5) }, ..of_numbers() }).unwrap();
    assert_eq!(task.predicts(), IoKind::Values { width: 1 });
    let Some(TableTask::Regress(regressor)) = task.description().map(|value| TableTask::from_json(value, 1, 1).unwrap()) else {
        panic!("expected a regressor")
    };
    let number = |seen: f32| regressor.target_scale().restore(seen);
    let of = |purpose| {
        let mut set = task.evaluation(64, 0, purpose, 1).unwrap();
        let batch = set.batch(0).unwrap();
        let mask = batch.mask.clone().unwrap();
        let numbers: Vec<f64> =
            batch.targets.values().iter().zip(&mask).filter(|(_, mask)| **mask != 0.0).map(|(x, _)| number(*x)).collect();
        (batch, numbers)
    };
    let ((_, mut trained), (batch, tested)) = (of(Purpose::TrainData), of(Purpose::TestData));
    assert_eq!((trained.len(), tested.len()), (10, 10));
    assert!(tested.iter().all(|number| ((number - 0.5) / 100.0 - ((number - 0.5) / 100.0).round()).abs() < 1e-4), "{tested:?}");
    assert!((trained.iter().sum::<f64>() / 10.0 - regressor.target_normalization.mean[0]).abs() < 1e-3);
    trained.sort_unstable_by(f64::total_cmp);
    let median = 0.5 * (trained[4] + trained[5]);
    // Always the mean of training.
    let mut comparison = task.comparison(Purpose::TestData).unwrap();
    comparison.add(0, &batch, &vec![0.0; batch.batch_size * batch.seq_len]);
    let measure = &comparison.measures()[0];
    let error = |constant: f64| tested.iter().map(|number| (number - constant).abs()).sum::<f64>() / 10.0;
    assert_eq!((measure.name.as_str(), measure.n), ("mean absolute error of life", 10));
    assert!((measure.found - error(regressor.target_normalization.mean[0])).abs() < 1e-2, "{measure:?}");
    assert!((measure.baseline.as_ref().unwrap().found - error(median)).abs() < 1e-2, "{measure:?}");
    let worst = comparison.examples();
    assert!(matches!(&worst[0], Example::Measured { number, predicted, .. } if (number - predicted).abs() > 400.0), "{:?}", worst[0]);
    assert_eq!(measure.baseline.as_ref().unwrap().name, "median of training");
    assert!((regressor.target_median.unwrap() - median).abs() < 1e-2);
    let of_before = Regressor { target_median: None, ..regressor.clone() };
    let [unseen, of_before] = [regressor, of_before].map(|task| Labelling::unseen(file.path(), &TableTask::Regress(task)).unwrap());
    for (task, name) in [(&unseen, "median of training"), (&of_before, "median of what is scored")] {
        let measures = task.comparison(Purpose::TestData).unwrap().measures();
        assert_eq!(measures[0].baseline.as_ref().unwrap().name, name);
    }
    assert_eq!(unseen.evaluation(64, 0, Purpose::TestData, 1).unwrap().batch(0).unwrap().n_scored(), 20);
}

#[test]
fn what_has_no_number_to_learn_is_a_sentence() {
    let refused = |text: &str| Labelling::open(write_table(text).path(), of_numbers()).unwrap_err().to_string();
    assert!(
        refused("id,life,x\na,soon,1\na,soon,2\n").contains("the column 'life' holds 'soon', expected a finite number for each sequence")
    );
    assert!(refused("id,life,x\na,inf,1\na,inf,2\n").contains("holds 'inf'"));
    assert!(refused("id,life,x\na,1,1\na,2,2\n").contains("has the number '1' and, in row 2 of the data, '2'"));
    let same: String = (0..9).map(|id| format!("s{id},7,{id}\ns{id},7,1\n")).collect();
    assert!(refused(&("id,life,x\n".to_owned() + &same)).contains("the column 'life' has one value in what is trained on, 7"));
}

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
            // Means are those of what is trained on.
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
    assert!(classify("id,class,x\na,u,1\na,u,1\nb,v,1\n").starts_with("the sequence 'b' has 1 step, expected at least 2"));
    assert!(classify("id,class,x\na,u,1\na,u,1\n").contains("expected at least two classes"));
    assert!(classify("id,class,x\na,u,1\na,u,1\nb,v,1\nb,v,1\n").contains("0 of its 2 sequences are held out"));
    let forecast = |text: &str, horizon| refusal(Forecasting::open(write_table(text).path(), &forecasting(&["x"], horizon)).map(drop));
    assert_eq!(forecast("x\n1\n", 1), "it has 1 row, expected a sequence of at least 2");
    assert!(forecast("x\n1\n2\n3\n", 2).contains("to forecast 2 steps within its validation part: the longest has 3 steps"));
    assert!(forecast("x\n1\n2\n3\n4\n5\n", 2).contains("within its validation part"));
}

#[test]
fn a_known_model_meets_new_tables() {
    let file = classes(20);
    let task = classification(file.path()).unwrap();
    let Some(TableTask::Classify(classifier)) = task.description().map(|value| TableTask::from_json(value, 1, 2).unwrap()) else {
        panic!("expected a classifier")
    };
    let other = write_table("id,x,class\na,1,up\na,2,up\nb,3,down\nb,4,down\nc,1,down\nc,0,down\n");
    let unseen = Labelling::unseen(other.path(), &TableTask::Classify(classifier.clone())).unwrap();
    let mut comparison = unseen.comparison(Purpose::TestData).unwrap();
    let mut set = unseen.evaluation(8, 0, Purpose::TestData, 1).unwrap();
    assert_eq!(set.n_batches(), 1);
    let batch = set.batch(0).unwrap();
    comparison.add(0, &batch, &[0.0, 1.0].repeat(6));
    let measure = &comparison.measures()[0];
    assert!((measure.found - 1.0 / 3.0).abs() < 1e-9 && (measure.baseline.as_ref().unwrap().found - 2.0 / 3.0).abs() < 1e-9);
    assert_eq!(comparison.confusion().unwrap().of_class(0).recall, Some(0.0));
    let strange = write_table("id,x,class\na,1,upp\na,2,upp\n");
    let refused = Labelling::unseen(strange.path(), &TableTask::Classify(classifier.clone())).unwrap_err().to_string();
    assert!(refused.contains("the class 'upp' was not seen in training; did you mean 'up'?"), "{refused}");
    let labels = |path| read_labels(&TableTask::Classify(classifier.clone()), TableSource::File(path)).unwrap();
    assert_eq!((labels(other.path()), labels(strange.path())), (owned(&["up", "down", "down"]), owned(&["upp"])));
    assert_eq!(read_series(&TableTask::Classify(classifier), strange.path()).unwrap()[0].values, [1.0, 2.0]);
}

#[test]
fn a_description_of_another_model_is_refused() {
    let file = counting(&[40]);
    let description = grouped(file.path(), 2).unwrap().description().unwrap();
    for (inputs, outputs) in [(2, 2), (1, 3)] {
        assert!(TableTask::from_json(description.clone(), inputs, outputs).unwrap_err().to_string().contains("cannot be used"));
    }
    let mut broken = description;
    broken["normalization"]["deviation"][0] = 0.0.into();
    assert!(TableTask::from_json(broken, 1, 2).is_err());
    assert!(TableTask::from_json(serde_json::json!({"task": "sing"}), 1, 2).is_err());
}

#[test]
fn a_wide_table_is_the_same_task_as_the_long_one_of_it() {
    let value = |series: usize, t: usize| (10 * series + t * t % 11) as f64;
    let (mut long, mut rows, mut columns) = ("series,ds,value\n".to_owned(), "series".to_owned(), "ds,a,b,c\n".to_owned());
    let day = |t: usize| format!("2024-01-{:02}", t + 1);
    (0..20).for_each(|t| write!(rows, ",{}", day(t)).unwrap());
    for (series, name) in ["a", "b", "c"].into_iter().enumerate() {
        write!(rows, "\n{name}").unwrap();
        for t in 0..20 {
            writeln!(long, "{name},{},{}", day(t), value(series, t)).unwrap();
            write!(rows, ",{}", value(series, t)).unwrap();
        }
    }
    for t in 0..20 {
        writeln!(columns, "{},{},{},{}", day(t), value(0, t), value(1, t), value(2, t)).unwrap();
    }
    let open = |text: &str, layout| {
        let file = write_table(text);
        let config = ForecastingConfig {
            division: Division { time: TimeColumn::Found, layout, validates: false, ..division(0.8) },
            ..forecasting(&[], 2)
        };
        Forecasting::open(file.path(), &config).unwrap()
    };
    let tasks = [open(&long, LayoutChoice::Long), open(&rows, LayoutChoice::Auto), open(&columns, LayoutChoice::WideColumns)];
    let batches = tasks.each_ref().map(|task| task.training(4, 7).unwrap().batch(0, 0).unwrap());
    let of = |batch: &Batch| (batch.inputs.values().to_vec(), batch.targets.values().iter().map(|x| x.to_bits()).collect::<Vec<_>>());
    assert_eq!(of(&batches[0]), of(&batches[1]));
    assert_eq!(of(&batches[0]), of(&batches[2]));
    assert!(tasks.iter().all(|task| task.understood().is_some()));
}

#[test]
fn a_number_far_from_all_others_is_told_of_with_its_place_in_every_layout() {
    let far = |text: &str, layout| {
        let file = write_table(text);
        let config = ForecastingConfig { division: Division { time: TimeColumn::Found, layout, ..division(0.8) }, ..forecasting(&[], 1) };
        Forecasting::open(file.path(), &config).unwrap_err().to_string()
    };
    let n = |t: usize| if t == 38 { 1e30 } else { (t % 7) as f64 };
    let long: String = (0..40).fold("ds,y\n".to_owned(), |text, t| text + &format!("{t},{}\n", n(t)));
    assert!(far(&long, LayoutChoice::Auto).contains("line 40, column 'y': 1e30 lies"));
    let wide: String = (0..40).fold("ds,a,b\n".to_owned(), |text, t| text + &format!("{t},{},{}\n", t % 5, n(t)));
    let sentence = far(&wide, LayoutChoice::WideColumns);
    assert!(sentence.contains("series 'b', step 39, column 'value': 1e30 lies"), "{sentence}");
}

#[test]
fn names_of_the_test_part_alone_are_not_learned() {
    let rows =
        (0..40).fold("kind,x\n".to_owned(), |text, t| text + &format!("{},{}\n", if t < 36 { ["b", "a"][t % 2] } else { "late" }, t % 4));
    let file = write_table(&rows);
    let config = ForecastingConfig {
        columns: owned(&["x", "kind"]),
        division: Division { validates: false, ..division(0.8) },
        ..forecasting(&["x"], 1)
    };
    let task = Forecasting::open(file.path(), &config).unwrap();
    let kept = TableTask::from_json(task.description().unwrap(), 3, 1).unwrap();
    assert_eq!(kept.categories(), [Category { column: 1, values: owned(&["a", "b"]) }]);
    let mut set = task.evaluation(1, 7, Purpose::TestData, 1).unwrap();
    let batch = set.batch(0).unwrap();
    let steps: Vec<&[f32]> = batch.inputs.values().chunks(3).map(|step| &step[1..]).collect();
    assert_eq!((steps[0], steps[1], steps[36]), (&[0.0, 1.0][..], &[1.0, 0.0][..], &[0.0, 0.0][..]));
    // Another table is read by the same names.
    let other = write_table("x,kind\n1,a\n2,strange\n3,A\n");
    let (read, unseen) = read_series_and_unseen(&kept, other.path(), None).unwrap();
    assert_eq!(read[0].values, [1.0, 0.0, 2.0, minrnn_model::UNSEEN, 3.0, minrnn_model::UNSEEN]);
    assert_eq!(read_series(&kept, other.path()).unwrap()[0].values, read[0].values);
    let known = owned(&["a", "b"]);
    assert_eq!(unseen, [UnseenNames { column: "kind".to_owned(), first: "strange".to_owned(), n: 2, of: 3, known }]);
    assert!(read_series_and_unseen(&kept, write_table("x,kind\n1,a\n2,b\n").path(), None).unwrap().1.is_empty());
    let target = ForecastingConfig { target: owned(&["kind"]), ..config };
    assert!(Forecasting::open(file.path(), &target).unwrap_err().to_string().contains("line 2, column 'kind': expected a finite number"));
}

#[test]
fn a_missing_number_of_a_typed_column_is_no_name() {
    use super::cells::{Cell, CellReader, Place, TextColumn};
    let refused = TextColumn::new("id".to_owned(), 1).push(Cell::Real(f64::NAN), Place::Row(1)).unwrap_err();
    assert!(refused.to_string().contains("row 2, column 'id': the cell is empty, expected a name"), "{refused}");
    let reader = |may_miss| {
        let names = Names { column: "mode".to_owned(), values: Some(owned(&["1", "2"])) };
        CellReader::new(names.column.clone(), may_miss, names.kind())
    };
    assert_eq!(reader(true).number(Cell::Real(2.0), Place::Row(0)).unwrap(), 1.0);
    assert!(reader(true).number(Cell::Real(f64::NAN), Place::Row(0)).unwrap().is_nan());
    assert!(reader(false).number(Cell::Real(f64::NAN), Place::Row(0)).is_err());
}

#[test]
fn the_memory_of_a_large_table_is_told_by_its_rows_and_of_one_with_many_columns_by_its_size() {
    let of_length = |header: &str, bytes: u64| {
        let file = write_table(header);
        file.as_file().set_len(bytes).unwrap();
        memory_of(file.path())
    };
    assert_eq!(of_length("ds,y\n", 1 << 10), 2 << 10);
    assert_eq!(of_length("ds,y\n", 1 << 30), (128 << 20) + (1 << 28));
    let many: Vec<String> = (0..300).map(|column| format!("x{column}")).collect();
    assert_eq!(of_length(&(many.join(",") + "\n"), 1 << 30), 2 << 30);
    assert_eq!(memory_of(Path::new("/dev/null")), 0);
    assert_eq!(memory_of(Path::new("there is none")), 0);
}
