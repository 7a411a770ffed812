//! See [`crate::adamw`].

use super::Float;
use crate::adamw::AdamW;
use alloc::vec::Vec;

/// Parameters, first and second moments after one update.
///
/// # Panics
/// When [`AdamW::expect_valid`] does.
pub fn update<T: Float>(settings: &AdamW, parameters: &[T], gradients: &[T], moments: [&[T]; 2]) -> [Vec<T>; 3] {
    settings.expect_valid();
    let of = T::from_f64;
    let [beta_1, beta_2, lr] = [settings.beta_1, settings.beta_2, settings.lr].map(of);
    let correction = |beta: f64| of(1.0 - libm::pow(beta, settings.time as f64));
    let [mut updated, mut first, mut second] = [Vec::new(), Vec::new(), Vec::new()];
    for (i, (&theta, &g)) in parameters.iter().zip(gradients).enumerate() {
        let g = g * of(settings.gradient_scale);
        let m = beta_1 * moments[0][i] + (T::ONE - beta_1) * g;
        let v = beta_2 * moments[1][i] + (T::ONE - beta_2) * g * g;
        let step = m / correction(settings.beta_1) / ((v / correction(settings.beta_2)).sqrt() + of(settings.eps));
        updated.push(theta * (T::ONE - lr * of(settings.weight_decay)) - lr * step);
        first.push(m);
        second.push(v);
    }
    [updated, first, second]
}
