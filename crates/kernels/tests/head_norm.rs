mod common;
use common::*;
use minrnn_kernels::Out;
use minrnn_kernels::head_norm::{self, Gradients, Inputs};
use minrnn_kernels::reference;

const EPS: f32 = 1e-5;

#[test]
fn reference_gradients_match_differences() {
    let mut random = Random(1);
    let (rows, heads, width) = (3, 2, 6);
    let x = wide(&random.normal(rows * width));
    let (weight, w) = (wide(&random.normal(width)), wide(&random.normal(rows * width)));
    let loss = |x: &[f64], weight: &[f64]| dot(&reference::head_norm::forward(rows, heads, x, weight, 1e-5), &w);
    let (d_x, d_weight) = reference::head_norm::backward(rows, heads, &x, &weight, 1e-5, &w);
    assert_gradient("d_x", &d_x, &differences(&x, |x| loss(x, &weight)));
    assert_gradient("d_weight", &d_weight, &differences(&weight, |weight| loss(&x, weight)));
}

#[test]
fn kernel_matches_reference() {
    let mut random = Random(2);
    for (rows, width) in MATRICES {
        for heads in [1, 3] {
            let width = heads * width.max(2);
            let (x, d_y, weight) = (random.normal(rows * width), random.normal(rows * width), random.normal(width));
            let (wide_x, wide_weight, eps) = (wide(&x), wide(&weight), f64::from(EPS));
            let expected = reference::head_norm::forward(rows, heads, &wide_x, &wide_weight, eps);
            let (d_x, d_weight) = reference::head_norm::backward(rows, heads, &wide_x, &wide_weight, eps, &wide(&d_y));
            on_every_level(|level| {
                let name = |what: &str| format!("{level} {rows}x{width} {what}");
                let [y] = outputs([rows * width], |[y]| head_norm::forward(rows, heads, Inputs { x: &x, weight: &weight, eps: EPS }, y));
                // Two channels that nearly agree are normalised by their small difference.
                assert_close(&name("y"), &y, &expected, 1e-4);
                let [dx, dw] = outputs([rows * width, width], |[dx, dw]| {
                    head_norm::backward(rows, heads, Inputs { x: &x, weight: &weight, eps: EPS }, &d_y, Gradients { d_x: dx, d_weight: dw })
                });
                assert_close(&name("d_x"), &dx, &d_x, 1e-3);
                assert_sums_close(&name("d_weight"), &dw, &d_weight, rows);
            });
        }
    }
}

/// The other head of the row, and the rows around it, have no NaN.
#[test]
fn a_head_whose_squares_overflow_is_nan_and_never_a_silent_zero() {
    let mut random = Random(3);
    for head in [5, 16, 35] {
        let width = 2 * head;
        let (mut x, d_y, weight) = (random.normal(3 * width), random.normal(3 * width), random.normal(width));
        // The second head of the second row.
        let large = 3 * head..4 * head;
        x[large.start] = 1e20;
        let inputs = Inputs { x: &x, weight: &weight, eps: EPS };
        on_every_level(|level| {
            let name = |what: &str| format!("{level} {head} {what}");
            assert_nan_in(&name("y"), large.clone(), 3 * width, |y| head_norm::forward(3, 2, inputs, y));
            let backward = |d: Gradients| head_norm::backward(3, 2, inputs, &d_y, d);
            let [mut d_x, mut d_weight] = [vec![0.0; 3 * width], vec![0.0; width]];
            assert_nan_in(&name("d_x"), large.clone(), 3 * width, |d_x| backward(Gradients { d_x, d_weight: Out::new(&mut d_weight) }));
            assert_nan_in(&name("d_weight"), head..width, width, |d_weight| backward(Gradients { d_x: Out::new(&mut d_x), d_weight }));
        });
        let only_that = |numbers: &[f32]| numbers.iter().enumerate().all(|(i, x)| x.is_nan() == large.contains(&i));
        assert!(only_that(&reference::head_norm::forward(3, 2, &x, &weight, EPS)), "the reference at {head}");
        assert!(only_that(&reference::head_norm::backward(3, 2, &x, &weight, EPS, &d_y).0), "the reference at {head}");
    }
}

#[test]
fn threads_change_nothing() {
    let mut random = Random(9);
    let (rows, width) = (1500, 36);
    let (x, d_y, w) = (random.normal(rows * width), random.normal(rows * width), random.normal(width));
    assert_threads_change_nothing(|| {
        outputs([rows * width, width], |[dx, dw]| {
            head_norm::backward(rows, 4, Inputs { x: &x, weight: &w, eps: EPS }, &d_y, Gradients { d_x: dx, d_weight: dw })
        })
    });
}
