//! The tasks of tables: what is read, what is trained on, what is scored, and what is reported.

mod class_labels;
mod forecast_scores;
mod held_out;
mod known_ahead;
mod known_models;
mod number_labels;
mod reading;
mod time_columns;

use std::fmt::Write;
use std::path::Path;

use super::*;

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
        rows_per_step: 0,
        seed: 3,
    }
}
