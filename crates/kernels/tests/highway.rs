//! Highway output against its reference in f64, and the reference's gradients against finite differences.

mod common;

use common::{
    GRADIENT, MATRICES, OUTPUT, Random, assert_close, assert_gradient, assert_sums_close, differences, dot, on_every_level, outputs, wide,
};
use minrnn_kernels::highway::{self, Gradients, Inputs};
use minrnn_kernels::reference;

#[test]
fn kernels_match_the_reference_on_every_level() {
    let mut random = Random(1);
    for ((rows, width), biased) in MATRICES.into_iter().flat_map(|size| [(size, true), (size, false)]) {
        let n = rows * width;
        let [gate, value, x, d_y] = [0; 4].map(|_| random.normal(n));
        let biases = [0; 2].map(|_| biased.then(|| random.normal(width)));
        let [gate_bias, value_bias] = biases.each_ref().map(|bias| bias.as_deref());
        let wide_biases = biases.each_ref().map(|bias| bias.as_deref().map(wide));
        let wide_biases = wide_biases.each_ref().map(|bias| bias.as_deref());
        let [wide_gate, wide_value, wide_x] = [&gate, &value, &x].map(|part| wide(part));
        let parts = [&wide_gate[..], &wide_value, &wide_x];
        let expected = reference::highway::forward(width, parts, wide_biases);
        let [d_gate, d_value, d_x, d_gate_bias, d_value_bias] = reference::highway::backward(width, parts, wide_biases, &wide(&d_y));
        on_every_level(|level| {
            let what = |name: &str| format!("{level}, {rows} · {width}: {name}");
            let inputs = Inputs { gate: &gate, gate_bias, value: &value, value_bias, x: &x };
            let [y] = outputs([n], |[y]| highway::forward(rows, width, inputs, y));
            assert_close(&what("y"), &y, &expected, OUTPUT);
            let w = if biased { width } else { 0 };
            let found = outputs([n, n, n, w, w], |[d_gate, d_value, d_x, d_gate_bias, d_value_bias]| {
                let d = Gradients {
                    d_gate,
                    d_value,
                    d_x,
                    d_gate_bias: biased.then_some(d_gate_bias),
                    d_value_bias: biased.then_some(d_value_bias),
                };
                highway::backward(rows, width, inputs, &d_y, d);
            });
            assert_close(&what("d_gate"), &found[0], &d_gate, GRADIENT);
            assert_close(&what("d_value"), &found[1], &d_value, GRADIENT);
            assert_close(&what("d_x"), &found[2], &d_x, GRADIENT);
            if biased {
                assert_sums_close(&what("d_gate_bias"), &found[3], &d_gate_bias, rows);
                assert_sums_close(&what("d_value_bias"), &found[4], &d_value_bias, rows);
            }
        });
    }
}

#[test]
fn gradients_of_the_reference_match_differences() {
    let mut random = Random(2);
    let [gate, value, x, d_y] = [0; 4].map(|_| wide(&random.normal(15)));
    let [gate_bias, value_bias] = [0; 2].map(|_| wide(&random.normal(5)));
    let loss = |parts: [&[f64]; 3], biases: [&[f64]; 2]| dot(&reference::highway::forward(5, parts, biases.map(Some)), &d_y);
    let biases = [&gate_bias[..], &value_bias];
    let d = reference::highway::backward(5, [&gate, &value, &x], biases.map(Some), &d_y);
    assert_gradient("gate", &d[0], &differences(&gate, |gate| loss([gate, &value, &x], biases)));
    assert_gradient("value", &d[1], &differences(&value, |value| loss([&gate, value, &x], biases)));
    assert_gradient("x", &d[2], &differences(&x, |x| loss([&gate, &value, x], biases)));
    assert_gradient("gate bias", &d[3], &differences(&gate_bias, |bias| loss([&gate, &value, &x], [bias, &value_bias])));
    assert_gradient("value bias", &d[4], &differences(&value_bias, |bias| loss([&gate, &value, &x], [&gate_bias, bias])));
}

#[test]
fn an_open_gate_gives_the_value_and_a_closed_one_the_input() {
    let inputs = Inputs { gate: &[100.0, -100.0], gate_bias: None, value: &[3.0, 3.0], value_bias: None, x: &[-7.0, -7.0] };
    let [y] = outputs([2], |[y]| highway::forward(1, 2, inputs, y));
    assert_eq!(y, [3.0, -7.0]);
}
