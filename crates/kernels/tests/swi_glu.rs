mod common;
use common::*;
use minrnn_kernels::{reference, swi_glu};

#[test]
fn reference_gradients_match_differences() {
    let mut random = Random(1);
    let (rows, width) = (3, 5);
    let (x, w) = (wide(&random.normal(rows * 2 * width)), wide(&random.normal(rows * width)));
    let d_x = reference::swi_glu::backward(rows, width, &x, &w);
    assert_gradient("d_x", &d_x, &differences(&x, |x| dot(&reference::swi_glu::forward(rows, width, x), &w)));
}

#[test]
fn kernel_matches_reference() {
    let mut random = Random(2);
    for (rows, width) in MATRICES {
        let (x, d_y) = (random.normal(rows * 2 * width), random.normal(rows * width));
        let expected = reference::swi_glu::forward(rows, width, &wide(&x));
        let gradient = reference::swi_glu::backward(rows, width, &wide(&x), &wide(&d_y));
        on_every_level(|level| {
            let [y] = outputs([rows * width], |[y]| swi_glu::forward(rows, width, &x, y));
            assert_close(&format!("{level} {rows}x{width} y"), &y, &expected, OUTPUT);
            let [d_x] = outputs([rows * 2 * width], |[d_x]| swi_glu::backward(rows, width, &x, &d_y, d_x));
            assert_close(&format!("{level} {rows}x{width} d_x"), &d_x, &gradient, GRADIENT);
        });
    }
}
