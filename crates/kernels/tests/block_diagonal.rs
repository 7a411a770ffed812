mod common;
use common::*;
use minrnn_kernels::block_diagonal::{self, Blocks};
use minrnn_kernels::reference;

#[test]
fn reference_gradients_match_differences() {
    let mut random = Random(1);
    let (rows, blocks) = (3, Blocks { count: 2, outputs: 3, inputs: 4 });
    let (x, weight, w) = (wide(&random.normal(rows * 8)), wide(&random.normal(24)), wide(&random.normal(rows * 6)));
    let loss = |x: &[f64], weight: &[f64]| dot(&reference::block_diagonal::forward(rows, blocks, x, weight), &w);
    let (d_x, d_weight) = reference::block_diagonal::backward(rows, blocks, &x, &weight, &w);
    assert_gradient("d_x", &d_x, &differences(&x, |x| loss(x, &weight)));
    assert_gradient("d_weight", &d_weight, &differences(&weight, |weight| loss(&x, weight)));
}

#[test]
fn kernel_matches_reference() {
    let mut random = Random(2);
    for rows in [0, 1, 3, 130, 1000] {
        for (count, outputs_of, inputs) in [(1, 4, 4), (7, 4, 4), (3, 5, 2), (2, 16, 16), (1, 33, 33), (4, 1, 1)] {
            let blocks = Blocks { count, outputs: outputs_of, inputs };
            let (n_x, n_y, n_w) = (rows * count * inputs, rows * count * outputs_of, count * outputs_of * inputs);
            let (x, weight, d_y) = (random.normal(n_x), random.normal(n_w), random.normal(n_y));
            let (wide_x, wide_weight) = (wide(&x), wide(&weight));
            let expected = reference::block_diagonal::forward(rows, blocks, &wide_x, &wide_weight);
            let (d_x, d_weight) = reference::block_diagonal::backward(rows, blocks, &wide_x, &wide_weight, &wide(&d_y));
            on_every_level(|level| {
                let name = |what: &str| format!("{level} {rows} rows, {blocks:?}: {what}");
                let [y, dx, dw] = outputs([n_y, n_x, n_w], |[y, dx, dw]| {
                    block_diagonal::forward(rows, blocks, &x, &weight, y);
                    block_diagonal::backward(rows, blocks, &x, &weight, &d_y, dx, dw);
                });
                assert_close(&name("y"), &y, &expected, OUTPUT);
                assert_close(&name("d_x"), &dx, &d_x, GRADIENT);
                assert_sums_close(&name("d_weight"), &dw, &d_weight, rows);
            });
        }
    }
}
