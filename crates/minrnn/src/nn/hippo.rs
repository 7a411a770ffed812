//! Initial states of S4 and S4D: the HiPPO-LegS matrix in the basis of its own modes, and two shorter formulas (Gu et al. 2022,
//! arXiv:2111.00396, §3; Gu et al. 2022, arXiv:2206.11893, §4).
//!
//! ```text
//! A_nk = −√((2n+1)(2k+1)) for n > k, −(n+1) for n = k, 0 above      B_n = √(2n+1)      P_n = √(n + ½)
//! A + P Pᵀ = −½ I + S,  S skew,  so  A = V (Λ − P̂ P̂*) V*  with  Λ = −½ + iω,  P̂ = V* P,  B̂ = V* B
//! ```
//!
//! where: the columns of V are the eigenvectors of S with eigenvalues ±iω; of each conjugate pair the one with ω > 0 is kept. Computed in
//! f64: the numbers then become parameters.

use minrnn_model::S4Init;

/// One eigenvector of LegS: its frequency ω, and its components of P and of B (real, imaginary).
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Mode {
    pub frequency: f64,
    pub p: [f64; 2],
    pub b: [f64; 2],
}

/// The `n` / 2 modes of the LegS matrix of size `n`, fastest first.
pub(super) fn legs(n: usize) -> Vec<Mode> {
    let skew = |row: usize, column: usize| {
        let size = (((2 * row + 1) * (2 * column + 1)) as f64).sqrt() / 2.0;
        match row.cmp(&column) {
            std::cmp::Ordering::Greater => -size,
            std::cmp::Ordering::Equal => 0.0,
            std::cmp::Ordering::Less => size,
        }
    };
    // i S is Hermitian; as a real matrix it is [[0, −S], [S, 0]], whose eigenvalues −ω come in pairs, one eigenvector of a pair being i
    // times the other.
    let mut matrix = vec![0.0; 4 * n * n];
    for row in 0..n {
        for column in 0..n {
            matrix[row * 2 * n + n + column] = -skew(row, column);
            matrix[(n + row) * 2 * n + column] = skew(row, column);
        }
    }
    let (values, vectors) = symmetric_eigen(matrix, 2 * n);
    let mut order: Vec<usize> = (0..2 * n).collect();
    order.sort_by(|&i, &j| values[i].total_cmp(&values[j]));
    let mode = |&i: &usize| {
        // v* w for real w: the product of w with the real part of v, and minus that with its imaginary part.
        let against = |weight: &dyn Fn(usize) -> f64| {
            let part = |from: usize| (0..n).map(|row| vectors[(from + row) * 2 * n + i] * weight(row)).sum::<f64>();
            [part(0), -part(n)]
        };
        Mode { frequency: -values[i], p: against(&|row| (row as f64 + 0.5).sqrt()), b: against(&|row| (2.0 * row as f64 + 1.0).sqrt()) }
    };
    order.iter().take(n).step_by(2).map(mode).collect()
}

/// The imaginary parts of the `n` / 2 states of S4D; their real parts are −½.
pub(super) fn frequencies(init: S4Init, n: usize) -> Vec<f64> {
    let size = n as f64;
    match init {
        S4Init::Legs => legs(n).into_iter().map(|mode| mode.frequency).collect(),
        S4Init::Lin => (0..n / 2).map(|i| std::f64::consts::PI * i as f64).collect(),
        S4Init::Inv => (0..n / 2).map(|i| size / std::f64::consts::PI * (size / (2.0 * i as f64 + 1.0) - 1.0)).collect(),
    }
}

/// Eigenvalues and eigenvectors (columns) of a symmetric matrix `[n, n]`, by Jacobi's rotations.
fn symmetric_eigen(mut a: Vec<f64>, n: usize) -> (Vec<f64>, Vec<f64>) {
    /// Rotations stop when the off-diagonal part is this small relative to the whole.
    const SMALL: f64 = 1e-15;
    const MOST_SWEEPS: usize = 40;
    let mut vectors = vec![0.0; n * n];
    (0..n).for_each(|i| vectors[i * n + i] = 1.0);
    let whole: f64 = a.iter().map(|x| x * x).sum();
    for _ in 0..MOST_SWEEPS {
        let off: f64 = (0..n * n).filter(|i| i / n != i % n).map(|i| a[i] * a[i]).sum();
        if off <= SMALL * SMALL * whole {
            break;
        }
        for p in 0..n {
            for q in p + 1..n {
                let apq = a[p * n + q];
                if apq == 0.0 {
                    continue;
                }
                let theta = (a[q * n + q] - a[p * n + p]) / (2.0 * apq);
                let tangent = theta.signum() / (theta.abs() + (theta * theta + 1.0).sqrt());
                let cosine = 1.0 / (tangent * tangent + 1.0).sqrt();
                let sine = tangent * cosine;
                let turn = |x: &mut f64, y: &mut f64| (*x, *y) = (cosine * *x - sine * *y, sine * *x + cosine * *y);
                for k in 0..n {
                    let (mut x, mut y) = (a[k * n + p], a[k * n + q]);
                    turn(&mut x, &mut y);
                    (a[k * n + p], a[k * n + q]) = (x, y);
                    let (mut x, mut y) = (vectors[k * n + p], vectors[k * n + q]);
                    turn(&mut x, &mut y);
                    (vectors[k * n + p], vectors[k * n + q]) = (x, y);
                }
                for k in 0..n {
                    let (mut x, mut y) = (a[p * n + k], a[q * n + k]);
                    turn(&mut x, &mut y);
                    (a[p * n + k], a[q * n + k]) = (x, y);
                }
            }
        }
    }
    ((0..n).map(|i| a[i * n + i]).collect(), vectors)
}

