mod common;
use common::*;
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
                    head_norm::backward(rows, heads, Inputs { x: &x, weight: &weight, eps: EPS }, &d_y, Gradients { x: dx, weight: dw })
                });
                assert_close(&name("d_x"), &dx, &d_x, 1e-3);
                assert_sums_close(&name("d_weight"), &dw, &d_weight, rows);
            });
        }
    }
}

#[test]
fn threads_change_nothing() {
    let mut random = Random(9);
    let (rows, width) = (1500, 36);
    let (x, d_y, w) = (random.normal(rows * width), random.normal(rows * width), random.normal(width));
    assert_threads_change_nothing(|| {
        outputs([rows * width, width], |[dx, dw]| {
            head_norm::backward(rows, 4, Inputs { x: &x, weight: &w, eps: EPS }, &d_y, Gradients { x: dx, weight: dw })
        })
    });
}
