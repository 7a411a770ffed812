mod common;
use common::*;
use minrnn_kernels::Out;
use minrnn_kernels::reference;
use minrnn_kernels::rms_norm::{self, Gradients, Inputs};

#[test]
fn reference_gradients_match_differences() {
    let mut random = Random(1);
    let (rows, width) = (3, 5);
    let (x, gamma, w) = (wide(&random.normal(rows * width)), wide(&random.normal(width)), wide(&random.normal(rows * width)));
    let loss = |x: &[f64], gamma: &[f64]| dot(&reference::rms_norm::forward(rows, width, x, gamma), &w);
    let (d_x, d_gamma) = reference::rms_norm::backward(rows, width, &x, &gamma, &w);
    assert_gradient("d_x", &d_x, &differences(&x, |x| loss(x, &gamma)));
    assert_gradient("d_gamma", &d_gamma, &differences(&gamma, |gamma| loss(&x, gamma)));
}

#[test]
fn kernel_matches_reference() {
    let mut random = Random(2);
    // A row of one element is ±1: its gradient is pure cancellation.
    for (rows, width) in MATRICES.into_iter().filter(|&(_, width)| width != 1) {
        let (x, d_y, gamma) = (random.normal(rows * width), random.normal(rows * width), random.normal(width));
        let expected = reference::rms_norm::forward(rows, width, &wide(&x), &wide(&gamma));
        let (d_x, d_gamma) = reference::rms_norm::backward(rows, width, &wide(&x), &wide(&gamma), &wide(&d_y));
        on_every_level(|level| {
            let [y] = outputs([rows * width], |[y]| rms_norm::forward(rows, width, Inputs { x: &x, gamma: &gamma }, y));
            assert_close(&format!("{level} {rows}x{width} y"), &y, &expected, OUTPUT);
            let [dx, dg] = outputs([rows * width, width], |[dx, dg]| {
                rms_norm::backward(rows, width, Inputs { x: &x, gamma: &gamma }, &d_y, None, Gradients { d_x: dx, d_gamma: dg })
            });
            assert_close(&format!("{level} {rows}x{width} d_x"), &dx, &d_x, GRADIENT);
            assert_sums_close(&format!("{level} {rows}x{width} d_gamma"), &dg, &d_gamma, rows);
            let [both, _] = outputs([rows * width, width], |[dx, dg]| {
                rms_norm::backward(rows, width, Inputs { x: &x, gamma: &gamma }, &d_y, Some(&x), Gradients { d_x: dx, d_gamma: dg })
            });
            assert!(both.iter().zip(dx.iter().zip(&x)).all(|(&both, (d, x))| both == d + x), "{level} {rows}x{width} with a residual");
        });
    }
}

#[test]
fn a_row_of_zeros_gives_zeros() {
    let (x, gamma) = ([0.0; 20], [0.25; 20]);
    on_every_level(|_| {
        let [y, dx, dg] = outputs([20; 3], |[y, dx, dg]| {
            rms_norm::forward(1, 20, Inputs { x: &x, gamma: &gamma }, y);
            rms_norm::backward(1, 20, Inputs { x: &x, gamma: &gamma }, &[1e-12; 20], None, Gradients { d_x: dx, d_gamma: dg });
        });
        assert!(y.iter().chain(&dg).all(|&y| y == 0.0));
        let (expected, _) = reference::rms_norm::backward(1, 20, &wide(&x), &wide(&gamma), &[1e-12; 20]);
        assert_close("d_x", &dx, &expected, GRADIENT);
    });
}

/// The rows before and after it have no NaN.
#[test]
fn a_row_whose_squares_overflow_is_nan_and_never_a_silent_zero() {
    let mut random = Random(3);
    for (width, large) in [(1, 1), (20, 20), (37, 1), (133, 133)] {
        let (mut x, d_y, gamma) = (random.normal(3 * width), random.normal(3 * width), random.normal(width));
        x[2 * width - large..2 * width].fill(1e20);
        let inputs = Inputs { x: &x, gamma: &gamma };
        let second = width..2 * width;
        on_every_level(|level| {
            let name = |what: &str| format!("{level} {width} {what}");
            assert_nan_in(&name("y"), second.clone(), 3 * width, |y| rms_norm::forward(3, width, inputs, y));
            let backward = |d: Gradients| rms_norm::backward(3, width, inputs, &d_y, None, d);
            let [mut d_x, mut d_gamma] = [vec![0.0; 3 * width], vec![0.0; width]];
            assert_nan_in(&name("d_x"), second.clone(), 3 * width, |d_x| backward(Gradients { d_x, d_gamma: Out::new(&mut d_gamma) }));
            assert_nan_in(&name("d_gamma"), 0..width, width, |d_gamma| backward(Gradients { d_x: Out::new(&mut d_x), d_gamma }));
        });
        let only_second = |numbers: &[f32]| numbers.iter().enumerate().all(|(i, x)| x.is_nan() == second.contains(&i));
        assert!(only_second(&reference::rms_norm::forward(3, width, &x, &gamma)), "the reference at {width}");
        let (d_x, d_gamma) = reference::rms_norm::backward(3, width, &x, &gamma, &d_y);
        assert!(only_second(&d_x) && d_gamma.iter().all(|d| d.is_nan()), "the reference at {width}");
        // In f64 there is room for these squares.
        assert!(reference::rms_norm::forward(3, width, &wide(&x), &wide(&gamma)).iter().all(|y| y.is_finite()));
    }
    assert!(reference::rms_norm::forward(1, 2, &[1e200, 1.0], &[0.0; 2]).iter().all(|y: &f64| y.is_nan()));
}

#[test]
fn threads_change_nothing() {
    let mut random = Random(9);
    let (rows, width) = (1500, 33);
    let (x, d_y, w) = (random.normal(rows * 2 * width), random.normal(rows * width), random.normal(2 * width));
    assert_threads_change_nothing(|| {
        outputs([rows * width, width], |[dx, dg]| {
            rms_norm::backward(
                rows,
                width,
                Inputs { x: &x[..rows * width], gamma: &w[..width] },
                &d_y,
                None,
                Gradients { d_x: dx, d_gamma: dg },
            )
        })
    });
}
