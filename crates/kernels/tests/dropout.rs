mod common;
use common::*;
use minrnn_kernels::{dropout, reference};

#[test]
fn reference_gradients_match_differences() {
    let mut random = Random(1);
    let (rows, width, p, key) = (7, 5, 0.3, 11);
    let (x, bias, w) = (wide(&random.normal(rows * width)), wide(&random.normal(width)), wide(&random.normal(rows * width)));
    let loss = |x: &[f64], bias: &[f64]| dot(&reference::dropout::forward(rows, width, x, Some(bias), None, p, key), &w);
    let (d_x, d_bias) = reference::dropout::backward(rows, width, &w, p, key);
    assert_gradient("d_x", &d_x, &differences(&x, |x| loss(x, &bias)));
    assert_gradient("d_bias", &d_bias, &differences(&bias, |bias| loss(&x, bias)));
}

#[test]
fn kernel_matches_reference() {
    let mut random = Random(2);
    for (rows, width) in MATRICES {
        for (p, with_bias, with_residual) in
            [(0.2, true, true), (0.5, false, true), (0.9, true, false), (0.0, true, true), (0.0, false, false)]
        {
            let key = random.bits();
            let (x, d_y) = (random.normal(rows * width), random.normal(rows * width));
            let (bias, residual) = (with_bias.then(|| random.normal(width)), with_residual.then(|| random.normal(rows * width)));
            let (bias, residual) = (bias.as_deref(), residual.as_deref());
            let (wide_bias, wide_residual) = (bias.map(wide), residual.map(wide));
            let expected = reference::dropout::forward(rows, width, &wide(&x), wide_bias.as_deref(), wide_residual.as_deref(), p, key);
            let (d_x, d_bias) = reference::dropout::backward(rows, width, &wide(&d_y), p, key);
            on_every_level(|level| {
                let [y] =
                    outputs([rows * width], |[y]| dropout::forward(rows, width, dropout::Inputs { x: &x, bias, residual }, p, key, y));
                assert_close(&format!("{level} {rows}x{width} p={p} y"), &y, &expected, OUTPUT);
                let [dx, db] = outputs([rows * width, width], |[dx, db]| dropout::backward(rows, width, &d_y, p, key, dx, Some(db)));
                assert_close(&format!("{level} {rows}x{width} p={p} d_x"), &dx, &d_x, GRADIENT);
                assert_sums_close(&format!("{level} {rows}x{width} p={p} d_bias"), &db, &d_bias, rows);
                let [alone] = outputs([rows * width], |[dx]| dropout::backward(rows, width, &d_y, p, key, dx, None));
                assert_eq!(alone, dx);
            });
        }
    }
}

/// 1 where kept, 0 where dropped.
fn mask(n: usize, p: f32, key: u64) -> Vec<f64> {
    let [y] = outputs([n], |[y]| dropout::forward(1, n, dropout::Inputs { x: &vec![1.0; n], bias: None, residual: None }, p, key, y));
    y.into_iter().map(|y| if y == 0.0 { 0.0 } else { 1.0 }).collect()
}

#[test]
fn the_mask_does_not_depend_on_the_matrix_shape() {
    let (n, p, key) = (6000, 0.3, 5);
    let flat = mask(n, p, key);
    for width in [1, 3, 40, 600] {
        let [y] = outputs([n], |[y]| {
            dropout::forward(n / width, width, dropout::Inputs { x: &vec![1.0; n], bias: None, residual: None }, p, key, y)
        });
        assert!(y.iter().zip(&flat).all(|(&y, &kept)| (y != 0.0) == (kept != 0.0)), "width {width}");
    }
}

#[test]
fn elements_are_dropped_with_probability_p() {
    let n = 1 << 20;
    for p in [0.01, 0.2, 0.5, 0.95] {
        let kept: f64 = mask(n, p, 77).iter().sum();
        let deviations = (kept / n as f64 - (1.0 - f64::from(p))) / (f64::from(p) * (1.0 - f64::from(p)) / n as f64).sqrt();
        assert!(deviations.abs() < 4.5, "p = {p}: {kept} of {n} kept, {deviations} standard deviations off");
    }
}

/// Correlation of two masks in standard deviations of independent ones.
fn correlation(a: &[f64], b: &[f64], p: f64) -> f64 {
    let covariance: f64 = a.iter().zip(b).map(|(a, b)| (a - 1.0 + p) * (b - 1.0 + p)).sum();
    covariance / (p * (1.0 - p) * (a.len() as f64).sqrt())
}

#[test]
fn neighbours_and_neighbouring_keys_are_independent() {
    let (n, p) = (1 << 18, 0.3f32);
    let base = mask(n, p, 1);
    for lag in [1, 2, 15, 16, 17, 32, 64, 384, 1024] {
        let found = correlation(&base[lag..], &base[..n - lag], p.into());
        assert!(found.abs() < 4.5, "lag {lag}: {found} standard deviations");
    }
    for other in [0, 2, 3, 1 << 31, 1 << 32, (1 << 32) + 1, 1 << 63, u64::MAX] {
        let found = correlation(&base, &mask(n, p, other), p.into());
        assert!(found.abs() < 4.5, "key {other}: {found} standard deviations");
    }
}

#[test]
#[should_panic(expected = "p must be in [0, 1), found 1")]
fn dropping_everything_is_refused() {
    mask(1, 1.0, 0);
}

#[test]
fn threads_change_nothing() {
    let (rows, width) = (1500, 33);
    let d_y = Random(9).normal(rows * width);
    assert_threads_change_nothing(|| outputs([rows * width, width], |[dx, db]| dropout::backward(rows, width, &d_y, 0.2, 3, dx, Some(db))));
}
