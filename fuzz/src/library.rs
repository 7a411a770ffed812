//! What the targets of the library share.

use std::path::Path;
use std::sync::Arc;

use minrnn::data::table::{
    ClassWeights, Division, Forecasting, ForecastingConfig, Label, Labelling, LabellingConfig, Layout, LayoutChoice, Missing, Numbers,
    ScalingChoice, Series, TableLimit, TableSource, TableTask, TimeColumn, Wanted, read_series, read_series_from, read_table,
};
use minrnn::data::{Batch, IoKind, SequenceTask, Sequences, Tokenizer, TokenizerKind, train_tokenizer};
use minrnn::rng::Purpose;
use parquet::column::writer::ColumnWriter;
use parquet::data_type::ByteArray;
use parquet::file::properties::WriterProperties;
use parquet::file::writer::SerializedFileWriter;
use parquet::schema::parser::parse_message_type;

use crate::{file, folder};

/// A text with every kind of character.
pub const TEXT: &str = "It was the best of times, it was the worst of times;\n\n  it was the age of naïveté — 42 times.\t日本語\n";

/// Byte-level BPE learned from [`TEXT`].
pub fn bpe(vocab_size: usize) -> Tokenizer {
    let path = file("text", TEXT.repeat(9).as_bytes());
    train_tokenizer(TokenizerKind::Bpe, vocab_size, path).expect("there is something to learn from")
}

/// The file of a tokenizer.
pub fn tokenizer_json(tokenizer: &Tokenizer) -> Vec<u8> {
    let path = folder().join("made.json");
    tokenizer.save(&path).expect("it can be written");
    std::fs::read(path).expect("it was written")
}

/// Reads the table in every possible way, and makes batches from it.
pub fn use_table(path: &Path) {
    let names = |names: &[&str]| names.iter().map(ToString::to_string).collect::<Vec<_>>();
    let wanted = [
        Wanted { texts: names(&["id", "label"]), may_miss: true, ..Wanted::default() },
        Wanted { time: TimeColumn::Found, may_miss: true, ..Wanted::default() },
        Wanted { numbers: Numbers::Named(names(&["x"])), may_miss: true, ..Wanted::default() },
        Wanted { numbers: Numbers::Named(names(&["value"])), texts: names(&["series"]), layout: Layout::WideSeries, ..Wanted::default() },
        Wanted { numbers: Numbers::Named(names(&["value"])), time: TimeColumn::Found, layout: Layout::WideColumns, ..Wanted::default() },
    ];
    for wanted in wanted {
        let Ok(frame) = read_table(path, &wanted) else { continue };
        assert!(frame.n_rows() > 0 && frame.numbers.iter().all(|column| column.len() == frame.n_rows()));
        assert!(frame.numbers.iter().all(|column| column.iter().all(|number| !number.is_infinite())));
        assert!(frame.texts.iter().all(|column| column.rows().len() == frame.n_rows()));
        for column in &frame.texts {
            assert!(column.rows().iter().all(|&row| (row as usize) < column.distinct().len()));
        }
    }
    let division = |missing, validates| Division {
        time: TimeColumn::Found,
        layout: LayoutChoice::Auto,
        missing,
        train_fraction: 0.5,
        validates,
        validation: None,
        test: None,
    };
    let classify = LabellingConfig {
        label: Label::Class,
        columns: Vec::new(),
        target: "label".to_owned(),
        group: "id".to_owned(),
        class_weights: ClassWeights::Balanced,
        division: division(Missing::Mask, false),
        like: None,
        rows_per_step: 0,
        seed: 0,
    };
    let forecast = ForecastingConfig {
        columns: Vec::new(),
        calendar: Vec::new(),
        known_ahead: Vec::new(),
        target: names(&["x"]),
        group: None,
        horizon: 2,
        season: 0,
        scaling: ScalingChoice::Standard,
        quantiles: Vec::new(),
        like: None,
        division: division(Missing::ForwardFill, true),
        seq_len: 3,
    };
    let unnamed = LabellingConfig { target: String::new(), group: String::new(), ..classify.clone() };
    let of_numbers = LabellingConfig {
        label: Label::Number,
        class_weights: ClassWeights::Equal,
        target: "y".to_owned(),
        rows_per_step: 2,
        ..classify.clone()
    };
    let of_names = LabellingConfig { columns: names(&["x", "label"]), target: "y".to_owned(), rows_per_step: 2, ..classify.clone() };
    for config in [classify, unnamed, of_numbers, of_names] {
        if let Ok(task) = Labelling::open(path, config) {
            use_task(&task);
            use_description(path, &task);
        }
    }
    for layout in [LayoutChoice::Auto, LayoutChoice::WideSeries, LayoutChoice::WideColumns] {
        let config =
            ForecastingConfig { target: Vec::new(), division: Division { layout, ..forecast.division.clone() }, ..forecast.clone() };
        if let Ok(task) = Forecasting::open(path, &config) {
            use_task(&task);
            use_description(path, &task);
        }
    }
    for group in [None, Some("id".to_owned())] {
        for (scaling, quantiles) in [(ScalingChoice::Standard, Vec::new()), (ScalingChoice::Auto, vec![0.1, 0.5])] {
            let config = ForecastingConfig { group: group.clone(), scaling, quantiles, ..forecast.clone() };
            if let Ok(task) = Forecasting::open(path, &config) {
                use_task(&task);
                use_description(path, &task);
            }
        }
    }
}

