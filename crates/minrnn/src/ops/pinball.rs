//! The pinball loss of quantiles.

use burn::tensor::{Tensor, TensorData};

use super::shapes::{expect_count, expect_parts};
use super::weighted_mean::weighted_mean;

/// Twice the mean pinball loss (Koenker and Bassett 1978) over the targets that are present: with e = y − ŷ and the level τ,
///
/// ```text
/// 2 max(τ e, (τ − 1) e) = |e| + (2 τ − 1) e
/// ```
///
/// which for the median is the absolute error. NaN marks a missing target. 0 if the weights sum to 0; a NaN among the weights of targets
/// that are present propagates.
///
/// # Shapes
/// * `predicted` `[N, W · Q]`, `targets` N · W numbers, `levels` Q between 0 and 1, `mask` N weights (if absent: all 1) → `[1]`
///
/// # Panics
/// When the lengths do not fit, or there is no level.
pub fn pinball(predicted: Tensor<2>, targets: &[f32], levels: &[f32], mask: Option<&[f32]>) -> Tensor<1> {
    let [rows, width] = predicted.dims();
    let targets_of_row = expect_parts("pinball", "predicted", width, levels.len());
    expect_count("pinball", "targets", targets.len(), rows * targets_of_row);
    if let Some(mask) = mask {
        expect_count("pinball", "weights in mask", mask.len(), rows);
    }
    let device = predicted.device();
    let mut numbers = Weighted::with_capacity(rows * width);
    let mut total = 0.0;
    for (row, targets) in targets.chunks_exact(targets_of_row.max(1)).enumerate() {
        let weight = mask.map_or(1.0, |mask| mask[row]);
        for &target in targets {
            let (target, weight) = if target.is_nan() { (0.0, 0.0) } else { (target, weight) };
            total += f64::from(weight) * levels.len() as f64;
            for level in levels {
                numbers.targets.push(target);
                numbers.weights.push(weight);
                numbers.slopes.push(weight * (2.0 * level - 1.0));
            }
        }
    }
    let [targets, weights, slopes] = [numbers.targets, numbers.weights, numbers.slopes]
        .map(|numbers| Tensor::<2>::from_data(TensorData::new(numbers, [rows, width]), &device));
    let errors = targets - predicted;
    weighted_mean((errors.clone().abs() * weights + errors * slopes).sum(), total)
}

/// A target for every prediction, with the weight of its error and that of its error's sign.
struct Weighted {
    targets: Vec<f32>,
    weights: Vec<f32>,
    slopes: Vec<f32>,
}

impl Weighted {
    fn with_capacity(n: usize) -> Self {
        Self { targets: Vec::with_capacity(n), weights: Vec::with_capacity(n), slopes: Vec::with_capacity(n) }
    }
}

/// The same loss summed over the `predicted` quantiles of `targets`, and the number of quantiles of targets that are present.
pub(crate) fn pinball_sum(predicted: &[f32], targets: &[f32], levels: &[f32]) -> (f64, u64) {
    let (mut sum, mut n) = (0.0, 0);
    for (predicted, &target) in predicted.chunks_exact(levels.len()).zip(targets).filter(|(_, target)| !target.is_nan()) {
        for (&x, &level) in predicted.iter().zip(levels) {
            let error = f64::from(target) - f64::from(x);
            sum += error.abs() + (2.0 * f64::from(level) - 1.0) * error;
            n += 1;
        }
    }
    (sum, n)
}

#[cfg(test)]
mod tests {
    use burn::tensor::Device;
    use proptest::prelude::*;

    use super::*;

    fn loss(predicted: &[f32], targets: &[f32], levels: &[f32], mask: Option<&[f32]>) -> (f32, Vec<f32>) {
        let shape = [targets.len() / 2, 2 * levels.len()];
        let x = Tensor::<2>::from_data(TensorData::new(predicted.to_vec(), shape), &Device::flex().autodiff()).require_grad();
        let loss = pinball(x.clone(), targets, levels, mask);
        let gradient = x.grad(&loss.clone().backward()).map_or_else(Vec::new, |grad| grad.into_data().try_to_vec().unwrap());
        (loss.into_scalar(), gradient)
    }

