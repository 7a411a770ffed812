//! Tasks of tables, and models for them.

use minrnn_model::{Classifier, Forecaster, MixerKind, ModelConfig, Normalization, Scaling, TableTask, Transform, WeightFormat};
use minrnn_stream::Model;

use super::{drawn_model, small};

/// A model of two numbers in and `n_outputs` out.
pub fn of_values(n_outputs: usize) -> Model {
    let config = ModelConfig { vocab_size: 0, input_width: 2, n_outputs, ..small(MixerKind::MinGru) };
    drawn_model(&config, WeightFormat::F32)
}

/// A task of two columns and three classes; a row alone decides what is seen of it.
pub fn classifier() -> TableTask {
    TableTask::Classify(Classifier {
        columns: vec!["x".into(), "y".into()],
        group: "machine".into(),
        target: "state".into(),
        time: None,
        classes: vec!["good".into(), "worn".into(), "broken".into()],
        normalization: Normalization { mean: vec![1.0, -2.0], deviation: vec![0.5, 4.0] },
        missing: Default::default(),
        layout: Default::default(),
        categories: Vec::new(),
    })
}

/// A task that forecasts one column three steps ahead, seen relative to the level of its last two rows: with as many inputs and outputs as the classifier.
pub fn forecaster() -> TableTask {
    let of = |mean, deviation| Normalization { mean: vec![mean], deviation: vec![deviation] };
    TableTask::Forecast(Forecaster {
        columns: vec!["x".into()],
        group: None,
        target: vec!["x".into()],
        time: None,
        horizon: 3,
        season: 0,
        normalization: of(0.0, 0.5),
        target_normalization: of(0.0, 0.5),
        scaling: Scaling::Level { transforms: vec![Transform::Identity], span: 2, lags: vec![1] },
        missing: Default::default(),
        layout: Default::default(),
        categories: Vec::new(),
        of_table: Some(of(10.0, 5.0)),
        quantiles: Vec::new(),
    })
}