/// Checks that the description a checkpoint would keep of the task reads the same table.
fn use_description(path: &Path, task: &dyn SequenceTask) {
    let width = |kind| match kind {
        IoKind::Tokens { n } => n,
        IoKind::Values { width } => width,
    };
    let description = task.description().expect("a table has one");
    let kept = TableTask::from_json(description, width(task.reads()), width(task.predicts())).expect("it describes this task");
    let series: Vec<Series> = read_series(&kept, path).expect("the table has the columns it was described by");
    assert!(series.iter().all(|series| series.len() >= 1));
    // With the limits for tables that clients send: it may be refused, but otherwise reads the same.
    for bytes in [1 << 6, 1 << 12, 1 << 22] {
        let limited = TableSource::Limited(path, TableLimit::of_text(bytes));
        if let Ok((limited, _)) = read_series_from(&kept, limited, None) {
            assert_eq!(limited.len(), series.len());
        }
    }
}

/// Makes batches of a task, and checks that they are as it describes them.
pub fn use_task(task: &dyn SequenceTask) {
    if task.longest() > 1 << 12 {
        return;
    }
    if let Ok(mut source) = task.training(2, 7) {
        for iteration in [0, 1, u64::MAX] {
            expect_fits(task, &source.batch(iteration, 0).expect("data are in memory"));
        }
    }
    for purpose in [Purpose::ValidationData, Purpose::TestData] {
        let Ok(mut set) = task.evaluation(2, 7, purpose, 2) else { continue };
        for index in 0..set.n_batches().min(3) {
            expect_fits(task, &set.batch(index).expect("data are in memory"));
        }
        assert!(set.batch(set.n_batches()).is_err());
    }
}

fn expect_fits(task: &dyn SequenceTask, batch: &Batch) {
    let steps = batch.batch_size * batch.seq_len;
    // A target may be missing.
    for (sequences, kind, is_whole) in [(&batch.inputs, task.reads(), true), (&batch.targets, task.predicts(), false)] {
        match (sequences, kind) {
            (Sequences::Tokens(tokens), IoKind::Tokens { n }) => {
                assert!(tokens.len() == steps && tokens.iter().all(|&token| (token as usize) < n));
            }
            (Sequences::Values { values, width }, IoKind::Values { width: expected }) => {
                assert!(*width == expected && values.len() == steps * width && values.iter().all(|value| !is_whole || !value.is_nan()));
            }
            (Sequences::Quantiles { values, width, levels }, IoKind::Values { width: expected }) => {
                assert!(*width * levels.len() == expected && values.len() == steps * width && !is_whole);
            }
            _ => panic!("a batch holds {sequences:?} for {kind:?}"),
        }
    }
    assert!(batch.mask.as_ref().is_none_or(|mask| mask.len() == steps));
}

/// A small table as Parquet.
pub fn parquet_table() -> Option<Vec<u8>> {
    let schema = "message table { required binary id (UTF8); required binary label (UTF8); required double x; optional int32 n; }";
    let mut bytes = Vec::new();
    let schema = Arc::new(parse_message_type(schema).ok()?);
    let mut writer = SerializedFileWriter::new(&mut bytes, schema, Arc::new(WriterProperties::default())).ok()?;
    let mut group = writer.next_row_group().ok()?;
    while let Some(mut column) = group.next_column().ok()? {
        match column.untyped() {
            ColumnWriter::ByteArrayColumnWriter(column) => {
                let names: Vec<ByteArray> = (0..24).map(|i| ByteArray::from(["a", "b", "c", "d", "e", "f"][i / 4])).collect();
                column.write_batch(&names, None, None).ok()?;
            }
            ColumnWriter::DoubleColumnWriter(column) => {
                column.write_batch(&(0..24).map(f64::from).collect::<Vec<_>>(), None, None).ok()?;
            }
            ColumnWriter::Int32ColumnWriter(column) => {
                column.write_batch(&(0..24).collect::<Vec<_>>(), Some(&[1; 24]), None).ok()?;
            }
            _ => return None,
        }
        column.close().ok()?;
    }
    group.close().ok()?;
    writer.close().ok()?;
    Some(bytes)
}
