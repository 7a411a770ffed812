mod common;
use common::*;
use minrnn_kernels::Out;
use minrnn_kernels::layer_norm::{self, Gradients, Inputs};
use minrnn_kernels::reference;

const EPS: f32 = 1e-5;

#[test]
fn reference_gradients_match_differences() {
    let mut random = Random(1);
    let (rows, width, eps) = (3, 5, 1e-5);
    let (x, w) = (wide(&random.normal(rows * width)), wide(&random.normal(rows * width)));
    let (gamma, beta) = (wide(&random.normal(width)), wide(&random.normal(width)));
    let loss = |x: &[f64], gamma: &[f64], beta: &[f64]| dot(&reference::layer_norm::forward(rows, width, x, gamma, beta, eps), &w);
    let (d_x, d_gamma, d_beta) = reference::layer_norm::backward(rows, width, &x, &gamma, eps, &w);
    assert_gradient("d_x", &d_x, &differences(&x, |x| loss(x, &gamma, &beta)));
    assert_gradient("d_gamma", &d_gamma, &differences(&gamma, |gamma| loss(&x, gamma, &beta)));
    assert_gradient("d_beta", &d_beta, &differences(&beta, |beta| loss(&x, &gamma, beta)));
}

#[test]
fn kernel_matches_reference() {
    let mut random = Random(2);
    // A row of one element is 0/√ε: its gradient is pure cancellation.
    for (rows, width) in MATRICES.into_iter().filter(|&(_, width)| width != 1) {
        let (x, d_y) = (random.normal(rows * width), random.normal(rows * width));
        let (gamma, beta) = (random.normal(width), random.normal(width));
        let expected = reference::layer_norm::forward(rows, width, &wide(&x), &wide(&gamma), &wide(&beta), EPS.into());
        let (d_x, d_gamma, d_beta) = reference::layer_norm::backward(rows, width, &wide(&x), &wide(&gamma), EPS.into(), &wide(&d_y));
        on_every_level(|level| {
            let [y] = outputs([rows * width], |[y]| layer_norm::forward(rows, width, Inputs { x: &x, gamma: &gamma, eps: EPS }, &beta, y));
            assert_close(&format!("{level} {rows}x{width} y"), &y, &expected, OUTPUT);
            let [dx, dg, db] = outputs([rows * width, width, width], |[dx, dg, db]| {
                layer_norm::backward(
                    rows,
                    width,
                    Inputs { x: &x, gamma: &gamma, eps: EPS },
                    &d_y,
                    None,
                    Gradients { d_x: dx, d_gamma: dg, d_beta: db },
                )
            });
            assert_close(&format!("{level} {rows}x{width} d_x"), &dx, &d_x, GRADIENT);
            assert_sums_close(&format!("{level} {rows}x{width} d_gamma"), &dg, &d_gamma, rows);
            assert_sums_close(&format!("{level} {rows}x{width} d_beta"), &db, &d_beta, rows);
            let [both, ..] = outputs([rows * width, width, width], |[dx, dg, db]| {
                layer_norm::backward(
                    rows,
                    width,
                    Inputs { x: &x, gamma: &gamma, eps: EPS },
                    &d_y,
                    Some(&x),
                    Gradients { d_x: dx, d_gamma: dg, d_beta: db },
                )
            });
            assert!(both.iter().zip(dx.iter().zip(&x)).all(|(&both, (d, x))| both == d + x), "{level} {rows}x{width} with a residual");
        });
    }
}

#[test]
fn a_constant_row_gives_beta_and_no_gradient() {
    let (x, gamma, beta) = ([3.0; 70], [2.0; 70], [0.5; 70]);
    on_every_level(|_| {
        let [y, dx, dg, db] = outputs([70; 4], |[y, dx, dg, db]| {
            layer_norm::forward(1, 70, Inputs { x: &x, gamma: &gamma, eps: EPS }, &beta, y);
            layer_norm::backward(
                1,
                70,
                Inputs { x: &x, gamma: &gamma, eps: EPS },
                &[1.0; 70],
                None,
                Gradients { d_x: dx, d_gamma: dg, d_beta: db },
            );
        });
        assert!(y.iter().all(|&y| y == 0.5) && db.iter().all(|&d| d == 1.0) && dg.iter().all(|&d| d == 0.0));
        assert!(dx.iter().all(|d| d.abs() < 1e-3), "{dx:?}");
    });
}

/// The rows before and after it have no NaN.
#[test]
fn a_row_whose_squares_overflow_is_nan_and_never_a_silent_zero() {
    let mut random = Random(3);
    for (width, large) in [(20, 11), (37, 1), (133, 64)] {
        let (mut x, d_y) = (random.normal(3 * width), random.normal(3 * width));
        let (gamma, beta) = (random.normal(width), random.normal(width));
        x[2 * width - large..2 * width].fill(1e20);
        let inputs = Inputs { x: &x, gamma: &gamma, eps: EPS };
        let second = width..2 * width;
        on_every_level(|level| {
            let name = |what: &str| format!("{level} {width} {what}");
            assert_nan_in(&name("y"), second.clone(), 3 * width, |y| layer_norm::forward(3, width, inputs, &beta, y));
            let backward = |d: Gradients| layer_norm::backward(3, width, inputs, &d_y, None, d);
            let [mut d_x, mut d_gamma, mut d_beta] = [3 * width, width, width].map(|n| vec![0.0; n]);
            assert_nan_in(&name("d_x"), second.clone(), 3 * width, |d_x| {
                backward(Gradients { d_x, d_gamma: Out::new(&mut d_gamma), d_beta: Out::new(&mut d_beta) });
            });
            assert_nan_in(&name("d_gamma"), 0..width, width, |d_gamma| {
                backward(Gradients { d_x: Out::new(&mut d_x), d_gamma, d_beta: Out::new(&mut d_beta) });
            });
            assert!(d_beta.iter().all(|d| d.is_finite()), "{level} {width} d_beta");
        });
        let only_second = |numbers: &[f32]| numbers.iter().enumerate().all(|(i, x)| x.is_nan() == second.contains(&i));
        assert!(only_second(&reference::layer_norm::forward(3, width, &x, &gamma, &beta, EPS)), "the reference at {width}");
        let (d_x, d_gamma, _) = reference::layer_norm::backward(3, width, &x, &gamma, EPS, &d_y);
        assert!(only_second(&d_x) && d_gamma.iter().all(|d| d.is_nan()), "the reference at {width}");
    }
    assert!(reference::layer_norm::forward(1, 2, &[1e200, 1.0], &[1.0; 2], &[0.0; 2], 1e-5).iter().all(|y: &f64| y.is_nan()));
}

#[test]
fn threads_change_nothing() {
    let mut random = Random(9);
    let (rows, width) = (1500, 33);
    let (x, d_y, w) = (random.normal(rows * 2 * width), random.normal(rows * width), random.normal(2 * width));
    assert_threads_change_nothing(|| {
        outputs([rows * width, width, width], |[dx, dg, db]| {
            let inputs = Inputs { x: &x[..rows * width], gamma: &w[..width], eps: EPS };
            layer_norm::backward(rows, width, inputs, &d_y, None, Gradients { d_x: dx, d_gamma: dg, d_beta: db })
        })
    });
}