#[cfg(test)]
mod tests {
    use super::*;

    type Complex = [f64; 2];

    fn times([a, b]: Complex, [c, d]: Complex) -> Complex {
        [a * c - b * d, a * d + b * c]
    }

    fn inverse([a, b]: Complex) -> Complex {
        let square = a * a + b * b;
        [a / square, -b / square]
    }

    fn sum(terms: impl Iterator<Item = Complex>) -> Complex {
        terms.fold([0.0; 2], |[a, b], [c, d]| [a + c, b + d])
    }

    /// HiPPO-LegS and its B.
    fn dense(n: usize) -> (Vec<f64>, Vec<f64>) {
        let entry = |i: usize| match (i / n, i % n) {
            (row, column) if row > column => -(((2 * row + 1) * (2 * column + 1)) as f64).sqrt(),
            (row, column) if row == column => -(row as f64 + 1.0),
            _ => 0.0,
        };
        ((0..n * n).map(entry).collect(), (0..n).map(|row| (2.0 * row as f64 + 1.0).sqrt()).collect())
    }

    /// Solves A X = B for X by elimination; B has `columns` columns.
    fn solve(mut a: Vec<f64>, mut b: Vec<f64>, n: usize, columns: usize) -> Vec<f64> {
        for pivot in 0..n {
            for row in (0..n).filter(|&row| row != pivot) {
                let factor = a[row * n + pivot] / a[pivot * n + pivot];
                (0..n).for_each(|column| a[row * n + column] -= factor * a[pivot * n + column]);
                (0..columns).for_each(|column| b[row * columns + column] -= factor * b[pivot * columns + column]);
            }
        }
        (0..n * columns).map(|i| b[i] / a[i / columns * n + i / columns]).collect()
    }

    /// K_l = B*ᵀ Ā^l B̄ by powers of the bilinear matrices, with B as the output vector.
    fn dense_kernel(n: usize, dt: f64, len: usize) -> Vec<f64> {
        let (a, b) = dense(n);
        let shifted = |sign: f64| -> Vec<f64> {
            a.iter().enumerate().map(|(i, a)| if i / n == i % n { 1.0 } else { 0.0 } + sign * dt / 2.0 * a).collect()
        };
        let step = solve(shifted(-1.0), shifted(1.0), n, n);
        let mut x = solve(shifted(-1.0), b.iter().map(|b| dt * b).collect(), n, 1);
        let mut kernel = Vec::new();
        for _ in 0..len {
            kernel.push(x.iter().zip(&b).map(|(x, b)| x * b).sum());
            x = (0..n).map(|row| (0..n).map(|column| step[row * n + column] * x[column]).sum()).collect();
        }
        kernel
    }

    #[test]
    fn modes_diagonalise_the_matrix() {
        let n = 8;
        let modes = legs(n);
        assert!(modes.len() == 4 && modes.iter().all(|mode| mode.frequency > 0.0));
        // Moments that do not depend on the basis: Bᵀ A^k B with A = V (Λ − P P*) V*, both halves counted.
        let (a, b) = dense(n);
        let mut power = b.clone();
        let mut x: Vec<Complex> = modes.iter().map(|mode| mode.b).collect();
        for k in 0..6 {
            let expected: f64 = power.iter().zip(&b).map(|(x, b)| x * b).sum();
            let found = 2.0 * modes.iter().zip(&x).map(|(mode, &x)| times([mode.b[0], -mode.b[1]], x)[0]).sum::<f64>();
            assert!((found - expected).abs() < 1e-10 * expected.abs(), "moment {k}: {found}, expected {expected}");
            power = (0..n).map(|row| (0..n).map(|column| a[row * n + column] * power[column]).sum()).collect();
            let along = 2.0 * modes.iter().zip(&x).map(|(mode, &x)| times([mode.p[0], -mode.p[1]], x)[0]).sum::<f64>();
            let next = |(mode, &x): (&Mode, &Complex)| {
                let turned = times([-0.5, mode.frequency], x);
                [turned[0] - along * mode.p[0], turned[1] - along * mode.p[1]]
            };
            x = modes.iter().zip(&x).map(next).collect();
        }
    }