    #[test]
    fn quantiles_are_pulled_to_both_sides_by_their_level_and_missing_numbers_by_nothing() {
        // Errors 1, 1 | −2, −2 of the first row, the third number is missing, −1, −1 of the last.
        let predicted = [0.0, 0.0, 2.0, 2.0, 5.0, 5.0, 1.0, 1.0];
        let targets = [1.0, 0.0, f32::NAN, 0.0];
        // (2 · 0.75 + 2 · 0.5) · 1 + 2 · (0.25 + 0.5) · 2 + 2 · (0.25 + 0.5) · 1 = 7 of six.
        let (found, gradient) = loss(&predicted, &targets, &[0.75, 0.5], None);
        assert!((found - 7.0 / 6.0).abs() < 1e-6, "{found}");
        assert_eq!(gradient, [-1.5, -1.0, 0.5, 1.0, 0.0, 0.0, 0.5, 1.0].map(|x| x / 6.0));
        let (found, gradient) = loss(&predicted, &targets, &[0.75, 0.5], Some(&[0.0, 1.0]));
        assert!((found - 0.75).abs() < 1e-6 && gradient[..4] == [0.0; 4]);
        assert_eq!(loss(&predicted[..4], &[f32::NAN; 2], &[0.1, 0.5], None).0, 0.0);
    }

    #[test]
    fn weights_that_are_nan_are_not_passed_over() {
        assert!(loss(&[0.0; 4], &[1.0; 4], &[0.5], Some(&[1.0, f32::NAN])).0.is_nan());
    }

    #[test]
    #[should_panic(expected = "pinball: expected 2 weights in mask, found 7")]
    fn a_mask_that_is_too_long_is_refused() {
        pinball(Tensor::zeros([2, 2], &Device::flex()), &[0.0, 1.0], &[0.1, 0.9], Some(&[1.0; 7]));
    }

    #[test]
    #[should_panic(expected = "pinball: expected predicted of equal parts, 2 of them, found 3 channels")]
    fn predictions_that_are_not_as_many_quantiles_of_each_target_are_refused() {
        pinball(Tensor::zeros([2, 3], &Device::flex()), &[0.0, 1.0, 2.0], &[0.1, 0.9], None);
    }

    #[test]
    #[should_panic(expected = "pinball: expected predicted of equal parts, 0 of them")]
    fn quantiles_without_a_level_are_refused() {
        pinball(Tensor::zeros([2, 0], &Device::flex()), &[], &[], None);
    }

    proptest! {
        #[test]
        fn the_tensor_and_the_sum_by_hand_agree(
            numbers in prop::collection::vec((-3.0..3.0f32, -3.0..3.0f32, -3.0..3.0f32, -3.0..3.0f32, any::<bool>()), 2..20), level in 0.05..0.95f32,
        ) {
            let numbers = &numbers[..numbers.len() / 2 * 2];
            let levels = [level, 0.5, 0.97];
            let predicted: Vec<f32> = numbers.iter().flat_map(|&(a, b, c, ..)| [a, b, c]).collect();
            let targets: Vec<f32> = numbers.iter().map(|&(.., y, is_there)| if is_there { y } else { f32::NAN }).collect();
            let (sum, n) = pinball_sum(&predicted, &targets, &levels);
            let (found, _) = loss(&predicted, &targets, &levels, None);
            prop_assert!((f64::from(found) - sum / (n.max(1) as f64)).abs() < 1e-5);
        }

        #[test]
        fn the_quantile_of_a_sample_has_the_least_loss(mut sample in prop::collection::vec(-5.0..5.0f32, 9..40), place in 0.1..0.9f64) {
            sample.sort_unstable_by(f32::total_cmp);
            let level = place as f32;
            let at = |x: f32| sample.iter().map(|&y| pinball_sum(&[x], &[y], &[level]).0).sum::<f64>();
            let quantile = sample[((sample.len() as f64 * place).ceil() as usize).clamp(1, sample.len()) - 1];
            prop_assert!(sample.iter().all(|&other| at(quantile) <= at(other) + 1e-4));
        }
    }
}
