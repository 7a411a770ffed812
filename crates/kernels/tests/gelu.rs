mod common;
use common::*;
use minrnn_kernels::{gelu, reference};

#[test]
fn reference_gradients_match_differences() {
    let mut random = Random(1);
    let (rows, width) = (3, 5);
    let (x, bias, w) = (wide(&random.normal(rows * width)), wide(&random.normal(width)), wide(&random.normal(rows * width)));
    let loss = |x: &[f64], bias: &[f64]| dot(&reference::gelu::forward(rows, width, x, Some(bias)), &w);
    let (d_x, d_bias) = reference::gelu::backward(rows, width, &x, Some(&bias), &w);
    assert_gradient("d_x", &d_x, &differences(&x, |x| loss(x, &bias)));
    assert_gradient("d_bias", &d_bias, &differences(&bias, |bias| loss(&x, bias)));
}

#[test]
fn kernel_matches_reference() {
    let mut random = Random(2);
    for (rows, width) in MATRICES {
        for with_bias in [false, true] {
            let (x, d_y) = (random.normal(rows * width), random.normal(rows * width));
            let bias = with_bias.then(|| random.normal(width));
            let bias = bias.as_deref();
            let wide_bias = bias.map(wide);
            let expected = reference::gelu::forward(rows, width, &wide(&x), wide_bias.as_deref());
            let (d_x, d_bias) = reference::gelu::backward(rows, width, &wide(&x), wide_bias.as_deref(), &wide(&d_y));
            on_every_level(|level| {
                let [y] = outputs([rows * width], |[y]| gelu::forward(rows, width, &x, bias, y));
                assert_close(&format!("{level} {rows}x{width} y"), &y, &expected, OUTPUT);
                let [dx, db] = outputs([rows * width, width], |[dx, db]| gelu::backward(rows, width, &x, bias, &d_y, dx, Some(db)));
                assert_close(&format!("{level} {rows}x{width} d_x"), &dx, &d_x, GRADIENT);
                assert_sums_close(&format!("{level} {rows}x{width} d_bias"), &db, &d_bias, rows);
                let [alone] = outputs([rows * width], |[dx]| gelu::backward(rows, width, &x, bias, &d_y, dx, None));
                assert_eq!(alone, dx, "d_x depends on whether d_bias is wanted");
            });
        }
    }
}

#[test]
fn the_distribution_is_accurate_everywhere() {
    let x: Vec<f32> = (0..200_001).map(|i| (i as f32 - 100_000.0) / 5_000.0).collect();
    let ones = vec![1.0; x.len()];
    let expected = reference::gelu::forward(1, x.len(), &wide(&x), None);
    let (slopes, _) = reference::gelu::backward(1, x.len(), &wide(&x), None, &wide(&ones));
    on_every_level(|level| {
        let [y, slope] = outputs([x.len(); 2], |[y, slope]| {
            gelu::forward(1, x.len(), &x, None, y);
            gelu::backward(1, x.len(), &x, None, &ones, slope, None);
        });
        for i in 0..x.len() {
            let phi_error = (f64::from(y[i]) - expected[i]).abs() / f64::from(x[i]).abs().max(1.0);
            assert!(phi_error <= 2e-7, "{level} gelu({}) = {}, expected {}", x[i], y[i], expected[i]);
            assert!((f64::from(slope[i]) - slopes[i]).abs() <= 5e-7, "{level} slope({}) = {}, expected {}", x[i], slope[i], slopes[i]);
        }
    });
}

#[test]
fn nan_is_passed_on_and_extremes_keep_their_limits() {
    let x = [f32::NAN, f32::INFINITY, 1e30, -1e30, 0.0];
    on_every_level(|level| {
        let [y] = outputs([5], |[y]| gelu::forward(1, 5, &x, None, y));
        assert!(y[0].is_nan() && y[1] == f32::INFINITY && y[2] == 1e30 && y[3] == 0.0 && y[4] == 0.0, "{level}: {y:?}");
    });
}

#[test]
#[should_panic(expected = "bias: expected 3 elements, found 2")]
fn a_short_bias_is_refused() {
    outputs([6], |[y]| gelu::forward(2, 3, &[0.0; 6], Some(&[0.0; 2]), y));
}

#[test]
fn threads_change_nothing() {
    let mut random = Random(9);
    let (rows, width) = (1500, 33);
    let (x, d_y, w) = (random.normal(rows * 2 * width), random.normal(rows * width), random.normal(2 * width));
    assert_threads_change_nothing(|| {
        outputs([rows * width, width], |[dx, db]| gelu::backward(rows, width, &x[..rows * width], Some(&w[..width]), &d_y, dx, Some(db)))
    });
}
