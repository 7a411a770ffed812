//! Masked mean squared error.

use burn::tensor::{Tensor, TensorData};

use super::shapes::expect_count;
use super::weighted_mean::weighted_mean;

/// Σ mask · (predicted − target)² / (F · Σ mask); 0 if the weights sum to 0. NaN marks a missing target, which has no weight; a NaN among
/// the weights of other targets propagates.
///
/// # Shapes
/// * `predicted` `[N, F]`, `targets` N·F numbers, `mask` N weights (if absent: all 1) → `[1]`
///
/// # Panics
/// When the lengths do not fit.
pub fn squared_error(predicted: Tensor<2>, targets: &[f32], mask: Option<&[f32]>) -> Tensor<1> {
    let [rows, width] = predicted.dims();
    expect_count("squared_error", "targets", targets.len(), rows * width);
    if let Some(mask) = mask {
        expect_count("squared_error", "weights in mask", mask.len(), rows);
    }
    let device = predicted.device();
    if rows * width == 0 {
        return Tensor::zeros([1], &device);
    }
    if targets.iter().any(|target| target.is_nan()) {
        return over_those_that_are_there(predicted, targets, mask);
    }
    let targets = Tensor::<2>::from_data(TensorData::new(targets.to_vec(), [rows, width]), &device);
    let squares = (predicted - targets).square();
    let Some(mask) = mask else { return squares.mean() };
    let total: f64 = mask.iter().map(|&weight| f64::from(weight)).sum();
    let mask = Tensor::<2>::from_data(TensorData::new(mask.to_vec(), [rows, 1]), &device);
    weighted_mean((squares * mask).sum(), total * width as f64)
}

/// The same if numbers are missing, which have no weight.
fn over_those_that_are_there(predicted: Tensor<2>, targets: &[f32], mask: Option<&[f32]>) -> Tensor<1> {
    let ([rows, width], device) = (predicted.dims(), predicted.device());
    let weight = |(at, target): (usize, &f32)| if target.is_nan() { 0.0 } else { mask.map_or(1.0, |mask| mask[at / width]) };
    let weights: Vec<f32> = targets.iter().enumerate().map(weight).collect();
    let total: f64 = weights.iter().map(|&weight| f64::from(weight)).sum();
    let targets = targets.iter().map(|target| if target.is_nan() { 0.0 } else { *target }).collect();
    let [targets, weights] = [targets, weights].map(|numbers| Tensor::<2>::from_data(TensorData::new(numbers, [rows, width]), &device));
    weighted_mean(((predicted - targets).square() * weights).sum(), total)
}

#[cfg(test)]
mod tests {
    use burn::tensor::Device;

    use super::*;

    fn error(mask: Option<&[f32]>) -> (f32, Vec<f32>) {
        let x = Tensor::<2>::from_data([[1.0, 2.0], [0.0, -1.0], [5.0, 5.0]], &Device::flex().autodiff()).require_grad();
        let loss = squared_error(x.clone(), &[0.0, 0.0, 2.0, 1.0, 5.0, 8.0], mask);
        let grads = loss.clone().backward();
        (loss.into_scalar(), x.grad(&grads).unwrap().into_data().try_to_vec().unwrap())
    }

    #[test]
    fn only_scored_rows_count() {
        // Squares: 1 4 | 4 4 | 0 9.
        let (loss, gradient) = error(None);
        assert!((loss - 22.0 / 6.0).abs() < 1e-6);
        assert!((gradient[1] - 4.0 / 6.0).abs() < 1e-6);
        let (loss, gradient) = error(Some(&[1.0, 0.0, 1.0]));
        assert!((loss - 14.0 / 4.0).abs() < 1e-6);
        assert_eq!(gradient, [0.5, 1.0, 0.0, 0.0, 0.0, -1.5]);
        assert_eq!(error(Some(&[0.0; 3])).0, 0.0);
    }

    #[test]
    fn weights_that_are_nan_are_not_passed_over_and_negative_ones_are_weights() {
        assert!(error(Some(&[1.0, f32::NAN, 1.0])).0.is_nan());
        assert_eq!(error(Some(&[-1.0; 3])).0, error(Some(&[1.0; 3])).0);
    }

    #[test]
    #[should_panic(expected = "squared_error: expected 3 weights in mask, found 9")]
    fn a_mask_that_is_too_long_is_refused_where_a_target_is_missing() {
        squared_error(Tensor::zeros([3, 1], &Device::flex()), &[0.0, f32::NAN, 1.0], Some(&[1.0; 9]));
    }

    #[test]
    fn missing_numbers_have_no_weight() {
        let x = Tensor::<2>::from_data([[1.0, 2.0], [0.0, -1.0]], &Device::flex().autodiff()).require_grad();
        let loss = squared_error(x.clone(), &[0.0, f32::NAN, 2.0, 1.0], Some(&[2.0, 1.0]));
        let gradient: Vec<f32> = x.grad(&loss.clone().backward()).unwrap().into_data().try_to_vec().unwrap();
        // (2 · 1 + 4 + 4) / 4.
        assert!((loss.into_scalar::<f32>() - 2.5).abs() < 1e-6);
        assert_eq!(gradient, [1.0, 0.0, -1.0, -1.0]);
    }
}
