mod common;
use common::*;
use minrnn_kernels::reference;
use minrnn_kernels::rotary::{self, Layout};

fn layouts() -> [Layout; 4] {
    [(2, 8, 12), (6, 12, 12), (64, 128, 192), (4, 0, 4)].map(|(head_width, turned, width)| Layout { head_width, turned, width })
}

#[test]
fn reference_gradients_match_differences() {
    let mut random = Random(1);
    for layout in layouts() {
        let places = [3, 0, 7];
        let x = wide(&random.normal(3 * layout.width));
        let w = wide(&random.normal(x.len()));
        let d_x = reference::rotary::backward(layout, &w, &places);
        assert_gradient("d_x", &d_x, &differences(&x, |x| dot(&reference::rotary::forward(layout, x, &places), &w)));
    }
}

#[test]
fn kernel_matches_reference() {
    let mut random = Random(2);
    for layout in layouts() {
        for rows in [0, 1, 5, 300] {
            // Places that rows share, and places all over the range.
            for span in [7, 1 << 24] {
                let places: Vec<u32> = (0..rows).map(|_| random.below(span) as u32).collect();
                let x = random.normal(rows * layout.width);
                on_every_level(|level| {
                    let what = format!("{level} {layout:?}, {rows} rows");
                    let [y] = outputs([x.len()], |[y]| rotary::forward(layout, &x, &places, y));
                    assert_close(&what, &y, &reference::rotary::forward(layout, &wide(&x), &places), OUTPUT);
                    let [d] = outputs([x.len()], |[d]| rotary::backward(layout, &x, &places, d));
                    assert_close(&what, &d, &reference::rotary::backward(layout, &wide(&x), &places), OUTPUT);
                });
            }
        }
    }
}

/// q_m · k_n depends on m − n alone.
#[test]
fn products_depend_on_the_distance_alone() {
    let mut random = Random(3);
    let layout = Layout { head_width: 16, turned: 16, width: 16 };
    let (q, k) = (wide(&random.normal(16)), wide(&random.normal(16)));
    let product = |m: u32, n: u32| dot(&reference::rotary::forward(layout, &q, &[m]), &reference::rotary::forward(layout, &k, &[n]));
    for (m, n) in [(5, 3), (100, 98), (70_002, 70_000)] {
        assert!((product(m, n) - product(2, 0)).abs() < 1e-9);
    }
}
