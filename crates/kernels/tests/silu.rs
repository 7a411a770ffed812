mod common;
use common::*;
use minrnn_kernels::{reference, silu};

#[test]
fn reference_gradient_matches_differences() {
    let mut random = Random(1);
    let (x, w) = (wide(&random.normal(30)), wide(&random.normal(30)));
    let d_x = reference::silu::backward(&x, &w);
    assert_gradient("d_x", &d_x, &differences(&x, |x| dot(&reference::silu::forward(x), &w)));
}

#[test]
fn kernel_matches_reference() {
    let mut random = Random(2);
    for len in [0, 1, 17, 255, 256, 257, 40_000] {
        let (x, one, two) = (random.between(len, -12.0, 12.0), random.normal(len), random.normal(len));
        let both: Vec<f64> = one.iter().zip(&two).map(|(a, b)| f64::from(*a) + f64::from(*b)).collect();
        let expected = reference::silu::forward(&wide(&x));
        let (d_both, d_one) = (reference::silu::backward(&wide(&x), &both), reference::silu::backward(&wide(&x), &wide(&one)));
        on_every_level(|level| {
            let [y, by_both, by_one, by_none] = outputs([len; 4], |[y, by_both, by_one, by_none]| {
                silu::forward(&x, y);
                silu::backward(&x, [Some(&one), Some(&two)], by_both);
                silu::backward(&x, [None, Some(&one)], by_one);
                silu::backward(&x, [None, None], by_none);
            });
            assert_close(&format!("{level} {len} y"), &y, &expected, OUTPUT);
            assert_close(&format!("{level} {len} d_x of two readers"), &by_both, &d_both, GRADIENT);
            assert_close(&format!("{level} {len} d_x of one reader"), &by_one, &d_one, GRADIENT);
            assert!(by_none.iter().all(|&d| d == 0.0), "{level} {len}");
        });
    }
}

#[test]
fn nan_is_passed_on_and_extremes_keep_their_limits() {
    on_every_level(|level| {
        let [y] = outputs([4], |[y]| silu::forward(&[f32::NAN, 0.0, 1e30, -100.0], y));
        assert!(y[0].is_nan() && y[1] == 0.0 && y[2] == 1e30 && y[3].abs() < 1e-30, "{level}: {y:?}");
    });
}

#[test]
#[should_panic(expected = "y: expected 3 elements, found 2")]
fn a_short_output_is_refused() {
    outputs([2], |[y]| silu::forward(&[0.0; 3], y));
}
