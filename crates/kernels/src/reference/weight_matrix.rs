//! Products with a constant matrix, and the roundings of its stored forms.

use super::Float;
use alloc::vec::Vec;

/// y = x Wᵀ + bias.
///
/// # Shapes
/// - `weights`: `[outputs, inputs]`
/// - `x`: `[rows, inputs]`
/// - `bias`: `[outputs]`; `None` is 0
/// - result: `[rows, outputs]`
///
/// # Panics
/// When a length does not fit.
pub fn multiply<T: Float>(rows: usize, outputs: usize, inputs: usize, weights: &[T], x: &[T], bias: Option<&[T]>) -> Vec<T> {
    let at = |r: usize, i: usize| {
        let mut sum = T::ZERO;
        for k in 0..inputs {
            sum += x[r * inputs + k] * weights[i * inputs + k];
        }
        sum + bias.map_or(T::ZERO, |bias| bias[i])
    };
    (0..rows).flat_map(|r| (0..outputs).map(move |i| (r, i))).map(|(r, i)| at(r, i)).collect()
}

/// The int8 form of the finite weights of one output: the scale s = max |w| / 127, and round(w / s).
pub fn int8(weights: &[f32]) -> (f64, Vec<f64>) {
    let scale = weights.iter().fold(0.0, |max, &w| f64::max(max, f64::from(w).abs())) / 127.0;
    (scale, weights.iter().map(|&w| if scale == 0.0 { 0.0 } else { libm::rint(f64::from(w) / scale) }).collect())
}

/// A row of finite inputs as rounded for integer products: round(32639 / m · x) · m / 32639 with m = max |x|, quotients and product in f32.
pub fn rounded_to_16_bits(x: &[f32]) -> Vec<f64> {
    let largest = x.iter().fold(0.0, |max, &x| f32::max(max, x.abs()));
    let (scale, inverse) = if largest == 0.0 { (0.0, 0.0) } else { (largest / 32639.0, 32639.0 / largest) };
    x.iter().map(|&x| libm::rint(f64::from(x * inverse)) * f64::from(scale)).collect()
}
