//! Temperature scaling of a classifier's confidence: its logits are divided by one number, found on held-out data (Guo et al. 2017,
//! arXiv:1706.04599).

use std::sync::atomic::AtomicBool;

use burn::module::Module;

use super::evaluate::for_each_prediction;
use super::head::with_outputs;
use super::predictor::Predictor;
use crate::Result;
use crate::data::EvaluationSet;

/// Minimum number of predictions for a temperature.
const FEWEST: usize = 50;
/// Maximum number of logits used.
const MOST_LOGITS: usize = 1 << 24;
/// The largest temperature, and the inverse of the smallest.
const FARTHEST: f64 = 20.0;

/// The temperature for the predictions of `model` on `set`; `None` if they are too few or not of classes.
///
/// # Errors
/// When a batch cannot be read.
pub(super) fn temperature(model: &impl Predictor, set: &mut dyn EvaluationSet) -> Result<Option<f64>> {
    let (mut logits, mut classes) = (Vec::new(), Vec::new());
    for_each_prediction(model, set, &AtomicBool::new(false), |row, class| {
        if logits.len() + row.len() <= MOST_LOGITS {
            logits.extend_from_slice(row);
            classes.push(class);
        }
    })?;
    Ok((classes.len() >= FEWEST).then(|| best_temperature(&logits, &classes)))
}

/// The T that makes the mean of −ln softmax(z / T)[y] smallest, where z are rows of `logits` and y are `classes`. One of n + 2 targets counts as any
/// class, as in Platt's targets (1999), so that a model without mistakes is not assumed never to err.
fn best_temperature(logits: &[f32], classes: &[usize]) -> f64 {
    let n_classes = logits.len() / classes.len().max(1);
    let any = 1.0 / (classes.len() as f64 + 2.0);
    // The derivative with respect to 1 / T, which increases with 1 / T: Σ (mean of z under softmax(z / T) − z of the target).
    let slope = |inverse: f64| -> f64 {
        let of_row = |(row, &class): (&[f32], &usize)| {
            let largest = row.iter().copied().fold(f32::NEG_INFINITY, f32::max);
            let (mut sum, mut weighted, mut mean) = (0.0, 0.0, 0.0);
            for &z in row {
                let z = f64::from(z - largest);
                let weight = (z * inverse).exp();
                (sum, weighted, mean) = (sum + weight, weighted + weight * z, mean + z / n_classes as f64);
            }
            weighted / sum - (1.0 - any) * f64::from(row[class] - largest) - any * mean
        };
        logits.chunks_exact(n_classes).zip(classes).map(of_row).sum()
    };
    let (mut low, mut high) = (-FARTHEST.ln(), FARTHEST.ln());
    for _ in 0..50 {
        let middle = 0.5 * (low + high);
        if slope(middle.exp()) < 0.0 { low = middle } else { high = middle }
    }
    (-0.5 * (low + high)).exp()
}

/// `model` with a head that returns logits divided by `temperature`.
pub(super) fn with_temperature<M: Module>(model: M, temperature: f64) -> M {
    with_outputs(model, |outputs| outputs.iter_mut().for_each(|x| *x = (f64::from(*x) / temperature) as f32))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::rng::{Purpose, stream};
    use rand::RngExt;

    /// Logits of `n` cases, and classes drawn from their softmax.
    fn drawn(n: usize) -> (Vec<f32>, Vec<usize>) {
        let mut rng = stream(3, Purpose::TestData, 0);
        let logits: Vec<f32> = (0..3 * n).map(|_| rng.random_range(-3.0..3.0f32)).collect();
        let classes = logits.chunks_exact(3).map(|row| {
            let weights = row.iter().map(|z| z.exp());
            let mut left = rng.random_range(0.0..weights.clone().sum());
            let ends_here = |weight: f32| {
                left -= weight;
                left < 0.0
            };
            weights.into_iter().position(ends_here).unwrap_or(2)
        });
        let classes = classes.collect();
        (logits, classes)
    }

    #[test]
    fn logits_that_are_scaled_are_scaled_back() {
        let (logits, classes) = drawn(20_000);
        for scale in [0.25f32, 1.0, 4.0] {
            let scaled: Vec<f32> = logits.iter().map(|z| z * scale).collect();
            let found = best_temperature(&scaled, &classes);
            assert!((found / f64::from(scale) - 1.0).abs() < 0.05, "{found} of {scale}");
        }
    }

    #[test]
    fn a_model_without_a_mistake_is_not_taken_to_be_never_wrong() {
        let logits: Vec<f32> = (0..120).map(|at| if at % 3 == 0 { 2.0 } else { 0.0 }).collect();
        let found = best_temperature(&logits, &[0; 40]);
        // As sure as being right in 41 of 42 cases.
        let sure = 1.0 / (1.0 + 2.0 * (-2.0 / found).exp());
        assert!((0.97..0.995).contains(&sure), "{found}: {sure}");
        assert!((best_temperature(&[0.0; 30], &[1; 10])).is_finite());
    }
}
