//! RMSNorm with gain 1 + γ over the last dimension.

use super::{Float, of_finite};
use alloc::vec;
use alloc::vec::Vec;

/// x √width / max(‖x‖, floor) of a row, the factor on x, and whether the norm is at the floor.
fn normalized<T: Float>(x: &[T]) -> (Vec<T>, T, bool) {
    let floor = T::from_f64(crate::rms_norm::FLOOR.into());
    let squares = x.iter().fold(T::ZERO, |sum, &x| sum + x * x);
    let norm = squares.sqrt();
    let factor = of_finite(squares, T::from_f64(x.len() as f64).sqrt() / norm.max(floor));
    (x.iter().map(|&x| x * factor).collect(), factor, norm < floor)
}

/// y `[rows, width]`; as [`crate::rms_norm::forward`].
pub fn forward<T: Float>(_rows: usize, width: usize, x: &[T], gamma: &[T]) -> Vec<T> {
    let gained = |row: &[T]| -> Vec<T> { normalized(row).0.iter().zip(gamma).map(|(&u, &g)| u * (T::ONE + g)).collect() };
    x.chunks(width.max(1)).flat_map(gained).collect()
}

/// (d_x, d_gamma); as [`crate::rms_norm::backward`].
pub fn backward<T: Float>(_rows: usize, width: usize, x: &[T], gamma: &[T], d_y: &[T]) -> (Vec<T>, Vec<T>) {
    let n = T::from_f64(width as f64);
    let (mut d_x, mut d_gamma) = (Vec::new(), vec![T::ZERO; width]);
    for (row, d_row) in x.chunks(width.max(1)).zip(d_y.chunks(width.max(1))) {
        let (u, factor, floored) = normalized(row);
        let scaled: Vec<T> = d_row.iter().zip(gamma).map(|(&d, &g)| d * (T::ONE + g)).collect();
        let along = if floored { T::ZERO } else { scaled.iter().zip(&u).fold(T::ZERO, |sum, (&s, &u)| sum + s * u) / n };
        d_x.extend(scaled.iter().zip(&u).map(|(&s, &u)| (s - u * along) * factor));
        for c in 0..width {
            d_gamma[c] += d_row[c] * u[c];
        }
    }
    (d_x, d_gamma)
}
