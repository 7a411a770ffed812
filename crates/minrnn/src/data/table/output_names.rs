//! The names of predicted numbers as columns of a table.

use minrnn_model::TableTask;

/// Names of the numbers predicted for a sequence (for a forecast those at one step ahead), in the order of columns in tables, each with its
/// index among the numbers. The probability of a class is named after the class, the number of a regressor after its target, and the values
/// of a forecast as in [`Forecaster::value_names`](minrnn_model::Forecaster::value_names).
pub fn output_names(task: &TableTask) -> Vec<(String, usize)> {
    match task {
        TableTask::Classify(classifier) => classifier.classes.iter().map(|class| format!("probability of {class}")).zip(0..).collect(),
        TableTask::Regress(regressor) => vec![(regressor.target.clone(), 0)],
        TableTask::Forecast(forecaster) => forecaster.value_names(),
    }
}

#[cfg(test)]
mod tests {
    use minrnn_model::{Classifier, Forecaster, Layout, Missing, Normalization, Scaling};

    use super::*;

    fn classifier() -> Classifier {
        Classifier {
            columns: vec!["x".to_owned()],
            group: "machine".to_owned(),
            target: "state".to_owned(),
            time: None,
            classes: vec!["good".to_owned(), "worn".to_owned()],
            normalization: units(1),
            missing: Missing::Error,
            layout: Layout::Long,
            categories: Vec::new(),
            rows_per_step: None,
        }
    }

    fn named(names: &[(&str, usize)]) -> Vec<(String, usize)> {
        names.iter().map(|&(name, place)| (name.to_owned(), place)).collect()
    }

    fn units(width: usize) -> Normalization {
        Normalization { mean: vec![0.0; width], deviation: vec![1.0; width] }
    }

    #[test]
    fn quantiles_however_close_have_names_of_their_own_behind_that_of_the_point_forecast() {
        let forecaster = Forecaster {
            columns: vec!["y".to_owned()],
            group: None,
            target: vec!["y".to_owned()],
            time: None,
            horizon: 1,
            season: 0,
            normalization: units(1),
            target_normalization: units(1),
            scaling: Scaling::Standard,
            missing: Missing::Error,
            layout: Layout::Long,
            categories: Vec::new(),
            of_table: None,
            quantiles: vec![0.1, 0.1000001, 0.5],
        };
        let names = output_names(&TableTask::Forecast(forecaster));
        assert_eq!(names, named(&[("y", 2), ("y q0.1", 0), ("y q0.1000001", 1)]));
    }

    #[test]
    fn probabilities_are_called_after_their_classes() {
        let names = output_names(&TableTask::Classify(classifier()));
        assert_eq!(names, named(&[("probability of good", 0), ("probability of worn", 1)]));
    }
}
