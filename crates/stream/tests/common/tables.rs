//! Tasks of tables, and models for them.

use minrnn_model::{
    Classifier, Forecaster, Missing, MixerKind, ModelConfig, Normalization, RowsPerStep, Scaling, TableTask, Transform, WeightFormat,
};
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
        rows_per_step: None,
    })
}

/// The task of [`classifier`], `n` rows at a time, and a model of `mixer` for it.
pub fn several(mixer: MixerKind, n: usize, missing: Missing) -> (Model, TableTask) {
    let TableTask::Classify(mut task) = classifier() else { panic!("it classifies") };
    let normalization = Normalization { mean: [0.5, 1.0, 0.5].repeat(2), deviation: [2.0, 0.5, 1.5].repeat(2) };
    task.rows_per_step = Some(RowsPerStep { n, normalization });
    task.missing = missing;
    let task = TableTask::Classify(task);
    let input_width = task.n_inputs();
    let config = ModelConfig { vocab_size: 0, input_width, n_outputs: 3, ..small(mixer) };
    (drawn_model(&config, WeightFormat::F32), task)
}

/// A task that forecasts the quantiles of two of three columns one step ahead, the second and the first, with these numbers relative to a level, or as
/// they are. A model of it reads three numbers, or six, and predicts six.
pub fn quantiles(is_level: bool) -> TableTask {
    let of = |mean: &[f64], deviation: &[f64]| Normalization { mean: mean.to_vec(), deviation: deviation.to_vec() };
    let transforms = vec![Transform::Identity, Transform::Log1p, Transform::Identity];
    let scaling = if is_level { Scaling::Level { transforms, span: 3, lags: vec![1] } } else { Scaling::Standard };
    let means: [f64; 3] = if is_level { [0.0; 3] } else { [10.0, 20.0, 30.0] };
    TableTask::Forecast(Forecaster {
        columns: ["x", "y", "z"].map(Into::into).to_vec(),
        group: None,
        target: ["y", "x"].map(Into::into).to_vec(),
        time: None,
        horizon: 1,
        season: 0,
        normalization: of(&means, &[2.0, 3.0, 4.0]),
        target_normalization: of(&[means[1], means[0]], &[3.0, 2.0]),
        scaling,
        missing: Default::default(),
        layout: Default::default(),
        categories: Vec::new(),
        of_table: is_level.then(|| of(&[10.0, 20.0, 30.0], &[2.0, 3.0, 4.0])),
        quantiles: vec![0.1, 0.5, 0.9],
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
