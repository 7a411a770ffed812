//! How forecasts are scored: errors beside a baseline, quantiles, surprises, backtests.

use super::*;
use crate::data::{Batch, SequenceTask};
use crate::rng::Purpose;

/// A column x that counts from 1 to n.
fn counted_up(n: usize) -> String {
    (1..=n).fold("x\n".to_owned(), |text, x| text + &format!("{x}\n"))
}

/// A forecaster of x in sequences named by id, which takes numbers as they are.
fn of_plain_numbers(horizon: usize, season: usize) -> Forecaster {
    Forecaster {
        columns: owned(&["x"]),
        group: Some("id".to_owned()),
        target: owned(&["x"]),
        time: None,
        horizon,
        season,
        normalization: Normalization { mean: vec![0.0], deviation: vec![1.0] },
        target_normalization: Normalization { mean: vec![0.0], deviation: vec![1.0] },
        scaling: Scaling::Standard,
        missing: Missing::Error,
        layout: Default::default(),
        categories: Vec::new(),
        of_table: None,
        quantiles: Vec::new(),
    }
}

/// The errors in the last forecasts of `table` if all of them are 0.
fn backtest_of_zeros(table: &str, forecaster: &Forecaster, n: usize) -> BacktestErrors {
    let file = write_table(table);
    let backtest = Backtest::open(file.path(), forecaster, Origins { n, stride: None }).unwrap();
    let (mut errors, mut set) = (backtest.errors(), backtest.evaluation(16));
    for index in 0..set.n_batches() {
        let batch = set.batch(index).unwrap();
        errors.add(index, &batch, &vec![0.0; batch.batch_size * batch.seq_len * forecaster.horizon]);
    }
    errors
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
    let names: Vec<String> = measures.iter().map(Measure::name).collect();
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
    // One stretch of two steps, 10 and 30, forecast as 12 and 26; a season of 3 steps earlier the values were 4 and 5.
    close(found[0], 3.0);
    close(found[1], 10f64.sqrt());
    close(found[2], 100.0 * (4.0 / 22.0 + 8.0 / 56.0) / 2.0);
    // Values 3 steps apart before the test part differ by 3.
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
    // A model whose training began so is still scored.
    let baseline = |season| {
        let task = open(season);
        let mut comparison = task.comparison(Purpose::TestData).unwrap();
        let batch = task.evaluation(1, 0, Purpose::TestData, 1).unwrap().batch(0).unwrap();
        comparison.add(0, &batch, &vec![0.0; batch.batch_size * batch.seq_len * 5]);
        let measure = comparison.measures().swap_remove(0);
        (measure.n_shown(), measure.baseline.map(|baseline| (baseline.name, baseline.found)))
    };
    let ((n, long), (_, last)) = (baseline(1000), baseline(1));
    assert_eq!((n.as_str(), &long), ("n = 1 stretch of 30 steps", &last));
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
fn errors_are_means_over_all_values_though_stretches_do_not_divide_them() {
    let zeros = |batch: &Batch, n_outputs: usize| vec![0.0; batch.batch_size * batch.seq_len * n_outputs];
    // Of 25 values to score, the last differs by 100 from the season before, the others only by rounding.
    let value = |t: i32| 10.0 + (f64::from(t) * std::f64::consts::TAU / 24.0).sin() + if t == 249 { 100.0 } else { 0.0 };
    let file = write_table(&(0..250).fold("x\n".to_owned(), |text, t| text + &format!("{}\n", value(t))));
    let division = Division { validates: false, ..division(0.8) };
    let task = Forecasting::open(file.path(), &ForecastingConfig { season: 24, division, ..forecasting(&["x"], 1) }).unwrap();
    let (mut comparison, mut set) = (task.comparison(Purpose::TestData).unwrap(), task.evaluation(1, 0, Purpose::TestData, 1).unwrap());
    for index in 0..set.n_batches() {
        let batch = set.batch(index).unwrap();
        comparison.add(index, &batch, &zeros(&batch, 1));
    }
    let measures = comparison.measures();
    let naive = |measure: &Measure| measure.baseline.as_ref().unwrap().found;
    assert!((naive(&measures[0]) - 4.0).abs() < 1e-9 && (naive(&measures[1]) - 20.0).abs() < 1e-9, "{measures:?}");
    assert_eq!(measures[0].n_shown(), "n = 1 stretch of 24 steps");
    // Values that repeat up to rounding give no difference to divide by.
    assert!(!measures.iter().any(|measure| measure.kind == MeasureKind::ScaledError), "{measures:?}");

    // Four forecasts of five steps, with a season of seven.
    let value = |t: usize| f64::from(u32::try_from(t * t % 101).unwrap());
    let file = write_table(&(0..90).fold("x\n".to_owned(), |text, t| text + &format!("{}\n", value(t))));
    let config = ForecastingConfig { season: 7, ..forecasting(&["x"], 5) };
    let Some(TableTask::Forecast(forecaster)) = Forecasting::open(file.path(), &config).unwrap().table_task() else {
        panic!("it forecasts")
    };
    let backtest = Backtest::open(file.path(), &forecaster, Origins { n: 4, stride: None }).unwrap();
    let (mut errors, mut set) = (backtest.errors(), backtest.evaluation(1));
    for index in 0..set.n_batches() {
        let batch = set.batch(index).unwrap();
        errors.add(index, &batch, &zeros(&batch, 5));
    }
    let expected = (70..90).map(|t| (value(t) - value(t - 7)).abs()).sum::<f64>() / 20.0;
    let measure = &errors.measures()[0];
    assert!((naive(measure) - expected).abs() < 1e-9, "{} {expected}", naive(measure));
    assert_eq!(measure.n_shown(), "n = 2 stretches of 10 steps");
}

#[test]
fn every_row_of_the_test_part_may_be_a_surprise_whatever_the_horizon() {
    // 26 rows; with a horizon of 18, none of the scored ones is in the last batch.
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
fn quantiles_are_reported_by_what_they_cover() {
    let file = write_table(&counted_up(60));
    let config = ForecastingConfig { scaling: ScalingChoice::Auto, quantiles: vec![0.1, 0.5, 0.9], ..forecasting(&["x"], 2) };
    let task = Forecasting::open(file.path(), &config).unwrap();
    let mut comparison = task.comparison(Purpose::TestData).unwrap();
    let batch = task.evaluation(1, 0, Purpose::TestData, 1).unwrap().batch(0).unwrap();
    // For the first of two steps every quantile is at the actual value; for the second all lie below it.
    let outputs: Vec<f32> =
        batch.targets.values().as_chunks::<2>().0.iter().flat_map(|[a, b]| [*a, *a + 1e-3, *a - 1e-3, b - 2.0, b - 1.0, b - 3.0]).collect();
    comparison.add(0, &batch, &outputs);
    let measures = comparison.measures();
    let covers = &measures[measures.len() - 2];
    assert_eq!((covers.name().as_str(), covers.found), ("80 % interval of x: covers", 0.5));
    assert!(matches!(measures[measures.len() - 1].kind, MeasureKind::Width(_)) && measures[measures.len() - 1].found > 0.0);
}

#[test]
fn a_backtest_forecasts_from_the_last_origins_and_is_scored_by_each() {
    let forecaster = of_plain_numbers(2, 0);
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
            // The forecast is off by the step of its origin.
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

    // Nothing after the last origin is read, though values there may be surprises.
    let quantiles = Forecaster { quantiles: vec![0.1, 0.5, 0.9], ..forecaster.clone() };
    let backtest_of_quantiles = Backtest::open(file.path(), &quantiles, Origins { n: 1, stride: None }).unwrap();
    assert_eq!(backtest_of_quantiles.evaluation(8).batch(0).unwrap().seq_len, 7);

    let strided = open(3, Some(1)).unwrap();
    assert_eq!((strided.n_forecasts(), strided.too_short()), (5, vec![short("s1", 5, 2), short("s2", 3, 0)]));
    let refused = Backtest::open(file.path(), &Forecaster { horizon: 8, ..forecaster.clone() }, Origins { n: 1, stride: None });
    assert!(refused.unwrap_err().to_string().contains("the longest has 9 steps, expected at least 10"));
    assert!(open(0, None).is_err() && open(1, Some(0)).is_err());

    // The model that it is checked against learned the first half of the rows, or all.
    let trained = grouped(file.path(), 2).unwrap();
    let [half, all] = [false, true].map(|learned_all| backtest.n_learned(&trained, learned_all));
    assert_eq!(all, 4);
    assert!(half < all, "{half}");
}

#[test]
fn errors_are_scaled_by_every_seasonal_difference_there_is_and_what_has_none_is_told() {
    fn value(name: &str, t: usize) -> f64 {
        if name == "still" { 5.0 } else { ((t * t + name.len()) % 23 + 1) as f64 }
    }
    let forecaster = of_plain_numbers(2, 12);
    let scored = |lengths: &[(&str, usize)]| {
        let rows = lengths.iter().flat_map(|&(name, n)| (0..n).map(move |t| format!("{name},{}\n", value(name, t))));
        let measures = backtest_of_zeros(&("id,x\n".to_owned() + &rows.collect::<String>()), &forecaster, 2).measures();
        let scaled = measures.iter().find(|measure| measure.kind == MeasureKind::ScaledError);
        (scaled.map(|measure| (measure.found, measure.baseline.as_ref().unwrap().found)), left_out(&measures))
    };
    // The last four values are forecast; what is divided by lies before them, or anywhere if no more than a season does.
    let expected = |name: &str, n: usize| {
        let of_season = |t: usize| (value(name, t) - value(name, t - 12)).abs();
        let before = if n - 4 > 12 { n - 4 } else { n };
        let difference = (12..before).map(of_season).sum::<f64>() / (before - 12) as f64;
        (n - 4..n).map(|t| value(name, t)).sum::<f64>() / 4.0 / difference
    };
    let close = |found: Option<(f64, f64)>, expected: f64| {
        assert!(found.is_some_and(|(found, _)| (found - expected).abs() < 1e-9), "{found:?} {expected}");
    };
    // Four differences, or three, of a season of twelve.
    for n in [60, 20, 15] {
        let (found, told) = scored(&[("a", n)]);
        close(found, expected("a", n));
        assert!(told.is_empty(), "{told:?}");
    }
    let (short, _) = scored(&[("a", 20)]);
    // The baseline is divided by the same number.
    let naive = (16..20).map(|t| (value("a", t) - value("a", t - 12)).abs()).sum::<f64>() / (16..20).map(|t| value("a", t)).sum::<f64>();
    assert!(short.is_some_and(|(found, baseline)| (baseline - found * naive).abs() < 1e-9), "{short:?} {naive}");
    let (both, told) = scored(&[("a", 60), ("bb", 20)]);
    close(both, (expected("a", 60) + expected("bb", 20)) / 2.0);
    assert!(told.is_empty(), "{told:?}");

    let why = "known values a season apart that differ before what is scored";
    let (one, told) = scored(&[("a", 60), ("still", 20)]);
    close(one, expected("a", 60));
    assert_eq!(told, [format!("mean absolute scaled error of x leaves out 1 of 2 stretches of 4 steps, whose sequences have no {why}")]);
    let (none, told) = scored(&[("still", 20)]);
    assert_eq!((none, told), (None, vec![format!("mean absolute scaled error of x is left out, as no sequence has {why}")]));
}

#[test]
fn the_rows_of_a_backtest_are_means_over_the_same_as_all_origins_together() {
    let forecaster = Forecaster { missing: Missing::Mask, ..of_plain_numbers(4, 0) };
    for n in [3, 10] {
        let value = |at: usize, t: usize| (at != 1 || t != 11).then(|| ((at + 1) * (t + 1)) as f64);
        let cell = |at: usize, t: usize| value(at, t).map_or(String::new(), |x| x.to_string());
        let rows = (0..n).flat_map(|at| (0..12).map(move |t| (at, t))).map(|(at, t)| format!("s{at},{}\n", cell(at, t)));
        let table = "id,x\n".to_owned() + &rows.collect::<String>();
        let errors = backtest_of_zeros(&table, &forecaster, 1);
        let (all, by_origin) = (errors.measures(), errors.by_origin());
        let [newest] = &by_origin[..] else { panic!("{by_origin:?}") };
        assert_eq!((newest.n, newest.measures.len()), (n, all.len()));
        for (row, all) in newest.measures.iter().zip(&all) {
            let naive = |measure: &Measure| measure.baseline.as_ref().unwrap().found;
            assert!((row.found - all.found).abs() < 1e-9 && (naive(row) - naive(all)).abs() < 1e-9, "{row:?} {all:?}");
        }
        let of = |at: usize| (8..12).filter_map(move |t| value(at, t)).collect::<Vec<f64>>();
        let mean = |values: &[f64]| values.iter().sum::<f64>() / values.len() as f64;
        let expected = match n {
            3 => mean(&(0..n).flat_map(of).collect::<Vec<f64>>()),
            _ => mean(&(0..n).map(|at| mean(&of(at))).collect::<Vec<f64>>()),
        };
        assert!((newest.measures[0].found - expected).abs() < 1e-9, "{n}: {} {expected}", newest.measures[0].found);
    }
}
