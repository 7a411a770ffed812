mod common;
use common::*;
use minrnn_kernels::gated_gelu::{self, Gradients, Halves, Inputs};
use minrnn_kernels::reference;

#[test]
fn reference_gradients_match_differences() {
    let mut random = Random(1);
    let (rows, width) = (3, 5);
    let x = wide(&random.normal(rows * 2 * width));
    let (bias, scale, w) = (wide(&random.normal(2 * width)), wide(&random.normal(width)), wide(&random.normal(rows * width)));
    let loss = |x: &[f64], bias: &[f64], scale: &[f64]| dot(&reference::gated_gelu::forward(rows, width, x, Some(bias), scale), &w);
    let (d_x, d_bias, d_scale) = reference::gated_gelu::backward(rows, width, &x, Some(&bias), &scale, &w);
    assert_gradient("d_x", &d_x, &differences(&x, |x| loss(x, &bias, &scale)));
    assert_gradient("d_bias", &d_bias, &differences(&bias, |bias| loss(&x, bias, &scale)));
    assert_gradient("d_scale", &d_scale, &differences(&scale, |scale| loss(&x, &bias, scale)));
}

#[test]
fn kernel_matches_reference() {
    let mut random = Random(2);
    for (rows, width) in MATRICES {
        for with_bias in [false, true] {
            let (x, d_y) = (random.normal(rows * 2 * width), random.normal(rows * width));
            let (bias, scale) = (with_bias.then(|| random.normal(2 * width)), random.normal(width));
            let bias = bias.as_deref();
            let (wide_x, wide_bias, wide_scale) = (wide(&x), bias.map(wide), wide(&scale));
            let expected = reference::gated_gelu::forward(rows, width, &wide_x, wide_bias.as_deref(), &wide_scale);
            let (d_x, d_bias, d_scale) =
                reference::gated_gelu::backward(rows, width, &wide_x, wide_bias.as_deref(), &wide_scale, &wide(&d_y));
            let inputs = Inputs { halves: Halves::ValueGate, x: &x, bias, scale: Some(&scale) };
            on_every_level(|level| {
                let [y] = outputs([rows * width], |[y]| gated_gelu::forward(rows, width, inputs, y));
                assert_close(&format!("{level} {rows}x{width} y"), &y, &expected, OUTPUT);
                let [dx, db, ds] = outputs([rows * 2 * width, 2 * width, width], |[dx, db, ds]| {
                    gated_gelu::backward(rows, width, inputs, &d_y, Gradients { d_x: dx, d_bias: Some(db), d_scale: Some(ds) })
                });
                assert_close(&format!("{level} {rows}x{width} d_x"), &dx, &d_x, GRADIENT);
                assert_sums_close(&format!("{level} {rows}x{width} d_bias"), &db, &d_bias, rows);
                assert_sums_close(&format!("{level} {rows}x{width} d_scale"), &ds, &d_scale, rows);
            });
        }
    }
}

#[test]
fn threads_change_nothing() {
    let mut random = Random(9);
    let (rows, width) = (1500, 33);
    let (x, d_y, w) = (random.normal(rows * 2 * width), random.normal(rows * width), random.normal(2 * width));
    assert_threads_change_nothing(|| {
        outputs([rows * 2 * width, 2 * width, width], |[dx, db, ds]| {
            let inputs = Inputs { halves: Halves::ValueGate, x: &x, bias: Some(&w), scale: Some(&w[..width]) };
            gated_gelu::backward(rows, width, inputs, &d_y, Gradients { d_x: dx, d_bias: Some(db), d_scale: Some(ds) })
        })
    });
}

#[test]
fn a_gate_in_front_without_scale_is_the_same_with_halves_exchanged() {
    let mut random = Random(5);
    for (rows, width) in MATRICES {
        let (x, d_y, ones) = (random.normal(rows * 2 * width), random.normal(rows * width), vec![1.0; width]);
        let exchanged =
            |x: &[f32]| -> Vec<f32> { x.chunks_exact(2 * width).flat_map(|row| [&row[width..], &row[..width]].concat()).collect() };
        let run = |halves, x: &[f32], scale| {
            outputs([rows * width, rows * 2 * width], |[y, d_x]| {
                let inputs = Inputs { halves, x, bias: None, scale };
                gated_gelu::forward(rows, width, inputs, y);
                gated_gelu::backward(rows, width, inputs, &d_y, Gradients { d_x, d_bias: None, d_scale: None });
            })
        };
        let [y, d_x] = run(Halves::GateValue, &x, None);
        let [expected_y, expected_d_x] = run(Halves::ValueGate, &exchanged(&x), Some(&ones[..]));
        assert_eq!((y, exchanged(&d_x)), (expected_y, expected_d_x));
    }
}