    #[test]
    fn frequencies_of_the_short_formulas() {
        assert_eq!(frequencies(S4Init::Lin, 4), [0.0, std::f64::consts::PI]);
        let inverse = frequencies(S4Init::Inv, 4);
        let pi = std::f64::consts::PI;
        assert!((inverse[0] - 12.0 / pi).abs() < 1e-12 && (inverse[1] - 4.0 / 3.0 / pi).abs() < 1e-12);
    }

    /// Compares the layer's recurrence with powers of the dense matrices, and both with the generating function of S4's paper
    /// (arXiv:2111.00396, §3).
    #[test]
    fn impulse_responses_are_those_of_the_dense_matrices() {
        use super::super::init::Initializer;
        use super::super::state_space::StateSpace;
        use crate::ops::StepCodes;
        use burn::module::Param;
        use burn::tensor::{Device, Tensor, TensorData};

        let (n, dt, len) = (8, 0.05, 48);
        let expected = dense_kernel(n, dt, len);
        let modes = legs(n);

        let device = Device::flex();
        let mut space = StateSpace::legs(1, n, &mut Initializer::new(0, &device));
        let tensor = |values: Vec<f64>| TensorData::new(values.into_iter().map(|x| x as f32).collect::<Vec<_>>(), [1, n / 2, 2]);
        space.c = Param::from_tensor(Tensor::from_data(tensor(modes.iter().flat_map(|mode| [mode.b[0], -mode.b[1]]).collect()), &device));
        space.log_dt = Param::from_tensor(Tensor::from_floats([dt.ln() as f32], &device));
        space.skip = Param::from_tensor(Tensor::zeros([1], &device));
        let mut impulse = vec![0.0f32; len];
        impulse[0] = 1.0;
        let impulse = Tensor::from_data(TensorData::new(impulse, [1, len, 1]), &device);
        let (y, _) = space.forward(impulse, space.init_state(1, 1), &StepCodes::dense(), 1);
        let y: Vec<f32> = y.into_data().try_to_vec().unwrap();
        for (l, (y, expected)) in y.iter().zip(&expected).enumerate() {
            assert!((f64::from(*y) - expected).abs() < 2e-5 * dense_kernel(n, dt, 1)[0].abs(), "K_{l}: {y}, expected {expected}");
        }

        // The kernel of infinite length, folded at `len`, has the generating function with c̃ = C.
        let folded: Vec<f64> =
            dense_kernel(n, dt, 40 * len).chunks(len).fold(vec![0.0; len], |sum, part| sum.iter().zip(part).map(|(a, b)| a + b).collect());
        let whole: Vec<(Complex, Complex, Complex)> = modes
            .iter()
            .flat_map(|mode| {
                [1.0, -1.0].map(|sign| ([-0.5, sign * mode.frequency], [mode.p[0], sign * mode.p[1]], [mode.b[0], sign * mode.b[1]]))
            })
            .collect();
        let spectrum: Vec<Complex> = (0..len)
            .map(|k| {
                let angle = -std::f64::consts::TAU * k as f64 / len as f64;
                let (one_minus, one_plus) = ([1.0 - angle.cos(), -angle.sin()], [1.0 + angle.cos(), angle.sin()]);
                // q = r / (1 + ω), finite at ω = −1 too.
                let q = |lambda: Complex| {
                    let turned = times(one_plus, lambda);
                    inverse([2.0 / dt * one_minus[0] - turned[0], 2.0 / dt * one_minus[1] - turned[1]])
                };
                let conj = |[re, im]: Complex| [re, -im];
                let against = |left: &dyn Fn(&(Complex, Complex, Complex)) -> Complex,
                               right: &dyn Fn(&(Complex, Complex, Complex)) -> Complex| {
                    sum(whole.iter().map(|mode| times(times(conj(left(mode)), q(mode.0)), right(mode))))
                };
                let (c_b, c_p) = (against(&|mode| mode.2, &|mode| mode.2), against(&|mode| mode.2, &|mode| mode.1));
                let (p_p, p_b) = (against(&|mode| mode.1, &|mode| mode.1), against(&|mode| mode.1, &|mode| mode.2));
                let bottom = times(one_plus, p_p);
                let through = times(times(c_p, inverse([1.0 + bottom[0], bottom[1]])), times(one_plus, p_b));
                [2.0 * (c_b[0] - through[0]), 2.0 * (c_b[1] - through[1])]
            })
            .collect();
        for (l, expected) in folded.iter().enumerate() {
            let value = |k: usize| {
                let angle = std::f64::consts::TAU * (k * l % len) as f64 / len as f64;
                times(spectrum[k], [angle.cos(), angle.sin()])[0]
            };
            let found = (0..len).map(value).sum::<f64>() / len as f64;
            assert!((found - expected).abs() < 1e-9 * folded[0].abs(), "generated K_{l}: {found}, expected {expected}");
        }
    }
}
