//! Columns, layouts, names and missing numbers as they are read.

use std::fmt::Write;
use std::path::Path;

use super::*;
use crate::data::{Batch, SequenceTask};
use crate::rng::Purpose;

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
    // The baseline is the last known value.
    let mut comparison = task.comparison(Purpose::TestData).unwrap();
    let batch = task.evaluation(1, 0, Purpose::TestData, 1).unwrap().batch(0).unwrap();
    comparison.add(0, &batch, &vec![0.0; batch.batch_size * batch.seq_len]);
    assert!((comparison.measures()[0].baseline.as_ref().unwrap().found - 2.5).abs() < 1e-9);
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
    // Another table is read with the same names.
    let other = write_table("x,kind\n1,a\n2,strange\n3,A\n");
    let (read, unseen) = read_series_from(&kept, TableSource::File(other.path()), None).unwrap();
    assert_eq!(read[0].values, [1.0, 0.0, 2.0, minrnn_model::UNSEEN, 3.0, minrnn_model::UNSEEN]);
    assert_eq!(read_series(&kept, other.path()).unwrap()[0].values, read[0].values);
    let known = owned(&["a", "b"]);
    assert_eq!(unseen, [UnseenNames { column: "kind".to_owned(), first: "strange".to_owned(), n: 2, of: 3, known }]);
    assert!(read_series_from(&kept, TableSource::File(write_table("x,kind\n1,a\n2,b\n").path()), None).unwrap().1.is_empty());
    let target = ForecastingConfig { target: owned(&["kind"]), ..config };
    assert!(Forecasting::open(file.path(), &target).unwrap_err().to_string().contains("line 2, column 'kind': expected a finite number"));
}

#[test]
fn a_missing_number_of_a_typed_column_is_no_name() {
    use super::cells::{Cell, CellReader, Place};
    use super::text_cells::TextColumn;
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
