//! The gate with a skip at the end of an mLSTM block.

mod common;
use common::*;
use minrnn_kernels::reference;
use minrnn_kernels::skip_gate::{self, Gradients, Inputs};

#[test]
fn reference_gradients_match_differences() {
    let mut random = Random(1);
    let [x, y, c, w] = [(); 4].map(|()| wide(&random.normal(15)));
    let skip = wide(&random.normal(5));
    let loss = |y: &[f64], c: &[f64], skip: &[f64], z: &[f64]| dot(&reference::skip_gate::forward(y, c, skip, z), &w);
    let (d_y, d_c, d_skip, d_z) = reference::skip_gate::backward(&y, &c, &skip, &x, &w);
    assert_gradient("d_y", &d_y, &differences(&y, |y| loss(y, &c, &skip, &x)));
    assert_gradient("d_c", &d_c, &differences(&c, |c| loss(&y, c, &skip, &x)));
    assert_gradient("d_skip", &d_skip, &differences(&skip, |skip| loss(&y, &c, skip, &x)));
    assert_gradient("d_z", &d_z, &differences(&x, |z| loss(&y, &c, &skip, z)));
}

#[test]
fn kernels_match_reference() {
    let mut random = Random(2);
    for (rows, width) in MATRICES {
        let n = rows * width;
        let [x, y, c, d] = [(); 4].map(|()| random.normal(n));
        let skip = random.normal(width);
        let [wide_x, wide_y, wide_c, wide_d, wide_skip] = [&x, &y, &c, &d, &skip].map(|x| wide(x));
        let (d_y, d_c, d_skip, d_z) = reference::skip_gate::backward(&wide_y, &wide_c, &wide_skip, &wide_x, &wide_d);
        on_every_level(|level| {
            let name = |what: &str| format!("{level} {rows}x{width} {what}");
            let [found] = outputs([n], |[out]| skip_gate::forward(rows, Inputs { y: &y, c: &c, skip: &skip, z: &x }, out));
            assert_close(&name("skip gate"), &found, &reference::skip_gate::forward(&wide_y, &wide_c, &wide_skip, &wide_x), OUTPUT);
            let [f_y, f_c, f_z, f_skip] = outputs([n, n, n, width], |[f_y, f_c, f_z, f_skip]| {
                skip_gate::backward(
                    rows,
                    Inputs { y: &y, c: &c, skip: &skip, z: &x },
                    &d,
                    Gradients { d_y: f_y, d_c: f_c, d_skip: f_skip, d_z: f_z },
                )
            });
            assert_close(&name("d_y"), &f_y, &d_y, GRADIENT);
            assert_close(&name("d_c"), &f_c, &d_c, GRADIENT);
            assert_close(&name("d_z"), &f_z, &d_z, GRADIENT);
            assert_sums_close(&name("d_skip"), &f_skip, &d_skip, rows);
        });
    }
}

#[test]
fn threads_change_nothing() {
    let mut random = Random(9);
    let (rows, width) = (1500, 33);
    let [y, c, z, d] = [(); 4].map(|()| random.normal(rows * width));
    let skip = random.normal(width);
    assert_threads_change_nothing(|| {
        outputs([rows * width, rows * width, rows * width, width], |[d_y, d_c, d_z, d_skip]| {
            skip_gate::backward(rows, Inputs { y: &y, c: &c, skip: &skip, z: &z }, &d, Gradients { d_y, d_c, d_skip, d_z })
        })
    });
}
